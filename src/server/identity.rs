//! Who the server is to those who connect: its certificate, if it has one.

use super::StartError;
use crate::config::Config;

/// Reads the certificate that the configuration names.
///
/// Errors: it cannot be used.
#[cfg(feature = "tls")]
pub fn open(config: &Config) -> Result<Option<std::sync::Arc<crate::tls::Acceptor>>, StartError> {
    let Some((certificate, key)) = config.tls.identity() else {
        return Ok(None);
    };
    let acceptor = crate::tls::Acceptor::open(certificate, key)?;
    Ok(Some(std::sync::Arc::new(acceptor)))
}

/// Refuses a configuration with a certificate: whoever wants TLS must not be
/// served without it.
#[cfg(not(feature = "tls"))]
pub fn open(config: &Config) -> Result<(), StartError> {
    match config.tls.identity() {
        Some(_) => Err(StartError::WithoutTls),
        None => Ok(()),
    }
}
