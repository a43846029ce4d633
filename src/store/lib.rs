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
//! A read ([`Store::messages`] and its like) runs on a connection that
//! `Readers::read` lends, in the caller's thread. What a turn reads of its past is kept
//! for the next one (`kept_reads`).
//!
//! Reads see only what is committed. A deferred commit
//! ([`Store::begin_turn_deferred`], [`Store::mark_running`], a delivery's success)
//! is visible to later writes at once, and to reads within 5 ms. What it returns is
//! [`Provisional`]. Whatever is sent, answered or run with an effect takes a
//! [`Durable`], which only a reader or a commit gives.

mod actors;
mod approvals;
mod askers;
mod attachments;
mod audience;
mod backup;
mod belongings;
mod check;
mod clock_step;
mod commit;
#[cfg(any(test, feature = "testing"))]
mod commit_gate;
mod connection;
mod conversation_list;
mod conversation_marks;
mod conversations;
mod counts;
mod database;
mod deliveries;
mod due;
mod durability;
mod excerpt;
mod export;
mod failure;
mod forgetting;
mod fulltext;
mod history;
mod idempotency;
mod import;
mod integrity;
mod invitations;
mod job;
mod kept_reads;
mod kept_results;
mod lists;
mod machines;
mod memories;
mod memory_index;
mod messages;
mod meter;
mod new_turn;
mod notifications;
mod people;
mod purge;
mod push_subscriptions;
mod query;
mod readers;
mod recall;
mod removals;
mod replayed_history;
mod schedules;
mod schema;
mod search;
mod search_words;
mod sharing;
mod shown;
mod steps;
mod tokens;
mod turn_end;
mod turns;
mod usage;
mod vector;
mod vectors;
mod versions;
mod viewer;
mod words;
mod writer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use actors::{Actors, look_up_actors};
pub use approvals::{Approval, Decision, DecisionOutcome, NewApproval, Verdict};
pub use attachments::imported::AttachmentImport;
pub use attachments::{
    IncludedFile, NewAttachments, NewUpload, PIECE_BYTES, Replaced, Upload, UploadLimits,
};
pub use audience::{Audience, Readers};
pub use backup::{
    BackupContents, BackupError, BackupFile, BackupRequest, BackupSummary, BackupWriter, PARTIAL,
    SNAPSHOT_PIECE, Snapshot, back_up, inspect, unpack,
};
pub use belongings::Belongings;
pub use check::{Progress, ProgressWatcher};
#[cfg(any(test, feature = "testing"))]
pub use commit_gate::{CommitGate, Statements};
pub use conversation_list::ConversationPage;
pub use conversation_marks::ConversationChange;
pub use conversations::{Conversation, Marks};
pub use counts::Counts;
pub use database::Store;
pub use deliveries::{Attempt, Callback, Delivery, DeliveryState, NewDelivery};
pub use due::Outgoing;
pub use durability::{Durable, Provisional};
pub use excerpt::excerpt;
pub use export::{
    ExportedConversation, ExportedMarks, ExportedMemory, ExportedMessage, ExportedSchedule,
};
pub use history::{Past, PastTurn, Summary, WantedPast};
pub use idempotency::IdempotencyKey;
pub use import::{IMPORT_CHANNEL, Import, Ownership};
pub use integrity::{Examination, check_after_crash, check_integrity, examine};
pub use invitations::{Invitation, NewInvitation};
pub use kept_reads::Memo;
pub use kept_results::{KEPT_RESULT_BYTES, KEPT_RESULTS};
pub use lists::{
    ITEM_BYTES, ITEMS, LIST_NAME_BYTES, LISTS, List, ListChange, ListItem, ListSummary,
};
pub use memories::{Memory, NewMemory};
pub use messages::{Message, MessagePage, Role};
pub use meter::{Version, WriterMeter};
pub use new_turn::{Begun, NewTurn, Target};
pub use notifications::{NewNotification, Notification, NotificationCause};
pub use people::{User, look_up_role};
pub use protocol::record::Attachment;
pub use purge::Deleted;
pub use push_subscriptions::{PUSH, PUSH_SUBSCRIPTIONS, PushSubscription};
pub use replayed_history::{Exchange, REPLY_FOLLOWS, ReplayedHistory};
pub use schedules::{NewSchedule, SCHEDULE_CHANNEL, Schedule};
pub use schema::OpenError;
pub use sharing::Reshared;
pub use steps::{Step, ToolCall};
pub use tokens::{Identity, NewToken, SESSION, Token, TokenScope, UserRole};
pub use turn_end::{Finished, TurnEnd};
pub use turns::{StartedCall, Turn, TurnState};
pub use usage::{Period, Usage, UsageRow};
pub use vector::{MOST_DIMENSIONS, Vector};
pub use versions::Rearranged;
pub use viewer::Viewer;
