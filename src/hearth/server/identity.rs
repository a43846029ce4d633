//! The server's certificate, if it has one.

use super::StartError;
use config::Config;
use net::tls::{CertificateError, load_certificates};

/// Reads the certificate that the configuration names, and checks `tls.ca_file`,
/// without which no https connection could be made.
///
/// # Errors
/// It cannot be used.
#[cfg(feature = "tls")]
pub fn open(config: &Config) -> Result<Option<std::sync::Arc<net::tls::Acceptor>>, StartError> {
    check_trusted(config)?;
    let Some((certificate, key)) = config.tls.identity() else {
        return Ok(None);
    };
    let acceptor = net::tls::Acceptor::open(certificate, key).map_err(unusable)?;
    Ok(Some(std::sync::Arc::new(acceptor)))
}

/// Refuses a configuration with a certificate: whoever wants TLS must not be
/// served without it. What it trusts is looked at here, too.
#[cfg(not(feature = "tls"))]
pub fn open(config: &Config) -> Result<(), StartError> {
    match config.tls.identity() {
        Some(_) => Err(StartError::new(
            "\"tls.cert\" is set in config.json, but this hearth was built without TLS: build it \
             with the feature `tls`, or remove \"tls\"",
        )),
        None => check_trusted(config),
    }
}

fn unusable(error: CertificateError) -> StartError {
    StartError::new(format_args!("\"tls\" in config.json: {error}"))
}

fn check_trusted(config: &Config) -> Result<(), StartError> {
    if let Some(path) = &config.tls.ca_file {
        load_certificates(path).map_err(unusable)?;
    }
    Ok(())
}
