//! The household's assistant behind the interfaces of model servers, for the
//! programs that people already have: OpenAI's (`/v1/...`) and Ollama's
//! (`/api/...`). Off unless `openai_api.enabled`.
//!
//! Such a program knows no conversations: it sends everything that was said with
//! every message. `transcript` makes of that the new message and what came
//! before it; the store finds the conversation that goes on. The turn is one
//! like any other, with memory, tools, permissions and limits.

mod access;
mod answering;
mod models;
mod ollama;
mod openai;
mod transcript;

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::http::Extension;
use crate::service::Service;
use base::error::{Error, Result};
use config::{Config, is_at_or_below};
use net::client_handler::HandlerFactory;
use net::http::checks;
use net::http::{Answer, Handler, Head, Request, Response};

/// Where conversations come from, as in `Conversation::channel`.
const OPENAI_CHANNEL: &str = "openai_api";
const OLLAMA_CHANNEL: &str = "ollama_api";

/// Answers the paths of both interfaces.
pub struct ModelApi {
    service: Arc<Service>,
}

/// Whose interface is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    OpenAi,
    Ollama,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Models,
    Model(&'a str),
    ChatCompletions,
    Version,
    Tags,
    Running,
    Show,
    Chat,
    Generate,
    /// Something of the interface that is not here.
    Unknown(Interface),
}

impl Route<'_> {
    fn of(path: &str) -> Option<Route<'_>> {
        Some(match path {
            "/v1/models" => Route::Models,
            "/v1/chat/completions" => Route::ChatCompletions,
            "/api/version" => Route::Version,
            "/api/tags" => Route::Tags,
            "/api/ps" => Route::Running,
            "/api/show" => Route::Show,
            "/api/chat" => Route::Chat,
            "/api/generate" => Route::Generate,
            _ if is_at_or_below(path, "/api") => Route::Unknown(Interface::Ollama),
            _ if is_at_or_below(path, "/v1") => match path.strip_prefix("/v1/models/") {
                Some(name) => Route::Model(name),
                None => Route::Unknown(Interface::OpenAi),
            },
            _ => return None,
        })
    }

    fn interface(self) -> Interface {
        match self {
            Route::Models | Route::Model(_) | Route::ChatCompletions => Interface::OpenAi,
            Route::Unknown(interface) => interface,
            _ => Interface::Ollama,
        }
    }

    /// The methods it takes, as the value of `Allow`.
    fn methods(self) -> &'static str {
        match self {
            Route::ChatCompletions | Route::Show | Route::Chat | Route::Generate => "POST",
            _ => "GET, HEAD",
        }
    }
}

impl Interface {
    /// An error as this interface's clients know it.
    fn refusal(self, error: &Error) -> Response {
        match self {
            Interface::OpenAi => openai::refusal(error),
            Interface::Ollama => ollama::refusal(error),
        }
    }

    /// The answer at a path that is not served.
    fn nothing_at(self, path: &str) -> Response {
        let error = Error::not_found(format!("there is nothing at {path}"));
        match self {
            Interface::OpenAi => openai::refusal_as(&error, "unknown_url"),
            Interface::Ollama => ollama::refusal(&error),
        }
    }
}

impl ModelApi {
    /// The interfaces of this service.
    pub fn new(service: Arc<Service>) -> ModelApi {
        ModelApi { service }
    }

    fn config(&self) -> Arc<Config> {
        self.service.settings().current()
    }

    fn admission(&self, route: Route<'_>, head: &Head) -> Result<usize, Response> {
        let interface = route.interface();
        if let Route::Unknown(_) = route {
            return Err(interface.nothing_at(&head.path));
        }
        let refusal = |error: &Error| interface.refusal(error);
        checks::method_or(head, route.methods(), refusal)?;
        let config = self.config();
        access::asker(&self.service, &config, head, interface).map_err(|error| refusal(&error))?;
        if head.method == "POST" {
            checks::json(head).map_err(|error| refusal(&error))?;
            return Ok(config.limits.body_bytes);
        }
        Ok(0)
    }

    fn answer(&self, route: Route<'_>, request: &Request) -> Result<Answer> {
        let (service, config) = (&self.service, self.config());
        let asker = access::asker(service, &config, &request.head, route.interface())?;
        Ok(Answer::Now(match route {
            Route::Models => openai::models(service, &config),
            Route::Model(name) => openai::model(service, &config, name)?,
            Route::ChatCompletions => return openai::complete(service, &config, asker, request),
            Route::Version => ollama::version(),
            Route::Tags => ollama::tags(service, &config),
            Route::Running => ollama::running(),
            Route::Show => ollama::show(service, &config, request)?,
            Route::Chat => return ollama::chat(service, &config, asker, request),
            Route::Generate => return ollama::generate(service, &config, asker, request),
            Route::Unknown(interface) => interface.nothing_at(&request.head.path),
        }))
    }
}

impl Extension for ModelApi {
    fn serves(&self, path: &str) -> bool {
        Route::of(path).is_some() && self.config().openai_api.enabled
    }
}

impl Handler for ModelApi {
    fn admit(&self, head: &Head) -> Result<usize, Response> {
        match Route::of(&head.path) {
            Some(route) => self.admission(route, head),
            None => Err(nothing_here()),
        }
    }

    fn admit_upgrade(&self, _: &Head) -> Result<Option<HandlerFactory>, Response> {
        Err(nothing_here())
    }

    fn handle(&self, request: &Request) -> Response {
        match self.respond(request) {
            Answer::Now(response) => response,
            Answer::Later(_) => nothing_here(),
        }
    }

    fn respond(&self, request: &Request) -> Answer {
        match Route::of(&request.head.path) {
            Some(route) => self
                .answer(route, request)
                .unwrap_or_else(|error| Answer::Now(route.interface().refusal(&error))),
            None => Answer::Now(nothing_here()),
        }
    }
}

/// Reads a body.
///
/// # Errors
/// `invalid_request` with what is wrong and where.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Error::invalid_request(format!("the body is not understood: {error}")))
}

/// Status and headers of a streamed response. Proxies are told not to hold it
/// back.
fn stream_head(content_type: &'static str) -> Response {
    Response {
        status: 200,
        headers: vec![
            ("Content-Type", Cow::Borrowed(content_type)),
            ("X-Content-Type-Options", Cow::Borrowed("nosniff")),
            ("X-Accel-Buffering", Cow::Borrowed("no")),
        ],
        body: Cow::Borrowed(b""),
    }
}

fn nothing_here() -> Response {
    Response::error(&Error::not_found("there is nothing at this path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_interface() {
        for (path, expected) in [
            ("/v1/models", Some((Interface::OpenAi, "GET, HEAD"))),
            ("/v1/models/hearth", Some((Interface::OpenAi, "GET, HEAD"))),
            ("/v1/chat/completions", Some((Interface::OpenAi, "POST"))),
            ("/v1/embeddings", Some((Interface::OpenAi, "GET, HEAD"))),
            ("/v1", Some((Interface::OpenAi, "GET, HEAD"))),
            ("/v1x", None),
            ("/api/version", Some((Interface::Ollama, "GET, HEAD"))),
            ("/api/tags", Some((Interface::Ollama, "GET, HEAD"))),
            ("/api/chat", Some((Interface::Ollama, "POST"))),
            ("/api/pull", Some((Interface::Ollama, "GET, HEAD"))),
            ("/api", Some((Interface::Ollama, "GET, HEAD"))),
            ("/apis", None),
            ("/hooks/api", None),
        ] {
            let found = Route::of(path).map(|route| (route.interface(), route.methods()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
