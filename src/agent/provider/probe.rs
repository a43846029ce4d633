//! Whether a provider would answer: is it there, does it take the key, does it
//! have the model. Asks for its list of models, which costs nothing.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::anthropic;
use super::dialect::bearer;
use super::endpoint::Endpoint;
use super::endpoint_of;
use super::refusal::Refusal;
use crate::model::ProviderError;
use config::{Api, ModelChoice, Preset};
use net::cancel::Cancel;
use net::http_client::{BODY_LIMIT, ClientError, ClientRequest, ClientResponse, HttpClient};
use net::tls::Trust;

/// Most names that are suggested in place of a model that does not exist.
const SUGGESTED: usize = 5;

/// What is known of a provider after it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// What people call it, with its address.
    pub subject: String,
    /// What was found.
    pub finding: Finding,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It needs no server: it would answer.
    Offline,
    /// It answers, takes the key and has the model.
    Good,
    /// It answers and takes the key, but does not say which models it has.
    NoList,
    /// It answers, but its list does not hold the model; with names that are in
    /// it, the most alike first, and whether it answers with what it has anyway.
    NoModel {
        /// Names in its list.
        others: Vec<String>,
        /// Whether requests for the model are answered nevertheless.
        is_served: bool,
    },
    /// It wants a key and there is none.
    NoKey,
    /// It refused the key.
    BadKey(String),
    /// Nobody answers there, or nobody who speaks this API.
    Away(String),
    /// The configuration names no address.
    NoAddress,
}

/// Asks the provider of `choice` for its models.
pub fn probe(choice: &ModelChoice, trust: &Trust, limit: Duration) -> Probe {
    let preset = Preset::of(&choice.provider);
    let title = preset.map_or(choice.provider.as_str(), |preset| preset.title);
    let Some((preset, endpoint)) =
        preset.and_then(|preset| Some((preset, endpoint_of(choice, preset)?)))
    else {
        let is_offline = preset.is_some_and(|preset| preset.api == Api::Offline);
        return Probe {
            subject: title.to_owned(),
            finding: match is_offline {
                true => Finding::Offline,
                false => Finding::NoAddress,
            },
        };
    };
    let prober = Prober {
        preset,
        endpoint: &endpoint,
        http_client: HttpClient::new().trusting(trust.clone()),
        deadline: Instant::now() + limit,
    };
    let finding = prober.find(&choice.model);
    Probe {
        subject: endpoint.subject,
        finding,
    }
}

/// The models of a server at `base_url`, if it answers in time.
pub fn models_at(provider: &str, base_url: &str, limit: Duration) -> Option<Vec<String>> {
    let preset = Preset::of(provider)?;
    let choice = ModelChoice {
        provider: provider.to_owned(),
        model: String::new(),
        api_key: None,
        base_url: Some(base_url.to_owned()),
    };
    let endpoint = endpoint_of(&choice, preset)?;
    let prober = Prober {
        preset,
        endpoint: &endpoint,
        http_client: HttpClient::new(),
        deadline: Instant::now() + limit,
    };
    prober.models().ok()
}

struct Prober<'a> {
    preset: &'static Preset,
    endpoint: &'a Endpoint,
    http_client: HttpClient,
    deadline: Instant,
}

/// Why there is no list.
enum Nothing {
    Client(ClientError),
    Refused(Refusal),
    NotJson,
}

impl From<ClientError> for Nothing {
    fn from(error: ClientError) -> Nothing {
        Nothing::Client(error)
    }
}

impl Prober<'_> {
    fn find(&self, model: &str) -> Finding {
        // A list that anybody may read says nothing about the key.
        if let (Some(path), Some(_)) = (self.preset.quirks.key_path, self.endpoint.key())
            && let Err(Nothing::Refused(refusal)) = self.get(path)
            && matches!(refusal.status, 401 | 403)
        {
            return Finding::BadKey(self.endpoint.quote(&refusal.message));
        }
        let is_keyless = self.preset.key_variable.is_some() && self.endpoint.key().is_none();
        if is_keyless && !self.endpoint.is_local {
            return Finding::NoKey;
        }
        match self.models() {
            Ok(names) => self.judge(model, names),
            Err(Nothing::Client(error)) => {
                Finding::Away(match self.endpoint.unanswered(&error, false) {
                    ProviderError::Failed { public, .. } => self.without_subject(&public),
                    _ => "did not answer in time".to_owned(),
                })
            }
            Err(Nothing::Refused(refusal)) => match refusal.status {
                401 | 403 if self.endpoint.key().is_none() => Finding::NoKey,
                401 | 403 => Finding::BadKey(self.endpoint.quote(&refusal.message)),
                // Some servers chat but do not list.
                404 | 405 | 501 if self.preset.api == Api::OpenAi && refusal.is_json() => {
                    Finding::NoList
                }
                status => Finding::Away(format!(
                    "answered {status} to the question for its models: see base_url{}",
                    self.endpoint.path_hint
                )),
            },
            Err(Nothing::NotJson) => Finding::Away(format!(
                "does not speak this API: see base_url{}",
                self.endpoint.path_hint
            )),
        }
    }

    fn without_subject(&self, text: &str) -> String {
        let said = text.strip_prefix(&self.endpoint.subject).unwrap_or(text);
        said.trim_start().to_owned()
    }

    fn judge(&self, model: &str, names: Vec<String>) -> Finding {
        if names.iter().any(|name| is_same(name, model)) {
            return Finding::Good;
        }
        // Other names of a model are not listed.
        if self.preset.api == Api::Anthropic && self.get(&format!("/v1/models/{model}")).is_ok() {
            return Finding::Good;
        }
        Finding::NoModel {
            others: nearest(model, names),
            is_served: self.preset.quirks.serves_any_model,
        }
    }

    fn models(&self) -> Result<Vec<String>, Nothing> {
        let (path, list, name) = match self.preset.api {
            Api::Ollama => ("/api/tags", "models", "name"),
            Api::Anthropic => ("/v1/models?limit=1000", "data", "id"),
            _ => ("/models", "data", "id"),
        };
        let value = self.get(path)?;
        // Together answers with the list itself.
        let items = value.get(list).unwrap_or(&value).as_array();
        let items = items.ok_or(Nothing::NotJson)?;
        Ok(items
            .iter()
            .filter_map(|item| item.get(name)?.as_str().map(str::to_owned))
            .collect())
    }

    fn get(&self, path: &str) -> Result<Value, Nothing> {
        let key = self.endpoint.key().map(|key| key.expose());
        let own = match self.preset.api {
            Api::Anthropic => anthropic::headers(key),
            _ => bearer(key),
        };
        let mut headers = vec![("accept", "application/json")];
        headers.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
        let outgoing = ClientRequest {
            method: "GET",
            url: &format!("{}{path}", self.endpoint.base_url),
            headers: &headers,
            body: None,
            deadline: self.deadline,
            cancel: &Cancel::default(),
        };
        self.http_client
            .exchange(&outgoing, |answer: &mut ClientResponse| {
                let body = answer.read_all(BODY_LIMIT)?;
                if !(200..300).contains(&answer.status()) {
                    return Err(Nothing::Refused(Refusal::of_answer(answer, &body)));
                }
                serde_json::from_slice(&body).map_err(|_| Nothing::NotJson)
            })
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
    let mut nearest = Vec::with_capacity(SUGGESTED);
    while nearest.len() < SUGGESTED
        && let Some(place) = (0..names.len()).min_by_key(|place| Reverse(alike(&names[*place])))
    {
        nearest.push(names.remove(place));
    }
    nearest
}

#[cfg(test)]
mod tests;
