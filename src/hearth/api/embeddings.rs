//! OpenAI's interface for embeddings, passed on to the server of the model
//! (<https://platform.openai.com/docs/api-reference/embeddings>).

use serde_json::{Map, Value};

use super::access::Exchange;
use super::answer::Form;
use super::{models, openai, plain, request};
use crate::service::reply_stream::Work;
use agent::model::ModelReply;
use agent::model::embedding::{self, EmbeddingRequest};
use base::error::{Error, Result};
use net::http::{Answer, Response};

/// POST /v1/embeddings.
///
/// # Errors
/// `invalid_request` for a body that is no object or names no model, and where there is no
/// embedding model; those of [`plain::pass_on`].
pub fn embed(exchange: Exchange<'_>) -> Result<Answer> {
    let config = exchange.config;
    let mut body: Map<String, Value> = request::parse(&exchange.request.body)?;
    let named = body.remove("model");
    let named = named.as_ref().and_then(Value::as_str).unwrap_or_default();
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
        let text = embedding::pass_on(&assistant.config, service.store(), service.clock(), asked)?;
        Ok(ModelReply {
            text,
            ..ModelReply::default()
        })
    };
    plain::pass_on(&exchange, Box::new(Whole), false, Vec::new(), ask)
}

/// The provider's answer as it came; it is never streamed.
struct Whole;

impl Form for Whole {
    fn whole(&self, reply: &ModelReply) -> Response {
        Response::json(200, reply.text.clone())
    }

    fn refusal(&self, error: &Error) -> Response {
        openai::refusal(error)
    }
}
