//! `tools`: the tools that have settings, and permissions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

use super::address_patterns::AddressPatterns;
use super::collections::{list, map_of, object, section_of};
use super::custom_tools::{BUILTIN_TOOLS, CustomTool, FIND_TOOLS, custom_tool};
use super::declaration::{Declared, Rule, Setting, section};
use super::rules::{Choice, DIRECTORY, Flag, HOST, Parsed, TOOL_NAME, integer};

section! {
    /// The section `tools`.
    #[derive(Clone, Debug, Serialize)]
    pub struct Tools {
        /// Tools of your own: each a program (`command`) or an HTTP request (`http`).
        #[serde(serialize_with = "names")]
        pub custom: Vec<CustomTool> = list(custom_tool()).or_shown(Vec::new(), "[]");
        /// The tool that reads web pages.
        pub web_fetch: WebFetch = section_of();
        /// The tools that read and write files in the workspace.
        pub files: Files = section_of();
        /// The tool that runs shell commands in the workspace.
        pub run_command: RunCommand = section_of();
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
        pub allow: Reachable = places().or(Reachable::default());
        /// Hosts whose pages are trusted: they do not count as text from outside, after which tools
        /// with an effect ask again. Other hosts below the same domain are not among them.
        pub trusted_hosts: Vec<String> = list(HOST).or(Vec::new());
        /// Addresses that a turn may read one after the other before it asks for each further
        /// one. Those of trusted hosts do not count.
        pub addresses_per_turn: usize = integer(1..=1_000).or(20);
        /// Longest fetch, in seconds, including redirects.
        pub timeout_seconds: u64 = integer(1..=300).or(20);
        /// Longest page, in bytes; the rest is not read. A PDF is read whole, up to 16 MB.
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
        /// The directory of everybody's files. It must not contain the server's own data.
        pub directory: Option<PathBuf> = DIRECTORY.optional("`files` in the data directory");
    }
}

section! {
    /// `tools.run_command`: shell commands, off unless the owner wants them.
    #[derive(Clone, Debug, Serialize)]
    pub struct RunCommand {
        /// Whether the tool is available. Where the kernel has Landlock, a command can only read the
        /// directories of the system, and only write to the workspace and the temporary directory.
        pub enabled: bool = Flag.or(false);
        /// Longest command, in seconds; then it is killed with its child processes.
        pub timeout_seconds: u64 = integer(1..=3_600).or(60);
        /// Longest output that is kept, in bytes. The model is shown it in parts.
        pub output_bytes: usize = integer(256..=1024 * 1024).or(1024 * 1024);
    }
}

impl WebFetch {
    /// Whether the pages of a host are trusted.
    pub fn trusts(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let mut trusted = self.trusted_hosts.iter();
        trusted.any(|trusted| trusted.eq_ignore_ascii_case(host))
    }
}

/// Whether a tool may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// The owner is asked each time.
    Ask,
    /// It runs by itself.
    Allow,
    /// It never runs and is not offered to the model.
    Deny,
    /// What concerns whoever asks alone runs by itself; else the owner is asked.
    #[serde(rename = "allow_own")]
    AllowOwn,
}

base::words! { Permission {
    Ask: "ask",
    Allow: "allow",
    Deny: "deny",
    AllowOwn: "allow_own",
} }

/// The words for [`Permission`].
pub(super) const PERMISSIONS: Choice<Permission> = Choice(&[
    ("ask", Permission::Ask),
    ("allow", Permission::Allow),
    ("deny", Permission::Deny),
]);

/// Permissions of tools, by name.
pub(super) fn tool_permissions() -> impl Rule<Output = BTreeMap<String, Permission>> {
    let word = Choice(&[
        ("ask", Permission::Ask),
        ("allow", Permission::Allow),
        ("deny", Permission::Deny),
        ("allow_own", Permission::AllowOwn),
    ]);
    map_of(TOOL_NAME, word).then(
        |reader, path, _, permissions: BTreeMap<String, Permission>| {
            let own =
                |(_, permission): &(&String, &Permission)| **permission == Permission::AllowOwn;
            for (tool, _) in permissions.iter().filter(own) {
                if tool != "schedule" {
                    reader.refuse(&path.key(tool), "\"allow_own\" is for schedule alone");
                }
            }
            Some(permissions)
        },
    )
}

/// Places outside the public internet that the owner opens to `web_fetch`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachable {
    /// Addresses, under any name.
    pub addresses: AddressPatterns,
    /// Host names in lower case, at any address.
    pub hosts: Vec<String>,
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

/// A host name or an address pattern.
const PLACE: Parsed<Reachable> = Parsed {
    expected: "a host name in lower case, such as nas.lan, or an address pattern as in allow_from",
    parse: |text| {
        let mut reachable = Reachable::default();
        match AddressPatterns::parse(&[text]) {
            Ok(patterns) => reachable.addresses = patterns,
            // A mistyped address would otherwise pass as a name of digits.
            Err(_) if text.bytes().any(|byte| byte.is_ascii_lowercase()) => {
                reachable.hosts.extend((HOST.parse)(text));
            }
            Err(_) => {}
        }
        (!reachable.addresses.is_empty() || !reachable.hosts.is_empty()).then_some(reachable)
    },
};

/// Places that [`Reachable`] allows.
fn places() -> impl Rule<Output = Reachable> {
    list(PLACE).then(|_, _, _, places| {
        let mut all = Reachable::default();
        for place in places {
            all.addresses.0.extend(place.addresses.0);
            all.hosts.extend(place.hosts);
        }
        Some(all)
    })
}

/// The setting `tools`: tool names are unique.
pub(super) fn tools() -> Setting<impl Rule<Output = Tools>, Tools> {
    object::<Tools>()
        .then(|reader, path, _, tools| {
            for (index, tool) in tools.custom.iter().enumerate() {
                let path = path.key("custom").index(index).key("name");
                let before = &tools.custom[..index];
                if let Some(earlier) = before.iter().position(|one| one.name == tool.name) {
                    let is = format_args!("is {:?}, and so is item {earlier}", tool.name);
                    reader.refuse(&path, is);
                }
                let name = tool.name.as_str();
                if BUILTIN_TOOLS.contains(&name) || name == FIND_TOOLS {
                    reader.refuse(&path, format_args!("is {:?}, a built-in tool", tool.name));
                }
            }
            Some(tools)
        })
        .or_shown(Tools::absent(), "{}")
}

/// The names of tools: what they run is for whoever reads the file.
fn names<S: Serializer>(tools: &[CustomTool], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tools.iter().map(|tool| &tool.name))
}
