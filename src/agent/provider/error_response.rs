//! What a model server means by an error that it reports.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::asked_wait::asked_wait;
use super::endpoint::Endpoint;
use super::overflow::Overflow;
use super::retry::{Retry, RetryDecision};
use crate::model::{Cause, ProviderError};
use net::http_client::ClientResponse;

/// The longest wait, in seconds, that a server may ask for: a person is waiting.
const LONGEST_WAIT: f64 = 60.0;
/// Most characters that are kept of a body that is not JSON.
const EXCERPT: usize = 300;

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

/// An error that a server reported: by its HTTP status, or inside a reply of
/// status 200 (OpenRouter and others do that).
#[derive(Clone, Debug, Default)]
pub struct ErrorResponse {
    pub status: u16,
    /// `error.message` or its closest equivalent, as the server wrote it.
    pub message: String,
    /// `error.code`, `error.type` and `error.param`, in lower case.
    pub labels: String,
    /// Whether the server wants a retry (`x-should-retry`).
    should_retry: Option<bool>,
    /// How long the server asks to wait, in seconds.
    wait: Option<f64>,
    request_id: Option<String>,
    location: Option<String>,
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
                message: String::from_utf8_lossy(body)
                    .chars()
                    .take(EXCERPT)
                    .collect(),
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

    /// Whether the request is too long for the model, or may be, and what that shows.
    pub fn overflow(&self) -> Option<Overflow> {
        Overflow::of(self.status, &self.labels, &self.message)
    }

    /// Whether a 429 is about what the account has paid for, and not about its rate. Services
    /// name their pages about billing with both.
    fn is_quota(&self) -> bool {
        let is_short = self.wait.is_some_and(|wait| wait <= LONGEST_WAIT);
        self.mentions(&USED_UP)
            || !is_short
                && (self.mentions(&PER_DAY) || self.mentions(&QUOTA) && !self.mentions(&PER_MINUTE))
    }

    /// When to retry: as the server says, or by the status.
    fn retry(&self) -> Retry {
        let by_status = match self.status {
            // As long as it is, it is refused.
            _ if self.overflow().is_some() => false,
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
        if !self.should_retry.unwrap_or(by_status) {
            return Retry::Never;
        }
        match self.wait {
            Some(wait) if wait > LONGEST_WAIT => Retry::Never,
            Some(wait) if wait >= 0.0 => Retry::After(Duration::from_secs_f64(wait)),
            _ => Retry::Backoff,
        }
    }

    /// The error to report for a request to `model`, and whether to retry.
    pub fn into_decision(self, endpoint: &Endpoint, model: &str) -> RetryDecision {
        let status = self.status;
        let quoted = endpoint.quote(&self.message);
        let overflow = self.overflow();
        let says = match overflow {
            Some(Overflow::Perhaps) => format!(
                "refused the conversation without a reason ({status}): it may be too long for the model {model:?}"
            ),
            Some(_) => format!(
                "refused the conversation: it is too long for the model {model:?} ({status})"
            ),
            None => match status {
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
                    format!("refused the request ({status}): {quoted}")
                }
                404 if self.is_json && self.mentions(&["model"]) => {
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
                200 => format!("reported an error: {quoted}"),
                _ => format!("refused the request ({status}): {quoted}"),
            },
        };
        let retry = self.retry();
        let detail = format!(
            "HTTP {status} [{}] {}{}",
            self.labels,
            self.message,
            self.request_id
                .map(|id| format!(" (x-request-id {id})"))
                .unwrap_or_default(),
        );
        let cause = match status {
            300..=399 | 401..=404 | 408 | 409 | 429 | 500..=599 => Cause::Server,
            _ => Cause::Request,
        };
        let error = match endpoint.failed(&says, detail, cause) {
            ProviderError::Failed { public, detail, .. } if overflow.is_some() => {
                ProviderError::ContextOverflow {
                    public,
                    detail,
                    hides_window: overflow == Some(Overflow::Unnamed),
                }
            }
            error => error,
        };
        RetryDecision { error, retry }
    }
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

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

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
    fn trying_again_depends_on_status_and_the_servers_word() {
        // Status, whether the server says to try again, after how many seconds, message.
        let table = "
            429 | -     | -    | Rate limit reached                        | Backoff
            429 | -     | -    | You exceeded your current quota: billing  | Never
            429 | -     | 2    | You exceeded your current quota: billing  | After(2s)
            429 | -     | 2    | Tokens per minute. Upgrade at /billing    | After(2s)
            429 | -     | -    | Rate limit reached. Upgrade at /billing   | Backoff
            429 | -     | 2    | insufficient_quota                        | Never
            429 | -     | 2    | Your credit balance is too low            | Never
            429 | -     | -    | Rate limit exceeded: free-models-per-day  | Never
            429 | -     | 446  | Rate limit reached on tokens per day      | Never
            503 | -     | -    | Loading model                             | Backoff
            529 | -     | -    |                                           | Backoff
            408 | -     | -    |                                           | Backoff
            400 | -     | -    |                                           | Never
            401 | -     | -    |                                           | Never
            400 | true  | -    |                                           | Backoff
            500 | false | -    |                                           | Never
            429 | -     | 1.5  |                                           | After(1.5s)
            429 | -     | 61.0 |                                           | Never
            429 | -     | NaN  |                                           | Backoff
        ";
        for [status, should_retry, wait, message, retry] in rows(table) {
            let response = ErrorResponse {
                status: status.parse().unwrap(),
                message: message.to_owned(),
                should_retry: should_retry.parse().ok(),
                wait: wait.parse().ok(),
                ..ErrorResponse::default()
            };
            assert_eq!(format!("{:?}", response.retry()), retry, "{response:?}");
        }
    }
}
