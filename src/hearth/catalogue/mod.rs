//! The catalogue of tools: what can be added to the configuration by one command or one form
//! of the page. An entry is data (`entries.json`); here it is filled with the answers to its
//! questions, tried, and written to `tools.custom` and `mcp_servers`.
//!
//! 1. [`Entry::named`] finds the entry, [`Entry::fields`] lists what it asks.
//! 2. [`Entry::choices`] looks up what an answer may mean, such as a place.
//! 3. [`Entry::filled`] makes the settings of the answers: an [`Addition`].
//! 4. [`Addition::add_to`] puts them into the file, [`Addition::try_out`] tries them.
//! 5. [`remove`] takes them out again.
//!
//! In an entry, `<name>` stands for an answer; a member with one that was not given is left
//! out. `<as>` is the name under which the entry is added.

mod entry;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use agent::mcp::Mcp;
use agent::tools::try_once;
use base::error::{Error, Result};
use config::{Config, server_of};
pub use entry::{Answers, Entry, Field};
use net::cancel::Cancel;
use net::tls::Trust;

/// Says in a tool of the file under which name it was added.
const ADDED_AS: &str = "_added_as";
/// Time limit of a request.
const REQUEST_TIME: Duration = Duration::from_secs(20);
/// Time limit of an MCP server's start; npx and uvx download a program first.
const START_TIME: Duration = Duration::from_secs(60);

/// The settings of an entry with its answers.
#[derive(Debug)]
pub struct Addition {
    /// The name under which it is added.
    pub alias: String,
    tools: Vec<Value>,
    servers: Map<String, Value>,
    /// The rights of its tools: `allow` or `ask`.
    pub rights: Map<String, Value>,
    trial: Option<Value>,
}

/// What was removed.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Names of tools.
    pub tools: Vec<String>,
    /// Names of MCP servers.
    pub servers: Vec<String>,
    /// People and webhook accounts that had rights of their own to these tools.
    pub holders: Vec<String>,
}

impl Addition {
    /// Puts the settings into the members of a configuration file.
    ///
    /// # Errors
    /// `invalid_request` when something of that name is there already.
    pub fn add_to(&self, members: &mut Value) -> Result<()> {
        for name in self.names() {
            let is_there = custom(members).iter().any(|tool| tool["name"] == name)
                || members["mcp_servers"].get(name).is_some();
            if is_there {
                let problem = format!("there is a tool {name:?} already: remove it first");
                return Err(Error::invalid_request(problem));
            }
        }
        if !self.tools.is_empty() {
            let mut tools = custom(members).to_vec();
            tools.extend(self.tools.iter().cloned());
            section(members, "tools")?.insert("custom".to_owned(), tools.into());
        }
        if !self.servers.is_empty() {
            section(members, "mcp_servers")?.extend(self.servers.clone());
        }
        section(members, "tool_permissions")?.extend(self.rights.clone());
        Ok(())
    }

    /// The MCP server that is not trusted, if it has one: what it answers is text from outside.
    pub fn outside(&self) -> Option<&str> {
        let mut servers = self.servers.iter();
        let (name, _) = servers.find(|(_, server)| server["trusted"] != true)?;
        Some(name)
    }

    /// Whether it is an MCP server, of whose tools nothing is known yet.
    pub fn has_servers(&self) -> bool {
        !self.servers.is_empty()
    }

    /// The names of its tools and servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().filter_map(|tool| tool["name"].as_str());
        tools.chain(self.servers.keys().map(String::as_str))
    }

    /// Makes one small call, or starts the server, in a configuration that has the settings.
    /// Returns what came of it, in words.
    ///
    /// # Errors
    /// Why it does not work.
    pub fn try_out(&self, config: &Config, data_dir: &Path) -> Result<String, String> {
        if let Some(trial) = &self.trial {
            let tools = config.tools.custom.iter();
            let mut tools = tools.filter(|tool| trial["tool"] == tool.name.as_str());
            let tool = tools.next().ok_or("the tool is not there")?;
            let arguments = trial["arguments"].as_object().cloned().unwrap_or_default();
            let trust = Trust::new(config.tls.ca_file.as_deref());
            return try_once(tool, &arguments, trust, REQUEST_TIME);
        }
        let mut config = config.clone();
        let is_own = |name: &str| self.servers.contains_key(name);
        config.mcp_servers.retain(|server| is_own(&server.name));
        let mcp = Mcp::new(data_dir.to_owned());
        mcp.apply(&config);
        mcp.wait_until_settled(START_TIME, &Cancel::default());
        let problem = mcp.statuses().into_iter().find_map(|status| status.problem);
        let tools = mcp.tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let names = names.join(", ");
        mcp.stop(true);
        match problem {
            Some(problem) => Err(problem.to_string()),
            None if tools.is_empty() => Err("it has not started in time".to_owned()),
            None => Ok(format!("It has the tools {names}.")),
        }
    }
}

/// Removes from the members of a configuration file what was added under this name, or the one
/// tool or MCP server of this name, with everybody's rights to its tools: what is added later
/// under the same name must not have them.
///
/// # Errors
/// `not_found` when there is none; names what there is.
pub fn remove(members: &mut Value, name: &str) -> Result<Removed> {
    let mut removed = Removed::default();
    let known = members.get("mcp_servers").and_then(Value::as_object);
    let known: Vec<String> = known.into_iter().flat_map(Map::keys).cloned().collect();
    let is_meant = |key: &str, one: &Value| key == name || one[ADDED_AS] == name;
    let (mut tools, mut all) = (custom(members).to_vec(), Vec::new());
    tools.retain(|tool| {
        let own = tool["name"].as_str().unwrap_or_default().to_owned();
        all.push(own.clone());
        let is_meant = is_meant(&own, tool);
        if is_meant {
            removed.tools.push(own);
        }
        !is_meant
    });
    if !removed.tools.is_empty() {
        section(members, "tools")?.insert("custom".to_owned(), tools.into());
    }
    if members["mcp_servers"].is_object() {
        section(members, "mcp_servers")?.retain(|own, server| {
            all.push(own.clone());
            let is_meant = is_meant(own, server);
            if is_meant {
                removed.servers.push(own.clone());
            }
            !is_meant
        });
    }
    if removed == Removed::default() {
        let there = if all.is_empty() {
            "there are none beside the built-in ones".to_owned()
        } else {
            format!("there are {}", all.join(", "))
        };
        let problem = format!("there is no tool or MCP server {name:?}; {there}");
        return Err(Error::not_found(problem));
    }
    let Removed { tools, servers, .. } = &removed;
    let is_of = |tool: &str, list: &[String]| list.iter().any(|one| one == tool);
    let is_gone = |tool: &str| {
        let server = server_of(tool, known.iter().map(String::as_str));
        is_of(tool, tools) || server.is_some_and(|server| is_of(server, servers))
    };
    section(members, "tool_permissions")?.retain(|tool, _| !is_gone(tool));
    let mut holders = Vec::new();
    for (name, holder) in holders_of_rights(members) {
        if drop_rights(holder, &is_gone) {
            holders.push(name.to_owned());
        }
    }
    removed.holders = holders;
    Ok(removed)
}

/// The people and the webhook accounts of a file.
fn holders_of_rights(members: &mut Value) -> Vec<(&str, &mut Value)> {
    let Value::Object(members) = members else {
        return Vec::new();
    };
    let mut people = Vec::new();
    let mut channels: Vec<&mut Value> = Vec::new();
    for (key, value) in members.iter_mut() {
        match (key.as_str(), value) {
            ("people", Value::Object(found)) => people.extend(found.iter_mut()),
            ("channels", Value::Object(found)) => channels.extend(found.values_mut()),
            ("channels", Value::Array(found)) => channels.extend(found),
            _ => {}
        }
    }
    let accounts = channels
        .into_iter()
        .filter_map(|channel| channel.get_mut("accounts"));
    let accounts = accounts.filter_map(Value::as_object_mut).flatten();
    let holders = people.into_iter().chain(accounts);
    holders
        .map(|(name, holder)| (name.as_str(), holder))
        .collect()
}

/// Takes the rights to some tools from a person or an account. Returns whether there were any.
fn drop_rights(holder: &mut Value, is_gone: &dyn Fn(&str) -> bool) -> bool {
    let before = holder.clone();
    if let Some(Value::Object(rights)) = holder.get_mut("tool_permissions") {
        rights.retain(|tool, _| !is_gone(tool));
    }
    for key in ["tools", "approves"] {
        if let Some(Value::Array(tools)) = holder.get_mut(key) {
            tools.retain(|tool| !tool.as_str().is_some_and(is_gone));
        }
    }
    *holder != before
}

fn custom(members: &Value) -> &[Value] {
    let tools = members.get("tools").and_then(|tools| tools.get("custom"));
    tools.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A section of the file, which is made where it is missing.
fn section<'m>(members: &'m mut Value, key: &str) -> Result<&'m mut Map<String, Value>> {
    let section = &mut members[key];
    if section.is_null() {
        *section = Value::Object(Map::new());
    }
    let problem = || Error::invalid_request(format!("{key:?} in the file is no object"));
    section.as_object_mut().ok_or_else(problem)
}
