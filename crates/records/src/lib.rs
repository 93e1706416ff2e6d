//! A large file of records as a numbered sequence.
//!
//! [`Records::open`] reads the input once: it counts and checks the records, hashes the content and
//! keeps a sparse index. After that, [`Records::read`] gives any range of records, from any thread.
//!
//! ```
//! use tidegate_records::{Format, Input, Options, Records};
//!
//! let text = "name,city\nAda,London\nEmmy,Erlangen,7\n";
//! let options = Options { format: Some(Format::Csv), ..Options::default() };
//! let records = Records::open(Input::Stdin(Box::new(text.as_bytes())), &options, &mut |_| {})?;
//! assert_eq!(records.len(), 2);
//! assert_eq!(records.malformed().first[0].reason, "it has 3 fields, the header has 2");
//!
//! let read = records.read(0..1)?;
//! let content = read[0].content.as_ref().map(|content| content.get());
//! assert_eq!(content, Ok(r#"{"name":"Ada","city":"London"}"#));
//! # Ok::<(), tidegate_records::RecordsError>(())
//! ```
//!
//! Memory is bounded whatever the file's size: an index of at most 65,536 points (1.5 MiB), a trail
//! of 256 points, a list of 100 malformed records, and one window per pass or read in flight, which
//! holds one record of at most [`Options::max_record_bytes`] plus what is read ahead (256 KiB). What
//! a read returns is its caller's to bound.
//!
//! A plain file is read where it is. Compressed files and streams cannot be read at a position: the
//! pass writes their content to a temporary file that has no name and goes away with the process.

mod compression;
mod cut;
mod error;
mod format;
mod index;
mod input;
mod intake;
mod judge;
mod options;
mod place;
mod record;
mod records;
mod scan;
mod trail;
mod window;

pub use compression::Compression;
pub use error::RecordsError;
pub use format::{Format, UnknownFormat};
pub use input::Input;
pub use options::Options;
pub use record::{Malformed, MalformedAt, MalformedList, Record};
pub use records::Records;
