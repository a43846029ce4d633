//! `mcp_servers`: servers of the Model Context Protocol, whose tools the model
//! may use. The shape is the one that other clients have, so that an entry can
//! be copied from theirs.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde_json::Value;

use super::absence::SettingRule;
use super::collections::{NamedMap, list, map_of, read_section};
use super::custom_tools::DIRECTORY;
use super::declaration::{Declared, Rule, SettingDoc, section};
use super::key_path::KeyPath;
use super::names::{HEADER, NAME, VARIABLE};
use super::readable::host_only;
use super::reader::Reader;
use super::rules::{Choice, Flag, SecretText, Text, UrlText, integer};
use base::secret::Secret;
use serde_json::json;

/// Keys of other clients that run tools unasked. Here `tool_permissions` says
/// so, so they are not taken over.
const UNASKED: [&str; 2] = ["autoApprove", "alwaysAllow"];

/// A server of the Model Context Protocol (`mcp_servers`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Its name, which its tools' names begin with.
    pub name: String,
    /// How it is reached.
    pub way: McpWay,
    /// Whether it is left alone.
    pub disabled: bool,
    /// Most seconds that a call may take without news of its progress.
    pub timeout_seconds: u64,
}

/// How a server of the Model Context Protocol is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpWay {
    /// A program that is started and spoken to over its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets beside the few that it inherits.
        environment: BTreeMap<String, Secret>,
        /// Where it runs; the data directory when absent.
        directory: Option<PathBuf>,
    },
    /// A server that runs by itself and speaks Streamable HTTP.
    Http {
        /// Its one address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
}

impl McpServer {
    /// The name as it stands in the names of its tools, which model APIs allow
    /// only `A-Z a-z 0-9 _ -` in.
    pub fn tool_prefix(&self) -> String {
        prefix(&self.name)
    }

    /// What `get_config` shows of it: nothing that may be secret.
    pub(super) fn summary(&self) -> Value {
        match &self.way {
            McpWay::Stdio { command, .. } => json!({
                "command": command,
                "disabled": self.disabled,
                "timeout_seconds": self.timeout_seconds,
            }),
            McpWay::Http { url, .. } => json!({
                "url": host_only(url),
                "disabled": self.disabled,
                "timeout_seconds": self.timeout_seconds,
            }),
        }
    }
}

fn prefix(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        })
        .collect()
}

section! {
    /// A server as the file has it.
    struct Declaration {
        /// Program that Hearth starts as the server, such as npx or uvx.
        command: Option<String> = Text(1..=4_000).optional("none");
        /// Arguments of the program.
        args: Vec<String> = list(Text(0..=10_000)).or_shown(Vec::new(), "[]");
        /// Environment variables of the program, in addition to HOME, LANG, LOGNAME, PATH, SHELL,
        /// TERM, TZ and USER.
        env: BTreeMap<String, Secret> = map_of(VARIABLE, SecretText)
            .or_shown(BTreeMap::new(), "{}");
        /// Where the program runs.
        cwd: Option<String> = DIRECTORY.optional("the data directory");
        /// Address of a server that is already running (Streamable HTTP), instead of `command`.
        url: Option<String> = UrlText(&["https", "http"]).optional("none");
        /// Headers of every request to `url`, such as Authorization.
        headers: Vec<(String, Secret)> = map_of(HEADER, SecretText).or_shown(Vec::new(), "{}");
        /// Transport. It follows from `command` or `url` and can be left out.
        kind("type"): Option<Kind> = KINDS.optional("stdio with `command`, http with `url`");
        /// Whether Hearth ignores the server.
        disabled: bool = Flag.or(false);
        /// Longest time that a tool call may take without reporting progress, in seconds.
        timeout_seconds: u64 = integer(1..=3_600).or(60);
    }
}

/// The words of other clients for the transports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
}

const KINDS: Choice<Kind> = Choice(&[
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamableHttp", Kind::Http),
]);

/// The rule for `mcp_servers`.
pub(super) struct McpServers;

impl McpServers {
    fn map() -> NamedMap<Server, Vec<(String, McpServer)>> {
        NamedMap {
            value: Server,
            key: NAME,
            output: PhantomData,
        }
    }
}

impl Rule for McpServers {
    type Output = Vec<McpServer>;

    fn expected(&self) -> String {
        "an object from the name of each server to how it is reached".to_owned()
    }

    fn read(
        &self,
        reader: &mut Reader<'_>,
        path: &KeyPath,
        value: &Value,
    ) -> Option<Vec<McpServer>> {
        let servers = McpServers::map().read(reader, path, value)?;
        let mut named: Vec<McpServer> = Vec::with_capacity(servers.len());
        for (key, mut server) in servers {
            // A permission of the one's tool would be a permission of the other's.
            let twin = named.iter().find(|one| one.tool_prefix() == prefix(&key));
            if let Some(twin) = twin {
                let path = path.key(&key);
                let message = format!(
                    "\"{path}\" is too much like {:?}: the names of their tools would be the same",
                    twin.name
                );
                reader.problem(&path, message);
            }
            server.name = key;
            named.push(server);
        }
        Some(named)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        McpServers::map().document_members(key, docs);
    }
}

impl SettingRule for McpServers {
    fn absent(self) -> Vec<McpServer> {
        Vec::new()
    }

    fn default_text(&self) -> String {
        "{}".to_owned()
    }
}

/// One server, without its name.
struct Server;

impl Rule for Server {
    type Output = McpServer;

    fn expected(&self) -> String {
        "an object with command (and args, env) or url (and headers)".to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<McpServer> {
        let before = reader.problems.len();
        let members = reader.members(path, &self.expected(), value)?;
        for key in UNASKED {
            if members.contains_key(key) {
                let path = path.key(key);
                reader.warn(
                    &path,
                    format!(
                        "\"{path}\" is ignored: \"tool_permissions\" says which tools run unasked"
                    ),
                );
            }
        }
        let declared: Declaration = read_section(reader, path, members, &UNASKED)?;
        let (way, kind, foreign): (_, _, &[&str]) = match (declared.command, declared.url) {
            (Some(command), None) => (
                McpWay::Stdio {
                    command,
                    args: declared.args,
                    environment: declared.env,
                    directory: declared.cwd.map(PathBuf::from),
                },
                Kind::Stdio,
                &["headers"],
            ),
            (None, Some(url)) => (
                McpWay::Http {
                    url,
                    headers: declared.headers,
                },
                Kind::Http,
                &["args", "env", "cwd"],
            ),
            (command, _) => {
                let found = if command.is_some() { "both" } else { "neither" };
                reader.problem(
                    path,
                    format!("\"{path}\" must have either \"command\" or \"url\"; it has {found}"),
                );
                return None;
            }
        };
        let needed = match kind {
            Kind::Stdio => "url",
            Kind::Http => "command",
        };
        for key in foreign.iter().filter(|key| value.get(*key).is_some()) {
            let path = path.key(key);
            reader.problem(&path, format!("\"{path}\" needs \"{needed}\""));
        }
        if declared.kind.is_some_and(|named| named != kind) {
            let path = path.key("type");
            reader.problem(&path, format!("\"{path}\" needs \"{needed}\""));
        }
        (reader.problems.len() == before).then_some(McpServer {
            name: String::new(),
            way,
            disabled: declared.disabled,
            timeout_seconds: declared.timeout_seconds,
        })
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        Declaration::document(key, docs);
    }
}
