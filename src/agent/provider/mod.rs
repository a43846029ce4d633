//! Model providers: one for each kind of API behind the
//! [`Provider`] trait.
//!
//! A request goes through these functions:
//!
//! 1. [`from_config`] makes the provider, once for each configuration in force.
//! 2. `Fallback::complete` asks one provider after the other, if there are
//!    several.
//! 3. `Remote::complete` asks one server over HTTP, with retries
//!    (`retry::with_retries`). `Offline::complete` answers from rules instead.
//! 4. `Dialect::body` writes the request in the form that the server accepts
//!    ([`facts`], `ServerCapabilities`), with extra members for it alone (`extra`) and
//!    the files of messages (`files`).
//! 5. `reply_reader::read` reads the reply, whole or as a stream
//!    (`event_stream`). The dialect's `ReplyParser` maps its JSON to text
//!    (`ReplyStream`), tool calls (`ToolCallBuilder`), usage and finish reason.
//! 6. `AttemptError::into_decision` classifies a failure (`ErrorResponse`) and
//!    decides whether to retry.
//!
//! `window` asks home servers how large the window of a model is, before a request is
//! made for it ([`Provider::window`]).
//!
//! [`embedding`] asks for the vectors of texts, [`pass_on`] for a program.
//!
//! [`probe`](probe::probe) finds out whether a provider would answer, and
//! [`trial`] asks the model for what a turn needs.

mod anthropic;
mod asked_wait;
mod attempt_error;
mod dialect;
pub mod embedding;
mod endpoint;
mod error_response;
pub(super) mod event_stream;
mod extra;
pub mod facts;
mod fallback;
mod files;
mod lessons;
mod mended_json;
mod offline;
mod ollama;
mod openai;
mod overflow;
pub mod pass_on;
mod plain_schema;
pub mod probe;
mod remote;
mod reply_reader;
mod reply_stream;
mod retry;
mod server_capabilities;
mod tool_call_builder;
pub mod trial;
pub mod voice;
mod window;

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Cause, ModelReply, ModelRequest, Provider, ProviderError};
use anthropic::Anthropic;
use base::clock::Clock;
use config::{Api, Config, ModelChoice, Preset};
use dialect::{Dialect, Options};
use endpoint::Endpoint;
use facts::Service;
use fallback::Fallback;
use net::tls::Trust;
use offline::Offline;
use ollama::Ollama;
use openai::OpenAi;
use remote::Remote;

/// How long a server on the internet may be silent before its first word, if
/// another one can be asked.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(45);
/// The same for a local server, which may have to load its model first.
const LOCAL_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(120);

/// The provider that a configuration names. It keeps open connections and what
/// it has learned about its server, so it is made once for each configuration in
/// force, not for each turn.
pub fn from_config(config: &Config, clock: &Clock) -> Arc<dyn Provider> {
    let options = Options {
        context_tokens: None,
        keep_alive_minutes: Some(config.keep_alive_minutes),
        reasoning_effort: config.reasoning_effort,
    };
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let first = config.first_choice();
    if config.fallback.is_empty() || config.provider == config::OFFLINE {
        return provider_of(&first, options, &trust, clock, None).into();
    }
    Arc::new(fallback_of(
        &first,
        &config.fallback,
        options,
        &trust,
        clock,
    ))
}

fn fallback_of(
    first: &ModelChoice,
    others: &[ModelChoice],
    options: Options,
    trust: &Trust,
    clock: &Clock,
) -> Fallback {
    let mut choices = std::iter::once(first).chain(others).peekable();
    let mut providers = Vec::with_capacity(1 + others.len());
    while let Some(choice) = choices.next() {
        // The last one has no successor, so it may use all the remaining time.
        let timeout = choices.peek().map(|_| first_byte_timeout(choice));
        providers.push((choice, provider_of(choice, options, trust, clock, timeout)));
    }
    Fallback::new(providers)
}

fn first_byte_timeout(choice: &ModelChoice) -> Duration {
    match Endpoint::of_choice(choice) {
        Some(endpoint) if !endpoint.is_local => FIRST_BYTE_TIMEOUT,
        _ => LOCAL_FIRST_BYTE_TIMEOUT,
    }
}

/// The provider of one choice. With a `timeout`, its server may be silent no
/// longer than this before its first word.
fn provider_of(
    choice: &ModelChoice,
    options: Options,
    trust: &Trust,
    clock: &Clock,
    timeout: Option<Duration>,
) -> Box<dyn Provider> {
    let Some(preset) = Preset::of(&choice.provider) else {
        return Box::new(Unusable(
            "this version does not know the configured provider",
        ));
    };
    let dialect: Box<dyn Dialect> = match preset.api {
        Api::Offline => return Box::new(Offline),
        Api::OpenAi => Box::new(OpenAi),
        Api::Anthropic => Box::new(Anthropic),
        Api::Ollama => Box::new(Ollama),
    };
    let Some(endpoint) = Endpoint::of_choice(choice) else {
        return Box::new(Unusable(
            "the provider \"openai-compatible\" needs a base_url",
        ));
    };
    let options = Options {
        context_tokens: choice.context_tokens,
        ..options
    };
    let service = Service::of(&choice.provider, &endpoint.host);
    let remote = Remote::new(endpoint, dialect, service, options)
        .trusting(trust.clone())
        .on_clock(clock.clone());
    Box::new(match timeout {
        Some(timeout) => remote.with_first_byte_timeout(timeout),
        None => remote,
    })
}

/// Replaces a provider that the validation of the configuration refuses.
struct Unusable(&'static str);

impl Provider for Unusable {
    fn complete(
        &self,
        _: &ModelRequest<'_>,
        _: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        Err(ProviderError::Failed {
            public: format!("no model can be asked: {}", self.0),
            detail: "the configuration was not validated".to_owned(),
            cause: Cause::Server,
        })
    }
}

#[cfg(test)]
mod test_recordings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
