//! Questions to the owner and their answers.

use base::clock::Timestamp;
use base::ids::{ApprovalId, ConversationId, TurnId};

/// A question to the owner.
#[derive(Clone, Debug)]
pub struct Approval {
    /// What `approve` and `deny` take.
    pub id: ApprovalId,
    /// The turn that waits for it.
    pub turn_id: TurnId,
    /// The turn's conversation.
    pub conversation_id: ConversationId,
    /// The call of the model's reply that it is about.
    pub call_id: String,
    /// The tool that would run.
    pub tool: String,
    /// The arguments as JSON text.
    pub arguments: String,
    /// Why it is asked, in words for a person.
    pub reason: String,
    /// When it was asked.
    pub created_at: Timestamp,
    /// From then on it counts as denied.
    pub expires_at: Timestamp,
    /// Absent while it waits.
    pub decision: Option<Decision>,
}

/// A question to store.
#[derive(Clone, Debug)]
pub struct NewApproval {
    /// The call of the model's reply that it is about.
    pub call_id: String,
    /// The tool that would run.
    pub tool: String,
    /// As JSON text.
    pub arguments: String,
    /// Why it is asked, in words for a person.
    pub reason: String,
}

/// The owner's answer, or time's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
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
    /// The call is refused; the turn goes on without it.
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
