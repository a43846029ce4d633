use serde_json::json;

use super::*;
use crate::model::ToolSpec;
use crate::tools::testing::Household;
use crate::tools::{Arguments, Origin, ToolContext};
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

    fn intent(&self, _: &Arguments, _: &Approver<'_>) -> Option<Intent> {
        self.intent.clone().map(Intent::from)
    }

    fn run(&self, _: &Arguments, _: &ToolContext<'_>) -> Result<String, String> {
        Err("it never runs".to_owned())
    }
}

fn wording(source: Source, intent: Option<String>, arguments: &Value) -> Wording {
    let name = match &source {
        Source::Mcp(server) => format!("mcp_{server}_light_switch"),
        Source::Builtin | Source::Custom => "light_switch".to_owned(),
    };
    let switch = Switch {
        definition: Definition {
            spec: ToolSpec {
                name: name.clone(),
                description: String::new(),
                parameters: json!({}).into(),
            },
            source,
            is_read_only: false,
            origin: Origin::Tool,
            is_private: false,
        },
        intent,
    };
    let household = Household::new();
    let viewer = Viewer::server();
    Wording::of(
        &name,
        Some(&switch),
        arguments,
        &household.approver(&viewer),
    )
}

/// The details on one line.
fn details(wording: &Wording) -> String {
    let details = wording.details.iter();
    let details = details.map(|detail| format!("{}: {}", detail.label, detail.text));
    details.collect::<Vec<_>>().join(" / ").replace('\n', "¶")
}

#[test]
fn a_call_is_said_in_words_with_all_that_it_is_given() {
    let table = r#"
        custom | {"room_name": "kitchen", "on": true} | use “light switch” | Room name: kitchen / On: yes
        custom | {}                                   | use “light switch” | -
        mcp    | {"a": ["\u202E1", 2]}                | use “light switch” of lights | A: • ‹U+202E›1¶• 2
        mcp    | {"a": {"b_c": null, "d": {}}}        | use “light switch” of lights | A › b c: nothing / A › d: nothing
        mcp    | {"a": [{"b": 1}, {"b": "2"}]}        | use “light switch” of lights | A 1 › b: 1 / A 2 › b: 2
        custom | {"a": "1\n\n\n2\u001b"}            | use “light switch” | A: 1¶‹↵ ×2›¶2‹U+001B›
        custom | {"\u200b": {"a\ud83d\ude00": 1.5}}  | use “light switch” | ‹U+200B› › a😀: 1.5
        custom | "no object"                          | use “light switch” | What it is given: no object
    "#;
    for [source, arguments, action, beneath] in rows(table) {
        let (source, label) = match source {
            "mcp" => (Source::Mcp("lights".to_owned()), "Light switch (lights)"),
            _ => (Source::Custom, "Light switch"),
        };
        let found = wording(source, None, &arguments.parse().unwrap());
        assert_eq!((&*found.action, &*found.label), (action, label));
        assert_eq!(details(&found), beneath.trim_matches('-'), "{arguments}");
    }
}

#[test]
fn a_sentence_is_one_line_in_which_nothing_hides() {
    let long = format!("{}{}", "ü".repeat(200), "x".repeat(101));
    let table = [
        ("run: ls\n\u{200B}rm ‹", "run: ls‹↵›‹U+200B›rm ‹U+2039›", ""),
        (&long, "HEAD ‹… ×61› TAIL", "B: whole"),
    ];
    for (intent, expected, beneath) in table {
        let expected = expected
            .replace("HEAD", &"ü".repeat(160))
            .replace("TAIL", &"x".repeat(80));
        let given = json!({"b": "whole"});
        let found = wording(Source::Builtin, Some(intent.to_owned()), &given);
        assert_eq!(found.action, expected);
        // What was cut is whole beneath it.
        assert_eq!(details(&found), beneath);
        let question = found.question(Words::ENGLISH, false);
        assert_eq!(question, format!("The assistant wants to {expected}"));
        assert!(!widens(&question) && widens(&found.question(Words::ENGLISH, true)));
    }
}

/// Every tool of our own has a name and a description for people, and every such text has
/// its tool.
#[test]
fn every_tool_has_its_words() {
    let words = Words::ENGLISH;
    for name in config::BUILTIN_TOOLS {
        for kind in ["tool", "about"] {
            assert!(
                words.find(&format!("{kind}.{name}")).is_some(),
                "{kind}.{name}"
            );
        }
    }
    for key in words.keys() {
        if let Some((_, name)) = key
            .split_once('.')
            .filter(|(kind, _)| ["tool", "about"].contains(kind))
        {
            assert!(
                [&config::BUILTIN_TOOLS[..], &[config::FIND_TOOLS]]
                    .concat()
                    .contains(&name),
                "{key}"
            );
        }
    }
}
