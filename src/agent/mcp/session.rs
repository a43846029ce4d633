//! One session with a server: the revisions of the protocol, what carries its messages, the
//! handshake, the list of its tools, calls.

mod offers;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::call::{CALL, Call, CallError, INITIALIZE, Outcome, ReadTimeout};
use super::message;
use super::peer::Peer;
use super::remote_tool::{Kind, RemoteTool, remote_tool};
use crate::tools::output::shorten;
use base::language::Said;
use net::cancel::Cancel;
use offers::beside;

/// Time limit of the handshake: a program may have to be downloaded first.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for asking whether a server knows the newest revision.
const DISCOVER_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of one page of the list of tools.
const LIST_LIMIT: Duration = Duration::from_secs(30);
/// Most tools of one server, and characters of its instructions.
const TOOLS: usize = 500;
const INSTRUCTION_CHARS: usize = 2_000;

/// Members of `_meta` in every request without a handshake (MCP 2026-07-28).
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// What carries the messages of one session.
pub(super) trait Transport: Send + Sync {
    /// Sends a request, whose outcome has then come to the peer or will do so.
    fn send(&self, peer: &Peer, request: &Call<'_>) -> Result<(), CallError>;

    /// Sends a message that has no answer. A failure is ignored.
    fn notify(&self, message: Vec<u8>);

    /// Tells the server that nobody waits for a request any more.
    fn cancel(&self, message: Vec<u8>) {
        self.notify(message);
    }

    /// The handshake has agreed on this revision of the protocol.
    fn opened(&self, _: Revision) {}

    /// Starts to receive notifications, where the transport needs a stream for
    /// them. `subscription` is the request for them, where one is needed.
    fn listen(&self, peer: &Arc<Peer>, subscription: Option<Vec<u8>>);

    /// Ends the session, and waits for its threads and program. `at_once` gives a
    /// program less time to exit by itself.
    fn close(&self, at_once: bool);
}

/// A revision of the protocol, by its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revision {
    /// One of those that begin with `initialize`.
    Handshake(&'static str),
    /// 2026-07-28: without handshake and session.
    Stateless,
}

/// The revisions that begin with `initialize`, newest first.
const HANDSHAKES: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const STATELESS: &str = "2026-07-28";

impl Revision {
    /// The one that the handshake proposes.
    pub(super) const NEWEST_HANDSHAKE: Revision = Revision::Handshake(HANDSHAKES[0]);

    /// The revision of this name that begins with `initialize`, if it is known.
    pub(super) fn of_handshake(name: &str) -> Option<Revision> {
        let known = HANDSHAKES.iter().find(|known| **known == name)?;
        Some(Revision::Handshake(known))
    }

    /// Its name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Revision::Handshake(name) => name,
            Revision::Stateless => STATELESS,
        }
    }
}

/// How long a request may take, and what happens meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) timeout: ReadTimeout,
    pub(super) cancel: &'a Cancel,
}

impl<'a> Scope<'a> {
    fn within(limit: Duration, cancel: &'a Cancel) -> Scope<'a> {
        Scope {
            timeout: ReadTimeout::within(limit),
            cancel,
        }
    }
}

/// An open session.
pub(super) struct Session {
    peer: Arc<Peer>,
    transport: Box<dyn Transport>,
    revision: Revision,
    next_id: AtomicU64,
    /// What the server says that it has.
    capabilities: Value,
    /// Name and version, as the server gives them.
    title: String,
    /// How its tools are used together, as the server says.
    pub(super) instructions: String,
}

impl Session {
    /// Opens a session. A server that refuses `initialize` is asked whether it
    /// knows the revision without a handshake.
    ///
    /// # Errors
    /// It gives no usable answer in time.
    pub(super) fn open(
        transport: Box<dyn Transport>,
        peer: Arc<Peer>,
        cancel: &Cancel,
    ) -> Result<Session, CallError> {
        let mut session = Session {
            peer,
            transport,
            revision: Revision::NEWEST_HANDSHAKE,
            next_id: AtomicU64::new(1),
            capabilities: Value::Null,
            title: String::new(),
            instructions: String::new(),
        };
        match session.initialize(cancel) {
            Err(refused @ CallError::Refused(_)) => {
                if !session.discover(cancel)? {
                    return Err(refused);
                }
            }
            result => result?,
        }
        Ok(session)
    }

    fn initialize(&mut self, cancel: &Cancel) -> Result<(), CallError> {
        let params = json!({
            "protocolVersion": self.revision.name(),
            "capabilities": {},
            "clientInfo": client_info(),
        });
        let id = self.next_id();
        let message = message::request(id, INITIALIZE, params);
        let scope = Scope::within(OPEN_LIMIT, cancel);
        let answer = self.send(id, INITIALIZE, None, message, scope)?;
        let offered = answer.get("protocolVersion").and_then(Value::as_str);
        self.revision = offered.and_then(Revision::of_handshake).ok_or_else(|| {
            let offered = offered.unwrap_or("none");
            CallError::Unusable(Said::of("mcp.revision", &[("revision", offered)]))
        })?;
        self.note(&answer, answer.get("serverInfo"));
        self.transport.opened(self.revision);
        self.transport
            .notify(message::notification("notifications/initialized", None));
        self.transport.listen(&self.peer, None);
        Ok(())
    }

    /// Whether the server knows the revision without a handshake; the session is
    /// open then.
    fn discover(&mut self, cancel: &Cancel) -> Result<bool, CallError> {
        self.revision = Revision::Stateless;
        self.transport.opened(self.revision);
        let scope = Scope::within(DISCOVER_LIMIT, cancel);
        let answer = match self.request("server/discover", Map::new(), None, scope) {
            Ok(answer) => answer,
            Err(error @ (CallError::Closed(_) | CallError::Cancelled | CallError::TimedOut)) => {
                return Err(error);
            }
            Err(_) => return Ok(false),
        };
        let versions = answer.get("supportedVersions").and_then(Value::as_array);
        let is_known =
            versions.is_some_and(|names| names.iter().any(|name| name == self.revision.name()));
        if is_known {
            let info = answer.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
            self.note(&answer, info.or(answer.get("serverInfo")));
            let wanted = json!({"toolsListChanged": true});
            let params = Map::from_iter([("notifications".to_owned(), wanted)]);
            let params = with_meta(params, self.revision, None);
            let subscription = message::request(self.next_id(), "subscriptions/listen", params);
            self.transport.listen(&self.peer, Some(subscription));
        }
        Ok(is_known)
    }

    /// Takes what the server says about itself when a session begins.
    fn note(&mut self, answer: &Value, info: Option<&Value>) {
        self.capabilities = answer.get("capabilities").cloned().unwrap_or_default();
        self.title = title(info);
        let instructions = answer.get("instructions").and_then(Value::as_str);
        let instructions = instructions.unwrap_or_default().trim();
        self.instructions = shorten(instructions, INSTRUCTION_CHARS).into_owned();
    }

    /// The server's name and version, and the protocol's revision.
    pub(super) fn description(&self) -> String {
        match self.title.as_str() {
            "" => format!("MCP {}", self.revision.name()),
            title => format!("{title}, MCP {}", self.revision.name()),
        }
    }

    /// All tools, page by page, without those that a model cannot use and the
    /// second of a name.
    ///
    /// # Errors
    /// A page was not answered.
    pub(super) fn list_tools(&self, cancel: &Cancel) -> Result<Vec<RemoteTool>, CallError> {
        // A later change may be missing from the list.
        self.peer.tools_are_being_listed();
        let has = |capability: &str| self.capabilities.get(capability).is_some();
        let is_without_tools = !has("tools") && (has("resources") || has("prompts"));
        let mut tools: Vec<RemoteTool> = Vec::new();
        if !is_without_tools {
            let timeout = ReadTimeout {
                silence: LIST_LIMIT,
                deadline: Instant::now() + LIST_LIMIT * 10,
            };
            let scope = Scope { timeout, cancel };
            let items = self.pages("tools/list", "tools", usize::MAX, scope)?;
            let mut names = HashSet::new();
            tools = items.iter().filter_map(remote_tool).collect();
            tools.retain(|tool| names.insert(tool.name.clone()));
            tools.truncate(TOOLS);
        }
        tools.extend(beside(&self.capabilities, &tools));
        Ok(tools)
    }

    /// Calls a tool by its name at the server, or what is behind one of ours, and returns
    /// the raw result.
    pub(super) fn call_tool(
        &self,
        (kind, name): (Kind, &str),
        arguments: &Map<String, Value>,
        scope: Scope<'_>,
    ) -> Outcome {
        match kind {
            Kind::Tool => {}
            Kind::Resources => return self.resources(arguments, scope),
            Kind::Prompts => return self.prompts(arguments, scope),
        }
        let params = Map::from_iter([
            ("name".to_owned(), Value::from(name)),
            ("arguments".to_owned(), Value::Object(arguments.clone())),
        ]);
        let result = self.request(CALL, params, Some(name), scope)?;
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => Ok(result),
            Some(kind) => Err(CallError::Unusable(Said::of(
                "mcp.wants_more",
                &[("kind", kind)],
            ))),
        }
    }

    /// As [`Peer::wait_for_event`].
    pub(super) fn wait_for_event(&self, tools: bool, deadline: Option<Instant>) -> Option<Said> {
        self.peer.wait_for_event(tools, deadline)
    }

    /// Why the session ended, if it did.
    pub(super) fn closed(&self) -> Option<Said> {
        self.peer.closed()
    }

    /// Ends the session for everything that waits for it.
    pub(super) fn interrupt(&self, reason: Said) {
        self.peer.close(reason);
    }

    /// Ends the session, and waits for its threads and program.
    pub(super) fn close(&self, at_once: bool) {
        self.transport.close(at_once);
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        tool: Option<&str>,
        scope: Scope<'_>,
    ) -> Outcome {
        let id = self.next_id();
        // Only tool calls, which may take long, report their progress.
        let params = with_meta(params, self.revision, tool.map(|_| id));
        let message = message::request(id, method, params);
        self.send(id, method, tool, message, scope)
    }

    fn send(
        &self,
        id: u64,
        method: &str,
        tool: Option<&str>,
        message: Vec<u8>,
        scope: Scope<'_>,
    ) -> Outcome {
        if scope.cancel.is_cancelled() {
            return Err(CallError::Cancelled);
        }
        let (peer, Scope { timeout, cancel }) = (&*self.peer, scope);
        let (sender, receiver) = peer.expect(id)?;
        let stop = move || {
            let _ = sender.try_send(Err(CallError::Cancelled));
        };
        let call = Call {
            id,
            method,
            tool,
            message,
            timeout,
            cancel,
        };
        let outcome = cancel.guard(stop, || {
            self.transport.send(peer, &call)?;
            peer.wait_for(id, &receiver, &timeout)
        });
        peer.forget(id);
        match &outcome {
            Err(error @ (CallError::Closed(_) | CallError::SessionLost)) => {
                peer.close(error.said());
            }
            // The handshake must not be cancelled (specification, cancellation).
            Err(CallError::Cancelled | CallError::Silent(_) | CallError::TimedOut)
                if method != INITIALIZE =>
            {
                let message = message::cancelled(id, "nobody waits any more");
                self.transport.cancel(message);
            }
            _ => {}
        }
        outcome
    }
}

fn client_info() -> Value {
    json!({"name": "hearth", "version": env!("CARGO_PKG_VERSION")})
}

/// The parameters with the `_meta` of the revision, and with the token for
/// reports of progress.
fn with_meta(mut params: Map<String, Value>, revision: Revision, token: Option<u64>) -> Value {
    let mut meta = Map::new();
    if revision == Revision::Stateless {
        meta.insert(META_VERSION.to_owned(), revision.name().into());
        meta.insert(META_CAPABILITIES.to_owned(), json!({}));
        meta.insert(META_CLIENT.to_owned(), client_info());
    }
    if let Some(token) = token {
        meta.insert("progressToken".to_owned(), token.into());
    }
    if !meta.is_empty() {
        params.insert("_meta".to_owned(), meta.into());
    }
    params.into()
}

/// The server's name and version, as it gives them.
fn title(info: Option<&Value>) -> String {
    let text = |name| info.and_then(|info| info.get(name)).and_then(Value::as_str);
    let words: Vec<&str> = [text("name"), text("version")]
        .into_iter()
        .flatten()
        .collect();
    let title = words.join(" ");
    let plain = title.chars().filter(|letter| !letter.is_control());
    plain.take(100).collect()
}
