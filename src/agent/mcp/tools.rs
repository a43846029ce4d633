//! A server's tool as a [`Tool`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call::{CallError, ReadTimeout, seconds};
use super::content::read_result;
use super::pins::Pins;
use super::remote_tool::{Kind, RemoteTool};
use super::server::SharedServer;
use super::session::Scope;
use crate::model::ToolSpec;
use crate::tools::output::shorten;
use crate::tools::{
    Arguments, Definition, Origin, Source, Tool, ToolContext, cancelled, takes_address,
    turn_is_over,
};
use base::sync::lock;
use config::McpServer;
use net::cancel::Cancel;
use protocol::record::Annotations;

/// Longest time for one call, regardless of progress, unless the configuration
/// allows more.
const CALL_LIMIT: Duration = Duration::from_secs(600);
/// How long a call waits for a server that is restarting.
const RESTART_LIMIT: Duration = Duration::from_secs(10);
/// Characters of a description that the model is shown.
const DESCRIPTION_CHARS: usize = 4_000;

/// One tool of one server.
pub(super) struct McpTool {
    server: Arc<SharedServer>,
    /// Its name at the server.
    remote_name: String,
    kind: Kind,
    definition: Definition,
    annotations: Option<Annotations>,
    /// What the prompt says about the server.
    note: Option<Arc<str>>,
    standing: Standing,
}

/// What its owner's choice says of a tool now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Whether it was declared to change nothing, and takes what it took then.
    pub(super) is_reader: bool,
    /// Whether it was, and opens any address.
    pub(super) is_open_reader: bool,
    /// Whether it says anything else of itself than then.
    pub(super) is_changed: bool,
}

impl Standing {
    /// That of a tool of this server, which was as `pins` say; unknown ones are no readers.
    pub(super) fn of(
        config: &McpServer,
        tool: &RemoteTool,
        pins: Option<&Pins>,
        instructions: &str,
    ) -> Standing {
        let is_open = tool.is_open || pins.is_some_and(|pins| pins.has_open(tool));
        let is_annotated = tool.is_annotated && !is_open;
        let is_declared = config.read_only.has(&tool.name, is_annotated);
        let is_reader = is_declared && pins.is_some_and(|pins| pins.keeps_schema(tool));
        Standing {
            is_reader,
            is_open_reader: is_reader && (is_open || takes_address(&tool.schema)),
            is_changed: !pins.is_some_and(|pins| pins.keeps_words(tool, instructions)),
        }
    }
}

impl McpTool {
    /// The tool under its name for the model.
    pub(super) fn new(
        server: &Arc<SharedServer>,
        tool: &RemoteTool,
        name: String,
        note: Option<Arc<str>>,
        standing: Standing,
    ) -> McpTool {
        McpTool {
            server: Arc::clone(server),
            remote_name: tool.name.clone(),
            kind: tool.kind,
            definition: Definition {
                spec: ToolSpec {
                    name,
                    description: shorten(tool.description.trim(), DESCRIPTION_CHARS).into_owned(),
                    parameters: tool.schema.clone().into(),
                },
                source: Source::Mcp(server.name().to_owned()),
                // Whatever the server says: after a crash, its tool is run again only if its
                // owner says so.
                is_read_only: standing.is_reader,
                // Nobody knows where the server gets its text from.
                origin: match server.config.trusted {
                    true => Origin::Trusted,
                    false => Origin::Outside,
                },
                is_private: false,
            },
            annotations: tool.annotations.clone(),
            note,
            standing,
        }
    }

    fn call(
        &self,
        arguments: &Arguments,
        turn_deadline: Instant,
        cancel: &Cancel,
    ) -> Result<Value, CallError> {
        let began = Instant::now();
        let silence = Duration::from_secs(self.server.config.timeout_seconds);
        let timeout = ReadTimeout {
            silence,
            deadline: turn_deadline.min(began + CALL_LIMIT.max(silence)),
        };
        let mut is_first = true;
        loop {
            let wait = (began + RESTART_LIMIT).min(timeout.deadline);
            let session = self.server.session(wait, cancel)?;
            let scope = Scope { timeout, cancel };
            match session.call_tool((self.kind, &self.remote_name), arguments, scope) {
                // The server has not seen the call, or not handled it.
                Err(CallError::SessionLost | CallError::Closed(_)) if is_first => is_first = false,
                result => return result,
            }
        }
    }

    fn failure(&self, error: &CallError, turn_deadline: Instant) -> String {
        let tool = &self.definition.spec.name;
        let server = self.server.name();
        let mut said = match error {
            CallError::Refused(refusal) => format!("the MCP server {server:?} answered: {refusal}"),
            CallError::Closed(reason) => {
                format!("the MCP server {server:?} is not available: {reason}")
            }
            CallError::Silent(limit) => format!(
                "the tool {tool:?} was stopped: the MCP server {server:?} did not answer within {}",
                seconds(*limit)
            ),
            CallError::TimedOut if Instant::now() >= turn_deadline => turn_is_over(tool),
            CallError::TimedOut => format!(
                "the tool {tool:?} was stopped: it was not done within {}",
                seconds(CALL_LIMIT)
            ),
            CallError::Cancelled => cancelled(tool),
            _ => format!("the call of the MCP server {server:?} failed: {error}"),
        };
        if self.kind == Kind::Tool && error.may_have_run() {
            said.push_str("; it may or may not have taken effect");
        }
        said
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn annotations(&self) -> Option<&Annotations> {
        self.annotations.as_ref()
    }

    fn server_note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn is_changed(&self) -> bool {
        self.standing.is_changed
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        match self.call(arguments, context.deadline, context.cancel) {
            Ok(result) => {
                let (text, files) = read_result(&result);
                lock(&context.details).files = files;
                text
            }
            Err(error) => {
                lock(&context.details).needs_admin = error.is_of_server();
                Err(self.failure(&error, context.deadline))
            }
        }
    }
}
