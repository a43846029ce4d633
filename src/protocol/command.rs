//! Commands as a client sends them (contract section 4.1, protocol section 2).

use std::str::FromStr;

use serde_json::{Map, Value};

use super::envelope::RequestId;
use super::event::Name;
use super::fields::Fields;
use super::people::{self, PeopleCommand};
use crate::error::{Error, Result};
use crate::ids::{ApprovalId, ConversationId, DeliveryId, MemoryId, MessageId, ScheduleId, TurnId};
use crate::secret::Secret;

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
    /// Errors: `invalid_request` naming the unknown event and the known ones.
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

/// Every command's name on the wire, the contract's seven first; those of
/// [`people::NAMES`] follow.
pub const NAMES: [&str; 27] = [
    "auth",
    "chat",
    "get_config",
    "update_config",
    "list_conversations",
    "get_messages",
    "list_tools",
    "sign_out",
    "ping",
    "subscribe",
    "get_turn",
    "cancel",
    "rename_conversation",
    "delete_conversation",
    "search_messages",
    "list_approvals",
    "approve",
    "deny",
    "list_memories",
    "delete_memory",
    "create_schedule",
    "list_schedules",
    "delete_schedule",
    "pause_schedule",
    "list_deliveries",
    "retry_delivery",
    "server_info",
];

impl Request {
    /// Parses one message. A message whose `id` can be read keeps it even when
    /// the rest is wrong, so that the client can match the error.
    pub fn parse(text: &str) -> Request {
        let mut fields = match Fields::parse(text) {
            Ok(fields) => fields,
            Err(error) => {
                return Request {
                    id: None,
                    command: Err(error),
                };
            }
        };
        match RequestId::from_member(fields.get("id")) {
            Ok(id) => Request {
                id,
                command: Command::from_fields(&mut fields),
            },
            Err(error) => Request {
                id: None,
                command: Err(error),
            },
        }
    }
}

impl Command {
    fn from_fields(fields: &mut Fields) -> Result<Command> {
        let name = fields.string("type")?;
        Ok(match name.as_str() {
            "auth" => Command::Auth(Credential::from_fields(fields)?),
            "sign_out" => Command::SignOut,
            "chat" => Command::Chat(Chat::from_fields(fields)?),
            "get_config" => Command::GetConfig,
            "update_config" => Command::UpdateConfig {
                config: fields.object("config")?,
            },
            "list_conversations" => Command::ListConversations {
                limit: limit(fields)?,
                cursor: optional_id(fields, "cursor")?,
            },
            "get_messages" => Command::GetMessages {
                conversation_id: id(fields, "conversation_id")?,
                limit: limit(fields)?,
                before: optional_id(fields, "before")?,
            },
            "list_tools" => Command::ListTools,
            "ping" => Command::Ping,
            "subscribe" => Command::Subscribe {
                events: match fields.optional_strings("events")? {
                    Some(names) => EventSet::of(&names)?,
                    None => EventSet::ALL,
                },
                since: fields.optional_integer("since", 0..=u64::MAX)?,
            },
            "get_turn" => Command::GetTurn {
                turn_id: id(fields, "turn_id")?,
            },
            "cancel" => Command::Cancel {
                turn_id: id(fields, "turn_id")?,
            },
            "rename_conversation" => Command::RenameConversation {
                conversation_id: id(fields, "conversation_id")?,
                title: bounded(fields, "title", 200)?,
            },
            "delete_conversation" => Command::DeleteConversation {
                conversation_id: id(fields, "conversation_id")?,
            },
            "search_messages" => Command::SearchMessages {
                query: bounded(fields, "query", 1000)?,
                limit: limit(fields)?,
            },
            "list_approvals" => Command::ListApprovals,
            "approve" => Command::Approve {
                approval_id: id(fields, "approval_id")?,
                remember: remember(fields)?,
            },
            "deny" => Command::Deny {
                approval_id: id(fields, "approval_id")?,
            },
            "list_memories" => Command::ListMemories,
            "delete_memory" => Command::DeleteMemory {
                memory_id: id(fields, "memory_id")?,
            },
            "create_schedule" => Command::CreateSchedule(NewSchedule {
                prompt: fields.string("prompt")?,
                at: fields.optional_string("at")?,
                cron: fields.optional_string("cron")?,
                conversation_id: optional_id(fields, "conversation_id")?,
                webhook: fields.optional_string("webhook")?,
            }),
            "list_schedules" => Command::ListSchedules,
            "delete_schedule" => Command::DeleteSchedule {
                schedule_id: id(fields, "schedule_id")?,
            },
            "pause_schedule" => Command::PauseSchedule {
                schedule_id: id(fields, "schedule_id")?,
                paused: fields.optional_bool("paused")?.unwrap_or(true),
            },
            "list_deliveries" => Command::ListDeliveries {
                state: fields.optional_string("state")?,
                limit: limit(fields)?,
            },
            "retry_delivery" => Command::RetryDelivery {
                delivery_id: id(fields, "delivery_id")?,
            },
            "server_info" => Command::ServerInfo,
            unknown => {
                if let Some(command) = PeopleCommand::from_fields(unknown, fields)? {
                    return Ok(Command::People(command));
                }
                let shown: String = unknown.chars().take(64).collect();
                return Err(Error::invalid_request(format!(
                    "there is no command {shown:?}; the commands are {}",
                    NAMES
                        .into_iter()
                        .chain(people::NAMES)
                        .collect::<Vec<_>>()
                        .join(", ")
                )));
            }
        })
    }
}

impl Credential {
    fn from_fields(fields: &mut Fields) -> Result<Credential> {
        Ok(match fields.optional_string("username")? {
            Some(username) => Credential::Password {
                username,
                password: Secret::new(fields.string("password")?),
            },
            None => Credential::Token(Secret::new(fields.string("token")?)),
        })
    }
}

impl Chat {
    fn from_fields(fields: &mut Fields) -> Result<Chat> {
        let message = fields.string("message")?;
        check_message(&message)?;
        let idempotency_key = fields.optional_string("idempotency_key")?;
        if let Some(key) = &idempotency_key {
            check_idempotency_key("\"idempotency_key\"", key)?;
        }
        Ok(Chat {
            message,
            conversation_id: optional_id(fields, "conversation_id")?,
            stream: fields.optional_bool("stream")?.unwrap_or(false),
            idempotency_key,
        })
    }
}

/// Checks the text of a chat or webhook message.
///
/// Errors: `invalid_request`; HTTP 413 when it is over [`CHAT_MESSAGE_BYTES`].
pub fn check_message(message: &str) -> Result<()> {
    if message.len() > CHAT_MESSAGE_BYTES {
        return Err(Error::too_large(format!(
            "\"message\" has {} bytes; at most {CHAT_MESSAGE_BYTES} are allowed",
            message.len()
        )));
    }
    if message.trim().is_empty() {
        return Err(Error::invalid_request("\"message\" must not be empty"));
    }
    Ok(())
}

/// Checks an idempotency key, called `subject` in the error: 1 to 255 characters.
pub fn check_idempotency_key(subject: &str, key: &str) -> Result<()> {
    if (1..=255).contains(&key.chars().count()) {
        Ok(())
    } else {
        Err(Error::invalid_request(format!(
            "{subject} must have 1 to 255 characters"
        )))
    }
}

fn id<I: FromStr<Err = Error>>(fields: &mut Fields, name: &str) -> Result<I> {
    fields.string(name)?.parse()
}

fn optional_id<I: FromStr<Err = Error>>(fields: &mut Fields, name: &str) -> Result<Option<I>> {
    fields
        .optional_string(name)?
        .map(|text| text.parse())
        .transpose()
}

fn limit(fields: &mut Fields) -> Result<usize> {
    let limit = fields
        .optional_integer("limit", 1..=LIST_LIMIT)?
        .unwrap_or(LIST_DEFAULT);
    Ok(limit as usize)
}

fn bounded(fields: &mut Fields, name: &str, most: usize) -> Result<String> {
    let text = fields.string(name)?;
    if text.trim().is_empty() || text.chars().count() > most {
        return Err(Error::invalid_request(format!(
            "\"{name}\" must have 1 to {most} characters, not only white space"
        )));
    }
    Ok(text)
}

fn remember(fields: &mut Fields) -> Result<Remember> {
    match fields.optional_string("remember")?.as_deref() {
        None | Some("once") => Ok(Remember::Once),
        Some("conversation") => Ok(Remember::Conversation),
        Some("always") => Ok(Remember::Always),
        Some(_) => Err(Error::invalid_request(
            "\"remember\" must be \"once\", \"conversation\" or \"always\"",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn error_of(text: &str) -> Error {
        Request::parse(text).command.expect_err(text)
    }

    #[test]
    fn every_name_is_a_command() {
        for name in NAMES.into_iter().chain(people::NAMES) {
            let parsed = Request::parse(&format!(r#"{{"type":"{name}"}}"#)).command;
            if let Err(error) = parsed {
                assert!(error.message().contains("is required"), "{name}: {error}");
            }
        }
    }

    #[test]
    fn errors_name_the_field_and_keep_the_id() {
        for (text, says) in [
            ("[]", "must be a JSON object, not an array"),
            ("{", "not valid JSON"),
            (r#"{"id":1}"#, "\"type\" is required"),
            (
                r#"{"id":1,"type":"nope"}"#,
                "there is no command \"nope\"; the commands are auth, chat",
            ),
            (r#"{"id":1,"type":"chat"}"#, "\"message\" is required"),
            (
                r#"{"id":1,"type":"chat","message":7}"#,
                "\"message\" must be a string, not a number",
            ),
            (
                r#"{"id":1,"type":"chat","message":" \n"}"#,
                "\"message\" must not be empty",
            ),
            (
                r#"{"id":1,"type":"get_messages","conversation_id":"conv_0000000000001","limit":0}"#,
                "\"limit\" must be an integer from 1 to 500, not 0",
            ),
            (
                r#"{"id":1,"type":"list_conversations","limit":"5"}"#,
                "\"limit\" must be an integer from 1 to 500, not a string",
            ),
            (
                r#"{"id":1,"type":"subscribe","events":["x"]}"#,
                "there is no event \"x\"",
            ),
            (
                r#"{"id":1,"type":"approve","approval_id":"appr_0000000000001","remember":"never"}"#,
                "\"remember\" must be",
            ),
        ] {
            let error = error_of(text);
            assert_eq!(error.code(), Code::InvalidRequest, "{text}");
            assert!(error.message().contains(says), "{text}: {error}");
            if text.contains("\"id\"") {
                assert_eq!(
                    Request::parse(text).id,
                    Some(RequestId::Number(1)),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let text = format!(
            r#"{{"type":"chat","message":{}1{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(error_of(&text).code(), Code::InvalidRequest);
    }

    #[test]
    fn a_message_over_the_limit_is_too_large() {
        let text = format!(
            r#"{{"type":"chat","message":"{}"}}"#,
            "x".repeat(CHAT_MESSAGE_BYTES + 1)
        );
        assert_eq!(error_of(&text).status(), 413);
    }

    #[test]
    fn unknown_fields_are_ignored() {
        assert!(
            Request::parse(r#"{"type":"ping","color":"red"}"#)
                .command
                .is_ok()
        );
    }
}
