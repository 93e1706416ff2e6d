//! A drill uses a store of its own.

use crate::support::{Place, Said};
use std::os::unix::fs::symlink;

#[test]
fn a_file_that_exists_is_refused_however_it_is_written() {
    let place = Place::new();
    place.ok(&["publish", "orders", "{}", "--store", "sqlite:prod.db"]);
    symlink("nothing", place.path("link.db")).unwrap();
    let absolute = place.path("prod.db").display().to_string();
    let addresses = ["sqlite:prod.db", "sqlite://prod.db", "sqlite:./prod.db", "sqlite:link.db"];
    let addresses = addresses.map(str::to_owned).into_iter();
    let before = place.files();
    for store in addresses.chain([format!("sqlite:{absolute}"), format!("sqlite://{absolute}")]) {
        for kind in ["relay", "batch"] {
            let said = place.tidegate(&["drill", kind, "--seconds", "1", "--store", &store]);
            assert_eq!(said.code, 1, "{store}: {}", said.stderr);
            assert!(said.stderr.contains("a store of its own"), "{store}: {}", said.stderr);
        }
    }
    assert_eq!(place.files(), before);
}

#[test]
fn every_address_of_postgres_is_taken_as_the_store_takes_it() {
    let place = Place::new();
    for store in [
        "host=127.0.0.1 port=1 dbname=x",
        "postgres://127.0.0.1:1/x?sslmode=verify-full",
        "postgres://127.0.0.1:1/x",
    ] {
        for command in [["drill", "relay"], ["drill", "batch"], ["bench", "relay"]] {
            let Said { code, stderr, .. } =
                place.tidegate(&[&command[..], &["--store", store]].concat());
            assert_eq!(code, 1, "{store}: {stderr}");
            let expect = "no PostgreSQL answers at 127.0.0.1:1/x";
            assert!(stderr.contains(expect), "{command:?} {store}: {stderr}");
        }
    }
}
