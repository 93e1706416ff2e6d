//! Any range, in any order, from any thread, gives the same records as reading from the beginning.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use proptest::{collection::vec, prelude::*};
use std::{
    fs::{self, File},
    io::Write,
    ops::Range,
    time::{Duration, SystemTime},
};
use support::{Sample, all, gzip, open, show, show_all};
use tidegate_records::{Format, Options, Records};

/// One element of a generated file.
#[derive(Clone, Debug)]
enum Part {
    Record(String, String),
    Malformed,
    TooLong,
    Blank,
}

const MAX_RECORD_BYTES: usize = 4000;

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let text = "[a-z ,\"\\\\\n\r{}\\[\\]é]{0,30}";
    let part = prop_oneof![
        20 => (text, text).prop_map(|(a, b)| Part::Record(a, b)),
        1 => Just(Part::Malformed),
        1 => Just(Part::TooLong),
        3 => Just(Part::Blank),
    ];
    vec(part, 0..300)
}

fn object(a: &str, b: &str) -> String {
    serde_json::json!({ "a": a, "b": b }).to_string()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn ndjson(parts: &[Part], end: &str) -> String {
    let line = |part: &Part| match part {
        Part::Record(a, b) => object(a, b) + end,
        Part::Malformed => format!("{{\"a\":{end}"),
        Part::TooLong => object(&"x".repeat(5000), "") + end,
        Part::Blank => format!(" {end}"),
    };
    parts.iter().map(line).collect()
}

fn json(parts: &[Part], end: &str) -> String {
    let element = |part: &Part| match part {
        Part::Record(a, b) => object(a, b).replacen(':', &format!(":{end} "), 1),
        Part::Malformed => "[7]".to_owned(),
        Part::TooLong => object(&"x".repeat(5000), ""),
        Part::Blank => format!("{end}{{}}{end}"),
    };
    let elements: Vec<String> = parts.iter().map(element).collect();
    format!("[{end}{}{end}]", elements.join(&format!("{end},")))
}

fn csv(parts: &[Part], end: &str) -> String {
    let row = |part: &Part| match part {
        Part::Record(a, b) => format!("{},{}{end}", quoted(a), quoted(b)),
        Part::Malformed => format!("1,2,3{end}"),
        Part::TooLong => format!("{},{end}", quoted(&"x\n".repeat(2500))),
        Part::Blank => end.to_owned(),
    };
    let rows: String = parts.iter().map(row).collect();
    format!("a,b{end}{rows}")
}

/// What must come out: the objects, and `None` for what is malformed.
fn expected(parts: &[Part], format: Format) -> Vec<Option<String>> {
    let record = |part: &Part| match part {
        Part::Record(a, b) => Some(Some(object(a, b))),
        Part::Malformed | Part::TooLong => Some(None),
        Part::Blank => (format == Format::Json).then(|| Some("{}".to_owned())),
    };
    parts.iter().filter_map(record).collect()
}

fn compact(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text).unwrap().to_string()
}

fn check(format: Format, text: &str, parts: &[Part], ranges: &[(u64, u64)]) {
    let sample = Sample::new("a", text);
    let options =
        Options { format: Some(format), max_record_bytes: MAX_RECORD_BYTES, ..Options::default() };
    let expected = expected(parts, format);
    if expected.is_empty() {
        let error = sample.open_with(&options).unwrap_err().to_string();
        assert!(error.ends_with("has no records"), "{error}");
        return;
    }
    let records = sample.open_with(&options).unwrap();
    let read = all(&records);
    let contents: Vec<Option<String>> =
        read.iter().map(|record| record.content.as_ref().ok().map(|c| compact(c.get()))).collect();
    assert_eq!(contents, expected);
    let malformed = expected.iter().filter(|content| content.is_none()).count();
    assert_eq!(records.malformed().count, malformed as u64);
    let sequential: Vec<String> = read.iter().map(show).collect();
    for &(lo, length) in ranges {
        let lo = lo % records.len();
        let hi = (lo + length).min(records.len());
        let shown: Vec<String> = records.read(lo..hi).unwrap().iter().map(show).collect();
        assert_eq!(shown, sequential[lo as usize..hi as usize]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_access_is_sequential_access(
        parts in parts(),
        ranges in vec((any::<u64>(), 1u64..30), 0..20),
        crlf in any::<bool>(),
        last_end in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        for (format, mut text) in [
            (Format::Ndjson, ndjson(&parts, end)),
            (Format::Json, json(&parts, end)),
            (Format::Csv, csv(&parts, end)),
        ] {
            if !last_end {
                text.truncate(text.trim_end().len());
            }
            check(format, &text, &parts, &ranges);
        }
    }
}

#[test]
fn a_hundred_thousand_records_are_found_from_anywhere() {
    let count = 200_000u64;
    let ndjson: String = (0..count).map(|n| format!("{{\"n\":\"{n}\"}}\n\n")).collect();
    let elements: Vec<String> = (0..count).map(|n| format!("{{\n\"n\":\"{n}\"}}")).collect();
    let json = format!("[{}]", elements.join(","));
    let csv: String = (0..count).map(|n| format!("\n\"{n}\"")).collect();
    let samples =
        [(Format::Ndjson, ndjson), (Format::Json, json), (Format::Csv, format!("n{csv}"))];
    for (format, text) in samples {
        let records = open(format, text);
        assert_eq!(records.len(), count);
        for step in 0..500 {
            let index = step * 7_919_993 % count;
            let read = records.read(index..index + 1).unwrap();
            let line = match format {
                Format::Ndjson => 2 * index + 1,
                Format::Json => index + 1,
                Format::Csv => index + 2,
            };
            assert_eq!(show(&read[0]), format!("{index} line {line}: {{\"n\":\"{index}\"}}"));
        }
    }
}

#[test]
fn threads_read_at_the_same_time() {
    let text: String = (0..50_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let records = open(Format::Ndjson, gzip(text.as_bytes()));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let records = &records;
            scope.spawn(move || {
                for lo in (thread * 6_000..thread * 6_000 + 6_000).step_by(10) {
                    for record in records.read(lo..lo + 10).unwrap() {
                        let expected = format!("{{\"n\":{}}}", record.index);
                        assert_eq!(record.content.unwrap().get(), expected);
                    }
                }
            });
        }
    });
}

#[test]
fn a_range_beyond_the_end_is_refused_and_an_empty_one_is_empty() {
    let records = open(Format::Ndjson, "{}\n{}\n");
    assert!(records.read(1..1).unwrap().is_empty());
    let error = records.read(1..3).unwrap_err().to_string();
    assert_eq!(error, "standard input has 2 records: cannot read 1 to 3");
}

fn changed(records: &Records, range: Range<u64>) -> bool {
    let error = records.read(range).unwrap_err().to_string();
    error.ends_with(" changed while it was being loaded: load it again, or a copy of it")
}

#[test]
fn a_file_that_grows_or_is_written_to_is_noticed() {
    let grown = Sample::new("a.ndjson", "{}\n{}\n");
    let records = grown.open().unwrap();
    let mut file = File::options().append(true).open(&grown.path).unwrap();
    file.write_all(b"{}\n").unwrap();
    assert!(changed(&records, 0..1));

    let rewritten = Sample::new("a.ndjson", "{}\n{}\n");
    let records = rewritten.open().unwrap();
    let file = File::options().write(true).open(&rewritten.path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    assert!(changed(&records, 0..1));

    let emptied = Sample::new("a.ndjson", "{}\n{}\n");
    let records = emptied.open().unwrap();
    File::create(&emptied.path).unwrap();
    assert!(changed(&records, 0..1));
}

#[test]
fn a_file_that_is_replaced_stays_what_it_was() {
    let sample = Sample::new("a.ndjson", "{\"a\":1}\n");
    let records = sample.open().unwrap();
    fs::remove_file(&sample.path).unwrap();
    fs::write(&sample.path, "{\"b\":2}\n").unwrap();
    assert_eq!(show_all(&records), ["0 line 1: {\"a\":1}"]);
}
