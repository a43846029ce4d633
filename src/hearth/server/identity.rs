//! The server's certificate, if it has one.

#[cfg(feature = "tls")]
use std::path::Path;

use super::StartError;
#[cfg(feature = "tls")]
use base::clock::Timestamp;
use config::Config;
#[cfg(feature = "tls")]
use net::tls::household;
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

/// Renews the certificate from the household's authority if that is due. What cannot be
/// renewed serves as long as it is good.
///
/// # Errors
/// There is no certificate, and none can be made.
#[cfg(feature = "tls")]
pub fn renew(config: &Config, data_dir: &Path, now: Timestamp) -> Result<(), StartError> {
    if !config.tls.household {
        return Ok(());
    }
    match household::renew(data_dir, now) {
        Err(error) if config.tls.identity().is_some_and(|(path, _)| path.exists()) => {
            log::warn!("tls: the certificate is not renewed: {error}");
        }
        Err(error) => {
            return Err(StartError::new(format_args!(
                "\"tls.household\" in config.json: {error}; or make another authority: \
                 hearth tls household --force"
            )));
        }
        Ok(_) => {}
    }
    Ok(())
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
