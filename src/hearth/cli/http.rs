//! The HTTP requests of commands that ask a server for one thing.

use std::path::Path;
use std::time::Duration;

use ureq::http::Response;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body, Error};

use super::arguments::Arguments;
use super::context::{Context, Failure};
use super::data_directory::DataDirectory;
use config::Settings;
use net::http_client::base_config;
use net::tls::connector::connect_with;
use net::tls::{Trust, load_certificates};

/// Largest answer that is read, in bytes.
const ANSWER_BYTES: u64 = 1 << 20;

/// Whom to trust elsewhere: the authorities of `--ca-file`, else those of the
/// configuration, if there is one here.
///
/// # Errors
/// `--ca-file` names no file with certificates.
pub fn trust(arguments: &Arguments, context: &Context) -> Result<Trust, Failure> {
    if let Some(file) = arguments.raw("ca-file") {
        let file = Path::new(file);
        load_certificates(file).map_err(|error| Failure::failed(format!("--ca-file: {error}")))?;
        return Ok(Trust::new(Some(file)));
    }
    let config = DataDirectory::of(arguments, context)
        .ok()
        .and_then(|directory| Settings::load(&directory.config()).ok())
        .map(|settings| settings.current());
    let ca_file = config.and_then(|config| config.tls.ca_file.clone());
    Ok(Trust::new(ca_file.as_deref()))
}

/// Asks servers that `trust` accepts; each exchange may take `limit`.
pub fn agent(trust: Trust, limit: Duration) -> Agent {
    let config = base_config().timeout_global(Some(limit)).build();
    Agent::with_parts(config, connect_with(trust), DefaultResolver::default())
}

/// The text of an answer.
///
/// # Errors
/// It breaks off, is not UTF-8, or is longer than 1 MiB.
pub fn text(mut answer: Response<Body>) -> Result<String, Error> {
    answer
        .body_mut()
        .with_config()
        .limit(ANSWER_BYTES)
        .read_to_string()
}
