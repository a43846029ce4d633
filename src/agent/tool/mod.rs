//! Tools: one trait, the built-in ones, and those of the configuration.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::provider::{Cancel, ToolSpec};
use crate::clock::Clock;
use crate::config::Config;
use crate::ids::ConversationId;
use crate::store::Store;

/// Where a tool comes from, as `list_tools` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Builtin,
    Custom,
    /// An MCP server of this name.
    Mcp(String),
}

/// What a tool may use while it runs.
pub struct ToolContext<'a> {
    pub store: &'a Store,
    pub clock: &'a Clock,
    pub conversation_id: ConversationId,
    /// Who asked.
    pub speaker: Option<&'a str>,
    pub deadline: Instant,
    pub cancel: &'a Cancel,
    /// Where programs run by default.
    pub data_dir: &'a PathBuf,
}

/// Something that the model can do. An `Err` is told to the model as the
/// result; the turn goes on.
pub trait Tool: Send + Sync {
    /// Name, description and parameters.
    fn spec(&self) -> &ToolSpec;
    /// Where it comes from.
    fn source(&self) -> Source;
    /// Whether running it twice does no harm.
    fn is_read_only(&self) -> bool;
    /// Runs it. `arguments` is an object that has the schema's required members.
    fn run(
        &self,
        arguments: &Map<String, Value>,
        context: &ToolContext<'_>,
    ) -> Result<String, String>;
}

/// The tools of one configuration, in a stable order.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
}

impl Toolbox {
    /// The built-in tools and the custom ones of `config`.
    pub fn from_config(config: &Config) -> Toolbox {
        let _ = config;
        todo!()
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }
}

/// Parses the arguments a model wrote and checks them against the tool's
/// schema: an object, required members there, simple types right.
///
/// The error is a sentence for the model that says how to do better.
pub fn check_arguments(spec: &ToolSpec, arguments: &str) -> Result<Map<String, Value>, String> {
    let _ = (spec, arguments);
    todo!()
}

/// `name -> type name`, as `list_tools` shows a schema (contract section 2).
pub fn parameter_types(schema: &Value) -> Map<String, Value> {
    let _ = schema;
    todo!()
}
