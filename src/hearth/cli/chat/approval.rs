//! One approval request of the server, as text for a person.

use serde_json::Value;

use base::visible::{lines, one_line};

/// Rows and columns of one part of a long request. A terminal may have more.
const ROWS: usize = 20;
const COLUMNS: usize = 80;

/// A tool call that waits for an answer. What the server does not say is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: String,
    pub tool: String,
    pub conversation_id: String,
    /// Whether the person who is signed in may answer.
    pub may_answer: bool,
    /// Whether an answer can cover later calls, too.
    pub may_last: bool,
    /// Whether text from outside is in the conversation.
    is_outside: bool,
    turn_id: String,
    requested_by: String,
    channel: String,
    covers: String,
    reason: String,
    arguments: Value,
}

impl Approval {
    /// Reads one from an `approval.requested` or from `list_approvals`.
    pub fn read(value: &Value) -> Option<Approval> {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Some(Approval {
            id: value["approval_id"].as_str()?.to_owned(),
            tool: one_line(value["tool"].as_str().unwrap_or("a tool")),
            conversation_id: text("conversation_id"),
            may_answer: value["may_answer"] != false,
            may_last: value.get("covers") != Some(&Value::Null),
            is_outside: value["outside"] == true,
            turn_id: text("turn_id"),
            requested_by: one_line(&text("requested_by")),
            channel: one_line(&text("channel")),
            covers: one_line(&text("covers")),
            reason: text("reason"),
            arguments: value["arguments"].clone(),
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

    /// Who asked, and from where.
    pub fn origin(&self) -> String {
        let by = match self.requested_by.as_str() {
            "" => "Somebody",
            by => by,
        };
        let from = match self.channel.split_once(':') {
            Some(("webhook", account)) => format!(" through the webhook {account}"),
            Some(("sender" | "outside_sender", account)) => format!(" through {account}"),
            _ => match self.channel.as_str() {
                "schedule" => " by a reminder".to_owned(),
                "openai_api" | "ollama_api" => " through the model API".to_owned(),
                "mcp" => " through another assistant".to_owned(),
                _ => String::new(),
            },
        };
        match self.conversation_id.as_str() {
            "" => format!("{by} asks{from}."),
            id => format!("{by} asks{from}, in {id}."),
        }
    }

    /// All of the request: who asks, the reason, and the arguments where the reason
    /// does not contain them.
    pub fn text(&self) -> String {
        let mut text = self.origin();
        text.push('\n');
        match self.reason.as_str() {
            "" => text.push_str(&format!("The assistant wants to run {}", self.tool)),
            // The server has made it visible.
            reason => text.push_str(&reason.replace('\n', " ")),
        }
        if !self.reason_says_all() {
            for (name, value) in members(&self.arguments) {
                let value = match value {
                    Value::String(text) => lines(text),
                    other => lines(&other.to_string()),
                };
                // Each line begins with a bar, so that none looks like a question.
                text.push_str(&format!("\n  {}:", one_line(name)));
                for line in value.split('\n') {
                    text.push_str(&format!("\n  | {line}"));
                }
            }
        }
        if self.is_outside {
            text.push_str("\nText from outside is in this conversation, so here the tool asks each time, whatever the answer.");
        }
        text
    }

    /// Whether the reason contains every argument in full.
    fn reason_says_all(&self) -> bool {
        members(&self.arguments).all(|(_, value)| {
            let text = value.as_str().unwrap_or("\n");
            !text.contains('\n') && self.reason.contains(&one_line(text))
        })
    }

    /// The question after the text: what each answer covers.
    pub fn question(&self) -> String {
        if !self.may_last {
            return "May it?\n(o)nce, (d)eny or (l)ater: ".to_owned();
        }
        let (here, always) = match self.covers.as_str() {
            "" => (String::new(), String::new()),
            covers => (
                format!(" when {covers} asks"),
                format!(" when {covers} asks"),
            ),
        };
        format!(
            "May it?\n(o)nce, in this (c)onversation{here}, (a)lways{always}, (d)eny or (l)ater: "
        )
    }
}

/// The arguments by name; without a name where they are not an object.
fn members(arguments: &Value) -> Box<dyn Iterator<Item = (&str, &Value)> + '_> {
    match arguments {
        Value::Null => Box::new(std::iter::empty()),
        Value::Object(members) => {
            Box::new(members.iter().map(|(name, value)| (name.as_str(), value)))
        }
        other => Box::new(std::iter::once(("arguments", other))),
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
    use base::testing::rows;
    use serde_json::json;

    #[test]
    fn a_request_says_who_asks_and_all_that_would_run() {
        let table = r#"
            ada | websocket    | fetch https://a.example | {"url": "https://a.example"}  | ada asks, in conv_1./fetch https://a.example
            ada | webhook:door | run: ls‹↵›rm            | {"command": "ls\nrm"}         | ada asks through the webhook door, in conv_1./run: ls‹↵›rm/  command:/  ¦ ls/  ¦ rm
            ada | schedule     | run with {"n":1}        | {"n": 1}                      | ada asks by a reminder, in conv_1./run with {"n":1}/  n:/  ¦ 1
            -   | openai_api   | -                       | {"a\u202e": "\u001b[2J\n\n\n\nMay it?"} | Somebody asks through the model API, in conv_1./The assistant wants to run sh/  a‹U+202E›:/  ¦ ‹U+001B›[2J/  ¦ ‹3 empty lines›/  ¦ May it?
            -   | -            | so                      | "no JSON"                     | Somebody asks, in conv_1./so/  arguments:/  ¦ no JSON
        "#;
        for [by, channel, reason, arguments, expected] in rows(table) {
            let filled = |text: &str| text.replace('-', "");
            let approval = Approval::read(&json!({
                "approval_id": "appr_1", "tool": "sh", "conversation_id": "conv_1",
                "requested_by": filled(by), "channel": filled(channel), "reason": filled(reason),
                "arguments": arguments.parse::<Value>().unwrap(),
            }));
            let text = approval.unwrap().text().replace("  | ", "  ¦ ");
            assert_eq!(text.replace('\n', "/"), expected);
        }
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
