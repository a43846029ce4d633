//! Certificates for tests, each in files of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed when it is dropped.
pub struct Folder(PathBuf);

/// The files of one certificate.
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hearth-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

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

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
