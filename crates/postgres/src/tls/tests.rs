use super::*;
use rcgen::{
    CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
};
use ring::digest::{SHA256, SHA384, digest};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

fn settings(pairs: &[(&str, &Path)]) -> Settings {
    let take = |name: &str| {
        let found = pairs.iter().find(|(known, _)| *known == name);
        found.map(|(_, path)| path.display().to_string())
    };
    Settings::new(take, false).unwrap()
}

fn self_signed() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["db.example".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Writes both, and returns what is wrong with them.
fn problem(certificate: &str, key: &str, mode: u32) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let (certificate_at, key_at) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
    fs::write(&certificate_at, certificate).unwrap();
    fs::write(&key_at, key).unwrap();
    fs::set_permissions(&key_at, fs::Permissions::from_mode(mode)).unwrap();
    let settings = settings(&[("sslcert", &certificate_at), ("sslkey", &key_at)]);
    settings.client().err().map(|failure| failure.to_string())
}

#[test]
fn keys_that_others_can_read_are_refused() {
    let (certificate, key) = self_signed();
    assert_eq!(problem(&certificate, &key, 0o600), None);
    assert_eq!(problem(&certificate, &key, 0o400), None);
    for mode in [0o604, 0o660, 0o644, 0o602, 0o777] {
        let problem = problem(&certificate, &key, mode).unwrap();
        assert!(problem.contains("0600"), "{mode:o}: {problem}");
    }
}

#[test]
fn nothing_of_a_key_is_shown() {
    let (certificate, key) = self_signed();
    let other = self_signed().1;
    let body: String = key.lines().skip(1).take(1).collect();
    let cut = key.replace("-----END", "-----");
    let encrypted = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
    for (key, advice) in [
        (other.as_str(), "does not belong"),
        (&cut, "no private key"),
        (&format!("-----BEGIN PRIVATE KEY-----\n{body}"), "no private key"),
        (&body, "no private key"),
        ("", "no private key"),
        (&encrypted, "openssl pkey"),
    ] {
        let problem = problem(&certificate, key, 0o600).unwrap();
        assert!(problem.contains(advice), "{problem}");
        assert!(!problem.contains(&body[..10]), "{problem}");
    }
}

#[test]
fn files_that_are_missing_or_empty_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.pem");
    let text = settings(&[("sslrootcert", &missing)]).client().unwrap_err().to_string();
    assert!(text.contains("sslrootcert") && text.contains("missing.pem"), "{text}");
    let (_, key) = self_signed();
    let problem = problem("", &key, 0o600).unwrap();
    assert!(problem.contains("sslcert") && problem.contains("no certificate"), "{problem}");
}

#[test]
fn files_are_read_again_and_a_missing_one_ends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    fs::write(&roots, self_signed().0).unwrap();
    let settings = settings(&[("sslrootcert", &roots)]);
    let first = settings.client().unwrap();
    fs::write(&roots, self_signed().0).unwrap();
    let second = settings.client().unwrap();
    assert!(!Arc::ptr_eq(&first, &second), "it was renewed");
    fs::remove_file(&roots).unwrap();
    assert!(Arc::ptr_eq(&second, &settings.client().unwrap()));
}

#[test]
fn logins_are_bound_by_the_hash_that_signed_the_certificate() {
    for (algorithm, hash) in [
        (&PKCS_ECDSA_P256_SHA256, Some(&SHA256)),
        (&PKCS_ECDSA_P384_SHA384, Some(&SHA384)),
        (&PKCS_ED25519, None),
    ] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = CertificateParams::default().self_signed(&key).unwrap();
        let expected = hash.map(|hash| digest(hash, certificate.der()).as_ref().to_vec());
        assert_eq!(binding::server_end_point(certificate.der()), expected);
    }
    assert_eq!(binding::server_end_point(b"not a certificate"), None);
}
