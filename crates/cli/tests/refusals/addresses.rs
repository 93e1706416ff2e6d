//! Addresses of PostgreSQL that mean something else than they seem to.

use crate::support::Place;

#[test]
fn an_at_sign_in_a_parameter_shows_no_password_and_moves_no_host() {
    let place = Place::new();
    let store = "postgres://127.0.0.1:1/x?user=a@b.invalid&password=s3cret&sslmode=require";
    let said = place.tidegate(&["outbox", "status", "--store", store]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(!said.stderr.contains("s3cret"), "{}", said.stderr);
    assert!(said.stderr.contains("a@b.invalid@127.0.0.1:1/x"), "{}", said.stderr);
}

#[test]
fn a_server_that_is_not_verified_is_told_of_once() {
    let place = Place::new();
    place.write("in.ndjson", "{}\n");
    let store = "postgres://127.0.0.1:1/x?sslmode=require&sslverify=none";
    let load = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    for args in [["outbox", "status"].as_slice(), &["relay", "--to", "stdout"], &load] {
        let said = place.tidegate(&[args, &["--store", store]].concat());
        let told = said.stderr.matches("certificate is not verified (sslverify=none)").count();
        assert_eq!((said.code, told), (1, 1), "{args:?}: {}", said.stderr);
    }
    for empty in ["sslmode=", "sslmode=require&sslverify=", "sslrootcert="] {
        let store = format!("postgres://127.0.0.1:1/x?{empty}");
        let said = place.tidegate(&["outbox", "status", "--store", &store]);
        assert!(said.stderr.contains("is empty: is a variable unset?"), "{}", said.stderr);
    }
}
