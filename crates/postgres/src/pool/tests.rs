use super::*;
use tidegate_core::Kind;

#[test]
fn what_is_no_postgres_url_is_a_bad_address() {
    for url in [
        "postgre://localhost/x",
        "postgres:///x",
        "postgres://host:port/x",
        "postgres://",
        "postgres://u:pass@word@host/x",
    ] {
        let error = parse(url).expect_err(url);
        assert_eq!(error.kind(), Kind::BadAddress, "{url}: {error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn messages_name_the_place_without_its_password() {
    let config = parse("postgres://anna:secret@db.example:6543/runs").unwrap();
    assert_eq!(place(&config), "anna@db.example:6543/runs");
}

#[test]
fn pauses_stay_in_the_upper_half() {
    let pause = jitter(CONFLICT_PAUSE);
    assert!(pause >= CONFLICT_PAUSE / 2 && pause <= CONFLICT_PAUSE);
}
