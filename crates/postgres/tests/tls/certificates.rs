//! Certificates as a test needs them.

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SignatureAlgorithm, date_time_ymd,
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Somebody who signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, both in PEM.
pub struct Certified {
    pub certificate: String,
    pub key: String,
}

/// When a certificate is valid.
#[derive(Clone, Copy)]
pub enum Validity {
    Now,
    Past,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// For a server with this name, or for a user.
    pub fn certify(&self, name: &str) -> Certified {
        self.certify_with(name, &PKCS_ECDSA_P256_SHA256, Validity::Now)
    }

    pub fn certify_with(
        &self,
        name: &str,
        algorithm: &'static SignatureAlgorithm,
        validity: Validity,
    ) -> Certified {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = params(name, validity);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Certified { certificate: certificate.pem(), key: key_pem(&key) }
    }
}

/// One that vouches for itself, as `openssl req -x509` makes it.
pub fn self_signed(
    name: &str,
    algorithm: &'static SignatureAlgorithm,
    validity: Validity,
) -> Certified {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = params(name, validity);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    Certified { certificate: certificate.pem(), key: key_pem(&key) }
}

/// OpenSSL does not read the form in which ring writes keys of Ed25519: with the public key behind the secret one.
fn key_pem(key: &KeyPair) -> String {
    const HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    if key.algorithm() != &PKCS_ED25519 {
        return key.serialize_pem();
    }
    let secret = &key.serialize_der()[HEAD.len()..HEAD.len() + 32];
    let text = STANDARD.encode([&HEAD[..], secret].concat());
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}

fn params(name: &str, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = match validity {
        Validity::Now => date_time_ymd(4096, 1, 1),
        Validity::Past => date_time_ymd(2021, 1, 1),
    };
    params
}

/// Writes a file that only this user can read.
pub fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}
