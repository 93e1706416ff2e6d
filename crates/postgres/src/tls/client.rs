//! What a handshake needs, from settings and files.

use super::{
    Failure, Roots, Settings, Verification, key,
    verify::{Judge, Trust},
};
use rustls::{
    ClientConfig, RootCertStore,
    client::danger::ServerCertVerifier,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{path::Path, sync::Arc};

/// *ring* is handed in: what a process installed as its default provider does not matter.
pub(super) fn read(settings: &Settings) -> Result<ClientConfig, Failure> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::settings(format!("TLS cannot be spoken: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier(settings, provider)?);
    let mut client = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (certificates, key) =
                (certificates("sslcert", &identity.certificate)?, key::read(&identity.key)?);
            builder.with_client_auth_cert(certificates, key).map_err(|_| {
                Failure::settings(format!(
                    "the key in sslkey ({}) does not belong to the certificate in sslcert ({})",
                    identity.key.display(),
                    identity.certificate.display()
                ))
            })?
        }
    };
    if settings.direct {
        client.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    Ok(client)
}

fn verifier(
    settings: &Settings,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    Ok(match (settings.verification, &settings.roots) {
        (Verification::None, _) => Arc::new(Judge { trust: None, provider }),
        (verification, Roots::File(path)) => {
            let certificates = certificates("sslrootcert", path)?;
            let mut roots = RootCertStore::empty();
            for certificate in &certificates {
                roots.add(certificate.clone()).map_err(|error| {
                    let path = path.display();
                    Failure::settings(format!("sslrootcert cannot be used ({path}): {error}"))
                })?;
            }
            let check_name = verification == Verification::Name;
            let trust = Some(Trust { roots, known: certificates, check_name });
            Arc::new(Judge { trust, provider })
        }
        (_, Roots::System) => Arc::new(Verifier::new(provider).map_err(|error| {
            Failure::settings(format!(
                "the server cannot be verified ({error}): install CA certificates, or name the \
                 server's with sslrootcert=FILE"
            ))
        })?),
    })
}

fn certificates(name: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let refused = |problem: String| {
        Failure::settings(format!("{name} cannot be used ({}): {problem}", path.display()))
    };
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let certificates = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(refused("there is no certificate in it; give it in PEM".to_owned())),
    }
}
