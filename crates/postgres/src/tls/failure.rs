//! Why there is no TLS with a server, and what to do about it.

use rustls::{AlertDescription, CertificateError, Error};
use std::{fmt, io};

/// Something about TLS failed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    /// Whether the server may just be gone.
    is_broken: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// What the address says, or a file that it names, cannot be used.
    pub(crate) fn settings(message: String) -> Self {
        Self { message, is_broken: false }
    }

    pub(super) fn of_handshake(host: &str, error: io::Error) -> Self {
        match cause(&error) {
            Some(cause) => Self { message: explain(host, cause), is_broken: false },
            None => {
                Self { message: format!("the TLS handshake broke off: {error}"), is_broken: true }
            }
        }
    }

    /// Whether the server may just be gone.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// What a connection over TLS that has broken says about TLS. A server that refuses a client's certificate says so
/// behind the handshake.
pub(crate) fn of_io(error: &io::Error) -> Option<String> {
    cause(error).map(|cause| explain("the server", cause))
}

fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

fn explain(host: &str, error: &Error) -> String {
    match error {
        Error::InvalidCertificate(problem) => of_certificate(host, problem),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::PeerIncompatible(_) => {
            format!(
                "{host} and this program share no version or cipher of TLS: it needs TLS 1.2 or newer"
            )
        }
        Error::InvalidMessage(_) => format!("{host} answers with something that is not TLS"),
        other => format!("the TLS handshake failed: {other}"),
    }
}

fn of_certificate(host: &str, problem: &CertificateError) -> String {
    use CertificateError as Problem;
    let certificate = format!("the server's certificate is not verified for `{host}`");
    match problem {
        Problem::UnknownIssuer => format!(
            "{certificate}: the authority that signed it is not trusted; name it with \
             sslrootcert=FILE (sslmode=require verifies, too, unless sslverify=none is given)"
        ),
        Problem::NotValidForName => name_differs(&certificate, &[]),
        Problem::NotValidForNameContext { presented, .. } => name_differs(&certificate, presented),
        Problem::Expired | Problem::ExpiredContext { .. } => format!(
            "{certificate}: it has expired; renew it on the server, and check the clock here"
        ),
        Problem::NotValidYet | Problem::NotValidYetContext { .. } => {
            format!("{certificate}: it is not valid yet; check the clock here")
        }
        Problem::BadSignature => format!(
            "{certificate}: its signature is wrong; the file in sslrootcert may hold another \
             authority of the same name"
        ),
        Problem::Revoked => format!("{certificate}: it was revoked"),
        other => format!("{certificate}: {other}"),
    }
}

fn name_differs(certificate: &str, names: &[String]) -> String {
    let names = match names {
        [] => "it is for other names".to_owned(),
        names => {
            // They come with their kind: `DnsName("db.example")`.
            let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
            format!("it is for {}", names.iter().map(bare).collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "{certificate}: {names}; use such a name as host, or sslmode=verify-ca with an authority \
         of your own"
    )
}

/// Alerts of a server are about the client's certificate, or about what both could agree on.
fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateRequired => {
            "the server wants a certificate of the client: give sslcert and sslkey".to_owned()
        }
        Alert::UnknownCA => {
            "the server does not trust the authority that signed the certificate in sslcert"
                .to_owned()
        }
        Alert::CertificateExpired => {
            "the server says that the certificate in sslcert has expired".to_owned()
        }
        Alert::CertificateRevoked => {
            "the server says that the certificate in sslcert was revoked".to_owned()
        }
        Alert::BadCertificate
        | Alert::CertificateUnknown
        | Alert::UnsupportedCertificate
        | Alert::DecryptError
        | Alert::AccessDenied => {
            format!("the server refused the certificate in sslcert ({alert:?})")
        }
        Alert::ProtocolVersion | Alert::HandshakeFailure | Alert::InsufficientSecurity => format!(
            "the server and this program share no version or cipher of TLS ({alert:?}): it needs \
             TLS 1.2 or newer"
        ),
        other => format!("the server ended the TLS handshake ({other:?})"),
    }
}
