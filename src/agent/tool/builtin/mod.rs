//! The tools that every household has. Their descriptions are short, since
//! all of them go with every request to a model.

mod clock;
mod conversations;
mod memory;
mod schedule;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Source, Tool, ToolContext};
use crate::model::ToolSpec;
use base::clock::Timestamp;
use serde_json::json;

/// All built-in tools, in the order in which a model sees them.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(clock::current_time()),
        Arc::new(memory::remember()),
        Arc::new(memory::recall()),
        Arc::new(memory::forget()),
        Arc::new(conversations::search()),
        Arc::new(schedule::schedule()),
    ]
}

type Run = fn(&Map<String, Value>, &ToolContext<'_>) -> Result<String, String>;

/// A built-in tool: what the model is told of it, and a function.
struct Builtin {
    spec: ToolSpec,
    is_read_only: bool,
    brings_outside_text: bool,
    run: Run,
}

impl Builtin {
    /// `properties` are the schemas of the parameters by name.
    fn new(name: &str, description: &str, properties: Value, required: &[&str], run: Run) -> Self {
        let mut parameters = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            parameters["required"] = json!(required);
        }
        Builtin {
            spec: ToolSpec {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters,
            },
            is_read_only: false,
            brings_outside_text: false,
            run,
        }
    }

    /// The same tool, whose results may have been written by anybody.
    fn bringing_outside_text(mut self) -> Self {
        self.brings_outside_text = true;
        self
    }

    /// The same tool, which changes nothing.
    fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }
}

impl Tool for Builtin {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> Source {
        Source::Builtin
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn brings_outside_text(&self) -> bool {
        self.brings_outside_text
    }

    fn intent(&self, arguments: &Map<String, Value>) -> Option<String> {
        let argument = |name| text(arguments, name);
        Some(match self.spec.name.as_str() {
            "current_time" => "look at the clock".to_owned(),
            "remember" => format!("remember: {}", argument("content")?),
            "recall" => format!("look up what it remembers about: {}", argument("query")?),
            "forget" => format!("forget the memory {}", argument("memory_id")?),
            "search_conversations" => {
                format!("search all conversations for: {}", argument("query")?)
            }
            "schedule" => schedule::intent(arguments)?,
            _ => return None,
        })
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        context: &ToolContext<'_>,
    ) -> Result<String, String> {
        (self.run)(arguments, context)
    }
}

/// A string argument without white space around it; absent and blank are the
/// same.
pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments
        .get(name)?
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// A string argument that must say something.
pub(super) fn required_text<'a>(
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, String> {
    text(arguments, name).ok_or_else(|| format!("the argument \"{name}\" must not be empty"))
}

/// A time to the minute, as in `2026-11-21 09:30 UTC`.
pub(super) fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(date), Some(minute)) => format!("{date} {minute} UTC"),
        _ => text,
    }
}

#[cfg(test)]
use super::testing as household;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specs_are_small() {
        let request: Vec<Value> = all()
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                json!({"type": "function", "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": spec.parameters,
                }})
            })
            .collect();
        let size = Value::Array(request).to_string().len();
        assert!(size < 2048, "{size} bytes of tools in every request");
    }

    #[test]
    fn only_readers_are_read_only() {
        let readers: Vec<String> = all()
            .iter()
            .filter(|tool| tool.is_read_only())
            .map(|tool| tool.spec().name.clone())
            .collect();
        assert_eq!(readers, ["current_time", "recall", "search_conversations"]);
    }

    #[test]
    fn times_are_told_to_the_minute() {
        let time = Timestamp::from_millis(1_795_253_400_125);
        assert_eq!(minute(time), "2026-11-21 09:30 UTC");
    }

    #[test]
    fn blank_is_absent() {
        let arguments = json!({"a": " x ", "b": " ", "c": 1});
        let arguments = arguments.as_object().unwrap();
        assert_eq!(text(arguments, "a"), Some("x"));
        for name in ["b", "c", "d"] {
            assert_eq!(text(arguments, name), None);
            assert!(required_text(arguments, name).is_err());
        }
    }
}
