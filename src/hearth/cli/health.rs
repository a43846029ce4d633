//! `hearth health`: asks /health, for scripts and container health checks.

use std::time::Duration;

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::http;
use super::running_server::RunningServer;
use net::tls::Trust;

pub const COMMAND: Command = Command::new(
    "\
health: Check that the server is running and healthy
For scripts and containers: the exit code is 0 if /health answers ok within 5 seconds, else 1.
--url URL  The server, such as http://192.168.1.20:5000; without
           it, the one that runs on the data directory
--ca-file
--data-dir",
)
.run(run);

/// Time limit of the answer.
const LIMIT: Duration = Duration::from_secs(5);

/// `hearth health`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let (url, trust) = match arguments.text("url")? {
        Some(url) => {
            let trust = http::trust(arguments, context)?;
            (url.trim_end_matches('/').to_owned(), trust)
        }
        None => {
            let directory = DataDirectory::of(arguments, context)?;
            let server = RunningServer::find(&directory).ok_or_else(|| {
                CliError::failed(format!(
                    "no server is running on {}; start one with `hearth serve`",
                    directory.path().display()
                ))
            })?;
            let url = server.url().ok_or_else(|| {
                CliError::failed(format!(
                    "the server (process {}) is not listening yet",
                    server.process()
                ))
            })?;
            (url, server.trust())
        }
    };
    let text = ask(&url, &trust).map_err(CliError::Failed)?;
    context.print(format_args!("{text}"))
}

/// What /health of the server at `url` answers.
///
/// # Errors
///
/// Why it is not healthy, as a sentence.
pub fn ask(url: &str, trust: &Trust) -> Result<String, String> {
    let asked = format!("{url}/health");
    match http::send(trust, "GET", &asked, &[], None, LIMIT) {
        Ok((200, text)) if is_healthy(&text) => Ok(text),
        Ok((200, _)) => Err(format!(
            "{asked} gave an unexpected answer; is this Hearth?"
        )),
        Ok((status, text)) => Err(format!("{asked} answered {status}: {text}")),
        Err(error) => Err(format!("{asked}: {error}")),
    }
}

fn is_healthy(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|answer| answer["status"] == "ok")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_server_is_recognised() {
        for (text, is) in [
            (r#"{"status": "ok", "uptime_seconds": 1}"#, true),
            (r#"{"status": "error"}"#, false),
            ("It works!", false),
        ] {
            assert_eq!(is_healthy(text), is, "{text}");
        }
        let said = ask("http://127.0.0.1:1", &Trust::default()).unwrap_err();
        assert!(said.contains("http://127.0.0.1:1/health"), "{said}");
    }
}
