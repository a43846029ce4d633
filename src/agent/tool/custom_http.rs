//! Custom tools that are HTTP requests.

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use ureq::http::{HeaderValue, Request, Response};
use ureq::{Agent, Body};

use super::output::Captured;
use super::schema::properties;
use super::template::{Values, as_is, percent_encode};
use super::{RunLimit, Source, Tool, ToolContext, cancelled, spec_of};
use crate::agent::provider::{Cancel, ToolSpec};
use crate::config::CustomTool;
use crate::secret::Secret;

/// Longest that finding the address and connecting may take, each.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an error's body that the model is shown.
const ERROR_BODY_BYTES: usize = 1_000;

/// An HTTP request whose parts are templates and whose response is the result.
pub(super) struct HttpTool {
    spec: ToolSpec,
    method: String,
    url: String,
    headers: Vec<(String, Secret)>,
    body: Option<Value>,
    is_read_only: bool,
    timeout_seconds: u64,
    output_bytes: usize,
}

impl HttpTool {
    /// The tool of a configuration that makes this request.
    pub(super) fn new(
        tool: &CustomTool,
        method: &str,
        url: &str,
        headers: &[(String, Secret)],
        body: Option<&Value>,
    ) -> HttpTool {
        HttpTool {
            spec: spec_of(tool),
            method: method.to_owned(),
            url: url.to_owned(),
            headers: headers.to_owned(),
            body: body.cloned(),
            is_read_only: tool.read_only,
            timeout_seconds: tool.timeout_seconds,
            output_bytes: tool.output_bytes,
        }
    }

    fn execute(
        &self,
        arguments: &Map<String, Value>,
        turn_deadline: Instant,
        cancel: &Cancel,
    ) -> Result<String, String> {
        let name = &self.spec.name;
        let limit = RunLimit::new(self.timeout_seconds, turn_deadline);
        let request = self.request(arguments)?;
        let left = limit
            .deadline
            .checked_duration_since(Instant::now())
            .ok_or_else(|| limit.exceeded(name))?;
        let agent = agent(left);
        let breaker = agent.clone();
        let answer = cancel.guard(
            move || breaker.shutdown(),
            || {
                let response = match request.body() {
                    Some(_) => agent.run(request.map(Option::unwrap_or_default)),
                    None => agent.run(request.map(drop)),
                };
                self.answer(response?)
            },
        );
        match answer {
            Ok(answer) => answer,
            Err(_) if cancel.is_cancelled() => Err(cancelled(name)),
            Err(_) if Instant::now() >= limit.deadline => Err(limit.exceeded(name)),
            Err(ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve)) => {
                Err(format!("the tool {name:?} could not connect in time"))
            }
            Err(error) => {
                let cause = cause(&error);
                log::warn!("tool {name:?} got no answer: {cause}");
                Err(format!("the tool {name:?} got no answer: {cause}"))
            }
        }
    }

    /// The request for these arguments.
    fn request(&self, arguments: &Map<String, Value>) -> Result<Request<Option<Vec<u8>>>, String> {
        let values = Values {
            parameters: properties(&self.spec.parameters),
            arguments,
        };
        let url = values.expand(&self.url, percent_encode);
        let path = url.split(['?', '#']).next().unwrap_or_default();
        if url != self.url && path.split('/').any(|segment| matches!(segment, "." | "..")) {
            // Dots are not percent-encoded, but servers walk up the path on them.
            return Err("an argument must not be \".\" or \"..\"".to_owned());
        }
        let mut request = Request::builder().method(self.method.as_str()).uri(url);
        let mut media_type = None;
        for (header, template) in &self.headers {
            let value = values.expand(template.expose(), as_is);
            let value = HeaderValue::try_from(value).map_err(|_| {
                format!("an argument holds a character that the header {header:?} cannot carry")
            })?;
            if header.eq_ignore_ascii_case("content-type") {
                media_type = Some(value.to_str().unwrap_or_default().to_ascii_lowercase());
            }
            request = request.header(header.as_str(), value);
        }
        let body = self.body(&values, media_type.as_deref());
        if body.is_some() && media_type.is_none() {
            request = request.header("content-type", "application/json");
        }
        request.body(body).map_err(|error| {
            log::warn!("tool {:?}: {error}", self.spec.name);
            format!(
                "the tool {:?} does not make a valid request: {error}",
                self.spec.name
            )
        })
    }

    /// The body: the expanded template, or the arguments where there is none
    /// and the method has a body. A template that is one string under a media
    /// type other than JSON is sent as that text.
    fn body(&self, values: &Values<'_>, media_type: Option<&str>) -> Option<Vec<u8>> {
        let json = match (&self.body, media_type) {
            (Some(Value::String(template)), Some(media_type)) if !media_type.contains("json") => {
                let is_form = media_type.starts_with("application/x-www-form-urlencoded");
                let encode = if is_form { percent_encode } else { as_is };
                return Some(values.expand(template, encode).into_bytes());
            }
            (Some(template), _) => values.expand_json(template),
            (None, _) if matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") => {
                Value::Object(values.arguments.clone())
            }
            (None, _) => return None,
        };
        Some(json.to_string().into_bytes())
    }

    /// The model's view of a response.
    fn answer(&self, response: Response<Body>) -> Result<Result<String, String>, ureq::Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(Ok(read(response, self.output_bytes)?));
        }
        let name = &self.spec.name;
        if status.is_redirection() {
            return Ok(Err(format!(
                "the tool {name:?} was answered with status {}, a redirect, which is not followed",
                status.as_u16()
            )));
        }
        Ok(Err(format!(
            "the tool {name:?} was answered with status {}: {}",
            status.as_u16(),
            read(response, ERROR_BODY_BYTES)?
        )))
    }
}

impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> Source {
        Source::Custom
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        context: &ToolContext<'_>,
    ) -> Result<String, String> {
        self.execute(arguments, context.deadline, context.cancel)
    }
}

/// The agent of one run, which must be over after `left`. It is not shared,
/// since cancelling shuts it down for good.
fn agent(left: Duration) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        // A redirect would carry the configured headers to another host.
        .max_redirects(0)
        .max_idle_connections(0)
        .timeout_global(Some(left))
        .timeout_per_call(Some(left))
        .timeout_resolve(Some(left.min(CONNECT_LIMIT)))
        .timeout_connect(Some(left.min(CONNECT_LIMIT)))
        .timeout_send_request(Some(left))
        .timeout_send_body(Some(left))
        .timeout_recv_response(Some(left))
        .timeout_recv_body(Some(left))
        .build()
        .into()
}

/// The beginning of a body as text; what is beyond the limit is not read.
fn read(response: Response<Body>, limit: usize) -> Result<String, ureq::Error> {
    let mut reader = response.into_body().into_reader();
    let mut captured = Captured::new(limit);
    let mut buffer = vec![0; 8 * 1024];
    while !captured.is_cut() {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => captured.push(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(captured.into_text())
}

/// Why there was no answer, without the address, which may hold a key.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "its host was not found".to_owned(),
        ureq::Error::Io(error) => error.kind().to_string(),
        ureq::Error::Timeout(_) => "it took too long".to_owned(),
        ureq::Error::Rustls(_) | ureq::Error::Tls(_) => {
            "the secure connection could not be made".to_owned()
        }
        ureq::Error::BadUri(_) => "its address is not valid".to_owned(),
        _ => "the answer is not valid HTTP".to_owned(),
    }
}

#[cfg(test)]
mod tests;
