//! Hearth's own export: a head line, then for each conversation one line and a line
//! for each of its messages.

use std::io::{BufRead, Read};

use serde::Deserialize;

use super::importer::{CHANNEL, Importer, OpenImport, time};
use crate::cli::context::{CliError, CliResult};
use base::error::Code;
use base::ids::{ConversationId, MessageId};
use store::{Audience, ImportedConversation, ImportedMessage, ListChange, Role, Viewer};

/// Longest line that is read.
const LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Longest name of a channel or a person, in characters.
const NAME_CHARACTERS: usize = 200;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ExportLine {
    #[serde(rename = "hearth_export")]
    Head { version: u32 },
    Conversation {
        id: String,
        title: String,
        channel: Option<String>,
        owner: Option<String>,
        /// Absent in a file from before there were any: what was in it was the
        /// household's.
        audience: Option<Audience>,
        created_at: String,
    },
    Message {
        id: Option<String>,
        role: String,
        content: String,
        speaker: Option<String>,
        timestamp: String,
        /// The message that it answers, if that is not the one before it.
        in_reply_to: Option<String>,
    },
    /// Another version of a message, or what followed it: it is not imported.
    HiddenMessage {},
    /// A file of the message before.
    Attachment {
        name: String,
        media_type: Option<String>,
        bytes: u64,
    },
    /// A part of the file before.
    AttachmentPart { data: String },
    List {
        list: String,
        items: Vec<ExportedItem>,
    },
}

#[derive(Deserialize)]
struct ExportedItem {
    text: String,
    checked: bool,
    outside: bool,
}

/// Whether a file with this first line is one of ours.
pub fn is_head(line: &[u8]) -> bool {
    matches!(
        serde_json::from_slice(line),
        Ok(ExportLine::Head { version: 1 })
    )
}

/// Imports a whole file.
///
/// # Errors
///
/// The file cannot be read or has an overlong line, or the database fails.
pub fn read(mut reader: impl BufRead, importer: &mut Importer<'_>) -> CliResult {
    // None before the first conversation, and in one that is skipped.
    let mut open: Option<OpenImport> = None;
    let mut line = Vec::new();
    let mut bytes = 0;
    loop {
        line.clear();
        let count = (&mut reader)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(|error| CliError::failed(format!("the file cannot be read: {error}")))?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        importer.note(bytes)?;
        if count as u64 == LINE_BYTES {
            return Err(CliError::failed("a line is longer than 64 MiB"));
        }
        let text = line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&line)
            .trim_ascii();
        if text.is_empty() {
            continue;
        }
        match serde_json::from_slice(text) {
            Ok(ExportLine::Head { .. } | ExportLine::HiddenMessage {}) => {}
            Ok(ExportLine::Conversation {
                id,
                title,
                channel,
                owner,
                audience,
                created_at,
            }) => {
                if let Some(open) = open.take() {
                    importer.finish(open)?;
                }
                let audience = audience.unwrap_or(Audience::Household);
                match (
                    conversation(&id, title, channel, &created_at),
                    importer.place(owner.as_deref(), audience)?,
                ) {
                    (None, _) => importer
                        .counts
                        .skip("conversations with an unreadable id or time"),
                    (Some(_), None) => importer.counts.skip(
                        "private conversations of people who have no user here; add them first",
                    ),
                    (Some(conversation), Some((owner, audience))) => {
                        open = importer.begin(ImportedConversation {
                            owner,
                            audience,
                            ..conversation
                        })?;
                    }
                }
            }
            Ok(ExportLine::Message {
                id,
                role,
                content,
                speaker,
                timestamp,
                in_reply_to,
            }) => {
                let Some(open) = &mut open else {
                    continue;
                };
                match (Role::parse(&role), time(&timestamp)) {
                    (Some(role), Some(created_at)) => {
                        let message = ImportedMessage {
                            id: id.and_then(|id| id.parse::<MessageId>().ok()),
                            role,
                            content,
                            speaker: speaker.map(short),
                            created_at,
                            in_reply_to: in_reply_to.and_then(|id| id.parse().ok()),
                        };
                        importer.push(open, message)?;
                    }
                    _ => {
                        importer
                            .counts
                            .skip("messages with an unknown role or time");
                        importer.push_nothing(open);
                    }
                }
            }
            Ok(ExportLine::Attachment {
                name,
                media_type,
                bytes,
            }) => {
                if let Some(open) = &mut open {
                    importer.begin_file(open, &name, media_type, bytes)?;
                }
            }
            Ok(ExportLine::AttachmentPart { data }) => {
                if let Some(open) = &mut open {
                    importer.add_to_file(open, &data)?;
                }
            }
            Ok(ExportLine::List { list, items }) => add_list(importer, &list, &items)?,
            Err(_) => importer
                .counts
                .skip("lines that do not belong to an export"),
        }
    }
    match open {
        Some(open) => importer.finish(open),
        None => Ok(()),
    }
}

/// Adds what is not there yet. One that an earlier file has brought is ticked off as it is
/// in this one.
fn add_list(importer: &mut Importer<'_>, name: &str, items: &[ExportedItem]) -> CliResult {
    for part in items.chunk_by(|one, next| one.outside == next.outside) {
        let texts = |is_wanted: fn(&ExportedItem) -> bool| -> Vec<String> {
            let wanted = part.iter().filter(|item| is_wanted(item));
            wanted.map(|item| item.text.clone()).collect()
        };
        let added = importer.store.update_list(
            &Viewer::server(),
            name,
            ListChange {
                add: texts(|_| true),
                is_outside: part[0].outside,
                ..ListChange::default()
            },
        );
        let done = ListChange {
            check: texts(|item| item.checked),
            ..ListChange::default()
        };
        match added {
            Ok(_) => importer.store.update_list(&Viewer::server(), name, done)?,
            Err(error) if error.code() == Code::InvalidRequest => {
                importer.counts.skip("lists over a limit");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
    }
    Ok(())
}

fn conversation(
    id: &str,
    title: String,
    channel: Option<String>,
    created_at: &str,
) -> Option<ImportedConversation> {
    let id: ConversationId = id.parse().ok()?;
    Some(ImportedConversation {
        owner: None,
        audience: Audience::Household,
        source: format!("hearth:{id}"),
        id: Some(id),
        title,
        // The model must know which conversations came from a webhook.
        channel: short(channel.unwrap_or_else(|| CHANNEL.to_owned())),
        created_at: time(created_at)?,
    })
}

fn short(text: String) -> String {
    text.chars().take(NAME_CHARACTERS).collect()
}
