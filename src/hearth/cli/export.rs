//! `hearth export`: what the household has as JSON Lines, which `hearth import` reads, or as
//! Markdown for people.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::Door;
use super::progress::{ProgressLine, count};
use super::terminal::VisibleWriter;
use crate::transfer::ExportCounts;
use base::ids::ConversationId;
use serde_json::{Value, json};

pub const COMMAND: Command = Command::new(
    "\
export: Write conversations and all else that people have to a file
JSON Lines can be imported again, with owners, audiences, versions and files; Markdown is for
reading. The file holds what is private to people, too: keep it as safe as the data directory.
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
    let output = arguments
        .raw("output")
        .filter(|path| *path != "-")
        .map(PathBuf::from);
    if let Some(path) = &output {
        door.directory()?.check_output(path)?;
    }
    let mut request = json!({ "type": "export", "format": format.unwrap_or("jsonl") });
    match one {
        Some(id) => request["conversation_id"] = json!(id),
        None => request["all"] = json!(true),
    }
    let line = ProgressLine::stoppable();
    let mut ask = |request: &Value| door.ask(request);
    let mut parts = Parts::new(request, u64::MAX, &mut ask);
    let mut next = || {
        let (piece, counts) = parts.next()?;
        if !line.note("exporting", counts.conversations, None) {
            return Err(CliError::failed("stopped before the end"));
        }
        Ok((piece, counts))
    };
    let written = match &output {
        None => {
            let mut writer = BufWriter::new(&mut *context.output);
            let mut visible = VisibleWriter(&mut writer);
            let target: &mut dyn Write = if context.output_is_terminal {
                &mut visible
            } else {
                visible.0
            };
            let written = write_all(target, &mut next, CliError::from)?;
            writer.flush()?;
            written
        }
        Some(path) => to_file(path, arguments.has("force"), |writer| {
            write_all(writer, &mut next, |error| unwritten(path, &error))
        })?,
    };
    drop(line);
    if let Some(path) = output {
        context.print(format_args!(
            "Exported {} in {} to {}.",
            count(written.messages, "message"),
            count(written.conversations, "conversation"),
            path.display()
        ))?;
    }
    Ok(())
}

/// Why a file could not be written.
pub fn unwritten(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(match error.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "{} already exists; choose another name, or replace it with --force",
            path.display()
        ),
        _ => format!("{} cannot be written: {error}", path.display()),
    })
}

/// Writes a file atomically, for its owner only.
///
/// # Errors
///
/// It exists and is not to be replaced, or cannot be written; those of `write`.
pub fn to_file(
    path: &Path,
    overwrite: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<ExportCounts, CliError>,
) -> Result<ExportCounts, CliError> {
    if !overwrite && fs::symlink_metadata(path).is_ok() {
        return Err(unwritten(path, &io::ErrorKind::AlreadyExists.into()));
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(PARTIAL);
    let partial = PathBuf::from(partial);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&partial)
        .map_err(|error| unwritten(path, &error))?;
    let mut writer = BufWriter::new(file);
    let written = write(&mut writer).and_then(|written| {
        writer
            .flush()
            .and_then(|()| writer.get_ref().sync_all())
            .and_then(|()| fs::rename(&partial, path))
            .map_err(|error| unwritten(path, &error))?;
        Ok(written)
    });
    if written.is_err() {
        // An error of the cleanup would hide the reason.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// The next piece of an export, none after its end, and what has been exported so far.
pub type Piece = (Option<Vec<u8>>, ExportCounts);

/// Reads an export part by part.
pub struct Parts<'a> {
    request: Value,
    /// Parts that are read without a pause.
    unpaused: u64,
    ask: &'a mut dyn FnMut(&Value) -> Result<Value, CliError>,
    next: u64,
}

impl Parts<'_> {
    /// Those that the answers to this request have.
    pub fn new(
        request: Value,
        unpaused: u64,
        ask: &mut dyn FnMut(&Value) -> Result<Value, CliError>,
    ) -> Parts<'_> {
        Parts {
            request,
            unpaused,
            ask,
            next: 0,
        }
    }

    /// The next part.
    ///
    /// # Errors
    ///
    /// Those of the request.
    pub fn next(&mut self) -> Result<Piece, CliError> {
        if self.next >= self.unpaused {
            thread::sleep(PAUSE);
        }
        self.request["part"] = json!(self.next);
        let part = (self.ask)(&self.request)?;
        self.next += 1;
        let number = |member: &str| part[member].as_u64().unwrap_or_default();
        let counts = ExportCounts {
            conversations: number("conversations"),
            messages: number("messages"),
        };
        let text = part["text"].as_str().unwrap_or_default();
        let piece = (part["done"] != true).then(|| text.as_bytes().to_vec());
        Ok((piece, counts))
    }
}

/// Writes an export, piece by piece.
///
/// # Errors
///
/// Those of `next`; `failed` for what cannot be written.
pub fn write_all(
    writer: &mut dyn Write,
    next: &mut dyn FnMut() -> Result<Piece, CliError>,
    failed: impl Fn(io::Error) -> CliError,
) -> Result<ExportCounts, CliError> {
    loop {
        let (piece, counts) = next()?;
        let Some(piece) = piece else {
            writer.flush().map_err(failed)?;
            return Ok(counts);
        };
        writer.write_all(&piece).map_err(&failed)?;
    }
}
