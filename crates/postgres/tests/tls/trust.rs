//! Which servers are believed, by mode.

use crate::{
    Secure,
    certificates::{Authority, Validity, self_signed},
    is_verified,
    server::Server,
};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};
use tidegate_postgres::{Postgres, Protection};

const UNVERIFIED: Protection = Protection::Unverified { version: "TLS 1.3" };
const BY_AUTHORITY: Protection = Protection::Verified { version: "TLS 1.3", by_name: false };

#[tokio::test]
async fn a_server_is_believed_as_far_as_the_mode_says() {
    let secure = Secure::start().await;
    for (settings, expected) in [
        ("sslmode=disable", Protection::Plain),
        ("", UNVERIFIED),
        ("sslmode=prefer", UNVERIFIED),
        ("sslmode=prefer host=127.0.0.1", UNVERIFIED),
        ("sslmode=require sslverify=none", UNVERIFIED),
        ("sslmode=require sslverify=none host=127.0.0.1", UNVERIFIED),
        ("sslmode=verify-ca sslrootcert=@/ca.pem", BY_AUTHORITY),
        ("sslmode=verify-ca sslrootcert=@/ca.pem host=127.0.0.1", BY_AUTHORITY),
    ] {
        assert_eq!(secure.connect(settings).await.unwrap(), expected, "{settings}");
    }
    for mode in ["sslmode=require", "sslmode=verify-full", ""] {
        let trusting = format!("{mode} sslrootcert=@/ca.pem");
        assert!(is_verified(secure.connect(&trusting).await.unwrap()), "{mode}");
        let by_address = secure.refusal(&format!("{trusting} host=127.0.0.1")).await;
        assert!(by_address.contains("it is for localhost") && by_address.contains("verify-ca"));
        // hostaddr says where, host says who.
        let elsewhere = format!("{trusting} hostaddr=127.0.0.1 host=localhost");
        assert!(is_verified(secure.connect(&elsewhere).await.unwrap()), "{mode}");
        let other = secure.refusal(&format!("{trusting} hostaddr=127.0.0.1 host=db.example")).await;
        assert!(other.contains("`db.example`"), "{other}");
    }
}

#[tokio::test]
async fn a_server_with_an_unknown_authority_is_refused_by_every_mode_that_verifies() {
    let secure = Secure::start().await;
    secure.file("other.pem", &Authority::new("an authority").pem());
    for settings in [
        "sslmode=require",
        "sslmode=verify-full",
        "sslmode=verify-full sslrootcert=system",
        "sslmode=require sslrootcert=@/other.pem",
        "sslmode=verify-ca sslrootcert=@/other.pem",
        "sslmode=verify-full sslrootcert=@/other.pem",
    ] {
        let refusal = secure.refusal(settings).await;
        assert!(refusal.contains("sslrootcert"), "{settings}: {refusal}");
    }
    let refusal = secure.refusal("sslmode=require").await;
    assert!(refusal.contains("sslverify=none"), "{refusal}");
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused_by_every_mode_that_verifies() {
    let mut secure = Secure::start().await;
    let expired =
        secure.authority.certify_with("localhost", &PKCS_ECDSA_P256_SHA256, Validity::Past);
    secure.show(&expired);
    for mode in ["require", "verify-ca", "verify-full"] {
        let refusal = secure.refusal(&format!("sslmode={mode} sslrootcert=@/ca.pem")).await;
        assert!(refusal.contains("expired"), "{mode}: {refusal}");
    }
    assert_eq!(secure.connect("sslmode=prefer").await.unwrap(), UNVERIFIED);
}

#[tokio::test]
async fn a_certificate_that_vouches_for_itself_can_be_named() {
    let mut secure = Secure::start().await;
    let own = self_signed("localhost", &PKCS_ECDSA_P384_SHA384, Validity::Now);
    secure.show(&own);
    secure.file("own.pem", &own.certificate);
    let settings = "sslmode=verify-full sslrootcert=@/own.pem";
    assert!(is_verified(secure.connect(settings).await.unwrap()));
    assert!(secure.refusal(&format!("{settings} host=127.0.0.1")).await.contains("localhost"));
    secure.refusal("sslmode=verify-full sslrootcert=@/ca.pem").await;
    let expired = self_signed("localhost", &PKCS_ECDSA_P256_SHA256, Validity::Past);
    secure.show(&expired);
    secure.file("own.pem", &expired.certificate);
    assert!(secure.refusal(settings).await.contains("expired"));
}

#[tokio::test]
async fn urls_say_the_same() {
    let secure = Secure::start().await;
    let port = secure.server.cluster.port();
    let roots = secure.directory.path().join("ca.pem").display().to_string().replace('/', "%2F");
    let url = format!(
        "postgres://postgres@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={roots}"
    );
    let store = Postgres::connect(&url).await.unwrap();
    assert!(is_verified(store.protection().unwrap()));
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_it_is_required() {
    let server = Server::start("");
    let address =
        |rest: &str| format!("host=127.0.0.1 port={} user=postgres {rest}", server.cluster.port());
    let protection = async |rest: &str| {
        Postgres::connect(&address(rest)).await.map(|store| store.protection().unwrap())
    };
    for rest in ["", "sslmode=prefer", "sslmode=disable"] {
        assert_eq!(protection(rest).await.unwrap(), Protection::Plain);
    }
    for mode in ["require", "verify-full"] {
        let error = protection(&format!("sslmode={mode}")).await.unwrap_err();
        assert!(!error.is_passing() && error.to_string().contains("ssl = on"), "{error}");
    }
    let bound = protection("channel_binding=require").await.unwrap_err().to_string();
    assert!(bound.contains("channel_binding=require needs TLS"), "{bound}");
    // Nobody is on the way there.
    let socket = server.directory();
    let socket = socket.display();
    let local =
        format!("host={socket} port={} user=postgres sslmode=verify-full", server.cluster.port());
    let store = Postgres::connect(&local).await.unwrap();
    assert_eq!(store.protection(), Some(Protection::Local));
}

#[tokio::test]
async fn the_first_of_several_servers_that_answers_is_taken() {
    let secure = Secure::start().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (silent, port) = (silent.local_addr().unwrap().port(), secure.server.cluster.port());
    let files = secure.directory.path().display();
    let address = format!(
        "host=localhost,localhost port={silent},{port} user=postgres connect_timeout=5 \
         sslmode=verify-full sslrootcert={files}/ca.pem"
    );
    let store = Postgres::connect(&address).await.unwrap();
    assert!(is_verified(store.protection().unwrap()));
}
