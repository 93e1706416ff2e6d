use super::*;
use proptest::prelude::*;
use std::os::unix::fs::symlink;

/// A directory with a store, or only the place for one.
struct World {
    directory: tempfile::TempDir,
    protected: Protected,
}

const STORE: &str = "store.db";
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

impl World {
    fn new(exists: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        for made in ["sub", "sub/deep"] {
            fs::create_dir(here.join(made)).unwrap();
        }
        symlink(here, here.join("sub/up")).unwrap();
        let mut protected = Protected::default();
        for end in FILES {
            let path = here.join(format!("{STORE}{end}"));
            if exists {
                fs::write(&path, "content").unwrap();
            }
            protected.add(path, "the store");
        }
        Self { directory, protected }
    }

    /// A name in a directory, after some detours that lead back to it.
    fn spelled(&self, detours: &[&str], name: &str) -> PathBuf {
        let start = self.directory.path().to_owned();
        detours.iter().fold(start, |path, detour| path.join(detour)).join(name)
    }
}

fn detours() -> impl Strategy<Value = Vec<&'static str>> {
    let detour = prop::sample::select(vec![".", "sub/..", "sub/up", "sub/deep/../..", "sub//../"]);
    prop::collection::vec(detour, 0..4)
}

proptest! {
    #[test]
    fn every_spelling_of_a_protected_file_is_found(
        exists: bool,
        detours in detours(),
        end in prop::sample::select(FILES.to_vec()),
        links in 0usize..4,
        hard: bool,
    ) {
        let world = World::new(exists);
        let mut path = world.spelled(&detours, &format!("{STORE}{end}"));
        for link in 0..links {
            let next = world.directory.path().join(format!("sub/link{link}"));
            match hard && exists {
                true => fs::hard_link(&path, &next).unwrap(),
                false => symlink(&path, &next).unwrap(),
            }
            path = next;
        }
        prop_assert_eq!(world.protected.find(&path), Some("the store"));
        if exists {
            let open = fs::File::open(&path).unwrap().metadata().unwrap();
            prop_assert_eq!(world.protected.find_open(&open), Some("the store"));
        }
    }

    #[test]
    fn no_other_file_is_found(exists: bool, detours in detours(), name in "[a-r]{1,8}", made: bool) {
        let world = World::new(exists);
        let path = world.spelled(&detours, &name);
        if made {
            fs::write(&path, "content").unwrap();
        }
        prop_assert_eq!(world.protected.find(&path), None);
    }
}

#[test]
fn a_name_in_another_case_is_found_before_there_is_a_file() {
    let world = World::new(false);
    assert_eq!(world.protected.find(&world.spelled(&[], "STORE.db-WAL")), Some("the store"));
    let world = World::new(true);
    fs::write(world.spelled(&[], "STORE.DB"), "another").unwrap();
    assert_eq!(world.protected.find(&world.spelled(&[], "STORE.DB")), None);
}

#[test]
fn a_ring_of_links_and_a_device_are_nothing_that_is_protected() {
    let world = World::new(true);
    let (one, other) = (world.spelled(&[], "one"), world.spelled(&[], "other"));
    symlink(&one, &other).unwrap();
    symlink(&other, &one).unwrap();
    assert_eq!(world.protected.find(&one), None);
    let mut protected = Protected::default();
    protected.add("/dev/null", "the input");
    let open = fs::metadata("/dev/null").unwrap();
    assert_eq!(protected.find_open(&open), None);
}
