//! Hearth's own export: a head line, then for each conversation one line and a line
//! for each of its messages.

use std::io::{BufRead, Read};

use serde::Deserialize;

use super::importer::{CHANNEL, Importer, OpenImport, time};
use crate::cli::context::{CliError, CliResult};
use base::ids::{ConversationId, MessageId};
use store::{ImportedConversation, ImportedMessage, Role};

/// Longest line that is read.
const LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Longest name of a channel or a person, in characters.
const NAME_CHARACTERS: usize = 200;

enum ExportLine {
    Head,
    Conversation {
        id: String,
        title: String,
        channel: Option<String>,
        created_at: String,
    },
    Message {
        id: Option<String>,
        role: String,
        content: String,
        speaker: Option<String>,
        timestamp: String,
    },
}

/// The members of any [`ExportLine`].
#[derive(Deserialize)]
struct LineFields {
    r#type: String,
    version: Option<u32>,
    id: Option<String>,
    title: Option<String>,
    channel: Option<String>,
    created_at: Option<String>,
    role: Option<String>,
    content: Option<String>,
    speaker: Option<String>,
    timestamp: Option<String>,
}

impl ExportLine {
    /// None if it is not a line of an export.
    fn parse(text: &[u8]) -> Option<ExportLine> {
        let members: LineFields = serde_json::from_slice(text).ok()?;
        Some(match members.r#type.as_str() {
            "hearth_export" => {
                members.version?;
                ExportLine::Head
            }
            "conversation" => ExportLine::Conversation {
                id: members.id?,
                title: members.title?,
                channel: members.channel,
                created_at: members.created_at?,
            },
            "message" => ExportLine::Message {
                id: members.id,
                role: members.role?,
                content: members.content?,
                speaker: members.speaker,
                timestamp: members.timestamp?,
            },
            _ => return None,
        })
    }
}

/// Whether a file with this first line is one of ours.
pub fn is_head(line: &[u8]) -> bool {
    serde_json::from_slice(line)
        .is_ok_and(|head: LineFields| head.r#type == "hearth_export" && head.version == Some(1))
}

/// Where the reader is.
enum ConversationState {
    /// Before the first conversation, or in one that is skipped.
    Outside,
    /// In this one.
    Inside(Box<OpenImport>),
}

/// Imports a whole file.
///
/// # Errors
///
/// The file cannot be read or has an overlong line, or the database fails.
pub fn read(mut reader: impl BufRead, importer: &mut Importer<'_>) -> CliResult {
    let mut position = ConversationState::Outside;
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
        match ExportLine::parse(text) {
            Some(ExportLine::Head) => {}
            Some(ExportLine::Conversation {
                id,
                title,
                channel,
                created_at,
            }) => {
                if let ConversationState::Inside(open) =
                    std::mem::replace(&mut position, ConversationState::Outside)
                {
                    importer.finish(*open)?;
                }
                match conversation(&id, title, channel, &created_at) {
                    None => importer
                        .counts
                        .skip("conversations with an unreadable id or time"),
                    Some(conversation) => {
                        if let Some(open) = importer.begin(conversation)? {
                            position = ConversationState::Inside(Box::new(open));
                        }
                    }
                }
            }
            Some(ExportLine::Message {
                id,
                role,
                content,
                speaker,
                timestamp,
            }) => {
                let ConversationState::Inside(open) = &mut position else {
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
                        };
                        importer.push(open, message)?;
                    }
                    _ => importer
                        .counts
                        .skip("messages with an unknown role or time"),
                }
            }
            None => importer
                .counts
                .skip("lines that do not belong to an export"),
        }
    }
    match position {
        ConversationState::Inside(open) => importer.finish(*open),
        ConversationState::Outside => Ok(()),
    }
}

fn conversation(
    id: &str,
    title: String,
    channel: Option<String>,
    created_at: &str,
) -> Option<ImportedConversation> {
    let id: ConversationId = id.parse().ok()?;
    Some(ImportedConversation {
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
