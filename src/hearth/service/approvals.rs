//! Approvals of tool calls: decided by a person, or by time.

use serde_json::Value;

use super::{Service, views};
use base::error::{Error, Result};
use base::ids::ApprovalId;
use config::Permission;
use protocol::command::Remember;
use store::{Approval, Decision, Verdict, Viewer};

/// The decider on record when nobody decided in time.
pub(super) const BY_TIME: &str = "timeout";

impl Service {
    /// Allows a waiting call. `always` is written to `tool_permissions` first,
    /// so that a failure to write leaves the call undecided.
    pub(super) fn approve(&self, id: ApprovalId, remember: Remember, by: &str) -> Result<Value> {
        let verdict = match remember {
            Remember::Once => Verdict::ApprovedOnce,
            Remember::Conversation => Verdict::ApprovedConversation,
            Remember::Always => {
                self.allow_always(id)?;
                Verdict::ApprovedAlways
            }
        };
        self.decide(id, verdict, by)
    }

    /// Refuses calls that nobody decided in time.
    pub(super) fn expire_approvals(&self) -> Result<()> {
        let expired = self.store.expired_approvals(self.clock.now())?;
        // Deciding one waits for its commit.
        for id in expired.uncommitted() {
            self.decide(id, Verdict::Expired, BY_TIME)?;
        }
        Ok(())
    }

    fn allow_always(&self, id: ApprovalId) -> Result<()> {
        let waiting = self.store.waiting_approvals(&Viewer::server())?;
        let approval = waiting
            .iter()
            .find(|approval| approval.id == id)
            .ok_or_else(|| {
                Error::not_found(format!("no approval {id} waits: it may be decided already"))
            })?;
        self.settings
            .permit_tool(&approval.tool, Permission::Allow)?;
        self.config_changed(&["tool_permissions".to_owned()]);
        Ok(())
    }

    /// Stores a decision about a waiting call, publishes it and resumes the turn.
    pub(super) fn decide(&self, id: ApprovalId, verdict: Verdict, by: &str) -> Result<Value> {
        let decision = Decision {
            verdict,
            by: by.to_owned(),
        };
        let decided = self.store.decide(id, decision.clone())?;
        self.publish_decision(&decided.approval, &decision);
        if decided.resumes {
            self.queue
                .resume(decided.approval.turn_id, decided.approval.conversation_id);
        }
        Ok(views::approval(&decided.approval))
    }

    pub(super) fn publish_decision(&self, approval: &Approval, decision: &Decision) {
        log::info!(
            "{}: tool {} {} by {}",
            approval.turn_id,
            approval.tool,
            decision.verdict.as_str(),
            decision.by
        );
        self.hub.publish_decision(approval, decision);
    }
}
