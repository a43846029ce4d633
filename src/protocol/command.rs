//! Commands as a client sends them (contract section 4.1, protocol section 2).
//! [`Request::parse`] reads them.

mod parse;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use serde_json::{Map, Value};

use super::envelope::RequestId;
use super::event::Name;
use super::people::PeopleCommand;
use base::error::{Error, Result};
use base::ids::{ApprovalId, ConversationId, DeliveryId, MemoryId, MessageId, ScheduleId, TurnId};
use base::secret::Secret;

pub use parse::{NAMES, check_idempotency_key, check_message};

/// Longest chat message, in bytes of UTF-8.
pub const CHAT_MESSAGE_BYTES: usize = 256 * 1024;
/// Most rows of one list.
pub const LIST_LIMIT: u64 = 500;
/// Rows of a list when the client names no limit.
pub const LIST_DEFAULT: u64 = 50;

/// One request: a command and the client's own name for it.
#[derive(Debug)]
pub struct Request {
    /// Returned with the response. Without one, responses keep request order.
    pub id: Option<RequestId>,
    /// What to do, or why it cannot be done.
    pub command: Result<Command>,
}

/// How long an approval holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remember {
    /// This call only.
    Once,
    /// This tool, in this conversation.
    Conversation,
    /// This tool, always: written to `tool_permissions`.
    Always,
}

/// What a client asks for. Fields are checked for type and size here; whether
/// what they name exists, and whether the client may, is the service's affair.
#[derive(Debug)]
pub enum Command {
    /// Signs the connection in; must come first.
    Auth(Credential),
    /// Revokes the token that the connection is signed in with, and ends it.
    SignOut,
    /// Says something to the assistant. Role `user`.
    Chat(Chat),
    /// The settings, without secrets.
    GetConfig,
    /// Changes settings: all of them or, if one is refused, none. Role `admin`.
    UpdateConfig {
        /// Field names and their new values.
        config: Map<String, Value>,
    },
    /// Conversations of all channels, newest activity first.
    ListConversations {
        /// Rows of this page: 1 to [`LIST_LIMIT`].
        limit: usize,
        /// Where the page before ended; absent for the first.
        cursor: Option<ConversationCursor>,
    },
    /// The latest messages of a conversation, oldest first.
    GetMessages {
        /// Whose messages; must exist.
        conversation_id: ConversationId,
        /// Rows of this page: 1 to [`LIST_LIMIT`].
        limit: usize,
        /// Only messages older than this one, to page back.
        before: Option<MessageId>,
    },
    /// The tools, with where they come from and whether they ask first.
    ListTools,
    /// Asks for a sign of life.
    Ping,
    /// Asks for events; replaces an earlier subscription.
    Subscribe {
        /// Which kinds; all when the client names none.
        events: EventSet,
        /// The `seq` after which kept events are sent again; absent for none.
        since: Option<u64>,
    },
    /// Where a turn stands, and its reply once there is one.
    GetTurn {
        /// As the response to `chat` or an event named it.
        turn_id: TurnId,
    },
    /// Stops a turn, running or waiting. Role `user`.
    Cancel {
        /// One that has ended already stays as it ended.
        turn_id: TurnId,
    },
    /// Gives a conversation another title. Role `user`.
    RenameConversation {
        /// Must exist.
        conversation_id: ConversationId,
        /// The new title: 1 to 200 characters.
        title: String,
    },
    /// Deletes a conversation and all that belongs to it, for good. Role
    /// `user`.
    DeleteConversation {
        /// Must exist.
        conversation_id: ConversationId,
    },
    /// Finds messages of any conversation by their words.
    SearchMessages {
        /// Words that must all occur: 1 to 1,000 characters.
        query: String,
        /// Most hits: 1 to [`LIST_LIMIT`].
        limit: usize,
    },
    /// Tool calls that wait for a decision. Role `admin`.
    ListApprovals,
    /// Lets a tool call run. Role `admin`.
    Approve {
        /// One that is still undecided.
        approval_id: ApprovalId,
        /// Whether the same tool asks again.
        remember: Remember,
    },
    /// Refuses a tool call; the model is told so and the turn goes on. Role
    /// `admin`.
    Deny {
        /// One that is still undecided.
        approval_id: ApprovalId,
    },
    /// What the assistant was asked to remember.
    ListMemories,
    /// Makes the assistant forget one thing. Role `user`.
    DeleteMemory {
        /// As `list_memories` names it.
        memory_id: MemoryId,
    },
    /// Sets up a prompt that runs at a time of its own. Role `user`.
    CreateSchedule(NewSchedule),
    /// Everything that is scheduled, the next one first.
    ListSchedules,
    /// Cancels a schedule. Role `user`.
    DeleteSchedule {
        /// As `list_schedules` names it.
        schedule_id: ScheduleId,
    },
    /// Leaves a schedule out, or takes it up again. Role `user`.
    PauseSchedule {
        /// As `list_schedules` names it.
        schedule_id: ScheduleId,
        /// False to take it up again.
        paused: bool,
    },
    /// Webhook callbacks and their attempts. Role `admin`.
    ListDeliveries {
        /// `pending`, `held`, `delivered` or `dead`; all when absent.
        state: Option<String>,
        /// Rows: 1 to [`LIST_LIMIT`].
        limit: usize,
    },
    /// Sends a callback again that was given up. Role `admin`.
    RetryDelivery {
        /// As `list_deliveries` names it.
        delivery_id: DeliveryId,
    },
    /// Version, time since the start, and counts of what is under way.
    ServerInfo,
    /// People and tokens. Role `admin`.
    People(PeopleCommand),
}

/// What somebody proves with who they are.
#[derive(Debug)]
pub enum Credential {
    /// A session token of POST /auth or of a password, or an API token.
    Token(Secret),
    /// What POST /auth takes, for ways in that have no HTTP, such as a relay.
    Password {
        /// The user's name.
        username: String,
        /// In plain text, as the person typed it.
        password: Secret,
    },
}

/// A person's message.
#[derive(Debug)]
pub struct Chat {
    /// 1 byte to 256 KiB, not only white space.
    pub message: String,
    /// Which conversation to go on with; a new one when absent.
    pub conversation_id: Option<ConversationId>,
    /// Whether this connection wants the turn's events.
    pub stream: bool,
    /// A repeat within 24 hours joins or returns the first turn.
    pub idempotency_key: Option<String>,
}

/// A prompt and when it runs.
#[derive(Debug)]
pub struct NewSchedule {
    /// What is said to the assistant then.
    pub prompt: String,
    /// One time; this or `cron`.
    pub at: Option<String>,
    /// Five fields: times that come again.
    pub cron: Option<String>,
    /// Where it runs; a conversation of its own when absent.
    pub conversation_id: Option<ConversationId>,
    /// The webhook account that gets the replies, too.
    pub webhook: Option<String>,
}

/// Where a list of conversations goes on: the `next_cursor` of the page before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationCursor(pub MessageId);

impl FromStr for ConversationCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<ConversationCursor> {
        text.parse().map(ConversationCursor).map_err(|_| {
            Error::invalid_request("\"cursor\" must be the \"next_cursor\" of an earlier response")
        })
    }
}

/// A set of event names, as bits in the order of [`Name::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet(u16);

impl EventSet {
    /// Every event.
    pub const ALL: EventSet = EventSet((1 << Name::ALL.len()) - 1);

    /// The set of these names; `*` is every event.
    ///
    /// # Errors
    /// `invalid_request` naming the unknown event and the known ones.
    pub fn of(names: &[String]) -> Result<EventSet> {
        let mut set = EventSet::default();
        for name in names {
            match Name::ALL.into_iter().find(|known| known.as_str() == name) {
                Some(known) => set.0 |= 1 << known as u16,
                None if name == "*" => set = EventSet::ALL,
                None => {
                    return Err(Error::invalid_request(format!(
                        "there is no event {name:?}; the events are {}",
                        Name::ALL.map(Name::as_str).join(", ")
                    )));
                }
            }
        }
        Ok(set)
    }

    /// Whether this event is in it.
    pub fn contains(self, name: Name) -> bool {
        self.0 & (1 << name as u16) != 0
    }

    /// The names in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Name::ALL
            .into_iter()
            .filter(move |&name| self.contains(name))
            .map(Name::as_str)
    }
}
