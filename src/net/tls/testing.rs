//! Certificates for tests, each in its own files.

use std::fs;
use std::path::{Path, PathBuf};

use base::testing::TemporaryDirectory;

/// A directory for certificates.
#[derive(Default)]
pub struct Certificates(TemporaryDirectory);

/// The files of one certificate.
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificates {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Puts a copy in the place of a file, as programs do that renew
    /// certificates: at once.
    pub fn replace(&self, source: &Path, file: &Path) {
        let next = self.0.join("next");
        fs::copy(source, &next).unwrap();
        fs::rename(next, file).unwrap();
    }

    /// A certificate for these names, good for a day.
    pub fn certificate(&self, file: &str, names: &[&str]) -> Files {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let now = base::clock::Clock::system().now();
        let made = super::self_signed::make(&names, 1, now).unwrap();
        let files = Files {
            certificate: self.0.join(format!("{file}.cert.pem")),
            key: self.0.join(format!("{file}.key.pem")),
        };
        fs::write(&files.certificate, made.certificate).unwrap();
        fs::write(&files.key, made.key.expose()).unwrap();
        files
    }
}
