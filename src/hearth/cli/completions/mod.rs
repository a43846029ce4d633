//! `hearth completions`: scripts that complete the command line in a shell,
//! made from the table of commands.
//!
//! Each script walks the words that are typed already to the command that they
//! name, and offers what may follow it.

mod bash;
mod fish;
mod zsh;

#[cfg(test)]
mod tests;

use super::arguments::Arguments;
use super::commands::{self, COMMANDS, Command, Setting};
use super::{Context, Outcome};
use config::{PRESETS, documentation};

/// Makes a script.
type Script = fn() -> String;

/// The shells, and what makes their scripts.
const SHELLS: [(&str, Script); 3] = [
    ("bash", bash::script),
    ("zsh", zsh::script),
    ("fish", fish::script),
];

/// `hearth completions SHELL`
pub fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let shell = arguments.required(0);
    let Some((_, script)) = SHELLS.iter().find(|(name, _)| *name == shell) else {
        return Err(arguments.usage(format!("SHELL must be bash, zsh or fish, not {shell:?}")));
    };
    context.output.write_all(script().as_bytes())?;
    Ok(())
}

/// What a value is, as far as a shell can complete it.
enum Value {
    /// One of these words.
    Words(Vec<String>),
    Directory,
    File,
    /// Anything else.
    Free,
}

/// What stands for a value of this name in the table.
fn value(name: &str) -> Value {
    let words = |words: &[&str]| Value::Words(words.iter().map(|&word| word.to_owned()).collect());
    match name {
        "DIR" => Value::Directory,
        "FILE" => Value::File,
        "ROLE" => words(&["viewer", "user", "admin"]),
        "MODE" => words(&["ask", "allow", "deny"]),
        "STATE" => words(&["pending", "held", "delivered", "dead"]),
        "PERIOD" => words(&["day", "month"]),
        "SHELL" => Value::Words(SHELLS.map(|(name, _)| name.to_owned()).to_vec()),
        "PROVIDER" => Value::Words(PRESETS.iter().map(|one| one.name.to_owned()).collect()),
        // Keys with a free part cannot be taken as they are.
        "KEY" => Value::Words(
            documentation()
                .into_iter()
                .map(|setting| setting.key)
                .filter(|key| !key.contains(['[', 'N']))
                .collect(),
        ),
        _ => Value::Free,
    }
}

/// What may follow the words of a command.
struct Place {
    /// How the command is called, with the program's name.
    path: String,
    /// Commands that may follow, with their summaries.
    members: &'static [Command],
    options: &'static [Setting],
    /// Words that may stand for its first operand.
    operand: Value,
}

/// The program itself, then every command.
fn places() -> Vec<Place> {
    let top = Place {
        path: "hearth".to_owned(),
        members: COMMANDS,
        options: &[],
        operand: Value::Free,
    };
    let place = |(path, command): (String, &'static Command)| Place {
        path,
        members: command.action.members(),
        options: command.options,
        operand: match command.operands.first() {
            Some(operand) => value(operand.name),
            None => Value::Free,
        },
    };
    let all = commands::all().into_iter().map(place);
    std::iter::once(top).chain(all).collect()
}

/// The paths of all commands, quoted: what a script compares the words with.
fn paths(separator: &str) -> String {
    let all = commands::all().into_iter();
    let quoted: Vec<String> = all.map(|(path, _)| format!("'{path}'")).collect();
    quoted.join(separator)
}

/// The first line of a help text, as a word of a shell.
fn described(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    format!("'{}'", line.replace('\'', "'\\''"))
}
