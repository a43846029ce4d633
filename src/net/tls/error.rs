//! What can be wrong with a certificate or a key, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why certificates or a key cannot be used.
#[derive(Debug)]
pub enum CertificateError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds no certificate in PEM form.
    NoCertificate(PathBuf),
    /// The file holds no private key in PEM form.
    NoKey(PathBuf),
    /// The file is no PEM, or what is in it is malformed.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The key is of another certificate.
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::Unreadable { path, source } => write!(
                f,
                "{} cannot be read: {source}; check that it is there, and that this user may read \
                 it",
                path.display()
            ),
            CertificateError::NoCertificate(path) => write!(
                f,
                "{} holds no certificate: it must be a PEM file with a line \
                 \"-----BEGIN CERTIFICATE-----\"",
                path.display()
            ),
            CertificateError::NoKey(path) => write!(
                f,
                "{} holds no private key that is not encrypted: it must be a PEM file with a line \
                 \"-----BEGIN PRIVATE KEY-----\" (or EC or RSA PRIVATE KEY)",
                path.display()
            ),
            CertificateError::Malformed { path, reason } => {
                write!(f, "{} cannot be used: {reason}", path.display())
            }
            CertificateError::Mismatch { certificate, key } => write!(
                f,
                "the key in {} does not belong to the certificate in {}: name two files that belong together",
                key.display(),
                certificate.display()
            ),
        }
    }
}

impl std::error::Error for CertificateError {}
