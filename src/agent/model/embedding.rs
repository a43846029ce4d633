//! Vectors of texts, from the server of the model: for the household's memories and messages,
//! and for a program.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::classify::{RequestKind, Verdict};
use super::endpoint::Endpoint;
use super::failure::Failure;
use super::send::read_json;
use super::server_capabilities::Feature;
use crate::model::budget;
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::UserId;
use base::sync::lock;
use config::{Api, Config, Preset};
use net::cancel::Cancel;
use net::tls::Trust;
use store::{Purpose, Snapshot, Store, Usage, Vector};

/// Longest that a turn or a search waits for the vector of its message.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long none of them asks again after a failure of the server, unless that names a time.
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
    /// Until when no turn and no search asks.
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

    /// The vector of a message, if the server makes it at once. A turn or a search waits for it.
    pub fn of_message(&self, text: &str, deadline: Instant, cancel: &Cancel) -> Option<Vector> {
        let now = Instant::now();
        if text.trim().is_empty() || lock(&self.paused_until).is_some_and(|until| now < until) {
            return None;
        }
        let text: String = text.chars().take(MESSAGE_CHARS).collect();
        match self.make(&[&text], deadline.min(now + PATIENCE), cancel) {
            Ok(mut vectors) => vectors.pop().flatten(),
            Err(_) if cancel.is_cancelled() => None,
            Err((problem, verdict)) => {
                log::warn!("words alone are looked for: {problem}");
                let pause = match verdict {
                    Verdict::Wait(wait) => wait.unwrap_or(PAUSE),
                    Verdict::NextServer => PAUSE,
                    // This message is to blame.
                    _ => Duration::ZERO,
                };
                *lock(&self.paused_until) = Some(Instant::now() + pause);
                None
            }
        }
    }

    /// The vectors of texts, in their order; none of a text that has no direction, or that the
    /// server refuses.
    ///
    /// # Errors
    /// What went wrong, for the log.
    pub fn of(
        &self,
        texts: &[&str],
        deadline: Instant,
        cancel: &Cancel,
    ) -> std::result::Result<Vec<Option<Vector>>, String> {
        self.make_each(texts, deadline, cancel)
            .map_err(|(problem, _)| problem)
    }

    /// Leaves out what the server refuses, unless it refuses everything.
    fn make_each(
        &self,
        texts: &[&str],
        deadline: Instant,
        cancel: &Cancel,
    ) -> std::result::Result<Vec<Option<Vector>>, (String, Verdict)> {
        let made = self.make(texts, deadline, cancel);
        if texts.len() < 2 || !matches!(made, Err((_, Verdict::GiveUp))) {
            return made;
        }
        let (first, rest) = texts.split_at(texts.len() / 2);
        let halves = [first, rest].map(|half| (half, self.make_each(half, deadline, cancel)));
        if halves.iter().all(|(_, vectors)| vectors.is_err()) {
            return made;
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for (half, made) in halves {
            match made {
                Ok(made) => vectors.extend(made),
                Err((_, Verdict::GiveUp)) => vectors.resize(vectors.len() + half.len(), None),
                Err(other) => return Err(other),
            }
        }
        Ok(vectors)
    }

    fn make(
        &self,
        texts: &[&str],
        deadline: Instant,
        cancel: &Cancel,
    ) -> std::result::Result<Vec<Option<Vector>>, (String, Verdict)> {
        let has_length = *lock(&self.takes_dimensions);
        let mut answer = self.ask(texts, has_length, deadline, cancel);
        if let Err((_, Verdict::Without(Feature::VectorLength))) = answer {
            // They are cut here.
            answer = self.ask(texts, false, deadline, cancel);
            if answer.is_ok() {
                *lock(&self.takes_dimensions) = false;
            }
        }
        let answer = answer.map_err(|(failure, verdict)| {
            let told = failure.told(&self.endpoint);
            (format!("no vectors of {:?}: {told}", self.model), verdict)
        })?;
        let vectors = self.read(&answer);
        let (sent, wanted) = (vectors.len(), texts.len());
        if sent == wanted {
            return Ok(vectors);
        }
        let (subject, model) = (&self.endpoint.subject, &self.model);
        let problem = format!("{subject} sent {sent} vectors of {model:?} for {wanted} texts");
        Err((problem, Verdict::NextServer))
    }

    fn ask(
        &self,
        texts: &[&str],
        has_length: bool,
        deadline: Instant,
        cancel: &Cancel,
    ) -> std::result::Result<Value, (Failure, Verdict)> {
        let path = match self.api {
            Api::Ollama => "/api/embed",
            _ => "/embeddings",
        };
        let mut body = json!({ "model": self.model, "input": texts });
        if has_length {
            body["dimensions"] = self.dimensions.into();
        }
        let body = body.to_string();
        let request = self
            .endpoint
            .request(path, Some(body.as_bytes()), deadline, cancel);
        Snapshot::none_open();
        let kind = RequestKind::Vectors { has_length };
        let endpoint = &self.endpoint;
        endpoint.ask(&request, kind, |answer| read_json(answer, ANSWER_LIMIT))
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
    let kind = RequestKind::Vectors { has_length: false };
    let answer = endpoint.ask(&request, kind, |answer| {
        Ok(answer.read_all(PASSED_ON_LIMIT)?)
    });
    let answer = answer.map_err(|(failure, verdict)| failure.into_refusal(verdict, &endpoint))?;
    let said: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let usage = Usage {
        input: said["usage"]["prompt_tokens"].as_u64().unwrap_or_default(),
        ..Usage::default()
    };
    store.note_usage_of(user, usage, asked.model, Purpose::Embedding);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::http_client::test_server::{Act, TestServer, json as answer};

    fn embedder(server: &TestServer) -> Embedder {
        let url = format!("http://{}/v1", server.address);
        Embedder {
            endpoint: Endpoint::new("The model server", &url, None),
            api: Api::OpenAi,
            model: "e".to_owned(),
            dimensions: 32,
            paused_until: Mutex::default(),
            takes_dimensions: Mutex::new(true),
        }
    }

    fn refused(status: u16, message: &str) -> Vec<Act> {
        answer(status, &json!({ "error": { "message": message } }))
    }

    fn vector() -> Vec<Act> {
        answer(200, &json!({ "data": [{ "embedding": vec![0.5; 32] }] }))
    }

    /// Whether each message has a vector, and how many requests they took.
    fn ask(scripts: Vec<Vec<Act>>, messages: usize) -> (Vec<bool>, usize) {
        let server = TestServer::new(scripts);
        let embedder = embedder(&server);
        let has_vector = |_| {
            let deadline = Instant::now() + Duration::from_secs(60);
            let vector = embedder.of_message("a question", deadline, &Cancel::default());
            vector.is_some()
        };
        let found = (0..messages).map(has_vector).collect();
        (found, server.heard().len())
    }

    #[test]
    fn a_text_that_the_server_refuses_costs_the_others_nothing() {
        let too_long = || refused(400, "input is too long");
        let two = || {
            let vector = json!({ "embedding": vec![0.5; 32] });
            answer(200, &json!({ "data": [vector, vector] }))
        };
        let ask = |scripts| {
            let server = TestServer::new(scripts);
            let embedder = embedder(&server);
            *lock(&embedder.takes_dimensions) = false;
            let deadline = Instant::now() + Duration::from_secs(60);
            let made = embedder.of(&["a", "b", "c", "d"], deadline, &Cancel::default());
            made.map(|made| made.iter().map(Option::is_some).collect::<Vec<bool>>())
        };
        let scripts = vec![too_long(), too_long(), vector(), too_long(), two()];
        assert_eq!(ask(scripts).unwrap(), [true, false, true, true]);
        let problem = ask(vec![too_long(); 7]).unwrap_err();
        assert!(problem.contains("input is too long"), "{problem}");
    }

    #[test]
    fn what_a_server_says_decides_whether_it_is_asked_again() {
        let scripts = vec![refused(503, "loading"), vector()];
        assert_eq!(ask(scripts, 2), (vec![false, false], 1), "it is left alone");
        let fixed = || refused(400, "dimensions is not supported");
        let scripts = vec![fixed(), vector(), vector()];
        assert_eq!(ask(scripts, 2), (vec![true, true], 3), "it is remembered");
        // A message that it does not take keeps no other from having a vector.
        let scripts = vec![refused(413, "too long"), vector()];
        assert_eq!(ask(scripts, 2), (vec![false, true], 2));
        let scripts = vec![refused(401, "no"), vector()];
        assert_eq!(ask(scripts, 2), (vec![false, false], 1), "so is this");
    }
}
