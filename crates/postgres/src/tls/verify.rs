//! Who a server may be.

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime},
    server::ParsedCertificate,
};
use std::sync::Arc;
use x509_parser::{parse_x509_certificate, time::ASN1Time};

/// Judges servers. Every server must have the key of the certificate that it shows.
#[derive(Debug)]
pub(super) struct Judge {
    /// Without it, any certificate will do.
    pub trust: Option<Trust>,
    pub provider: Arc<CryptoProvider>,
}

/// Servers whose certificate is in a file, or is signed by one that is.
#[derive(Debug)]
pub(super) struct Trust {
    pub roots: RootCertStore,
    pub known: Vec<CertificateDer<'static>>,
    pub check_name: bool,
}

impl Trust {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        // A server's own certificate as its root, as OpenSSL makes them: no authority need vouch for it.
        if self.known.iter().any(|known| known.as_ref() == end_entity.as_ref()) {
            check_time(end_entity, now)?;
        } else {
            let roots = &self.roots;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        if self.check_name { verify_server_name(&certificate, server_name) } else { Ok(()) }
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        if let Some(trust) = &self.trust {
            trust.verify(end_entity, intermediates, server_name, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let refused = |error| Err(Error::InvalidCertificate(error));
    let Ok((_, parsed)) = parse_x509_certificate(certificate) else {
        return refused(CertificateError::BadEncoding);
    };
    let now = i64::try_from(now.as_secs()).ok().and_then(|it| ASN1Time::from_timestamp(it).ok());
    let Some(now) = now else { return refused(CertificateError::BadEncoding) };
    let validity = parsed.validity();
    match (now < validity.not_before, now > validity.not_after) {
        (true, _) => refused(CertificateError::NotValidYet),
        (_, true) => refused(CertificateError::Expired),
        _ => Ok(()),
    }
}
