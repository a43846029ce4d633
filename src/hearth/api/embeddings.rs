//! OpenAI's interface for embeddings, passed on to the server of the model
//! (<https://platform.openai.com/docs/api-reference/embeddings>).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer;
use super::form::{Form, TurnSummary, stream_head};
use super::models;
use super::openai;
use super::plain;
use crate::service::Service;
use crate::service::turn_stream::Asker;
use agent::model::ModelReply;
use agent::provider::pass_on::{self, EmbeddingRequest};
use base::error::{Error, Result};
use config::Config;
use net::http::{Answer, Request, Response};

/// POST /v1/embeddings.
///
/// # Errors
/// `invalid_request` for a body that is no object or names no model, and where there is no
/// embedding model; those of [`plain::defer`].
pub fn embed(
    service: &Arc<Service>,
    config: &Config,
    asker: Asker,
    request: &Request,
) -> Result<Answer> {
    let mut body: Map<String, Value> = answer::parse(&request.body)?;
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
    let identity = asker.identity.clone();
    let ask = move |work: plain::Work<'_>| {
        let service = work.service;
        let asked = EmbeddingRequest {
            user: (asker.user_id, &asker.user),
            model: &model,
            body,
            deadline: work.deadline,
            cancel: work.cancel,
        };
        let assistant = service.assistant();
        let text = pass_on::embeddings(&assistant.config, service.store(), service.clock(), asked)?;
        Ok(ModelReply {
            text,
            ..ModelReply::default()
        })
    };
    let (identity, form) = (identity.as_ref(), Box::new(Whole));
    plain::defer(service, identity, form, false, &request.head, &[], ask)
}

/// The provider's answer as it came; it is never streamed.
struct Whole;

impl Form for Whole {
    fn whole(&self, reply: &str, _: &TurnSummary) -> Response {
        Response::json(200, reply.to_owned())
    }

    fn head(&self) -> Response {
        stream_head("application/json")
    }

    fn opening(&self) -> String {
        String::new()
    }

    fn text(&self, _: &str) -> String {
        String::new()
    }

    fn keep_alive(&self) -> String {
        String::new()
    }

    fn closing(&self, _: &TurnSummary) -> String {
        String::new()
    }

    fn failure(&self, _: &Error) -> String {
        String::new()
    }

    fn refusal(&self, error: &Error) -> Response {
        openai::refusal(error)
    }
}
