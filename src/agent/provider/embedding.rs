//! Vectors of texts, from the server of the model.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dialect::bearer;
use super::endpoint::Endpoint;
use base::sync::lock;
use config::{Api, Config, Preset};
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, HttpClient};
use net::tls::Trust;
use store::Vector;

/// Longest that a turn waits for the vector of its message.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long no turn asks again after a failure.
const PAUSE: Duration = Duration::from_secs(60);
/// Characters of a message that count: a question, not a document.
const MESSAGE_CHARS: usize = 2_000;
/// Most bytes of an answer: 32 vectors of 4,096 numbers as text.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;
/// Characters of the server's words in the log.
const QUOTED: usize = 200;

/// Asks a model server for vectors.
pub struct Embedder {
    endpoint: Endpoint,
    api: Api,
    http_client: HttpClient,
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
        let choice = config.first_choice();
        let api = Preset::of(&choice.provider)?.api;
        if !api.has_embeddings() {
            return None;
        }
        let trust = Trust::new(config.tls.ca_file.as_deref());
        Some(Embedder {
            endpoint: Endpoint::of_choice(&choice)?,
            api,
            http_client: HttpClient::new().trusting(trust),
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
    ) -> Result<Vec<Option<Vector>>, String> {
        let takes_dimensions = *lock(&self.takes_dimensions);
        let mut answer = self.exchange(texts, takes_dimensions, deadline, cancel)?;
        if takes_dimensions && matches!(answer.0, 400 | 422) {
            // Of a model with one length only; its vectors are cut here.
            answer = self.exchange(texts, false, deadline, cancel)?;
            if answer.0 < 300 {
                *lock(&self.takes_dimensions) = false;
            }
        }
        let subject = &self.endpoint.subject;
        let (status, body) = answer;
        if !(200..300).contains(&status) {
            let words: String = String::from_utf8_lossy(&body)
                .chars()
                .take(QUOTED)
                .collect();
            let words = self.endpoint.scrub(&words);
            return Err(format!(
                "{subject} answers a request for vectors of {:?} with status {status}: {words}",
                self.model
            ));
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let vectors = self.read(&body);
        match vectors.len() == texts.len() {
            true => Ok(vectors),
            false => Err(format!(
                "{subject} sent {} vectors of {:?} for {} texts",
                vectors.len(),
                self.model,
                texts.len()
            )),
        }
    }

    fn exchange(
        &self,
        texts: &[&str],
        with_dimensions: bool,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<(u16, Vec<u8>), String> {
        let path = match self.api {
            Api::Ollama => "/api/embed",
            _ => "/embeddings",
        };
        let mut body = json!({ "model": self.model, "input": texts });
        if with_dimensions {
            body["dimensions"] = self.dimensions.into();
        }
        let body = body.to_string();
        let key = bearer(self.endpoint.key().map(|key| key.expose()));
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json"),
        ];
        headers.extend(key.iter().map(|(name, value)| (*name, value.as_str())));
        let request = ClientRequest {
            method: "POST",
            url: &format!("{}{path}", self.endpoint.base_url),
            headers: &headers,
            body: Some(body.as_bytes()),
            deadline,
            cancel,
        };
        let answer = self.http_client.exchange(&request, |answer| {
            Ok::<_, ClientError>((answer.status(), answer.read_all(ANSWER_LIMIT)?))
        });
        answer.map_err(|error| format!("{}: {error}", self.endpoint.subject))
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
