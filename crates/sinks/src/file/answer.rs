//! What the system says → what became of the items.

use std::{
    io::{Error, ErrorKind},
    path::Path,
};
use tidegate_core::sink::Outcome;

/// What became of the items if a file cannot be written. No message quotes an item.
pub fn judge(path: &Path, error: &Error) -> Outcome {
    let problem = |what: &str| format!("{} {what}: {error}", path.display());
    match error.kind() {
        ErrorKind::NotFound => Outcome::Broken(problem("cannot be made: create its directory")),
        ErrorKind::PermissionDenied => Outcome::Broken(problem("may not be written")),
        // The last is said by a device that cannot bring anything to a disk, such as /dev/null.
        ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::NotSeekable
        | ErrorKind::InvalidInput => Outcome::Broken(problem("is no file: check `path`")),
        // The topic is part of it.
        ErrorKind::InvalidFilename => Outcome::Refused("the file's name is too long".to_owned()),
        // A full disk, a quota, a device that fails: it may pass, and no item is at fault.
        _ => Outcome::Unavailable(problem("cannot be written")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_fault_of_the_items() {
        let of = |kind: ErrorKind| judge(Path::new("/out/a"), &kind.into());
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::Other] {
            assert!(matches!(of(kind), Outcome::Unavailable(_)), "{kind}");
        }
        let Outcome::Broken(problem) = of(ErrorKind::NotFound) else { panic!() };
        assert!(problem.starts_with("/out/a cannot be made: create its directory"), "{problem}");
        assert!(matches!(of(ErrorKind::PermissionDenied), Outcome::Broken(_)));
        assert!(matches!(of(ErrorKind::InvalidInput), Outcome::Broken(_)));
        assert!(matches!(of(ErrorKind::InvalidFilename), Outcome::Refused(_)));
    }
}
