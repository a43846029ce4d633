//! The Chat Completions API: OpenAI's own, and that of the many servers that
//! speak it (Ollama, llama.cpp, LM Studio, vLLM, OpenRouter, ...).

mod learned;
mod reply;
mod request;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use super::event_stream::EventStream;
use super::refusal::Refusal;
use super::retry::{Again, Setback, with_retries};
use super::voice::{Voice, without_thoughts};
use super::{ModelReply, ModelRequest, Provider, ProviderError};
use crate::agent::outbound::{Answer, BODY_LIMIT, Outbound, OutboundError, Outgoing};
use learned::Learned;
use reply::{Draft, Message, finish_calls, usage_of};
use request::{Body, wrap_members};
use stream::Assembly;

/// Where OpenAI is.
pub const BASE_URL: &str = "https://api.openai.com/v1";
/// How long a server on the internet may be silent while it streams. One in the
/// house has the whole time of the turn: it may load a model or read a long
/// prompt for minutes before the first word.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);
/// Most bytes of an error that are read.
const ERROR_LIMIT: usize = 1024 * 1024;
/// Models about which findings are kept.
const MODELS: usize = 64;

/// A server that speaks Chat Completions.
pub struct OpenAi {
    endpoint: Endpoint,
    url: String,
    outbound: Outbound,
    /// Findings by model.
    learned: Mutex<BTreeMap<String, Learned>>,
}

/// Why a try came to nothing, before it is known what to do about it.
enum Fault {
    Outbound(OutboundError),
    Refused(Refusal),
    /// Not a reply: what is said of it, and the detail. With `true`, trying
    /// again may help.
    Odd(&'static str, String, bool),
}

/// How far a try came.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The head of a reply came.
    answered: bool,
    /// The person was given a part of the reply.
    heard: bool,
}

impl From<OutboundError> for Fault {
    fn from(error: OutboundError) -> Fault {
        Fault::Outbound(error)
    }
}

impl OpenAi {
    /// A provider for the server at `endpoint`.
    pub fn new(endpoint: Endpoint) -> OpenAi {
        OpenAi {
            url: format!("{}/chat/completions", endpoint.base_url),
            endpoint,
            outbound: Outbound::new(),
            learned: Mutex::default(),
        }
    }

    fn learned(&self, model: &str) -> Learned {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned
            .get(model)
            .copied()
            .unwrap_or_else(|| Learned::of_host(&self.endpoint.host))
    }

    fn learn(&self, model: &str, finding: Learned) {
        log::info!(
            "{} wants requests for {model:?} in another form: {finding:?}",
            self.endpoint.subject
        );
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= MODELS {
            learned.clear();
        }
        learned.insert(model.to_owned(), finding);
    }

    /// One try.
    fn attempt(
        &self,
        request: &ModelRequest<'_>,
        body: &[u8],
        voice: Voice<'_>,
        progress: &mut Progress,
    ) -> Result<ModelReply, Fault> {
        let authorization = self
            .endpoint
            .key()
            .map(|key| format!("Bearer {}", key.expose()));
        let accept = if request.stream {
            "text/event-stream, application/json"
        } else {
            "application/json"
        };
        let mut headers = vec![("content-type", "application/json"), ("accept", accept)];
        headers.extend(
            authorization
                .iter()
                .map(|value| ("authorization", value.as_str())),
        );
        let outgoing = Outgoing {
            method: "POST",
            url: &self.url,
            headers: &headers,
            body: Some(body),
            deadline: request.deadline,
            cancel: request.cancel,
        };
        self.outbound.exchange(&outgoing, |answer| {
            if !(200..300).contains(&answer.status()) {
                let body = answer.read_all(ERROR_LIMIT).unwrap_or_default();
                return Err(Fault::Refused(Refusal::of_answer(answer, &body)));
            }
            progress.answered = true;
            // Some servers stream unasked, and some do not when asked.
            let kind = answer.header("content-type").unwrap_or_default();
            let is_stream = match kind {
                kind if kind.contains("event-stream") => true,
                kind if kind.contains("json") || kind.contains("html") => false,
                _ => request.stream,
            };
            if is_stream {
                if !self.endpoint.is_local {
                    answer.limit_silence(SILENCE_LIMIT);
                }
                self.read_stream(answer, voice, &mut progress.heard)
            } else {
                self.read_whole(answer, voice)
            }
        })
    }

    fn read_whole(&self, answer: &mut Answer, mut voice: Voice<'_>) -> Result<ModelReply, Fault> {
        let body = answer.read_all(BODY_LIMIT)?;
        let value: Value = serde_json::from_slice(&body).map_err(|error| {
            let beginning: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            not_json(&format!("{error}: {beginning}"))
        })?;
        if has_error(&value) {
            return Err(Fault::Refused(Refusal::in_reply(&value)));
        }
        let choice = value.get("choices").and_then(|choices| choices.get(0));
        let message = choice.and_then(|choice| choice.get("message"));
        let Some(message) = message.and_then(Value::as_object) else {
            return Err(no_reply("there is no choices[0].message"));
        };
        let message = Message::of(message);
        voice.push(without_thoughts(&message.text));
        let reason = choice
            .and_then(|choice| choice.get("finish_reason"))
            .and_then(Value::as_str);
        let usage = value.get("usage").map(usage_of).unwrap_or_default();
        self.finish(voice.finish(), message.drafts, message.members, reason)
            .map(|reply| ModelReply { usage, ..reply })
    }

    fn read_stream(
        &self,
        answer: &mut Answer,
        voice: Voice<'_>,
        heard: &mut bool,
    ) -> Result<ModelReply, Fault> {
        let mut assembly = Assembly::new(voice);
        let result = read_chunks(answer, &mut assembly);
        *heard = assembly.voice.was_heard();
        let is_whole = result?;
        if !is_whole && assembly.finish_reason.is_none() {
            let detail = "the stream ended without finish_reason and [DONE]";
            return Err(Fault::Odd("cut the reply short", detail.to_owned(), true));
        }
        if !assembly.has_choice {
            return Err(no_reply("no chunk held a choice"));
        }
        answer.finish();
        let reason = assembly.finish_reason.take();
        let (text, drafts, members, usage) = assembly.finish();
        self.finish(text, drafts, members, reason.as_deref())
            .map(|reply| ModelReply { usage, ..reply })
    }

    fn finish(
        &self,
        text: String,
        drafts: Vec<Draft>,
        members: Map<String, Value>,
        reason: Option<&str>,
    ) -> Result<ModelReply, Fault> {
        let calls = finish_calls(drafts, &self.endpoint.base_url);
        if text.is_empty() && calls.is_empty() && reason == Some("content_filter") {
            let says = "withheld the reply: its content filter took offence";
            return Err(Fault::Odd(says, "content_filter".to_owned(), false));
        }
        // Only replies with calls are sent back in the form they came in.
        let extra = if calls.is_empty() {
            None
        } else {
            wrap_members(members, &self.endpoint.base_url)
        };
        Ok(ModelReply {
            text,
            calls,
            extra,
            ..ModelReply::default()
        })
    }

    /// What to do about a fault of a request in the form `sent`. What the server
    /// does not take is noted, so that the next try leaves it out.
    fn setback(
        &self,
        fault: Fault,
        progress: Progress,
        request: &ModelRequest<'_>,
        sent: Learned,
    ) -> Setback {
        let mut setback = match fault {
            Fault::Outbound(error @ OutboundError::Interrupted { .. }) if progress.answered => {
                Setback {
                    error: self.endpoint.failed("cut the reply short", error),
                    again: Again::Soon,
                }
            }
            Fault::Outbound(error) => Setback {
                error: self.endpoint.unanswered(&error),
                again: match error {
                    OutboundError::Interrupted { stale: true, .. } => Again::AtOnce,
                    OutboundError::Interrupted { .. } | OutboundError::Unreachable(_) => {
                        Again::Soon
                    }
                    _ => Again::Never,
                },
            },
            Fault::Odd(says, detail, again) => Setback {
                error: self.endpoint.failed(says, detail),
                again: if again { Again::Soon } else { Again::Never },
            },
            Fault::Refused(refusal) => {
                let finding = sent.after(&refusal, request, &self.endpoint.base_url);
                let mut setback = refusal.into_setback(&self.endpoint, request.model);
                if let Some(finding) = finding {
                    // Another turn may have found out the same, or more, meanwhile.
                    if self.learned(request.model) == sent {
                        self.learn(request.model, finding);
                    }
                    setback.again = Again::AtOnce;
                }
                setback
            }
        };
        if progress.heard {
            setback.again = Again::Never;
        }
        setback
    }
}

impl Provider for OpenAi {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        let had_tools = !self.learned(request.model).no_tools;
        let mut written: Option<(Learned, Vec<u8>)> = None;
        with_retries(request.deadline, request.cancel, || {
            let learned = self.learned(request.model);
            let body = match &written {
                Some((form, body)) if *form == learned => body,
                _ => {
                    let body = Body {
                        request,
                        origin: &self.endpoint.base_url,
                        learned,
                    };
                    &written.insert((learned, body.to_bytes())).1
                }
            };
            let note = (had_tools && learned.no_tools).then(|| {
                format!(
                    "(The model {} cannot use tools, so this is answered without them.)\n\n",
                    request.model
                )
            });
            let mut progress = Progress::default();
            let mut listener = |piece: &str| on_text(piece);
            let listener = request
                .stream
                .then_some(&mut listener as &mut dyn FnMut(&str));
            self.attempt(request, body, Voice::new(listener, note), &mut progress)
                .map_err(|fault| self.setback(fault, progress, request, learned))
        })
    }
}

/// Reads chunks to the end. Returns whether the stream said that it is complete.
fn read_chunks(answer: &mut Answer, assembly: &mut Assembly<'_>) -> Result<bool, Fault> {
    let mut events = EventStream::new(answer);
    while let Some(event) = events.next()? {
        if event.data.starts_with(b"[DONE]") {
            return Ok(true);
        }
        let size = event.data.len();
        let chunk = serde_json::from_slice::<Value>(event.data);
        match chunk {
            Ok(chunk) if event.name == b"error" || has_error(&chunk) => {
                return Err(Fault::Refused(Refusal::in_reply(&chunk)));
            }
            Ok(chunk) => {
                if !assembly.push(&chunk, size) {
                    return Err(OutboundError::TooLarge(BODY_LIMIT).into());
                }
            }
            // `ping` and the like.
            Err(_) if !event.name.is_empty() && event.name != b"error" => {}
            Err(error) => {
                let beginning = String::from_utf8_lossy(event.data);
                let beginning: String = beginning.chars().take(300).collect();
                return Err(not_json(&format!("{error}: {beginning}")));
            }
        }
    }
    Ok(false)
}

fn has_error(value: &Value) -> bool {
    let value = value.get(0).unwrap_or(value);
    value.get("error").is_some_and(|error| !error.is_null())
}

fn not_json(detail: &str) -> Fault {
    Fault::Odd(
        "answered something that is not JSON",
        detail.to_owned(),
        false,
    )
}

fn no_reply(detail: &str) -> Fault {
    Fault::Odd("answered without a reply in it", detail.to_owned(), false)
}

#[cfg(test)]
mod tests;
