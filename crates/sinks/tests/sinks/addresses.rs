//! Where a sink may connect to.

use crate::support::{deliver, done, start, try_http};
use tidegate_core::{Sink, sink::Outcome};
use tidegate_drill::Spec;

#[tokio::test]
async fn a_private_address_is_refused_before_anything_is_sent() {
    let service = start(Spec::default());
    let port = service.addr().port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"] {
        let error = try_http(&format!("http://{host}:{port}/records"), "").unwrap_err();
        let expected = "is a loopback address: if it is meant, add it to `allow`";
        assert!(error.starts_with("`url` ") && error.contains(expected), "{error}");
    }
    let metadata = try_http("http://169.254.169.254/latest/meta-data", "").unwrap_err();
    assert!(metadata.contains("169.254.169.254 is a metadata address"), "{metadata}");
    assert_eq!(service.counters().connections, 0);
}

#[tokio::test]
async fn a_name_is_judged_by_what_it_resolves_to() {
    let service = start(Spec::default());
    let url = format!("http://localhost:{}/records", service.addr().port());
    let sink = try_http(&url, "").unwrap();
    let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    assert!(reason.starts_with("localhost (") && reason.contains("`allow`"), "{reason}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("is a loopback address"), "{error}");
    assert_eq!(service.counters().connections, 0);

    for allow in ["localhost", "127.0.0.0/8", "127.0.0.1"] {
        let sink = try_http(&url, &format!("allow = ['{allow}']")).unwrap();
        assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1), "{allow}");
    }
}
