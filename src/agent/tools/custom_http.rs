//! Custom tools that are HTTP requests.

use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::HeaderValue;

use super::answer::{is_expected, shown};
use super::definition::{Arguments, RunLimit, cancelled};
use super::output::{Captured, shorten};
use super::schema::properties;
use super::template::{Values, encode};
use config::{CustomHttp, CustomRun, CustomTool};
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, ClientResponse, HttpClient};
use net::tls::Trust;

/// Bytes of an error's body that the model is shown.
const ERROR_BODY_BYTES: usize = 1_000;
/// Characters of an answer of something else that a person is shown.
const STRANGE_ANSWER: usize = 200;

/// An HTTP request whose parts are templates and whose response is the result.
pub(super) struct Request<'a> {
    pub(super) tool: &'a CustomTool,
    pub(super) http: &'a CustomHttp,
    pub(super) arguments: &'a Arguments,
    /// Whether an answer of which nothing can be shown as the tool says is an error.
    pub(super) is_trial: bool,
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) struct Failure {
    /// For the model.
    pub(super) text: String,
    /// Whether what it is sent to has failed, or refuses it whatever its arguments are.
    pub(super) needs_admin: bool,
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure {
            text,
            needs_admin: false,
        }
    }
}

/// A request with the arguments in their places.
struct Prepared {
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request<'_> {
    /// Sends the request and reads the response.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn send(
        &self,
        http_client: &HttpClient,
        turn_deadline: Instant,
        cancel: &Cancel,
    ) -> Result<String, Failure> {
        let name = &self.tool.name;
        let limit = RunLimit::new(self.tool.timeout_seconds, turn_deadline);
        let request = self.prepare()?;
        let mut headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        // A kept connection may be dead, and a request with an effect must not be
        // sent twice to find out.
        headers.push(("connection", "close"));
        let outgoing = ClientRequest {
            method: self.http.method,
            url: &request.url,
            headers: &headers,
            body: request.body.as_deref(),
            deadline: limit.deadline,
            cancel,
        };
        let answer = http_client.exchange(&outgoing, |answer| self.answer(answer));
        match answer {
            Ok(answer) => answer,
            Err(ClientError::Cancelled) => Err(cancelled(name).into()),
            Err(_) if Instant::now() >= limit.deadline => Err(Failure {
                text: limit.exceeded(name),
                needs_admin: limit.deadline < turn_deadline,
            }),
            Err(error) => {
                let cause = cause(&error);
                log::warn!("tool {name:?} got no answer: {cause}");
                Err(Failure {
                    text: format!("the tool {name:?} got no answer: {cause}"),
                    needs_admin: true,
                })
            }
        }
    }

    /// The request with the arguments in their places.
    fn prepare(&self) -> Result<Prepared, String> {
        let parameters = properties(&self.tool.parameters);
        let mut arguments = self.arguments.clone();
        for (name, schema) in parameters.into_iter().flatten() {
            if let (None, Some(default)) = (arguments.get(name), schema.get("default")) {
                arguments.insert(name.clone(), default.clone());
            }
        }
        let values = Values {
            parameters,
            arguments: &arguments,
        };
        let url = values.expand(&self.http.url, encode);
        let path = url.split(['?', '#']).next().unwrap_or_default();
        if url != self.http.url && path.split('/').any(|segment| matches!(segment, "." | "..")) {
            // Dots are not percent-encoded, but servers walk up the path on them.
            return Err("an argument must not be \".\" or \"..\"".to_owned());
        }
        let mut headers = Vec::with_capacity(self.http.headers.len() + 1);
        let mut media_type = None;
        for (header, template) in &self.http.headers {
            let value = values.expand(template.expose(), str::to_owned);
            if HeaderValue::from_bytes(value.as_bytes()).is_err() {
                return Err(format!(
                    "an argument holds a character that the header {header:?} cannot carry"
                ));
            }
            if header.eq_ignore_ascii_case("content-type") {
                media_type = Some(value.to_ascii_lowercase());
            }
            headers.push((header.clone(), value));
        }
        let body = self.body(&values, media_type.as_deref());
        if body.is_some() && media_type.is_none() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Ok(Prepared { url, headers, body })
    }

    /// The body: the expanded template, or the arguments where there is none
    /// and the method has a body. A template that is one string under a media
    /// type other than JSON is sent as that text.
    fn body(&self, values: &Values<'_>, media_type: Option<&str>) -> Option<Vec<u8>> {
        let json = match (&self.http.body, media_type) {
            (Some(Value::String(template)), Some(media_type)) if !media_type.contains("json") => {
                let is_form = media_type.starts_with("application/x-www-form-urlencoded");
                let encode = if is_form { encode } else { str::to_owned };
                return Some(values.expand(template, encode).into_bytes());
            }
            (Some(template), _) => values.expand_json(template),
            (None, _) if matches!(self.http.method, "POST" | "PUT" | "PATCH") => {
                Value::Object(values.arguments.clone())
            }
            (None, _) => return None,
        };
        Some(json.to_string().into_bytes())
    }

    /// What the model reads of a response.
    fn answer(&self, answer: &mut ClientResponse) -> Result<Result<String, Failure>, ClientError> {
        let status = answer.status();
        if (200..300).contains(&status) {
            let body = read(answer, self.tool.output_bytes)?.into_text();
            let shown = match self.http.show.as_slice() {
                [] => None,
                forms if self.is_trial && !is_expected(forms, &body) => {
                    return Ok(Err(format!(
                        "the tool {:?} was answered with something else than it reads: {}",
                        self.tool.name,
                        shorten(body.trim(), STRANGE_ANSWER)
                    )
                    .into()));
                }
                forms => shown(forms, &body),
            };
            return Ok(Ok(shown.unwrap_or(body)));
        }
        let name = &self.tool.name;
        let said = match status {
            300..=399 => ", a redirect, which is not followed".to_owned(),
            _ => format!(": {}", read(answer, ERROR_BODY_BYTES)?.into_text()),
        };
        Ok(Err(Failure {
            text: format!("the tool {name:?} was answered with status {status}{said}"),
            needs_admin: matches!(status, 300..=399 | 401 | 403 | 500..),
        }))
    }
}

/// Runs a tool that is an HTTP request once, outside of any turn, for its owner to see
/// whether it works.
///
/// # Errors
/// What went wrong, as the model would be told, or that the answer is of something else.
pub fn try_once(
    tool: &CustomTool,
    arguments: &Arguments,
    trust: Trust,
    limit: Duration,
) -> Result<String, String> {
    let CustomRun::Http(http) = &tool.run else {
        return Err(format!("the tool {:?} makes no HTTP request", tool.name));
    };
    let request = Request {
        tool,
        http,
        arguments,
        is_trial: true,
    };
    let http_client = HttpClient::new().trusting(trust);
    let sent = request.send(&http_client, Instant::now() + limit, &Cancel::default());
    sent.map_err(|failure| failure.text)
}

/// The first `limit` bytes of a body.
pub(super) fn read(answer: &mut ClientResponse, limit: usize) -> Result<Captured, ClientError> {
    let mut captured = Captured::new(limit);
    let mut buffer = vec![0; 8 * 1024];
    while !captured.is_cut() {
        match answer.read(&mut buffer)? {
            0 => break,
            length => captured.push(&buffer[..length]),
        }
    }
    Ok(captured)
}

/// Why there was no answer, without the address, which may hold a key.
pub(super) fn cause(error: &ClientError) -> String {
    match error {
        ClientError::Address(_) => "its address is not valid".to_owned(),
        ClientError::NotHttp(_) => "the answer is not valid HTTP".to_owned(),
        ClientError::Untrusted(_) => "no secure connection could be made".to_owned(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
