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
//!    `answer` calls the interface's function for the path.
//! 2. `openai::complete`, `responses::respond`, `ollama::chat` or `ollama::generate` reads the
//!    body into a `request::ReplyRequest`, and `transcript::read` its messages.
//! 3. `ReplyRequest::answer` starts the turn ([`Service::follow`]).
//! 4. `answer::PendingAnswer::advance`, on the connection's thread, takes what
//!    happened in the turn ([`ReplyStream::take`](crate::service::reply_stream::ReplyStream::take)),
//!    and the interface's `Form` writes it.

mod access;
mod answer;
mod embeddings;
mod exchange;
pub mod mcp;
mod models;
mod ollama;
mod openai;
mod options;
mod plain;
mod request;
mod responses;
mod transcript;

use std::sync::Arc;

use crate::http::Extension;
use crate::service::Service;
use crate::service::program_turns::Asker;
use base::error::{Error, Result};
use config::{Config, is_at_or_below};
use exchange::Exchange;
use net::http::{Admitted, Answer, Head, Refusal, Request, Response, checks};

/// What stands before a model's name in its path.
const MODEL: &str = "/v1/models/";

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
enum Route {
    Models,
    Model,
    ChatCompletions,
    Responses,
    Embeddings,
    Version,
    Tags,
    Running,
    Show,
    Chat,
    Generate,
    /// A path of the interface that Hearth does not serve.
    Unknown(Interface),
}

impl Route {
    fn of(path: &str) -> Option<Route> {
        Some(match path {
            "/v1/models" => Route::Models,
            "/v1/chat/completions" => Route::ChatCompletions,
            "/v1/responses" => Route::Responses,
            "/v1/embeddings" => Route::Embeddings,
            "/api/version" => Route::Version,
            "/api/tags" => Route::Tags,
            "/api/ps" => Route::Running,
            "/api/show" => Route::Show,
            "/api/chat" => Route::Chat,
            "/api/generate" => Route::Generate,
            _ if is_at_or_below(path, "/api") => Route::Unknown(Interface::Ollama),
            _ if path.starts_with(MODEL) => Route::Model,
            _ if is_at_or_below(path, "/v1") => Route::Unknown(Interface::OpenAi),
            _ => return None,
        })
    }

    fn interface(self) -> Interface {
        match self {
            Route::Models
            | Route::Model
            | Route::ChatCompletions
            | Route::Responses
            | Route::Embeddings => Interface::OpenAi,
            Route::Unknown(interface) => interface,
            _ => Interface::Ollama,
        }
    }

    /// The methods it takes, as the value of `Allow`.
    fn methods(self) -> &'static str {
        match self {
            Route::ChatCompletions | Route::Responses | Route::Embeddings => "POST",
            Route::Show | Route::Chat | Route::Generate => "POST",
            _ => "GET, HEAD",
        }
    }
}

impl Interface {
    /// Errors in the form that this interface's clients know.
    fn refusal(self) -> Refusal {
        match self {
            Interface::OpenAi => openai::refusal,
            Interface::Ollama => ollama::refusal,
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

    fn answer(
        &self,
        route: Route,
        config: &Config,
        asker: Asker,
        request: &Request,
    ) -> Result<Answer> {
        let service = &self.service;
        let exchange = Exchange {
            service,
            config,
            asker,
            request,
        };
        Ok(Answer::Now(match route {
            Route::Models => openai::models(service, config),
            Route::Model => {
                let name = request.head.path.strip_prefix(MODEL);
                openai::model(service, config, name.unwrap_or_default())?
            }
            Route::ChatCompletions => return openai::complete(exchange),
            Route::Responses => return responses::respond(exchange),
            Route::Embeddings => return embeddings::embed(exchange),
            Route::Version => ollama::version(),
            Route::Tags => ollama::tags(service, config),
            Route::Running => ollama::running(),
            Route::Show => ollama::show(&exchange)?,
            Route::Chat => return ollama::chat(exchange),
            Route::Generate => return ollama::generate(exchange),
            Route::Unknown(interface) => interface.nothing_at(&request.head.path),
        }))
    }
}

impl Extension for ModelApi {
    fn serves(&self, path: &str, config: &Config) -> bool {
        config.openai_api.enabled && Route::of(path).is_some()
    }

    fn admit<'a>(&'a self, head: &Head, config: &Arc<Config>) -> Result<Admitted<'a>, Response> {
        let route = Route::of(&head.path).unwrap_or(Route::Unknown(Interface::OpenAi));
        let interface = route.interface();
        if let Route::Unknown(_) = route {
            return Err(interface.nothing_at(&head.path));
        }
        let refusal = interface.refusal();
        checks::method_or(head, route.methods(), refusal)?;
        let asker = access::asker(&self.service, config, head, interface == Interface::Ollama)
            .map_err(|error| refusal(&error))?;
        let mut body_bytes = 0;
        if head.method == "POST" {
            // A page of another origin can send any other type without asking first.
            if head.header("origin").is_some() {
                checks::json(head).map_err(|error| refusal(&error))?;
            }
            body_bytes = config.limits.model_api_body_bytes;
        }
        let config = Arc::clone(config);
        Ok(Admitted::new(body_bytes, move |request| {
            self.answer(route, &config, asker, request)
                .unwrap_or_else(|error| Answer::Now(refusal(&error)))
        }))
    }

    fn refusal(&self, path: &str) -> Refusal {
        let route = Route::of(path).unwrap_or(Route::Unknown(Interface::OpenAi));
        route.interface().refusal()
    }
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
            ("/v1/responses", Some((Interface::OpenAi, "POST"))),
            ("/v1/embeddings", Some((Interface::OpenAi, "POST"))),
            ("/v1/files", Some((Interface::OpenAi, "GET, HEAD"))),
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
