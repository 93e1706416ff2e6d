//! A drill uses a store of its own.

use crate::support::Place;
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
