//! A program's own request for vectors, passed on to the server of the model.

use std::time::Instant;

use serde_json::{Map, Value};

use super::dialect::bearer;
use super::endpoint::Endpoint;
use crate::budget;
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::UserId;
use config::{Api, Config, Preset};
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, HttpClient};
use net::tls::Trust;
use store::{Store, Usage};

/// Most bytes of an answer.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;
/// Characters of the server's words that the program is told.
const QUOTED: usize = 200;

/// A request for vectors.
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

/// Asks for vectors. The answer is the server's, as it came.
///
/// # Errors
/// `invalid_request`: the provider has no vectors, or refuses the request;
/// `server_error`: the budget is used up, or the server gave no answer.
pub fn embeddings(
    config: &Config,
    store: &Store,
    clock: &Clock,
    asked: EmbeddingRequest<'_>,
) -> Result<String> {
    let choice = config.first_choice();
    let api = Preset::of(&choice.provider).map(|preset| preset.api);
    let endpoint = Endpoint::of_choice(&choice);
    let (Some(api), Some(endpoint)) = (api.filter(|api| api.has_embeddings()), endpoint) else {
        return Err(Error::invalid_request(format!(
            "the provider {:?} makes no embeddings: ask another server for them",
            choice.provider
        )));
    };
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
    let key = bearer(endpoint.key().map(|key| key.expose()));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    headers.extend(key.iter().map(|(name, value)| (*name, value.as_str())));
    let request = ClientRequest {
        method: "POST",
        url: &format!("{}{path}", endpoint.base_url),
        headers: &headers,
        body: Some(body.as_bytes()),
        deadline: asked.deadline,
        cancel: asked.cancel,
    };
    let http_client = HttpClient::new().trusting(Trust::new(config.tls.ca_file.as_deref()));
    let answer = http_client.exchange(&request, |answer| {
        Ok::<_, ClientError>((answer.status(), answer.read_all(ANSWER_LIMIT)?))
    });
    let subject = &endpoint.subject;
    let (status, body) = answer.map_err(|error| {
        log::warn!("{subject}: no embeddings: {error}");
        Error::server(
            format_args!("{subject} did not answer"),
            "a program's request for embeddings",
        )
        .with_status(502)
    })?;
    let text = String::from_utf8_lossy(&body);
    if !(200..300).contains(&status) {
        let words: String = text.chars().take(QUOTED).collect();
        let words = endpoint.scrub(&words);
        let message = format!("{subject} answers with status {status}: {words}");
        // A refused key is the household's, not the program's.
        return Err(match status {
            400 | 404 | 413 | 422 => Error::invalid_request(message),
            429 => Error::rate_limited(message, 30),
            _ => Error::server(&message, "a program's request for embeddings").with_status(502),
        });
    }
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let usage = Usage {
        input: answer["usage"]["prompt_tokens"]
            .as_u64()
            .unwrap_or_default(),
        ..Usage::default()
    };
    store.note_usage_of(user, usage, asked.model);
    Ok(text.into_owned())
}
