//! Reads commands from the members of a JSON object.

use std::str::FromStr;

use super::{
    CHAT_MESSAGE_BYTES, Chat, Command, Credential, EventSet, LIST_DEFAULT, LIST_LIMIT, NewSchedule,
    Remember, Request,
};
use crate::envelope::RequestId;
use crate::fields::Fields;
use crate::people::{self, PeopleCommand};
use base::error::{Error, Result};
use base::secret::Secret;

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
/// # Errors
/// `invalid_request`; HTTP 413 when it is over [`CHAT_MESSAGE_BYTES`].
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
