//! Help texts, generated from the table of commands.

use std::fmt::Write;

use super::command::{Command, find};
use super::context::CliError;
use crate::handbook::{TOPICS, topic};
use base::nearest::nearest;

/// Width of the column before a description.
const COLUMN: usize = 26;

/// The version, with the commit that it was built from where that is known.
pub fn version() -> String {
    match option_env!("HEARTH_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// What `hearth --help` prints.
pub fn overview(table: &[Command]) -> String {
    let mut text = String::from(
        "Hearth is an AI assistant server for the home: one small binary, one SQLite file.\n\n\
         Usage: hearth COMMAND [OPTION...]\n\nCommands:\n",
    );
    for command in table {
        line(&mut text, command.name(), command.summary());
    }
    text.push_str("\nTopics of the handbook (`hearth help TOPIC`):\n");
    for topic in TOPICS {
        line(&mut text, topic.name, &topic.summary());
    }
    text.push_str(
        "\nOptions:\n\
         \x20 -h, --help              Print this help, or that of a command\n\
         \x20 -V, --version           Print the version\n\n\
         To begin, run `hearth serve`. For more, run `hearth help COMMAND` or `hearth help TOPIC`.\n",
    );
    text
}

/// What `hearth help WORD...` prints: a page of the handbook, its headings in bold
/// type if `bold`, the help of a command, or both where they share a name.
///
/// # Errors
///
/// A usage failure where the words name neither.
pub fn of_words(table: &'static [Command], words: &[&str], bold: bool) -> Result<String, CliError> {
    let page = match words {
        [name] => topic(name),
        _ => None,
    };
    match (page, find(table, words)) {
        (Some(page), Ok(found)) => {
            let help = of_command(&found.path, found.command);
            Ok(format!("{}\n{help}", page.text(bold)))
        }
        (Some(page), Err(_)) => Ok(page.text(bold)),
        (None, Ok(found)) => Ok(of_command(&found.path, found.command)),
        (None, Err(error)) => Err(match words {
            [word] => unknown(word, error),
            _ => error,
        }),
    }
}

/// The failure for a word that is neither a command, as `error` says, nor a topic.
fn unknown(word: &str, error: CliError) -> CliError {
    let topics = || TOPICS.iter().map(|topic| topic.name);
    let advice = match (nearest(word, topics()), &error) {
        (Some(near), _) => format!("did you mean `hearth help {near}`?"),
        (None, CliError::Usage { message, .. }) if message.contains("did you mean") => {
            return error;
        }
        _ => format!("the topics are {}", topics().collect::<Vec<_>>().join(", ")),
    };
    CliError::Usage {
        message: format!("unknown command or topic `{word}`; {advice}"),
        command: "hearth".to_owned(),
    }
}

/// How a command is called, on one line.
pub fn usage(path: &str, command: &Command) -> String {
    let mut text = path.to_owned();
    if command.run.is_none() {
        text.push_str(" COMMAND");
    }
    for operand in command.operands() {
        let _ = write!(text, " {operand}");
    }
    if !command.options().is_empty() {
        text.push_str(" [OPTION...]");
    }
    text
}

/// The help of one command; `path` is how it is called, `hearth user add`.
pub fn of_command(path: &str, command: &Command) -> String {
    let usage = usage(path, command);
    let mut text = format!("{}.\n\nUsage: {usage}\n", command.summary());
    if command.run.is_some() && !command.members.is_empty() {
        let _ = writeln!(text, "       {path} COMMAND");
    }
    if !command.details().is_empty() {
        let _ = write!(text, "\n{}\n", command.details());
    }
    if !command.members.is_empty() {
        text.push_str("\nCommands:\n");
        for member in command.members {
            line(&mut text, member.name(), member.summary());
        }
    }
    text.push_str("\nOptions:\n");
    for option in command.options() {
        line(&mut text, &option.term(), &option.help);
    }
    line(&mut text, "-h, --help", "Print this help");
    text
}

fn line(text: &mut String, term: &str, description: &str) {
    let width = COLUMN - 4;
    if term.len() > width {
        let _ = write!(text, "  {term}\n{:COLUMN$}", "");
    } else {
        let _ = write!(text, "  {term:width$}  ");
    }
    let indented = description.replace('\n', &format!("\n{:COLUMN$}", ""));
    text.push_str(&indented);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_term_has_its_own_line() {
        let mut text = String::new();
        line(&mut text, "--short", "one\ntwo");
        line(&mut text, "--a-very-long-option VALUE", "three");
        assert_eq!(
            text,
            "  --short                 one\n                          two\n  \
             --a-very-long-option VALUE\n                          three\n"
        );
    }
}
