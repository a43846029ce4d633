//! Files in the workspace: listing, reading and writing them.

mod workspace;

use std::borrow::Cow;

use rustix::fs::FileType;
use serde_json::{Value, json};

use super::attached::ConversationFiles;
use super::definition::{Arguments, Definition, ToolContext, required_text, text};
use super::function::FunctionTool;
use super::output::{minute, text_of};
use super::wording::Intent;
use base::clock::Timestamp;
use base::ids::{AttachmentId, ResultId, UserId};
use base::measure::byte_count;
pub(crate) use workspace::Workspace;
pub use workspace::settle;

/// The tool that reads a file, or reads on in what the model was shown in part.
pub const READ_FILE: &str = "read_file";

/// What the household's files are called among those of a person.
const SHARED: &str = "shared";
/// Most bytes of a file that are read.
const MAX_READ: usize = 2 * 1024 * 1024;
/// Most bytes that are written to a file.
const MAX_WRITTEN: usize = 1024 * 1024;
/// Most entries of a directory that are listed.
const MAX_LISTED: usize = 300;

/// The three tools.
pub(super) fn all() -> [FunctionTool; 3] {
    // Nobody knows who put a file there.
    let reader = |definition: Definition| definition.read_only().bringing_outside_text();
    let list = Definition::builtin(
        "list_files",
        "List files, everybody's in shared/.",
        json!({"path": {"type": "string"}}),
        &[],
    );
    let read = Definition::builtin(
        READ_FILE,
        "Read a text file.",
        json!({
            "path": {"type": "string"},
            "offset": {"type": "integer"},
        }),
        &["path"],
    );
    let write = Definition::builtin(
        "write_file",
        "Write a text file whole, append, or replace text.",
        json!({
            "path": {"type": "string"},
            "content": {"type": "string"},
            "append": {"type": "boolean", "description": "Add at the end"},
            "replaces": {
                "type": "string",
                "description": "Text, there once, to replace",
            },
        }),
        &["path", "content"],
    );
    [
        FunctionTool {
            definition: reader(list),
            intent: |arguments, approver| match text(arguments, "path") {
                Some(path) => approver.intent("action.list_files.in", &[("path", path)]),
                None => approver.intent("action.list_files", &[]),
            },
            run: run_list,
        },
        FunctionTool {
            definition: reader(read),
            intent: |arguments, approver| {
                let path = text(arguments, "path")?;
                let key = match is_kept(path) {
                    true => "action.read_file.on",
                    false => "action.read_file",
                };
                approver.intent(key, &[("path", path)])
            },
            run: run_read,
        },
        FunctionTool {
            definition: write,
            intent: |arguments, approver| {
                let path = text(arguments, "path")?;
                let key = match (replaced(arguments), is_appended(arguments)) {
                    (Some(_), _) => "action.write_file.change",
                    (None, true) => "action.write_file.append",
                    (None, false) => "action.write_file",
                };
                Some(Intent {
                    left_out: &["content", "replaces"],
                    ..approver.intent(key, &[("path", path)])?
                })
            },
            run: run_write,
        },
    ]
}

fn run_list(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let path = text(arguments, "path").unwrap_or_default();
    let (workspace, owner, path) = found(path, context)?;
    let listed = list(&workspace, path)?;
    Ok(match owner {
        Some(_) if path.is_empty() => format!("{listed}\n{SHARED}/ (everybody's)"),
        _ => listed,
    })
}

fn run_read(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let path = required_text(arguments, "path")?;
    if let Ok(id) = path.parse() {
        return read_kept(id, arguments, context);
    }
    if let Ok(id) = path.parse() {
        return read_attached(id, arguments, context);
    }
    let (workspace, _, path) = found(path, context)?;
    read(&workspace, path, arguments, context)
}

fn run_write(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let (workspace, owner, path) = found(required_text(arguments, "path")?, context)?;
    let written = write(&workspace, path, arguments)?;
    let reader = context.speaker.filter(|_| context.user_id == owner);
    Ok(match (owner, reader) {
        (None, _) => format!("{written} Everybody in the household sees it."),
        (Some(_), Some(name)) => format!("{written} Only {name} sees it."),
        (Some(_), None) => format!("{written} Only whoever reads this sees it."),
    })
}

/// Where the file of this path is, whose that is if one person's, and its path there.
fn found<'p>(
    path: &'p str,
    context: &ToolContext<'_>,
) -> Result<(Workspace, Option<UserId>, &'p str), String> {
    let below = shared_path(path);
    let owner = context.files_of()?.filter(|_| below.is_none());
    context.shows_files_of(owner);
    Ok((workspace_of(context, owner), owner, below.unwrap_or(path)))
}

/// The workspace of this person, or the household's.
pub(super) fn workspace_of(context: &ToolContext<'_>, owner: Option<UserId>) -> Workspace {
    let directory = context.config.tools.files.directory.as_deref();
    match owner {
        Some(person) => Workspace::of_person(person, context.data_dir),
        None => Workspace::new(directory, context.data_dir),
    }
}

/// The path below the household's files of one that names them.
fn shared_path(path: &str) -> Option<&str> {
    let rest = path.trim_start_matches("./").strip_prefix(SHARED)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest),
        None => rest.is_empty().then_some(rest),
    }
}

/// Whether a path is the id of something that the model was shown in part.
fn is_kept(path: &str) -> bool {
    path.parse::<ResultId>().is_ok() || path.parse::<AttachmentId>().is_ok()
}

fn list(workspace: &Workspace, path: &str) -> Result<String, String> {
    let listing = workspace.list(path)?;
    let entries = listing.entries;
    if entries.is_empty() {
        return Ok("There are no files here.".to_owned());
    }
    let mut lines: Vec<String> = entries
        .iter()
        .take(MAX_LISTED)
        .map(|entry| match entry.kind {
            FileType::Directory => format!("{}/", entry.name),
            FileType::RegularFile => {
                let changed = Timestamp::from_millis(entry.changed.saturating_mul(1000));
                format!(
                    "{} ({}, {})",
                    entry.name,
                    byte_count(entry.size),
                    minute(changed)
                )
            }
            FileType::Symlink => format!("{} (a symbolic link, not followed)", entry.name),
            _ => format!("{} (no regular file)", entry.name),
        })
        .collect();
    if entries.len() > MAX_LISTED || listing.is_cut {
        let more = if listing.is_cut { "at least " } else { "" };
        lines.push(format!("[{more}{} more]", entries.len() - lines.len()));
    }
    Ok(lines.join("\n"))
}

/// Reads on in a tool's result of this conversation.
fn read_kept(
    id: ResultId,
    arguments: &Arguments,
    context: &ToolContext<'_>,
) -> Result<String, String> {
    let conversation = context.conversation()?;
    let kept = context.seen()?.kept_result(conversation, id);
    let (text, is_outside) = kept.map_err(|_| {
        format!("the result {id} is not kept here any more: run the tool again that gave it")
    })?;
    context.shows_kept(is_outside);
    context.page(&text, arguments)
}

/// Reads on in a file that a message of this conversation carries.
fn read_attached(
    id: AttachmentId,
    arguments: &Arguments,
    context: &ToolContext<'_>,
) -> Result<String, String> {
    let files = ConversationFiles {
        store: context.store,
        conversation: context.conversation()?,
        can_read_on: true,
        data_dir: context.data_dir,
        deadline: context.deadline,
        cancel: context.cancel,
        pdfs: context.pdfs,
    };
    let (text, after) = files.whole_text(id)?;
    Ok(context.page(&text, arguments)? + &after)
}

fn read(
    workspace: &Workspace,
    path: &str,
    arguments: &Arguments,
    context: &ToolContext<'_>,
) -> Result<String, String> {
    let content = workspace.read(path, MAX_READ)?;
    let size = content.size;
    let is_whole = size <= MAX_READ as u64;
    let text = text_of(content.bytes)
        .ok_or_else(|| format!("{path:?} is binary, {}", byte_count(size)))?;
    if text.is_empty() {
        return Ok("[the file is empty]".to_owned());
    }
    let mut shown = context.page(&text, arguments)?;
    if !is_whole {
        shown.push_str(&format!(
            "\n[the file has {size} bytes; what is beyond the first {MAX_READ} cannot be read]"
        ));
    }
    Ok(shown)
}

fn write(workspace: &Workspace, path: &str, arguments: &Arguments) -> Result<String, String> {
    let content = raw(arguments, "content");
    let fits = |size: usize| match size <= MAX_WRITTEN {
        true => Ok(()),
        false => Err(format!(
            "a file has at most {MAX_WRITTEN} bytes, not {size}: use another file for the rest"
        )),
    };
    fits(content.len())?;
    let place = match (replaced(arguments), is_appended(arguments)) {
        (None, false) => {
            let existed = workspace.write(path, |before| match before {
                // It may be meant to change a part: nothing says which.
                Some(_) if arguments.contains_key("replaces") => Err(format!(
                    "\"replaces\" is empty: name the text of {path:?} that content is to \
                         replace, or leave \"replaces\" out to write the whole file anew"
                )),
                _ => Ok(content.as_bytes().to_vec()),
            })?;
            let done = if existed { "Replaced" } else { "Wrote" };
            return Ok(format!("{done} {path} ({}).", byte_count(content.len())));
        }
        (None, true) => Place::End,
        (Some(old), false) => Place::Of(old),
        (Some(_), true) => {
            return Err("give either \"append\" or \"replaces\", not both".to_owned());
        }
    };
    let mut size = 0;
    workspace.write(path, |before| {
        let before = match before {
            Some(before) => String::from_utf8(before.read(MAX_WRITTEN)?)
                .map_err(|_| format!("{path:?} is not text"))?,
            None if replaced(arguments).is_some() => {
                return Err(format!(
                    "{path:?}: there is no such file to change: leave out \"replaces\" to write it"
                ));
            }
            None => String::new(),
        };
        let changed = place.put(path, before, content)?;
        size = changed.len();
        fits(size)?;
        Ok(changed.into_bytes())
    })?;
    Ok(format!("Changed {path}; it has {} now.", byte_count(size)))
}

/// Where a text goes in a file.
enum Place<'a> {
    /// On lines of its own.
    End,
    /// Where this text is.
    Of(&'a str),
}

impl Place<'_> {
    fn put(&self, path: &str, mut before: String, content: &str) -> Result<String, String> {
        // Models write line breaks as "\n", whatever the file has.
        let line_break = if before.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let as_in_file = |text: &str| text.replace("\r\n", "\n").replace('\n', line_break);
        let content = as_in_file(content);
        let old = match self {
            Place::Of(old) if before.contains(*old) => Cow::Borrowed(*old),
            Place::Of(old) => Cow::Owned(as_in_file(old)),
            Place::End => {
                if !before.is_empty() && !before.ends_with('\n') {
                    before.push_str(line_break);
                }
                before.push_str(&content);
                return Ok(before);
            }
        };
        // Places may overlap.
        let next = |from: usize| before.get(from..)?.find(&*old).map(|place| from + place);
        let step = old.chars().next().map_or(1, char::len_utf8);
        match next(0) {
            None => Err(format!(
                "{path:?} does not hold the text of \"replaces\": read the file and copy the text \
                 exactly, with its spaces and line breaks"
            )),
            Some(first) if next(first + step).is_some() => Err(format!(
                "{path:?} holds the text of \"replaces\" more than once: add what stands before or \
                 after it until it occurs once"
            )),
            Some(first) => {
                before.replace_range(first..first + old.len(), &content);
                Ok(before)
            }
        }
    }
}

/// A string argument as it is, white space too.
fn raw<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Models that fill in every argument leave those empty that they do not mean: what is added
/// to a file replaces nothing.
fn replaced(arguments: &Arguments) -> Option<&str> {
    Some(raw(arguments, "replaces")).filter(|old| !old.is_empty())
}

fn is_appended(arguments: &Arguments) -> bool {
    arguments.get("append").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests;
