//! A call of a tool in words for people: what it is called, what it does, and its arguments
//! as far as that does not say them.
//!
//! Whoever allows a call judges it by this. So nothing in it hides, and every argument that
//! counts is in the sentence or among the details, whole.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{Definition, Source, Tool};
use base::language::{LANGUAGES, Words, capital};
use base::visible::{head_and_tail, lines, one_line};
use protocol::record::Detail;
use store::{Store, Viewer};

/// Most characters of what a call does; what does not fit is among the details.
const MOST_CHARACTERS: usize = 240;
/// The question about a call that tells others what is said in the conversation.
const WIDENS: &str = "approval.widens";

/// What a call does, as its tool says it.
#[derive(Debug, PartialEq, Eq)]
pub struct Intent {
    /// The end of a sentence that begins with "The assistant wants to". It may quote
    /// arguments unchanged.
    pub action: String,
    /// The arguments that it leaves out, by name. The others are said, or say nothing to a
    /// person.
    pub left_out: &'static [&'static str],
}

/// Who is asked whether a call may run.
#[derive(Clone, Copy)]
pub struct Approver<'a> {
    /// The words that they read.
    pub words: Words,
    /// Where the things are that a call names.
    pub store: &'a Store,
    /// Sees what may be quoted of these.
    pub viewer: &'a Viewer,
}

impl Approver<'_> {
    /// An intent that says what the file of words has for `key`, with these values in its fields.
    pub fn intent(&self, key: &str, fields: &[(&str, &str)]) -> Option<Intent> {
        Some(self.words.say(key, fields).into())
    }
}

impl From<String> for Intent {
    fn from(action: String) -> Intent {
        Intent {
            action,
            left_out: &[],
        }
    }
}

/// A call in words for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wording {
    /// What the tool is called.
    pub label: String,
    /// What the call does: an infinitive, on one line.
    pub action: String,
    /// The arguments that the action does not say.
    pub details: Vec<Detail>,
}

impl Wording {
    /// The words for a call. `tool` is none where nobody knows it any more.
    pub fn of(
        name: &str,
        tool: Option<&dyn Tool>,
        arguments: &Value,
        approver: &Approver<'_>,
    ) -> Wording {
        let words = approver.words;
        let definition = tool.map(Tool::definition);
        let members = arguments.as_object();
        let intent = tool.zip(members);
        let intent = intent.and_then(|(tool, given)| tool.intent(given, approver));
        let mut details = Vec::new();
        let action = match &intent {
            Some(intent) => {
                let action = one_line(intent.action.trim());
                let shown = head_and_tail(&action, MOST_CHARACTERS);
                for (name, value) in members.into_iter().flatten() {
                    let is_left_out = intent.left_out.contains(&name.as_str());
                    // A command of several lines is read on its lines.
                    let has_lines = value.as_str().is_some_and(|text| text.contains('\n'));
                    if is_left_out || has_lines || shown != action {
                        add_details(words, argument(words, name, true), value, &mut details);
                    }
                }
                shown
            }
            None => {
                for (name, value) in members.into_iter().flatten() {
                    add_details(words, argument(words, name, false), value, &mut details);
                }
                if members.is_none() {
                    let label = words.word("details.arguments");
                    add_details(words, label, arguments, &mut details);
                }
                use_of(words, name, definition)
            }
        };
        Wording {
            label: label(words, name, definition),
            action,
            details,
        }
    }

    /// What the call does, as a sentence.
    pub fn sentence(&self) -> String {
        capital(&self.action)
    }

    /// The question whether it may. `widens` says that more people will know what is said
    /// in the conversation.
    pub fn question(&self, words: Words, widens: bool) -> String {
        let key = if widens { WIDENS } else { "approval.wants" };
        words.say(key, &[("action", &self.action)])
    }
}

/// Whether a stored question says that more people will know something.
pub fn widens(question: &str) -> bool {
    let beginnings = LANGUAGES.iter().filter_map(|code| {
        let text = Words::of(code).find(WIDENS)?;
        text.split_once('{').map(|(beginning, _)| beginning)
    });
    beginnings
        .into_iter()
        .any(|beginning| question.starts_with(beginning))
}

/// What a tool is called: `name` where nobody knows it.
pub fn label(words: Words, name: &str, definition: Option<&Definition>) -> String {
    let source = definition.map(|definition| &definition.source);
    let plain = capital(&plain(name, source));
    match source {
        Some(Source::Builtin) => words
            .find(&format!("tool.{name}"))
            .map_or(plain, str::to_owned),
        Some(Source::Mcp(server)) => format!("{plain} ({})", one_line(server)),
        Some(Source::Custom) | None => plain,
    }
}

/// What a tool does, for people: in the words of whoever wrote it unless it is our own.
pub fn about(words: Words, definition: &Definition) -> String {
    let own = match definition.source {
        Source::Builtin => words.find(&format!("about.{}", definition.spec.name)),
        Source::Custom | Source::Mcp(_) => None,
    };
    own.map_or_else(|| lines(&definition.spec.description), str::to_owned)
}

/// What a tool of an MCP server does to things, and who says so. None for others.
pub fn effect(words: Words, tool: &dyn Tool) -> Option<String> {
    let said = tool.annotations()?;
    let key = match (said.read_only, said.destructive) {
        _ if tool.definition().is_read_only => "effect.declared",
        (Some(true), _) => "effect.reads",
        (_, Some(true)) => "effect.destroys",
        (_, Some(false)) => "effect.adds",
        (Some(false), None) => "effect.changes",
        (None, None) => "effect.unsaid",
    };
    Some(words.say(key, &[]))
}

/// The name of a tool as words.
fn plain(name: &str, source: Option<&Source>) -> String {
    let own = match source {
        Some(Source::Mcp(server)) => name.strip_prefix(&format!("mcp_{server}_")),
        _ => None,
    };
    one_line(&own.unwrap_or(name).replace('_', " "))
}

fn use_of(words: Words, name: &str, definition: Option<&Definition>) -> String {
    let source = definition.map(|definition| &definition.source);
    let tool = plain(name, source);
    match source {
        Some(Source::Builtin) => {
            let known = words.find(&format!("action.{name}"));
            known.map_or_else(
                || words.say("action.use", &[("tool", &tool)]),
                str::to_owned,
            )
        }
        Some(Source::Mcp(server)) => {
            let server = one_line(server);
            words.say(
                "action.use_of_server",
                &[("tool", &tool), ("server", &server)],
            )
        }
        Some(Source::Custom) | None => words.say("action.use", &[("tool", &tool)]),
    }
}

/// What an argument is called.
fn argument(words: Words, name: &str, is_own: bool) -> String {
    let own = words.find(&format!("argument.{name}")).filter(|_| is_own);
    own.map_or_else(
        || capital(&one_line(&name.replace('_', " "))),
        str::to_owned,
    )
}

/// Adds what a value holds, in as many parts as it takes without brackets.
fn add_details(words: Words, label: String, value: &Value, details: &mut Vec<Detail>) {
    let text = match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let inner = format!("{label} › {}", one_line(&name.replace('_', " ")));
                add_details(words, inner, value, details);
            }
            return;
        }
        Value::Array(items) if items.iter().any(|item| item.is_array() || item.is_object()) => {
            for (place, item) in items.iter().enumerate() {
                add_details(words, format!("{label} {}", place + 1), item, details);
            }
            return;
        }
        Value::Array(items) if !items.is_empty() => {
            let items = items
                .iter()
                .map(|item| format!("• {}", scalar(words, item)));
            items.collect::<Vec<_>>().join("\n")
        }
        other => scalar(words, other),
    };
    details.push(Detail { label, text });
}

fn scalar(words: Words, value: &Value) -> String {
    match value {
        Value::String(text) => lines(text),
        Value::Bool(true) => words.word("details.yes"),
        Value::Bool(false) => words.word("details.no"),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => words.word("details.nothing"),
    }
}
