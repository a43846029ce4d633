//! The cryptography that all TLS here uses.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// ring, named explicitly: rustls would else look for a default of the process.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
