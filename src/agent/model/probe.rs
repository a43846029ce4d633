//! Whether a provider would answer: whether it can be reached, accepts the key and
//! has the model. Asks for its list of models, which costs nothing.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::anthropic;
use super::classify::{RequestKind, Verdict, classify};
use super::endpoint::{Endpoint, model_error};
use super::failure::Failure;
use base::language::Said;
use config::{Api, ModelChoice, Preset};
use net::cancel::Cancel;
use net::http_client::BODY_LIMIT;
use net::tls::Trust;

/// Most names that are suggested for a model that does not exist.
const SUGGESTED: usize = 5;

/// What is known of a provider after it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// What people call it, with its address.
    pub subject: Said,
    /// The model that was looked for.
    pub model: String,
    /// What was found.
    pub finding: Finding,
    /// The models that it lists, if it gave a list.
    pub models: Option<Vec<String>>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It needs no server: it would answer.
    Offline,
    /// It answers, accepts the key if there is one, and has the model.
    Good {
        /// Whether there is a key.
        has_key: bool,
    },
    /// It answers and accepts the key, but does not list its models.
    NoList,
    /// It answers, but its list does not hold the model.
    NoModel {
        /// Names in its list, the most similar first; at most five.
        others: Vec<String>,
        /// Whether it answers requests for the model anyway, with what it has.
        is_served: bool,
    },
    /// It wants a key and there is none.
    NoKey,
    /// It refused the key, with these words.
    BadKey(String),
    /// Nothing answers there, or nothing that speaks this API.
    Unavailable(Said),
    /// The configuration names no address.
    NoAddress,
}

impl Finding {
    /// Whether a message to the model would probably be answered.
    pub fn is_usable(&self) -> bool {
        matches!(
            self,
            Finding::Offline
                | Finding::Good { .. }
                | Finding::NoList
                | Finding::NoModel {
                    is_served: true,
                    ..
                }
        )
    }
}

impl Probe {
    /// As a sentence without its full stop.
    pub fn said(&self) -> Said {
        let key = match &self.finding {
            Finding::Offline => "probe.offline",
            Finding::Good { has_key: true } => "probe.good_key",
            Finding::Good { has_key: false } => "probe.good",
            Finding::NoList => "probe.no_list",
            Finding::NoModel {
                is_served: true, ..
            } => "probe.any",
            Finding::NoModel { .. } => "probe.no_model",
            Finding::NoKey => "probe.no_key",
            Finding::BadKey(_) => "probe.bad_key",
            Finding::Unavailable(_) => "error.of_server",
            Finding::NoAddress => "probe.no_address",
        };
        let said = Said::of(key, &[("model", &self.model)]).with("server", self.subject.clone());
        match &self.finding {
            Finding::NoModel { others, .. } => said.with("models", others.join(", ")),
            Finding::BadKey(quoted) => said.with("said", &**quoted),
            Finding::Unavailable(why) => said.with("says", why.clone()),
            _ => said,
        }
    }
}

/// Asks the provider of `choice` for its models, within `limit`.
pub fn probe(choice: &ModelChoice, trust: &Trust, limit: Duration) -> Probe {
    let preset = Preset::of(&choice.provider);
    let probe = |subject: Said, finding: Finding, models| Probe {
        subject,
        model: choice.model.clone(),
        finding,
        models,
    };
    match (preset, Endpoint::of_choice(choice, trust)) {
        (Some(preset), Some(endpoint)) => {
            let prober = Prober {
                preset,
                endpoint: &endpoint,
                deadline: Instant::now() + limit,
            };
            let (finding, models) = prober.find(&choice.model);
            probe(endpoint.subject.clone(), finding, models)
        }
        (Some(preset), None) if preset.api == Api::Offline => {
            probe(preset.title.into(), Finding::Offline, None)
        }
        _ => probe((&*choice.provider).into(), Finding::NoAddress, None),
    }
}

/// The models of a server at `base_url`, if it lists them within `limit` to
/// anybody.
pub fn models_at(provider: &str, base_url: &str, limit: Duration) -> Option<Vec<String>> {
    probe(&keyless(provider, base_url), &Trust::default(), limit).models
}

/// No model in particular of a server at `base_url`.
pub(super) fn keyless(provider: &str, base_url: &str) -> ModelChoice {
    ModelChoice {
        provider: provider.to_owned(),
        model: String::new(),
        api_key: None,
        base_url: Some(base_url.to_owned()),
        context_tokens: None,
        first_token_seconds: None,
    }
}

struct Prober<'a> {
    preset: &'static Preset,
    endpoint: &'a Endpoint,
    deadline: Instant,
}

impl Prober<'_> {
    fn find(&self, model: &str) -> (Finding, Option<Vec<String>>) {
        // A list that anybody may read says nothing about the key.
        if let (Some(path), Some(_)) = (self.preset.quirks.key_path, self.endpoint.key())
            && let Err(Failure::Reported(response)) = self.get(path)
            && response.is_about_key()
        {
            let said = self.endpoint.quote(&response.message);
            return (Finding::BadKey(said), None);
        }
        let is_keyless = self.preset.key_variable.is_some() && self.endpoint.key().is_none();
        if is_keyless && !self.endpoint.is_local {
            return (Finding::NoKey, None);
        }
        match self.models() {
            Ok(names) => (self.find_in(&names, model), Some(names)),
            Err(why) => (self.without_models(why), None),
        }
    }

    fn find_in(&self, names: &[String], model: &str) -> Finding {
        // A list need not hold the other names of a model (Anthropic).
        let is_known = names.iter().any(|name| is_same(name, model))
            || self.preset.api == Api::Anthropic
                && self.get(&format!("/v1/models/{model}")).is_ok();
        match is_known {
            true => Finding::Good {
                has_key: self.endpoint.key().is_some(),
            },
            false => Finding::NoModel {
                others: nearest(model, names.to_vec()),
                is_served: self.preset.quirks.serves_any_model,
            },
        }
    }

    fn without_models(&self, why: Failure) -> Finding {
        let endpoint = self.endpoint;
        let verdict = classify(&why, RequestKind::Models);
        let says = match why {
            Failure::Client(error) => endpoint.why_unanswered(&error, false),
            Failure::Reported(response) => match (verdict, response.status) {
                _ if response.is_about_key() && endpoint.key().is_none() => return Finding::NoKey,
                _ if response.is_about_key() => {
                    return Finding::BadKey(endpoint.quote(&response.message));
                }
                (Verdict::Without(_), _) if self.preset.api == Api::OpenAi => {
                    return Finding::NoList;
                }
                // Whoever runs the server at home can do something about it.
                (_, status @ 500..=599)
                    if endpoint.is_local && !response.message.trim().is_empty() =>
                {
                    let why = endpoint.quote(&response.message);
                    let fields = [("status", &*status.to_string()), ("said", &why)];
                    model_error("list_failed", &fields)
                }
                // Its address is right.
                (Verdict::Wait(_), _) | (_, 402 | 429) => response.says(endpoint, ""),
                (_, status) => model_error("no_models", &[("status", &status.to_string())])
                    .with("hint", endpoint.path_hint()),
            },
            _ => model_error("other_api", &[]).with("hint", endpoint.path_hint()),
        };
        Finding::Unavailable(says)
    }

    fn models(&self) -> Result<Vec<String>, Failure> {
        let (path, list, name) = match self.preset.api {
            Api::Ollama => ("/api/tags", "models", "name"),
            Api::Anthropic => ("/v1/models?limit=1000", "data", "id"),
            _ => ("/models", "data", "id"),
        };
        let value = self.get(path)?;
        // Together answers with the list itself.
        let items = value.get(list).unwrap_or(&value).as_array();
        let items = items.ok_or(Failure::NoReply)?;
        Ok(items
            .iter()
            .filter_map(|item| item.get(name)?.as_str().map(str::to_owned))
            .collect())
    }

    fn get(&self, path: &str) -> Result<Value, Failure> {
        let cancel = Cancel::default();
        let mut request = self.endpoint.request(path, None, self.deadline, &cancel);
        if self.preset.api == Api::Anthropic {
            request.headers = anthropic::headers(self.endpoint.key());
        }
        self.endpoint.json(&request, BODY_LIMIT)
    }
}

/// Whether a name in a list is that of the model: Ollama leaves `:latest` out,
/// and Gemini's names have a folder before them in the list alone.
fn is_same(listed: &str, model: &str) -> bool {
    listed == model
        || listed.strip_suffix(":latest") == Some(model)
        || listed.strip_prefix("models/") == Some(model)
}

/// The names that begin most like `model`.
fn nearest(model: &str, mut names: Vec<String>) -> Vec<String> {
    let model = model.to_lowercase();
    let alike = |name: &String| {
        let name = name.to_lowercase();
        let name = name.strip_prefix("models/").unwrap_or(&name);
        let pairs = name.chars().zip(model.chars());
        pairs.take_while(|(one, other)| one == other).count()
    };
    names.sort_by_key(|name| Reverse(alike(name)));
    names.truncate(SUGGESTED);
    names
}

#[cfg(test)]
mod tests;
