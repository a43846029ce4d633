//! `mcp_servers`: servers of the Model Context Protocol, whose tools the model
//! may use. The shape is the one that other clients have, so that an entry can
//! be copied from theirs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::collections::{list, map_of, object_as};
use super::declaration::{Rule, Setting, section};
use super::key_path::KeyPath;
use super::readable::Named;
use super::reader::Reader;
use super::rules::{
    Choice, DIRECTORY, Flag, HEADER, NAME, SecretText, Text, UrlText, VARIABLE, integer,
};
use base::language::Said;
use base::secret::Secret;
use base::url::host_only;

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
    /// Whether what it says does not count as outside text.
    pub trusted: bool,
    /// Whether its tools reach what belongs to the household.
    pub household: bool,
    /// Which of its tools change nothing.
    pub read_only: ReadOnly,
}

/// Which tools of a server of the Model Context Protocol only read, as the owner says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ReadOnly {
    /// Those of these names at the server.
    Named(Vec<String>),
    /// Those that the server annotated so when this was set, or none.
    Annotated(bool),
}

impl ReadOnly {
    /// Whether this tool was declared so, which its server annotates so or not.
    pub fn has(&self, tool: &str, is_annotated: bool) -> bool {
        match self {
            ReadOnly::Named(tools) => tools.iter().any(|name| name == tool),
            ReadOnly::Annotated(all) => *all && is_annotated,
        }
    }
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
        /// Its variables in addition to the few that it inherits.
        environment: BTreeMap<String, Secret>,
        /// Where it runs, if not in the workspace or the data directory.
        directory: Option<PathBuf>,
        /// Whether it reaches only a part of the file system.
        sandbox: bool,
    },
    /// A server that is already running and speaks Streamable HTTP, or HTTP+SSE.
    Http {
        /// Its one address, or that of its stream.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
        /// The program that prints the token of every request, and its arguments; none if empty.
        token_command: Vec<String>,
        /// Whether it is said to speak HTTP+SSE; else that is found out.
        is_older: bool,
    },
}

impl McpServer {
    /// The prefix of its tools' names.
    pub fn tool_prefix(&self) -> String {
        permitted_name(&self.name)
    }
}

/// The one of these servers that a tool of this name belongs to: `mcp_home_door_open` is of
/// `home_door`, not of `home`.
pub fn server_of<'s>(tool: &str, servers: impl Iterator<Item = &'s str>) -> Option<&'s str> {
    let rest = tool.strip_prefix("mcp_")?;
    let is_of = |server: &&str| {
        let rest = rest.strip_prefix(&permitted_name(server));
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    servers.filter(is_of).max_by_key(|server| server.len())
}

/// A name in which other characters than model APIs allow, `A-Z a-z 0-9 _ -`, are replaced.
pub fn permitted_name(name: &str) -> String {
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
        cwd: Option<PathBuf> = DIRECTORY
            .optional("the data directory; with `sandbox` the workspace");
        /// Whether the program may only read the directories of the system and its own, and only
        /// write to the workspace and the temporary directory. It does not start where the kernel
        /// has no Landlock.
        sandbox: bool = Flag.or(false);
        /// Address of a server that is already running (Streamable HTTP, or HTTP+SSE of 2024),
        /// instead of `command`.
        url: Option<String> = UrlText(&["https", "http"]).optional("none");
        /// Headers of every request to `url`, such as Authorization.
        headers: Vec<(String, Secret)> = map_of(HEADER, SecretText).or_shown(Vec::new(), "{}");
        /// Program and arguments that print a bearer token for `url`. It runs whenever a session
        /// begins, and again when the server refuses the token.
        token_command: Vec<String> = list(Text(0..=10_000)).or_shown(Vec::new(), "[]");
        /// Transport. It follows from `command` or `url` and can be left out.
        kind("type"): Option<Kind> = KINDS.optional("stdio with `command`, http with `url`");
        /// Whether Hearth ignores the server.
        disabled: bool = Flag.or(false);
        /// Longest time that a tool call may take without reporting progress, in seconds.
        timeout_seconds: u64 = integer(1..=3_600).or(60);
        /// Whether what the server's tools answer is trusted: it does not count as text from
        /// outside, after which tools with an effect ask again.
        trusted: bool = Flag.or(false);
        /// Whether the server's tools reach what belongs to the household: a webhook account has
        /// them only if its `tools` names them.
        household: bool = Flag.or(false);
        /// Tools of the server that change nothing, by their names there: where they are allowed
        /// they run unasked, also after text from outside was read. With `true` those that the
        /// server annotates so now (`readOnlyHint`, without `openWorldHint`). One that has
        /// changed since asks again.
        read_only: ReadOnly = ReadOnlyTools.or(ReadOnly::Annotated(false));
    }
}

/// The setting `read_only`.
struct ReadOnlyTools;

impl Rule for ReadOnlyTools {
    type Output = ReadOnly;

    fn expected(&self) -> Said {
        "an array of names of the server's tools, or true or false".into()
    }

    fn schema(&self) -> Value {
        json!({ "anyOf": [list(Text(1..=256)).schema(), Flag.schema()] })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<ReadOnly> {
        if value.is_array() {
            let names = list(Text(1..=256)).read(reader, path, value)?;
            return Some(ReadOnly::Named(names));
        }
        let all = reader.scalar(path, &self.expected(), value, Value::as_bool)?;
        Some(ReadOnly::Annotated(all))
    }
}

/// The words of other clients for the transports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

const KINDS: Choice<Kind> = Choice(&[
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("sse", Kind::Sse),
]);

/// The setting `mcp_servers`.
pub(super) fn mcp_servers() -> Setting<impl Rule<Output = Vec<McpServer>>, Vec<McpServer>> {
    map_of(NAME, server())
        .then(|reader, path, _, servers: Vec<(String, McpServer)>| {
            let mut named: Vec<McpServer> = Vec::with_capacity(servers.len());
            for (key, mut server) in servers {
                // A permission for a tool of one would apply to the other's.
                let twin = named
                    .iter()
                    .find(|one| one.tool_prefix() == permitted_name(&key));
                if let Some(twin) = twin {
                    let name = &twin.name;
                    reader.refuse(
                        &path.key(&key),
                        format_args!(
                            "is too similar to {name:?}: their tools would have the same names"
                        ),
                    );
                }
                server.name = key;
                named.push(server);
            }
            Some(named)
        })
        .or_shown(Vec::new(), "{}")
}

/// One server, without its name.
fn server() -> impl Rule<Output = McpServer> {
    const EXPECTED: &str = "an object with command (and args, env) or url (and headers)";
    object_as::<Declaration>(EXPECTED, &UNASKED).then(|reader, path, value, declared| {
        let before = reader.problems.len();
        for (key, words) in [
            ("args", &declared.args),
            ("token_command", &declared.token_command),
        ] {
            let words = (0..words.len()).map(|place| path.key(key).index(place));
            reader.private.extend(words);
        }
        reader.private.push(path.key("url"));
        for key in UNASKED.iter().filter(|key| value.get(**key).is_some()) {
            reader.caution(
                &path.key(key),
                "is ignored: \"tool_permissions\" says which tools run unasked",
            );
        }
        let (way, kind, foreign): (_, _, &[&str]) = match (declared.command, declared.url) {
            (Some(command), None) => (
                McpWay::Stdio {
                    command,
                    args: declared.args,
                    environment: declared.env,
                    directory: declared.cwd,
                    sandbox: declared.sandbox,
                },
                Kind::Stdio,
                &["headers", "token_command"],
            ),
            (None, Some(url)) => (
                McpWay::Http {
                    url,
                    headers: declared.headers,
                    token_command: declared.token_command,
                    is_older: declared.kind == Some(Kind::Sse),
                },
                match declared.kind {
                    Some(Kind::Sse) => Kind::Sse,
                    _ => Kind::Http,
                },
                &["args", "env", "cwd", "sandbox"],
            ),
            (command, _) => {
                let found = if command.is_some() { "both" } else { "neither" };
                reader.refuse(
                    path,
                    format_args!("must have either \"command\" or \"url\"; it has {found}"),
                );
                return None;
            }
        };
        let needed = match kind {
            Kind::Stdio => "url",
            Kind::Http | Kind::Sse => "command",
        };
        let mut foreign: Vec<&str> = foreign.to_vec();
        foreign.retain(|key| value.get(*key).is_some());
        if declared.kind.is_some_and(|named| named != kind) {
            foreign.push("type");
        }
        for key in foreign {
            reader.refuse(&path.key(key), format_args!("needs \"{needed}\""));
        }
        (reader.problems.len() == before).then_some(McpServer {
            name: String::new(),
            way,
            disabled: declared.disabled,
            timeout_seconds: declared.timeout_seconds,
            trusted: declared.trusted,
            household: declared.household,
            read_only: declared.read_only,
        })
    })
}

impl Named for McpServer {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Serialize for McpServer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut shown = json!({
            "disabled": self.disabled,
            "timeout_seconds": self.timeout_seconds,
            "trusted": self.trusted,
            "household": self.household,
            "read_only": self.read_only,
        });
        match &self.way {
            McpWay::Stdio {
                command, sandbox, ..
            } => {
                shown["command"] = json!(command);
                shown["sandbox"] = json!(sandbox);
            }
            McpWay::Http { url, .. } => shown["url"] = json!(host_only(url)),
        }
        shown.serialize(to)
    }
}
