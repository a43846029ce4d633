//! Our own export: a head line, then for each conversation a line of its own
//! and one for each of its messages.

use std::io::BufRead;

use serde::Deserialize;

use super::*;
use crate::ids::{ConversationId, MessageId};
use crate::store::Role;

/// Longest line that is read.
const LINE_BYTES: u64 = 64 * 1024 * 1024;
/// Longest name of a channel or a person, in characters.
const NAME_CHARACTERS: usize = 200;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    HearthExport {
        version: u32,
    },
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

/// Whether a file with this first line is one of ours.
pub fn is_head(line: &[u8]) -> bool {
    matches!(
        serde_json::from_slice(line),
        Ok(Line::HearthExport { version: 1 })
    )
}

/// Where the reader is.
enum Place {
    /// Before the first conversation, or in one that is left out.
    Outside,
    /// In this one.
    Inside(Box<Open>),
}

/// Reads a whole file.
pub fn read(mut reader: impl BufRead, importer: &mut Importer<'_>) -> Outcome {
    let mut place = Place::Outside;
    let mut line = Vec::new();
    let mut bytes = 0;
    loop {
        line.clear();
        let count = (&mut reader)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::failed(format!("the file cannot be read: {error}")))?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        importer.note(bytes)?;
        if count as u64 == LINE_BYTES {
            return Err(Failure::failed("a line is longer than 64 MiB"));
        }
        let text = line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&line)
            .trim_ascii();
        if text.is_empty() {
            continue;
        }
        match serde_json::from_slice(text) {
            Ok(Line::HearthExport { .. }) => {}
            Ok(Line::Conversation {
                id,
                title,
                channel,
                created_at,
            }) => {
                if let Place::Inside(open) = std::mem::replace(&mut place, Place::Outside) {
                    importer.finish(*open)?;
                }
                match conversation(&id, title, channel, &created_at) {
                    None => importer
                        .tally
                        .leave_out("conversations with an unreadable id or time"),
                    Some(conversation) => {
                        if let Some(open) = importer.begin(conversation)? {
                            place = Place::Inside(Box::new(open));
                        }
                    }
                }
            }
            Ok(Line::Message {
                id,
                role,
                content,
                speaker,
                timestamp,
            }) => {
                let Place::Inside(open) = &mut place else {
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
                        .tally
                        .leave_out("messages with an unknown role or time"),
                }
            }
            Err(_) => importer
                .tally
                .leave_out("lines that are no line of an export"),
        }
    }
    match place {
        Place::Inside(open) => importer.finish(*open),
        Place::Outside => Ok(()),
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
        // The model is told what came from a webhook: it is not the household
        // that speaks.
        channel: short(channel.unwrap_or_else(|| CHANNEL.to_owned())),
        created_at: time(created_at)?,
    })
}

fn short(text: String) -> String {
    text.chars().take(NAME_CHARACTERS).collect()
}
