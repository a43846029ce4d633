//! `tools`: what the model may use beside the tools that need no setting.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::absence::SettingRule;
use super::address_patterns::AddressPatterns;
use super::collections::{list, object};
use super::custom_tools::{BUILTIN_TOOLS, CustomTool, Tool};
use super::declaration::{Declared, Rule, SettingDoc, section};
use super::key_path::KeyPath;
use super::names::HOST;
use super::reader::Reader;
use super::rules::{Checked, Directory, Flag, integer};

section! {
    /// The section `tools`.
    #[derive(Clone, Debug)]
    pub struct Tools {
        /// Tools of your own: each a program (`command`) or an HTTP request (`http`).
        pub custom: Vec<CustomTool> = list(Tool).or_shown(Vec::new(), "[]");
        /// The tool that reads web pages.
        pub web_fetch: WebFetch = object();
        /// The tools that read and write files in the workspace.
        pub files: Files = object();
        /// The tool that runs shell commands in the workspace.
        pub run_command: RunCommand = object();
    }
}

section! {
    /// `tools.web_fetch`: reading web pages.
    #[derive(Clone, Debug, Serialize)]
    pub struct WebFetch {
        /// Whether the tool is available.
        pub enabled: bool = Flag.or(true);
        /// Hosts that may be fetched although they are not on the public internet: host names, or
        /// address patterns as in `allow_from`.
        pub allow: Reachable = ReachableRule.or(Reachable::default());
        /// Longest fetch, in seconds, including redirects.
        pub timeout_seconds: u64 = integer(1..=300).or(20);
        /// Longest page, in bytes; the rest is not read.
        pub max_bytes: usize = integer(1_024..=64 * 1024 * 1024).or(2 * 1024 * 1024);
    }
}

section! {
    /// `tools.files`: the workspace, the one directory in which the tools for files
    /// work.
    #[derive(Clone, Debug, Serialize)]
    pub struct Files {
        /// Whether the tools `list_files`, `read_file` and `write_file` are available.
        pub enabled: bool = Flag.or(true);
        /// The workspace directory. It must not contain the server's own data.
        pub directory: Option<PathBuf> = Directory.optional("`files` in the data directory");
    }
}

section! {
    /// `tools.run_command`: shell commands, off unless the owner wants them.
    #[derive(Clone, Debug, Serialize)]
    pub struct RunCommand {
        /// Whether the tool is available. A command can do whatever the server's user can.
        pub enabled: bool = Flag.or(false);
        /// Longest command, in seconds; then it is killed with its child processes.
        pub timeout_seconds: u64 = integer(1..=3_600).or(60);
        /// Longest output that the model gets, in bytes.
        pub output_bytes: usize = integer(256..=1024 * 1024).or(65_536);
    }
}

impl Default for Tools {
    fn default() -> Tools {
        Tools::absent()
    }
}

/// Places outside the public internet that the owner opens to `web_fetch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachable {
    /// Addresses, whatever name leads to them.
    pub addresses: AddressPatterns,
    /// Host names in lower case, whatever address they lead to.
    pub hosts: Vec<String>,
}

impl Default for Reachable {
    fn default() -> Reachable {
        Reachable {
            addresses: AddressPatterns::none(),
            hosts: Vec::new(),
        }
    }
}

impl Reachable {
    /// Whether the owner has opened this address, found under this name.
    pub fn allows(&self, host: &str, address: IpAddr) -> bool {
        let host = host.trim_end_matches('.');
        self.addresses.allows(address)
            || self
                .hosts
                .iter()
                .any(|known| known.eq_ignore_ascii_case(host))
    }
}

impl Serialize for Reachable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let addresses = self.addresses.0.iter().map(ToString::to_string);
        serializer.collect_seq(addresses.chain(self.hosts.iter().cloned()))
    }
}

/// The rule for [`Reachable`].
struct ReachableRule;

impl Rule for ReachableRule {
    type Output = Reachable;

    fn expected(&self) -> String {
        "an array of host names and address patterns (<a>.<b>.<c>.*, one address, a network such \
         as 10.0.0.0/8 or fd00::/8, or *)"
            .to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Reachable> {
        if !value.is_array() {
            reader.mistyped(path, &self.expected(), value);
            return None;
        }
        let mut reachable = Reachable::default();
        for text in list(PLACE).read(reader, path, value)? {
            match AddressPatterns::parse(&[&text]) {
                Ok(patterns) => reachable.addresses.0.extend(patterns.0),
                Err(_) => reachable.hosts.push(text),
            }
        }
        Some(reachable)
    }
}

const PLACE: Checked = Checked {
    expected: "a host name in lower case, such as nas.lan, or an address pattern",
    check: |text| {
        // A mistyped address would else be taken for a name of digits.
        let named = text.bytes().any(|byte| byte.is_ascii_lowercase());
        AddressPatterns::parse(&[text]).is_ok() || (named && (HOST.check)(text))
    },
};

/// The rule for `tools`.
pub(super) struct ToolsRule;

impl Rule for ToolsRule {
    type Output = Tools;

    fn expected(&self) -> String {
        object::<Tools>().expected()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Tools> {
        let tools = object::<Tools>().read(reader, path, value)?;
        for (index, tool) in tools.custom.iter().enumerate() {
            let path = path.key("custom").index(index).key("name");
            let before = &tools.custom[..index];
            if let Some(earlier) = before.iter().position(|one| one.name == tool.name) {
                let message = format!("\"{path}\" is {:?}, and so is item {earlier}", tool.name);
                reader.problem(&path, message);
            }
            if BUILTIN_TOOLS.contains(&tool.name.as_str()) {
                let message = format!("\"{path}\" is {:?}, a built-in tool", tool.name);
                reader.problem(&path, message);
            }
        }
        Some(tools)
    }

    fn document_members(&self, key: &str, docs: &mut Vec<SettingDoc>) {
        Tools::document(key, docs);
    }
}

impl SettingRule for ToolsRule {
    fn absent(self) -> Tools {
        Tools::absent()
    }

    fn default_text(&self) -> String {
        "{}".to_owned()
    }
}
