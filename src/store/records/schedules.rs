//! Prompts that run at a time of their own.

use super::{Message, Turn};
use base::calendar::Timing;
use base::clock::Timestamp;
use base::ids::{ConversationId, ScheduleId};

/// The channel of the turns that schedules begin, but of those that a webhook
/// account asked for.
pub const SCHEDULE_CHANNEL: &str = "schedule";

/// A prompt that runs once, or again and again.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What `delete_schedule` takes.
    pub id: ScheduleId,
    /// What is said to the assistant: 1 to 4,000 characters.
    pub prompt: String,
    /// Who asked for it.
    pub owner: Option<String>,
    /// Where it runs; absent until its own conversation is made by the first run.
    pub conversation_id: Option<ConversationId>,
    /// That of its turns, as [`Conversation::channel`](super::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the replies, too.
    pub account: Option<String>,
    /// When it runs.
    pub timing: Timing,
    /// When it last ran.
    pub last_at: Option<Timestamp>,
    /// Whether it is left out until it is resumed.
    pub is_paused: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A schedule to store.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// What is said to the assistant: 1 to 4,000 characters.
    pub prompt: String,
    /// Who asks for it.
    pub owner: Option<String>,
    /// Where it runs: must exist; absent for a conversation of its own.
    pub conversation_id: Option<ConversationId>,
    /// That of its turns.
    pub channel: String,
    /// The webhook account that gets the replies, too.
    pub account: Option<String>,
    /// When it runs.
    pub timing: Timing,
}

/// What came of a run of a schedule.
#[derive(Clone, Debug)]
pub struct ScheduleRun {
    /// The new turn, queued.
    pub turn: Turn,
    /// Its message.
    pub message: Message,
}
