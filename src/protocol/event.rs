//! Events pushed to connections that asked for them (protocol section 5).

use serde::Serialize;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::error::Code;
use crate::ids::{ApprovalId, ConversationId, DeliveryId, MessageId, TurnId};

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
    Delta { text: String },
    /// The model calls a tool.
    #[serde(rename = "chat.tool_call")]
    ToolCall {
        tool: String,
        arguments: Value,
        call_id: String,
    },
    /// A tool call has its result; `summary` is its beginning.
    #[serde(rename = "chat.tool_result")]
    ToolResult {
        call_id: String,
        ok: bool,
        summary: String,
    },
    /// The turn has its reply.
    #[serde(rename = "chat.done")]
    Done { message_id: MessageId },
    /// The turn ended without a reply.
    #[serde(rename = "chat.failed")]
    Failed { code: Code, error: String },
    /// A tool waits for the owner's permission.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        approval_id: ApprovalId,
        tool: String,
        arguments: Value,
        reason: String,
    },
    /// The owner, or time, decided.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved {
        approval_id: ApprovalId,
        decision: String,
        by: String,
    },
    /// A message was stored, on any channel.
    #[serde(rename = "message.created")]
    MessageCreated { message: Message },
    /// A callback was delivered, failed or given up.
    #[serde(rename = "delivery.updated")]
    DeliveryUpdated {
        delivery_id: DeliveryId,
        state: String,
        attempts: u32,
    },
    /// Settings changed.
    #[serde(rename = "config.updated")]
    ConfigUpdated { fields: Vec<String> },
}

/// A message as `get_messages` and `message.created` show it (contract section 2).
#[derive(Clone, Debug, Serialize)]
pub struct Message {
    pub id: MessageId,
    /// `user` or `assistant`.
    pub role: &'static str,
    pub content: String,
    pub timestamp: Timestamp,
    pub turn_id: Option<TurnId>,
    /// Who said it, where known: the signed-in user, or the webhook's `user_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
}

/// The names by which `subscribe` asks for events.
pub const NAMES: [&str; 10] = [
    "chat.delta",
    "chat.tool_call",
    "chat.tool_result",
    "chat.done",
    "chat.failed",
    "approval.requested",
    "approval.resolved",
    "message.created",
    "delivery.updated",
    "config.updated",
];

impl Kind {
    /// Its place in [`NAMES`].
    pub fn index(&self) -> usize {
        match self {
            Kind::Delta { .. } => 0,
            Kind::ToolCall { .. } => 1,
            Kind::ToolResult { .. } => 2,
            Kind::Done { .. } => 3,
            Kind::Failed { .. } => 4,
            Kind::ApprovalRequested { .. } => 5,
            Kind::ApprovalResolved { .. } => 6,
            Kind::MessageCreated { .. } => 7,
            Kind::DeliveryUpdated { .. } => 8,
            Kind::ConfigUpdated { .. } => 9,
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        NAMES[self.index()]
    }

    /// Whether it is kept for those who were away: all but the pieces of text,
    /// which the reply repeats.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Kind::Delta { .. })
    }

    /// Whether only an admin may see it: what it shows has a command that only
    /// an admin may send.
    pub fn is_admin_only(&self) -> bool {
        matches!(
            self,
            Kind::ApprovalRequested { .. }
                | Kind::ApprovalResolved { .. }
                | Kind::DeliveryUpdated { .. }
                | Kind::ConfigUpdated { .. }
        )
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
