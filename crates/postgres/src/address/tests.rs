use super::*;
use crate::tls::Verification;
use proptest::prelude::*;
use tidegate_core::Kind;

fn parsed(text: &str) -> Address {
    Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    let error = Address::parse(text).expect_err(text);
    assert_eq!(error.kind(), Kind::BadAddress, "{text}: {error}");
    let message = error.to_string();
    assert!(!message.contains('\n') && !message.contains("secret"), "{message}");
    message
}

#[test]
fn what_is_not_an_address_is_refused() {
    for text in [
        "postgre://localhost/x",
        "postgres:///x",
        "postgres://host:port/x",
        "postgres://",
        "postgres://u:pass@word@host/x",
        "host",
        "dbname=x",
        "host='x",
        "host=x dbname",
        "postgres://u:secret@host/x?nonsense=1",
        "host=x password=secret nonsense=1",
        "host=a,b port=1,2,3",
        "host=a,b hostaddr=127.0.0.1",
        "host=a tcp_user_timeout=soon",
    ] {
        refused(text);
    }
}

#[test]
fn messages_name_the_place_without_its_password() {
    for (text, place) in [
        ("postgres://anna:secret@db.example:6543/runs", "anna@db.example:6543/runs"),
        ("host=db.example user=anna password='se cret' dbname=runs", "anna@db.example:5432/runs"),
        ("postgres://anna@a,b:1/x", "anna@a:5432,b:1/x"),
        ("host=/run/pg user=anna", "anna@/run/pg:5432"),
        ("hostaddr=10.0.0.1 dbname=x", "10.0.0.1:5432/x"),
    ] {
        assert_eq!(parsed(text).place, place);
    }
}

#[test]
fn modes_are_those_of_libpq_but_require_verifies() {
    let seen = |text: &str| {
        let tls = parsed(text).tls;
        (tls.mode, tls.verification)
    };
    for form in ["postgres://h/d?", "host=h "] {
        let with = |rest: &str| {
            let separator = if form.contains('?') { "&" } else { " " };
            seen(&format!("{form}{}", rest.replace(' ', separator)))
        };
        assert_eq!(with("user=u"), (Mode::Prefer, Verification::None));
        assert_eq!(with("sslmode=disable"), (Mode::Disable, Verification::None));
        assert_eq!(with("sslmode=prefer"), (Mode::Prefer, Verification::None));
        assert_eq!(with("sslmode=require"), (Mode::Require, Verification::Name));
        assert_eq!(with("sslmode=require sslverify=none"), (Mode::Require, Verification::None));
        assert_eq!(with("sslmode=verify-full"), (Mode::VerifyFull, Verification::Name));
        let ca = "sslmode=verify-ca sslrootcert=/ca.pem";
        assert_eq!(with(ca), (Mode::VerifyCa, Verification::Authority));
        assert_eq!(with("sslrootcert=/ca.pem"), (Mode::VerifyFull, Verification::Name));
        assert_eq!(with("sslrootcert=system"), (Mode::VerifyFull, Verification::Name));
    }
}

#[test]
fn contradictions_are_refused_with_advice() {
    for (rest, advice) in [
        ("sslmode=allow", "use prefer"),
        ("sslmode=on", "verify-full"),
        ("sslmode=verify-ca", "sslrootcert=FILE"),
        ("sslmode=verify-ca sslrootcert=system", "verify-full"),
        ("sslmode=prefer sslrootcert=/ca.pem", "use sslmode=verify-full"),
        ("sslmode=require sslverify=none sslrootcert=/ca.pem", "use sslmode=verify-full"),
        ("sslmode=verify-full sslverify=none", "sslmode=require only"),
        ("sslmode=require sslverify=maybe", "can only be none"),
        ("sslmode=", "sslmode is empty"),
        ("sslrootcert=''", "sslrootcert is empty"),
        ("sslmode=require sslverify=", "sslverify is empty"),
        ("sslmode=disable sslcert=/c sslkey=/k", "no effect"),
        ("sslcert=/c.pem", "sslkey"),
        ("sslkey=/c.key", "sslcert"),
        ("sslcert=/c sslkey=/k sslpassword=secret", "openssl pkey"),
    ] {
        let message = refused(&format!("host=h {rest}"));
        assert!(message.contains(advice), "{rest}: {message}");
    }
}

#[test]
fn connections_are_kept_alive_unless_the_address_says_how() {
    let config = |text: &str| parsed(text).servers.remove(0).config;
    let default = config("postgres://h/d");
    assert_eq!(default.get_tcp_user_timeout(), Some(&TCP_USER_TIMEOUT));
    assert_eq!(default.get_keepalives_idle(), KEEPALIVE_IDLE);
    assert_eq!(default.get_keepalives_interval(), Some(KEEPALIVE_INTERVAL));
    assert_eq!(default.get_keepalives_retries(), Some(KEEPALIVE_RETRIES));
    let own = config(
        "postgres://h/d?keepalives_idle=7200&keepalives_interval=9&keepalives_count=2&tcp_user_timeout=1500",
    );
    assert_eq!(own.get_tcp_user_timeout(), Some(&Duration::from_millis(1_500)), "as libpq: ms");
    assert_eq!(own.get_keepalives_idle(), Duration::from_secs(7_200));
    assert_eq!(own.get_keepalives_interval(), Some(Duration::from_secs(9)));
    assert_eq!(own.get_keepalives_retries(), Some(2));
    assert!(!config("host=h keepalives=0").get_keepalives());
    assert_eq!(config("host=h tcp_user_timeout=0").get_tcp_user_timeout(), None);
}

#[test]
fn every_server_stands_for_itself() {
    let address =
        parsed("postgres://u:p@a:1,b:2/d?sslmode=verify-full&target_session_attrs=read-write");
    let servers: Vec<_> =
        address.servers.iter().map(|it| (it.config.get_hosts(), it.config.get_ports())).collect();
    let host = |name: &str| vec![Host::Tcp(name.to_owned())];
    assert_eq!(servers, [(&host("a")[..], &[1][..]), (&host("b")[..], &[2][..])]);
    for server in &address.servers {
        assert_eq!(server.config.get_user(), Some("u"));
        assert_eq!(server.config.get_password(), Some(&b"p"[..]));
        assert_eq!(server.config.get_ssl_mode(), SslMode::Require);
    }
    let mixed = parsed("host=/run/pg,h sslmode=verify-full");
    let modes: Vec<_> =
        mixed.servers.iter().map(|it| (it.is_local, it.config.get_ssl_mode())).collect();
    assert_eq!(modes, [(true, SslMode::Disable), (false, SslMode::Require)]);
    let numeric = parsed("hostaddr=10.0.0.1");
    assert_eq!(numeric.servers[0].config.get_hosts(), host("10.0.0.1"));
}

#[test]
fn settings_are_read_as_libpq_reads_them() {
    let text = r"host = h  password = 'it''s'  user='a b' dbname=a\ b";
    refused(text);
    let text = r"host = h  password = 'it\'s \\ x'  user='a b' dbname=a\ b application_name=''";
    let config = parsed(text).servers.remove(0).config;
    assert_eq!(config.get_password(), Some(&br"it's \ x"[..]));
    assert_eq!((config.get_user(), config.get_dbname()), (Some("a b"), Some("a b")));
}

#[test]
fn passwords_are_not_shown() {
    for (text, shown) in [
        ("postgres://tide:secret@db/tide", "postgres://tide@db/tide"),
        ("postgres://tide:a@b:secret@db/tide", "postgres://tide@db/tide"),
        (
            "postgres://db/tide?password=secret&sslmode=require",
            "postgres://db/tide?sslmode=require",
        ),
        ("postgres://db/tide?pass%77ord=secret", "postgres://db/tide"),
        ("host=db password=secret user=tide", "host=db user=tide"),
        ("host=db password='sec ret' application_name='a b'", "host=db application_name='a b'"),
        ("password='secret", "postgres://…"),
        ("host=db password=a secret=b", "postgres://…"),
        ("postgres://tide:a/secret@db/tide", "postgres://…"),
        ("postgres://tide:a?secret@db/tide", "postgres://…"),
        ("postgres://db:1/x?user=a@b&password=secret", "postgres://db:1/x?user=a@b"),
        ("postgres://[::1]:1/x", "postgres://[::1]:1/x"),
    ] {
        assert_eq!(without_password(text), shown);
    }
}

#[test]
fn addresses_are_told_from_other_texts() {
    let is = ["postgres://h/d", "postgresql://h", "host=h", "dbname = x host=h"];
    let not = ["sqlite:a=b.db", "memory:", "a b=c", "Host=h", "=x", "tidegate.db"];
    assert!(is.into_iter().all(is_address));
    assert!(!not.into_iter().any(is_address));
}

#[test]
fn an_at_sign_in_a_parameter_does_not_move_the_host() {
    let address = parsed("postgres://127.0.0.1:9/x?user=a@b&password=s3cret@c&sslmode=require");
    assert_eq!(address.place, "a@b@127.0.0.1:9/x");
    let config = &address.servers[0].config;
    assert_eq!(config.get_hosts(), [Host::Tcp("127.0.0.1".to_owned())]);
    assert_eq!(config.get_password(), Some(&b"s3cret@c"[..]));
    assert_eq!(role("postgres://h/x?user=a@b").as_deref(), Some("a@b"));
    assert!(refused("postgres://h/x@y").contains("%40"));
    assert!(refused("host=h nonsense=1").contains("`nonsense`"));
}

#[test]
fn another_database_of_the_same_server_has_an_address() {
    for (text, expected) in [
        ("postgres://u:p@h:1/x?sslmode=require", "postgres://u:p@h:1/new?sslmode=require"),
        ("postgres://h?dbname=x&user=a@b", "postgres://h/new?user=a@b"),
        ("host=h dbname=x password='a b'", "host='h' password='a b' dbname='new'"),
    ] {
        let address = with_database(text, "new").unwrap();
        assert_eq!(address, expected);
        assert_eq!(parsed(&address).servers[0].config.get_dbname(), Some("new"));
    }
    assert!(with_database("postgres://u:a/b@h/x", "new").is_err());
}

#[test]
fn files_that_an_address_names_are_known() {
    let names = "sslmode=verify-full sslrootcert=/ca.pem sslcert=c.pem sslkey='my key'";
    let expected: Vec<PathBuf> = ["c.pem", "my key", "/ca.pem"].map(PathBuf::from).into();
    assert_eq!(files(&format!("host=h {names}")), expected);
    assert_eq!(files("postgres://h/x?sslcert=c.pem&sslkey=my%20key&sslrootcert=/ca.pem"), expected);
    assert!(files("postgres://h/x?sslrootcert=system").is_empty() && files("sqlite:a").is_empty());
}

/// In every piece of a drawn password.
const MARK: &str = "S3CRET";

/// Passwords with characters that end something somewhere.
fn password() -> impl Strategy<Value = String> {
    let special = prop::sample::select("@/?:&=#%,; '\\+[]".chars().collect::<Vec<_>>());
    let pieces = prop::collection::vec(special, 0..5);
    pieces.prop_map(|specials| {
        specials.into_iter().fold(MARK.to_owned(), |all, it| format!("{all}{it}{MARK}"))
    })
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

proptest! {
    /// Whether or not it is written as it should be.
    #[test]
    fn no_password_is_shown_anywhere(
        password in password(),
        user in "[a-z@/:?&=]{0,6}",
        host in "[a-z]{1,5}(:[0-9]{1,4})?|\\[::1\\]",
        path in "(/[a-z@%]{0,4})?",
        more in "(&(application_name|sslmode|nonsense)=[a-z@/:]{0,5}){0,2}",
    ) {
        let (user_safe, safe) = (encoded(&user), encoded(&password));
        let quoted = password.replace('\\', "\\\\").replace('\'', "\\'");
        let settings = more.replace('&', " ");
        for text in [
            format!("postgres://{user_safe}:{safe}@{host}{path}?x=1{more}").replace("x=1&", ""),
            format!("postgres://{user}:{password}@{host}{path}"),
            format!("postgres://{host}{path}?user={user}&password={safe}{more}"),
            format!("postgres://{host}{path}?user={user_safe}&password={password}{more}"),
            format!("postgres://{host}{path}?password={password}&user={user}"),
            format!("host={host} password='{quoted}' user='{user_safe}'{settings}"),
            format!("host={host} password='{password}' user={user}{settings}"),
            format!("password={password} host={host}{settings}"),
        ] {
            let parsed = Address::parse(&text).map(|address| (address.place.clone(), address));
            let said = match parsed {
                Ok((place, address)) => format!("{place} {address:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            let role = role(&text).unwrap_or_default();
            for shown in [said, without_password(&text), role] {
                prop_assert!(!shown.contains(MARK), "{} shows {}", text, shown);
            }
        }
    }
}
