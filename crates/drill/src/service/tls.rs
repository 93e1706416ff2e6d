//! HTTPS with a given certificate: also one that no client should trust.

use crate::spec::Tls;
use std::{
    io::{self, ErrorKind},
    sync::Arc,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// Fails if the certificate or its key cannot be read, or do not belong together.
pub fn acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(tls.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| invalid("certificate", error))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes());
    let key = key.map_err(|error| invalid("key", error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("protocol", error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| invalid("certificate", error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn invalid(what: &str, error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("could not use the {what} for TLS: {error}"))
}
