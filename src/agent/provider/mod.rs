//! Model providers: one trait, and one module for each kind of API.
//!
//! What the kinds share stands beside them: a server that is asked over HTTP
//! (`remote`) in its own way (`dialect`), where it is and what is said about it (`endpoint`), what a refusal
//! means (`refusal`), what it taught about the server (`learned`), when to try
//! again (`retry`), server-sent events and lines (`event_stream`), tool calls as
//! they come (`tool_call_builder`), what goes back to where it came from (`extra`) and how
//! text reaches the person (`reply_stream`). `fallback` asks one provider after the
//! other; `probe` finds out whether one would answer.

mod anthropic;
mod dialect;
mod endpoint;
pub(super) mod event_stream;
mod extra;
mod fallback;
mod learned;
mod offline;
mod ollama;
mod openai;
mod plain_schema;
pub mod probe;
mod refusal;
mod remote;
mod reply_stream;
mod retry;
mod tool_call_builder;

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Cause, ModelReply, ModelRequest, Provider, ProviderError};
use anthropic::Anthropic;
use config::{Api, Config, ModelChoice, Preset};
use dialect::Options;
use endpoint::Endpoint;
use fallback::Fallback;
use net::tls::Trust;
use offline::Offline;
pub use ollama::CONTEXT as OLLAMA_CONTEXT;
use ollama::Ollama;
use openai::OpenAi;
use remote::Remote;

/// The provider that a configuration names. It keeps open connections and what
/// it has learned about its server, so it is made once for each configuration in
/// force, not for each turn.
pub fn from_config(config: &Config) -> Arc<dyn Provider> {
    let options = Options {
        context_tokens: config.context_tokens,
        reasoning_effort: config.reasoning_effort,
    };
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let first = config.first_choice();
    if config.fallback.is_empty() || config.provider == config::OFFLINE {
        return provider_of(&first, options, &trust, None).into();
    }
    Arc::new(Fallback::new(&first, &config.fallback, options, &trust))
}

/// The provider of one choice. With `patience`, its server may be silent no
/// longer than this before its first word.
fn provider_of(
    choice: &ModelChoice,
    options: Options,
    trust: &Trust,
    patience: Option<Duration>,
) -> Box<dyn Provider> {
    let Some(preset) = Preset::of(&choice.provider) else {
        return Box::new(Unusable(
            "this version does not know the provider that is configured",
        ));
    };
    let Some(endpoint) = endpoint_of(choice, preset) else {
        return match preset.api {
            Api::Offline => Box::new(Offline),
            _ => Box::new(Unusable(
                "the provider \"openai-compatible\" needs a base_url",
            )),
        };
    };
    let dialect: Box<dyn dialect::Dialect> = match preset.api {
        Api::Offline => return Box::new(Offline),
        Api::OpenAi => Box::new(OpenAi),
        Api::Anthropic => Box::new(Anthropic),
        Api::Ollama => Box::new(Ollama),
    };
    let remote = Remote::new(endpoint, dialect, preset.quirks, options).trusting(trust.clone());
    Box::new(match patience {
        Some(patience) => remote.with_patience(patience),
        None => remote,
    })
}

/// Where the server of a choice is; nowhere for `offline`, and without an
/// address.
fn endpoint_of(choice: &ModelChoice, preset: &Preset) -> Option<Endpoint> {
    let url = choice.base_url.as_deref().or(preset.base_url)?;
    let key = choice.api_key.clone();
    Some(match preset.api {
        Api::Offline => return None,
        Api::OpenAi => Endpoint::new(preset.title, url, key),
        Api::Anthropic => Endpoint::below(preset.title, url, &["/messages", "/v1"], key),
        Api::Ollama => Endpoint::below(preset.title, url, &["/chat", "/api", "/v1"], key),
    })
}

/// Stands for a provider that the validation of the configuration refuses.
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
            cause: Cause::Away,
        })
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
