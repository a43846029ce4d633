//! `hearth import`: takes in Hearth's own export and those of ChatGPT and Claude.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::Door;
use super::progress::ProgressLine;
use super::row::text;
use super::table;
use base::measure::count;
use base::url::percent_encode;

pub const COMMAND: Command = Command::new(
    "\
import FILE: Import an export of Hearth, or conversations from ChatGPT and Claude
FILE was written by `hearth export`, or is the file conversations.json of an account export of
ChatGPT or Claude; - is standard input. What exists already is skipped, so the same file can be
imported again. Works whether or not the server runs. Hearth's own export says who owns
each thing and who sees it. What belongs to nobody here becomes private to whoever has been an
admin longest; with --owner, all of it becomes private to that user.
--owner NAME  The user who gets all of it
--json",
)
.ask(import);

/// `hearth import FILE`
fn import(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let path = PathBuf::from(arguments.required(0));
    let unread =
        |error: io::Error| CliError::failed(format!("{} cannot be read: {error}", path.display()));
    let source = if path.as_os_str() == "-" {
        Path::new("/dev/stdin")
    } else {
        &path
    };
    let mut file = File::open(source).map_err(unread)?;
    let about = file.metadata().map_err(unread)?;
    if about.is_dir() {
        return Err(CliError::failed(format!(
            "{}: it is a directory; import the file conversations.json in it",
            path.display()
        )));
    }
    let target = match arguments.text("owner")? {
        Some(owner) => format!(
            "/import?owner={}",
            percent_encode(owner, |byte| byte.is_ascii_alphanumeric())
        ),
        None => "/import".to_owned(),
    };
    let line = ProgressLine::new();
    let mut sent = 0;
    // Of a pipe nobody knows.
    let bytes = about.is_file().then_some(about.len());
    let imported = door.post(&target, bytes, &mut |piece| {
        if !line.note("importing", sent, bytes) {
            return Err(CliError::failed("stopped before the end"));
        }
        let count = file.read(piece).map_err(unread)?;
        sent += count as u64;
        Ok(count)
    });
    drop(line);
    let report = imported
        .map_err(|error| CliError::failed(format!("{}: {}", path.display(), error.message())))?;
    print(arguments, context, &report)
}

fn print(arguments: &Arguments, context: &mut CliContext, report: &Value) -> CliResult {
    if arguments.has("json") {
        return table::print_json(context, report);
    }
    let number = |member: &str| report[member].as_u64().unwrap_or_default();
    context.print(format_args!(
        "Imported {} in {}; {} already there.",
        count(number("messages"), "message"),
        count(number("imported"), "conversation"),
        match number("already_there") {
            1 => "1 was".to_owned(),
            known => format!("{known} were"),
        }
    ))?;
    for (member, one) in [
        ("memories", "memory"),
        ("schedules", "schedule"),
        ("calendars", "calendar"),
        ("items", "list item"),
    ] {
        if number(member) > 0 {
            context.print(format_args!("Imported {}.", count(number(member), one)))?;
        }
    }
    let names = report["unknown_names"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    if !names.is_empty() {
        context.print(format_args!(
            "Nobody here is called {}: what was theirs is private to {} now.",
            names.join(", "),
            text(&report["owner"])
        ))?;
    }
    for (reason, times) in report["reasons"].as_object().into_iter().flatten() {
        context.print(format_args!("Skipped {times}: {reason}"))?;
    }
    Ok(())
}
