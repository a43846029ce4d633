//! The server's certificate for incoming connections, read again when its files
//! change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::server::{NoServerSessionStorage, ServerConfig};
use rustls::version::{TLS12, TLS13};

use super::certificate::{CertificateError, Stamp};
use super::certificate::{load_certificates, load_key};
use super::inspect::{fingerprint, inspect};
use super::provider;
use super::reason::spelled;
use base::sync::lock;

/// The server's certificate and key. Shared by all listeners.
pub struct Acceptor {
    certificate: PathBuf,
    key: PathBuf,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    /// Of the files as they were last read, good or not.
    stamps: [Stamp; 2],
    /// Of the last good ones.
    config: Arc<ServerConfig>,
}

impl Acceptor {
    /// Reads the certificate chain and its key (PEM files).
    ///
    /// # Errors
    /// A file cannot be read or used, or the key is that of another
    /// certificate.
    pub fn open(certificate: &Path, key: &Path) -> Result<Acceptor, CertificateError> {
        // Before reading: what changes meanwhile is then read again.
        let stamps = [Stamp::of(certificate), Stamp::of(key)];
        let config = load(certificate, key)?;
        Ok(Acceptor {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            loaded: Mutex::new(Loaded { stamps, config }),
        })
    }

    /// The TLS configuration for a new connection. Checks whether the files have
    /// changed, which costs two system calls, and then reads them again. While they
    /// are unusable the last good certificate stays in use, with one warning in the
    /// log.
    pub fn config(&self) -> Arc<ServerConfig> {
        let stamps = [Stamp::of(&self.certificate), Stamp::of(&self.key)];
        let mut loaded = lock(&self.loaded);
        if loaded.stamps != stamps {
            loaded.stamps = stamps;
            match load(&self.certificate, &self.key) {
                Ok(config) => loaded.config = config,
                Err(error) => {
                    log::warn!("tls: {error}; the certificate that was read before stays in use");
                }
            }
        }
        Arc::clone(&loaded.config)
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let chain = load_certificates(certificate)?;
    let private = load_key(key)?;
    let leaf = chain[0].clone();
    let provider = provider();
    provider
        .key_provider
        .load_private_key(private.clone_key())
        .map_err(|error| CertificateError::malformed(key, error))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("ring has suites of both versions")
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => CertificateError::of(
                key,
                format_args!(
                    "is not the key of the certificate in {}: name two files that belong together",
                    certificate.display()
                ),
            ),
            rustls::Error::InvalidCertificate(problem) => CertificateError::malformed(
                certificate,
                format_args!("no server can show it ({})", spelled(&problem)),
            ),
            error => CertificateError::malformed(certificate, error),
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Sessions are resumed with tickets, which the clients keep, so that nothing
    // is kept here. Their keys change every six hours.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = rustls::crypto::ring::Ticketer::new()
        .map_err(|error| CertificateError::malformed(key, error))?;
    // One is enough to come back with; the second would cost 200 bytes more.
    config.send_tls13_tickets = 1;
    report(certificate, &leaf);
    if fs::metadata(key).is_ok_and(|found| found.mode() & 0o007 != 0) {
        let path = key.display();
        log::warn!("tls: everybody on this machine can use {path}; run: chmod 600 {path}");
    }
    Ok(Arc::new(config))
}

/// Logs which certificate is in use.
fn report(path: &Path, leaf: &[u8]) {
    let print = fingerprint(leaf);
    match inspect(leaf) {
        Some(found) => log::info!(
            "tls: {} is in use until {}, SHA-256 {print}",
            path.display(),
            found.until
        ),
        None => log::info!("tls: {} is in use, SHA-256 {print}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::Certificates;

    #[test]
    fn a_key_of_another_certificate_is_refused_with_both_names() {
        let folder = Certificates::default();
        let ours = folder.certificate("ours", &["localhost"]);
        let other = folder.certificate("other", &["localhost"]);
        assert!(Acceptor::open(&ours.certificate, &ours.key).is_ok());
        let error = Acceptor::open(&ours.certificate, &other.key).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains("ours.cert.pem") && text.contains("other.key.pem"),
            "{text}"
        );
        assert!(text.contains("is not the key of"), "{text}");
    }

    #[test]
    fn files_that_change_are_read_again_and_broken_ones_are_not_taken() {
        let folder = Certificates::default();
        let first = folder.certificate("first", &["localhost"]);
        let second = folder.certificate("second", &["localhost"]);
        let acceptor = Acceptor::open(&first.certificate, &first.key).unwrap();
        let before = acceptor.config();
        assert!(Arc::ptr_eq(&before, &acceptor.config()));

        // Between the two files the pair does not fit.
        folder.replace(&second.certificate, &first.certificate);
        assert!(Arc::ptr_eq(&before, &acceptor.config()));
        folder.replace(&second.key, &first.key);
        let after = acceptor.config();
        assert!(!Arc::ptr_eq(&before, &after));

        fs::write(&first.certificate, "nonsense").unwrap();
        assert!(Arc::ptr_eq(&after, &acceptor.config()));
        fs::remove_file(&first.certificate).unwrap();
        assert!(Arc::ptr_eq(&after, &acceptor.config()));
        folder.replace(&second.certificate, &first.certificate);
        assert!(!Arc::ptr_eq(&after, &acceptor.config()));
    }
}
