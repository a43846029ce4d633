//! A model server that is asked over HTTP, whatever it speaks: sends a request,
//! reads the reply, tries again, and remembers what the server does not take.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::dialect::{AttemptError, Dialect, EncodedRequest, Options, Reading, RequestContext};
use super::endpoint::Endpoint;
use super::learned::ServerCapabilities;
use super::refusal::Refusal;
use super::reply_stream::ReplyStream;
use super::retry::{Again, RetryDecision, with_retries};
use crate::model::{Cause, ModelReply, ModelRequest, Provider, ProviderError};
use config::Quirks;
use net::http_client::{ClientError, ClientRequest, HttpClient};
use net::tls::Trust;
use store::Usage;

/// How long a server on the internet may be silent while it streams. One in the
/// house has the whole time of the turn: it may load a model or read a long
/// prompt for minutes before the first word.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);
/// Most bytes of an error that are read.
const ERROR_LIMIT: usize = 1024 * 1024;
/// Models about which findings are kept.
const MODELS: usize = 64;
/// Bytes of a token, about, for servers that do not count.
const TOKEN_BYTES: usize = 4;

/// How far a try came.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The head of a reply came.
    answered: bool,
    /// The person was given a part of the reply.
    heard: bool,
}

/// A model server.
pub struct Remote {
    endpoint: Endpoint,
    dialect: Box<dyn Dialect>,
    quirks: Quirks,
    options: Options,
    http_client: HttpClient,
    /// How long the server may be silent before its first word, when somebody
    /// else can be asked instead.
    patience: Option<Duration>,
    /// Findings by model.
    learned: Mutex<BTreeMap<String, ServerCapabilities>>,
}

impl Remote {
    /// A provider for the server at `endpoint`.
    pub fn new(
        endpoint: Endpoint,
        dialect: Box<dyn Dialect>,
        quirks: Quirks,
        options: Options,
    ) -> Remote {
        Remote {
            endpoint,
            dialect,
            quirks,
            options,
            http_client: HttpClient::new(),
            patience: None,
            learned: Mutex::default(),
        }
    }

    /// The same, which trusts these servers.
    pub fn trusting(mut self, trust: Trust) -> Remote {
        self.http_client = self.http_client.trusting(trust);
        self
    }

    /// The same, but the server may be silent no longer than this. Every reply
    /// is streamed then: without a stream, a server that works is as silent as
    /// one that hangs.
    pub fn with_patience(mut self, patience: Duration) -> Remote {
        self.http_client.limit_silence(patience);
        self.patience = Some(patience);
        self
    }

    fn learned(&self, model: &str) -> ServerCapabilities {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned
            .get(model)
            .copied()
            .unwrap_or_else(|| ServerCapabilities::before(&self.quirks, &self.endpoint.host))
    }

    fn learn(&self, model: &str, finding: ServerCapabilities, change: &str) {
        log::info!("{}: {model:?} is asked {change}", self.endpoint.subject);
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= MODELS {
            learned.clear();
        }
        learned.insert(model.to_owned(), finding);
    }

    fn asking<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        learned: ServerCapabilities,
    ) -> RequestContext<'a> {
        RequestContext {
            request,
            base_url: &self.endpoint.base_url,
            learned,
            options: self.options,
            quirks: &self.quirks,
        }
    }

    /// One try.
    fn attempt(
        &self,
        asking: &RequestContext<'_>,
        written: &EncodedRequest,
        reply_stream: ReplyStream<'_>,
        progress: &mut Progress,
    ) -> Result<ModelReply, AttemptError> {
        let request = asking.request;
        let accept = if request.stream {
            "text/event-stream, application/x-ndjson, application/json"
        } else {
            "application/json"
        };
        let key = self.endpoint.key().map(|key| key.expose());
        let own = self.dialect.headers(key);
        let mut headers = vec![("content-type", "application/json"), ("accept", accept)];
        headers.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
        let url = format!("{}{}", self.endpoint.base_url, written.path);
        let outgoing = ClientRequest {
            method: "POST",
            url: &url,
            headers: &headers,
            body: Some(&written.body),
            deadline: request.deadline,
            cancel: request.cancel,
        };
        self.http_client.exchange(&outgoing, |answer| {
            if !(200..300).contains(&answer.status()) {
                let body = answer.read_all(ERROR_LIMIT).unwrap_or_default();
                return Err(AttemptError::Refused(Refusal::of_answer(answer, &body)));
            }
            progress.answered = true;
            // Some servers stream unasked, and some do not when asked.
            let is_stream = match answer.header("content-type").unwrap_or_default() {
                kind if kind.contains("event-stream") || kind.contains("ndjson") => true,
                kind if kind.contains("json") || kind.contains("html") => false,
                _ => request.stream,
            };
            if is_stream && !self.endpoint.is_local {
                answer.limit_silence(SILENCE_LIMIT);
            }
            self.dialect.read(Reading {
                answer,
                reply_stream,
                is_stream,
                heard: &mut progress.heard,
                base_url: &self.endpoint.base_url,
                learned: asking.learned,
            })
        })
    }

    /// What to do about a fault. What the server does not take is noted, so that
    /// the next try leaves it out.
    fn setback(
        &self,
        fault: AttemptError,
        progress: Progress,
        sent: &RequestContext<'_>,
    ) -> RetryDecision {
        let model = sent.request.model;
        let mut setback = match fault {
            AttemptError::Client(error @ ClientError::Interrupted { .. }) if progress.answered => {
                RetryDecision {
                    error: self
                        .endpoint
                        .failed("cut the reply short", error, Cause::Away),
                    again: Again::Soon,
                }
            }
            AttemptError::Client(error) => RetryDecision {
                error: self.endpoint.unanswered(&error, progress.answered),
                again: match error {
                    ClientError::Interrupted { stale: true, .. } => Again::AtOnce,
                    ClientError::Interrupted { .. } | ClientError::Unreachable(_) => Again::Soon,
                    _ => Again::Never,
                },
            },
            AttemptError::Odd {
                says,
                detail,
                again,
                cause,
            } => RetryDecision {
                error: self.endpoint.failed(says, detail, cause),
                again: if again { Again::Soon } else { Again::Never },
            },
            AttemptError::Refused(refusal) => {
                let finding = sent.learned.after(&refusal, sent);
                let mut setback = refusal.into_setback(&self.endpoint, model);
                if let Some((finding, change)) = finding {
                    // Another turn may have found out the same, or more, meanwhile.
                    if self.learned(model) == sent.learned {
                        self.learn(model, finding, change);
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

impl Provider for Remote {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        let wants_pieces = request.stream;
        let request = &ModelRequest {
            stream: request.stream || self.patience.is_some(),
            ..*request
        };
        let had_tools = !self.learned(request.model).no_tools;
        let mut kept: Option<(ServerCapabilities, EncodedRequest)> = None;
        with_retries(request.deadline, request.cancel, || {
            let asking = self.asking(request, self.learned(request.model));
            let learned = asking.learned;
            let written = match &kept {
                Some((form, written)) if *form == learned => written,
                _ => &kept.insert((learned, self.dialect.write(&asking))).1,
            };
            let note = (had_tools && learned.no_tools).then(|| {
                format!(
                    "(The model {} cannot use tools, so this is answered without them.)\n\n",
                    request.model
                )
            });
            let mut progress = Progress::default();
            let mut listener = |piece: &str| on_text(piece);
            let listener = wants_pieces.then_some(&mut listener as &mut dyn FnMut(&str));
            let reply_stream = ReplyStream::new(listener, note);
            let mut reply = self
                .attempt(&asking, written, reply_stream, &mut progress)
                .map_err(|fault| self.setback(fault, progress, &asking))?;
            if reply.usage == Usage::default() {
                reply.usage = estimate(written.body.len(), &reply);
                reply.is_estimated = true;
            }
            reply.model = Some(request.model.to_owned());
            Ok(reply)
        })
    }
}

/// For servers that do not count tokens: a budget must not be free with them.
fn estimate(sent: usize, reply: &ModelReply) -> Usage {
    let calls: usize = reply
        .calls
        .iter()
        .map(|call| call.tool.len() + call.arguments.len())
        .sum();
    Usage {
        input: (sent / TOKEN_BYTES) as u64,
        output: (reply.text.len() + calls).div_ceil(TOKEN_BYTES) as u64,
        cached: 0,
    }
}
