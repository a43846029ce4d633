//! Why a request to a model server failed, and how a person and the log read it. What to do
//! about it is in `classify`.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::server_capabilities::Feature;
use crate::model::{Cause, ProviderError, Refusal};
use base::error::{Code, Error};
use net::http_client::{ClientError, ClientResponse};

/// The longest, in seconds, for which another server is asked instead because of it.
const LONGEST_REST: f64 = 3600.0;
/// Most characters that are kept of a body that is not JSON.
const EXCERPT: usize = 300;
/// The longest wait, in seconds, that a server may ask for: a person is waiting.
const LONGEST_WAIT: f64 = 60.0;
/// How services say that nothing is left that was paid for.
const USED_UP: [&str; 9] = [
    "insufficient_quota",
    "insufficient balance",
    "insufficient credit",
    "credit balance",
    "all available credits",
    "billing_hard_limit",
    "billing hard limit",
    "spend_limit",
    "spending limit",
];
/// How they name what a day or a month allows, unless they also ask for a short wait.
const PER_DAY: [&str; 5] = ["per day", "per-day", "perday", "per month", "daily"];
/// How they name what a minute allows.
const PER_MINUTE: [&str; 4] = ["rate_limit", "rate limit", "per min", "perminute"];
/// How they name either.
const QUOTA: [&str; 4] = ["current quota", "quota exceeded", "billing", "balance"];
/// How they say that they have no such model, with 400.
const UNKNOWN_MODEL: [&str; 6] = [
    "model_not_found",
    "invalid_model",
    "invalid model",
    "model not exist",
    "not a valid model",
    "model does not exist",
];
/// What stands before the time that a server asks to wait.
const BEFORE_WAIT: [&str; 4] = [
    "try again in ",
    "retry in ",
    "retry after ",
    "try again after ",
];

/// What to do about a failed request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Send it again, after as long as the server asks for.
    Wait(Option<Duration>),
    /// Send it without this, or in another form.
    Without(Feature),
    /// It is too long for the model.
    Shorter(Overflow),
    /// Another server may answer it; this one will not.
    NextServer,
    /// The request is to blame.
    GiveUp,
}

/// That a request is too long for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The window has so many tokens, as the server says.
    Window(usize),
    /// The server does not say how large the window is.
    Unnamed,
    /// Perhaps: the server, or what stands before it, gives no reason.
    Perhaps,
}

/// Why one attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// The exchange failed.
    Client(ClientError),
    /// The server reported an error.
    Reported(ErrorResponse),
    /// The body is not JSON: what is wrong, and how it begins.
    NotJson(String),
    /// The body is JSON, but holds no reply.
    NoReply,
    /// No word of a reply came in time, although the server had begun to answer.
    NoWord,
    /// The stream ended before the reply did.
    CutShort,
    /// The provider's content filter withheld the reply, for this finish reason.
    Withheld(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::Client(error)
    }
}

impl Failure {
    /// The body is not JSON.
    pub fn not_json(error: &serde_json::Error, body: &[u8]) -> Failure {
        Failure::NotJson(format!("{error}: {}", beginning(body)))
    }

    /// Whether it says only that a kept connection was closed.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Failure::Client(ClientError::Interrupted { stale: true, .. })
        )
    }

    /// The error to report for a request to `model`. `answered` says whether the head of a
    /// successful reply had arrived.
    pub fn into_error(
        self,
        verdict: Verdict,
        endpoint: &Endpoint,
        model: &str,
        answered: bool,
    ) -> ProviderError {
        let (says, detail) = match self {
            Failure::Client(error @ ClientError::Interrupted { .. }) if answered => {
                ("cut the reply short".to_owned(), error.to_string())
            }
            Failure::Client(error) => return endpoint.unanswered(&error, answered),
            Failure::NotJson(detail) => ("answered something that is not JSON".to_owned(), detail),
            Failure::NoReply => (
                "answered without a reply in it".to_owned(),
                "the JSON has not the form of a reply".to_owned(),
            ),
            Failure::NoWord => (
                "did not begin its reply in time".to_owned(),
                "the stream brought no text and no reasoning".to_owned(),
            ),
            Failure::CutShort => (
                "cut the reply short".to_owned(),
                "the stream ended before it said that the reply is complete".to_owned(),
            ),
            Failure::Withheld(reason) => (
                "withheld the reply because of its content filter".to_owned(),
                reason,
            ),
            Failure::Reported(response) => {
                if let Verdict::Shorter(overflow) = verdict {
                    return response.too_long(overflow, endpoint, model);
                }
                let cause = response.cause(verdict);
                let says = response.says(endpoint, model);
                let mut error = endpoint.failed(&says, response.detail(&says), cause);
                if let ProviderError::Failed { refusal, .. } = &mut error {
                    *refusal = response.refusal();
                }
                return error;
            }
        };
        let cause = match verdict {
            Verdict::GiveUp => Cause::Request,
            _ => Cause::Server,
        };
        endpoint.failed(&says, detail, cause)
    }

    /// What the log reads of a request for something else than a reply.
    pub fn told(self, endpoint: &Endpoint) -> String {
        match self {
            Failure::Reported(response) => response.told(endpoint),
            failure => (failure.into_error(Verdict::NextServer, endpoint, "", false)).to_string(),
        }
    }

    /// What the person or the program reads who made such a request.
    pub fn into_refusal(self, endpoint: &Endpoint) -> Error {
        let subject = &endpoint.subject;
        match self {
            Failure::Reported(response) => {
                let message = response.told(endpoint);
                let refusal = response.refusal();
                refusal.apply(match refusal.status {
                    429 => Error::new(Code::RateLimited, message),
                    // A refused key is the household's, not theirs.
                    424 | 503 => {
                        let detail = endpoint.scrub(&response.detail(&message));
                        Error::server(message, detail)
                    }
                    _ => Error::invalid_request(message),
                })
            }
            failure => match failure.into_error(Verdict::NextServer, endpoint, "", false) {
                error @ ProviderError::Failed { .. } => error.into_error(),
                error => Error::server(format_args!("{subject} did not answer in time"), error)
                    .with_status(504),
            },
        }
    }
}

/// An error that a server reported: by its HTTP status, or inside a reply of
/// status 200 (OpenRouter and others do that).
#[derive(Clone, Debug, Default)]
pub struct ErrorResponse {
    pub status: u16,
    /// `error.message` or its closest equivalent, as the server wrote it.
    pub message: String,
    /// `error.code`, `error.type`, `error.param` and the quotas that are used up, in lower case.
    pub labels: String,
    /// Whether the server wants a retry (`x-should-retry`).
    pub should_retry: Option<bool>,
    /// How long the server asks to wait, in seconds.
    pub wait: Option<f64>,
    pub request_id: Option<String>,
    pub location: Option<String>,
    /// Whether the body was JSON.
    pub is_json: bool,
}

impl ErrorResponse {
    /// From an answer with an error status and its body.
    pub fn from_answer(answer: &ClientResponse, body: &[u8]) -> ErrorResponse {
        let seconds = |name: &str| answer.header(name)?.trim().parse::<f64>().ok();
        let parsed = serde_json::from_slice::<Value>(body).ok();
        let mut response = match &parsed {
            Some(value) => ErrorResponse::from_value(value),
            None => ErrorResponse {
                message: beginning(body),
                ..ErrorResponse::default()
            },
        };
        response.is_json = parsed.is_some();
        response.status = answer.status();
        response.should_retry = match answer.header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        response.wait = seconds("retry-after-ms")
            .map(|millis| millis / 1000.0)
            .or_else(|| seconds("retry-after"))
            .or_else(|| seconds_until(answer.header("retry-after")?))
            .or(response.wait);
        response.request_id = answer
            .header("x-request-id")
            .or_else(|| answer.header("request-id"))
            .map(str::to_owned);
        response.location = answer.header("location").map(str::to_owned);
        response
    }

    /// From an `error` inside a reply of status 200. Its code is the status, if
    /// it is one.
    pub fn in_reply(value: &Value) -> ErrorResponse {
        let wrapped;
        let value = match has_error(value) {
            true => value,
            false => {
                wrapped = json!({ "error": value });
                &wrapped
            }
        };
        let mut response = ErrorResponse::from_value(value);
        response.is_json = true;
        let code = value.get("error").and_then(|error| error.get("code"));
        response.status = match code {
            Some(Value::Number(code)) => code.as_u64().and_then(|code| u16::try_from(code).ok()),
            Some(Value::String(code)) => code.parse().ok(),
            _ => None,
        }
        .filter(|code| (400..600).contains(code))
        .unwrap_or(200);
        response
    }

    fn from_value(value: &Value) -> ErrorResponse {
        // Gemini's compatible API wraps its error in an array.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").unwrap_or(&Value::Null);
        let detail = || match value.get("detail")? {
            Value::Array(items) => items.first().map(ToString::to_string),
            detail => text(detail),
        };
        let message = error
            .get("message")
            .and_then(text)
            .or_else(|| text(error))
            .or_else(|| value.get("message").and_then(text))
            .or_else(detail)
            .unwrap_or_else(|| value.to_string().chars().take(EXCERPT).collect());
        // OpenRouter says only that the provider behind it failed; that one says why.
        let cause = error.pointer("/metadata/raw").map(|raw| match raw {
            Value::String(raw) => match serde_json::from_str::<Value>(raw) {
                Ok(inner) => ErrorResponse::from_value(&inner).message,
                Err(_) => raw.chars().take(EXCERPT).collect(),
            },
            inner => ErrorResponse::from_value(inner).message,
        });
        let message = match cause {
            Some(cause) if !cause.trim().is_empty() => format!("{message}: {cause}"),
            _ => message,
        };
        let labels = ["code", "type", "param"]
            .iter()
            .filter_map(|name| match error.get(name)? {
                Value::String(label) => Some(label.to_lowercase()),
                Value::Number(label) => Some(label.to_string()),
                _ => None,
            })
            .chain(quota_ids(error))
            .collect::<Vec<_>>()
            .join(" ");
        ErrorResponse {
            wait: asked_wait(&message, error),
            message,
            labels,
            ..ErrorResponse::default()
        }
    }

    /// The same with a message that does not name the model: its name may hold a word such
    /// as "vision".
    pub fn without_name(&self, model: &str) -> ErrorResponse {
        let (message, model) = (self.message.to_lowercase(), model.to_lowercase());
        let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let (mut rest, mut end) = (String::new(), 0);
        for (place, name) in message.match_indices(&model) {
            let behind = place + name.len();
            let before = message[..place].chars().next_back();
            if !is_word(before) && !is_word(message[behind..].chars().next()) {
                rest.push_str(&message[end..place]);
                end = behind;
            }
        }
        rest.push_str(&message[end..]);
        ErrorResponse {
            message: rest,
            ..self.clone()
        }
    }

    /// Whether labels or message hold one of `words` (lower case).
    pub fn mentions(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words
            .iter()
            .any(|word| self.labels.contains(word) || message.contains(word))
    }

    /// Whether a 429 is about what the account has paid for, and not about its rate. Services
    /// name their pages about billing with both.
    pub fn is_quota(&self) -> bool {
        let is_short = self.wait.is_some_and(|wait| wait <= LONGEST_WAIT);
        self.mentions(&USED_UP)
            || self.labels.contains("perday")
            || !is_short
                && (self.mentions(&PER_DAY) || self.mentions(&QUOTA) && !self.mentions(&PER_MINUTE))
    }

    /// Whether the server wants to be left alone for a while.
    pub fn is_busy(&self) -> bool {
        self.status == 429 || self.wait.is_some_and(|wait| wait > 0.0)
    }

    /// Whether the same request may be answered later, and after how long.
    pub fn retry(&self) -> Option<Option<Duration>> {
        let by_status = match self.status {
            429 => !self.is_quota(),
            // Some servers answer 200 and put the name of the error into the reply.
            200 => self.mentions(&[
                "overloaded",
                "rate_limit",
                "timeout",
                "server_error",
                "api_error",
            ]),
            // The model wrote a call that the server could not parse (Groq).
            400 => self.mentions(&["tool_use_failed"]),
            408 | 409 | 500..=599 => true,
            _ => false,
        };
        let wait = self.wait.filter(|wait| *wait >= 0.0);
        let is_long = wait.is_some_and(|wait| wait > LONGEST_WAIT);
        (self.should_retry.unwrap_or(by_status) && !is_long)
            .then(|| wait.map(Duration::from_secs_f64))
    }

    /// What a program reads that asked.
    fn refusal(&self) -> Refusal {
        let status = match self.status {
            404 if !self.is_about_model() => 424,
            // The error stood in a reply.
            200 if self.retry().is_some() => 503,
            status => status,
        };
        Refusal::of(status, self.wait, self.is_quota())
    }

    /// What is to blame, where this is to be done about it.
    fn cause(&self, verdict: Verdict) -> Cause {
        match verdict {
            Verdict::NextServer if self.is_about_model() => Cause::Model,
            Verdict::NextServer | Verdict::Wait(_) => match self.wait {
                Some(wait) if wait > 0.0 && wait <= LONGEST_REST && !self.is_quota() => {
                    Cause::Busy(Duration::from_secs_f64(wait))
                }
                _ => Cause::Server,
            },
            _ => Cause::Request,
        }
    }

    /// Whether the server has not the model, or not for this account.
    pub fn is_about_model(&self) -> bool {
        match self.status {
            404 => self.is_json && self.mentions(&["model", "no endpoints found"]),
            403 => self.mentions(&["model"]),
            400 | 422 => self.mentions(&UNKNOWN_MODEL),
            _ => false,
        }
    }

    /// What happened, as the end of a sentence about the server.
    fn says(&self, endpoint: &Endpoint, model: &str) -> String {
        let status = self.status;
        let quoted = || endpoint.quote(&self.message);
        match status {
            300..=399 => {
                let place = self.location.as_deref().unwrap_or("another address");
                let place = endpoint.quote(place);
                format!(
                    "answers with a redirect to {place} ({status}): set base_url to the final address"
                )
            }
            401 if endpoint.key().is_none() => {
                format!("requires an API key ({status}): set api_key")
            }
            401 => format!("refused the API key ({status})"),
            402 => format!("says that the account has no credit left ({status})"),
            403 => format!("forbids this request ({status})"),
            // OpenRouter: no service behind it takes what the request has.
            404 if self.mentions(&["no endpoints found"]) => {
                format!("refused the request ({status}): {}", quoted())
            }
            404 if self.is_about_model() => {
                format!("does not know the model {model:?} ({status})")
            }
            404 => format!(
                "has no chat API at this address ({status}): see base_url{}",
                endpoint.path_hint
            ),
            429 if self.is_quota() => {
                format!("says that the account's quota is used up ({status})")
            }
            429 => format!("gets too many requests ({status}): try again later"),
            503 => format!("is overloaded or still loading the model ({status})"),
            529 => format!("is overloaded ({status})"),
            408 | 409 | 500..=599 => format!("failed ({status})"),
            200 => format!("reported an error: {}", quoted()),
            _ => format!("refused the request ({status}): {}", quoted()),
        }
    }

    /// The same of a request for something else than a reply.
    fn told(&self, endpoint: &Endpoint) -> String {
        let (subject, status) = (&endpoint.subject, self.status);
        let words = endpoint.quote(&self.message);
        format!("{subject} answers with status {status}: {words}")
    }

    /// For the log, which has the `public` words before it.
    fn detail(&self, public: &str) -> String {
        let (status, labels) = (self.status, &self.labels);
        let id = self.request_id.as_ref();
        let id = id.map(|id| format!(", x-request-id {id}"));
        let about = format!("HTTP {status} [{labels}]{}", id.unwrap_or_default());
        match self.message.as_str() {
            said if public.contains(said) => about,
            message => format!("{message} ({about})"),
        }
    }

    fn too_long(&self, overflow: Overflow, endpoint: &Endpoint, model: &str) -> ProviderError {
        let status = self.status;
        let subject = &endpoint.subject;
        let public = match overflow {
            Overflow::Perhaps => format!(
                "{subject} refused the conversation without a reason ({status}): it may be too long for the model {model:?}"
            ),
            _ => format!(
                "{subject} refused the conversation: it is too long for the model {model:?} ({status})"
            ),
        };
        ProviderError::ContextOverflow {
            detail: endpoint.scrub(&self.detail(&public)),
            public,
            refusal: self.refusal(),
            hides_window: overflow == Overflow::Unnamed,
        }
    }
}

fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(body)
        .chars()
        .take(EXCERPT)
        .collect()
}

/// Whether a value reports an error.
pub fn has_error(value: &Value) -> bool {
    let value = value.get(0).unwrap_or(value);
    value.get("error").is_some_and(|error| !error.is_null())
}

/// Seconds until a time as HTTP writes it (RFC 9110, section 5.6.7).
fn seconds_until(date: &str) -> Option<f64> {
    let at = httpdate::parse_http_date(date).ok()?;
    let wait = at.duration_since(SystemTime::now()).unwrap_or_default();
    Some(wait.as_secs_f64())
}

/// The names of the quotas that Gemini says are used up, as `GenerateRequestsPerDayPerProject`.
fn quota_ids(error: &Value) -> impl Iterator<Item = String> + '_ {
    let list = |value: &'_ Value, name| value.get(name).and_then(Value::as_array).cloned();
    let details = list(error, "details").unwrap_or_default();
    let violations = details
        .into_iter()
        .filter_map(move |one| list(&one, "violations"));
    let ids = violations.flatten().filter_map(|one| text(&one["quotaId"]));
    ids.map(|id| id.to_lowercase())
}

/// The seconds that an error asks to wait: in its words (Groq, OpenAI, Azure), or as Gemini's
/// `RetryInfo`.
fn asked_wait(message: &str, error: &Value) -> Option<f64> {
    let message = message.to_lowercase();
    let mut words = BEFORE_WAIT.iter();
    let said = words.find_map(|before| seconds(message.split_once(before)?.1));
    let details = error.get("details").and_then(Value::as_array);
    let mut details = details.into_iter().flatten();
    let delay = details.find_map(|detail| seconds(detail.get("retryDelay")?.as_str()?));
    said.into_iter().chain(delay).reduce(f64::max)
}

/// The time at the beginning of a text: `1.98s`, `644ms`, `7m26.4s`, `26 seconds`.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut sum = None;
    loop {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let end = rest.find(|letter| !is_number(letter)).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else {
            return sum;
        };
        let behind = rest[end..].trim_start();
        let end = behind.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let length = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86400.0,
            _ => return sum,
        };
        sum = Some(sum.unwrap_or(0.0) + number * length);
        rest = behind;
    }
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_shape() {
        for (body, message) in [
            (json!({"error": {"message": "m", "code": "c"}}), "m"),
            (json!({"error": "m"}), "m"),
            (json!({"message": "m"}), "m"),
            (json!({"detail": "m"}), "m"),
            (json!({"detail": [{"msg": "m"}]}), "{\"msg\":\"m\"}"),
            (json!([{"error": {"code": 429, "message": "m"}}]), "m"),
            (json!({"odd": 1}), "{\"odd\":1}"),
        ] {
            assert_eq!(ErrorResponse::from_value(&body).message, message, "{body}");
        }
    }

    #[test]
    fn the_wait_is_read_from_the_header_or_the_body() {
        // As Groq and Gemini write them; only a used-up account is not asked again.
        for (body, wait, is_quota) in [
            (
                json!({ "error": { "code": "rate_limit_exceeded", "message": "Rate limit reached \
                    for model on tokens per minute (TPM): Limit 12000, Used 2542. Please try \
                    again in 1.5s. Upgrade at https://console.groq.com/settings/billing" } }),
                Some(1.5),
                false,
            ),
            (
                json!([{ "error": { "code": 429, "message": "You exceeded your current quota, \
                    please check your plan and billing details.",
                    "details": [{ "retryDelay": "2s" }] } }]),
                Some(2.0),
                false,
            ),
            (
                json!({ "error": { "code": "insufficient_quota", "message": "You exceeded your \
                    current quota, please check your plan and billing details." } }),
                None,
                true,
            ),
        ] {
            let response = ErrorResponse {
                status: 429,
                ..ErrorResponse::from_value(&body)
            };
            assert_eq!((response.wait, response.is_quota()), (wait, is_quota));
        }
    }

    #[test]
    fn the_time_is_found_in_words_and_in_details() {
        for (message, expected) in [
            ("Please try again in 1.984s. Need more tokens?", Some(1.984)),
            ("Please try again in 644ms.", Some(0.644)),
            ("Please try again in 7m26.4s.", Some(446.4)),
            ("limit: 10\nPlease retry in 2.82s.", Some(2.82)),
            ("Please retry after 26 seconds.", Some(26.0)),
            ("Please try again in a minute", None),
            ("Please try again in 5", None),
            ("no", None),
        ] {
            assert_eq!(asked_wait(message, &Value::Null), expected, "{message}");
        }
        let info = json!({ "details": [{ "@type": "Help" }, { "retryDelay": "34s" }] });
        assert_eq!(asked_wait("no", &info), Some(34.0));
        assert_eq!(asked_wait("retry in 34.6s", &info), Some(34.6));
    }
}
