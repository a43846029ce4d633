//! What to do about a failed request to a model server: one function, whatever was asked for,
//! and the words of the services that it goes by.

mod feature;
mod file;

use std::time::Duration;

use super::dialect::RequestContext;
use super::failure::{ErrorResponse, Failure};
use super::server_capabilities::Feature;
use crate::model::Cause;
use base::secret::random_fraction;
pub use feature::is_about_wishes;
use feature::refused_feature;
use file::refused_file;
use net::http_client::ClientError;

/// Attempts in all, as the providers' own SDKs make them.
const TRIES: u32 = 3;
/// Immediate retries in all, after a change of the request or on a fresh
/// connection. There are no more causes than this.
const FREE_TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);
/// The longest, in seconds, for which another server is asked instead because of it.
const LONGEST_REST: f64 = 3600.0;
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
/// What servers say when a request is too long, and what stands right before the size of the
/// window, if they name it; in lower case.
const TOO_LONG: &[(&str, &str)] = &[
    // OpenAI, DeepSeek, OpenRouter, vLLM: "... length is 8192 tokens. However, ...".
    ("maximum context length", "maximum context length is "),
    ("context_length_exceeded", ""),
    ("context window", ""),
    // Anthropic: "prompt is too long: 211000 tokens > 200000 maximum".
    ("prompt is too long", "tokens > "),
    // Anthropic: "input length and `max_tokens` exceed context limit: 196211 + 8192 > 200000".
    ("exceed context limit", " > "),
    // Bedrock.
    ("input is too long", ""),
    // Gemini: "The input token count (36211) exceeds the maximum number of tokens allowed
    // (32768)."
    ("maximum number of tokens", "tokens allowed ("),
    // llama.cpp: "request (7052 tokens) exceeds the available context size (4096 tokens)".
    ("available context size", "context size ("),
    ("exceed_context_size", "context size ("),
    // LM Studio: "... when context the overflows. However, the model is loaded with context
    // length of only 4096 tokens".
    ("context length", "context length of only "),
    // Mistral: "too large for model with 32768 maximum context length".
    ("too large for model", "too large for model with "),
    // vLLM: "is longer than the maximum model length of 8192".
    ("maximum model length", "maximum model length of "),
    // xAI: "This model's maximum prompt length is 131072 but the request contains ...".
    ("maximum prompt length", "maximum prompt length is "),
    // Moonshot: "Your request exceeded model token limit: 8192 (requested: 9000)".
    ("exceeded model token limit", "token limit: "),
    // GitHub Copilot: "prompt token count of 36211 exceeds the limit of 32768".
    ("prompt token count", "exceeds the limit of "),
    // Text Generation Inference: "`inputs` tokens + `max_new_tokens` must be <= 32769".
    ("`max_new_tokens` must be", "must be <= "),
    // Groq.
    ("reduce the length of the messages", ""),
    ("maximum context", ""),
    ("too many tokens", ""),
];
/// One request that takes more than the account may use in a minute never passes:
/// "Request too large for gpt-4o ... on tokens per min (TPM): Limit 30000, Requested 31538"
/// (OpenAI with 429, Groq with 413).
const SHARE_OF_A_MINUTE: (&str, &str) = ("request too large", "limit ");
/// Fewest and most tokens that a window may have; another number is something else.
const CREDIBLE: std::ops::RangeInclusive<usize> = 512..=10_000_000;

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

/// What a server was asked for.
#[derive(Clone, Copy)]
pub enum RequestKind<'a> {
    /// A reply, with this body.
    Reply(&'a RequestContext<'a>, &'a [u8]),
    /// Vectors, of a length that the request names or of any.
    Vectors {
        /// Whether it names one.
        has_length: bool,
    },
    /// Speech, or the text of speech.
    Speech,
    /// The list of its models.
    Models,
}

/// What to do about a failed request.
pub fn classify(failure: &Failure, kind: RequestKind<'_>) -> Verdict {
    // Where another server can be asked, nobody waits for one that is away or busy, and only a
    // reply is worth waiting for one that is away.
    let has_next = matches!(kind, RequestKind::Reply(context, _) if context.request.has_next);
    let may_wait = matches!(kind, RequestKind::Reply(..)) && !has_next;
    let response = match failure {
        Failure::Reported(response) => response,
        Failure::Client(ClientError::Unreachable(_) | ClientError::Refused(_)) if !may_wait => {
            return Verdict::NextServer;
        }
        Failure::Client(
            ClientError::Interrupted { .. }
            | ClientError::Unreachable(_)
            | ClientError::Refused(_)
            | ClientError::Exhausted,
        )
        | Failure::CutShort => return Verdict::Wait(None),
        Failure::Client(ClientError::TooLarge(_)) | Failure::Withheld(_) => return Verdict::GiveUp,
        Failure::Client(_) | Failure::NotJson(_) | Failure::NoReply | Failure::NoWord => {
            return Verdict::NextServer;
        }
    };
    let overflow = match kind {
        RequestKind::Reply(..) => {
            Overflow::of(response.status, &response.labels, &response.message)
        }
        _ => None,
    };
    let feature = match kind {
        RequestKind::Reply(context, body) => refused_file(response, overflow, context, body)
            .or_else(|| refused_feature(response, context).filter(|_| overflow.is_none())),
        // Of a model with one length only.
        RequestKind::Vectors { has_length: true } => {
            matches!(response.status, 400 | 422).then_some(Feature::VectorLength)
        }
        // Some servers chat but do not list.
        RequestKind::Models if response.is_json && matches!(response.status, 404 | 405 | 501) => {
            Some(Feature::ModelList)
        }
        _ => None,
    };
    if let Some(feature) = feature {
        return Verdict::Without(feature);
    }
    if let Some(overflow) = overflow {
        return Verdict::Shorter(overflow);
    }
    match (response.retry(), response.status) {
        (Some(_), _) if has_next && response.is_busy() => Verdict::NextServer,
        (Some(wait), _) => Verdict::Wait(wait),
        (None, 300..=399 | 401..=404 | 408 | 409 | 429 | 500..=599) => Verdict::NextServer,
        (None, _) if response.is_about_model() || response.is_about_key() => Verdict::NextServer,
        (None, _) => Verdict::GiveUp,
    }
}

impl Verdict {
    /// What is to blame for this error.
    pub fn cause(self, response: &ErrorResponse) -> Cause {
        match self {
            Verdict::NextServer if response.is_about_model() => Cause::Model,
            Verdict::NextServer | Verdict::Wait(_) => match response.wait {
                Some(wait) if wait > 0.0 && wait <= LONGEST_REST && !response.is_quota() => {
                    Cause::Busy(Duration::from_secs_f64(wait))
                }
                _ => Cause::Server,
            },
            Verdict::Shorter(overflow) => Cause::Length {
                hides_window: overflow == Overflow::Unnamed,
            },
            _ => Cause::Request,
        }
    }
}

/// How often one request was sent again.
#[derive(Default)]
pub struct Retries {
    tries: u32,
    free_tries: u32,
}

impl Retries {
    /// After how long to send the request again, if that makes sense. `is_free` says that it
    /// goes in another form or on a fresh connection.
    pub fn next(&mut self, verdict: Verdict, is_free: bool) -> Option<Duration> {
        if is_free && self.free_tries < FREE_TRIES {
            self.free_tries += 1;
            return Some(Duration::ZERO);
        }
        let Verdict::Wait(asked) = verdict else {
            return None;
        };
        let wait = asked.unwrap_or_else(|| backoff(self.tries));
        self.tries += 1;
        (self.tries < TRIES).then_some(wait)
    }
}

/// 0.5 s, 1 s, 2 s, ... up to 8 s, less up to a quarter, so that many callers
/// that failed together do not come back together.
fn backoff(tries: u32) -> Duration {
    let wait = FIRST_WAIT
        .saturating_mul(1 << tries.min(8))
        .min(LONGEST_BACKOFF);
    wait.mul_f64(1.0 - 0.25 * random_fraction())
}

impl ErrorResponse {
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

    /// Whether the server wants a key, or another one.
    pub fn is_about_key(&self) -> bool {
        // Gemini answers 400.
        matches!(self.status, 401 | 403) || self.mentions(&["api key not valid"])
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
}

impl Overflow {
    /// What an error with this status, these labels (in lower case) and this message says of
    /// the length of a request; none if it is about something else.
    pub fn of(status: u16, labels: &str, message: &str) -> Option<Overflow> {
        let said = message.to_lowercase();
        let texts = match status {
            200 | 400 | 413 | 422 | 500 => TOO_LONG,
            _ => &[],
        };
        let share = matches!(status, 413 | 429).then_some(&SHARE_OF_A_MINUTE);
        let mut found = texts
            .iter()
            .chain(share)
            .filter(|(text, _)| said.contains(text) || labels.contains(text))
            .peekable();
        if found.peek().is_some() {
            let window = found.find_map(|(_, before)| number_after(&said, before));
            return Some(window.map_or(Overflow::Unnamed, Overflow::Window));
        }
        let is_silent = status == 400 && said.trim().is_empty();
        (status == 413 || is_silent).then_some(Overflow::Perhaps)
    }
}

/// The number right behind these words.
fn number_after(said: &str, before: &str) -> Option<usize> {
    if before.is_empty() {
        return None;
    }
    let (_, rest) = said.split_once(before)?;
    let is_part = |letter: &char| letter.is_ascii_digit() || *letter == ',';
    let digits = rest.chars().take_while(is_part);
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    let tokens = digits.parse().ok()?;
    CREDIBLE.contains(&tokens).then_some(tokens)
}

#[cfg(test)]
mod tests;
