//! What waits for approval: listing it, asking about it, and leaving it for later,
//! until the reply comes.

use serde_json::{Value, json};

use super::super::action::Action;
use super::super::approval::Approval;
use super::super::approvals::unanswered;
use super::super::listing::short;
use super::{ChatClient, ClientState, SentMessage};

/// The ids of the requests for what waits for approval: to say how much it is, to ask about what
/// is of the open conversation, to ask about all, and to learn which of the new ones this person
/// may answer.
pub(super) const COUNT: &str = "waiting";
pub(super) const OPENED: &str = "opened";
pub(super) const ALL: &str = "approvals";
pub(super) const CHECK: &str = "check";

impl ChatClient {
    /// Takes a message out of those whose replies come late.
    pub(super) fn take_left(&mut self, request: &str) -> Option<SentMessage> {
        let place = self.left.iter().position(|left| left.request == request)?;
        Some(self.left.remove(place))
    }

    /// Names the question of a late reply.
    pub(super) fn late_note(&self, late: Option<&SentMessage>) -> Vec<Action> {
        let note =
            |late: &SentMessage| Action::Note(format!("reply to “{}”:", short(&late.message, 60)));
        late.map(note).into_iter().collect()
    }

    /// Ends the turn of a late reply, or the one that is waited for.
    pub(super) fn end(&mut self, late: Option<SentMessage>) -> Vec<Action> {
        match late {
            None => vec![self.end_turn()],
            Some(late) => {
                let next = self.approvals.end_turn(late.turn.as_deref());
                let is_idle = self.state == ClientState::Idle && self.approvals.is_empty();
                let ready = is_idle.then_some(Action::Ready);
                next.or(ready).into_iter().collect()
            }
        }
    }

    /// Handles a list of what waits for approval, which was asked for with this id.
    pub(super) fn listed(&mut self, id: &str, mut waiting: Vec<Approval>) -> Vec<Action> {
        let mut actions = Vec::new();
        waiting.retain(|approval| approval.may_answer);
        match id {
            COUNT => match waiting.len() {
                0 => return actions,
                1 => actions.push(Action::Note(
                    "1 request waits for approval; /approvals shows it".to_owned(),
                )),
                count => actions.push(Action::Note(format!(
                    "{count} requests wait for approval; /approvals shows them"
                ))),
            },
            CHECK => {
                for approval in std::mem::take(&mut self.unchecked) {
                    if waiting.iter().any(|other| other.id == approval.id) {
                        actions.extend(self.offer(approval))
                    } else {
                        actions.push(Action::Note(format!(
                            "{} waits for the approval of somebody who may give it",
                            approval.tool
                        )))
                    }
                }
                return actions;
            }
            OPENED => {
                let open = self.conversation.clone().unwrap_or_default();
                let here = waiting.into_iter();
                for approval in here.filter(|approval| approval.conversation_id == open) {
                    actions.extend(self.approvals.ask(approval));
                }
            }
            _ if waiting.is_empty() => {
                actions.push(Action::Note("nothing waits for approval".to_owned()));
            }
            _ => {
                for approval in waiting {
                    actions.extend(self.approvals.ask(approval));
                }
            }
        }
        if self.state == ClientState::Idle && self.approvals.is_empty() {
            actions.push(Action::Ready);
        }
        actions
    }

    /// Asks about a request of the turn that is waited for, and mentions others.
    fn offer(&mut self, approval: Approval) -> Vec<Action> {
        let is_own = match &self.state {
            ClientState::Turn { sent, .. } => {
                sent.turn.is_none() || approval.is_of(sent.turn.as_deref())
            }
            _ => false,
        };
        if is_own && !self.mode.interactive {
            return vec![unanswered(&approval)];
        }
        if is_own {
            return self.approvals.ask(approval).into_iter().collect();
        }
        if !self.mode.interactive || self.mode.question.is_some() {
            return Vec::new();
        }
        let mut actions = vec![Action::Note(format!(
            "{}. {} waits for approval; /approvals shows it",
            approval.origin, approval.tool
        ))];
        if self.state == ClientState::Idle && self.approvals.is_empty() {
            actions.push(Action::Ready);
        }
        actions
    }

    /// Handles an `approval.requested`. An admin may answer all of them; for others,
    /// the list of those that they may answer tells.
    pub(super) fn requested(&mut self, event: &Value) -> Vec<Action> {
        let Some(approval) = Approval::read(event) else {
            return Vec::new();
        };
        if self.role == "admin" || !self.mode.interactive {
            return self.offer(approval);
        }
        self.unchecked.push(approval);
        vec![list_approvals(CHECK)]
    }

    /// Handles an answer to an approval request. A turn whose request is left for later
    /// is not waited for.
    pub(super) fn decide(&mut self, line: &str) -> Vec<Action> {
        let (left, mut actions) = self.approvals.decide(line);
        let Some(tool) = left.filter(|_| self.approvals.is_empty()) else {
            return actions;
        };
        actions.push(Action::Note(format!("{tool} waits; /approvals shows it")));
        if let ClientState::Turn { sent, .. } = &mut self.state {
            if self.mode.question.is_some() {
                actions.push(self.exit());
                return actions;
            }
            self.left.push(std::mem::take(sent));
        }
        actions.push(self.idle());
        actions
    }
}

pub(super) fn list_approvals(id: &str) -> Action {
    Action::Send(json!({"type": "list_approvals", "id": id}))
}
