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
mod error;
mod inspect;
mod pinned;
mod provider;
mod reason;
#[cfg(feature = "tls")]
pub mod self_signed;
mod stamp;
pub mod stream;
mod trust;

#[cfg(all(test, feature = "tls"))]
pub(crate) mod testing;

#[cfg(feature = "tls")]
pub use acceptor::Acceptor;
pub use certificate::{load_certificates, load_key};
pub use error::CertificateError;
pub use inspect::{Inspected, fingerprint, inspect};
pub use reason::in_words;
pub use trust::Trust;
