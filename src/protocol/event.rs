//! Events pushed to connections that asked for them (protocol section 5).

use serde::Serialize;
use serde_json::Value;

use base::clock::Timestamp;
use base::error::Code;
use base::ids::{ApprovalId, ConversationId, DeliveryId, MessageId, TurnId};

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
    pub kind: Kind,
}

/// What happened, tagged on the wire by `event`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event")]
pub enum Kind {
    /// A piece of the reply's text.
    #[serde(rename = "chat.delta")]
    Delta {
        /// To be appended to what came before; never empty.
        text: String,
    },
    /// The model calls a tool.
    #[serde(rename = "chat.tool_call")]
    ToolCall {
        /// The tool's name, as `list_tools` has it.
        tool: String,
        /// As the model gave them: an object, or its text where it is not JSON.
        arguments: Value,
        /// Joins the call with its result.
        call_id: String,
    },
    /// A tool call has its result; `summary` is its beginning.
    #[serde(rename = "chat.tool_result")]
    ToolResult {
        /// That of the call.
        call_id: String,
        /// False when the tool failed or was refused.
        ok: bool,
        /// At most 200 bytes.
        summary: String,
    },
    /// The turn has its reply.
    #[serde(rename = "chat.done")]
    Done {
        /// The reply, for `get_messages`.
        message_id: MessageId,
    },
    /// The turn ended without a reply.
    #[serde(rename = "chat.failed")]
    Failed {
        /// As in an error's envelope.
        code: Code,
        /// For a person, as in an error's envelope.
        error: String,
        /// Whether somebody stopped it: true, or absent.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cancelled: bool,
    },
    /// A tool waits for the owner's permission.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        /// What `approve` and `deny` take.
        approval_id: ApprovalId,
        /// The tool's name, as `list_tools` has it.
        tool: String,
        /// What it would be run with.
        arguments: Value,
        /// Why it is asked, in words for a person.
        reason: String,
    },
    /// The owner, or time, decided.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved {
        /// The one that was decided.
        approval_id: ApprovalId,
        /// `approved`, `approved_conversation`, `approved_always`, `denied` or `expired`.
        decision: String,
        /// A user's name, or `timeout`.
        by: String,
    },
    /// A message was stored, on any channel.
    #[serde(rename = "message.created")]
    MessageCreated {
        /// The stored message.
        message: Message,
    },
    /// A conversation has another title.
    #[serde(rename = "conversation.renamed")]
    ConversationRenamed {
        /// The new title.
        title: String,
    },
    /// A conversation was deleted, with all that was in it.
    #[serde(rename = "conversation.deleted")]
    ConversationDeleted,
    /// A callback was delivered, failed or given up.
    #[serde(rename = "delivery.updated")]
    DeliveryUpdated {
        /// What `retry_delivery` takes.
        delivery_id: DeliveryId,
        /// `pending`, `held`, `delivered` or `dead`.
        state: String,
        /// Attempts made so far.
        attempts: u32,
    },
    /// Settings changed.
    #[serde(rename = "config.updated")]
    ConfigUpdated {
        /// Names of the changed settings.
        fields: Vec<String>,
    },
}

/// A message as `get_messages` and `message.created` show it (contract section 2).
#[derive(Clone, Debug, Serialize)]
pub struct Message {
    /// What `before` of `get_messages` takes.
    pub id: MessageId,
    /// `user` or `assistant`.
    pub role: &'static str,
    /// The whole text.
    pub content: String,
    /// When it was stored: ISO 8601, UTC.
    pub timestamp: Timestamp,
    /// The turn that it began or ended.
    pub turn_id: Option<TurnId>,
    /// Who said it, where known: the signed-in user, or the webhook's `user_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
}

/// The name of a kind of event: what `subscribe` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A piece of the reply's text.
    Delta,
    /// The model calls a tool.
    ToolCall,
    /// A tool call has its result.
    ToolResult,
    /// The turn has its reply.
    Done,
    /// The turn ended without a reply.
    Failed,
    /// A tool waits for permission.
    ApprovalRequested,
    /// The owner, or time, decided.
    ApprovalResolved,
    /// A message was stored.
    MessageCreated,
    /// A conversation has another title.
    ConversationRenamed,
    /// A conversation was deleted.
    ConversationDeleted,
    /// A callback changed its state.
    DeliveryUpdated,
    /// Settings changed.
    ConfigUpdated,
}

impl Name {
    /// Every name, in the order of protocol section 5.
    pub const ALL: [Name; 12] = [
        Name::Delta,
        Name::ToolCall,
        Name::ToolResult,
        Name::Done,
        Name::Failed,
        Name::ApprovalRequested,
        Name::ApprovalResolved,
        Name::MessageCreated,
        Name::ConversationRenamed,
        Name::ConversationDeleted,
        Name::DeliveryUpdated,
        Name::ConfigUpdated,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Name::Delta => "chat.delta",
            Name::ToolCall => "chat.tool_call",
            Name::ToolResult => "chat.tool_result",
            Name::Done => "chat.done",
            Name::Failed => "chat.failed",
            Name::ApprovalRequested => "approval.requested",
            Name::ApprovalResolved => "approval.resolved",
            Name::MessageCreated => "message.created",
            Name::ConversationRenamed => "conversation.renamed",
            Name::ConversationDeleted => "conversation.deleted",
            Name::DeliveryUpdated => "delivery.updated",
            Name::ConfigUpdated => "config.updated",
        }
    }

    /// Whether such events are kept for those who were away: all but the
    /// pieces of text, which the reply repeats.
    pub fn is_kept(self) -> bool {
        self != Name::Delta
    }

    /// Whether a connection that streams its own turn gets it.
    pub fn is_streamed(self) -> bool {
        !matches!(self, Name::DeliveryUpdated | Name::ConfigUpdated)
    }

    /// Whether only an admin may see it: what it shows has a command that only
    /// an admin may send.
    pub fn is_admin_only(self) -> bool {
        matches!(
            self,
            Name::ApprovalRequested
                | Name::ApprovalResolved
                | Name::DeliveryUpdated
                | Name::ConfigUpdated
        )
    }
}

impl Kind {
    /// Its name.
    pub fn name(&self) -> Name {
        match self {
            Kind::Delta { .. } => Name::Delta,
            Kind::ToolCall { .. } => Name::ToolCall,
            Kind::ToolResult { .. } => Name::ToolResult,
            Kind::Done { .. } => Name::Done,
            Kind::Failed { .. } => Name::Failed,
            Kind::ApprovalRequested { .. } => Name::ApprovalRequested,
            Kind::ApprovalResolved { .. } => Name::ApprovalResolved,
            Kind::MessageCreated { .. } => Name::MessageCreated,
            Kind::ConversationRenamed { .. } => Name::ConversationRenamed,
            Kind::ConversationDeleted => Name::ConversationDeleted,
            Kind::DeliveryUpdated { .. } => Name::DeliveryUpdated,
            Kind::ConfigUpdated { .. } => Name::ConfigUpdated,
        }
    }
}

impl Event {
    /// The text that is sent, with its place in the sequence.
    pub fn to_text(&self, seq: u64) -> String {
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
            event: self,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_on_the_wire() {
        let kind = Kind::ConfigUpdated { fields: vec![] };
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
            kind: Kind::Delta { text: "Hel".into() },
        };
        assert_eq!(
            event.to_text(3),
            r#"{"type":"event","seq":3,"turn_id":"turn_0000000000001","conversation_id":"conv_0000000000002","event":"chat.delta","text":"Hel"}"#,
        );
    }
}
