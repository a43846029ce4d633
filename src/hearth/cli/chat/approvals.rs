//! Approval requests of the server, shown to the person one by one.

use std::collections::VecDeque;

use serde_json::Value;

use super::action::Action;
use serde_json::json;

/// Longest arguments that are shown, in characters.
const ARGUMENT_CHARACTERS: usize = 2000;
/// Maximum number of waiting requests; a turn has at most as many calls.
const MOST: usize = 64;

/// The waiting requests; the first is on the screen.
#[derive(Debug, Default)]
pub struct Approvals(VecDeque<Approval>);

#[derive(Debug)]
struct Approval {
    id: String,
    tool: String,
    arguments: Value,
    reason: String,
}

impl Approvals {
    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Handles an `approval.requested`. Without a person to ask (`interactive` false) it
    /// only reports what the turn waits for.
    pub fn requested(&mut self, event: &Value, interactive: bool) -> Option<Action> {
        let approval = Approval {
            id: event["approval_id"].as_str()?.to_owned(),
            tool: event["tool"].as_str().unwrap_or("a tool").to_owned(),
            arguments: event["arguments"].clone(),
            reason: event["reason"].as_str().unwrap_or_default().to_owned(),
        };
        if !interactive {
            return Some(approval.unanswered());
        }
        // The same request comes as the turn's event and by subscription.
        let known = self.0.iter().any(|other| other.id == approval.id);
        if known || self.0.len() == MOST {
            return None;
        }
        self.0.push_back(approval);
        match self.0.len() {
            1 => self.question(),
            _ => None,
        }
    }

    /// Handles an `approval.resolved`: somebody else may have decided.
    pub fn resolved(&mut self, event: &Value) -> Vec<Action> {
        let id = event["approval_id"].as_str();
        let Some(place) = self.0.iter().position(|known| Some(&*known.id) == id) else {
            return Vec::new();
        };
        self.0.remove(place);
        let decision = event["decision"].as_str().unwrap_or("decided");
        let by = event["by"].as_str().unwrap_or("someone");
        let mut actions = vec![Action::Note(format!("{decision} by {by}"))];
        if place == 0 {
            actions.extend(self.question());
        }
        actions
    }

    /// Handles the person's answer to the first request.
    pub fn decide(&mut self, line: &str) -> Vec<Action> {
        let remember = match line.to_ascii_lowercase().as_str() {
            "o" | "once" => Some("once"),
            "c" | "conversation" => Some("conversation"),
            "a" | "always" => Some("always"),
            "d" | "deny" => None,
            // A typing mistake must not decide.
            _ => return self.question().into_iter().collect(),
        };
        let Some(Approval { id, .. }) = self.0.pop_front() else {
            return Vec::new();
        };
        let decision = match remember {
            Some(remember) => {
                json!({"type": "approve", "id": "decide", "approval_id": id, "remember": remember})
            }
            None => json!({"type": "deny", "id": "decide", "approval_id": id}),
        };
        let mut actions = vec![Action::Send(decision)];
        actions.extend(self.question());
        actions
    }

    /// Drops the requests because nobody can answer any more; the turn keeps waiting.
    pub fn give_up(&mut self) -> Vec<Action> {
        let given_up = self.0.drain(..);
        given_up.map(|approval| approval.unanswered()).collect()
    }

    /// Drops all requests: their turn is over.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn question(&self) -> Option<Action> {
        let approval = self.0.front()?;
        let arguments = match &approval.arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let arguments = short(&arguments, ARGUMENT_CHARACTERS);
        let tool = &approval.tool;
        let question = match approval.reason.as_str() {
            "" => format!("May {tool} run? {arguments}"),
            // The reason usually contains the arguments.
            reason if reason.contains(&arguments) => format!("{reason}. May it?"),
            reason if contains_all(reason, &approval.arguments) => format!("{reason}\nMay it?"),
            reason => format!("{reason}\n  {tool} {arguments}\nMay it?"),
        };
        Some(Action::Ask(format!(
            "{question}\n(o)nce, for this (c)onversation, (a)lways or (d)eny: "
        )))
    }
}

impl Approval {
    fn unanswered(&self) -> Action {
        Action::Problem(format!(
            "{} is waiting for approval; decide on the web page or in `hearth chat` in a terminal",
            self.tool
        ))
    }
}

/// Whether a sentence contains every argument.
fn contains_all(sentence: &str, arguments: &Value) -> bool {
    arguments.as_object().is_some_and(|members| {
        let is_contained =
            |value: &Value| value.as_str().is_some_and(|text| sentence.contains(text));
        members.values().all(is_contained)
    })
}

/// The beginning of a text, with a mark if it is truncated.
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… ({} more bytes)", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}
