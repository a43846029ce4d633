//! `hearth skill`: folders with instructions for the assistant.

use std::path;

use serde_json::json;

use super::command::Command;
use super::context::CliError;
use super::row::{Shown, text};
use super::table::truncated;
use base::measure::byte_count;
use base::visible::one_line;

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
DIR holds a SKILL.md that begins with name and description. The folder is copied; a running server
must be able to read it.",
    )
    .row(
        |arguments| {
            let directory = path::absolute(arguments.required(0)).map_err(CliError::failed)?;
            Ok(json!({ "type": "add_skill", "directory": directory.to_str() }))
        },
        Shown::Line(|data| {
            let done = if data["was_there"] == true {
                "Replaced"
            } else {
                "Installed"
            };
            let (name, description) = (text(&data["name"]), text(&data["description"]));
            format!("{done} {name}: {description}")
        }),
    ),
    Command::new("list: List the installed skills\n--json").ask(|door, arguments, context| {
        let data = door.ask(&json!({ "type": "list_skills" }))?;
        SKILLS.print(&data, arguments, context)?;
        for problem in data["problems"].as_array().into_iter().flatten() {
            context.note(one_line(&format!("hearth: {}", text(problem))))?;
        }
        Ok(())
    }),
    Command::new("remove NAME: Remove a skill").row(
        |arguments| Ok(json!({ "type": "remove_skill", "name": arguments.required(0) })),
        Shown::Line(|data| format!("Removed {}.", text(&data["name"]))),
    ),
]);

/// Longest description in the table; `--json` shows all of it.
const DESCRIPTION_CHARACTERS: usize = 80;

const SKILLS: Shown = Shown::List {
    member: "skills",
    columns: &[
        ("name", |skill| text(&skill["name"])),
        ("size", |skill| {
            byte_count(skill["bytes"].as_u64().unwrap_or_default())
        }),
        ("files", |skill| {
            let files = skill["files"].as_array().map_or(0, Vec::len);
            (files + 1).to_string()
        }),
        ("description", |skill| {
            truncated(&text(&skill["description"]), DESCRIPTION_CHARACTERS)
        }),
    ],
    empty: "There are no skills. `hearth skill add DIR` installs one.",
};
