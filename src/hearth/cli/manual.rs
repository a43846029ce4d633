//! `hearth man`: the manual page, in man(7)'s macros, made from the same table
//! as the help texts.

use std::fmt::Write;

use super::arguments::Arguments;
use super::commands;
use super::{Context, Outcome, help, version};

/// Variables that Hearth reads, beside the keys of model providers.
const VARIABLES: [(&str, &str); 5] = [
    (
        "HEARTH_DATA_DIR",
        "The data directory, where --data-dir does not name one.",
    ),
    (
        "HEARTH_LOG",
        "What the server logs: error, warn, info, debug or trace. It wins over the setting log_level.",
    ),
    (
        "HEARTH_ADMIN_PASSWORD",
        "The password of the user admin, for the first start.",
    ),
    (
        "HEARTH_TOKEN",
        "The token that `hearth chat` signs in with.",
    ),
    (
        "NOTIFY_SOCKET, WATCHDOG_USEC",
        "Where the server tells a service manager that it is ready and alive (sd_notify(3)).",
    ),
];

/// Files of the data directory.
const FILES: [(&str, &str); 4] = [
    (
        "config.json",
        "The settings; `hearth config keys` explains them.",
    ),
    (
        "hearth.db",
        "Conversations, memories, users, turns and callbacks (SQLite).",
    ),
    (
        "hearth.log",
        "The log; hearth.log.1 to hearth.log.4 are its older parts.",
    ),
    ("hearth.lock", "Held by the server that runs."),
];

/// `hearth man`
pub fn run(_arguments: &Arguments, context: &mut Context) -> Outcome {
    context.output.write_all(page().as_bytes())?;
    Ok(())
}

/// The whole page.
fn page() -> String {
    let mut text = format!(
        ".TH HEARTH 1 \"\" \"hearth {}\" \"User Commands\"\n.SH NAME\nhearth \\- {}\n\
         .SH SYNOPSIS\n.B hearth\n.I COMMAND\n[\\fIOPTION\\fR...]\n.SH DESCRIPTION\n",
        escaped(&version()),
        "an AI assistant server for the home",
    );
    paragraph(
        &mut text,
        "Hearth answers people in a browser, in a terminal and over WebSocket, and other systems \
         by webhook. It is one program with one SQLite file. `hearth serve` is where to begin.",
    );
    text.push_str(".SH COMMANDS\n");
    for (path, command) in commands::all() {
        let _ = writeln!(text, ".SS {}", escaped(&help::usage(&path, command)));
        paragraph(&mut text, &format!("{}.", command.summary));
        for part in command
            .details
            .split("\n\n")
            .filter(|part| !part.is_empty())
        {
            text.push_str(".PP\n");
            paragraph(&mut text, part);
        }
        if command.action.run().is_some() {
            for setting in command.options {
                let _ = match setting.value {
                    Some(value) => writeln!(
                        text,
                        ".TP\n\\fB\\-\\-{}\\fR \\fI{}\\fR",
                        escaped(setting.name),
                        escaped(value)
                    ),
                    None => writeln!(text, ".TP\n\\fB\\-\\-{}\\fR", escaped(setting.name)),
                };
                paragraph(&mut text, setting.help);
            }
        }
    }
    section(&mut text, "ENVIRONMENT", &VARIABLES);
    section(&mut text, "FILES", &FILES);
    text.push_str(".SH EXIT STATUS\n");
    paragraph(
        &mut text,
        "0 when it did what it was asked, 1 when it failed, 2 when the command line is wrong.",
    );
    text
}

fn section(text: &mut String, title: &str, entries: &[(&str, &str)]) {
    let _ = writeln!(text, ".SH {title}");
    for (term, description) in entries {
        let _ = writeln!(text, ".TP\n.B {}", escaped(term));
        paragraph(text, description);
    }
}

/// Appends running text, a line of it for each of ours: a line that begins with
/// a dot or a quote would be a request.
fn paragraph(text: &mut String, words: &str) {
    for line in words.lines() {
        let line = escaped(line.trim());
        if line.starts_with(['.', '\'']) {
            text.push_str("\\&");
        }
        text.push_str(&line);
        text.push('\n');
    }
}

/// What roff would take for its own: the backslash, and the hyphen that is to
/// be copied as a minus.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_page_names_every_command_and_option() {
        let page = page();
        for (path, command) in commands::all() {
            let heading = format!(".SS {}", escaped(&path));
            assert!(page.contains(&heading), "{heading}");
            for setting in command.options {
                let option = format!("\\-\\-{}", escaped(setting.name));
                assert!(page.contains(&option), "{path} {option}");
            }
        }
        assert!(page.is_ascii(), "not every roff reads UTF-8");
    }

    #[test]
    fn groff_has_nothing_to_complain_of() {
        let started = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-rCHECKSTYLE=3", "-z"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = started else {
            eprintln!("left out: groff is not installed");
            return;
        };
        let mut input = groff.stdin.take().unwrap();
        input.write_all(page().as_bytes()).unwrap();
        drop(input);
        let output = groff.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{errors}");
    }

    #[test]
    fn what_roff_would_take_for_its_own_is_escaped() {
        let mut text = String::new();
        paragraph(&mut text, ".first\n'second\n  a-b\\c");
        assert_eq!(text, "\\&.first\n\\&'second\na\\-b\\ec\n");
    }
}
