//! Single HTTP requests of commands to a server.

use std::path::Path;
use std::time::{Duration, Instant};

use super::arguments::Arguments;
use super::context::{CliContext, CliError};
use super::data_directory::DataDirectory;
use config::Settings;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, ClientResponse, HttpClient};
use net::tls::{Trust, load_certificates};

/// Largest body that is read, in bytes.
const BODY_BYTES: usize = 1 << 20;

/// Which certificates to trust: those of `--ca-file`, else those of the
/// configuration, if there is one here.
///
/// # Errors
///
/// `--ca-file` is not a file with certificates.
pub fn trust(arguments: &Arguments, context: &CliContext) -> Result<Trust, CliError> {
    if let Some(file) = arguments.raw("ca-file") {
        let file = Path::new(file);
        load_certificates(file).map_err(|error| CliError::failed(format!("--ca-file: {error}")))?;
        return Ok(Trust::new(Some(file)));
    }
    let config = DataDirectory::of(arguments, context)
        .ok()
        .and_then(|directory| Settings::load(&directory.config()).ok())
        .map(|settings| settings.current());
    let ca_file = config.and_then(|config| config.tls.ca_file.clone());
    Ok(Trust::new(ca_file.as_deref()))
}

/// Sends a request, with `body` as JSON unless the headers say otherwise, to a server that `trust`
/// accepts. Returns the status and the text of the answer.
///
/// # Errors
///
/// The server cannot be reached or trusted, or does not answer within `limit`, or
/// its answer is longer than 1 MiB.
pub fn send(
    trust: &Trust,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
    limit: Duration,
) -> Result<(u16, String), ClientError> {
    let mut headers = headers.to_vec();
    let is_typed = headers.iter().any(|(name, _)| *name == "content-type");
    if body.is_some() && !is_typed {
        headers.push(("content-type", "application/json"));
    }
    let request = ClientRequest {
        method,
        url,
        headers: &headers,
        body: body.map(str::as_bytes),
        deadline: Instant::now() + limit,
        cancel: &Cancel::default(),
    };
    let read = |answer: &mut ClientResponse| {
        let body = answer.read_all(BODY_BYTES)?;
        Ok((answer.status(), String::from_utf8_lossy(&body).into_owned()))
    };
    HttpClient::new()
        .trusting(trust.clone())
        .exchange(&request, read)
}
