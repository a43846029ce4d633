//! The table of paths: what each takes, who may use it, and what answers.

use super::extension::Context;
use super::{attachments, authentication, events, health, registration, transfer, trust, welcome};
use crate::api::access::Exchange;
use crate::api::{anthropic, audio, embeddings, mcp, ollama, openai, responses};
use crate::metrics;
use crate::service::Service;
use Handler::{Nothing, Program, Streamed, Whole};
use base::error::{Error, Result};
use config::{Config, Limits};
use net::http::checks::{self, bearer};
use net::http::{Admitted, Answer, Head, Refusal, Response};

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Everything.
    Everything,
    /// Webhooks and /health: the webhook channel's own port, which may be
    /// exposed without exposing the rest.
    WebhooksOnly,
}

/// A path and what is done there.
pub struct Route {
    /// The methods it takes, as the value of `Allow`.
    pub methods: &'static str,
    /// One that ends with a slash stands for all below it.
    pub path: &'static str,
    pub guard: Guard,
    pub handler: Handler,
}

/// Who may use a path, how large a body it takes, and in which form it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Anybody, without a body.
    Open,
    /// Who has a password or a session token. The handler checks it.
    Credentials,
    /// Who has a session token; the handler checks it.
    Bearer,
    /// The same, at a relay alone.
    Relay,
    /// Who may read the metrics.
    Metrics,
    /// A program that speaks OpenAI's interface, with the token of a user.
    OpenAi,
    /// One that speaks Anthropic's.
    Anthropic,
    /// One that speaks Ollama's, which may be let in without a token.
    Ollama,
    /// One that speaks the Model Context Protocol, with the token of a user.
    Mcp,
}

/// What answers at a path.
pub enum Handler {
    /// Answers the complete request.
    Whole(fn(&Context<'_>) -> Result<Answer>),
    /// Reads the body as it arrives.
    Streamed(for<'a> fn(&'a Service, &Head, &Config) -> Result<Admitted<'a>, Response>),
    /// Answers a program whose person is known.
    Program(fn(Exchange<'_>) -> Result<Answer>),
    /// There is nothing.
    Nothing,
}

const GET: &str = "GET, HEAD";
const POST: &str = "POST";

/// Every path but those of webhook accounts, to which all others belong. The first that fits
/// counts; the most frequent one comes first.
#[rustfmt::skip]
static ROUTES: &[Route] = &[
    route(GET, "/health", Guard::Open, Whole(health::respond)),
    route(GET, "/", Guard::Open, Whole(welcome::page)),
    route(GET, "/help", Guard::Open, Whole(welcome::page)),
    route(GET, "/help/protocol.json", Guard::Open, Whole(welcome::page)),
    route(GET, "/assets/", Guard::Open, Whole(welcome::page)),
    route(GET, "/trust", Guard::Open, Whole(trust::answer)),
    route(GET, "/trust/", Guard::Open, Whole(trust::answer)),
    route("GET", "/ws", Guard::Open, Whole(welcome::no_upgrade)),
    route("POST, DELETE", "/auth", Guard::Credentials,
        Whole(authentication::answer)),
    route(POST, "/ws/register", Guard::Bearer, Whole(registration::register)),
    route(POST, "/register", Guard::Relay, Whole(registration::register)),
    route(POST, "/attachments", Guard::Bearer, Streamed(attachments::put)),
    route(GET, "/attachments/", Guard::Bearer, Whole(attachments::get)),
    route("GET", "/events", Guard::Bearer, Whole(events::stream)),
    route("GET", "/export", Guard::Bearer, Whole(transfer::export)),
    route(POST, "/import", Guard::Bearer, Streamed(transfer::import)),
    route(GET, "/metrics", Guard::Metrics, Whole(metrics::respond)),
    route(POST, "/mcp", Guard::Mcp, Program(mcp::answer)),
    route(GET, "/v1/models", Guard::OpenAi, Program(openai::models)),
    route(GET, "/v1/models/", Guard::OpenAi, Program(openai::model)),
    route(POST, "/v1/chat/completions", Guard::OpenAi, Program(openai::complete)),
    route(POST, "/v1/responses", Guard::OpenAi, Program(responses::respond)),
    route(POST, "/v1/completions", Guard::OpenAi, Program(openai::complete_text)),
    route(POST, "/v1/audio/transcriptions", Guard::OpenAi, Program(audio::transcribe)),
    route(POST, "/v1/audio/speech", Guard::OpenAi, Program(audio::speak)),
    route(POST, "/v1/messages", Guard::Anthropic, Program(anthropic::create)),
    route(POST, "/v1/messages/count_tokens", Guard::Anthropic,
        Program(anthropic::count_tokens)),
    route(POST, "/v1/embeddings", Guard::OpenAi, Program(embeddings::embed)),
    route("GET, POST", "/v1/messages/", Guard::Anthropic, Nothing),
    route("GET, POST", "/v1", Guard::OpenAi, Nothing),
    route("GET, POST", "/v1/", Guard::OpenAi, Nothing),
    route(GET, "/api/version", Guard::Ollama, Program(ollama::version)),
    route(GET, "/api/tags", Guard::Ollama, Program(ollama::tags)),
    route(GET, "/api/ps", Guard::Ollama, Program(ollama::running)),
    route(POST, "/api/show", Guard::Ollama, Program(ollama::show)),
    route(POST, "/api/chat", Guard::Ollama, Program(ollama::chat)),
    route(POST, "/api/generate", Guard::Ollama, Program(ollama::generate)),
    route(POST, "/api/embed", Guard::Ollama, Program(embeddings::embed_for_ollama)),
    route(POST, "/api/embeddings", Guard::Ollama, Program(embeddings::embed_one_for_ollama)),
    route("GET, POST", "/api", Guard::Ollama, Nothing),
    route("GET, POST", "/api/", Guard::Ollama, Nothing),
];

const fn route(methods: &'static str, path: &'static str, guard: Guard, handler: Handler) -> Route {
    Route {
        methods,
        path,
        guard,
        handler,
    }
}

/// The route of a path; none is a webhook account's path, or nobody's.
pub fn find(path: &str, serves: Serves, config: &Config, is_relay: bool) -> Option<&'static Route> {
    let fits = |route: &&Route| {
        let is_below = route.path.len() > 1 && route.path.ends_with('/');
        path == route.path || is_below && path.starts_with(route.path)
    };
    let is_on = |route: &&Route| match route.guard {
        Guard::Open | Guard::Credentials | Guard::Bearer => true,
        Guard::Relay => is_relay,
        Guard::Metrics => config.metrics.enabled,
        Guard::OpenAi | Guard::Anthropic | Guard::Ollama => config.openai_api.enabled,
        Guard::Mcp => config.mcp_api.enabled,
    };
    let route = ROUTES.iter().find(|route| fits(route) && is_on(route))?;
    (serves == Serves::Everything || route.path == "/health").then_some(route)
}

impl Route {
    /// Checks what in a head needs no look at the database.
    ///
    /// # Errors
    /// The response that refuses it: wrong method or content type, no credential.
    pub fn check_head(&self, head: &Head, config: &Config) -> Result<(), Response> {
        if let Nothing = self.handler {
            return Err(self.nothing_here(head));
        }
        let refusal = self.guard.refusal();
        checks::method_or(head, self.methods, refusal)?;
        let takes_json = match self.handler {
            Whole(_) => true,
            // A page of another origin can send any other type without asking first.
            Program(_) => head.header("origin").is_some(),
            Streamed(_) | Nothing => false,
        };
        let typed = if takes_json && head.method == "POST" {
            checks::json(head)
        } else {
            Ok(())
        };
        let checked = typed.and_then(|()| match self.guard {
            // The token is looked up later. Without one, the body need not be read.
            Guard::Bearer | Guard::Relay => bearer(head).map(drop),
            Guard::Metrics => metrics::permit(&config.metrics, &config.allowed_hosts, head),
            _ => Ok(()),
        });
        checked.map_err(|error| refusal(&error))
    }

    /// Most bytes of a body.
    pub fn body_bytes(&self, head: &Head, limits: &Limits) -> usize {
        match self.guard {
            // A DELETE may have a body too: client libraries send an empty JSON object with it.
            _ if !matches!(head.method.as_str(), "POST" | "DELETE") => 0,
            Guard::Open | Guard::Metrics => 0,
            Guard::Credentials | Guard::Bearer | Guard::Relay => limits.auth_body_bytes,
            Guard::OpenAi | Guard::Anthropic | Guard::Ollama => limits.model_api_body_bytes,
            Guard::Mcp => limits.body_bytes,
        }
    }

    /// The response at a path of an interface that Hearth does not serve.
    pub fn nothing_here(&self, head: &Head) -> Response {
        let error = Error::not_found(format!("there is nothing at {}", head.path));
        match self.guard {
            Guard::OpenAi => openai::refusal_as(&error, "unknown_url"),
            guard => guard.refusal()(&error),
        }
    }
}

impl Guard {
    /// Whether requests or responses hold credentials or what is private.
    pub fn is_private(self) -> bool {
        self != Guard::Open
    }

    /// Whether it is an interface for programs that ask models.
    pub fn is_of_programs(self) -> bool {
        matches!(
            self,
            Guard::OpenAi | Guard::Anthropic | Guard::Ollama | Guard::Mcp
        )
    }

    /// Errors in the form that the clients know.
    pub fn refusal(self) -> Refusal {
        match self {
            Guard::OpenAi => openai::refusal,
            Guard::Anthropic => anthropic::refusal,
            Guard::Ollama => ollama::refusal,
            Guard::Mcp => mcp::refusal,
            _ => Response::error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use base::testing::rows;
    use config::Settings;
    use net::testing::head;

    fn everything() -> Config {
        let mut config = Config::default();
        config.openai_api.enabled = true;
        config.mcp_api.enabled = true;
        config.metrics.enabled = true;
        config
    }

    #[test]
    fn heads_are_checked_before_bodies_are_read() {
        let config = everything();
        let table = "
            GET     | /health              | -          | -
            HEAD    | /health              | -          | -
            POST    | /health              | json       | 405
            GET     | /                    | -          | -
            POST    | /                    | -          | 405
            GET     | /help                | -          | -
            POST    | /help                | -          | 405
            GET     | /trust               | -          | -
            POST    | /trust               | -          | 405
            HEAD    | /assets/1/app.js     | -          | -
            POST    | /assets/1/app.js     | json       | 405
            POST    | /auth                | json       | -
            POST    | /auth                | text       | 415
            POST    | /auth                | -          | 415
            DELETE  | /auth                | -          | -
            GET     | /auth                | -          | 405
            OPTIONS | /auth                | -          | 405
            POST    | /ws/register         | json,token | -
            POST    | /ws/register         | json       | 401
            POST    | /ws/register         | text       | 415
            DELETE  | /ws/register         | -          | 405
            GET     | /ws                  | -          | -
            POST    | /ws                  | json       | 405
            POST    | /attachments         | text,token | -
            POST    | /attachments         | text       | 401
            GET     | /attachments         | -          | 405
            GET     | /attachments/att_1   | token      | -
            DELETE  | /attachments/att_1   | -          | 405
            GET     | /export              | token      | -
            GET     | /export              | -          | 401
            HEAD    | /export              | token      | 405
            GET     | /events              | token      | -
            GET     | /events              | -          | 401
            POST    | /import              | text,token | -
            POST    | /import              | text       | 401
            GET     | /import              | token      | 405
            POST    | /mcp                 | text       | -
            GET     | /mcp                 | -          | 405
            POST    | /v1/chat/completions | -          | -
            POST    | /v1/chat/completions | page       | 415
            GET     | /v1/responses        | -          | 405
            GET     | /v1/models/hearth    | -          | -
            POST    | /api/chat            | json,page  | -
        ";
        for [method, path, sent, status] in rows(table) {
            let headers: Vec<(&str, &str)> = sent
                .split(',')
                .filter_map(|sent| match sent {
                    "json" => Some(("content-type", "application/json")),
                    "text" => Some(("content-type", "text/plain")),
                    "token" => Some(("authorization", "Bearer x")),
                    "page" => Some(("origin", "http://hearth.local")),
                    _ => None,
                })
                .collect();
            let head = head(method, path, &headers);
            let route = find(path, Serves::Everything, &config, false).unwrap();
            let refused = route.check_head(&head, &config).err();
            let found = refused.map_or("-".to_owned(), |response| response.status.to_string());
            assert_eq!(found, status, "{method} {path} {sent}");
        }
    }

    #[test]
    fn a_path_leads_to_one_route() {
        let table = "
            /health              | /health
            /                    | /
            /auth                | /auth
            /ws/register         | /ws/register
            /register            | -
            /ws                  | /ws
            /hooks/a             | -
            /assets/1/app.js     | /assets/
            /help                | /help
            /trust               | /trust
            /trust/a.crt         | /trust/
            /attachments         | /attachments
            /attachments/        | /attachments/
            /attachments/a       | /attachments/
            /attachmentsa        | -
            /export              | /export
            /events              | /events
            /import              | /import
            /assets              | -
            /auth/               | -
            /Health              | -
                                 | -
            /v1/models           | /v1/models
            /v1/models/hearth    | /v1/models/
            /v1/chat/completions | /v1/chat/completions
            /v1/files            | /v1/
            /v1/messages         | /v1/messages
            /v1/messages/batches | /v1/messages/
            /v1                  | /v1
            /v1x                 | -
            /api/version         | /api/version
            /api/pull            | /api/
            /api                 | /api
            /apis                | -
            /hooks/api           | -
        ";
        let (on, off) = (everything(), Config::default());
        for [path, expected] in rows(table) {
            let found = |serves, config: &Config| {
                find(path, serves, config, false).map_or("-", |route| route.path)
            };
            assert_eq!(found(Serves::Everything, &on), expected, "{path}");
            let is_api = ["/v1", "/api"].iter().any(|api| expected.starts_with(api));
            let without = if is_api { "-" } else { expected };
            assert_eq!(found(Serves::Everything, &off), without, "{path}");
            let alone = if path == "/health" { path } else { "-" };
            assert_eq!(found(Serves::WebhooksOnly, &on), alone, "{path}");
        }
        assert!(find("/register", Serves::Everything, &off, true).is_some());
    }

    #[test]
    fn no_webhook_account_has_the_path_of_a_route() {
        for route in ROUTES {
            let path = route.path.trim_end_matches('/');
            let text = json!({
                "openai_api": { "enabled": true },
                "mcp_api": { "enabled": true },
                "metrics": { "enabled": true },
                "channels": { "lan": { "type": "tcp" }, "webhook": { "accounts": { "ci": {
                    "incoming_path": if path.is_empty() { "/" } else { path },
                    "outgoing_url": "http://127.0.0.1:9/",
                } } } },
            });
            let read = Settings::from_text(Path::new("c.json"), &text.to_string(), |_| None);
            let refused = read.unwrap_err().to_string();
            let said = "\"channels.webhook.accounts.ci.incoming_path\"";
            assert!(refused.contains(said), "{path}: {refused}");
        }
    }
}
