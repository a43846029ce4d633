//! Which servers outgoing connections trust.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};

use super::certificate::load_certificates;
use super::certificate::{CertificateError, Stamp};
use super::pinned::Pinned;
use super::provider;
use base::sync::lock;

/// Which servers outgoing connections trust. Cheap to clone; nothing is read or built
/// before the first connection. A file that changes is read again.
#[derive(Clone)]
pub struct Trust {
    anchors: Anchors,
    built: Arc<Mutex<Option<Built>>>,
}

/// What was built, and of which state of the file.
struct Built {
    of: Stamp,
    config: Arc<ClientConfig>,
}

/// Where trust comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Anchors {
    /// The public authorities, as Mozilla has them.
    Public,
    /// Those, and the certificates in this file.
    And(PathBuf),
    /// Exactly the first certificate in this file.
    Only(PathBuf),
}

impl Trust {
    /// Trust in the public authorities and, if there is one, in the authorities
    /// of a file (PEM): `tls.ca_file` of the configuration.
    pub fn new(ca_file: Option<&Path>) -> Trust {
        Trust::of(match ca_file {
            Some(path) => Anchors::And(path.to_owned()),
            None => Anchors::Public,
        })
    }

    /// Trusts exactly the first certificate of this file: for a server on this
    /// machine.
    pub fn pinned(certificate: &Path) -> Trust {
        Trust::of(Anchors::Only(certificate.to_owned()))
    }

    fn of(anchors: Anchors) -> Trust {
        Trust {
            anchors,
            built: Arc::default(),
        }
    }

    /// What rustls makes connections with; the same one, with its tickets to
    /// resume sessions, until the file changes.
    ///
    /// # Errors
    /// The file cannot be used. Then nothing is trusted.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, CertificateError> {
        let stamp = match &self.anchors {
            Anchors::Public => Stamp::none(),
            Anchors::And(path) | Anchors::Only(path) => Stamp::of(path),
        };
        let mut built = lock(&self.built);
        if let Some(built) = &*built
            && built.of == stamp
        {
            return Ok(Arc::clone(&built.config));
        }
        let config = Arc::new(self.build()?);
        *built = Some(Built {
            of: stamp,
            config: Arc::clone(&config),
        });
        Ok(config)
    }

    fn build(&self) -> Result<ClientConfig, CertificateError> {
        let provider = provider();
        let algorithms = provider.signature_verification_algorithms;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has suites of both versions");
        let mut roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        match &self.anchors {
            Anchors::Public => {}
            Anchors::And(path) => {
                for certificate in load_certificates(path)? {
                    roots.add(certificate).map_err(|error| {
                        let reason = format_args!("a certificate in it is malformed: {error}");
                        CertificateError::malformed(path, reason)
                    })?;
                }
            }
            Anchors::Only(path) => {
                let mut certificates = load_certificates(path)?;
                let verifier = Pinned {
                    certificate: certificates.swap_remove(0),
                    algorithms,
                };
                return Ok(builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
                    .with_no_client_auth());
            }
        }
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

impl Default for Trust {
    /// The public authorities alone.
    fn default() -> Trust {
        Trust::new(None)
    }
}

/// Whether the same is trusted.
impl PartialEq for Trust {
    fn eq(&self, other: &Trust) -> bool {
        self.anchors == other.anchors
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trust").field(&self.anchors).finish()
    }
}

#[cfg(feature = "tls")]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tls::testing::Certificates;

    #[test]
    fn a_configuration_is_kept_until_its_file_changes() {
        let folder = Certificates::default();
        let first = folder.certificate("first", &["localhost"]);
        let second = folder.certificate("second", &["localhost"]);
        let file = folder.path().join("ca.pem");
        fs::copy(&first.certificate, &file).unwrap();
        for trust in [Trust::new(Some(&file)), Trust::pinned(&file)] {
            let before = trust.client_config().unwrap();
            assert!(Arc::ptr_eq(&before, &trust.client_config().unwrap()));
            folder.replace(&second.certificate, &file);
            assert!(!Arc::ptr_eq(&before, &trust.client_config().unwrap()));
            fs::remove_file(&file).unwrap();
            assert!(trust.client_config().is_err(), "it trusts nothing then");
            folder.replace(&first.certificate, &file);
            assert!(trust.client_config().is_ok());
        }
    }
}
