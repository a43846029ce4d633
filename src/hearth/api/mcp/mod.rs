//! Hearth as a server of the Model Context Protocol, so that editors and other assistants
//! share the household's memory. Off unless `mcp_api.enabled`.
//!
//! One path, `/mcp`, speaks Streamable HTTP in the newest revision, which has neither
//! handshake nor session, and in those before it that begin with `initialize`. The server
//! keeps nothing between two requests in either. Tools are those of the toolbox for what the
//! household keeps, and `ask`, which is one turn of the assistant.
//!
//! # The walk of a request
//!
//! 1. The router looks up the token before the body is read; `answer` reads it
//!    (`message::read`).
//! 2. `revision::of` finds the revision and checks what it demands of a request.
//! 3. `request` answers at once, but for `ask`: `ask::ask` starts a turn
//!    (`Service::follow`) and writes its progress and end.

mod ask;
mod message;
mod revision;

use serde_json::{Value, json};

use super::access::Exchange;
use agent::tools::wording;
use base::error::{Error, Result};
use base::language::Words;
use base::secret::{base32_lower, random_bytes};
use message::{
    Body, Fault, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, Request, Revision,
};
use net::http::{Answer, Head, Response};
use revision::{BATCHES, HANDSHAKES, NEWEST_HANDSHAKE, STATELESS};
use store::Identity;

/// Most messages in one body, in the one revision that takes several.
const MOST_TOGETHER: usize = 20;
/// How long a client may keep the list of tools, in milliseconds.
const TOOLS_FOR: u64 = 60_000;

/// The instructions for the client's model.
const INSTRUCTIONS: &str = "Hearth is the assistant of a household. recall, remember and forget \
    are what it knows of the people who live there; search_conversations finds what was said to \
    it; lists are for what to buy or do. Descriptions of tools are written for that assistant: \
    \"you\" there means it, and what schedule sets up, it does then, and reports in Hearth. Use \
    ask for everything else that it can do, such as the house itself.";

/// Answers a POST of `/mcp`.
///
/// # Errors
/// `invalid_token`.
pub fn answer(exchange: Exchange<'_>) -> Result<Answer> {
    let by = exchange.asker.identity.as_ref();
    let client = Client {
        exchange: &exchange,
        by: by.ok_or_else(|| Error::invalid_token("/mcp needs a token"))?,
    };
    Ok(match message::read(&exchange.request.body) {
        Ok(Body::One(message)) => client.one(message),
        Ok(Body::Several(several)) => Answer::Now(client.several(several)),
        Err(fault) => Answer::Now(fault.response(&fault.id)),
    })
}

/// Whose messages are answered.
struct Client<'a> {
    exchange: &'a Exchange<'a>,
    by: &'a Identity,
}

impl Client<'_> {
    fn head(&self) -> &Head {
        &self.exchange.request.head
    }

    fn one(&self, message: Message) -> Answer {
        let request = match message {
            Message::Request(request) => request,
            Message::Notification { method, params } => {
                if let Err(fault) = revision::check_header(self.head()) {
                    return Answer::Now(fault.response(&Value::Null));
                }
                if method == "notifications/cancelled" {
                    let id = params.get("requestId").unwrap_or(&Value::Null);
                    let name = ask::name_of(self.head(), id);
                    self.exchange.service.cancel_request(self.by, &name);
                }
                return Answer::Now(Response::empty(202));
            }
            // The server asks nothing.
            Message::Answer => return Answer::Now(Response::empty(202)),
        };
        let revision = match revision::of(self.head(), &request) {
            Ok(revision) => revision,
            Err(fault) => return Answer::Now(fault.response(&request.id)),
        };
        if request.is_call_of(ask::NAME) {
            return match ask::ask(self.exchange, &request, revision) {
                Ok(answer) => answer,
                Err(fault) => Answer::Now(fault.response_in(&request.id, revision)),
            };
        }
        Answer::Now(match self.request(&request, revision) {
            Ok(result) => {
                let mut response = message::result_of(&request.id, result, revision);
                if request.method == "initialize" {
                    // Tells requests of clients apart that use one token; nothing is kept.
                    response.add("Mcp-Session-Id", base32_lower(&random_bytes::<16>()));
                }
                response
            }
            Err(fault) => fault.response_in(&request.id, revision),
        })
    }

    /// Answers several messages in one body, as the revision 2025-03-26 has it.
    fn several(&self, several: Vec<Result<Message, Fault>>) -> Response {
        let named = self.head().header(revision::HEADER).unwrap_or(BATCHES);
        if named != BATCHES || several.is_empty() || several.len() > MOST_TOGETHER {
            let why = format!("one message at a time, or up to {MOST_TOGETHER} in {BATCHES}");
            return Fault::new(INVALID_REQUEST, why).response(&Value::Null);
        }
        let mut answers = Vec::new();
        for message in several {
            let request = match message {
                Ok(Message::Request(request)) => request,
                Ok(other) => {
                    self.one(other);
                    continue;
                }
                Err(fault) => {
                    answers.push(fault.value(&fault.id));
                    continue;
                }
            };
            let revision = Revision::Handshake(BATCHES);
            let is_alone = request.method == "initialize" || request.is_call_of(ask::NAME);
            let result = if is_alone {
                Err(Fault::new(INVALID_REQUEST, "this must be sent by itself"))
            } else {
                self.request(&request, revision)
            };
            answers.push(match result {
                Ok(result) => message::result(&request.id, result, revision),
                Err(fault) => fault.value(&request.id),
            });
        }
        if answers.is_empty() {
            Response::empty(202)
        } else {
            Response::json(200, Value::Array(answers).to_string())
        }
    }

    fn request(&self, request: &Request, revision: Revision) -> Result<Value, Fault> {
        let is_stateless = revision == Revision::Stateless;
        match (request.method.as_str(), is_stateless) {
            ("initialize", false) => Ok(initialized(request)),
            ("ping", false) => Ok(json!({})),
            ("server/discover", true) => Ok(json!({
                "supportedVersions": [STATELESS],
                "capabilities": {"tools": {}},
                "instructions": INSTRUCTIONS,
                "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
                "ttlMs": TOOLS_FOR,
                "cacheScope": "public",
            })),
            ("tools/list", _) => self.tools(request, is_stateless),
            ("tools/call", _) => self.call(request),
            (method, _) => {
                let method: String = method.chars().take(100).collect();
                let why = format!("this server has no method {method:?}");
                Err(Fault::new(METHOD_NOT_FOUND, why))
            }
        }
    }

    fn tools(&self, request: &Request, is_stateless: bool) -> Result<Value, Fault> {
        if request
            .params
            .get("cursor")
            .is_some_and(|cursor| !cursor.is_null())
        {
            return Err(Fault::new(INVALID_PARAMS, "the list of tools has one page"));
        }
        let own = self.exchange.service.tools_for_program(self.by);
        let own = own.iter().map(|tool| {
            let spec = tool.spec();
            let is_read_only = tool.definition().is_read_only;
            json!({
                "name": spec.name,
                "title": wording::label(Words::ENGLISH, &spec.name, Some(tool.definition())),
                "description": spec.description,
                "inputSchema": *spec.parameters,
                "annotations": {
                    "readOnlyHint": is_read_only,
                    "destructiveHint": !is_read_only && spec.name != "remember",
                    "openWorldHint": false,
                },
            })
        });
        let ask = ask::spec();
        let ask = json!({
            "name": ask.name,
            "title": Words::ENGLISH.word("mcp.ask"),
            "description": ask.description,
            "inputSchema": *ask.parameters,
            // Whatever the assistant may do.
            "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true},
        });
        let mut list = json!({"tools": own.chain([ask]).collect::<Vec<Value>>()});
        if is_stateless {
            list["ttlMs"] = json!(TOOLS_FOR);
            list["cacheScope"] = json!("private");
        }
        Ok(list)
    }

    fn call(&self, request: &Request) -> Result<Value, Fault> {
        let (name, arguments) = request.call()?;
        let tools = self.exchange.service.tools_for_program(self.by);
        let tool = tools.iter().find(|tool| tool.spec().name == name);
        let Some(tool) = tool else {
            let name: String = name.chars().take(100).collect();
            return Err(Fault::new(
                INVALID_PARAMS,
                format!("there is no tool {name:?}"),
            ));
        };
        let called = (self.exchange.service).call_for_program(self.by, tool.as_ref(), &arguments);
        Ok(message::called(called))
    }
}

fn initialized(request: &Request) -> Value {
    let wanted = request
        .params
        .get("protocolVersion")
        .and_then(Value::as_str);
    let known = HANDSHAKES.iter().find(|known| Some(**known) == wanted);
    json!({
        "protocolVersion": known.unwrap_or(&NEWEST_HANDSHAKE),
        "capabilities": {"tools": {}},
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn server_info() -> Value {
    json!({"name": "hearth", "title": "Hearth", "version": env!("CARGO_PKG_VERSION")})
}

/// An error before there is a message.
pub fn refusal(error: &Error) -> Response {
    let mut response = Fault::new(message::REFUSED, error.message()).response(&Value::Null);
    response.status = error.status();
    if let Some(seconds) = error.retry_after() {
        response.add("Retry-After", seconds.to_string());
    }
    response
}
