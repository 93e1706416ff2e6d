//! The pages about sinks: every sink that they declare can be used as it stands there.

use tidegate_core::Sink;
use toml::{Table, Value};

const PAGES: [(&str, &[&str]); 4] = [
    (include_str!("../../../../docs/sinks/qdrant.md"), &["search"]),
    (include_str!("../../../../docs/sinks/http.md"), &["hooks", "bus"]),
    (include_str!("../../../../docs/sinks/file.md"), &["archive", "pipe"]),
    (include_str!("../../../../docs/sinks/kafka.md"), &["events"]),
];

#[test]
fn sinks_on_the_pages_can_be_used() {
    for (page, expected) in PAGES {
        let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let mut names = Vec::new();
        for block in blocks {
            let config: Table = block.parse().unwrap();
            for (name, declared) in config["sinks"].as_table().unwrap() {
                let mut declared = declared.as_table().unwrap().clone();
                let kind = declared.remove("kind").unwrap();
                let made = make(kind.as_str().unwrap(), Value::Table(declared));
                assert_eq!(made.unwrap(), kind.as_str().unwrap());
                names.push(name.clone());
            }
        }
        names.sort_by_key(|name| expected.iter().position(|it| it == name));
        assert_eq!(names, expected);
    }
}

/// The name of the sink that was made.
fn make(kind: &str, declared: Value) -> Result<&'static str, String> {
    use tidegate_sinks::{file::FileSink, http::Http, qdrant::Qdrant, stdout::Stdout};
    let env = |_: &str| Some("c2VjcmV0".to_owned());
    let text = |error: tidegate_sinks::ConfigError| error.to_string();
    let sink: Box<dyn Sink> = match kind {
        "qdrant" => Box::new(Qdrant::new(&declared.try_into().unwrap(), &env).map_err(text)?),
        "http" => Box::new(Http::new(&declared.try_into().unwrap(), &env).map_err(text)?),
        "file" => Box::new(FileSink::new(&declared.try_into().unwrap()).map_err(text)?),
        "stdout" => Box::new(Stdout::new(&declared.try_into().unwrap()).map_err(text)?),
        #[cfg(feature = "kafka")]
        "kafka" => {
            use tidegate_sinks::kafka::Kafka;
            Box::new(Kafka::new(&declared.try_into().unwrap(), &env).map_err(text)?)
        }
        // Its feature is off.
        #[cfg(not(feature = "kafka"))]
        "kafka" => return Ok("kafka"),
        other => return Err(format!("the page has a kind that is not known: {other}")),
    };
    Ok(sink.capabilities().name)
}
