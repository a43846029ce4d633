//! Tools: one trait, the built-in ones, and those of the configuration.

mod builtin;
mod custom_command;
mod custom_http;
mod files;
pub mod output;
mod process;
mod readable;
mod run_command;
mod schema;
mod template;
#[cfg(test)]
mod testing;
mod web_fetch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::model::ToolSpec;
use base::clock::Clock;
use base::ids::ConversationId;
use config::{Config, CustomRun, CustomTool, Tools};
use net::cancel::Cancel;
use net::http_client::HttpClient;
use net::tls::Trust;
use store::Store;

use custom_command::CommandTool;
use custom_http::HttpTool;
use run_command::RunCommand;
use web_fetch::WebFetch;

pub use schema::{check_arguments, parameter_types};

/// Where a tool comes from, as `list_tools` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Part of the program.
    Builtin,
    /// Declared under `tools.custom` of the configuration.
    Custom,
    /// An MCP server of this name.
    Mcp(String),
}

/// What a tool may use while it runs.
pub struct ToolContext<'a> {
    /// For memories, schedules and earlier conversations.
    pub store: &'a Store,
    /// The settings of the turn.
    pub config: &'a Config,
    /// The household's time.
    pub clock: &'a Clock,
    /// The conversation in which it was called.
    pub conversation_id: ConversationId,
    /// Where the message came from, as [`Turn::channel`](store::Turn::channel).
    pub channel: &'a str,
    /// The webhook account that gets the reply.
    pub account: Option<&'a str>,
    /// Who asked.
    pub speaker: Option<&'a str>,
    /// When the tool must be finished: its own limit or the turn's, whichever
    /// is sooner.
    pub deadline: Instant,
    /// Set when somebody stops the turn; a tool that waits must heed it.
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
    /// Whether it only reads, so that running it twice, or beside others, does
    /// no harm.
    fn is_read_only(&self) -> bool;
    /// Whether its results hold text that nobody of the household wrote: then
    /// the model is shown them as data from outside.
    fn brings_outside_text(&self) -> bool {
        false
    }
    /// What a run with these arguments does, for the person who is asked about
    /// it; to go on "The assistant wants to" with. Arguments may stand in it as
    /// they are. Nothing where there is nothing better to say than the tool's
    /// name and its arguments.
    fn intent(&self, arguments: &Map<String, Value>) -> Option<String> {
        let _ = arguments;
        None
    }
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
    /// The built-in tools and the custom ones of `config`, in the order of the
    /// file. The first tool of a name wins: a model API refuses a request that
    /// offers two.
    pub fn from_config(config: &Config) -> Toolbox {
        let trust = Trust::new(config.tls.ca_file.as_deref());
        let mut toolbox = Toolbox::builtin();
        toolbox.tools.extend(set_up(&config.tools, &trust));
        toolbox.add_custom(&config.tools.custom, trust);
        toolbox
    }

    /// The built-in tools alone that need no setting.
    pub fn builtin() -> Toolbox {
        Toolbox {
            tools: builtin::all(),
        }
    }

    fn add_custom(&mut self, custom: &[CustomTool], trust: Trust) {
        let http_client = Arc::new(HttpClient::new().trusting(trust));
        let toolbox = self;
        for tool in custom {
            if toolbox.get(&tool.name).is_some() {
                log::warn!(
                    "the custom tool {:?} is left out: another tool has that name",
                    tool.name
                );
                continue;
            }
            toolbox.tools.push(match &tool.run {
                CustomRun::Command {
                    argv,
                    environment,
                    directory,
                } => Arc::new(CommandTool::new(
                    tool,
                    argv,
                    environment,
                    directory.as_deref(),
                )),
                CustomRun::Http {
                    method,
                    url,
                    headers,
                    body,
                } => Arc::new(HttpTool::new(
                    tool,
                    method,
                    url,
                    headers,
                    body.as_ref(),
                    Arc::clone(&http_client),
                )),
            });
        }
    }

    /// The same tools, with `mcp` in place of any tools of MCP servers. A
    /// server's tool does not take the place of another with its name.
    pub fn with_mcp(&self, mcp: Vec<Arc<dyn Tool>>) -> Toolbox {
        let is_own = |tool: &&Arc<dyn Tool>| !matches!(tool.source(), Source::Mcp(_));
        let mut toolbox = Toolbox {
            tools: self.tools.iter().filter(is_own).cloned().collect(),
        };
        for tool in mcp {
            if toolbox.get(&tool.spec().name).is_some() {
                log::warn!(
                    "the MCP tool {:?} is left out: another tool has that name",
                    tool.spec().name
                );
                continue;
            }
            toolbox.tools.push(tool);
        }
        toolbox
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

/// The built-in tools of the section `tools`, as far as they are enabled.
fn set_up(tools: &Tools, trust: &Trust) -> Vec<Arc<dyn Tool>> {
    let mut made: Vec<Arc<dyn Tool>> = Vec::new();
    if tools.web_fetch.enabled {
        made.push(Arc::new(WebFetch::new(&tools.web_fetch, trust.clone())));
    }
    let directory = tools.files.directory.as_deref();
    if tools.files.enabled {
        made.extend(files::all(directory));
    }
    if tools.run_command.enabled {
        made.push(Arc::new(RunCommand::new(&tools.run_command, directory)));
    }
    made
}

/// What the model is told of a custom tool.
fn spec_of(tool: &CustomTool) -> ToolSpec {
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    }
}

/// When a run must be over: after its own limit or at the end of the turn,
/// whichever comes first.
#[derive(Clone, Copy, Debug)]
struct RunLimit {
    deadline: Instant,
    /// The tool's own limit in seconds, where that is what ends it.
    own_seconds: Option<u64>,
}

impl RunLimit {
    fn new(own_seconds: u64, turn_deadline: Instant) -> RunLimit {
        // A limit beyond what the clock can hold is no limit of its own.
        match Instant::now().checked_add(Duration::from_secs(own_seconds)) {
            Some(own) if own < turn_deadline => RunLimit {
                deadline: own,
                own_seconds: Some(own_seconds),
            },
            _ => RunLimit {
                deadline: turn_deadline,
                own_seconds: None,
            },
        }
    }

    /// What the model is told of a run that was not over in time.
    fn exceeded(&self, tool: &str) -> String {
        match self.own_seconds {
            Some(seconds) => {
                format!("the tool {tool:?} was stopped: it did not finish within {seconds} seconds")
            }
            None => format!("the tool {tool:?} was stopped: the time for this turn is up"),
        }
    }
}

/// What the model is told of a run that a person stopped.
fn cancelled(tool: &str) -> String {
    format!("the tool {tool:?} was stopped because the turn was cancelled")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn custom(name: &str, run: CustomRun) -> CustomTool {
        CustomTool {
            name: name.to_owned(),
            description: "A test.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
            run,
            read_only: true,
            timeout_seconds: 5,
            output_bytes: 1024,
        }
    }

    fn command(name: &str) -> CustomTool {
        custom(
            name,
            CustomRun::Command {
                argv: vec!["true".to_owned()],
                environment: BTreeMap::new(),
                directory: None,
            },
        )
    }

    fn http(name: &str) -> CustomTool {
        custom(
            name,
            CustomRun::Http {
                method: "GET".to_owned(),
                url: "http://127.0.0.1/".to_owned(),
                headers: Vec::new(),
                body: None,
            },
        )
    }

    #[test]
    fn the_order_is_stable_and_no_name_comes_twice() {
        let mut toolbox = Toolbox::builtin();
        toolbox.add_custom(
            &[command("b"), http("a"), command("recall"), http("b")],
            Trust::default(),
        );
        let names: Vec<&str> = toolbox
            .iter()
            .map(|tool| tool.spec().name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "current_time",
                "remember",
                "recall",
                "forget",
                "search_conversations",
                "schedule",
                "b",
                "a"
            ]
        );
        let source = |name: &str| toolbox.get(name).map(|tool| tool.source());
        assert_eq!(source("recall"), Some(Source::Builtin));
        assert_eq!(source("b"), Some(Source::Custom));
        assert_eq!(source("c"), None);
    }

    #[test]
    fn the_nearer_limit_counts_and_a_huge_one_does_not_overflow() {
        let turn = Instant::now() + Duration::from_secs(60);
        let own = RunLimit::new(5, turn);
        assert!(own.deadline < turn);
        assert!(own.exceeded("x").contains("within 5 seconds"));
        for seconds in [600, u64::MAX] {
            let limit = RunLimit::new(seconds, turn);
            assert_eq!(limit.deadline, turn);
            assert!(limit.exceeded("x").contains("the time for this turn is up"));
        }
    }
}
