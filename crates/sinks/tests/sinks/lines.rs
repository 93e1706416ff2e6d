//! Lines in files and on standard output.

use crate::support::{deliver, done};
use serde_json::{Value, json};
use tidegate_core::{
    Headers, Sink,
    sink::{Delivery, Item, Outcome},
};

#[cfg(feature = "file")]
mod file {
    use super::*;
    use std::{fs, path::Path};
    use tidegate_sinks::{Protected, file::FileSink};

    fn sink(path: &Path, rest: &str) -> FileSink {
        let config = format!("path = '{}'\n{rest}", path.display());
        FileSink::new(&toml::from_str(&config).unwrap()).unwrap()
    }

    fn read(path: &Path) -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn lines_are_added_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.ndjson");
        for rest in ["", "sync = false"] {
            let sink = sink(&path, rest);
            assert_eq!(sink.check().await.unwrap(), [None]);
            assert_eq!(deliver(&sink, &["{\"n\":1}", "{\"n\":\n2}"]).await.outcome, done(2));
        }
        let payloads: Vec<_> =
            read(&path).iter().map(|line| line["payload"]["n"].clone()).collect();
        assert_eq!(payloads, [1, 2, 1, 2]);
        let first = &read(&path)[0];
        let expected = json!({ "id": "item-0", "topic": "", "key": null, "headers": {},
                               "published_at": null, "payload": { "n": 1 } });
        assert_eq!(*first, expected);
    }

    #[tokio::test]
    async fn each_topic_has_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let sink = sink(&directory.path().join("{topic}.ndjson"), "");
        assert!(!sink.capabilities().mixes_topics);
        let headers = Headers::from_iter([("content-type", "text/plain")]);
        let item = |topic| Item { topic, headers: &headers, ..Item::record("1", "text") };
        let items = [item("orders"), item("../escape")];
        let outcome = sink.deliver(Delivery { connection: 0, items: &items }).await.outcome;
        assert_eq!(outcome, done(2));
        let mut names: Vec<_> =
            fs::read_dir(&directory).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["%2E.%2Fescape.ndjson", "orders.ndjson"]);
        let line = &read(&directory.path().join("orders.ndjson"))[0];
        assert_eq!(line["payload_base64"], "dGV4dA==");
    }

    /// The check and a delivery both say what is wrong, at once, and nothing is changed.
    async fn refused(path: &Path, expect: &str) {
        let sink = sink(path, "timeout = 5");
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        let outcome = deliver(&sink, &["{}"]).await.outcome;
        assert!(matches!(outcome, Outcome::Broken(_)), "{outcome:?}");
    }

    #[tokio::test]
    async fn what_cannot_be_a_file_of_lines_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        refused(here, "is a directory").await;
        refused(&here.join("no/such/out"), "is not a directory: create it").await;
        let pipe = here.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        refused(&pipe, "is a pipe").await;
        let database = here.join("a.db");
        fs::write(&database, b"SQLite format 3\0 and so on, without a line break").unwrap();
        let before = fs::read(&database).unwrap();
        refused(&database, "is an SQLite database").await;
        assert_eq!(fs::read(&database).unwrap(), before);
        fs::write(here.join("file"), "").unwrap();
        refused(&here.join("file/out"), "cannot be used").await;
    }

    #[tokio::test]
    async fn protected_files_are_never_written_to_whatever_the_topic() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        fs::write(here.join("s.db"), "content").unwrap();
        fs::hard_link(here.join("s.db"), here.join("linked.db")).unwrap();
        let mut protected = Protected::default();
        protected.add(here.join("s.db"), "the store");
        protected.add(here.join("s.db-wal"), "the store");
        let refused = sink(&here.join("linked.db"), "").keeping_off(protected.clone());
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("`path` is the store"), "{error}");
        let sink = sink(&here.join("{topic}"), "").keeping_off(protected).unwrap();
        for (topic, allowed) in
            [("s.db", false), ("linked.db", false), ("s.db-wal", false), ("x", true)]
        {
            let items = [Item { topic, ..Item::record("1", "{}") }];
            let outcome = sink.deliver(Delivery { connection: 0, items: &items }).await.outcome;
            match allowed {
                true => assert_eq!(outcome, done(1)),
                false => assert!(matches!(outcome, Outcome::Refused(_)), "{topic}: {outcome:?}"),
            }
        }
        assert_eq!(fs::read_to_string(here.join("s.db")).unwrap(), "content");
        assert!(!here.join("s.db-wal").exists());
    }

    #[tokio::test]
    async fn a_new_file_is_for_its_owner_and_an_old_one_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.ndjson");
        assert_eq!(deliver(&sink(&path, ""), &["{}"]).await.outcome, done(1));
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(deliver(&sink(&path, ""), &["{}"]).await.outcome, done(1));
        assert_eq!(mode(&path), 0o644);
    }

    #[tokio::test]
    async fn what_a_crash_left_of_a_line_is_repaired() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.ndjson");
        let sink = sink(&path, "");
        assert_eq!(deliver(&sink, &["{}", "{}"]).await.outcome, done(2));
        let whole = fs::read(&path).unwrap();
        for cut in 1..whole.len() {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
            // Whatever was cut off, each line can be read.
            assert!(!read(&path).is_empty(), "{cut}");
        }
    }

    #[tokio::test]
    async fn those_who_write_together_do_not_mix_their_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.ndjson");
        let (one, two) = (sink(&path, "sync = false"), sink(&path, "sync = false"));
        let long = format!("\"{}\"", "x".repeat(100_000));
        let payloads = [long.as_str(), "1"];
        let calls = (0..20).map(|at| deliver(if at % 2 == 0 { &one } else { &two }, &payloads));
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(answer.outcome, done(2));
        }
        let lines = read(&path);
        assert_eq!(lines.len(), 40);
        assert!(lines.chunks(2).all(|two| two[1]["payload"] == 1));
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_breaks_the_sink() {
        let directory = tempfile::tempdir().unwrap();
        let sink = sink(&directory.path().join("no/out"), "");
        let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
        assert!(reason.contains("create its directory"), "{reason}");
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.ends_with("no is not a directory: create it"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_is_unavailable() {
        let sink = sink(Path::new("/dev/full"), "");
        sink.check().await.unwrap();
        let outcome = deliver(&sink, &["{}"]).await.outcome;
        assert!(matches!(outcome, Outcome::Unavailable(_)), "{outcome:?}");
    }
}

#[cfg(feature = "stdout")]
mod stdout {
    use super::*;
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex, mpsc},
    };
    use tidegate_sinks::stdout::Stdout;

    /// Keeps what is flushed; fails as told, after half of what it gets.
    #[derive(Clone, Default)]
    struct Captured {
        buffer: Arc<Mutex<Vec<u8>>>,
        flushed: Arc<Mutex<String>>,
        failure: Arc<Mutex<Option<io::ErrorKind>>>,
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let failure = self.failure.lock().unwrap().take();
            let taken = failure.map_or(bytes.len(), |_| bytes.len() / 2);
            self.buffer.lock().unwrap().extend_from_slice(&bytes[..taken]);
            failure.map_or(Ok(taken), |kind| Err(kind.into()))
        }

        fn flush(&mut self) -> io::Result<()> {
            let bytes = std::mem::take(&mut *self.buffer.lock().unwrap());
            self.flushed.lock().unwrap().push_str(str::from_utf8(&bytes).unwrap());
            Ok(())
        }
    }

    fn sink(rest: &str, writer: impl Write + Send + 'static) -> Stdout {
        Stdout::over(&toml::from_str(rest).unwrap(), Box::new(writer)).unwrap()
    }

    #[tokio::test]
    async fn lines_are_flushed_before_their_items_are_done() {
        let out = Captured::default();
        let sink = sink("", out.clone());
        assert_eq!(sink.check().await.unwrap(), [None]);
        assert_eq!(deliver(&sink, &["{}", "[1]"]).await.outcome, done(2));
        let flushed = out.flushed.lock().unwrap();
        let lines: Vec<Value> =
            flushed.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["id"], &lines[1]["payload"]), (&json!("item-0"), &json!([1])));
    }

    #[tokio::test]
    async fn a_line_that_failed_halfway_is_ended() {
        let out = Captured::default();
        let sink = sink("", out.clone());
        *out.failure.lock().unwrap() = Some(io::ErrorKind::WouldBlock);
        let outcome = deliver(&sink, &["{}"]).await.outcome;
        assert!(matches!(outcome, Outcome::Unavailable(_)), "{outcome:?}");
        assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
        let flushed = out.flushed.lock().unwrap();
        assert!(
            serde_json::from_str::<Value>(flushed.lines().last().unwrap()).is_ok(),
            "{flushed}"
        );
    }

    #[tokio::test]
    async fn without_a_reader_the_sink_is_broken() {
        let out = Captured::default();
        *out.failure.lock().unwrap() = Some(io::ErrorKind::BrokenPipe);
        let outcome = deliver(&sink("", out), &["{}"]).await.outcome;
        let reason = "nobody reads standard output any more".to_owned();
        assert_eq!(outcome, Outcome::Broken(reason));
    }

    /// Does not come back before it is told to.
    struct Stuck(mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_times_out() {
        let (release, stuck) = mpsc::channel();
        let sink = sink("timeout = 0.05", Stuck(stuck));
        assert_eq!(deliver(&sink, &["{}"]).await.outcome, Outcome::TimedOut);
        drop(release);
    }
}
