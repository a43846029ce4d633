//! What the tools of a server were when its owner chose it: at its first start with these
//! settings. One that has another schema since is no reader any more, whatever was declared,
//! and what a server that is not trusted says of itself later is text from outside.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::remote_tool::RemoteTool;
use base::secret::{fingerprint, hex};
use config::McpServer;

/// The tools of one server, as fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pins {
    settings: String,
    instructions: String,
    /// Of each tool, by its name there: the schema with the annotation, and the description.
    tools: BTreeMap<String, (String, String)>,
    /// Those that reached the outside.
    #[serde(default)]
    open: BTreeSet<String>,
}

impl Pins {
    pub(super) fn new(config: &McpServer, tools: &[RemoteTool], instructions: &str) -> Pins {
        let open = tools.iter().filter(|tool| tool.is_open);
        let open = open.map(|tool| tool.name.clone()).collect();
        let tools = tools.iter().map(|tool| (tool.name.clone(), of_tool(tool)));
        Pins {
            settings: settings(config),
            instructions: mark(instructions),
            tools: tools.collect(),
            open,
        }
    }

    /// Those that were stored as text, if they were made with these settings.
    pub(super) fn read(text: &str, config: &McpServer) -> Option<Pins> {
        let pins: Pins = serde_json::from_str(text).ok()?;
        (pins.settings == settings(config)).then_some(pins)
    }

    /// Whether a tool takes what it took.
    pub(super) fn keeps_schema(&self, tool: &RemoteTool) -> bool {
        let known = self.tools.get(&tool.name);
        known.is_some_and(|(schema, _)| *schema == of_tool(tool).0)
    }

    /// Whether a tool reached the outside.
    pub(super) fn has_open(&self, tool: &RemoteTool) -> bool {
        self.open.contains(&tool.name)
    }

    /// Whether everything is as it was that the model reads of a tool.
    pub(super) fn keeps_words(&self, tool: &RemoteTool, instructions: &str) -> bool {
        self.tools.get(&tool.name) == Some(&of_tool(tool))
            && self.instructions == mark(instructions)
    }
}

fn of_tool(tool: &RemoteTool) -> (String, String) {
    let schema = format!("{} {}", tool.is_annotated, tool.schema);
    (mark(&schema), mark(&tool.description))
}

/// Secrets are not among what is shown for debugging.
fn settings(config: &McpServer) -> String {
    mark(&format!("{config:?}"))
}

fn mark(text: &str) -> String {
    hex(&fingerprint(text)[..12])
}
