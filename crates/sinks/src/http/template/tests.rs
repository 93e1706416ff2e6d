use super::*;
use proptest::prelude::*;
use serde_json::json;

fn fill(template: &str, payload: &str) -> Result<String, String> {
    let template = Template::parse(template, Scope::Record).unwrap();
    template.fill(&Item::record("7", payload)).map(String::from)
}

fn refused(template: &str) -> String {
    Template::parse(template, Scope::Record).unwrap_err().to_string()
}

#[test]
fn fields_fill_their_places() {
    let payload = r#"{"name":"a/b c","n":1.50,"id":"other"}"#;
    let cases = [
        ("https://h/items/{id}", "https://h/items/7"),
        ("https://h/{name}/{n}", "https://h/a%2Fb%20c/1.50"),
        ("https://H:443/x?y={name}&z={id}", "https://h/x?y=a%2Fb%20c&z=7"),
        ("https://h/v{n}.json", "https://h/v1.50.json"),
        ("https://h?{name}", "https://h/?a%2Fb%20c"),
        ("https://h/plain", "https://h/plain"),
        ("https://h/placeqplacexq/{id}", "https://h/placeqplacexq/7"),
    ];
    for (template, expected) in cases {
        assert_eq!(fill(template, payload).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn a_record_that_cannot_fill_a_place_is_at_fault() {
    let cases = [
        (r#"{}"#, "field `a` is missing"),
        (r#"{"a":null}"#, "field `a` is missing"),
        (r#"{"a":""}"#, "field `a` is empty"),
        (r#"{"a":[1]}"#, "field `a` is not a plain value"),
        (r#"{"a":".."}"#, "a field makes no segment of a path: it is `.` or `..`"),
        (r#"{"a":"."}"#, "a field makes no segment of a path: it is `.` or `..`"),
        ("[]", "the payload is no JSON object: see line 1, column 0"),
    ];
    for (payload, expected) in cases {
        assert_eq!(fill("https://h/x/{a}", payload), Err(expected.to_owned()));
    }
    assert!(fill("https://h/x/.{a}/y", r#"{"a":"."}"#).is_err());
}

#[test]
fn templates_that_mean_nothing_are_refused() {
    for template in ["https://{host}/", "https://h{id}/", "{id}://h/", "https://h:{id}/"] {
        let error = refused(template);
        assert!(error.starts_with("`url` "), "{template}: {error}");
    }
    assert!(refused("https://{host}/x").contains("the host is the same for all"));
    assert!(refused("https://h/{a").contains("%7B"));
    assert!(refused("https://h/a}").contains("%7B"));
    assert!(refused("https://h/{}").contains("name a field"));
    assert!(refused("https://h/{a}/../x").contains("disappears"));
    assert!(refused("https://h/x#{a}").contains("`#`"));
    assert!(refused("https://u:{a}@h/").contains("basic credentials"));
}

#[test]
fn messages_have_places_of_their_own() {
    let item = Item { topic: "a/b", key: Some("ü"), ..Item::record("7", r#"{"topic":"field"}"#) };
    let fill = |text: &str, item: &Item<'_>| {
        Template::parse(text, Scope::Message).unwrap().fill(item).map(String::from)
    };
    let url = "https://h/{topic}/{key}?id={id}";
    assert_eq!(fill(url, &item).unwrap(), "https://h/a%2Fb/%C3%BC?id=7");
    let record = Item::record("7", r#"{"topic":"field"}"#);
    assert_eq!(fill("https://h/{topic}", &record).unwrap_err(), "the item has no topic");
    assert_eq!(fill("https://h/{key}", &record).unwrap_err(), "the item has no key");
    assert!(fill("https://h/{topic}", &Item { topic: "..", ..item }).is_err());
    let other = Template::parse("https://h/{name}", Scope::Message).unwrap_err().to_string();
    assert!(other.contains("{topic}, {key} and {id}"), "{other}");
    // A record may have a field of that name.
    let field = Template::parse("https://h/{topic}", Scope::Record).unwrap().fill(&record);
    assert_eq!(field.unwrap().as_str(), "https://h/field");
}

/// What a value must not change.
fn shape(url: &Url) -> (String, usize, usize, bool) {
    let segments = url.path_segments().map_or(0, Iterator::count);
    (
        url[..Position::BeforePath].to_owned(),
        segments,
        url.query_pairs().count(),
        url.fragment().is_some(),
    )
}

/// Whatever means something in an address, in all combinations of a few.
fn values() -> impl Strategy<Value = String> {
    const ATOMS: [&str; 20] = [
        ".",
        "..",
        "/",
        "\\",
        "%2e",
        "%2F",
        "?",
        "#",
        "@",
        ":",
        "&",
        "=",
        ";",
        "//evil.example",
        "{id}",
        "a",
        "7",
        "ä",
        "\n",
        " ",
    ];
    let atoms = prop::collection::vec(prop::sample::select(&ATOMS[..]), 1..4);
    prop_oneof![4 => atoms.prop_map(|atoms| atoms.concat()), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_value_changes_the_host_or_the_structure_of_the_path(a in values(), b in values()) {
        let text = "https://example.com:8443/v1/{a}/x{b}/{id}?q={a}";
        let template = Template::parse(text, Scope::Record).unwrap();
        let payload = json!({ "a": a, "b": b }).to_string();
        let plain = template.fill(&Item::record("1", r#"{"a":"1","b":"1"}"#)).unwrap();
        if let Ok(url) = template.fill(&Item::record(&b, &payload)) {
            prop_assert_eq!(shape(&url), shape(&plain));
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            let decoded = percent_encoding::percent_decode_str(segments[1]).decode_utf8().unwrap();
            prop_assert_eq!(decoded, a, "the value arrives as it was");
        }
    }
}
