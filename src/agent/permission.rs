//! Whether a tool may run: one pure function, and what follows from it.
//!
//! The contract knows three modes (section 2, `permission_mode`): `ask`,
//! `allow`, `deny`. `tool_permissions` overrides the mode for single tools; a
//! webhook account may narrow the outcome but never widen it; and a person may
//! have allowed a tool for the rest of one conversation.

use std::collections::BTreeMap;

use super::tool::output::shorten;
use super::tool::{Arguments, Source, Tool, Toolbox};
use crate::model::ToolSpec;
use config::{Permission, WebhookAccount};
use store::Store;

/// Characters of the arguments that a question to a person shows.
const ARGUMENT_CHARS: usize = 300;
/// Characters of a tool's [`Tool::intent`]: people should see a whole command.
const INTENT_CHARS: usize = 1_000;

/// How a webhook account restricts its turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Narrowing<'a> {
    /// The most that any tool may be permitted.
    pub mode: Option<Permission>,
    /// The only tools available; `None` means all.
    pub tools: Option<&'a [String]>,
}

impl<'a> Narrowing<'a> {
    /// The restrictions of a turn's account. If the account has been removed, a
    /// person is asked.
    pub fn of_account(account: Option<&'a WebhookAccount>) -> Narrowing<'a> {
        match account {
            Some(account) => Narrowing {
                mode: account.permission_mode,
                tools: account.tools.as_deref(),
            },
            None => Narrowing {
                mode: Some(Permission::Ask),
                tools: None,
            },
        }
    }
}

/// The rules of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// `permission_mode`.
    pub mode: Permission,
    /// `tool_permissions`.
    pub overrides: &'a BTreeMap<String, Permission>,
    /// Of the webhook account that the turn is for.
    pub narrowing: Option<Narrowing<'a>>,
}

/// Whether `tool` may run. An override of the tool wins over the mode; the
/// narrowing of the account then takes the lesser of both in the order deny,
/// ask, allow, and denies what is not on its list; and what would be asked is
/// allowed when a person allowed it for this conversation. What is denied
/// stays denied.
pub fn decide(tool: &str, rules: &Rules<'_>, allowed_in_conversation: bool) -> Permission {
    let mut verdict = rules.overrides.get(tool).copied().unwrap_or(rules.mode);
    if let Some(narrowing) = &rules.narrowing {
        if let Some(most) = narrowing.mode {
            verdict = lesser(verdict, most);
        }
        if narrowing
            .tools
            .is_some_and(|tools| tools.iter().all(|listed| listed != tool))
        {
            verdict = Permission::Deny;
        }
    }
    match verdict {
        Permission::Ask if allowed_in_conversation => Permission::Allow,
        verdict => verdict,
    }
}

/// The tools that are offered to the model: all that are not denied, in the
/// toolbox's order.
pub fn offered(toolbox: &Toolbox, rules: &Rules<'_>) -> Vec<ToolSpec> {
    toolbox
        .iter()
        .map(|tool| tool.spec())
        .filter(|spec| decide(&spec.name, rules, false) != Permission::Deny)
        .cloned()
        .collect()
}

/// The question for a person: what the tool is going to do, in its own words or
/// by its name and arguments. It is one line, cannot change the direction of the
/// text, and says how much is missing where it is cut.
pub fn reason(tool: &dyn Tool, arguments: &Arguments, store: &Store) -> String {
    if let Some(intent) = tool.intent(arguments, store) {
        return format!("The assistant wants to {}", shown(&intent, INTENT_CHARS));
    }
    let name = printable(&tool.spec().name);
    let action = match &tool.definition().source {
        Source::Builtin | Source::Custom => format!("run \"{name}\""),
        Source::Mcp(server) => {
            let server = printable(server);
            format!("use \"{name}\" of the MCP server \"{server}\"")
        }
    };
    if arguments.is_empty() {
        return format!("The assistant wants to {action}");
    }
    let arguments = serde_json::to_string(arguments).unwrap_or_default();
    let arguments = shown(&arguments, ARGUMENT_CHARS);
    format!("The assistant wants to {action} with {arguments}")
}

/// The beginning of an untrusted text, and how much is missing.
fn shown(text: &str, most: usize) -> String {
    let text = printable(text);
    let text = text.trim();
    let shortened = shorten(text, most);
    match text.chars().count().saturating_sub(most) {
        0 => shortened.into_owned(),
        missing => format!("{shortened} ({missing} more characters)"),
    }
}

/// The lesser of two permissions.
fn lesser(one: Permission, other: Permission) -> Permission {
    match (one, other) {
        (Permission::Deny, _) | (_, Permission::Deny) => Permission::Deny,
        (Permission::Ask, _) | (_, Permission::Ask) => Permission::Ask,
        (Permission::Allow, Permission::Allow) => Permission::Allow,
    }
}

/// The text with a space for each line break, control character and mark of
/// writing direction.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{061C}'
            | '\u{FEFF}' => ' ',
            control if control.is_control() => ' ',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Permission::{Allow, Ask, Deny};
    use super::*;
    use crate::tool::testing::Household;
    use crate::tool::{Definition, ToolContext};
    use base::testing::rows;

    /// What is decided once a person has allowed the tool for the conversation: an
    /// approval answers a question and widens nothing else.
    fn approved(decided: Permission) -> Permission {
        match decided {
            Ask => Allow,
            other => other,
        }
    }

    fn with_override(verdict: Option<Permission>) -> BTreeMap<String, Permission> {
        let other = ("other".to_owned(), Allow);
        verdict
            .map(|verdict| ("light".to_owned(), verdict))
            .into_iter()
            .chain([other])
            .collect()
    }

    #[test]
    fn an_override_wins_over_the_mode() {
        for (mode, of_tool, expected) in [
            (Ask, None, Ask),
            (Ask, Some(Ask), Ask),
            (Ask, Some(Allow), Allow),
            (Ask, Some(Deny), Deny),
            (Allow, None, Allow),
            (Allow, Some(Ask), Ask),
            (Allow, Some(Allow), Allow),
            (Allow, Some(Deny), Deny),
            (Deny, None, Deny),
            (Deny, Some(Ask), Ask),
            (Deny, Some(Allow), Allow),
            (Deny, Some(Deny), Deny),
        ] {
            let overrides = with_override(of_tool);
            let rules = Rules {
                mode,
                overrides: &overrides,
                narrowing: None,
            };
            let case = format!("{mode:?} {of_tool:?}");
            assert_eq!(decide("light", &rules, false), expected, "{case}");
            assert_eq!(decide("light", &rules, true), approved(expected), "{case}");
        }
    }

    #[test]
    fn an_account_narrows_and_never_widens() {
        // (what holds without the account, the account's mode, with it)
        let table = [
            (Ask, None, Ask),
            (Ask, Some(Ask), Ask),
            (Ask, Some(Allow), Ask),
            (Ask, Some(Deny), Deny),
            (Allow, None, Allow),
            (Allow, Some(Ask), Ask),
            (Allow, Some(Allow), Allow),
            (Allow, Some(Deny), Deny),
            (Deny, None, Deny),
            (Deny, Some(Ask), Deny),
            (Deny, Some(Allow), Deny),
            (Deny, Some(Deny), Deny),
        ];
        let listed = ["light".to_owned(), "door".to_owned()];
        let unlisted = ["door".to_owned()];
        let nothing: [String; 0] = [];
        for (before, mode, narrowed) in table {
            for (tools, on_the_list) in [
                (None, true),
                (Some(&listed[..]), true),
                (Some(&unlisted[..]), false),
                (Some(&nothing[..]), false),
            ] {
                // The same from the mode alone as from an override under any mode.
                for (general, of_tool) in [
                    (before, None),
                    (Ask, Some(before)),
                    (Allow, Some(before)),
                    (Deny, Some(before)),
                ] {
                    let overrides = with_override(of_tool);
                    let rules = Rules {
                        mode: general,
                        overrides: &overrides,
                        narrowing: Some(Narrowing { mode, tools }),
                    };
                    let expected = if on_the_list { narrowed } else { Deny };
                    let case = format!("{rules:?}");
                    assert_eq!(decide("light", &rules, false), expected, "{case}");
                    assert_eq!(decide("light", &rules, true), approved(expected), "{case}");
                }
            }
        }
    }

    #[test]
    fn what_is_denied_is_not_offered() {
        let toolbox = Toolbox::builtin();
        let names = |mode, overrides: &BTreeMap<String, Permission>, tools: Option<&[String]>| {
            let rules = Rules {
                mode,
                overrides,
                narrowing: Some(Narrowing { mode: None, tools }),
            };
            offered(&toolbox, &rules)
                .into_iter()
                .map(|spec| spec.name)
                .collect::<Vec<String>>()
        };
        let none = BTreeMap::new();
        assert_eq!(names(Ask, &none, None).len(), toolbox.iter().count());
        assert!(names(Deny, &none, None).is_empty());
        let some = BTreeMap::from([("recall".to_owned(), Ask), ("forget".to_owned(), Deny)]);
        assert_eq!(names(Deny, &some, None), ["recall"]);
        let list = ["forget".to_owned(), "recall".to_owned()];
        assert_eq!(names(Allow, &some, Some(&list)), ["recall"]);
    }

    #[test]
    fn a_turn_whose_account_is_gone_asks() {
        let account = WebhookAccount {
            name: "shop".to_owned(),
            incoming_path: "/in".to_owned(),
            outgoing_url: "http://127.0.0.1/".to_owned(),
            secret: None,
            model: None,
            permission_mode: Some(Deny),
            tools: Some(vec!["light".to_owned()]),
            secret_previous: None,
            timeout_seconds: None,
            max_attempts: 10,
            enabled: true,
            map: None,
        };
        let known = Narrowing::of_account(Some(&account));
        assert_eq!(known.mode, Some(Deny));
        assert_eq!(known.tools.map(<[String]>::len), Some(1));
        let gone = Narrowing::of_account(None);
        assert_eq!((gone.mode, gone.tools), (Some(Ask), None));
    }

    /// A tool that never runs.
    struct Switch {
        definition: Definition,
        intent: Option<String>,
    }

    impl Tool for Switch {
        fn definition(&self) -> &Definition {
            &self.definition
        }

        fn intent(&self, _: &Arguments, _: &Store) -> Option<String> {
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
                brings_outside_text: false,
            },
            intent: intent.map(str::to_owned),
        };
        reason(
            &switch,
            arguments.as_object().unwrap(),
            Household::new().store(),
        )
    }

    #[test]
    fn a_reason_is_one_honest_line() {
        let table = r#"
            custom  |              | {"room": "kitchen"} | run "light_switch" with {"room":"kitchen"}
            custom  |              | {}                  | run "light_switch"
            mcp     |              | {"a": "\u202E1"}    | use "light_switch" of the MCP server "lights" with {"a":" 1"}
            custom  |              | {"a": "LONG"}       | run "light_switch" with {"a":"SHORT… (108 more characters)
            builtin | run the command: ls¶rm -rf← x | {"a": 1} | run the command: ls  rm -rf  x
            builtin | VERY_LONG    | {}                  | LESS… (3 more characters)
        "#;
        for [source, intent, arguments, expected] in rows(table) {
            let source = match source {
                "custom" => Source::Custom,
                "mcp" => Source::Mcp("lights".to_owned()),
                _ => Source::Builtin,
            };
            let intent = intent.replace('¶', "\n\u{200B}").replace('←', "\u{202E}");
            let intent = intent.replace("VERY_LONG", &"x".repeat(1_003));
            let intent = Some(intent.as_str()).filter(|intent| !intent.is_empty());
            let arguments = arguments.replace("LONG", &"ü".repeat(400));
            let arguments = arguments.parse().unwrap();
            let expected = expected.replace("SHORT", &"ü".repeat(294));
            let expected = expected.replace("LESS", &"x".repeat(1_000));
            let found = reason_of(source, intent, arguments);
            assert_eq!(found, format!("The assistant wants to {expected}"));
        }
    }
}
