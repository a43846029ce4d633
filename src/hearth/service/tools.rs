//! Tools of the catalogue, as the page adds and removes them.

use serde_json::{Value, json};

use super::{Service, views};
use crate::catalogue::{self, Answers, Entry};
use base::error::{Error, Result};
use base::language::Words;
use base::measure::count;
use config::{Config, CustomRun, Permission, server_of};
use net::tls::Trust;
use protocol::command::AddTool;
use protocol::record;
use store::{Identity, UserRole};

/// What a tool changes in the configuration.
const CHANGED: [&str; 5] = [
    "tool_permissions",
    "tools",
    "mcp_servers",
    "people",
    "channels",
];

/// What can be added, and what each asks for.
pub(super) fn list_available_tools(words: Words) -> Value {
    let entry = |entry: &Entry| {
        let field = |field: catalogue::Field<'_>| {
            Some(record::CatalogueField {
                name: field.name.to_owned(),
                question: field.question(words)?,
                default: field.default.map(str::to_owned),
                is_secret: field.is_secret,
                is_optional: field.is_optional,
            })
        };
        record::CatalogueEntry {
            name: entry.name.to_owned(),
            about: entry.about(words),
            steps: entry.steps(words).map(str::to_owned),
            fields: entry.fields().filter_map(field).collect(),
        }
    };
    views::records("tools", Entry::all().iter().map(entry))
}

/// Refuses, for others than the owner, what the configuration would take for a variable of its environment: a client
/// could have it sent to any address.
pub(super) fn refuse_variables(answers: &Answers, role: UserRole) -> Result<()> {
    let names_variable = |value: &Value| value.to_string().contains("${");
    if role < UserRole::Owner && answers.values().any(names_variable) {
        return Err(Error::invalid_request(
            "the environment is read by the configuration file alone",
        ));
    }
    Ok(())
}

/// What a tool may do by its own right.
fn right(config: &Config, tool: &str) -> Permission {
    let own = config.tool_permissions.get(tool);
    own.copied().unwrap_or(config.permission_mode)
}

impl Service {
    /// Adds a tool, or tries it.
    pub(super) fn add_tool(&self, new: AddTool, by: &Identity) -> Result<Value> {
        let entry = Entry::named(&new.name)?;
        let mut answers = new.answers;
        entry.complete(&mut answers)?;
        refuse_variables(&answers, by.role)?;
        self.settings.check_is_set("tls.ca_file")?;
        let config = self.settings.current();
        let choices = entry.choices(&answers, Trust::new(config.tls.ca_file.as_deref()))?;
        if let Some(first) = choices.first() {
            answers.extend(first.answers.clone());
            refuse_variables(&answers, by.role)?;
        }
        let addition = entry.filled(new.alias.as_deref(), answers)?;
        let (_, planned) = self
            .settings
            .rewrite(!new.test, |members| addition.add_to(members))?;
        if new.test {
            // A program must not stop those who wait for their answers on the page.
            let tried = if entry.starts_program() && by.role < UserRole::Owner {
                Ok("It starts when it is added; Status shows the result.".to_owned())
            } else {
                addition.try_out(&planned, &self.data_dir)
            };
            let works = tried.is_ok();
            let message = tried.unwrap_or_else(|problem| problem);
            return Ok(json!({ "works": works, "message": message, "choices": choices }));
        }
        log::info!("tool {}: added by {}", addition.alias, by.user);
        self.config_changed(&CHANGED.map(str::to_owned));
        let config = self.settings.current();
        let accounts = config.webhook_accounts().filter(|account| {
            let offers = |tool: &String| config.offers(account, tool);
            account.permission_mode != Some(Permission::Deny) && addition.rights.keys().any(offers)
        });
        let accounts: Vec<&str> = accounts.map(|account| account.name.as_str()).collect();
        Ok(json!({
            "name": addition.alias,
            "tool_permissions": addition.rights,
            "choices": choices,
            "has_servers": addition.has_servers(),
            "outside": addition.outside(),
            "accounts": accounts,
        }))
    }

    /// Removes a tool, an MCP server, or what was added under one name.
    pub(super) fn remove_tool(&self, name: &str, by: &str) -> Result<Value> {
        let (removed, _) = self
            .settings
            .rewrite(true, |members| catalogue::remove(members, name))?;
        log::info!("tool {name}: removed by {by}");
        self.config_changed(&CHANGED.map(str::to_owned));
        Ok(json!(removed))
    }

    /// The tools of the household's own, and the MCP servers.
    pub(super) fn list_own_tools(&self) -> Result<Value> {
        self.settings.check_is_whole("tools")?;
        self.settings.check_is_whole("mcp_servers")?;
        let config = self.settings.current();
        let custom = config.tools.custom.iter().map(|tool| record::OwnTool {
            name: tool.name.clone(),
            kind: match tool.run {
                CustomRun::Command(_) => "program",
                CustomRun::Http(_) => "request",
            },
            right: right(&config, &tool.name).as_str().to_owned(),
        });
        let servers = || config.mcp_servers.iter();
        let of = |tool: &str| server_of(tool, servers().map(|server| server.name.as_str()));
        let of_servers = servers().map(|server| record::OwnTool {
            name: server.name.clone(),
            kind: if server.disabled {
                "MCP server, disabled"
            } else {
                "MCP server"
            },
            right: {
                let own = config.tool_permissions.keys();
                let own = own.filter(|tool| of(tool) == Some(&server.name)).count();
                let mode = config.permission_mode.as_str();
                match own {
                    0 => mode.to_owned(),
                    own => format!("{mode} (otherwise for {})", count(own as u64, "tool")),
                }
            },
        });
        Ok(views::records("tools", custom.chain(of_servers)))
    }
}
