//! The lines of Hearth's own export.
//!
//! After the head come the conversations, each with its messages in the order of their ids and
//! each message with its files, then memories, schedules, calendars and lists, and the end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use base::ids::AttachmentId;
use base::people::Audience;
use store::{ExportedConversation, ExportedMemory, ExportedMessage, ExportedSchedule};

/// The version of the format that is written and read.
pub const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    #[serde(rename = "hearth_export")]
    Head {
        version: u32,
        /// Whether an end follows, so that a file without one was cut.
        #[serde(default)]
        has_end: bool,
        /// The display names of people in the lines, by their names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        people: BTreeMap<String, String>,
    },
    Conversation(Box<ExportedConversation>),
    Message(Box<ExportedMessage>),
    /// A message that is not shown: another version, or what followed one.
    HiddenMessage(Box<ExportedMessage>),
    /// A file of the message before.
    Attachment {
        attachment_id: Option<AttachmentId>,
        name: String,
        media_type: Option<String>,
        bytes: u64,
    },
    /// A part, in base64, of the file before.
    AttachmentPart {
        data: String,
    },
    Memory(Box<ExportedMemory>),
    Schedule(Box<ExportedSchedule>),
    /// One that is kept elsewhere, without its password.
    Calendar(Box<CalendarLine>),
    List {
        list: String,
        #[serde(default)]
        outside: bool,
        items: Vec<ItemLine>,
    },
    #[serde(rename = "hearth_export_end")]
    End {
        conversations: u64,
        messages: u64,
    },
}

#[derive(Serialize, Deserialize)]
pub struct CalendarLine {
    pub name: String,
    pub url: String,
    pub username: Option<String>,
    pub owner: Option<String>,
    pub audience: Option<Audience>,
    pub read_only: bool,
    pub refresh_minutes: u32,
}

#[derive(Serialize, Deserialize)]
pub struct ItemLine {
    pub text: String,
    pub checked: bool,
    pub outside: bool,
}
