//! Approval requests of the server, shown to the person one by one.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::action::Action;
use super::approval::{Approval, first_part};

/// Maximum number of requests; a turn has at most as many calls.
const MOST: usize = 64;

/// The requests that the person is asked about; the first is on the screen.
#[derive(Debug, Default)]
pub struct Approvals {
    asked: VecDeque<Approval>,
    /// What of the first one is not shown yet: until it is, nobody can allow it.
    unread: String,
}

impl Approvals {
    /// Whether nobody is asked anything.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Asks about a request, after those before it.
    pub fn ask(&mut self, approval: Approval) -> Option<Action> {
        // The same request comes as the turn's event, by subscription and in a list.
        let is_known = self.asked.iter().any(|other| other.id == approval.id);
        if is_known || self.asked.len() == MOST {
            return None;
        }
        self.asked.push_back(approval);
        match self.asked.len() {
            1 => self.begin(),
            _ => None,
        }
    }

    /// Handles an `approval.resolved`: somebody else may have decided.
    pub fn resolved(&mut self, event: &Value) -> Vec<Action> {
        let id = event["approval_id"].as_str();
        let Some(place) = self.asked.iter().position(|known| Some(&*known.id) == id) else {
            return Vec::new();
        };
        self.asked.remove(place);
        let decision = event["decision"].as_str().unwrap_or("decided");
        let by = event["by"].as_str().unwrap_or("someone");
        let mut actions = vec![Action::Note(match (decision, by) {
            ("expired", "timeout") => "nobody answered in time".to_owned(),
            ("expired", by) => format!("cancelled by {by}"),
            _ => format!("{decision} by {by}"),
        })];
        if place == 0 {
            actions.extend(self.begin());
        }
        actions
    }

    /// Handles the person's answer to the first request. Returns the tool of that request
    /// if it is left for later, and what to do.
    pub fn decide(&mut self, line: &str) -> (Option<String>, Vec<Action>) {
        let line = line.to_ascii_lowercase();
        let remember = match line.as_str() {
            "d" | "deny" => None,
            "l" | "later" => {
                let left = self.asked.pop_front();
                return (
                    left.map(|left| left.tool),
                    self.begin().into_iter().collect(),
                );
            }
            "" if !self.unread.is_empty() => return (None, vec![self.show()]),
            _ if !self.unread.is_empty() => return (None, vec![self.more()]),
            "o" | "once" => Some("once"),
            "c" | "conversation" if self.may_last() => Some("conversation"),
            "a" | "always" if self.may_last() => Some("always"),
            // A typing mistake must not decide.
            _ => return (None, self.begin().into_iter().collect()),
        };
        let mut actions = Vec::new();
        if let Some(Approval { id, .. }) = self.asked.pop_front() {
            actions.push(Action::Send(decision(&id, remember, "decide")));
        }
        actions.extend(self.begin());
        (None, actions)
    }

    fn may_last(&self) -> bool {
        self.asked.front().is_some_and(|first| first.may_last)
    }

    /// Drops the requests because nobody can answer any more; the turn keeps waiting.
    pub fn give_up(&mut self) -> Vec<Action> {
        let given_up = self.asked.drain(..);
        given_up.map(|approval| unanswered(&approval)).collect()
    }

    /// Drops the requests of a turn that is over.
    pub fn end_turn(&mut self, turn: Option<&str>) -> Option<Action> {
        let was_first = self.asked.front().is_some_and(|first| first.is_of(turn));
        self.asked.retain(|approval| !approval.is_of(turn));
        was_first.then(|| self.begin()).flatten()
    }

    /// Begins to ask about the first request.
    fn begin(&mut self) -> Option<Action> {
        self.unread = self.asked.front()?.text();
        Some(self.show())
    }

    /// Shows the next part of the first request, and asks once all was shown.
    fn show(&mut self) -> Action {
        let text = std::mem::take(&mut self.unread);
        let (part, rest) = first_part(&text);
        self.unread = rest.to_owned();
        let question = match (rest, self.asked.front()) {
            ("", Some(approval)) => approval.question(),
            _ => MORE.to_owned(),
        };
        Action::Ask(format!("{part}\n{question}"))
    }

    fn more(&self) -> Action {
        Action::Ask(MORE.to_owned())
    }
}

/// Asked while a request is not shown to its end.
const MORE: &str = "More follows. Press Enter to read on before you allow it, (d)eny or (l)ater: ";

/// The command that decides: `remember` says what an approval covers, without it the
/// call is denied.
pub fn decision(approval: &str, remember: Option<&str>, id: &str) -> Value {
    match remember {
        Some(remember) => {
            json!({"type": "approve", "id": id, "approval_id": approval, "remember": remember})
        }
        None => json!({"type": "deny", "id": id, "approval_id": approval}),
    }
}

/// Says that a call waits, and how to answer.
pub fn unanswered(approval: &Approval) -> Action {
    let Approval { tool, id, .. } = approval;
    Action::Problem(format!(
        "{tool} is waiting for approval: `hearth approvals show {id}`, the web page or \
         `hearth chat` in a terminal"
    ))
}
