use super::*;
use proptest::prelude::*;

#[test]
fn json_is_declared_by_default_and_by_its_media_types() {
    let declares = |value: &str| Headers::from_iter([("Content-Type", value)]).declares_json();
    assert!(Headers::none().declares_json());
    assert!(declares("Application/JSON; charset=utf-8"));
    assert!(declares("application/vnd.acme.order+json"));
    assert!(!declares("text/plain"));
}

#[test]
fn names_keep_their_case_and_are_found_without_it() {
    let headers = Headers::from_iter([("X-Tenant", "eu"), ("MessageType", "MT_EVENT")]);
    assert_eq!(headers.get("x-tenant"), Some("eu"));
    assert_eq!(headers.get("MESSAGETYPE"), Some("MT_EVENT"));
    let pairs: Vec<_> = headers.iter().collect();
    assert_eq!(pairs, [("MessageType", "MT_EVENT"), ("X-Tenant", "eu")]);
    let json = serde_json::to_string(&headers).unwrap();
    assert_eq!(json, r#"{"MessageType":"MT_EVENT","X-Tenant":"eu"}"#);
    assert_eq!(serde_json::from_str::<Headers>(&json).unwrap(), headers);
}

#[test]
fn names_that_differ_only_in_case_are_one_header() {
    let headers = Headers::from_iter([("Tenant", "1"), ("a", "2"), ("TENANT", "3")]);
    assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "2"), ("TENANT", "3")]);
    let stored = r#"{"tenant":"lower","Tenant":"upper"}"#;
    let headers: Headers = serde_json::from_str(stored).unwrap();
    // A stored object is read in the order of its names, where capitals come first.
    assert_eq!(headers.iter().collect::<Vec<_>>(), [("tenant", "lower")]);
}

#[test]
fn further_headers_have_types_and_a_text_each() {
    let mut headers = Headers::from_iter([("Type", "own")]);
    let object = r#"{"tries":3.10, "type":"x","list":[1, "a"],"gone":null,"local":1,"tries":4}"#;
    headers.set_further(object, &["local"]).unwrap();
    assert_eq!(headers.get("TYPE"), Some("own"), "what was set by itself goes first");
    assert_eq!(headers.get_own("tries"), None);
    let all: Vec<_> = headers.iter().collect();
    assert_eq!(all, [("Type", "own"), ("list", "[1, \"a\"]"), ("tries", "4")]);
    let members: Vec<_> = headers.further().unwrap().collect();
    let expected = [("tries", "4"), ("type", "\"x\""), ("list", "[1, \"a\"]"), ("gone", "null")];
    assert_eq!(members, expected);
}

#[test]
fn what_is_no_object_is_refused() {
    for text in ["", "1", "[]", "null", "{", "{\"a\":}", "{} {}"] {
        assert_eq!(Headers::new().set_further(text, &[]), Err(NoObject), "{text}");
    }
}

#[test]
fn attributes_of_events_are_in_lower_case() {
    assert_eq!(attribute("Ce-Type").as_deref(), Some("type"));
    assert_eq!(attribute("ce-").as_deref(), Some(""));
    for name in ["c", "ce", "cetype", "é-x"] {
        assert_eq!(attribute(name), None);
    }
}

proptest! {
    #[test]
    fn the_last_value_of_a_name_counts(
        pairs in prop::collection::vec(("[aAbBäÄ-]{0,3}", "[a-z]{0,2}"), 0..20),
    ) {
        let headers = Headers::from_iter(pairs.clone());
        for (name, _) in &pairs {
            let of_name = |it: &&(String, String)| it.0.eq_ignore_ascii_case(name);
            let last = pairs.iter().rfind(of_name).unwrap();
            prop_assert_eq!(headers.get(name), Some(last.1.as_str()));
            prop_assert!(headers.iter().any(|it| it == (&last.0, &last.1)));
        }
        let again: BTreeMap<String, String> = headers.clone().into();
        prop_assert_eq!(Headers::from(again), headers);
    }
}
