//! `hearth skill`: folders with instructions for the assistant. Works on the data
//! directory; a running server notices.

use std::path::PathBuf;

use serde_json::json;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::table::{ListView, truncated};
use crate::service::views;
use agent::skills::{Skill, Skills, add as install, remove as uninstall};
use base::measure::byte_count;

pub const COMMAND: Command = Command::new(
    "\
skill: Install folders of instructions for the assistant
A skill is a folder with a SKILL.md, in the format that other agents use. Its text is trusted like
the settings: read it before you install it. Works whether or not the server runs; a running one
uses it from the next message.",
)
.members(&[
    Command::new(
        "\
add DIR: Install the skill in a folder, or replace the one of the same name
DIR holds a SKILL.md that begins with name and description. The folder is copied.
--data-dir",
    )
    .run(add),
    Command::new("list: List the installed skills\n--json\n--data-dir").run(list),
    Command::new("remove NAME: Remove a skill\n--data-dir").run(remove),
]);

/// Longest description in the table; `--json` shows all of it.
const DESCRIPTION_CHARACTERS: usize = 80;

/// `hearth skill add DIR`
fn add(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let source = PathBuf::from(arguments.required(0));
    let directory = DataDirectory::of(arguments, context)?;
    directory.create()?;
    let installed = install(directory.path(), &source).map_err(CliError::failed)?;
    let Skill {
        name, description, ..
    } = &installed.skill;
    let done = match installed.was_there {
        true => "Replaced",
        false => "Installed",
    };
    context.print(format_args!("{done} {name}: {description}"))
}

/// `hearth skill list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let skills = Skills::load(directory.path());
    let view = ListView {
        columns: &["name", "size", "files", "description"],
        row: &|skill: &Skill| {
            vec![
                skill.name.clone(),
                byte_count(skill.bytes),
                (skill.files.len() + 1).to_string(),
                truncated(&skill.description, DESCRIPTION_CHARACTERS),
            ]
        },
        json: &|skill| json!(views::skill(skill)),
        empty: "There are no skills. `hearth skill add DIR` installs one.",
    };
    view.print(skills.all(), arguments, context)?;
    for problem in skills.problems() {
        context.note(format_args!("hearth: {problem}"))?;
    }
    Ok(())
}

/// `hearth skill remove NAME`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let directory = DataDirectory::of(arguments, context)?;
    uninstall(directory.path(), name).map_err(CliError::failed)?;
    context.print(format_args!("Removed {name}."))
}
