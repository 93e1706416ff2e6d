//! The private key of a client. Nothing of it appears in any message.

use super::Failure;
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use std::{fs::Metadata, path::Path};

/// What to do with a key that only a password opens.
pub(super) const DECRYPT: &str =
    "keep the key without a password in a file of its own (`openssl pkey -in KEY -out FILE`)";

pub(super) fn read(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let refused = |problem: &str| {
        Failure::settings(format!("sslkey cannot be used ({}): {problem}", path.display()))
    };
    let metadata = std::fs::metadata(path).map_err(|error| refused(&error.to_string()))?;
    check(&metadata).map_err(refused)?;
    let bytes = std::fs::read(path).map_err(|error| refused(&error.to_string()))?;
    let is_encrypted = bytes.windows(9).any(|part| part == b"ENCRYPTED");
    if is_encrypted {
        return Err(refused(&format!("it is encrypted; {DECRYPT}")));
    }
    // What cannot be parsed may be a key all the same: no error of the parser is shown.
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|_| refused("there is no private key in it; give it in PEM"))
}

/// As libpq does: nobody else may read it.
#[cfg(unix)]
fn check(metadata: &Metadata) -> Result<(), &'static str> {
    use std::os::unix::fs::MetadataExt;
    if !metadata.is_file() {
        return Err("it is not a file");
    }
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err("it must be owned by the user who runs this, or by root");
    }
    let others = if owner == 0 { 0o037 } else { 0o077 };
    match metadata.mode() & others {
        0 => Ok(()),
        _ => Err("others can read it; its permissions must be 0600 or less, or 0640 or less if \
                  root owns it (`chmod 600 FILE`)"),
    }
}

#[cfg(not(unix))]
fn check(metadata: &Metadata) -> Result<(), &'static str> {
    if metadata.is_file() { Ok(()) } else { Err("it is not a file") }
}
