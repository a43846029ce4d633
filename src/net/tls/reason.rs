//! Why a connection with TLS failed, in words: rustls shows its own names.

use std::fmt;
use std::io;

use rustls::{CertificateError, Error};

/// The same error, with words for a person where rustls is the source.
pub fn in_words(error: io::Error) -> io::Error {
    let words = error
        .get_ref()
        .and_then(|source| source.downcast_ref::<Error>())
        .map(words_for);
    match words {
        Some(words) => io::Error::new(error.kind(), words),
        None => error,
    }
}

fn words_for(error: &Error) -> String {
    let problem = match error {
        Error::InvalidCertificate(problem) => problem,
        Error::InvalidMessage(_) => return "what it sends is not TLS".to_owned(),
        Error::AlertReceived(alert) => {
            return format!("it ended the TLS connection ({})", spelled(alert));
        }
        error => return error.to_string(),
    };
    match problem {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is signed by nobody who is trusted here".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not good yet; is the clock right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for other names".to_owned()
        }
        CertificateError::ApplicationVerificationFailure => {
            "its certificate is not the one in the server's own file".to_owned()
        }
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority (CA:TRUE), not that of a server".to_owned()
        }
        problem => format!("its certificate is not valid ({})", spelled(problem)),
    }
}

/// The innermost name of a value of rustls, `Other(UnsupportedCertVersion)`, as words. Nothing
/// but these names says which of a hundred faults it is.
pub(super) fn spelled(value: &impl fmt::Debug) -> String {
    let shown = format!("{value:?}");
    let name = shown.rsplit('(').next().unwrap_or_default();
    let mut words = String::new();
    for letter in name.chars().filter(|letter| letter.is_alphanumeric()) {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_of_rustls_is_put_into_words() {
        let source = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = in_words(io::Error::new(io::ErrorKind::InvalidData, source));
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(
            error.to_string().contains("nobody who is trusted"),
            "{error}"
        );
        let source = Error::InvalidCertificate(CertificateError::BadEncoding);
        let error = in_words(io::Error::new(io::ErrorKind::InvalidData, source));
        assert_eq!(
            error.to_string(),
            "its certificate is not valid (bad encoding)"
        );
        let error = in_words(io::ErrorKind::TimedOut.into());
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
