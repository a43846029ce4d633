//! The household's assistant behind the interfaces of model servers, for
//! programs that people already have: OpenAI's (`/v1/...`) and Ollama's
//! (`/api/...`). Off unless `openai_api.enabled`.
//!
//! Such a program knows no conversations: it sends everything that was said with
//! every message. `transcript` separates the new message from what came before
//! it; the store finds the conversation that continues. The turn is one like any
//! other, with memory, tools, permissions and limits.
//!
//! # The walk of a request
//!
//! 1. [`ModelApi`]: `admit` checks path, method and token before the body is read;
//!    `respond` calls the interface's function for the path.
//! 2. `openai::complete`, `ollama::chat` or `ollama::generate` reads the body, and
//!    `transcript::read` its messages.
//! 3. `answering::answer` starts the turn ([`Service::follow`]).
//! 4. `answering::Answering::advance`, on the connection's thread, takes what
//!    happened in the turn ([`TurnStream::take`](crate::service::turn_stream::TurnStream::take)),
//!    and the interface's `Form` writes it.

mod access;
mod answering;
mod models;
mod ollama;
mod openai;
mod transcript;

use std::sync::Arc;

use crate::http::Extension;
use crate::service::Service;
use crate::service::turn_stream::Asker;
use base::error::{Error, Result};
use config::{Config, is_at_or_below};
use net::client_handler::HandlerFactory;
use net::http::{Answer, Handler, Head, Request, Response, checks};

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

/// What is at a path.
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
    /// A path of the interface that Hearth does not serve.
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
    /// An error in the form that this interface's clients know.
    fn refusal(self, error: &Error) -> Response {
        match self {
            Interface::OpenAi => openai::refusal(error),
            Interface::Ollama => ollama::refusal(error),
        }
    }

    /// The response at a path that is not served.
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

    fn asker(&self, config: &Config, route: Route<'_>, head: &Head) -> Result<Asker> {
        let is_ollama = route.interface() == Interface::Ollama;
        access::asker(&self.service, config, head, is_ollama)
    }

    fn admission(&self, route: Route<'_>, head: &Head) -> Result<usize, Response> {
        let interface = route.interface();
        if let Route::Unknown(_) = route {
            return Err(interface.nothing_at(&head.path));
        }
        let refusal = |error: &Error| interface.refusal(error);
        checks::method_or(head, route.methods(), refusal)?;
        let config = self.service.settings().current();
        self.asker(&config, route, head)
            .map_err(|error| refusal(&error))?;
        if head.method == "POST" {
            checks::json(head).map_err(|error| refusal(&error))?;
            return Ok(config.limits.body_bytes);
        }
        Ok(0)
    }

    fn answer(&self, route: Route<'_>, request: &Request) -> Result<Answer> {
        let (service, config) = (&self.service, self.service.settings().current());
        let asker = self.asker(&config, route, &request.head)?;
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
        Route::of(path).is_some() && self.service.settings().current().openai_api.enabled
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
