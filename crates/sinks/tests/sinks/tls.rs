//! Certificates.

use crate::support::{deliver, done, http, start};
use std::io::Write;
use tempfile::NamedTempFile;
use tidegate_core::{Sink, sink::Outcome};
use tidegate_drill::{Service, Spec, Tls};

/// A service with a certificate for this name, and the certificate in a file.
fn secured(name: &str) -> (Service, NamedTempFile) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let tls = Tls { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() };
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(made.cert.pem().as_bytes()).unwrap();
    (start(Spec { tls: Some(tls), ..Spec::default() }), file)
}

fn trusting(file: &NamedTempFile) -> String {
    format!("ca_file = '{}'", file.path().display())
}

#[tokio::test]
async fn a_certificate_of_a_given_ca_verifies() {
    let (service, file) = secured("127.0.0.1");
    let sink = http(&format!("{}/records", service.url()), &trusting(&file));
    assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_breaks_the_sink() {
    let (service, _file) = secured("127.0.0.1");
    let (other, file) = secured("example.com");
    let cases = [(&service, String::new()), (&other, trusting(&file))];
    for (service, config) in cases {
        let sink = http(&format!("{}/records", service.url()), &config);
        let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
        let expected = "127.0.0.1 has a certificate that does not verify";
        assert!(reason.starts_with(expected) && reason.contains("`ca_file`"), "{reason}");
        assert!(!reason.contains('\n'), "{reason}");
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn a_service_that_speaks_no_tls_breaks_the_sink() {
    let service = start(Spec::default());
    let url = service.url().replace("http:", "https:");
    let sink = http(&format!("{url}/records"), "");
    let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    assert!(reason.contains("does not speak TLS"), "{reason}");
}
