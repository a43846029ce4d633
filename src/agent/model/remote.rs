//! A model server behind HTTP, whatever API it speaks: sends a request, reads the
//! reply, retries, and remembers what the server does not accept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::classify::{Overflow, RequestKind, Retries, Verdict, classify, is_about_wishes};
use super::dialect::{Dialect, Options, RequestContext};
use super::endpoint::Endpoint;
use super::failure::{ErrorResponse, Failure};
use super::files::{Files, Guesses};
use super::learned::Learned;
use super::profile::{Profile, Thoughts};
use super::reply_reader::{self, Patience, ReplyBuilder};
use super::reply_stream::ReplyStream;
use super::server_capabilities::{Feature, ServerCapabilities};
use super::window::{Asker, known_window};
use crate::model::estimate::most_reply;
use crate::model::{Cause, Heard, ModelReply, ModelRequest, Provider, ProviderError, Takes};
use base::clock::Clock;
use base::ids::AttachmentId;
use base::reply::FinishReason;
use store::Usage;

/// How long a server on the internet may be silent while it streams. A local one
/// has the whole time of the turn: it may load a model or read a long prompt for
/// minutes before the first word.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);
const LOCAL_SILENCE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long its first word may take where another server can be asked, and where the model
/// thinks first.
const FIRST_TOKEN: Duration = Duration::from_secs(60);
const FIRST_TOKEN_THINKING: Duration = Duration::from_secs(180);
/// A shorter wait is not worth a word.
const TOLD_WAIT: Duration = Duration::from_secs(2);
/// Rough bytes per token, for servers that do not count.
const TOKEN_BYTES: usize = 4;

/// A model server.
pub struct Remote {
    pub endpoint: Endpoint,
    dialect: Box<dyn Dialect>,
    service: &'static Profile,
    options: Options,
    clock: Clock,
    learned: Arc<Learned>,
}

/// What one request has come to so far, over its attempts.
#[derive(Default)]
struct Progress {
    /// Whether the model was not known to be without tools before.
    had_tools: bool,
    retries: Retries,
    /// What the request leaves out because of what its client asks for, of which nothing
    /// follows for others.
    own: Option<ServerCapabilities>,
    /// Who was accused for want of a better reason.
    guesses: Guesses,
    /// All files that were accused.
    accused: Vec<AttachmentId>,
}

/// A failed attempt.
struct Failed {
    error: ProviderError,
    /// After how long to try again, if that makes sense.
    again: Option<Duration>,
}

impl Remote {
    /// A provider for the server at `endpoint`.
    pub fn new(
        endpoint: Endpoint,
        dialect: Box<dyn Dialect>,
        service: &'static Profile,
        options: Options,
    ) -> Remote {
        Remote {
            endpoint,
            dialect,
            service,
            options,
            clock: Clock::system(),
            learned: Arc::default(),
        }
    }

    /// Forgets and asks again by this clock.
    pub fn on_clock(mut self, clock: Clock) -> Remote {
        self.clock = clock;
        self
    }

    /// What it has learned about its server.
    pub fn learned(&self) -> Arc<Learned> {
        Arc::clone(&self.learned)
    }

    fn profile(&self, model: &str) -> Profile {
        self.service.for_model(model, &self.endpoint.host)
    }

    fn capabilities(&self, model: &str) -> ServerCapabilities {
        let learned = self.learned.capabilities(model, self.clock.monotonic());
        learned.unwrap_or_else(|| ServerCapabilities::before(&self.profile(model)))
    }

    fn remember(&self, model: &str, capabilities: ServerCapabilities, change: &str) {
        let subject = &self.endpoint.subject;
        log::info!("{subject}, {model:?}: from now on, {change}");
        let now = self.clock.monotonic();
        self.learned.learn(model, capabilities, now);
    }

    /// The window of a model by the configuration, its server or the table of facts.
    fn said_window(&self, model: &str) -> usize {
        if let Some(tokens) = self.options.context_tokens {
            return tokens as usize;
        }
        let profile = self.profile(model);
        if profile.window_questions.is_empty() {
            return profile.window;
        }
        let asker = Asker {
            endpoint: &self.endpoint,
            headers: self.dialect.headers(self.endpoint.key()),
            questions: profile.window_questions,
            usual: profile.window,
        };
        let now = self.clock.monotonic();
        known_window(&self.learned, model, now, &asker).unwrap_or(profile.window)
    }

    /// A window, unless the server has named a smaller one when it refused a request.
    fn limited(&self, model: &str, window: usize) -> usize {
        let limit = self.learned.limit(model, self.clock.monotonic());
        limit.map_or(window, |limit| window.min(limit))
    }

    /// How long the first word of a reply may take, where another server can be asked, and
    /// whether the model `is_thinking` before it.
    fn first_token(&self, request: &ModelRequest<'_>, is_thinking: bool) -> Option<Duration> {
        if !request.has_next || !request.stream {
            return None;
        }
        let effort = self.options.reasoning_effort;
        let thinks = is_thinking || effort.is_some_and(|effort| effort != "none");
        Some(self.options.first_token.unwrap_or_else(|| {
            if self.endpoint.is_local {
                // It may be loading its model.
                request.deadline.saturating_duration_since(Instant::now()) / 2
            } else if thinks {
                FIRST_TOKEN_THINKING
            } else {
                FIRST_TOKEN
            }
        }))
    }

    /// Sends a request. Sets `answered` when the head of a reply has arrived.
    fn send(
        &self,
        context: &RequestContext<'_>,
        body: &[u8],
        reply: &mut ReplyBuilder<'_>,
        answered: &mut bool,
    ) -> Result<ModelReply, Failure> {
        let request = context.request;
        let path = self.dialect.path(context.capabilities);
        let (deadline, cancel) = (request.deadline, request.cancel);
        let mut post = self.endpoint.request(path, Some(body), deadline, cancel);
        post.headers = self.dialect.headers(self.endpoint.key());
        if request.stream {
            post.accept = "text/event-stream, application/x-ndjson, application/json";
        }
        post.silence = self.first_token(request, false);
        let now = Instant::now();
        let patience = Patience {
            first_token: post.silence.map(|limit| now + limit),
            first_token_thinking: self.first_token(request, true).map(|limit| now + limit),
            silence: match self.endpoint.is_local {
                true => LOCAL_SILENCE_LIMIT,
                false => SILENCE_LIMIT,
            },
        };
        self.endpoint.send(&post, |answer| {
            *answered = true;
            // Some servers stream unasked, and some do not when asked.
            let is_stream = match answer.header("content-type").unwrap_or_default() {
                kind if kind.contains("event-stream") || kind.contains("ndjson") => true,
                kind if kind.contains("json") || kind.contains("html") => false,
                _ => request.stream,
            };
            let patience = is_stream.then_some(patience);
            let mut parser = self.dialect.parser(context.capabilities);
            let origin = &context.origin();
            reply_reader::read(answer, patience, &mut *parser, reply, origin)
        })
    }

    /// Makes one attempt.
    fn attempt(
        &self,
        request: &ModelRequest<'_>,
        options: Options,
        progress: &mut Progress,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, Failed> {
        let (model, wants_pieces) = (request.model, request.stream);
        let own = progress.own;
        let capabilities = own.unwrap_or_else(|| self.capabilities(model));
        // Without a stream, a server that works is as silent as one that hangs.
        let request = &ModelRequest {
            stream: (request.stream || request.has_next) && !capabilities.no_stream,
            ..*request
        };
        let now = self.clock.monotonic();
        let refused = self.learned.files(model, false, now);
        let profile = self.profile(model);
        let files = Files::of(request, profile, capabilities, refused);
        let context = RequestContext {
            request,
            base_url: &self.endpoint.base_url,
            origin_path: self.dialect.origin_path(capabilities),
            capabilities,
            options,
            profile,
            files: &files,
        };
        let mut supported = self.dialect.supported_options(capabilities);
        supported.must_call &= !capabilities.no_tools;
        if let Some(what) = request.client.and_then(|client| client.beyond(&supported)) {
            let says = format!("cannot be told {what}, which the program that asks wants");
            let error = self.endpoint.failed(says.into(), "a wish", Cause::Request);
            return Err(Failed { error, again: None });
        }
        let body = self.dialect.body(&context).into_bytes();
        let note = (progress.had_tools && capabilities.no_tools).then(|| {
            format!("(The model {model} cannot use tools, so this is answered without them.)\n\n")
        });
        let mut stream = ReplyStream::new(wants_pieces.then_some(&mut *on), note);
        if capabilities.opens_thinking {
            stream = stream.expecting_thoughts();
        }
        let mut builder = ReplyBuilder::new(stream);
        builder.keeps_members = matches!(capabilities.thoughts, Thoughts::WithEveryReply(_));
        if request.may_call && !capabilities.no_tools {
            builder.offered = request.tools;
        }
        let mut answered = false;
        let result = self.send(&context, &body, &mut builder, &mut answered);
        let mut reply = match result {
            Ok(reply) => reply,
            Err(failure) => {
                let failed = self.decide(failure, answered, &context, &body, progress);
                keep_heard(failed, &mut builder)?
            }
        };
        let sent = files.all_sent();
        self.learned.learn_files(model, sent, true, now);
        if let Some(opens_thinking) = builder.text.opens_thinking()
            && opens_thinking != capabilities.opens_thinking
        {
            let mut learned = self.capabilities(model);
            learned.opens_thinking = opens_thinking;
            let change = match opens_thinking {
                true => "replies are shown from where their thoughts end",
                false => "replies are shown from their beginning",
            };
            self.remember(model, learned, change);
        }
        if reply.usage == Usage::default() {
            let (of_files, tokens) = files.written();
            let tokens = tokens + (body.len() - of_files) / TOKEN_BYTES;
            reply.usage = estimate(tokens, &reply);
            reply.is_estimated = true;
        }
        reply.model = Some(model.to_owned());
        Ok(reply)
    }

    /// What to do about a failed attempt. Remembers what the server does not
    /// accept, so that the next attempt leaves it out.
    fn decide(
        &self,
        failure: Failure,
        answered: bool,
        context: &RequestContext<'_>,
        body: &[u8],
        progress: &mut Progress,
    ) -> Failed {
        let model = context.request.model;
        let now = self.clock.monotonic();
        let verdict = classify(&failure, RequestKind::Reply(context, body));
        let mut is_free = failure.is_stale();
        match (verdict, &failure) {
            (Verdict::Without(feature), Failure::Reported(response)) => {
                self.leave_out(feature, response, context, body, progress);
                is_free = true;
            }
            (Verdict::Shorter(Overflow::Window(tokens)), _) => {
                self.learned.learn_limit(model, tokens, now);
            }
            _ => {}
        }
        let error = failure.into_error(verdict, &self.endpoint, model, answered);
        if let ProviderError::Failed {
            cause: Cause::Server | Cause::Busy(_) | Cause::Length { .. },
            ..
        } = error
        {
            self.learned.doubt_window(model, now);
        }
        let again = progress.retries.next(verdict, is_free);
        Failed { error, again }
    }

    /// Sends the next requests without a feature.
    fn leave_out(
        &self,
        feature: Feature,
        response: &ErrorResponse,
        context: &RequestContext<'_>,
        body: &[u8],
        progress: &mut Progress,
    ) {
        let (subject, model) = (&self.endpoint.subject, context.request.model);
        let now = self.clock.monotonic();
        if let Feature::Files(kinds) = feature {
            let taken = self.learned.files(model, true, now);
            let guesses = &mut progress.guesses;
            let accused = (context.files).accused(kinds, response, body, &taken, guesses);
            let out = accused.out;
            log::info!("{subject}, {model:?}: from now on, requests go without {out:?}");
            progress.accused.extend(&out);
            self.learned.learn_files(model, out, false, now);
            self.learned.forget_files(model, &accused.back);
            return;
        }
        let (capabilities, change) = context.capabilities.without(feature);
        if progress.own.is_some() || is_about_wishes(response, context.request) {
            log::info!("{subject}, {model:?}: this program's request goes {change}");
            progress.own = Some(capabilities);
        } else if self.capabilities(model) == context.capabilities {
            // Another turn may have found out the same, or more, in the meantime.
            self.remember(model, capabilities, &format!("requests go {change}"));
        }
    }
}

impl Provider for Remote {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, ProviderError> {
        let model = request.model;
        let window = match self.options.context_tokens {
            Some(tokens) => tokens as usize,
            None => (self.learned.window(model).tokens).unwrap_or(self.profile(model).window),
        };
        let window = self.limited(model, window);
        let options = Options {
            context_tokens: u32::try_from(window).ok(),
            ..self.options
        };
        let request = &ModelRequest {
            max_tokens: most_reply(request.max_tokens, window),
            ..*request
        };
        let mut progress = Progress {
            had_tools: !self.capabilities(model).no_tools,
            ..Progress::default()
        };
        let result = loop {
            if request.cancel.is_cancelled() {
                break Err(ProviderError::Cancelled);
            }
            let failed = match self.attempt(request, options, &mut progress, on) {
                Ok(reply) => break Ok(reply),
                Err(failed) => failed,
            };
            let left = request.deadline.saturating_duration_since(Instant::now());
            let Some(wait) = failed.again.filter(|wait| *wait < left) else {
                break Err(failed.error);
            };
            if wait >= TOLD_WAIT {
                on(Heard::Waits(wait));
            }
            if !wait.is_zero() {
                log::info!("retrying the model request in {} ms", wait.as_millis());
                request.cancel.wait(wait);
            }
        };
        if result.is_err() {
            // It failed without them, too.
            self.learned.forget_files(model, &progress.accused);
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
        if self.learned.limit(model, self.clock.monotonic()).is_some() {
            return false;
        }
        let is_asked = !self.profile(model).window_questions.is_empty();
        let known = self.learned.window(model);
        let is_guess = known.tokens.is_none() && !known.was_asked;
        self.options.context_tokens.is_none() && is_asked && is_guess
    }

    fn window(&self, model: &str) -> usize {
        self.limited(model, self.said_window(model))
    }
}

/// The text of a reply that was lost after some of it was heard: it is not begun again.
///
/// # Errors
/// The failure, if nothing was heard, or somebody stopped the request.
fn keep_heard(failed: Failed, builder: &mut ReplyBuilder<'_>) -> Result<ModelReply, Failed> {
    if !builder.text.has_streamed() {
        return Err(failed);
    }
    let ProviderError::Failed {
        public,
        detail,
        cause,
        ..
    } = &failed.error
    else {
        return Err(Failed {
            again: None,
            ..failed
        });
    };
    let finish_reason = match cause {
        Cause::Length { .. } => FinishReason::Length,
        _ => FinishReason::Interrupted,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::openai::OpenAi;
    use crate::model::testing::Ask;

    #[test]
    fn the_first_word_has_more_time_where_the_model_thinks_or_is_loaded() {
        let (away, at_home) = ("https://llm.example/v1", "http://127.0.0.1:1/v1");
        for (url, effort, set, is_thinking, seconds) in [
            (away, None, None, false, 60),
            (away, Some("none"), None, false, 60),
            (away, Some("high"), None, false, 180),
            (away, None, None, true, 180),
            (at_home, None, None, false, 300),
            (at_home, Some("high"), None, true, 300),
            (away, None, Some(7), true, 7),
            (at_home, None, Some(7), false, 7),
        ] {
            let options = Options {
                reasoning_effort: effort,
                first_token: set.map(Duration::from_secs),
                ..Options::default()
            };
            let endpoint = Endpoint::new("The model server", url, None);
            let service = Profile::of("openai-compatible", &endpoint.host);
            let remote = Remote::new(endpoint, Box::new(OpenAi), service, options);
            let mut ask = Ask {
                time: Duration::from_secs(600),
                ..Ask::hello(true)
            };
            assert_eq!(
                remote.first_token(&ask.request(), is_thinking),
                None,
                "nobody else"
            );
            ask.has_next = true;
            let limit = remote.first_token(&ask.request(), is_thinking).unwrap();
            let (most, limit) = (f64::from(seconds), limit.as_secs_f64());
            assert!(
                limit <= most && limit > most - 5.0,
                "{url} {effort:?}: {limit}"
            );
            ask.stream = false;
            assert_eq!(remote.first_token(&ask.request(), is_thinking), None);
        }
    }
}
