//! A client's messages, split into the message to answer and what was said before.

use serde::Deserialize;
use serde_json::Value;

use base::error::{Error, Result};
use protocol::command::check_message;
use store::Exchange;

/// Most bytes of a client's instructions to the model.
const INSTRUCTION_BYTES: usize = 256 * 1024;

/// One message of a request, as both interfaces have it.
#[derive(Debug, Deserialize)]
pub struct Said {
    role: String,
    /// A text, or its parts.
    #[serde(default)]
    content: Value,
    /// Ollama's field for pictures.
    #[serde(default)]
    images: Option<Vec<serde::de::IgnoredAny>>,
}

impl Said {
    /// A message of this role.
    pub fn new(role: &str, text: String) -> Said {
        Said {
            role: role.to_owned(),
            content: Value::String(text),
            images: None,
        }
    }

    fn text(self) -> Result<String> {
        if self.images.is_some_and(|images| !images.is_empty()) {
            return Err(only_text("images"));
        }
        match self.content {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text),
            Value::Array(parts) => {
                let mut texts = Vec::with_capacity(parts.len());
                for part in &parts {
                    match (part["type"].as_str(), part["text"].as_str()) {
                        (Some("text"), Some(text)) => texts.push(text),
                        (kind, _) => return Err(only_text(kind.unwrap_or("a part of no type"))),
                    }
                }
                Ok(texts.join("\n"))
            }
            _ => Err(only_text("other JSON")),
        }
    }
}

fn only_text(kind: &str) -> Error {
    let kind: String = kind.chars().take(50).collect();
    Error::invalid_request(format!("only text is understood here, not {kind}"))
}

/// A client's messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Transcript {
    /// System messages, joined.
    pub instructions: Option<String>,
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// The message to answer. Several that have no answer yet are one.
    pub message: String,
}

/// Reads a client's messages. A reply to nothing (a greeting) is left out, and
/// so are the calls and results of the client's own tools.
///
/// # Errors
/// `invalid_request` for an unknown role, for what is not text, and
/// where no message of the user is last; HTTP 413 for one that is too long.
pub fn read(messages: Vec<Said>) -> Result<Transcript> {
    let mut instructions = String::new();
    let mut history: Vec<Exchange> = Vec::new();
    let mut pending = String::new();
    for said in messages {
        let role = said.role.clone();
        match role.as_str() {
            "system" | "developer" => append(&mut instructions, said.text()?),
            "user" => append(&mut pending, said.text()?),
            "assistant" => {
                let reply = said.text()?;
                if reply.trim().is_empty() {
                    continue;
                }
                if !pending.is_empty() {
                    let message = std::mem::take(&mut pending);
                    history.push(Exchange { message, reply });
                } else if let Some(last) = history.last_mut() {
                    append(&mut last.reply, reply);
                }
            }
            "tool" | "function" => {}
            _ => {
                let shown: String = role.chars().take(50).collect();
                return Err(Error::invalid_request(format!(
                    "a message's role is system, user, assistant or tool, not {shown:?}"
                )));
            }
        }
    }
    if pending.is_empty() {
        return Err(Error::invalid_request(
            "the last of \"messages\" must be a user's, with text in it",
        ));
    }
    check_message(&pending)?;
    if instructions.len() > INSTRUCTION_BYTES {
        return Err(Error::too_large(format!(
            "the system messages have {} bytes; at most {INSTRUCTION_BYTES} are allowed",
            instructions.len()
        )));
    }
    Ok(Transcript {
        instructions: Some(instructions).filter(|text| !text.is_empty()),
        history,
        message: pending,
    })
}

/// Adds a text as a paragraph of its own; white space alone is none.
fn append(text: &mut String, more: String) {
    if more.trim().is_empty() {
        return;
    }
    if text.is_empty() {
        *text = more;
    } else {
        text.push_str("\n\n");
        text.push_str(&more);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use base::testing::rows;

    fn read_json(messages: Value) -> Result<Transcript> {
        read(serde_json::from_value(messages).unwrap())
    }

    fn exchange(message: &str, reply: &str) -> Exchange {
        Exchange {
            message: message.to_owned(),
            reply: reply.to_owned(),
        }
    }

    #[test]
    fn a_history_becomes_exchanges() {
        let transcript = read_json(json!([
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": "Welcome!" },
            { "role": "user", "content": "a" },
            { "role": "user", "content": [{ "type": "text", "text": "b" }, { "type": "text", "text": "c" }] },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "1" }] },
            { "role": "tool", "content": "on", "tool_call_id": "1" },
            { "role": "assistant", "content": "d" },
            { "role": "assistant", "content": "e" },
            { "role": "developer", "content": "No lists." },
            { "role": "user", "content": "f" },
        ]));
        assert_eq!(
            transcript.unwrap(),
            Transcript {
                instructions: Some("Be brief.\n\nNo lists.".to_owned()),
                history: vec![exchange("a\n\nb\nc", "d\n\ne")],
                message: "f".to_owned(),
            }
        );
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let table = r#"
            []                                                                                  | 400 | must be a user's
            [{"role": "system", "content": "x"}]                                                | 400 | must be a user's
            [{"role": "user", "content": " "}]                                                  | 400 | must be a user's
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]           | 400 | must be a user's
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}] | 400 | not image_url
            [{"role": "user", "content": "what is this?", "images": ["aGk="]}]                  | 400 | not images
            [{"role": "robot", "content": "x"}]                                                 | 400 | not "robot"
            [{"role": "user", "content": "LONG"}]                                               | 413 | 262145 bytes
        "#;
        for [messages, status, says] in rows(table) {
            let messages = messages.replace("LONG", &"x".repeat(256 * 1024 + 1));
            let messages: Value = messages.parse().unwrap();
            let error = read_json(messages).unwrap_err();
            assert_eq!(error.status().to_string(), status, "{error}");
            assert!(error.message().contains(says), "{error}");
        }
    }
}
