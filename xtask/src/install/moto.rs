//! moto, which plays SQS and SNS: PyPI has it.

use super::{Missing, python};
use std::path::PathBuf;

/// What is downloaded: always the same.
const PACKAGE: &str = "moto[server]==5.2.1";

/// What runs the server.
const MODULE: &str = "moto.server";

/// A Python with moto in the build directory; it is downloaded once.
pub fn find_or_download() -> Result<PathBuf, Missing> {
    python::with_package(PACKAGE, MODULE).map_err(|error| Missing {
        program: PACKAGE.to_owned(),
        package: "python3-pip",
        looked: format!("the build directory, and on PyPI: {error:#}"),
    })
}
