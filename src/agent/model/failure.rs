//! Why a request to a model server failed, as far as the server says. What to do about it is
//! in `classify`, and how it is reported in `report`.

use std::time::SystemTime;

use serde_json::{Value, json};

use net::http_client::{ClientError, ClientResponse};

/// Most characters that are kept of a body that is not JSON.
const EXCERPT: usize = 300;
/// What stands before the time that a server asks to wait.
const BEFORE_WAIT: [&str; 4] = [
    "try again in ",
    "retry in ",
    "retry after ",
    "try again after ",
];

/// Why one attempt failed.
#[derive(Debug)]
pub enum Failure {
    /// The exchange failed.
    Client(ClientError),
    /// The server reported an error.
    Reported(Box<ErrorResponse>),
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

    /// From the JSON of an error.
    pub fn from_value(value: &Value) -> ErrorResponse {
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
