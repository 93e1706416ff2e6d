//! How TLS is spoken: always with *ring*, trusting what the system trusts and what a config adds.

use crate::ConfigError;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{path::Path, sync::Arc};

/// How TLS is spoken, and what verifies the other side, if TLS is spoken at all.
pub struct Tls {
    pub client: ClientConfig,
    verifier: Option<Arc<Verifier>>,
}

impl Tls {
    /// The same for a client that connects to an address and not to a name: it takes the certificate that
    /// the name needs. (A client sends no server name to an address; NATS does not choose by it.)
    #[cfg(feature = "nats")]
    pub fn client_of(&self, name: ServerName<'static>) -> ClientConfig {
        let mut client = self.client.clone();
        if let Some(verifier) = &self.verifier {
            let named = Named { name, verifier: Arc::clone(verifier) };
            client.dangerous().set_certificate_verifier(Arc::new(named));
        }
        client
    }
}

/// Compares certificates with a name, whatever was connected to.
#[derive(Debug)]
struct Named {
    name: ServerName<'static>,
    verifier: Arc<Verifier>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _connected_to: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = &self.verifier;
        verifier.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// *ring* is handed in: what a process installed as its default provider does not matter. `secure`
/// says whether TLS will be spoken at all.
pub fn client(secure: bool, ca_file: Option<&Path>) -> Result<Tls, ConfigError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |error| ConfigError::new("url", format!("cannot be reached by TLS: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let roots = ca_file.map(read_roots).transpose()?.unwrap_or_default();
    if !secure {
        // Nothing will be verified; a machine without any CA must be able to do that.
        let builder = builder.with_root_certificates(RootCertStore::empty());
        return Ok(Tls { client: builder.with_no_client_auth(), verifier: None });
    }
    let verifier = Verifier::new_with_extra_roots(roots, provider).map_err(|error| {
        let problem =
            format!("cannot be verified ({error}): install CA certificates, or use `ca_file`");
        ConfigError::new("url", problem)
    })?;
    let verifier = Arc::new(verifier);
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier.clone());
    Ok(Tls { client: builder.with_no_client_auth(), verifier: Some(verifier) })
}

fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let refused = |problem: String| {
        let problem = format!("cannot be used ({}): {problem}", path.display());
        ConfigError::new("ca_file", problem)
    };
    let roots = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let roots: Vec<_> = roots.map_err(|error| refused(error.to_string()))?;
    if roots.is_empty() {
        return Err(refused("there is no certificate in it; give it in PEM".to_owned()));
    }
    Ok(roots)
}
