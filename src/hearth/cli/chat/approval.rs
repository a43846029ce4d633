//! One approval request of the server, as text for a person.

use serde_json::Value;

use base::visible::one_line;

/// Rows and columns of one part of a long request. A terminal may have more.
const ROWS: usize = 20;
const COLUMNS: usize = 80;

/// A tool call that waits for an answer. What the server does not say is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: String,
    /// What the tool is called.
    pub tool: String,
    pub conversation_id: String,
    /// Whether the person who is signed in may answer.
    pub may_answer: bool,
    /// Whether an answer can cover later calls, too.
    pub may_last: bool,
    /// Who asked, and from where.
    pub origin: String,
    turn_id: String,
    covers: String,
    reason: String,
    after: String,
    /// What the reason leaves out, by what it is called.
    details: Vec<(String, String)>,
}

impl Approval {
    /// Reads one from an `approval.requested` or from `list_approvals`. The server has made
    /// visible what hides.
    pub fn read(value: &Value) -> Option<Approval> {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let answers = value["answers"].as_array().into_iter().flatten();
        let details = value["details"].as_array().into_iter().flatten();
        let text_of = |detail: &Value, name: &str| Some(detail[name].as_str()?.to_owned());
        Some(Approval {
            id: value["approval_id"].as_str()?.to_owned(),
            tool: one_line(value["label"].as_str().unwrap_or("a tool")),
            conversation_id: text("conversation_id"),
            may_answer: value["may_answer"] != false,
            may_last: answers.into_iter().any(|one| one["answer"] == "always"),
            origin: text("origin"),
            turn_id: text("turn_id"),
            covers: one_line(&text("covers")),
            reason: text("reason"),
            after: text("after"),
            details: details
                .filter_map(|one| Some((text_of(one, "label")?, text_of(one, "text")?)))
                .collect(),
        })
    }

    /// Reads the data of `list_approvals`.
    pub fn list(data: &Value) -> Vec<Approval> {
        let list = data["approvals"].as_array();
        list.into_iter()
            .flatten()
            .filter_map(Approval::read)
            .collect()
    }

    /// Whether it is of this turn.
    pub fn is_of(&self, turn: Option<&str>) -> bool {
        turn == Some(self.turn_id.as_str())
    }

    /// All of the request: who asks, after what, the question, and what that leaves out.
    pub fn text(&self) -> String {
        let mut text = self.origin.clone();
        if !self.conversation_id.is_empty() {
            text.push_str(&format!(", in {}", self.conversation_id));
        }
        for more in [&self.after, &self.reason] {
            if !more.is_empty() {
                text.push_str(&format!(".\n{}", more.replace('\n', " ")));
            }
        }
        for (label, value) in &self.details {
            // Each line begins with a bar, so that none looks like a question.
            text.push_str(&format!("\n  {}:", label.replace('\n', " ")));
            for line in value.split('\n') {
                text.push_str(&format!("\n  | {line}"));
            }
        }
        text
    }

    /// The question after the text: what each answer covers.
    pub fn question(&self) -> String {
        if !self.may_last {
            return "May it?\n(o)nce, (d)eny or (l)ater: ".to_owned();
        }
        let when = format!(" when {} asks", self.covers);
        format!(
            "May it?\n(o)nce, in this (c)onversation{when}, (a)lways{when}, (d)eny or (l)ater: "
        )
    }
}

/// The beginning of a text that fits on a screen, and the rest.
pub fn first_part(text: &str) -> (&str, &str) {
    let (mut row, mut column) = (0, 0);
    for (place, letter) in text.char_indices() {
        if letter == '\n' || column == COLUMNS {
            (row, column) = (row + 1, 0);
        }
        if row == ROWS {
            let (part, rest) = text.split_at(place);
            return (part, rest.strip_prefix('\n').unwrap_or(rest));
        }
        column += usize::from(letter != '\n');
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_says_who_asks_and_all_that_would_run() {
        let approval = |of: Value| Approval::read(&of).unwrap().text();
        let whole = json!({
            "approval_id": "appr_1", "conversation_id": "conv_1", "origin": "ada asks",
            "after": "After reading a page of a.example", "reason": "The assistant wants to write a",
            "details": [{"label": "Text", "text": "1\n\nMay it?"}, {"label": "Size", "text": "2"}],
        });
        assert_eq!(
            approval(whole),
            "ada asks, in conv_1.\nAfter reading a page of a.example.\nThe assistant wants to write a\n  \
             Text:\n  | 1\n  | \n  | May it?\n  Size:\n  | 2"
        );
        let bare = json!({"approval_id": "appr_1", "origin": "Somebody asks", "reason": "so"});
        assert_eq!(approval(bare), "Somebody asks.\nso");
    }

    #[test]
    fn a_long_text_comes_in_parts_that_are_all_of_it() {
        let wide = "ü".repeat(5_000);
        let high = "x\n".repeat(50);
        for (text, parts) in [("", 1), ("a\nb", 1), (wide.as_str(), 4), (&high, 3)] {
            let (mut rest, mut shown, mut count) = (text, String::new(), 0);
            loop {
                let (part, more) = first_part(rest);
                assert!(part.lines().count() <= ROWS);
                shown.push_str(part);
                count += 1;
                rest = more;
                if more.is_empty() {
                    break;
                }
            }
            assert_eq!(count, parts, "{text}");
            assert_eq!(shown.replace('\n', ""), text.replace('\n', ""));
        }
    }
}
