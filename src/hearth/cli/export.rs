//! `hearth export`: what the household has as JSON Lines, which `hearth import` reads, or as
//! Markdown for people.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::Door;
use super::progress::ProgressLine;
use super::terminal::VisibleWriter;
use base::files;
use base::ids::ConversationId;
use base::measure::count;
use serde_json::{Value, json};

pub const COMMAND: Command = Command::new(
    "\
export: Write conversations, memories and all other data to a file
JSON Lines can be imported again, with owners, audiences, versions and files; Markdown is for
reading. The file also holds what is private to people: keep it as safe as the data directory.
--conversation ID  Export this conversation
--all              Export everything of everybody, what is private too:
                   conversations, memories, schedules and lists
--format FORMAT    jsonl (the default) or markdown
--output FILE      Write to this file (default: standard output)
--force            Replace FILE if it exists",
)
.ask(run);

/// Parts after which an export over the network pauses before each, for
/// `limits.commands_per_second`.
pub const UNPAUSED: u64 = 50;
const PAUSE: Duration = Duration::from_millis(25);
/// The suffix of a file that is not complete yet.
const PARTIAL: &str = ".partial";

/// `hearth export`
fn run(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let format = arguments.choice("format", &["jsonl", "markdown"])?;
    let one: Option<ConversationId> =
        arguments.value("conversation", "the id of a conversation")?;
    if one.is_some() == arguments.has("all") {
        return Err(arguments.usage("give either --conversation ID or --all"));
    }
    if let Some(path) = output(arguments) {
        door.directory()?.check_output(path)?;
    }
    let mut request = json!({ "type": "export", "format": format.unwrap_or("jsonl") });
    match one {
        Some(id) => request["conversation_id"] = json!(id),
        None => request["all"] = json!(true),
    }
    let parts = Parts {
        request,
        unpaused: u64::MAX,
        ask: &mut |request| door.ask(request),
    };
    parts.write(arguments, context)
}

/// The file to write; none for standard output.
fn output(arguments: &Arguments) -> Option<&Path> {
    let path = arguments.raw("output").filter(|path| *path != "-");
    path.map(Path::new)
}

/// Reads an export part by part.
pub struct Parts<'a> {
    /// Whose answers have them.
    pub request: Value,
    /// Parts that are read without a pause.
    pub unpaused: u64,
    pub ask: &'a mut dyn FnMut(&Value) -> Result<Value, CliError>,
}

impl Parts<'_> {
    /// Writes them to the file that `--output` names, or to standard output.
    ///
    /// # Errors
    ///
    /// Those of the request; the file exists and is not to be replaced, or cannot be written.
    pub fn write(self, arguments: &Arguments, context: &mut CliContext) -> CliResult {
        let Some(path) = output(arguments) else {
            let mut writer = BufWriter::new(&mut *context.output);
            if context.output_is_terminal {
                self.copy(&mut VisibleWriter(&mut writer), CliError::from)?;
            } else {
                self.copy(&mut writer, CliError::from)?;
            }
            return Ok(());
        };
        let unwritten = |error: io::Error| unwritten(path, &error);
        match fs::symlink_metadata(path) {
            Ok(_) if !arguments.has("force") => {
                return Err(unwritten(io::ErrorKind::AlreadyExists.into()));
            }
            // Renaming the export over a device or a FIFO would remove it, or a link to one.
            Ok(_) if fs::metadata(path).is_ok_and(|about| !about.is_file()) => {
                return Err(CliError::failed(format!(
                    "{} is no regular file and is not replaced; choose another name",
                    path.display()
                )));
            }
            _ => {}
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(PARTIAL);
        let partial = PathBuf::from(partial);
        // What a killed export left may be readable by others, or be a link.
        let _ = fs::remove_file(&partial);
        let file = files::create(&partial).map_err(|error| self::unwritten(&partial, &error))?;
        let mut writer = BufWriter::new(file);
        let written = self.copy(&mut writer, unwritten).and_then(|counts| {
            let synced = writer.get_ref().sync_all();
            let renamed = synced.and_then(|()| fs::rename(&partial, path));
            renamed.map_err(unwritten).map(|()| counts)
        });
        if written.is_err() {
            // An error of the cleanup would hide the reason.
            let _ = fs::remove_file(&partial);
        }
        let (conversations, messages) = written?;
        context.print(format_args!(
            "Exported {} in {} to {}.",
            count(messages, "message"),
            count(conversations, "conversation"),
            path.display()
        ))
    }

    /// Writes all parts, and returns how many conversations and messages they hold.
    fn copy(
        mut self,
        writer: &mut dyn Write,
        failed: impl Fn(io::Error) -> CliError,
    ) -> Result<(u64, u64), CliError> {
        let line = ProgressLine::new();
        let mut next: u64 = 0;
        loop {
            if next >= self.unpaused {
                thread::sleep(PAUSE);
            }
            self.request["part"] = json!(next);
            let part = (self.ask)(&self.request)?;
            let number = |member: &str| part[member].as_u64().unwrap_or_default();
            let (conversations, messages) = (number("conversations"), number("messages"));
            if !line.note("exporting", conversations, None) {
                return Err(CliError::failed("stopped before the end"));
            }
            let text = part["text"].as_str().unwrap_or_default();
            writer.write_all(text.as_bytes()).map_err(&failed)?;
            if part["done"] == true {
                writer.flush().map_err(failed)?;
                return Ok((conversations, messages));
            }
            next += 1;
        }
    }
}

/// Why a file could not be written.
fn unwritten(path: &Path, error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => CliError::failed(format!(
            "{} already exists; choose another name, or replace it with --force",
            path.display()
        )),
        _ => CliError::unwritable(path, error),
    }
}
