//! The requests to the Bot API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::problem::{LONGEST_PAUSE, Problem};
use crate::outgoing::post::reason;
use crate::outgoing::schedule::seconds_to_wait;
use crate::outgoing::telegram::method_url;
use base::visible::one_line;
use config::TelegramChannel;
use net::cancel::Cancel;
use net::http_client::{BODY_LIMIT, ClientError, ClientRequest, HttpClient};

/// For other requests, and for a file.
pub const CALL: Duration = Duration::from_secs(10);
const FILE: Duration = Duration::from_secs(30);
/// How often Telegram is asked for a file, or to pass on a short answer.
const TRIES: u32 = 3;
/// Most bytes of a file that bots can get.
const FILE_BYTES: usize = 20 * 1024 * 1024;

/// What asks the Bot API.
pub struct Api {
    pub channel: TelegramChannel,
    pub client: HttpClient,
    pub cancel: Cancel,
}

impl Api {
    /// The bytes of a file; none where it cannot be had.
    pub fn file(&self, id: &str) -> Option<Vec<u8>> {
        let found = self.call_patiently("getFile", &json!({ "file_id": id }))?;
        let path = found["file_path"].as_str();
        let path = path.filter(|path| !path.contains(".."))?;
        let base = self.channel.base_url.trim_end_matches('/');
        let url = format!("{base}/file/bot{}/{path}", self.channel.bot_token.expose());
        let request = ClientRequest {
            method: "GET",
            url: &url,
            headers: &[],
            body: None,
            deadline: Instant::now() + FILE,
            cancel: &self.cancel,
        };
        let got = self.client.exchange(&request, |response| {
            let data = response.read_all(FILE_BYTES)?;
            Ok::<_, ClientError>((response.status() == 200).then_some(data))
        });
        got.unwrap_or_else(|error| {
            log::info!(
                "a file of Telegram: {}",
                reason(&error, "its address", FILE)
            );
            None
        })
    }

    /// Calls a method again where it may succeed then, and gives up in the end.
    pub fn call_patiently(&self, method: &str, body: &Value) -> Option<Value> {
        for failures in 0..TRIES {
            let problem = match self.call(method, body, CALL) {
                Ok(answer) => return Some(answer),
                Err(problem) => problem,
            };
            log::info!("{method}: {problem}");
            let is_final = matches!(
                problem,
                Problem::Refused { wait: None, status, .. } if status < 500
            );
            let pause = problem.pause(failures).min(LONGEST_PAUSE);
            if is_final || failures + 1 == TRIES || self.cancel.wait(pause) {
                break;
            }
        }
        None
    }

    /// Calls a method of the Bot API.
    pub fn call(&self, method: &str, body: &Value, limit: Duration) -> Result<Value, Problem> {
        let (url, body) = (method_url(&self.channel, method), body.to_string());
        let request = ClientRequest {
            method: "POST",
            url: &url,
            headers: &[("content-type", "application/json")],
            body: Some(body.as_bytes()),
            deadline: Instant::now() + limit,
            cancel: &self.cancel,
        };
        let got = self.client.exchange(&request, |response| {
            let body = response.read_all(BODY_LIMIT)?;
            Ok::<_, ClientError>((response.status(), body))
        });
        let unanswered = |error: ClientError| {
            Problem::Unanswered(reason(
                &error,
                "the base_url of the telegram channel",
                limit,
            ))
        };
        let (status, body) = got.map_err(unanswered)?;
        let mut answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if answer["ok"] == true {
            return Ok(answer["result"].take());
        }
        let says = one_line(answer["description"].as_str().unwrap_or("no reason given"));
        Err(Problem::Refused {
            status: answer["error_code"].as_u64().unwrap_or(status.into()),
            says: says.chars().take(200).collect(),
            wait: seconds_to_wait(&answer),
        })
    }
}
