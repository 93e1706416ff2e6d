//! Where a record comes from: its own line, or the line of another file of which an errors file tells.

use super::{
    errors::{About, Line},
    identity::Identity,
};
use serde_json::{Value, value::RawValue};
use tidegate_core::Snapshot;
use tidegate_records::Record;

/// A record, and what it goes by. A line of an errors file stands for the record in it.
pub(super) struct Origin {
    pub id: String,
    pub content: Result<Box<RawValue>, Flaw>,
    /// Another file, if it comes from there.
    file: Option<String>,
    line: u64,
}

/// Why a record cannot be sent.
pub(super) struct Flaw {
    pub reason: String,
    /// What stands in its place.
    raw: String,
}

impl Origin {
    /// Of a record of the file that is being loaded.
    pub fn of(record: Record, identity: &Identity) -> Self {
        let (id, line) = (identity.record(record.index), record.line);
        match record.content {
            Err(malformed) => {
                let raw = String::from_utf8_lossy(&malformed.raw).into_owned();
                let flaw = Flaw { reason: malformed.reason, raw };
                Self { id, content: Err(flaw), file: None, line }
            }
            Ok(content) => match Line::parse(content.get()) {
                Some(Ok(Line { tidegate_error, record })) => {
                    Self::earlier(tidegate_error, record, id)
                }
                Some(Err(error)) => {
                    let reason = format!("no line of an errors file: {error}");
                    let flaw = Flaw { reason, raw: content.get().to_owned() };
                    Self { id, content: Err(flaw), file: None, line }
                }
                None => Self { id, content: Ok(content), file: None, line },
            },
        }
    }

    /// Of a record that failed before. Corrected, it is another one: the service may remember what it
    /// answered to the first.
    fn earlier(about: About, record: Option<Box<RawValue>>, id: String) -> Self {
        let same = record.as_ref().is_some_and(|record| about.hash == Some(hash(record)));
        let content = record.ok_or_else(|| Flaw {
            reason: "it was malformed in the file that it comes from: correct it there".to_owned(),
            raw: about.raw.unwrap_or_default(),
        });
        let id = about.id.filter(|_| same).unwrap_or(id);
        Self { id, content, file: Some(about.file), line: about.line }
    }

    /// As a line of an errors file.
    pub fn line_of_errors(self, file: &str, reason: &str, attempts: u32) -> Line {
        let (record, raw) = match self.content {
            Ok(record) => (Some(record), None),
            Err(flaw) => (None, Some(flaw.raw)),
        };
        let about = About {
            file: self.file.unwrap_or_else(|| file.to_owned()),
            line: self.line,
            reason: reason.to_owned(),
            attempts,
            id: Some(self.id),
            hash: record.as_deref().map(hash),
            raw,
        };
        Line { tidegate_error: about, record }
    }
}

/// The same for all ways of writing the same record.
fn hash(record: &RawValue) -> String {
    let value: Value = serde_json::from_str(record.get()).unwrap_or_default();
    Snapshot::freeze(&value).hash().to_string()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_records::{Input, Options, Records};

    /// The origins of the records of a text, and what they go by in a file of their own.
    fn origins(text: &str) -> Vec<Origin> {
        let input = Input::Stdin(Box::new(std::io::Cursor::new(text.to_owned())));
        let records = Records::open(input, &Options::default(), &mut |_| {}).unwrap();
        let identity = Identity::new(&records, "place", "to", "post");
        let all = records.read(0..records.len()).unwrap();
        all.into_iter().map(|record| Origin::of(record, &identity)).collect()
    }

    fn again(text: &str, file: &str) -> String {
        let lines = origins(text).into_iter().map(|origin| {
            let line = origin.line_of_errors(file, "no", 1);
            serde_json::to_string(&line).unwrap() + "\n"
        });
        lines.collect()
    }

    #[test]
    fn a_line_of_an_errors_file_stands_for_its_record() {
        let text = "{\"n\":1}\n{\"n\":2}\nbad\n";
        let ids: Vec<String> = origins(text).into_iter().map(|origin| origin.id).collect();
        let errors = again(&again(text, "first"), "second");
        let loaded = origins(&errors);
        let contents = loaded.iter().map(|origin| origin.content.as_ref().map(|c| c.get()).ok());
        assert_eq!(contents.collect::<Vec<_>>(), [Some("{\"n\":1}"), Some("{\"n\":2}"), None]);
        for (at, origin) in loaded.iter().enumerate() {
            assert_eq!((origin.file.as_deref(), origin.line), (Some("first"), at as u64 + 1));
        }
        assert_eq!((&loaded[0].id, &loaded[1].id), (&ids[0], &ids[1]));
        assert_eq!(loaded[2].content.as_ref().unwrap_err().raw, "bad");
    }

    #[test]
    fn a_record_that_was_corrected_goes_by_another_id() {
        let first = origins("{\"n\":1}\n{\"n\":2}\n");
        let errors = again("{\"n\":1}\n{\"n\":2}\n", "first")
            .replace("\"n\":1", "\"n\" : 1")
            .replace("\"n\":2", "\"n\":3");
        let loaded = origins(&errors);
        assert_eq!(loaded[0].id, first[0].id);
        assert_ne!(loaded[1].id, first[1].id);
    }

    #[test]
    fn a_line_that_is_no_longer_one_is_not_sent() {
        let errors = again("{\"n\":1}\n", "first").replace("\"reason\":\"no\",", "");
        let loaded = origins(&errors);
        let reason = &loaded[0].content.as_ref().unwrap_err().reason;
        assert!(reason.contains("missing field `reason`"), "{reason}");
    }
}
