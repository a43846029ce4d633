//! What can be wrong with a certificate or a key, and what to do about it.

use std::fmt;
use std::path::Path;

/// Why certificates or a key cannot be used: a sentence that names the file and says
/// what to do.
#[derive(Debug)]
pub struct CertificateError(String);

impl CertificateError {
    /// What is wrong with a file, after its name.
    pub(super) fn of(path: &Path, wrong: impl fmt::Display) -> CertificateError {
        CertificateError(format!("{} {wrong}", path.display()))
    }

    /// A file whose contents are not usable.
    pub(super) fn malformed(path: &Path, reason: impl fmt::Display) -> CertificateError {
        CertificateError::of(path, format_args!("cannot be used: {reason}"))
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateError {}
