//! Whether a tool may run: one pure function, and what follows from it.
//!
//! The contract knows three modes (section 2, `permission_mode`): `ask`,
//! `allow`, `deny`. `tool_permissions` overrides the mode for single tools; a
//! webhook account may narrow the outcome but never widen it; and a person may
//! have allowed a tool for the rest of one conversation.

mod reason;

use std::collections::BTreeMap;

use super::tool::Toolbox;
use crate::model::ToolSpec;
use config::{Permission, WebhookAccount};

pub use reason::reason;

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

/// The lesser of two permissions.
fn lesser(one: Permission, other: Permission) -> Permission {
    match (one, other) {
        (Permission::Deny, _) | (_, Permission::Deny) => Permission::Deny,
        (Permission::Ask, _) | (_, Permission::Ask) => Permission::Ask,
        (Permission::Allow, Permission::Allow) => Permission::Allow,
    }
}

#[cfg(test)]
mod tests {
    use super::Permission::{Allow, Ask, Deny};
    use super::*;
    use base::people::Audience;

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
            tool_permissions: BTreeMap::new(),
            audience: Audience::Household,
            trusted: false,
            map: None,
        };
        let known = Narrowing::of_account(Some(&account));
        assert_eq!(known.mode, Some(Deny));
        assert_eq!(known.tools.map(<[String]>::len), Some(1));
        let gone = Narrowing::of_account(None);
        assert_eq!((gone.mode, gone.tools), (Some(Ask), None));
    }
}
