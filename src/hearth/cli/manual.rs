//! `hearth man`: the manual page in man(7)'s macros, generated from the same table
//! as the help texts.

use std::fmt::Write;

use super::COMMANDS;
use super::arguments::Arguments;
use super::command::{self, Command};
use super::context::{CliContext, CliResult};
use super::help::{self, version};

pub const COMMAND: Command = Command::new(
    "\
man: Print the manual page
`hearth man | man -l -` shows it, and `make install` installs it.",
)
.run(run);

/// Environment variables that Hearth reads, apart from the API keys of model providers.
const VARIABLES: &str = "\
HEARTH_DATA_DIR: The data directory, when --data-dir is not given.
HEARTH_LOG: The log level: error, warn, info, debug or trace. It takes precedence over the setting log_level.
HEARTH_ADMIN_PASSWORD: The password of the user admin, used at the first start.
HEARTH_TOKEN: The token that `hearth chat` signs in with.
NOTIFY_SOCKET, WATCHDOG_USEC: Where the server reports to a service manager that it is ready and alive (sd_notify(3)).";

/// Files of the data directory.
const FILES: &str = "\
config.json: The settings, which `hearth config keys` explains.
hearth.db: Conversations, memories, users, turns and callbacks (SQLite).
hearth.log: The log. Its older parts are hearth.log.1 to hearth.log.4.
hearth.lock: Locked by the running server.";

/// `hearth man`
fn run(_: &Arguments, context: &mut CliContext) -> CliResult {
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
         by webhook. It is one program with one SQLite file. To begin, run `hearth serve`.",
    );
    text.push_str(".SH COMMANDS\n");
    for (path, command) in command::all(COMMANDS) {
        let _ = writeln!(text, ".SS {}", escaped(&help::usage(&path, command)));
        paragraph(&mut text, &format!("{}.", command.summary()));
        let parts = command.details().split("\n\n");
        for part in parts.filter(|part| !part.is_empty()) {
            text.push_str(".PP\n");
            paragraph(&mut text, part);
        }
        if command.run.is_some() {
            for option in command.options() {
                let _ = writeln!(text, ".TP\n.B {}", escaped(&option.term()));
                paragraph(&mut text, &option.help);
            }
        }
    }
    section(&mut text, "ENVIRONMENT", VARIABLES);
    section(&mut text, "FILES", FILES);
    text.push_str(".SH EXIT STATUS\n");
    paragraph(
        &mut text,
        "0 on success, 1 on failure, 2 when the command line is wrong.",
    );
    text
}

fn section(text: &mut String, title: &str, entries: &str) {
    let _ = writeln!(text, ".SH {title}");
    for (term, description) in entries.lines().filter_map(|line| line.split_once(": ")) {
        let _ = writeln!(text, ".TP\n.B {}", escaped(term));
        paragraph(text, description);
    }
}

/// Appends running text line by line. roff would take a line that begins with a
/// dot or a quote for a request.
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

/// Escapes the backslash, and the hyphen so that it can be copied as a minus.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{self, Stdio};

    use super::*;

    #[test]
    fn the_page_names_every_command_and_option() {
        let page = page();
        for (path, command) in command::all(COMMANDS) {
            let heading = format!(".SS {}", escaped(&path));
            assert!(page.contains(&heading), "{heading}");
            for option in command.options() {
                let option = format!("\\-\\-{}", escaped(option.name));
                assert!(page.contains(&option), "{path} {option}");
            }
        }
        assert!(page.is_ascii(), "not every roff reads UTF-8");
    }

    #[test]
    fn groff_accepts_the_page() {
        let started = process::Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-rCHECKSTYLE=3", "-z"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = started else {
            base::testing::skipped("groff is not installed");
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
    fn special_characters_of_roff_are_escaped() {
        let mut text = String::new();
        paragraph(&mut text, ".first\n'second\n  a-b\\c");
        assert_eq!(text, "\\&.first\n\\&'second\na\\-b\\ec\n");
    }
}
