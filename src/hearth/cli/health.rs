//! `hearth health`: asks /health, for scripts and for a container's check.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::{Arguments, CA_FILE, DATA_DIR, option};
use super::command::Command;
use super::context::{Context, Failure, Outcome};
use super::data_directory::DataDirectory;
use super::http;
use super::running_server::RunningServer;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, ClientResponse, HttpClient};
use net::tls::Trust;

pub const COMMAND: Command = Command::new("health", "Check that the server is running and healthy")
    .details(
        "\
For scripts and containers: the exit code is 0 if /health answers ok within 5 seconds, else 1.",
    )
    .options(&[
        option(
            "url",
            "URL",
            "The server, such as http://192.168.1.20:5000; without\n\
it, the one that runs on the data directory",
        ),
        CA_FILE,
        DATA_DIR,
    ])
    .run(run);

/// How long the answer may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read; ours has less than 64.
const MOST_BYTES: usize = 4 * 1024;

/// `hearth health`
fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let (url, trust) = match arguments.text("url")? {
        Some(url) => {
            let trust = http::trust(arguments, context)?;
            (url.trim_end_matches('/').to_owned(), trust)
        }
        None => {
            let directory = DataDirectory::of(arguments, context)?;
            let server = RunningServer::find(&directory).ok_or_else(|| {
                Failure::failed(format!(
                    "no server runs on {}; `hearth serve` starts one",
                    directory.path().display()
                ))
            })?;
            let url = url_of(&server).ok_or_else(|| {
                Failure::failed(format!(
                    "the server (process {}) does not listen yet",
                    server.process()
                ))
            })?;
            (url, server.trust())
        }
    };
    let text = ask(&url, trust).map_err(Failure::Failed)?;
    writeln!(context.output, "{text}")?;
    Ok(())
}

/// Where a server on this machine is reached, if it listens yet.
pub fn url_of(server: &RunningServer) -> Option<String> {
    let address = server.addresses.first()?;
    Some(format!("{}://{}", server.scheme(), from_here(*address)))
}

/// What /health of the server at `url` answers, which must be one of `trust`.
///
/// # Errors
/// Why it is not well, as a sentence.
pub fn ask(url: &str, trust: Trust) -> Result<String, String> {
    let asked = format!("{url}/health");
    let outgoing = ClientRequest {
        method: "GET",
        url: &asked,
        headers: &[],
        body: None,
        deadline: Instant::now() + LIMIT,
        cancel: &Cancel::default(),
    };
    let read = |answer: &mut ClientResponse| -> Result<(u16, String), ClientError> {
        let body = answer.read_all(MOST_BYTES)?;
        Ok((answer.status(), String::from_utf8_lossy(&body).into_owned()))
    };
    match HttpClient::new().trusting(trust).exchange(&outgoing, read) {
        Ok((200, text)) if is_well(&text) => Ok(text),
        Ok((200, _)) => Err(format!("{asked} answers something else; is this Hearth?")),
        Ok((status, text)) => Err(format!("{asked} answered {status}: {text}")),
        Err(error) => Err(format!("{asked}: {error}")),
    }
}

fn is_well(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|answer| answer["status"] == "ok")
}

/// The address by which this machine reaches its own server.
fn from_here(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        // IPv6 takes IPv4 in, and not every machine has ::1.
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_loopback() {
        for (listens, asked) in [
            ("[::]:5000", "127.0.0.1:5000"),
            ("0.0.0.0:81", "127.0.0.1:81"),
            ("[::1]:81", "[::1]:81"),
            ("192.0.2.7:5000", "192.0.2.7:5000"),
        ] {
            assert_eq!(
                from_here(listens.parse().unwrap()).to_string(),
                asked,
                "{listens}"
            );
        }
    }

    #[test]
    fn whoever_is_not_well_or_not_there_is_told_apart() {
        for (text, is) in [
            (r#"{"status": "ok", "uptime_seconds": 1}"#, true),
            (r#"{"status": "error"}"#, false),
            ("It works!", false),
        ] {
            assert_eq!(is_well(text), is, "{text}");
        }
        let said = ask("http://127.0.0.1:1", Trust::default()).unwrap_err();
        assert!(said.contains("http://127.0.0.1:1/health"), "{said}");
    }
}
