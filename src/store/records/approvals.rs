//! Questions to the owner and their answers.

use crate::clock::Timestamp;
use crate::ids::{ApprovalId, ConversationId, TurnId};

/// A question to the owner.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: ApprovalId,
    pub turn_id: TurnId,
    pub conversation_id: ConversationId,
    pub call_id: String,
    pub tool: String,
    /// The arguments as JSON text.
    pub arguments: String,
    /// Why it is asked, in words for a person.
    pub reason: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// Absent while it waits.
    pub decision: Option<Decision>,
}

/// A question to store.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub call_id: String,
    pub tool: String,
    pub arguments: String,
    pub reason: String,
}

/// The owner's answer, or time's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// A user's name, or `timeout`.
    pub by: String,
}

/// Yes or no, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This call.
    ApprovedOnce,
    /// This tool for the rest of the conversation.
    ApprovedConversation,
    /// This tool from now on.
    ApprovedAlways,
    Denied,
    /// Nobody answered in time: the same as denied.
    Expired,
}

impl Verdict {
    /// The word for it in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::ApprovedOnce => "approved",
            Verdict::ApprovedConversation => "approved_conversation",
            Verdict::ApprovedAlways => "approved_always",
            Verdict::Denied => "denied",
            Verdict::Expired => "expired",
        }
    }

    /// The verdict of a word.
    pub fn parse(word: &str) -> Option<Verdict> {
        [
            Verdict::ApprovedOnce,
            Verdict::ApprovedConversation,
            Verdict::ApprovedAlways,
            Verdict::Denied,
            Verdict::Expired,
        ]
        .into_iter()
        .find(|verdict| verdict.as_str() == word)
    }

    /// Whether the tool may run.
    pub fn is_approval(self) -> bool {
        matches!(
            self,
            Verdict::ApprovedOnce | Verdict::ApprovedConversation | Verdict::ApprovedAlways
        )
    }
}
