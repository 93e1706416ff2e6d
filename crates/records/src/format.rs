//! What a file of records looks like, told by its name or by its beginning.

use std::{ffi::OsStr, fmt, path::Path, str::FromStr};

/// How to name a format: the end of messages about unknown ones.
pub(crate) const NAMING: &str = "name it (--format ndjson, json or csv), \
    or end the file's name with .ndjson, .jsonl, .json or .csv (and .gz or .zst)";

/// What a file of records looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object per line.
    Ndjson,
    /// One JSON array of objects.
    Json,
    /// A header line with field names, then one record per row.
    Csv,
}

/// A word that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no format `{0}`: use ndjson, json or csv")]
pub struct UnknownFormat(String);

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ndjson, Self::Json, Self::Csv];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }

    /// What the name of a file says, whether it is compressed or not.
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = |path: &Path| {
            path.extension()
                .and_then(OsStr::to_str)
                .map(str::to_ascii_lowercase)
                .unwrap_or_default()
        };
        let outer = extension(path);
        let inner = if matches!(outer.as_str(), "gz" | "zst") {
            extension(Path::new(path.file_stem()?))
        } else {
            outer
        };
        match inner.as_str() {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// What the first byte that is no space says.
    pub(crate) fn of_content(first: u8) -> Option<Self> {
        match first {
            b'[' => Some(Self::Json),
            b'{' => Some(Self::Ndjson),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        match word.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Ok(Self::Ndjson),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            _ => Err(UnknownFormat(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format_whether_compressed_or_not() {
        let of = |name: &str| Format::of_name(Path::new(name));
        for end in ["", ".gz", ".zst", ".GZ"] {
            assert_eq!(of(&format!("a/b.ndjson{end}")), Some(Format::Ndjson));
            assert_eq!(of(&format!("b.JSONL{end}")), Some(Format::Ndjson));
            assert_eq!(of(&format!("b.c.json{end}")), Some(Format::Json));
            assert_eq!(of(&format!("b.csv{end}")), Some(Format::Csv));
            assert_eq!(of(&format!("b.txt{end}")), None);
            assert_eq!(of(&format!("csv{end}")), None);
        }
    }

    #[test]
    fn words_are_formats_and_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "xml".parse::<Format>().unwrap_err().to_string();
        assert_eq!(error, "there is no format `xml`: use ndjson, json or csv");
    }
}
