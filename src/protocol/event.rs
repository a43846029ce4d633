//! Events pushed to connections that asked for them (protocol section 5).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::record::{Answer, Detail, Message};
use crate::schema::{self, Definitions, Schema, object, sentence};
use base::error::{Code, Error, Result};
use base::ids::{
    ApprovalId, CalendarId, ConversationId, DeliveryId, MemoryId, MessageId, ScheduleId, TurnId,
};
use base::language::{Said, Words};
use base::people::Audience;
use base::reply::FinishReason;

/// One event. Its `seq` is given by the hub when it is published.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The turn it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The same in the words of others, of what is worded for people.
    #[serde(skip)]
    pub translations: Vec<(Words, EventKind)>,
}

/// What sets an event apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTrait {
    /// Kept for connections that were away.
    Kept,
    /// Sent to a connection that streams its own turn.
    Streamed,
    /// Sent to admins alone: only an admin may send the command that shows it.
    AdminOnly,
}

/// An event as it is declared, for error messages and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its `event` on the wire.
    pub name: &'static str,
    /// What sets it apart.
    pub traits: &'static [EventTrait],
    /// Its fields beside `type`, `event`, `seq`, `turn_id` and `conversation_id`.
    pub fields: &'static [&'static str],
    /// When it is sent.
    pub documentation: &'static str,
}

/// Makes the schema of an event's fields.
pub type EventSchema = fn(&mut Definitions) -> Map<String, Value>;

impl Declaration {
    /// The schema of the whole event, whose fields have this one.
    pub fn schema(&self, data: EventSchema, definitions: &mut Definitions) -> Value {
        let mut schema = Value::Object(data(definitions));
        schema["description"] = json!(sentence(self.documentation));
        for (name, value) in [("type", "event"), ("event", self.name)] {
            schema["properties"][name] = json!({ "const": value });
        }
        schema["properties"]["seq"] = u64::schema(definitions);
        schema["properties"]["turn_id"] = TurnId::schema(definitions);
        schema["properties"]["conversation_id"] = ConversationId::schema(definitions);
        schema
    }
}

/// Declares every event once: `"name" Variant [traits] { fields }`.
macro_rules! events {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal $variant:ident [$($trait:ident)*] $({
            $( $(#[doc = $field_doc:literal])+ $(#[serde($($field_serde:tt)+)])?
               $field:ident: $type:ty, )+
        })?,
    )+) => {
        /// What happened, tagged on the wire by `event`.
        #[derive(Clone, Debug, Serialize)]
        #[serde(tag = "event")]
        pub enum EventKind {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $name)]
                $variant $({
                    $( $(#[doc = $field_doc])+ $(#[serde($($field_serde)+)])? $field: $type, )+
                })?,
            )+
        }

        /// The name of an event: what `subscribe` asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventName {
            $( $(#[doc = $doc])+ $variant, )+
        }

        /// Every event, in the order of [`EventName`].
        pub const DECLARATIONS: &[Declaration] = &[
            $( Declaration {
                name: $name,
                traits: &[$(EventTrait::$trait),*],
                fields: &[$($(stringify!($field)),+)?],
                documentation: concat!($($doc),+),
            }, )+
        ];

        /// The schemas of their fields, in the same order.
        pub const SCHEMAS: &[EventSchema] = &[
            $( |definitions| object(
                schema::fields!($($(
                    $(#[doc = $field_doc])+ $(#[serde($($field_serde)+)])? $field: $type,
                )+)?),
                definitions,
            ), )+
        ];

        impl EventName {
            const ALL: &[EventName] = &[$(EventName::$variant),+];
        }

        impl EventKind {
            /// Its name.
            pub fn name(&self) -> EventName {
                match self {
                    $( EventKind::$variant { .. } => EventName::$variant, )+
                }
            }
        }
    };
}

events! {
    /// A piece of the reply's text. Not kept, since the reply repeats it.
    "chat.delta" Delta [Streamed] {
        /// To be appended to what came before; never empty.
        text: String,
    },

    /// A piece of what the model thinks before it answers, where its server shows that: for
    /// those alone who subscribe to it by name. Not kept.
    "chat.reasoning" Reasoning [] {
        /// To be appended to what came before; never empty.
        text: String,
    },

    /// The model calls a tool.
    "chat.tool_call" ToolCall [Kept Streamed] {
        /// The tool's name, as `list_tools` has it.
        tool: String,
        /// As the model gave them: an object, or its text where it is not JSON.
        arguments: Value,
        /// Joins the call with its result.
        call_id: String,
        /// What people call the tool.
        label: String,
        /// What the call does, in words for people.
        sentence: String,
    },

    /// A tool call has its result.
    "chat.tool_result" ToolResult [Kept Streamed] {
        /// That of the call.
        call_id: String,
        /// False when the tool failed or was refused.
        ok: bool,
        /// The beginning of the result: at most 200 bytes.
        summary: String,
        /// Whether the tool's server has failed, which an admin can mend.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        needs_admin: bool,
    },

    /// The model is busy: its server is asked again after a while. Not kept.
    "chat.waiting" Waiting [Streamed] {
        /// How long, rounded up.
        seconds: u64,
    },

    /// The turn has its reply.
    "chat.done" Done [Kept Streamed] {
        /// The reply, for `get_messages`.
        message_id: MessageId,
        /// The message that it answers, if that is not the one before it.
        #[serde(skip_serializing_if = "Option::is_none")]
        in_reply_to: Option<MessageId>,
        /// Why the reply is not whole: `length`, `content_filter`, `refusal` or
        /// `interrupted`; absent for one that is.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },

    /// The turn ended without a reply.
    "chat.failed" Failed [Kept Streamed] {
        /// As in an error's envelope.
        code: Code,
        /// For a person, as in an error's envelope.
        error: Said,
        /// The same in every language, as in an error's envelope.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Whether somebody stopped it: true, or absent.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cancelled: bool,
        /// What was said until then, if anything was. It is stored as a message, too.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },

    /// A tool call waits for permission.
    "approval.requested" ApprovalRequested [Kept Streamed] {
        /// What `approve` and `deny` take.
        approval_id: ApprovalId,
        /// The tool's name, as `list_tools` has it.
        tool: String,
        /// What it would be run with.
        arguments: Value,
        /// What is asked, in words for a person.
        reason: String,
        /// What people call the tool.
        label: String,
        /// Who asks, and through what, in words for a person.
        origin: String,
        /// After which text from outside it comes, if there is any.
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// What `reason` does not say of the arguments.
        details: Vec<Detail>,
        /// The answers that there are, and what each means.
        answers: Vec<Answer>,
        /// The person or the webhook account that asked, where known.
        requested_by: Option<String>,
        /// Where the message came from.
        channel: String,
        /// Who is covered by an answer for the conversation, or for always.
        covers: Option<String>,
        /// Whether text from outside was read in the conversation.
        outside: bool,
    },

    /// An approval was decided, by a person or by time.
    "approval.resolved" ApprovalResolved [Kept Streamed] {
        /// The one that was decided.
        approval_id: ApprovalId,
        /// `approved`, `approved_conversation`, `approved_always`, `denied` or `expired`.
        decision: String,
        /// A user's name, `timeout`, or `hearth` where whoever asked may not do it any more.
        by: String,
    },

    /// A message was stored, on any channel.
    "message.created" MessageCreated [Kept Streamed] {
        /// The stored message.
        message: Message,
    },

    /// A conversation has another title.
    "conversation.renamed" ConversationRenamed [Kept Streamed] {
        /// The new title.
        title: String,
    },

    /// Messages of it were deleted, another version of one is shown, or its settings are
    /// others: read it anew. Or the person keeps it in another way, on another connection.
    "conversation.changed" ConversationChanged [Kept Streamed] {
        /// Whether only that has changed which the person notes for themselves (pinned,
        /// archived, read): true, or absent.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        marks_only: bool,
    },

    /// Other people see the conversation from now on. Its earlier events are theirs, too,
    /// as far as they are kept, but for results of tools.
    "conversation.shared" ConversationShared [Kept Streamed] {
        /// Whose it is: a name, or null for nobody's.
        owner: Option<String>,
        /// Who sees it: `private`, `household`, or a list of names.
        audience: Audience,
    },

    /// A conversation was deleted with all that was in it, or is no longer shared
    /// with this person.
    "conversation.deleted" ConversationDeleted [Kept Streamed],

    /// A callback was delivered, failed or given up.
    "delivery.updated" DeliveryUpdated [Kept AdminOnly] {
        /// What `retry_delivery` takes.
        delivery_id: DeliveryId,
        /// `pending`, `held`, `delivered` or `dead`.
        state: String,
        /// Attempts made so far.
        attempts: u32,
    },

    /// A list of the household was changed, made or deleted.
    "list.updated" ListUpdated [Kept] {
        /// Its name, for `get_list`.
        list: String,
    },

    /// Something was remembered, worded anew or forgotten.
    "memory.updated" MemoryUpdated [Kept] {
        /// As `list_memories` names it, if it is still there.
        memory_id: MemoryId,
    },

    /// A schedule was made, changed or deleted, or has run.
    "schedule.updated" ScheduleUpdated [Kept] {
        /// As `list_schedules` names it, if it is still there.
        schedule_id: ScheduleId,
    },

    /// A calendar was added, changed or removed, or reading it has found something new.
    "calendar.updated" CalendarUpdated [Kept] {
        /// As `list_calendars` names it, if it is still there.
        calendar_id: CalendarId,
    },

    /// A reminder is told to its person, or once more to who comes back and was not there then.
    "reminder.told" ReminderTold [] {
        /// For `finish_reminder` and `snooze_reminder`.
        schedule_id: ScheduleId,
        /// The message that tells it.
        message_id: Option<MessageId>,
        /// Its text.
        say: String,
        /// Whether it was told before.
        again: bool,
    },

    /// A skill was installed, replaced or removed.
    "skill.updated" SkillUpdated [Kept] {
        /// As `list_skills` names it, if it is still there.
        name: String,
    },

    /// Somebody is called otherwise: `list_people` tells how.
    "names.updated" NamesUpdated [Kept],

    /// People, their API tokens or invitations changed: list them anew.
    "people.updated" PeopleUpdated [Kept AdminOnly],

    /// Settings changed.
    "config.updated" ConfigUpdated [Kept AdminOnly] {
        /// Names of the changed settings.
        fields: Vec<String>,
    },
}

impl EventName {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        DECLARATIONS[self as usize].name
    }

    /// Whether it was declared with this trait.
    pub fn is(self, one: EventTrait) -> bool {
        DECLARATIONS[self as usize].traits.contains(&one)
    }
}

/// A set of event names, as bits in the order of [`EventName`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet(u32);

impl EventSet {
    /// Every event.
    pub const ALL: EventSet = EventSet((1 << DECLARATIONS.len()) - 1);

    /// The set of these names; `*` is every event.
    ///
    /// # Errors
    /// `invalid_request` naming the unknown event and the known ones.
    pub fn of(names: &[String]) -> Result<EventSet> {
        let mut set = EventSet::default();
        for name in names {
            match DECLARATIONS.iter().position(|known| known.name == name) {
                Some(place) => set.0 |= 1 << place,
                None if name == "*" => set = EventSet::ALL,
                None => {
                    let known: Vec<&str> = DECLARATIONS.iter().map(|one| one.name).collect();
                    return Err(Error::invalid_request(format!(
                        "there is no event {name:?}; the events are {}",
                        known.join(", ")
                    )));
                }
            }
        }
        Ok(set)
    }

    /// Whether this event is in it.
    pub fn contains(self, name: EventName) -> bool {
        self.0 & (1 << name as u16) != 0
    }

    /// The names in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        EventName::ALL
            .iter()
            .filter(move |&&name| self.contains(name))
            .map(|name| name.as_str())
    }
}

impl Event {
    /// Whether it says something in words, which each reader gets in their own.
    pub fn is_worded(&self) -> bool {
        matches!(self.kind, EventKind::Failed { .. }) || !self.translations.is_empty()
    }

    /// The text that is sent to somebody with these words, with its place in the sequence. A
    /// program reads errors in English.
    pub fn to_text(&self, seq: u64, words: Words, is_program: bool) -> String {
        let mut event = Cow::Borrowed(self);
        let mut translated = self.translations.iter();
        if let Some((_, kind)) = translated.find(|(own, _)| *own == words) {
            event.to_mut().kind = kind.clone();
        }
        if let EventKind::Failed { error, .. } = &self.kind {
            let said = match is_program {
                true => error.to_string(),
                false => error.in_words(words),
            };
            if let EventKind::Failed { error, .. } = &mut event.to_mut().kind {
                *error = said.into();
            }
        }
        #[derive(Serialize)]
        struct Framed<'a> {
            r#type: &'static str,
            seq: u64,
            #[serde(flatten)]
            event: &'a Event,
        }
        super::envelope::to_text(&Framed {
            r#type: "event",
            seq,
            event: &event,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_on_the_wire() {
        let kind = EventKind::ConfigUpdated { fields: vec![] };
        assert_eq!(
            serde_json::to_value(&kind).unwrap()["event"],
            kind.name().as_str()
        );
    }

    #[test]
    fn an_event_is_flat_and_named() {
        let event = Event {
            turn_id: Some(TurnId::from(1)),
            conversation_id: Some(ConversationId::from(2)),
            kind: EventKind::Delta { text: "Hel".into() },
            translations: Vec::new(),
        };
        assert_eq!(
            event.to_text(3, Words::ENGLISH, true),
            r#"{"type":"event","seq":3,"turn_id":"turn_0000000000001","conversation_id":"conv_0000000000002","event":"chat.delta","text":"Hel"}"#,
        );
    }
}
