//! Vectors of texts, from the server of the model: for the household's memories, and for a
//! program.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::failure::Failure;
use crate::model::budget;
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::UserId;
use base::sync::lock;
use config::{Api, Config, Preset};
use net::cancel::Cancel;
use net::tls::Trust;
use store::{Purpose, Snapshot, Store, Usage, Vector};

/// Longest that a turn waits for the vector of its message.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long no turn asks again after a failure.
const PAUSE: Duration = Duration::from_secs(60);
/// Characters of a message that count: a question, not a document.
const MESSAGE_CHARS: usize = 2_000;
/// Most bytes of an answer: 32 vectors of 4,096 numbers as text.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;
/// Most bytes of an answer to a program.
const PASSED_ON_LIMIT: usize = 16 * 1024 * 1024;

/// Asks a model server for vectors.
pub struct Embedder {
    endpoint: Endpoint,
    api: Api,
    model: String,
    dimensions: usize,
    /// Until when no turn asks.
    paused_until: Mutex<Option<Instant>>,
    /// Whether the server makes vectors of any length.
    takes_dimensions: Mutex<bool>,
}

impl Embedder {
    /// What `memory.embeddings` names, if the provider has any.
    pub fn from_config(config: &Config) -> Option<Embedder> {
        let wanted = config.memory.embeddings.as_ref()?;
        let (api, endpoint) = server(config)?;
        Some(Embedder {
            endpoint,
            api,
            model: wanted.model.clone(),
            dimensions: wanted.dimensions,
            paused_until: Mutex::default(),
            takes_dimensions: Mutex::new(true),
        })
    }

    /// What its vectors are like: those of another key cannot be compared with them.
    pub fn key(&self) -> String {
        let address = &self.endpoint.base_url;
        format!("{} of {} at {address}", self.dimensions, self.model)
    }

    /// The vector of a message, if the server makes it at once. A turn waits for it.
    pub fn of_message(&self, text: &str, deadline: Instant, cancel: &Cancel) -> Option<Vector> {
        let now = Instant::now();
        if text.trim().is_empty() || lock(&self.paused_until).is_some_and(|until| now < until) {
            return None;
        }
        let text: String = text.chars().take(MESSAGE_CHARS).collect();
        match self.of(&[&text], deadline.min(now + PATIENCE), cancel) {
            Ok(mut vectors) => vectors.pop().flatten(),
            Err(problem) => {
                if !cancel.is_cancelled() {
                    log::warn!("memories are chosen by their words alone: {problem}");
                    *lock(&self.paused_until) = Some(Instant::now() + PAUSE);
                }
                None
            }
        }
    }

    /// The vectors of texts, in their order; none of a text that has no direction.
    ///
    /// # Errors
    /// What went wrong, for the log.
    pub fn of(
        &self,
        texts: &[&str],
        deadline: Instant,
        cancel: &Cancel,
    ) -> std::result::Result<Vec<Option<Vector>>, String> {
        let takes_dimensions = *lock(&self.takes_dimensions);
        let mut answer = self.ask(texts, takes_dimensions, deadline, cancel);
        if takes_dimensions
            && let Err(Failure::Reported(response)) = &answer
            && matches!(response.status, 400 | 422)
        {
            // Of a model with one length only; its vectors are cut here.
            answer = self.ask(texts, false, deadline, cancel);
            if answer.is_ok() {
                *lock(&self.takes_dimensions) = false;
            }
        }
        let answer = answer.map_err(|failure| {
            let told = failure.told(&self.endpoint);
            format!("no vectors of {:?}: {told}", self.model)
        })?;
        let vectors = self.read(&answer);
        match vectors.len() == texts.len() {
            true => Ok(vectors),
            false => Err(format!(
                "{} sent {} vectors of {:?} for {} texts",
                self.endpoint.subject,
                vectors.len(),
                self.model,
                texts.len()
            )),
        }
    }

    fn ask(
        &self,
        texts: &[&str],
        with_dimensions: bool,
        deadline: Instant,
        cancel: &Cancel,
    ) -> std::result::Result<Value, Failure> {
        let path = match self.api {
            Api::Ollama => "/api/embed",
            _ => "/embeddings",
        };
        let mut body = json!({ "model": self.model, "input": texts });
        if with_dimensions {
            body["dimensions"] = self.dimensions.into();
        }
        let body = body.to_string();
        let request = self
            .endpoint
            .request(path, Some(body.as_bytes()), deadline, cancel);
        Snapshot::none_open();
        self.endpoint.json(&request, ANSWER_LIMIT)
    }

    /// The vectors of an answer.
    fn read(&self, body: &Value) -> Vec<Option<Vector>> {
        let vector = |numbers: &Value| {
            let numbers = numbers.as_array().into_iter().flatten();
            let numbers: Vec<f32> = numbers
                .map(|number| number.as_f64().unwrap_or_default() as f32)
                .collect();
            Vector::of(&numbers, self.dimensions)
        };
        if let Some(vectors) = body["embeddings"].as_array() {
            return vectors.iter().map(vector).collect();
        }
        let mut items: Vec<&Value> = body["data"].as_array().into_iter().flatten().collect();
        // They should be in order, but say themselves which they are.
        items.sort_by_key(|item| item["index"].as_u64());
        items
            .into_iter()
            .map(|item| vector(&item["embedding"]))
            .collect()
    }
}

/// The server of the model, and its API, if it makes vectors.
fn server(config: &Config) -> Option<(Api, Endpoint)> {
    let choice = config.first_choice();
    let api = Preset::of(&choice.provider)?.api;
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let endpoint = Endpoint::of_choice(&choice, &trust)?;
    api.has_embeddings().then_some((api, endpoint))
}

/// A program's own request for vectors.
pub struct EmbeddingRequest<'a> {
    /// The person, whose budget it is.
    pub user: (UserId, &'a str),
    /// The model that makes them.
    pub model: &'a str,
    /// The body in OpenAI's form; `model` is set in it.
    pub body: Map<String, Value>,
    /// When the time is up.
    pub deadline: Instant,
    /// Stops it.
    pub cancel: &'a Cancel,
}

/// Passes a program's request on. The answer is the server's, as it came.
///
/// # Errors
/// `invalid_request`: the provider has no vectors, or refuses the request;
/// `server_error`: the budget is used up, or the server gave no answer.
pub fn pass_on(
    config: &Config,
    store: &Store,
    clock: &Clock,
    asked: EmbeddingRequest<'_>,
) -> Result<String> {
    let (api, endpoint) = server(config).ok_or_else(|| {
        let provider = &config.first_choice().provider;
        Error::invalid_request(format!(
            "the provider {provider:?} makes no embeddings: ask another server for them"
        ))
    })?;
    let (user, name) = asked.user;
    let its = config.person(name).map(|person| (user, person));
    budget::check(config, store, clock.now(), Usage::default(), its)?;

    let path = match api {
        Api::Ollama => "/v1/embeddings",
        _ => "/embeddings",
    };
    let mut body = asked.body;
    body.insert("model".to_owned(), asked.model.into());
    let body = Value::Object(body).to_string();
    let request = endpoint.request(path, Some(body.as_bytes()), asked.deadline, asked.cancel);
    let answer = endpoint.send(&request, |answer| Ok(answer.read_all(PASSED_ON_LIMIT)?));
    let answer = answer.map_err(|failure| failure.into_refusal(&endpoint))?;
    let said: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let usage = Usage {
        input: said["usage"]["prompt_tokens"].as_u64().unwrap_or_default(),
        ..Usage::default()
    };
    store.note_usage_of(user, usage, asked.model, Purpose::Embedding);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
