//! Reading the instructions of a skill, and the files beside them.

use std::sync::Arc;

use serde_json::json;

use super::definition::{Arguments, Definition, Tool, ToolContext, required_text, text};
use super::files::Workspace;
use super::output::text_of;
use super::wording::{Approver, Intent};
use crate::skills::{FOLDER, MANIFEST, Skill, Skills, instructions};
use base::measure::byte_count;

/// Its name.
pub const READ_SKILL: &str = "read_skill";
/// Most bytes of a file that are read.
const MOST_READ: usize = 1024 * 1024;

/// Exists only where skills are installed.
pub(super) struct ReadSkill {
    definition: Definition,
    skills: Arc<Skills>,
}

impl ReadSkill {
    /// The tool for these skills.
    pub(super) fn new(skills: Arc<Skills>) -> ReadSkill {
        ReadSkill {
            definition: Definition::builtin(
                READ_SKILL,
                "Read the instructions of an installed skill, or a file that they name.",
                json!({
                    "name": {"type": "string", "description": "The skill"},
                    "file": {"type": "string", "description": "Such as references/form.md"},
                    "offset": {"type": "integer", "description": "Read on at this character"},
                }),
                &["name"],
            )
            .read_only(),
            skills,
        }
    }
}

impl Tool for ReadSkill {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
        let skill = text(arguments, "name")?;
        approver.intent("action.read_skill", &[("skill", skill)])
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        let name = required_text(arguments, "name")?;
        let mut skills = self.skills.all().iter();
        let Some(skill) = skills.find(|skill| skill.name == name) else {
            let names = self.skills.all().iter().map(|skill| skill.name.as_str());
            let names: Vec<&str> = names.collect();
            return Err(format!(
                "there is no skill {name:?}; there are {}",
                names.join(", ")
            ));
        };
        let folder = context.data_dir.join(FOLDER).join(&skill.name);
        let files = Workspace::new(Some(&folder), context.data_dir);
        let file = text(arguments, "file").filter(|file| *file != MANIFEST);
        let content = files.read(file.unwrap_or(MANIFEST), MOST_READ);
        let content = content.map_err(|reason| match file {
            Some(file) => format!(
                "{reason}; {file:?} is below the skill's folder{}",
                listed(skill)
            ),
            None => reason,
        })?;
        let size = content.size;
        let read = text_of(content.bytes)
            .ok_or_else(|| format!("the file is binary, {}", byte_count(size)))?;
        if file.is_some() {
            return context.page(&read, arguments);
        }
        let body = instructions(&read)?;
        let shown = context.page(body.trim(), arguments)?;
        match arguments.contains_key("offset") {
            true => Ok(shown),
            false => Ok(format!(
                "{}{shown}",
                about(skill, &folder.to_string_lossy(), context)
            )),
        }
    }
}

/// What stands before the instructions: which files there are, and whether scripts run.
fn about(skill: &Skill, folder: &str, context: &ToolContext<'_>) -> String {
    if skill.files.is_empty() {
        return String::new();
    }
    let scripts = match context.config.tools.run_command.enabled {
        true => format!("Run its scripts with run_command; they are in {folder}."),
        false => {
            "Scripts cannot run here, because run_command is off: do what you can without, and \
                  say what you could not do."
                .to_owned()
        }
    };
    format!("[Files of this skill{}. {scripts}]\n\n", listed(skill))
}

fn listed(skill: &Skill) -> String {
    const MOST: usize = 50;
    let shown: Vec<&str> = skill.files.iter().take(MOST).map(String::as_str).collect();
    match skill.files.len() {
        0 => ", which has no other files".to_owned(),
        count if count > MOST => format!(": {}, and {} more", shown.join(", "), count - MOST),
        _ => format!(": {}", shown.join(", ")),
    }
}
