//! Finds a command in the table by the words that name it.

use super::{COMMANDS, Command};
use crate::cli::Failure;
use crate::cli::help::nearest;

/// What the first words of a command line name.
pub struct Found {
    pub command: &'static Command,
    /// How it is called, with the program's name.
    pub path: String,
    /// How many words that took.
    pub words: usize,
}

/// Finds the command that `words` begin with.
///
/// # Errors
/// A usage failure with the nearest known command.
pub fn find(words: &[&str]) -> Result<Found, Failure> {
    let mut level = COMMANDS;
    let mut path = String::from("hearth");
    for (place, word) in words.iter().enumerate() {
        let Some(command) = level.iter().find(|known| known.name == *word) else {
            let hint = match nearest(word, level.iter().map(|known| known.name)) {
                Some(near) => format!("did you mean `{path} {near}`?"),
                None => {
                    let names: Vec<&str> = level.iter().map(|known| known.name).collect();
                    format!("there are {}", names.join(", "))
                }
            };
            return Err(Failure::Usage {
                message: format!("there is no command `{path} {word}`; {hint}"),
                command: path,
            });
        };
        path = format!("{path} {word}");
        // A group goes on with the next word, unless that asks for its help.
        let goes_on = words
            .get(place + 1)
            .is_some_and(|next| !next.starts_with('-'));
        let members = command.action.members();
        if !goes_on || members.is_empty() {
            return Ok(Found {
                command,
                path,
                words: place + 1,
            });
        }
        level = members;
    }
    Err(Failure::Usage {
        message: "no command given".to_owned(),
        command: path,
    })
}

/// Every command with its path, each group before its members.
pub fn all() -> Vec<(String, &'static Command)> {
    fn collect(
        prefix: &str,
        level: &'static [Command],
        found: &mut Vec<(String, &'static Command)>,
    ) {
        for command in level {
            let path = format!("{prefix} {}", command.name);
            found.push((path.clone(), command));
            collect(&path, command.action.members(), found);
        }
    }
    let mut found = Vec::new();
    collect("hearth", COMMANDS, &mut found);
    found
}
