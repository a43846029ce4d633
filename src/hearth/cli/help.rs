//! Help texts, made from the table of commands, and suggestions for typos.

use std::fmt::Write;

use super::Failure;
use super::commands::{self, COMMANDS, Command, Many};
use crate::handbook::{TOPICS, topic};

/// Width of the column before a description.
const COLUMN: usize = 26;

/// What `hearth --help` prints.
pub fn overview() -> String {
    let mut text = String::from(
        "Hearth is an AI assistant server for the home: one small binary, one SQLite file.\n\n\
         Usage: hearth COMMAND [OPTION...]\n\nCommands:\n",
    );
    for command in COMMANDS {
        line(&mut text, command.name, command.summary);
    }
    text.push_str("\nTopics of the handbook (`hearth help TOPIC`):\n");
    for topic in TOPICS {
        line(&mut text, topic.name, &topic.summary());
    }
    text.push_str(
        "\nOptions:\n\
         \x20 -h, --help              Print this, or the help of a command\n\
         \x20 -V, --version           Print the version\n\n\
         To begin, run `hearth serve`. For more, run `hearth help COMMAND` or `hearth help TOPIC`.\n",
    );
    text
}

/// What `hearth help WORD...` prints: a page of the handbook, the help of a
/// command, or both where they share their name.
///
/// Errors: a usage failure where the words name neither.
pub fn of(words: &[&str]) -> Result<String, Failure> {
    let page = match words {
        [name] => topic(name),
        _ => None,
    };
    match (page, commands::find(words)) {
        (Some(page), Ok(found)) => Ok(format!(
            "{}\n{}",
            page.text(),
            of_command(&found.path, found.command)
        )),
        (Some(page), Err(_)) => Ok(page.text()),
        (None, Ok(found)) => Ok(of_command(&found.path, found.command)),
        (None, Err(error)) => Err(match words {
            [word] => nearest(word, TOPICS.iter().map(|topic| topic.name)).map_or(error, |near| {
                Failure::Usage {
                    message: format!(
                        "there is no command or topic `{word}`; did you mean `hearth help {near}`?"
                    ),
                    command: "hearth".to_owned(),
                }
            }),
            _ => error,
        }),
    }
}

/// How a command is called, on one line.
pub fn usage(path: &str, command: &Command) -> String {
    let mut text = path.to_owned();
    if command.action.run().is_none() {
        text.push_str(" COMMAND");
    }
    for operand in command.operands {
        let name = operand.name;
        let _ = match operand.many {
            Many::One => write!(text, " {name}"),
            Many::ZeroOrOne => write!(text, " [{name}]"),
            Many::AnyNumber => write!(text, " [{name}...]"),
        };
    }
    if !command.options.is_empty() {
        text.push_str(" [OPTION...]");
    }
    text
}

/// The help of one command; `path` is how it is called, `hearth user add`.
pub fn of_command(path: &str, command: &Command) -> String {
    let usage = usage(path, command);
    let mut text = format!("{}.\n\nUsage: {usage}\n", command.summary);
    if command.action.run().is_some() && !command.action.members().is_empty() {
        let _ = writeln!(text, "       {path} COMMAND");
    }
    if !command.details.is_empty() {
        let _ = write!(text, "\n{}\n", command.details);
    }
    let members = command.action.members();
    if !members.is_empty() {
        text.push_str("\nCommands:\n");
        for member in members {
            line(&mut text, member.name, member.summary);
        }
    }
    text.push_str("\nOptions:\n");
    for setting in command.options {
        let term = match setting.value {
            Some(value) => format!("--{} {value}", setting.name),
            None => format!("--{}", setting.name),
        };
        line(&mut text, &term, setting.help);
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

/// The known word that was most likely meant, if one is near enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, candidate)| distance <= candidate.len().max(3) / 3)
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which exchanging two neighbours counts as one edit
/// (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        let known = ["serve", "chat", "user", "token", "config", "deliveries"];
        for (word, near) in [
            ("sevre", Some("serve")),
            ("server", Some("serve")),
            ("cofnig", Some("config")),
            ("delivery", Some("deliveries")),
            ("tokens", Some("token")),
            ("chta", Some("chat")),
            ("teapot", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), near, "{word:?}");
        }
    }

    #[test]
    fn a_long_term_stands_on_a_line_of_its_own() {
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
