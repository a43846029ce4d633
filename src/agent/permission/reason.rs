//! The question for a person: what a tool call would do.

use base::visible::{head_and_tail, one_line};
use serde_json::Value;

use crate::tool::{Arguments, Source, Tool};
use store::{Store, Viewer};

/// Longest question in characters. The arguments beside it are always whole.
const QUESTION_CHARS: usize = 2_000;

/// Begins the question about a call that tells others what is said in the conversation.
pub const WIDENS: &str = "More people than see this conversation will know it. ";

/// The question for a person: what the tool is going to do, in its own words or
/// by its name and arguments. It is one line in which nothing hides, and of one that
/// is too long it shows the beginning and the end.
pub fn reason(tool: &dyn Tool, arguments: &Arguments, store: &Store, viewer: &Viewer) -> String {
    let action = match tool.intent(arguments, store, viewer) {
        Some(intent) => one_line(intent.trim()),
        None => call(tool, arguments),
    };
    let action = head_and_tail(&action, QUESTION_CHARS);
    format!("The assistant wants to {action}")
}

fn call(tool: &dyn Tool, arguments: &Arguments) -> String {
    let name = one_line(&tool.spec().name);
    let action = match &tool.definition().source {
        Source::Builtin | Source::Custom => format!("run \"{name}\""),
        Source::Mcp(server) => {
            let server = one_line(server);
            format!("use \"{name}\" of the MCP server \"{server}\"")
        }
    };
    match arguments.is_empty() {
        true => action,
        false => format!("{action} with {}", visible(&arguments.clone().into())),
    }
}

/// A value in whose strings nothing hides.
fn visible(value: &Value) -> Value {
    match value {
        Value::String(text) => one_line(text).into(),
        Value::Array(values) => values.iter().map(visible).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (one_line(name), visible(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::ToolSpec;
    use crate::tool::testing::Household;
    use crate::tool::{Definition, Origin, ToolContext};
    use base::testing::rows;

    /// A tool that never runs.
    struct Switch {
        definition: Definition,
        intent: Option<String>,
    }

    impl Tool for Switch {
        fn definition(&self) -> &Definition {
            &self.definition
        }

        fn intent(&self, _: &Arguments, _: &Store, _: &Viewer) -> Option<String> {
            self.intent.clone()
        }

        fn run(&self, _: &Arguments, _: &ToolContext<'_>) -> Result<String, String> {
            Err("it never runs".to_owned())
        }
    }

    fn reason_of(source: Source, intent: Option<&str>, arguments: Value) -> String {
        let switch = Switch {
            definition: Definition {
                spec: ToolSpec {
                    name: "light_switch".to_owned(),
                    description: String::new(),
                    parameters: json!({}).into(),
                },
                source,
                is_read_only: false,
                origin: Origin::Tool,
                is_private: false,
            },
            intent: intent.map(str::to_owned),
        };
        reason(
            &switch,
            arguments.as_object().unwrap(),
            Household::new().store(),
            &Viewer::server(),
        )
    }

    #[test]
    fn a_reason_is_one_line_in_which_nothing_hides() {
        let table = r#"
            custom  |            | {"room": "kitchen"}      | run "light_switch" with {"room":"kitchen"}
            custom  |            | {}                       | run "light_switch"
            mcp     |            | {"a": ["\u202E1", 2]}    | use "light_switch" of the MCP server "lights" with {"a":["‹U+202E›1",2]}
            custom  |            | {"a": "\n\n\n\"\u001b"}  | run "light_switch" with {"a":"‹↵›‹2 empty lines›‹↵›\"‹U+001B›"}
            custom  |            | {"\u200b": {"a\ud83d\ude00": null}} | run "light_switch" with {"‹U+200B›":{"a😀":null}}
            builtin | run: ls¶rm ‹ | {"a": 1}               | run: ls‹↵›‹U+200B›rm ‹U+2039›
            builtin | BLANK      | {}                       | run: ls‹↵›‹1299 empty lines›‹↵›rm -rf ~
            builtin | LONG       | {}                       | HEAD ‹1002 more characters› TAIL
        "#;
        for [source, intent, arguments, expected] in rows(table) {
            let source = match source {
                "custom" => Source::Custom,
                "mcp" => Source::Mcp("lights".to_owned()),
                _ => Source::Builtin,
            };
            let intent = intent
                .replace('¶', "\n\u{200B}")
                .replace("BLANK", &format!("run: ls{}rm -rf ~", "\n".repeat(1300)))
                .replace(
                    "LONG",
                    &format!("{}{}", "ü".repeat(2_000), "x".repeat(1_001)),
                );
            let intent = Some(intent.as_str()).filter(|intent| !intent.is_empty());
            let expected = expected
                .replace("HEAD", &"ü".repeat(1_333))
                .replace("TAIL", &"x".repeat(666));
            let found = reason_of(source, intent, arguments.parse().unwrap());
            assert_eq!(found, format!("The assistant wants to {expected}"));
        }
    }
}
