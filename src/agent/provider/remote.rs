//! A model server behind HTTP, whatever API it speaks: sends a request, reads the
//! reply, retries, and remembers what the server does not accept.

use std::collections::BTreeSet;
use std::time::Duration;

use super::attempt_error::AttemptError;
use super::dialect::{Dialect, Options, RequestContext};
use super::endpoint::Endpoint;
use super::error_response::ErrorResponse;
use super::facts::{Service, Thoughts, Traits};
use super::files::{Files, Refusal};
use super::lessons::{Found, Lessons};
use super::overflow::Overflow;
use super::reply_reader::{self, ReplyBuilder};
use super::reply_stream::ReplyStream;
use super::retry::{Retry, RetryDecision, with_retries};
use super::server_capabilities::{ServerCapabilities, is_about_wishes};
use super::window::{Asker, Windows};
use crate::context::window::most_reply;
use crate::model::{Cause, ModelReply, ModelRequest, Provider, ProviderError, Takes};
use base::clock::Clock;
use base::finish_reason::FinishReason;
use base::ids::AttachmentId;
use net::http_client::{ClientRequest, HttpClient};
use net::tls::Trust;
use store::Usage;

/// How long a server on the internet may be silent while it streams. A local one
/// has the whole time of the turn: it may load a model or read a long prompt for
/// minutes before the first word.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);
/// Most bytes of an error that are read.
const ERROR_LIMIT: usize = 1024 * 1024;
/// Rough bytes per token, for servers that do not count.
const TOKEN_BYTES: usize = 4;

/// A model server.
pub struct Remote {
    endpoint: Endpoint,
    dialect: Box<dyn Dialect>,
    service: &'static Service,
    options: Options,
    clock: Clock,
    http_client: HttpClient,
    /// Whether every reply is streamed: see [`Remote::with_first_byte_timeout`].
    always_streams: bool,
    lessons: Lessons,
    windows: Windows,
}

impl Remote {
    /// A provider for the server at `endpoint`.
    pub fn new(
        endpoint: Endpoint,
        dialect: Box<dyn Dialect>,
        service: &'static Service,
        options: Options,
    ) -> Remote {
        Remote {
            endpoint,
            dialect,
            service,
            options,
            clock: Clock::system(),
            http_client: HttpClient::new(),
            always_streams: false,
            lessons: Lessons::default(),
            windows: Windows::default(),
        }
    }

    /// Trusts these servers instead of those of the public authorities.
    pub fn trusting(mut self, trust: Trust) -> Remote {
        self.http_client = self.http_client.trusting(trust);
        self
    }

    /// Forgets and asks again by this clock.
    pub fn on_clock(mut self, clock: Clock) -> Remote {
        self.clock = clock;
        self
    }

    /// Limits how long the server may be silent before its first word, for when
    /// another one can be asked instead. Every reply is streamed then: without a
    /// stream, a server that works is as silent as one that hangs.
    pub fn with_first_byte_timeout(mut self, timeout: Duration) -> Remote {
        self.http_client.limit_silence(timeout);
        self.always_streams = true;
        self
    }

    fn traits(&self, model: &str) -> Traits {
        self.service.traits(model, &self.endpoint.host)
    }

    fn capabilities(&self, model: &str) -> ServerCapabilities {
        let learned = self.lessons.capabilities(model, self.clock.monotonic());
        learned.unwrap_or_else(|| ServerCapabilities::before(&self.traits(model)))
    }

    fn remember(&self, model: &str, capabilities: ServerCapabilities, change: &str) {
        let subject = &self.endpoint.subject;
        log::info!("{subject}, {model:?}: from now on, {change}");
        let now = self.clock.monotonic();
        self.lessons.learn(model, capabilities, now);
    }

    /// The window of a model by the configuration, its server or the table of facts.
    fn said_window(&self, model: &str) -> usize {
        if let Some(tokens) = self.options.context_tokens {
            return tokens as usize;
        }
        let traits = self.traits(model);
        if traits.window_questions.is_empty() {
            return traits.window;
        }
        let key = self.endpoint.key().map(|key| key.expose());
        let asker = Asker {
            http_client: &self.http_client,
            endpoint: &self.endpoint,
            headers: self.dialect.headers(key),
            questions: traits.window_questions,
            usual: traits.window,
        };
        let now = self.clock.monotonic();
        let window = self.windows.of(model, now, &asker);
        window.unwrap_or(traits.window)
    }

    /// A window, unless the server has named a smaller one when it refused a request.
    fn limited(&self, model: &str, window: usize) -> usize {
        let limit = self.windows.limit(model, self.clock.monotonic());
        limit.map_or(window, |limit| window.min(limit))
    }

    /// The files that a model has taken, or those that it has refused.
    fn files(&self, model: &str, taken: bool) -> BTreeSet<AttachmentId> {
        self.lessons.files(model, taken, self.clock.monotonic())
    }

    /// Makes one attempt. Sets `answered` when the head of a reply has arrived.
    fn attempt(
        &self,
        context: &RequestContext<'_>,
        body: &[u8],
        reply: &mut ReplyBuilder<'_>,
        answered: &mut bool,
    ) -> Result<ModelReply, AttemptError> {
        let request = context.request;
        let accept = if request.stream {
            "text/event-stream, application/x-ndjson, application/json"
        } else {
            "application/json"
        };
        let key = self.endpoint.key().map(|key| key.expose());
        let own = self.dialect.headers(key);
        let mut headers = vec![("content-type", "application/json"), ("accept", accept)];
        headers.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
        let post = ClientRequest {
            method: "POST",
            url: &format!(
                "{}{}",
                self.endpoint.base_url,
                self.dialect.path(context.capabilities)
            ),
            headers: &headers,
            body: Some(body),
            deadline: request.deadline,
            cancel: request.cancel,
        };
        self.http_client.exchange(&post, |answer| {
            if !(200..300).contains(&answer.status()) {
                let body = answer.read_all(ERROR_LIMIT).unwrap_or_default();
                let response = ErrorResponse::from_answer(answer, &body);
                return Err(AttemptError::Reported(response));
            }
            *answered = true;
            // Some servers stream unasked, and some do not when asked.
            let is_stream = match answer.header("content-type").unwrap_or_default() {
                kind if kind.contains("event-stream") || kind.contains("ndjson") => true,
                kind if kind.contains("json") || kind.contains("html") => false,
                _ => request.stream,
            };
            if is_stream && !self.endpoint.is_local {
                answer.limit_silence(SILENCE_LIMIT);
            }
            let mut parser = self.dialect.parser(context.capabilities);
            reply_reader::read(answer, is_stream, &mut *parser, reply, context.origin)
        })
    }

    /// What to do about a failed attempt. Remembers what the server does not
    /// accept, so that the next attempt leaves it out: in `own` what only this request is
    /// to leave out.
    fn decide(
        &self,
        error: AttemptError,
        answered: bool,
        context: &RequestContext<'_>,
        body: &[u8],
        found: &mut Found,
    ) -> RetryDecision {
        let own = &mut found.own;
        let model = context.request.model;
        let is_own = match &error {
            AttemptError::Reported(response) => is_about_wishes(response, context.request),
            _ => false,
        };
        let refusal = match &error {
            AttemptError::Reported(response) => {
                let taken = self.files(model, true);
                let guesses = &mut found.guesses;
                context.files.refusal(response, body, &taken, guesses)
            }
            _ => None,
        };
        let change = match (&error, &refusal) {
            (_, Some(Refusal::Files { .. })) => None,
            (_, Some(Refusal::Kind(kind))) => Some(context.capabilities.without(*kind)),
            (_, Some(Refusal::MoreThan(most))) => {
                Some(context.capabilities.with_most_images(*most))
            }
            (AttemptError::Reported(response), None) => context.capabilities.after_error(
                response,
                context.request,
                &self.endpoint.base_url,
                self.options.reasoning_effort,
            ),
            _ => None,
        };
        let now = self.clock.monotonic();
        if let AttemptError::Reported(response) = &error
            && let Some(Overflow::Window(tokens)) = response.overflow()
        {
            self.windows.note_limit(model, tokens, now);
        }
        let mut decision = error.into_decision(&self.endpoint, model, answered);
        if let ProviderError::ContextOverflow { .. }
        | ProviderError::Failed {
            cause: Cause::Server,
            ..
        } = decision.error
        {
            self.windows.doubt(model, now);
        }
        if let Some((capabilities, change)) = change {
            if is_own || own.is_some() {
                let subject = &self.endpoint.subject;
                log::info!("{subject}, {model:?}: this program's request goes {change}");
                *own = Some(capabilities);
            } else if self.capabilities(model) == context.capabilities {
                // Another turn may have found out the same, or more, in the meantime.
                self.remember(model, capabilities, &format!("requests go {change}"));
            }
            decision.retry = Retry::Now;
        }
        if let Some(Refusal::Files { out, back }) = refusal {
            let subject = &self.endpoint.subject;
            log::info!("{subject}, {model:?}: from now on, requests go without {out:?}");
            found.accused.extend(&out);
            self.lessons.learn_files(model, out, false, now);
            self.lessons.forget_files(model, &back);
            decision.retry = Retry::Now;
        }
        decision
    }
}

/// A request as it is sent, and about how many tokens it has.
struct Body {
    bytes: Vec<u8>,
    tokens: usize,
}

impl Provider for Remote {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        let wants_pieces = request.stream;
        let traits = self.traits(request.model);
        let window = match self.options.context_tokens {
            Some(tokens) => tokens as usize,
            None => self.windows.known(request.model).unwrap_or(traits.window),
        };
        let window = self.limited(request.model, window);
        let options = Options {
            context_tokens: u32::try_from(window).ok(),
            ..self.options
        };
        let request = &ModelRequest {
            stream: request.stream || self.always_streams,
            max_tokens: most_reply(request.max_tokens, window),
            ..*request
        };
        let had_tools = !self.capabilities(request.model).no_tools;
        let mut kept: Option<(ServerCapabilities, BTreeSet<AttachmentId>, Body)> = None;
        let mut found = Found::default();
        let result = with_retries(request.deadline, request.cancel, || {
            let own = found.own;
            let capabilities = own.unwrap_or_else(|| self.capabilities(request.model));
            let path = self.dialect.origin_path(capabilities);
            let refused = self.files(request.model, false);
            let files = Files::of(request, traits, capabilities, refused.clone());
            let context = RequestContext {
                request,
                origin: &format!("{}{path}", self.endpoint.base_url),
                capabilities,
                options,
                traits,
                files: &files,
            };
            let mut takes = self.dialect.takes(capabilities);
            takes.must_call &= !capabilities.no_tools;
            if let Some(what) = request.client.and_then(|client| client.beyond(&takes)) {
                let says = format!("cannot be told {what}, which the program that asks wants");
                return Err(RetryDecision {
                    error: self.endpoint.failed(&says, "a wish", Cause::Request),
                    retry: Retry::Never,
                });
            }
            let body = match &kept {
                Some((form, without, body)) if (*form, without) == (capabilities, &refused) => body,
                _ => {
                    let bytes = self.dialect.body(&context).into_bytes();
                    let (of_files, tokens) = files.written();
                    let text_tokens = (bytes.len() - of_files) / TOKEN_BYTES;
                    let body = Body {
                        bytes,
                        tokens: text_tokens + tokens,
                    };
                    &kept.insert((capabilities, refused, body)).2
                }
            };
            let note = (had_tools && capabilities.no_tools).then(|| {
                format!(
                    "(The model {} cannot use tools, so this is answered without them.)\n\n",
                    request.model
                )
            });
            let mut listener = |piece: &str| on_text(piece);
            let listener = wants_pieces.then_some(&mut listener as &mut dyn FnMut(&str));
            let mut stream = ReplyStream::new(listener, note);
            if capabilities.opens_thinking {
                stream = stream.expecting_thoughts();
            }
            let mut builder = ReplyBuilder::new(stream);
            builder.keeps_members = matches!(capabilities.thoughts, Thoughts::WithEveryReply(_));
            if request.may_call && !capabilities.no_tools {
                builder.offered = request.tools;
            }
            let mut answered = false;
            let result = self.attempt(&context, &body.bytes, &mut builder, &mut answered);
            let mut reply = match result {
                Ok(reply) => reply,
                Err(error) => {
                    let decision = self.decide(error, answered, &context, &body.bytes, &mut found);
                    keep_heard(decision, &mut builder)?
                }
            };
            let now = self.clock.monotonic();
            let model = request.model;
            self.lessons.learn_files(model, files.all_sent(), true, now);
            if let Some(opens_thinking) = builder.text.opens_thinking()
                && opens_thinking != capabilities.opens_thinking
            {
                let mut learned = self.capabilities(request.model);
                learned.opens_thinking = opens_thinking;
                let change = match opens_thinking {
                    true => "replies are shown from where their thoughts end",
                    false => "replies are shown from their beginning",
                };
                self.remember(request.model, learned, change);
            }
            if reply.usage == Usage::default() {
                reply.usage = estimate(body.tokens, &reply);
                reply.is_estimated = true;
            }
            reply.model = Some(request.model.to_owned());
            Ok(reply)
        });
        if result.is_err() {
            // It failed without them, too.
            self.lessons.forget_files(request.model, &found.accused);
        }
        result
    }

    fn takes(&self, model: &str) -> Takes {
        let capabilities = self.capabilities(model);
        Takes {
            images: !capabilities.no_images,
            documents: !capabilities.no_documents,
        }
    }

    fn guesses_window(&self, model: &str) -> bool {
        if self.windows.limit(model, self.clock.monotonic()).is_some() {
            return false;
        }
        let is_asked = !self.traits(model).window_questions.is_empty();
        self.options.context_tokens.is_none() && is_asked && self.windows.is_guess(model)
    }

    fn window(&self, model: &str) -> usize {
        self.limited(model, self.said_window(model))
    }
}

/// The text of a reply that was lost after some of it was heard: it is not begun again.
///
/// # Errors
/// The decision, if nothing was heard, or somebody stopped the request.
fn keep_heard(
    mut decision: RetryDecision,
    builder: &mut ReplyBuilder<'_>,
) -> Result<ModelReply, RetryDecision> {
    if !builder.text.has_streamed() {
        return Err(decision);
    }
    decision.retry = Retry::Never;
    let (finish_reason, public, detail) = match &decision.error {
        ProviderError::Failed { public, detail, .. } => (FinishReason::Interrupted, public, detail),
        ProviderError::ContextOverflow { public, detail, .. } => {
            (FinishReason::Length, public, detail)
        }
        ProviderError::Cancelled | ProviderError::TimedOut => return Err(decision),
    };
    log::warn!("{public}; what it had sent of its reply is kept ({detail})");
    Ok(builder.lost(finish_reason))
}

/// For servers that do not count tokens: a budget must not be free with them.
fn estimate(sent_tokens: usize, reply: &ModelReply) -> Usage {
    let calls: usize = reply
        .calls
        .iter()
        .map(|call| call.tool.len() + call.arguments.len())
        .sum();
    Usage {
        input: sent_tokens as u64,
        output: (reply.text.len() + calls).div_ceil(TOKEN_BYTES) as u64,
        cached: 0,
    }
}
