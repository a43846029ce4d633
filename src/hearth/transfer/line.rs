//! The lines of Hearth's own export.
//!
//! After the head come the conversations, each with its messages in the order of their ids and
//! each message with its files, then memories, schedules and lists, and the end.

use serde::{Deserialize, Serialize};

use base::clock::Timestamp;
use base::finish_reason::FinishReason;
use base::ids::{AttachmentId, ConversationId, MemoryId, MessageId, ScheduleId};
use base::people::Audience;
use store::Role;

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
    },
    Conversation(Box<ConversationLine>),
    Message(Box<MessageLine>),
    /// A message that is not shown: another version, or what followed one.
    HiddenMessage(Box<MessageLine>),
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
    Memory(Box<MemoryLine>),
    Schedule(Box<ScheduleLine>),
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
pub struct ConversationLine {
    pub id: ConversationId,
    pub title: String,
    pub channel: Option<String>,
    /// Null for nobody's.
    pub owner: Option<String>,
    /// Absent in files that are older than audiences.
    pub audience: Option<Audience>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// Absent in files of versions that did not write it.
    pub outside: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<MarksLine>,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
pub struct MarksLine {
    pub user: String,
    #[serde(default)]
    pub pinned: bool,
    #[serde(default)]
    pub archived: bool,
    pub read_until: Option<MessageId>,
}

#[derive(Serialize, Deserialize)]
pub struct MessageLine {
    pub id: Option<MessageId>,
    pub role: Role,
    pub speaker: Option<String>,
    pub timestamp: Timestamp,
    pub content: String,
    /// The message that it answers, if that is not the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// What all its versions have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_of: Option<MessageId>,
    /// The version that it is hidden with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_with: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// Where it came from, if not from where the conversation did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub struct MemoryLine {
    pub memory_id: Option<MemoryId>,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search_words: Vec<String>,
    pub speaker: Option<String>,
    pub owner: Option<String>,
    pub audience: Option<Audience>,
    pub channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    pub outside: bool,
    pub created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
pub struct ScheduleLine {
    pub schedule_id: Option<ScheduleId>,
    pub prompt: String,
    pub owner: Option<String>,
    /// Who made it, as it is shown, if that is nobody with an account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    pub audience: Option<Audience>,
    pub conversation_id: Option<ConversationId>,
    pub channel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    pub cron: Option<String>,
    pub next_at: Timestamp,
    #[serde(default)]
    pub is_wait: bool,
    pub planned_at: Timestamp,
    pub last_at: Option<Timestamp>,
    pub paused: bool,
    pub outside: bool,
    pub created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
pub struct ItemLine {
    pub text: String,
    pub checked: bool,
    pub outside: bool,
}
