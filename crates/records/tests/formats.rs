//! What is read from each format, compressed or not, and how each is recognized.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::sync::{Arc, Mutex};
use support::{Sample, all, gzip, open, show_all, stdin, zstd};
use tidegate_records::{Format, Input, Options, Records};

const NDJSON: &str = "{\"id\":\"1\",\"note\":\"a\"}\n{\"id\":\"2\",\"note\":\"\"}";
const JSON: &str = "[{\"id\":\"1\",\"note\":\"a\"},\n{\"id\":\"2\",\"note\":\"\"}]\n";
const CSV: &str = "id,note\r\n1,a\r\n2,\r\n";

#[test]
fn every_format_is_the_same_in_every_wrapping() {
    for (format, text) in [(Format::Ndjson, NDJSON), (Format::Json, JSON), (Format::Csv, CSV)] {
        let bytes = text.as_bytes();
        let two_members = [gzip(&bytes[..9]), gzip(&bytes[9..])].concat();
        let two_frames = [zstd(&bytes[..9]), zstd(&bytes[9..])].concat();
        let wrappings = [
            ("", bytes.to_vec()),
            (".gz", two_members),
            (".zst", two_frames),
            (".gz", gzip(bytes)),
        ];
        for (end, content) in wrappings {
            let sample = Sample::new(&format!("a.{format}{end}"), &content);
            let piped = Options { format: Some(format), ..Options::default() };
            for records in [
                sample.open().unwrap(),
                Records::open(stdin(content), &piped, &mut |_| {}).unwrap(),
            ] {
                let first_line = if format == Format::Csv { 2 } else { 1 };
                let expected = [
                    format!("0 line {first_line}: {{\"id\":\"1\",\"note\":\"a\"}}"),
                    format!("1 line {}: {{\"id\":\"2\",\"note\":\"\"}}", first_line + 1),
                ];
                assert_eq!(show_all(&records), expected, "{format}{end}");
                assert_eq!(records.format(), format);
                assert_eq!(records.bytes(), text.len() as u64);
                assert_eq!(records.hash(), blake3::hash(bytes));
                assert_eq!(records.malformed().count, 0);
            }
        }
    }
}

#[test]
fn compression_is_told_by_content_and_not_by_name() {
    assert_eq!(Sample::new("a.ndjson", gzip(NDJSON.as_bytes())).open().unwrap().len(), 2);
    assert_eq!(Sample::new("a.ndjson.gz", NDJSON).open().unwrap().len(), 2);
    assert_eq!(Sample::new("a.json.gz", zstd(JSON.as_bytes())).open().unwrap().len(), 2);
}

#[test]
fn frames_to_skip_are_skipped() {
    let skipped = [b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc".to_vec(), zstd(NDJSON.as_bytes())];
    assert_eq!(Sample::new("a.ndjson", skipped.concat()).open().unwrap().len(), 2);
}

#[test]
fn without_a_name_the_beginning_tells_the_format() {
    let format =
        |text: &str| Records::open(stdin(text), &Options::default(), &mut |_| {}).unwrap().format();
    assert_eq!(format(NDJSON), Format::Ndjson);
    assert_eq!(format("\n  [ {} ]"), Format::Json);
    assert_eq!(format("\u{feff}\r\n{}"), Format::Ndjson);
    assert_eq!(Sample::new("records", JSON).open().unwrap().format(), Format::Json);
    assert_eq!(Sample::new("a.json", NDJSON).open().unwrap().format(), Format::Ndjson);
}

#[test]
fn a_format_that_is_named_beats_all_others() {
    let options = Options { format: Some(Format::Ndjson), ..Options::default() };
    let records = Sample::new("a.csv", NDJSON).open_with(&options).unwrap();
    assert_eq!((records.format(), records.len()), (Format::Ndjson, 2));
}

#[test]
fn a_byte_order_mark_and_blank_lines_are_no_records() {
    let records = open(Format::Ndjson, "\u{feff}\r\n{\"a\":1}\r\n \t\n\n{\"a\":2}\n\n");
    assert_eq!(show_all(&records), ["0 line 2: {\"a\":1}", "1 line 5: {\"a\":2}"]);
    let records = open(Format::Csv, "\u{feff}\n\nid\n\n1\r\n\r\n2\n\n");
    assert_eq!(show_all(&records), ["0 line 5: {\"id\":\"1\"}", "1 line 7: {\"id\":\"2\"}"]);
    let records = open(Format::Json, "\u{feff}\n[\n\n{\"a\":1}\n]\n");
    assert_eq!(show_all(&records), ["0 line 4: {\"a\":1}"]);
}

#[test]
fn an_element_of_many_lines_becomes_one() {
    let text =
        "[\n  {\n    \"a\": \"x\\n  y\",\r\n    \"b\": [\n      1,\n 2\n    ]\n  },\n  {}\n]";
    let records = open(Format::Json, text);
    assert_eq!(show_all(&records), ["0 line 2: {\"a\": \"x\\n  y\",\"b\": [1,2]}", "1 line 9: {}"]);
}

#[test]
fn quotes_in_rows_hold_line_ends_commas_and_quotes() {
    let text = "id,\"no\nte\"\n1,\"a,\"\"b\"\"\r\nc\"\n2,5\" pipe\n\"\",é";
    assert_eq!(
        show_all(&open(Format::Csv, text)),
        [
            r#"0 line 3: {"id":"1","no\nte":"a,\"b\"\r\nc"}"#,
            r#"1 line 5: {"id":"2","no\nte":"5\" pipe"}"#,
            r#"2 line 6: {"id":"","no\nte":"é"}"#,
        ]
    );
}

#[test]
fn nesting_has_no_limit() {
    let depth = 2_000_000;
    let value = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    for (format, text) in [(Format::Ndjson, value.clone()), (Format::Json, format!("[{value}]"))] {
        let records = open(format, text);
        assert_eq!(all(&records)[0].content.as_ref().unwrap().get(), value);
    }
    let records = open(Format::Ndjson, "{\"a\":".repeat(depth));
    assert_eq!(records.malformed().count, 1);
}

#[test]
fn progress_counts_the_bytes_of_the_input_as_it_is() {
    let text = NDJSON.to_owned() + &"\n{\"id\":\"3\"}".repeat(100_000);
    for content in [text.clone().into_bytes(), gzip(text.as_bytes())] {
        let sample = Sample::new("a.ndjson", &content);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut note = |bytes| seen.lock().unwrap().push(bytes);
        Records::open(Input::Path(sample.path.clone()), &Options::default(), &mut note).unwrap();
        let seen = seen.lock().unwrap();
        assert!(seen.len() > 3 && seen.is_sorted(), "{seen:?}");
        assert_eq!(seen.last(), Some(&(content.len() as u64)));
    }
}
