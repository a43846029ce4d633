//! The one database file: conversations, turns, deliveries, memories, schedules,
//! people. All SQL lives here.
//!
//! One writer thread runs all queued jobs in one transaction, commits it under
//! `synchronous=FULL`, and then answers their callers (group commit). Each job has
//! a savepoint, so that its failure undoes it alone. A small pool of connections
//! serves reads.
//!
//! A write, from the call to the disk:
//!
//! 1. [`Store::begin_turn`] and its like hand a closure to `Store::write`,
//!    `durable_write` or `deferred_write`.
//! 2. `Writer::call` queues it as a `Job` and waits.
//! 3. `Committer::run` takes it, with all others in the queue, into a transaction.
//! 4. `Committer::commit` commits and then calls `Job::answer` for each.
//!
//! A read ([`Snapshot::messages`] and its like) hangs on the [`Snapshot`] of a viewer: one
//! transaction on a connection that `Readers` lends, in the caller's thread. What a turn reads
//! of its past is kept for the next one (`history::KeptPast`).
//!
//! Reads see only what is committed. A deferred commit
//! ([`Store::begin_turn_deferred`], [`Store::mark_running`], a delivery's success)
//! is visible to later writes at once, and to reads within 5 ms. What it returns is
//! [`Provisional`]. Whatever is sent, answered or run with an effect takes a
//! [`Durable`], which only a reader or a commit gives.
//!
//! Every read fails with `server_error` when the database cannot be read, and every write when
//! it cannot be committed. The section `# Errors` of a function names what else can go wrong;
//! where there is none, nothing else can.

// Said above once, not at each function.
#![allow(clippy::missing_errors_doc)]

mod chat;
mod engine;
mod files;
mod home;
mod keep;
mod out;
mod people;
mod sight;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use chat::approvals::{Approval, BY_HEARTH, Decision, DecisionOutcome, NewApproval, Verdict};
pub use chat::conversation_list::ConversationPage;
pub use chat::conversation_marks::ConversationChange;
pub use chat::conversations::{Conversation, Marks};
pub use chat::excerpt::excerpt;
pub use chat::export::{
    ExportedConversation, ExportedMarks, ExportedMemory, ExportedMessage, ExportedSchedule,
};
pub use chat::history::{Past, PastTurn, Summary, WantedPast};
pub use chat::import::{IMPORT_CHANNEL, Import, Ownership};
pub use chat::kept_results::{KEPT_RESULT_BYTES, KEPT_RESULTS};
pub use chat::messages::{Message, MessagePage, Role};
pub use chat::new_turn::{Begun, NewTurn, Target};
pub use chat::replayed_history::{Exchange, REPLY_FOLLOWS, ReplayedHistory};
pub use chat::search::vectors::MessageBetween;
pub use chat::search::{Found, Hit};
pub use chat::steps::{PageRange, Step, ToolCall, last_round, open_calls};
pub use chat::turn_end::{Finished, TurnEnd};
pub use chat::turns::{StartedCall, Turn, TurnState};
pub use chat::versions::Rearranged;
pub use engine::check::{Progress, ProgressWatcher};
pub use engine::commit::{Version, WriterMeter};
#[cfg(any(test, feature = "testing"))]
pub use engine::commit_gate::{CommitGate, Statements};
pub use engine::database::Store;
pub use engine::durability::{Durable, Provisional};
pub use engine::integrity::{
    Examination, check_after_crash, check_integrity, examine, is_of_older_version,
};
pub use engine::schema::OpenError;
pub use files::imported::AttachmentImport;
pub use files::{
    IncludedFile, NewAttachments, NewUpload, PIECE_BYTES, Replaced, Upload, UploadLimits,
};
pub use home::calendar_events::{CalendarEvent, EventTime};
pub use home::calendar_reading::CalendarReading;
pub use home::calendars::{CALENDARS, Calendar, CalendarChange, CalendarSource, NewCalendar};
pub use home::lists::{
    ITEM_BYTES, ITEMS, LIST_NAME_BYTES, LISTS, List, ListChange, ListItem, ListSummary,
};
pub use home::memories::{Memory, NewMemory, ShownAs};
pub use home::notifications::{NewNotification, Notification, NotificationCause};
pub use home::run_history::{RunOutcome, is_watched_call, watched_call_id, watched_digest};
pub use home::runs::Told;
pub use home::schedules::{NewSchedule, Schedule};
pub use home::trigger::{Trigger, WatchedCall};
pub use home::vector::{MOST_DIMENSIONS, Vector};
pub use keep::backup::{
    BackupContents, BackupEncryption, BackupError, BackupFile, BackupRequest, BackupSummary,
    BackupWriter, FileSnapshot, PARTIAL, SNAPSHOT_PIECE, back_up, inspect, unpack,
};
pub use keep::counts::Counts;
pub use keep::idempotency::IdempotencyKey;
pub use keep::purge::Deleted;
pub use keep::usage::{Period, Purpose, SCHEDULE_CHANNEL, Usage, UsageBy, UsageRow};
pub use out::deliveries::{Attempt, Callback, Delivery, DeliveryState, NewDelivery};
pub use out::due::{Destination, Outgoing};
pub use people::actors::{Actors, look_up_actors};
pub use people::invitations::{Invitation, NewInvitation};
pub use people::push_subscriptions::{PUSH, PUSH_SUBSCRIPTIONS, PushSubscription};
pub use people::removals::LeftFiles;
pub use people::senders::TELEGRAM;
pub use people::tokens::{
    Credential, Identity, NewToken, SESSION, Token, TokenScope, UserRole, not_spoken_for,
};
pub use people::user::{OF_PROGRAM, User};
pub use people::users::{DisplayNames, Removed, look_up_role, show_name};
pub use protocol::record::Attachment;
pub use sight::audience::{Audience, Readers};
pub use sight::sharing::Reshared;
pub use sight::snapshot::Snapshot;
pub use sight::viewer::Viewer;
