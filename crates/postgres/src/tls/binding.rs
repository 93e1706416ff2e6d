//! Channel binding: a hash of the server's certificate that a login is bound to, so that nobody in between can
//! pass it on (RFC 5929, `tls-server-end-point`).

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use x509_parser::{
    oid_registry::{
        OID_HASH_SHA1, OID_NIST_HASH_SHA256, OID_NIST_HASH_SHA384, OID_NIST_HASH_SHA512,
        OID_PKCS1_MD5WITHRSAENC, OID_PKCS1_RSASSAPSS, OID_PKCS1_SHA1WITHRSA,
        OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
        OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, Oid,
    },
    parse_x509_certificate,
    signature_algorithm::RsaSsaPssParams,
    x509::AlgorithmIdentifier,
};

/// The hash, with the algorithm by which the certificate is signed; MD5 and SHA-1 are replaced by SHA-256. `None` if
/// it is signed without one, as by Ed25519: there is no rule for these.
pub(super) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    let algorithm = hash_of(&parsed.signature_algorithm)?;
    Some(digest(algorithm, certificate).as_ref().to_vec())
}

fn hash_of(signature: &AlgorithmIdentifier<'_>) -> Option<&'static Algorithm> {
    let known: [(Oid<'static>, &'static Algorithm); 8] = [
        (OID_PKCS1_MD5WITHRSAENC, &SHA256),
        (OID_PKCS1_SHA1WITHRSA, &SHA256),
        (OID_PKCS1_SHA256WITHRSA, &SHA256),
        (OID_PKCS1_SHA384WITHRSA, &SHA384),
        (OID_PKCS1_SHA512WITHRSA, &SHA512),
        (OID_SIG_ECDSA_WITH_SHA256, &SHA256),
        (OID_SIG_ECDSA_WITH_SHA384, &SHA384),
        (OID_SIG_ECDSA_WITH_SHA512, &SHA512),
    ];
    if signature.algorithm == OID_PKCS1_RSASSAPSS {
        return hash_of_pss(signature);
    }
    known.iter().find(|(oid, _)| *oid == signature.algorithm).map(|(_, algorithm)| *algorithm)
}

/// The hash is a parameter there.
fn hash_of_pss(signature: &AlgorithmIdentifier<'_>) -> Option<&'static Algorithm> {
    let parameters = RsaSsaPssParams::try_from(signature.parameters.as_ref()?).ok()?;
    let hash = parameters.hash_algorithm_oid();
    let known = [
        (OID_HASH_SHA1, &SHA256),
        (OID_NIST_HASH_SHA256, &SHA256),
        (OID_NIST_HASH_SHA384, &SHA384),
        (OID_NIST_HASH_SHA512, &SHA512),
    ];
    known.iter().find(|(oid, _)| oid == hash).map(|(_, algorithm)| *algorithm)
}
