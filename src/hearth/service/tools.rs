//! Tools of the catalogue, as the page adds and removes them.

use serde_json::{Value, json};

use super::Service;
use crate::catalogue::{self, Answers, Entry};
use base::error::{Error, Result};
use net::tls::Trust;
use protocol::command::AddTool;
use protocol::record;

/// What a tool changes in the configuration.
const CHANGED: [&str; 5] = [
    "tool_permissions",
    "tools",
    "mcp_servers",
    "people",
    "channels",
];

/// What can be added, and what each asks for.
pub(super) fn list_available_tools() -> Value {
    let entry = |entry: &Entry| {
        let field = |field: catalogue::Field<'_>| {
            Some(record::CatalogueField {
                name: field.name.to_owned(),
                question: field.question?.to_owned(),
                default: field.default.map(str::to_owned),
                is_secret: field.is_secret,
                is_optional: field.is_optional,
            })
        };
        record::CatalogueEntry {
            name: entry.name.to_owned(),
            about: entry.about().to_owned(),
            steps: entry.steps().map(str::to_owned),
            fields: entry.fields().filter_map(field).collect(),
        }
    };
    json!({ "tools": Entry::all().iter().map(entry).collect::<Vec<_>>() })
}

/// Refuses what the configuration would take for a variable of its environment: a client
/// could have it sent to any address.
fn refuse_variables(answers: &Answers) -> Result<()> {
    let names_variable = |value: &Value| value.to_string().contains("${");
    match answers.values().any(names_variable) {
        true => Err(Error::invalid_request(
            "the environment is read by the configuration file alone",
        )),
        false => Ok(()),
    }
}

impl Service {
    /// Adds a tool, or tries it.
    pub(super) fn add_tool(&self, new: AddTool, by: &str) -> Result<Value> {
        let entry = Entry::named(&new.name)?;
        let mut answers = new.answers;
        entry.complete(&mut answers)?;
        refuse_variables(&answers)?;
        let config = self.settings.current();
        let mut choices = entry.choices(&answers, Trust::new(config.tls.ca_file.as_deref()))?;
        let found: Vec<_> = choices
            .iter()
            .map(|one| record::Choice {
                label: one.label.clone(),
                answers: one.values.clone(),
            })
            .collect();
        if !choices.is_empty() {
            answers.extend(choices.swap_remove(0).values);
            refuse_variables(&answers)?;
        }
        let addition = entry.filled(new.alias.as_deref(), answers)?;
        let (_, planned) = self
            .settings
            .rewrite(false, |members| addition.add_to(members))?;
        if new.test {
            let tried = match entry.starts_program() {
                true => Ok("It starts when it is added; Status says what came of it.".to_owned()),
                false => addition.try_out(&planned, &self.data_dir),
            };
            let works = tried.is_ok();
            let message = tried.unwrap_or_else(|problem| problem);
            return Ok(json!({ "works": works, "message": message, "choices": found }));
        }
        self.settings
            .rewrite(true, |members| addition.add_to(members))?;
        log::info!("tool {}: added by {by}", addition.alias);
        self.config_changed(&CHANGED.map(str::to_owned));
        let mut rights = addition.rights.clone();
        if addition.outside().is_some() {
            rights.values_mut().for_each(|right| *right = "ask".into());
        }
        Ok(json!({ "name": addition.alias, "tool_permissions": rights }))
    }

    /// Removes a tool, an MCP server, or what was added under one name.
    pub(super) fn remove_tool(&self, name: &str, by: &str) -> Result<Value> {
        let (removed, _) = self
            .settings
            .rewrite(true, |members| catalogue::remove(members, name))?;
        log::info!("tool {name}: removed by {by}");
        self.config_changed(&CHANGED.map(str::to_owned));
        Ok(json!({ "tools": removed.tools, "servers": removed.servers }))
    }
}
