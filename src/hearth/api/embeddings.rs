//! The interfaces for embeddings, passed on to the server of the model: OpenAI's
//! (<https://platform.openai.com/docs/api-reference/embeddings>), and Ollama's two
//! (<https://github.com/ollama/ollama/blob/main/docs/api.md>).

use serde_json::{Map, Value, json};

use super::access::Exchange;
use super::{models, ollama, openai, plain, request};
use crate::service::reply_stream::Work;
use agent::model::embedding::{self, EmbeddingRequest};
use base::error::{Error, Result};
use net::http::{Answer, Response};

/// POST /v1/embeddings.
///
/// # Errors
/// `invalid_request` for a body that is no object or names no model, and where there is no
/// embedding model; those of [`plain::pass_on`].
pub fn embed(exchange: Exchange<'_>) -> Result<Answer> {
    let mut body: Map<String, Value> = request::parse(&exchange.request.body)?;
    let model = body.remove("model").unwrap_or_default();
    let whole = |text| Response::json(200, text);
    pass_on(&exchange, model, body, Vec::new(), openai::refusal, whole)
}

/// POST /api/embed.
///
/// # Errors
/// As [`embed`].
pub fn embed_for_ollama(exchange: Exchange<'_>) -> Result<Answer> {
    of_ollama(&exchange, "input", false)
}

/// POST /api/embeddings, the older one: a single text.
///
/// # Errors
/// As [`embed`].
pub fn embed_one_for_ollama(exchange: Exchange<'_>) -> Result<Answer> {
    of_ollama(&exchange, "prompt", true)
}

fn of_ollama(exchange: &Exchange<'_>, input: &str, is_one: bool) -> Result<Answer> {
    let mut body: Map<String, Value> = request::parse(&exchange.request.body)?;
    let mut take = |name: &str| body.remove(name).unwrap_or_default();
    let (model, texts, dimensions) = (take("model"), take(input), take("dimensions"));
    let mut asked = Map::from_iter([("input".to_owned(), texts)]);
    if !dimensions.is_null() {
        asked.insert("dimensions".to_owned(), dimensions);
    }
    let left = body.into_iter().filter(|(_, value)| !value.is_null());
    let ignored = left.map(|(name, _)| name).collect();
    let named = model.clone();
    let whole = move |text: String| {
        let mut said: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut items = match said["data"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        items.sort_by_key(|item| item["index"].as_u64());
        let mut vectors = items.iter_mut().map(|item| item["embedding"].take());
        let body = match is_one {
            true => json!({ "embedding": vectors.next().unwrap_or_else(|| json!([])) }),
            false => json!({
                "model": named, "embeddings": vectors.collect::<Vec<Value>>(),
                "total_duration": 0, "load_duration": 0,
                "prompt_eval_count": said["usage"]["prompt_tokens"].as_u64().unwrap_or_default(),
            }),
        };
        Response::json(200, body.to_string())
    };
    pass_on(exchange, model, asked, ignored, ollama::refusal, whole)
}

/// Passes a body in OpenAI's form on; `whole` makes the response of the provider's text.
fn pass_on(
    exchange: &Exchange<'_>,
    named: Value,
    body: Map<String, Value>,
    ignored: Vec<String>,
    refusal: fn(&Error) -> Response,
    whole: impl FnOnce(String) -> Response + Send + 'static,
) -> Result<Answer> {
    let config = exchange.config;
    let named = named.as_str().unwrap_or_default();
    // The assistant is no embedding model; its household may have one.
    let own = config.memory.embeddings.as_ref().map(|own| &*own.model);
    let model = match models::check(config, named) {
        Ok(()) => own,
        Err(_) => Some(named).filter(|named| !named.is_empty()),
    };
    let model = model.map(str::to_owned).ok_or_else(|| {
        Error::invalid_request(
            "\"model\" must name an embedding model of the provider: \"hearth\" is one only with \
             the setting memory.embeddings",
        )
    })?;
    let asker = exchange.asker.clone();
    let ask = move |work: Work<'_>| {
        let service = work.service;
        let asked = EmbeddingRequest {
            user: (asker.user_id, &asker.user),
            model: &model,
            body,
            deadline: work.deadline,
            cancel: work.cancel,
        };
        let assistant = service.assistant();
        let text = embedding::pass_on(&assistant.config, &service.store, &service.clock, asked)?;
        Ok(whole(text))
    };
    plain::pass_on_whole(exchange, refusal, ignored, ask)
}
