//! What is said about each kind of bad input.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::{Sample, all, gzip, open, show_all, stdin, zstd};
use tidegate_records::{Format, Input, Options, Records};

fn reasons(records: &Records) -> Vec<String> {
    let first = records.malformed().first.iter();
    first.map(|bad| format!("{} line {}: {}", bad.index, bad.line, bad.reason)).collect()
}

/// What opening a JSON array says.
fn array_error(text: &str) -> String {
    Sample::new("a.json", text).error()
}

#[test]
fn what_cannot_be_opened_says_why() {
    let open = |path: &str| {
        Records::open(Input::Path(path.into()), &Options::default(), &mut |_| {})
            .unwrap_err()
            .to_string()
    };
    assert_eq!(open("no/such.csv"), "cannot find no/such.csv: check the path");
    assert_eq!(open("src"), "src is a directory: name a file in it");
}

#[test]
fn a_file_without_records_is_refused() {
    for (name, text) in [
        ("a.ndjson", ""),
        ("a.ndjson", "\n \r\n"),
        ("a.json", ""),
        ("a.json", " [ ] "),
        ("a.csv", "\n"),
        ("a.csv", "id,name\n\n"),
        ("unknown", " "),
    ] {
        assert_eq!(Sample::new(name, text).error(), "FILE has no records", "{name} {text:?}");
    }
    let error = Records::open(stdin(""), &Options::default(), &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "standard input has no records");
    let options = Options { format: Some(Format::Json), ..Options::default() };
    let error = Records::open(stdin(gzip(b"")), &options, &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "standard input has no records");
}

#[test]
fn an_unknown_format_is_refused_with_the_known_ones() {
    assert_eq!(
        Sample::new("a.xml", "<a/>").error(),
        "cannot tell the format of FILE: name it (--format ndjson, json or csv), or end the file's \
         name with .ndjson, .jsonl, .json or .csv (and .gz or .zst)"
    );
}

#[test]
fn utf_16_is_refused_with_the_remedy() {
    assert_eq!(
        Sample::new("a.csv", b"\xff\xfei\0d\0\n\0").error(),
        "FILE is in UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
    );
}

#[test]
fn compressed_data_that_is_cut_off_is_no_short_file() {
    let text: String = (0..5000).map(|n| format!("{{\"n\":{}}}\n", n * 7919 % 5003)).collect();
    for (content, word) in [(gzip(text.as_bytes()), "gzip"), (zstd(text.as_bytes()), "zstd")] {
        let expected =
            format!("FILE is cut off: its {word} data has no end; copy or download it again");
        for kept in [5, 20, content.len() / 2, content.len() - 1] {
            let sample = Sample::new("a.ndjson", &content[..kept]);
            assert_eq!(sample.error(), expected, "{kept} of {}", content.len());
        }
        let second_is_cut = [content.clone(), content[..content.len() - 3].to_vec()].concat();
        assert_eq!(Sample::new("a.ndjson", second_is_cut).error(), expected);
    }
}

#[test]
fn compressed_data_that_is_damaged_is_refused() {
    let text = "{}\n".repeat(1000);
    let mut content = gzip(text.as_bytes());
    let checksum = content.len() - 8;
    content[checksum] ^= 1;
    let error = Sample::new("a.ndjson", &content).error();
    assert!(error.starts_with("FILE is damaged: its gzip data cannot be read ("), "{error}");
    let followed = [zstd(text.as_bytes()), b"garbage".to_vec()].concat();
    let error = Sample::new("a.ndjson", followed).error();
    assert!(error.starts_with("FILE is damaged: its zstd data cannot be read ("), "{error}");
}

#[test]
fn a_malformed_line_is_a_record_with_a_reason() {
    let text =
        b"{\"a\":1}\n\n{\"a\":}\n[1]\n\"x\"\n12\nnull\ntrue\n{\"a\":\"\xff\"}\n{} {}\n{\"b\":2}";
    let records = open(Format::Ndjson, text);
    assert_eq!(records.len(), 10);
    assert_eq!(records.malformed().count, 8);
    let expected = [
        "1 line 3: expected value at column 6",
        "2 line 4: it is an array, not an object",
        "3 line 5: it is a string, not an object",
        "4 line 6: it is a number, not an object",
        "5 line 7: it is null, not an object",
        "6 line 8: it is a boolean, not an object",
        "7 line 9: it is not UTF-8 at byte 7",
        "8 line 10: trailing characters at column 4",
    ];
    assert_eq!(reasons(&records), expected);
    let read = all(&records);
    let shown: Vec<String> = read
        .iter()
        .filter_map(|record| Some((record, record.content.as_ref().err()?)))
        .map(|(record, bad)| format!("{} line {}: {}", record.index, record.line, bad.reason))
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(read[7].content.as_ref().unwrap_err().raw, b"{\"a\":\"\xff\"}");
    assert_eq!(read[9].content.as_ref().unwrap().get(), "{\"b\":2}");
}

#[test]
fn only_the_first_malformed_ones_are_listed() {
    let records = open(Format::Ndjson, "x\n".repeat(100_000));
    assert_eq!(records.malformed().count, 100_000);
    assert_eq!(records.malformed().first.len(), 100);
}

#[test]
fn a_row_with_other_fields_than_the_header_is_malformed() {
    let text = "a,b\n1\n1,2\n1,2,3\n,,,,,,,,,\n\"x\n";
    assert_eq!(
        show_all(&open(Format::Csv, text)),
        [
            "0 line 2: it has 1 fields, the header has 2 <1>",
            "1 line 3: {\"a\":\"1\",\"b\":\"2\"}",
            "2 line 4: it has 3 fields, the header has 2 <1,2,3>",
            "3 line 5: it has 10 fields, the header has 2 <,,,,,,,,,>",
            "4 line 6: a quote is not closed <\"x>",
        ]
    );
    let records = open(Format::Csv, b"a,b\n\xc3,\xa9\n");
    assert_eq!(reasons(&records), ["0 line 2: it is not UTF-8 at byte 1"]);
}

#[test]
fn a_header_must_give_names() {
    let error = |text: &[u8]| Sample::new("a.csv", text).error();
    assert_eq!(
        error(b"\na,b,a\n1,2,3\n"),
        "FILE: cannot use line 2 as the header: two fields have the name `a`"
    );
    assert_eq!(error(b"\xff\n1\n"), "FILE: cannot use line 1 as the header: it is not UTF-8");
    assert_eq!(error(b"\"a\n1"), "FILE: cannot use line 1 as the header: a quote is not closed");
}

#[test]
fn a_record_that_is_too_long_is_malformed_and_passed_over() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1_000_000));
    let row = format!("\"{}\"", "x\n".repeat(500_000));
    for (format, text, next) in [
        (Format::Ndjson, format!("{{}}\n{long}\n{{\"b\":1}}\n"), 3),
        (Format::Ndjson, format!("{{}}\n{{\"b\":1}}\n{long}"), 2),
        (Format::Json, format!("[{{}}\n,{long}\n,{{\"b\":1}}]\n"), 3),
        (Format::Csv, format!("b\n2\n{row}\n1\n"), 500_004),
        (Format::Csv, format!("b\n2\n1\n{row}"), 3),
    ] {
        let options =
            Options { format: Some(format), max_record_bytes: 5000, ..Options::default() };
        let records = Records::open(stdin(text), &options, &mut |_| {}).unwrap();
        assert_eq!((records.len(), records.malformed().count), (3, 1), "{format}");
        let index = records.malformed().first[0].index as usize;
        assert_eq!(records.malformed().first[0].reason, "it is longer than 5000 bytes");
        let read = all(&records);
        let bad = read[index].content.as_ref().unwrap_err();
        assert!(bad.truncated && bad.raw.len() == 1024);
        let other = read.iter().rfind(|record| record.content.is_ok()).unwrap();
        assert_eq!(other.line, next);
    }
}

#[test]
fn the_longest_record_is_right_and_one_byte_more_is_not() {
    for (format, text) in [
        (Format::Ndjson, "{\"a\":\"12\"}\n{\"a\":\"123\"}\n{\"a\":\"12\"}"),
        (Format::Json, "[{\"a\":\"12\"},{\"a\":\"123\"},{\"a\":\"12\"}]"),
        (Format::Csv, "a,b\n12345,7890\n12345,78901\n12345,7890"),
    ] {
        let options = Options { format: Some(format), max_record_bytes: 10, ..Options::default() };
        let records = Records::open(stdin(text), &options, &mut |_| {}).unwrap();
        let right: Vec<bool> = all(&records).iter().map(|record| record.content.is_ok()).collect();
        assert_eq!(right, [true, false, true], "{format}");
    }
}

#[test]
fn elements_that_are_no_objects_are_malformed() {
    let records = open(Format::Json, "[{}, [1,\n2], 3, \"]\", {\"a\":[{}]}\n, null]");
    assert_eq!(
        reasons(&records),
        [
            "1 line 1: it is an array, not an object",
            "2 line 2: it is a number, not an object",
            "3 line 2: it is a string, not an object",
            "5 line 3: it is null, not an object",
        ]
    );
}

#[test]
fn an_array_that_breaks_off_says_where() {
    for (text, expected) in [
        ("[{},\n{\"a\":}]", "line 2: expected value at column 6 of the record"),
        ("[{},\n{\n\"a\":[1}\n,2]", "line 3: expected `,` or `]` at column 7"),
        (
            "[{},\n{\"a\":\"x},\n{}]",
            "line 2: control character (\\u0000-\\u001F) found while parsing a string at column 9 of the record",
        ),
        ("[{},\n{},\n", "line 3: expected a value"),
        ("[{},\n{\"a\":", "line 2: EOF while parsing a value at column 5 of the record"),
        ("[{},\n{}\n", "line 3: the file ends without a `]`"),
        ("[", "line 1: the file ends without a `]`"),
        ("[{},\n]", "line 2: expected a value"),
        ("[,{}]", "line 1: expected a value"),
        ("[{},,{}]", "line 1: expected a value"),
        ("[{}\n{}]", "line 2: trailing characters at column 1"),
        ("[{}}", "line 1: expected `,` or `]`"),
        ("[{}]\n\n[{}]", "line 3: there is more after its `]`"),
        ("\n7", "line 2: expected `[`; name another format if it is none"),
    ] {
        let message = format!("FILE: the array breaks off at {expected}");
        assert_eq!(array_error(text), message, "{text}");
    }
    let no_end = format!("[{{}},\n{{\"a\":\"{}", "x".repeat(17 * 1024 * 1024));
    assert_eq!(
        array_error(&no_end),
        "FILE: the array breaks off at line 2: the record that begins there has no end"
    );
}

#[test]
fn a_spool_directory_that_is_not_there_is_named() {
    let options = Options { spool_dir: Some("no/such".into()), ..Options::default() };
    let error = Records::open(stdin("{}"), &options, &mut |_| {}).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot keep a temporary copy of standard input in no/such: "),
        "{error}"
    );
}
