//! TLS: certificates and keys from files, what is trusted, and how the server
//! shows who it is. rustls does the protocol, ring the cryptography; TLS 1.2
//! and 1.3, no older version.
//!
//! [`Trust`] decides for outgoing connections, the [`Acceptor`] holds the server's
//! certificate for incoming ones. `stream` carries the bytes, and for outgoing
//! HTTP [`connector`].

#[cfg(feature = "tls")]
mod acceptor;
mod certificate;
pub mod connector;
mod der;
#[cfg(feature = "tls")]
pub mod household;
mod inspect;
#[cfg(feature = "tls")]
mod issue;
mod pinned;
mod reason;
#[cfg(feature = "tls")]
pub mod self_signed;
pub mod stream;
mod trust;

#[cfg(all(test, feature = "tls"))]
pub(crate) mod testing;

#[cfg(feature = "tls")]
pub use acceptor::Acceptor;
pub use certificate::{CertificateError, load_certificates, load_key, pem};
pub use inspect::{Inspected, fingerprint, inspect};
pub use reason::in_words;
pub use trust::Trust;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// ring, named explicitly: rustls would else look for a default of the process.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
