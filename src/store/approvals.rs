//! Questions to the owner and their answers.

use super::*;
use crate::clock::Timestamp;
use crate::ids::{ApprovalId, ConversationId, TurnId};

impl Store {
    /// Undecided approvals, oldest first.
    pub fn waiting_approvals(&self) -> Result<Vec<Approval>> {
        todo!()
    }

    /// All approvals of a turn, in order.
    pub fn approvals_of(&self, turn: TurnId) -> Result<Vec<Approval>> {
        let _ = turn;
        todo!()
    }

    /// Decides one, durably. When it was the turn's last undecided one, the
    /// turn becomes `queued` in the same commit and `resumes` is true.
    /// Errors: `not_found`; `invalid_request` when it was decided already.
    pub fn decide(&self, id: ApprovalId, decision: Decision) -> Result<Decided> {
        let _ = (id, decision);
        todo!()
    }

    /// Ids of the undecided approvals whose time has come.
    pub fn expired_approvals(&self, now: Timestamp) -> Result<Vec<ApprovalId>> {
        let _ = now;
        todo!()
    }

    /// Whether the owner allowed this tool for the rest of this conversation.
    pub fn is_allowed_in(&self, conversation: ConversationId, tool: &str) -> Result<bool> {
        let _ = (conversation, tool);
        todo!()
    }
}

/// What came of a decision.
#[derive(Clone, Debug)]
pub struct Decided {
    pub approval: Approval,
    /// Whether the turn goes on now.
    pub resumes: bool,
}
