//! What may follow each command, for the scripts of all shells.

use crate::cli::arguments::CommandOption;
use crate::cli::command::{Command, all};
use config::{PRESETS, documentation};

/// What a value is, as far as a shell can complete it.
pub enum Candidates {
    /// One of these words.
    Words(Vec<String>),
    Directory,
    File,
    /// Anything else.
    Free,
}

/// What the value or operand of this name may be.
pub fn value(name: &str) -> Candidates {
    let words =
        |words: &[&str]| Candidates::Words(words.iter().map(|&word| word.to_owned()).collect());
    match name {
        "DIR" => Candidates::Directory,
        "FILE" => Candidates::File,
        "ROLE" => words(&["viewer", "user", "admin"]),
        "MODE" => words(&["ask", "allow", "deny"]),
        "STATE" => words(&["pending", "held", "delivered", "dead"]),
        "PERIOD" => words(&["day", "month"]),
        "SHELL" => words(&["bash", "zsh", "fish"]),
        "PROVIDER" => Candidates::Words(PRESETS.iter().map(|one| one.name.to_owned()).collect()),
        // Keys with a variable part cannot be completed.
        "KEY" => Candidates::Words(
            documentation()
                .into_iter()
                .map(|setting| setting.key)
                .filter(|key| !key.contains(['[', 'N']))
                .collect(),
        ),
        _ => Candidates::Free,
    }
}

/// What may follow the words of a command.
pub struct Completion {
    /// How the command is called, with the program's name.
    pub path: String,
    pub members: &'static [Command],
    pub options: Vec<CommandOption>,
    /// What its first operand may be.
    pub operand: Candidates,
}

/// The program itself, then every command.
pub fn completions(table: &'static [Command]) -> Vec<Completion> {
    let top = Completion {
        path: "hearth".to_owned(),
        members: table,
        options: Vec::new(),
        operand: Candidates::Free,
    };
    let of_command = |(path, command): (String, &'static Command)| {
        let operand = command.operands().next().unwrap_or_default();
        Completion {
            path,
            members: command.members,
            options: command.options(),
            operand: value(operand.trim_matches(['[', ']', '.'])),
        }
    };
    let all = all(table).into_iter().map(of_command);
    std::iter::once(top).chain(all).collect()
}

/// The quoted paths of all commands, which a script compares the words with.
pub fn paths(table: &'static [Command], separator: &str) -> String {
    let all = all(table).into_iter();
    let quoted: Vec<String> = all.map(|(path, _)| format!("'{path}'")).collect();
    quoted.join(separator)
}

/// The first line of a help text, quoted for a POSIX shell.
pub fn described(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    format!("'{}'", line.replace('\'', "'\\''"))
}
