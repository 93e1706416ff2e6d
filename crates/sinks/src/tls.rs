//! How TLS is spoken: always with *ring*, trusting what the system trusts and what a config adds.

use crate::ConfigError;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{path::Path, sync::Arc};

/// *ring* is handed in: what a process installed as its default provider does not matter. `secure`
/// says whether TLS will be spoken at all.
pub fn client(secure: bool, ca_file: Option<&Path>) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |error| ConfigError::new("url", format!("cannot be reached by TLS: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let roots = ca_file.map(read_roots).transpose()?.unwrap_or_default();
    if !secure {
        // Nothing will be verified; a machine without any CA must be able to do that.
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = Verifier::new_with_extra_roots(roots, provider).map_err(|error| {
        let problem =
            format!("cannot be verified ({error}): install CA certificates, or use `ca_file`");
        ConfigError::new("url", problem)
    })?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
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
