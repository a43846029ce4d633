//! `hearth export`: conversations and lists as JSON Lines, which `hearth import` reads, or as
//! Markdown for people.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::progress::{ProgressLine, count};
use super::terminal::VisibleWriter;
use base::ids::ConversationId;
use base::measure::byte_count;
use protocol::attachment::encode;
use serde_json::{Value, json};
use store::{Attachment, Conversation, List, Message, PIECE_BYTES, Role, Store, Viewer};

pub const COMMAND: Command = Command::new(
    "\
export: Write conversations and lists to a file
JSON Lines can be imported again; Markdown is for reading. The file holds what is private to
people, too: keep it as safe as the data directory.
--conversation ID  Export this conversation
--all              Export all conversations of everybody, private ones too,
                   and all lists
--format FORMAT    jsonl (the default) or markdown
--output FILE      Write to this file (default: standard output)
--force            Replace FILE if it exists
--data-dir",
)
.run(run);

/// Rows per query.
const PAGE: usize = 500;
/// The suffix of a file that is not complete yet.
const PARTIAL: &str = ".partial";

/// The file formats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    JsonLines,
    Markdown,
}

/// What was exported.
#[derive(Default)]
pub struct ExportCounts {
    pub conversations: u64,
    pub messages: u64,
}

/// `hearth export`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let format = match arguments.choice("format", &["jsonl", "markdown"])? {
        Some("markdown") => ExportFormat::Markdown,
        _ => ExportFormat::JsonLines,
    };
    let one: Option<ConversationId> =
        arguments.value("conversation", "the id of a conversation")?;
    if one.is_some() == arguments.has("all") {
        return Err(arguments.usage("give either --conversation ID or --all"));
    }
    let directory = DataDirectory::of(arguments, context)?;
    let output = arguments
        .raw("output")
        .filter(|path| *path != "-")
        .map(PathBuf::from);
    if let Some(path) = &output {
        directory.check_output(path)?;
    }
    let store = directory.open_store()?;
    let line = ProgressLine::stoppable();
    let written = match &output {
        None => {
            let mut writer = BufWriter::new(&mut *context.output);
            let mut visible = VisibleWriter(&mut writer);
            let target: &mut dyn Write = match context.output_is_terminal {
                true => &mut visible,
                false => visible.0,
            };
            let written = write_all(&store, one, format, target, &line, CliError::from)?;
            writer.flush()?;
            written
        }
        Some(path) => to_file(path, arguments.has("force"), |writer| {
            write_all(&store, one, format, writer, &line, |error| {
                unwritten(path, &error)
            })
        })?,
    };
    drop(line);
    store.close();
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

/// Writes the conversations, the most recently used first.
fn write_all(
    store: &Store,
    one: Option<ConversationId>,
    format: ExportFormat,
    writer: &mut dyn Write,
    line: &ProgressLine,
    failed: impl Fn(io::Error) -> CliError,
) -> Result<ExportCounts, CliError> {
    let mut written = ExportCounts::default();
    if format == ExportFormat::JsonLines {
        let head = json!({ "type": "hearth_export", "version": 1 });
        writeln!(writer, "{head}").map_err(&failed)?;
    }
    if let Some(id) = one {
        let conversation = store.conversation(&Viewer::server(), id)?;
        write_one(store, &conversation, format, writer, &mut written, &failed)?;
        return Ok(written);
    }
    let total = store.counts(&Viewer::server())?.conversations;
    let mut cursor = None;
    loop {
        let page = store.conversations(&Viewer::server(), PAGE, cursor, true)?;
        for conversation in &page.conversations {
            write_one(store, conversation, format, writer, &mut written, &failed)?;
            if !line.note("exporting", written.conversations, Some(total)) {
                return Err(CliError::failed("stopped before the end"));
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let lists = store.lists(&Viewer::server())?;
    for list in lists.iter().filter(|list| list.items > 0) {
        let list = store.list(&Viewer::server(), &list.name)?;
        match format {
            ExportFormat::JsonLines => list_line(writer, &list),
            ExportFormat::Markdown => checklist(writer, &list),
        }
        .map_err(&failed)?;
    }
    Ok(written)
}

fn list_line(writer: &mut dyn Write, list: &List) -> io::Result<()> {
    let items: Vec<Value> = (list.items.iter())
        .map(|item| {
            json!({
                "text": item.text,
                "checked": item.is_checked,
                "outside": item.is_outside || list.is_outside,
            })
        })
        .collect();
    let line = json!({ "type": "list", "list": list.name, "items": items });
    writeln!(writer, "{line}")
}

fn checklist(writer: &mut dyn Write, list: &List) -> io::Result<()> {
    writeln!(writer, "# {}\n", list.name)?;
    for item in &list.items {
        let mark = if item.is_checked { 'x' } else { ' ' };
        writeln!(writer, "- [{mark}] {}", item.text)?;
    }
    writeln!(writer)
}

fn write_one(
    store: &Store,
    conversation: &Conversation,
    format: ExportFormat,
    writer: &mut dyn Write,
    written: &mut ExportCounts,
    failed: &impl Fn(io::Error) -> CliError,
) -> CliResult {
    match format {
        ExportFormat::JsonLines => head_line(writer, conversation),
        ExportFormat::Markdown => title(writer, conversation),
    }
    .map_err(failed)?;
    let is_data = format == ExportFormat::JsonLines;
    let viewer = Viewer::server();
    let mut after = None;
    loop {
        let messages = store.messages_after(&viewer, conversation.id, PAGE, after, false)?;
        let Some(last) = messages.last() else {
            break;
        };
        after = Some(last.id);
        for message in &messages {
            match format {
                ExportFormat::JsonLines => message_line(writer, "message", message),
                ExportFormat::Markdown => paragraph(writer, message),
            }
            .map_err(failed)?;
            for file in message.attachments.iter().filter(|_| is_data) {
                attachment_lines(store, file, writer, failed)?;
            }
            written.messages += 1;
        }
    }
    // Other versions, with what followed them: to be read, not to be imported.
    let mut after = None;
    loop {
        let messages = store.messages_after(&viewer, conversation.id, PAGE, after, true)?;
        let Some(last) = messages.last() else {
            break;
        };
        if after.is_none() && !is_data {
            writeln!(writer, "# Versions that are not shown\n").map_err(failed)?;
        }
        after = Some(last.id);
        for message in &messages {
            match format {
                ExportFormat::JsonLines => message_line(writer, "hidden_message", message),
                ExportFormat::Markdown => paragraph(writer, message),
            }
            .map_err(failed)?;
        }
    }
    written.conversations += 1;
    Ok(())
}

fn head_line(writer: &mut dyn Write, conversation: &Conversation) -> io::Result<()> {
    let line = json!({
        "type": "conversation",
        "id": conversation.id,
        "title": conversation.title,
        "channel": conversation.channel,
        "owner": conversation.owner,
        "audience": conversation.audience,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
    });
    writeln!(writer, "{line}")
}

fn message_line(writer: &mut dyn Write, kind: &str, message: &Message) -> io::Result<()> {
    let mut line = json!({
        "type": kind,
        "id": message.id,
        "role": message.role.as_str(),
        "speaker": message.speaker,
        "timestamp": message.created_at,
        "content": message.content,
    });
    if let Some(question) = message.in_reply_to {
        line["in_reply_to"] = json!(question);
    }
    writeln!(writer, "{line}")
}

/// A file of the message before: a line about it, and lines with its parts, so that
/// neither side holds the whole in memory.
fn attachment_lines(
    store: &Store,
    file: &Attachment,
    writer: &mut dyn Write,
    failed: &impl Fn(io::Error) -> CliError,
) -> CliResult {
    let line = json!({
        "type": "attachment",
        "name": file.name,
        "media_type": file.media_type,
        "bytes": file.bytes,
    });
    writeln!(writer, "{line}").map_err(failed)?;
    let mut start = 0;
    while start < file.bytes {
        let (viewer, id) = (Viewer::server(), file.attachment_id);
        let (_, part) = store.attachment_part(&viewer, id, start, PIECE_BYTES)?;
        let line = json!({ "type": "attachment_part", "data": encode(&part) });
        writeln!(writer, "{line}").map_err(failed)?;
        start += part.len() as u64;
    }
    Ok(())
}

fn title(writer: &mut dyn Write, conversation: &Conversation) -> io::Result<()> {
    let title: Vec<&str> = conversation.title.split_whitespace().collect();
    writeln!(
        writer,
        "# {}\n\n{}, {}, {}\n",
        title.join(" "),
        conversation.id,
        conversation.channel,
        conversation.created_at
    )
}

fn paragraph(writer: &mut dyn Write, message: &Message) -> io::Result<()> {
    let who = match (message.role, &message.speaker) {
        (Role::Assistant, _) => "Assistant",
        (Role::User, Some(speaker)) => speaker,
        (Role::User, None) => "User",
    };
    writeln!(
        writer,
        "## {who}, {}\n\n{}\n",
        message.created_at,
        message.content.trim_end()
    )?;
    for file in &message.attachments {
        let (name, media_type, size) = (&file.name, &file.media_type, byte_count(file.bytes));
        writeln!(writer, "- Attached: {name} ({media_type}, {size})\n")?;
    }
    Ok(())
}
