//! What a model server means by an answer that is no reply.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::endpoint::Endpoint;
use super::retry::{Again, RetryDecision};
use crate::model::{Cause, ProviderError};
use net::http_client::ClientResponse;

/// Longer waits than this that a server asks for are not kept: a person waits.
const LONGEST_WAIT: f64 = 60.0;
/// Most characters of a body that says nothing in JSON.
const EXCERPT: usize = 300;

/// An error that a server reported: by its HTTP status, or inside a reply of
/// status 200 (OpenRouter and others do that).
#[derive(Debug, Default)]
pub struct Refusal {
    pub status: u16,
    /// `error.message` or the nearest thing to it, as the server wrote it.
    pub message: String,
    /// `error.code`, `error.type` and `error.param`, in lower case.
    pub labels: String,
    /// The server's own word on trying again (`x-should-retry`).
    should_retry: Option<bool>,
    /// How long it asks to wait, in seconds.
    wait: Option<f64>,
    request_id: Option<String>,
    location: Option<String>,
    is_json: bool,
}

impl Refusal {
    /// From an answer with an error status and its body.
    pub fn of_answer(answer: &ClientResponse, body: &[u8]) -> Refusal {
        let seconds = |name: &str| answer.header(name)?.trim().parse::<f64>().ok();
        let parsed = serde_json::from_slice::<Value>(body).ok();
        let mut refusal = match &parsed {
            Some(value) => Refusal::of_value(value),
            None => Refusal {
                message: String::from_utf8_lossy(body)
                    .chars()
                    .take(EXCERPT)
                    .collect(),
                ..Refusal::default()
            },
        };
        refusal.is_json = parsed.is_some();
        refusal.status = answer.status();
        refusal.should_retry = match answer.header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        refusal.wait = seconds("retry-after-ms")
            .map(|millis| millis / 1000.0)
            .or_else(|| seconds("retry-after"))
            .or_else(|| seconds_until(answer.header("retry-after")?));
        refusal.request_id = answer
            .header("x-request-id")
            .or_else(|| answer.header("request-id"))
            .map(str::to_owned);
        refusal.location = answer.header("location").map(str::to_owned);
        refusal
    }

    /// From an `error` inside a reply of status 200. Its code is the status, if
    /// it is one.
    pub fn in_reply(value: &Value) -> Refusal {
        let mut refusal = Refusal::of_value(value);
        refusal.is_json = true;
        let code = value.get("error").and_then(|error| error.get("code"));
        refusal.status = match code {
            Some(Value::Number(code)) => code.as_u64().and_then(|code| u16::try_from(code).ok()),
            Some(Value::String(code)) => code.parse().ok(),
            _ => None,
        }
        .filter(|code| (400..600).contains(code))
        .unwrap_or(200);
        refusal
    }

    fn of_value(value: &Value) -> Refusal {
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
        let labels = ["code", "type", "param"]
            .iter()
            .filter_map(|name| match error.get(name)? {
                Value::String(label) => Some(label.to_lowercase()),
                Value::Number(label) => Some(label.to_string()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .join(" ");
        Refusal {
            message,
            labels,
            ..Refusal::default()
        }
    }

    /// Whether labels or message hold one of `words` (lower case).
    pub fn mentions(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words
            .iter()
            .any(|word| self.labels.contains(word) || message.contains(word))
    }

    /// Whether the server answered in JSON.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether the conversation is too long for the model.
    pub fn is_overflow(&self) -> bool {
        self.status == 413
            || matches!(self.status, 200 | 400 | 422)
                && self.mentions(&[
                    "context_length_exceeded",
                    "exceed_context_size",
                    "context length",
                    "maximum context",
                    "context window",
                    "too many tokens",
                    "prompt is too long",
                    "input is too long",
                    "reduce the length of the messages",
                    "larger than the maximum",
                    "exceeds the available context size",
                ])
    }

    fn is_quota(&self) -> bool {
        self.mentions(&[
            "insufficient_quota",
            "billing",
            "balance",
            "quota exceeded",
            "spend_limit",
        ])
    }

    /// When to try again: the server's word first, then by status.
    fn again(&self) -> Again {
        let by_status = match self.status {
            429 => !self.is_quota(),
            // Some servers say 200 and put the name of the trouble into the reply.
            200 => self.mentions(&[
                "overloaded",
                "rate_limit",
                "timeout",
                "server_error",
                "api_error",
            ]),
            // The model wrote a call that the server could not read (Groq).
            400 => self.mentions(&["tool_use_failed"]),
            408 | 409 | 500..=599 => true,
            _ => false,
        };
        if !self.should_retry.unwrap_or(by_status) {
            return Again::Never;
        }
        match self.wait {
            Some(wait) if wait > LONGEST_WAIT => Again::Never,
            Some(wait) if wait >= 0.0 => Again::After(Duration::from_secs_f64(wait)),
            _ => Again::Soon,
        }
    }

    /// What it comes to, for a request to `model`.
    pub fn into_setback(self, endpoint: &Endpoint, model: &str) -> RetryDecision {
        let status = self.status;
        let quoted = endpoint.quote(&self.message);
        let is_overflow = self.is_overflow();
        let says = if is_overflow {
            format!("refused the conversation: it is too long for the model {model:?} ({status})")
        } else {
            match status {
                300..=399 => {
                    let place = self.location.as_deref().unwrap_or("another address");
                    let place = endpoint.quote(place);
                    format!(
                        "answers with a redirect to {place} ({status}): set base_url to the final address"
                    )
                }
                401 if endpoint.key().is_none() => {
                    format!("wants an API key ({status}): set api_key")
                }
                401 => format!("refused the API key ({status})"),
                402 => format!("says that the account has no credit left ({status})"),
                403 => format!("does not permit this request ({status})"),
                404 if self.is_json && self.mentions(&["model"]) => {
                    format!("does not know the model {model:?} ({status})")
                }
                404 => format!(
                    "has nothing to chat with at this address ({status}): see base_url{}",
                    endpoint.path_hint
                ),
                429 if self.is_quota() => {
                    format!("says that the account's quota is used up ({status})")
                }
                429 => format!("gets too many requests ({status}): try again in a while"),
                503 => format!("is overloaded or still loading the model ({status})"),
                529 => format!("is overloaded ({status})"),
                408 | 409 | 500..=599 => format!("failed ({status})"),
                200 => format!("reported an error: {quoted}"),
                _ => format!("refused the request ({status}): {quoted}"),
            }
        };
        let again = self.again();
        let detail = format!(
            "HTTP {status} [{}] {}{}",
            self.labels,
            self.message,
            self.request_id
                .map(|id| format!(" (x-request-id {id})"))
                .unwrap_or_default(),
        );
        let cause = match status {
            300..=399 | 401..=404 | 408 | 409 | 429 | 500..=599 => Cause::Away,
            _ => Cause::Request,
        };
        let error = match endpoint.failed(&says, detail, cause) {
            ProviderError::Failed { public, detail, .. } if is_overflow => {
                ProviderError::ContextOverflow { public, detail }
            }
            error => error,
        };
        RetryDecision { error, again }
    }
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
    use serde_json::json;

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
            assert_eq!(Refusal::of_value(&body).message, message, "{body}");
        }
    }

    #[test]
    fn trying_again_depends_on_status_and_the_servers_word() {
        let refusal = |status, message: &str| Refusal {
            status,
            message: message.to_owned(),
            ..Refusal::default()
        };
        for (refusal, again) in [
            (refusal(429, "Rate limit reached"), Again::Soon),
            (
                refusal(429, "You exceeded your current quota: billing"),
                Again::Never,
            ),
            (refusal(503, "Loading model"), Again::Soon),
            (refusal(529, ""), Again::Soon),
            (refusal(408, ""), Again::Soon),
            (refusal(400, ""), Again::Never),
            (refusal(401, ""), Again::Never),
            (
                Refusal {
                    should_retry: Some(true),
                    ..refusal(400, "")
                },
                Again::Soon,
            ),
            (
                Refusal {
                    should_retry: Some(false),
                    ..refusal(500, "")
                },
                Again::Never,
            ),
            (
                Refusal {
                    wait: Some(1.5),
                    ..refusal(429, "")
                },
                Again::After(Duration::from_millis(1500)),
            ),
            (
                Refusal {
                    wait: Some(61.0),
                    ..refusal(429, "")
                },
                Again::Never,
            ),
            (
                Refusal {
                    wait: Some(f64::NAN),
                    ..refusal(429, "")
                },
                Again::Soon,
            ),
        ] {
            assert_eq!(refusal.again(), again, "{refusal:?}");
        }
    }
}
