//! Bad records, bad files, bad flags.

use crate::world::{World, lines, refused};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt};
use tidegate_drill::{Spec, Tls};

#[test]
fn bad_records_are_set_aside_and_can_be_loaded_again() {
    for per_record_answers in [true, false] {
        let world = World::new(Spec { per_record_answers, ..Spec::default() });
        let mut text = lines(100);
        text += "{\"id\":100,\"bad\":true}\nno json\n{\"id\":102}\n";
        world.place.write("in.ndjson", text);
        let said = world.load(&["--group", "20", "--errors", "bad.ndjson"]);
        assert_eq!(said.code, 3, "{}", said.stderr);
        assert!(said.stderr.contains("in.ndjson, line 102:"), "{}", said.stderr);
        assert_eq!(world.stored(), (101, 0));
        let errors = std::fs::read_to_string(world.place.path("bad.ndjson")).unwrap();
        let errors: Vec<Value> =
            errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let line = |at: usize| errors[at]["tidegate_error"]["line"].as_u64();
        assert_eq!((errors.len(), line(0), line(1)), (2, Some(101), Some(102)));
        assert_eq!(errors[0]["record"]["id"], 100);
        assert!(errors[0]["tidegate_error"]["reason"].as_str().unwrap().contains("bad"));
        assert_eq!(errors[1]["tidegate_error"]["raw"], "no json");

        let corrected = std::fs::read_to_string(world.place.path("bad.ndjson")).unwrap();
        world.place.write("good.ndjson", corrected.replace("\"bad\":true", "\"good\":true"));
        let url = world.url();
        let said =
            world.place.tidegate(&["load", "good.ndjson", "--to", &url, "--allow", "127.0.0.1"]);
        assert_eq!(said.code, 3, "one is still malformed: {}", said.stderr);
        assert_eq!(world.stored(), (102, 0));

        let listed = world.place.ok(&["batch", "list"]);
        assert!(listed.contains("load in.ndjson to http://127.0.0.1:"), "{listed}");
        let retried = world.place.tidegate(&["batch", "retry", "1"]);
        let expected = "2 dead records are due again; repeat `tidegate load` of in.ndjson to";
        assert!(retried.stderr.contains(expected), "{}", retried.stderr);
        refused(&world.place.tidegate(&["batch", "replay", "1#0"]), "only loaded with --again");
        assert_eq!(world.load(&["--group", "20"]).code, 3, "tried again, and refused again");
    }
}

#[test]
fn an_errors_file_is_for_its_owner_and_keeps_the_mode_that_it_had() {
    let world = World::new(Spec::default());
    world.place.write("in.ndjson", "{\"id\":1}\nno json\n");
    world.place.write("old.ndjson", "");
    let of = |name: &str| world.place.path(name);
    fs::set_permissions(of("old.ndjson"), fs::Permissions::from_mode(0o644)).unwrap();
    for (name, mode) in [("new.ndjson", 0o600), ("old.ndjson", 0o644)] {
        assert_eq!(world.load(&["--errors", name, "--again"]).code, 3);
        assert!(fs::read_to_string(of(name)).unwrap().contains("no json"));
        assert_eq!(fs::metadata(of(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn the_errors_file_never_harms_the_input() {
    let world = World::new(Spec::default());
    let text = lines(5);
    world.place.write("in.ndjson", &text);
    for place in ["in.ndjson", "./in.ndjson"] {
        refused(&world.load(&["--errors", place]), "--errors is the input");
    }
    refused(&world.load(&["--errors", "no/such/place"]), "no/such/place");
    refused(&world.load(&["--errors", "bad.csv"]), "--errors is written as NDJSON");
    assert_eq!(std::fs::read_to_string(world.place.path("in.ndjson")).unwrap(), text);
    assert_eq!(world.stored(), (0, 0));
}

#[test]
fn a_dry_run_sends_nothing() {
    let world = World::new(Spec::default());
    world.place.write("in.ndjson", lines(10));
    let said = world.load(&["--dry-run", "--group", "5"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("10 records of ndjson, 0 malformed"), "{}", said.stdout);
    assert!(said.stdout.contains("up to 5 per request"), "{}", said.stdout);
    assert_eq!(world.stored(), (0, 0));
    assert!(!world.place.path("tidegate.db").exists());
}

/// Whatever is wrong: one line, an exit code, nothing sent.
#[test]
fn bad_input_is_refused_in_one_line() {
    let world = World::new(Spec::default());
    let url = world.url();
    world.place.write("in.ndjson", lines(10));
    world.place.write("empty.ndjson", "\n\n");
    world.place.write("broken.ndjson", "{\"id\":1}\n{\"id\":\n");
    world.place.write("what.xyz", "a b c");
    let local = ["--to", url.as_str(), "--allow", "127.0.0.1"];
    world.place.write("half.csv", "id;name\n1;a\n");
    let cases: [(&[&str], &str); 14] = [
        (&["half.csv"], "separated by `;`"),
        (&["in.ndjson", "--user", "me", "--password-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (&["empty.ndjson"], "empty.ndjson has no records"),
        (&["missing.ndjson"], "missing.ndjson"),
        (&["what.xyz"], "--format"),
        (&["broken.ndjson", "--strict"], "line 2:"),
        (&["in.ndjson", "--bearer-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (&["in.ndjson", "--bearer-file", "no-such-file"], "no-such-file"),
        (&["in.ndjson", "--header", "nonsense"], "is no header"),
        (&["in.ndjson", "--max", "0"], "--max"),
        (&["in.ndjson", "--policy", "wild"], "full, seed, fixed:N"),
        (&["in.ndjson", "--format", "xml"], "xml"),
        (&["in.ndjson", "--body", "item", "--group", "5"], "--group"),
        (&["in.ndjson", "--rate", "0"], "rate = 0"),
    ];
    for (args, expected) in cases {
        let args = [["load"].as_slice(), args, &local].concat();
        refused(&world.place.tidegate(&args), expected);
    }
    refused(&world.place.tidegate(&["load", "in.ndjson", "--to", &url]), "add it to --allow");
    refused(&world.place.tidegate(&["load", "in.ndjson", "--to", "crm"]), "no sink `crm`");
    let nobody = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    refused(&world.place.tidegate(&nobody), "127.0.0.1:1");
    assert_eq!(world.stored(), (0, 0));
}

#[test]
fn a_certificate_that_does_not_verify_is_refused() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let tls = Tls { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() };
    let world = World::new(Spec { tls: Some(tls), ..Spec::default() });
    world.place.write("in.ndjson", lines(5));
    refused(&world.load(&[]), "has a certificate that does not verify");
    assert_eq!(world.service.counters().requests, 0);
    world.place.write("ca.pem", made.cert.pem());
    assert_eq!(world.load(&["--ca-file", "ca.pem"]).code, 0);
    assert_eq!(world.stored(), (5, 0));
}
