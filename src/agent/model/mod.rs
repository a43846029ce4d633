//! Model providers: one for each kind of API behind the
//! [`Provider`] trait.
//!
//! A request goes through these functions:
//!
//! 1. [`from_config`] makes the provider, once for each configuration in force.
//! 2. [`Servers::ask`](servers::Servers::ask) asks one server after the other.
//! 3. `Remote::complete` asks one server over HTTP, with retries
//!    `Offline::complete` answers from rules instead.
//! 4. `Dialect::body` writes the request in the form that the server accepts
//!    ([`profile`], `ServerCapabilities`), with extra members for it alone and
//!    the files of messages (`files`).
//! 5. `reply_reader::read` reads the reply, whole or as a stream
//!    (`event_stream`). The dialect's `ReplyParser` maps its JSON to text
//!    (`ReplyStream`), tool calls (`ToolCallBuilder`), usage and finish reason.
//! 6. `classify` says what to do about a failure, and `report` puts it in words.
//!
//! `window` asks home servers how large the window of a model is, before a request is
//! made for it ([`Provider::window`]).
//!
//! [`embedding`] asks for the vectors of texts, and [`voice`] has speech understood and made.
//! Every request to a server goes through `Endpoint::send`, and `classify` decides about each
//! that failed.
//!
//! [`probe`](probe::probe) finds out whether a provider would answer, and
//! [`trial`] asks the model for what a turn needs.

mod anthropic;
pub(crate) mod budget;
mod classify;
pub mod client_options;
mod dialect;
pub mod embedding;
mod endpoint;
pub mod estimate;
pub(super) mod event_stream;
mod failure;
pub mod fence;
mod files;
mod learned;
mod mended_json;
pub mod nearby;
mod offline;
mod ollama;
mod openai;
mod plain_schema;
pub mod probe;
pub mod profile;
mod remote;
mod reply_reader;
mod reply_stream;
mod report;
mod request;
mod send;
mod server_capabilities;
pub mod servers;
mod tool_call_builder;
pub mod trial;
pub mod voice;
mod window;

use std::sync::Mutex;
use std::time::Duration;

use anthropic::Anthropic;
use base::clock::Clock;
use config::{Api, Config, ModelChoice, Preset};
use dialect::{Dialect, Options};
use endpoint::Endpoint;
use net::tls::Trust;
use offline::Offline;
use ollama::Ollama;
use openai::OpenAi;
use profile::Profile;
use remote::Remote;
pub use request::{
    Cause, ChatMessage, Content, FileKind, FileReader, Heard, ModelFile, ModelHealth, ModelReply,
    ModelRequest, Provider, ProviderError, Refusal, Takes, ToolSpec,
};
pub(crate) use request::{earlier_block, make_call_id, out_of_time};
use servers::{Server, Servers};

/// The servers that a configuration names. They keep open connections and what they have
/// learned, so they are made once for each configuration in force, not for each turn.
pub fn from_config(config: &Config, clock: &Clock) -> Servers {
    let options = options_of(config);
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let first = server_of(&config.first_choice(), options, &trust, clock);
    let mut servers = vec![Server {
        model: None,
        ..first
    }];
    if config.provider != config::OFFLINE {
        let others = config.fallback.iter();
        servers.extend(others.map(|choice| server_of(choice, options, &trust, clock)));
    }
    Servers::new(servers)
}

/// What shapes the requests to every server.
fn options_of(config: &Config) -> Options {
    Options {
        keep_alive_minutes: Some(config.keep_alive_minutes),
        reasoning_effort: config.reasoning_effort,
        ..Options::default()
    }
}

/// The server of one choice.
fn server_of(choice: &ModelChoice, options: Options, trust: &Trust, clock: &Clock) -> Server {
    let remote = remote_of(choice, options, trust, clock);
    let learned = remote.as_ref().map(Remote::learned);
    let is_offline = choice.provider == config::OFFLINE;
    Server {
        name: choice.provider.clone(),
        model: Some(choice.model.clone()),
        learned: learned.unwrap_or_default(),
        breaker: Mutex::default(),
        provider: match remote {
            Ok(remote) => Box::new(remote),
            Err(_) if is_offline => Box::new(Offline),
            Err(why) => Box::new(Unusable(why)),
        },
    }
}

/// The model server of one choice.
///
/// # Errors
/// Why there is none.
fn remote_of(
    choice: &ModelChoice,
    options: Options,
    trust: &Trust,
    clock: &Clock,
) -> Result<Remote, &'static str> {
    let preset = Preset::of(&choice.provider);
    let dialect: Box<dyn Dialect> = match preset.map(|preset| preset.api) {
        Some(Api::OpenAi) => Box::new(OpenAi),
        Some(Api::Anthropic) => Box::new(Anthropic),
        Some(Api::Ollama) => Box::new(Ollama),
        Some(Api::Offline) => return Err("it is offline"),
        None => return Err("this version does not know the configured provider"),
    };
    let endpoint = Endpoint::of_choice(choice, trust)
        .ok_or("the provider \"openai-compatible\" needs a base_url")?;
    let options = Options {
        context_tokens: choice.context_tokens,
        first_token: (choice.first_token_seconds)
            .map(|seconds| Duration::from_secs(seconds.into())),
        ..options
    };
    let service = Profile::of(&choice.provider, &endpoint.host);
    let remote = Remote::new(endpoint, dialect, service, options);
    Ok(remote.on_clock(clock.clone()))
}

/// Whether the model of a choice takes a reasoning effort, as far as is known of it before it
/// is asked.
pub fn takes_effort(choice: &ModelChoice) -> bool {
    let endpoint = Endpoint::of_choice(choice, &Trust::default());
    let host = endpoint.map_or_else(String::new, |endpoint| endpoint.host);
    let service = Profile::of(&choice.provider, &host);
    service.for_model(&choice.model, &host).effort.is_some()
}

/// Replaces a provider that the validation of the configuration refuses.
struct Unusable(&'static str);

impl Provider for Unusable {
    fn complete(
        &self,
        _: &ModelRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, ProviderError> {
        Err(ProviderError::Failed {
            public: format!("no model can be asked: {}", self.0).into(),
            detail: "the configuration was not validated".to_owned(),
            cause: Cause::Server,
            refusal: Refusal::for_cause(Cause::Request),
        })
    }
}

#[cfg(test)]
mod test_recordings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
