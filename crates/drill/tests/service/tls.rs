use std::{io, sync::Arc};
use tidegate_drill::{Service, Spec, Tls};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
    },
};

fn start() -> (Service, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() };
    let spec = Spec { tls: Some(tls), ..Spec::default() };
    (Service::start(spec, "127.0.0.1:0".parse().unwrap()).unwrap(), made.cert.der().clone())
}

async fn ask_for_health(service: &Service, trusted: RootCertStore) -> io::Result<String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let stream = TcpStream::connect(service.addr()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    // The server closes without ceremony; what it sent before that counts.
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer)
}

#[tokio::test]
async fn a_certificate_is_served_and_nobody_need_trust_it() {
    let (service, certificate) = start();
    assert!(service.url().starts_with("https://127.0.0.1:"));
    let error = ask_for_health(&service, RootCertStore::empty()).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate).unwrap();
    let answer = ask_for_health(&service, trusted).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn what_is_no_certificate_is_refused() {
    let tls = Tls { certificate: "no".to_owned(), key: "no".to_owned() };
    let spec = Spec { tls: Some(tls), ..Spec::default() };
    let error = Service::start(spec, "127.0.0.1:0".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("for TLS"), "{error}");
}
