//! Who a client is.

use crate::{
    Secure,
    certificates::{Authority, Validity, self_signed},
    is_verified,
};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use std::{fs, os::unix::fs::PermissionsExt};
use tidegate_postgres::Protection;

const FULL: &str = "sslmode=verify-full sslrootcert=@/ca.pem";

#[tokio::test]
async fn a_client_is_known_by_its_certificate() {
    let secure = Secure::start().await;
    let put = |name: &str, certified: &crate::certificates::Certified| {
        secure.file(&format!("{name}.crt"), &certified.certificate);
        secure.file(&format!("{name}.key"), &certified.key);
    };
    put("certified", &secure.authority.certify("certified"));
    put("somebody", &secure.authority.certify("somebody"));
    put("stranger", &Authority::new("nobody").certify("certified"));
    let login =
        |name: &str| format!("{FULL} user=certified sslcert=@/{name}.crt sslkey=@/{name}.key");
    assert!(is_verified(secure.connect(&login("certified")).await.unwrap()));
    let without = secure.refusal(&format!("{FULL} user=certified")).await;
    assert!(without.contains("give sslcert and sslkey"), "{without}");
    let other = secure.refusal(&login("somebody")).await;
    assert!(other.contains("names the user"), "{other}");
    let stranger = secure.connect(&login("stranger")).await.unwrap_err().to_string();
    assert!(stranger.contains("sslcert") || stranger.contains("PostgreSQL"), "{stranger}");
    let mixed = format!("{FULL} user=certified sslcert=@/certified.crt sslkey=@/somebody.key");
    assert!(secure.refusal(&mixed).await.contains("does not belong"));
    let key = secure.directory.path().join("certified.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(secure.refusal(&login("certified")).await.contains("chmod 600"));
}

#[tokio::test]
async fn a_login_is_bound_to_the_servers_certificate() {
    let mut secure = Secure::start().await;
    let bound = format!("{FULL} user=scram password=secret channel_binding=require");
    assert!(is_verified(secure.connect(&bound).await.unwrap()));
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384] {
        let own = self_signed("localhost", algorithm, Validity::Now);
        secure.show(&own);
        secure.file("ca.pem", &own.certificate);
        assert!(is_verified(secure.connect(&bound).await.unwrap()));
    }
    // It is signed without a hash: then there is nothing that both sides could agree on.
    let own = self_signed("localhost", &PKCS_ED25519, Validity::Now);
    secure.show(&own);
    secure.file("ca.pem", &own.certificate);
    let unbound = format!("{FULL} user=scram password=secret");
    assert!(is_verified(secure.connect(&unbound).await.unwrap()));
    assert!(secure.refusal(&bound).await.contains("channel_binding=require needs"));
    let wrong = secure.refusal(&format!("{FULL} user=scram password=guess")).await;
    assert!(wrong.contains("password"), "{wrong}");
}

#[tokio::test]
async fn who_prefers_tls_gets_in_where_only_one_of_both_is_allowed() {
    let secure = Secure::start().await;
    let encrypted = secure.connect("sslmode=prefer user=encrypted").await.unwrap();
    assert_eq!(encrypted, Protection::Unverified { version: "TLS 1.3" });
    let plain = secure.connect("sslmode=prefer user=plain").await.unwrap();
    assert_eq!(plain, Protection::Plain);
    secure.refusal("sslmode=disable user=encrypted").await;
    secure.refusal("sslmode=require sslverify=none user=plain").await;
    secure.refusal("sslmode=prefer user=plain channel_binding=require").await;
}
