//! Whether a tool may run: one decision, for whoever causes the call.
//!
//! The contract knows three modes (section 2, `permission_mode`): `ask`,
//! `allow`, `deny`. `tool_permissions` overrides the mode for single tools. An
//! [`Actor`] narrows that: the person who asked by `people.NAME`, a webhook account by
//! its settings, a schedule as the person who set it up. What a person has allowed
//! before holds for the actor that it was allowed for.
//!
//! **Text from outside** is what a webhook's caller, a web page, an MCP server, a
//! custom tool, a file or an attachment says. Where any of it is among what the model
//! is shown, the model may be doing what that text wants: a tool with an effect is
//! then asked for again, whatever was allowed before. Only `permission_mode: allow`
//! means that nothing is asked. What the owner trusts does not count.

mod reason;

use std::collections::BTreeMap;

use super::tool::{Definition, Origin, Source, Toolbox};
use crate::message_text::{OUTSIDE_TAG, fenced};
use crate::model::ToolSpec;
use config::{Config, HOUSEHOLD_TOOLS, OWN_TOOLS, Permission, Person, WebhookAccount};

pub use reason::reason;

/// Who causes a call, and by what that is narrowed.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    config: &'a Config,
    person: Option<&'a Person>,
    account: Option<&'a WebhookAccount>,
    /// The only tools of the token that the person used.
    tools: Option<&'a [String]>,
    /// Whether the person or the account has been removed: nothing runs unasked.
    is_gone: bool,
}

/// What else a decision depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Whether a person allowed the tool before, for this actor in this conversation.
    pub is_granted: bool,
    /// Whether text from outside is among what the model is shown.
    pub is_outside: bool,
}

impl<'a> Actor<'a> {
    /// The actor of a turn: the person of this name, and the account of this name that
    /// gets the reply; neither is narrowed if there is none.
    pub fn of_turn(config: &'a Config, account: Option<&str>, person: Option<&str>) -> Actor<'a> {
        let known = account.and_then(|name| config.webhook_account(name));
        Actor {
            config,
            person: person.and_then(|name| config.person(name)),
            account: known,
            tools: None,
            is_gone: account.is_some() && known.is_none(),
        }
    }

    /// The same with a token that has only these tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Option<&'a [String]>) -> Actor<'a> {
        self.tools = tools;
        self
    }

    /// The same, of a person who has been removed.
    #[must_use]
    pub fn gone(mut self) -> Actor<'a> {
        self.is_gone = true;
        self
    }

    /// Whether this tool may run. What is denied stays denied, whoever allowed what.
    pub fn decide(&self, tool: &Definition, circumstances: Circumstances) -> Permission {
        let name = tool.spec.name.as_str();
        let config = self.config;
        let general = config.tool_permissions.get(name).copied();
        if !self.is_offered(tool) {
            return Permission::Deny;
        }
        let mut verdict = general.unwrap_or(config.permission_mode);
        // What it comes to where no permission lifts a mode or another permission.
        let mut strictest = lesser(verdict, config.permission_mode);
        let own = |permissions: &BTreeMap<String, Permission>| permissions.get(name).copied();
        let gone = self.is_gone.then_some(Permission::Ask);
        let person = self.person;
        let account = self.account;
        for (own, mode) in [
            (
                person.and_then(|person| own(&person.tool_permissions)),
                person.and_then(|person| person.permission_mode),
            ),
            (
                account.and_then(|account| own(&account.tool_permissions)),
                account.and_then(|account| account.permission_mode),
            ),
            (None, gone),
        ] {
            verdict = narrowed(verdict, own, mode);
            strictest = narrowed(narrowed(strictest, None, own), None, mode);
        }
        if verdict == Permission::Ask && circumstances.is_granted {
            verdict = Permission::Allow;
        }
        let is_exception = strictest != Permission::Allow;
        if circumstances.is_outside && is_exception && has_effect(tool) {
            verdict = lesser(verdict, Permission::Ask);
        }
        verdict
    }

    /// Whether the actor's lists of tools have this one.
    fn is_offered(&self, tool: &Definition) -> bool {
        let name = tool.spec.name.as_str();
        let listed = |tools: &[String]| tools.iter().any(|listed| listed == name);
        let of_person = self.person.and_then(|person| person.tools.as_deref());
        let of_account = match self.account {
            Some(account) => account.offers(name),
            None => !(self.is_gone && HOUSEHOLD_TOOLS.contains(&name)),
        };
        of_person.is_none_or(listed) && self.tools.is_none_or(listed) && of_account
    }

    /// The tools that are offered to the model: all that are not denied, in the
    /// toolbox's order.
    pub fn offered(&self, toolbox: &Toolbox) -> Vec<ToolSpec> {
        toolbox
            .iter()
            .map(|tool| tool.definition())
            .filter(|tool| self.decide(tool, Circumstances::default()) != Permission::Deny)
            .map(described)
            .collect()
    }
}

/// A tool as the model is told of it. What an MCP server says about its tool is text
/// from outside, too.
fn described(tool: &Definition) -> ToolSpec {
    let mut spec = tool.spec.clone();
    if tool.origin == Origin::Outside && matches!(tool.source, Source::Mcp(_)) {
        spec.description = fenced(OUTSIDE_TAG, &spec.description);
    }
    spec
}

/// A verdict as somebody's own permission of the tool and mode narrow it. The
/// permission may lift what would be asked, never what is denied nor the own mode.
fn narrowed(verdict: Permission, own: Option<Permission>, mode: Option<Permission>) -> Permission {
    let verdict = match (verdict, own) {
        (Permission::Deny, _) | (_, None) => verdict,
        (_, Some(own)) => own,
    };
    mode.map_or(verdict, |mode| lesser(verdict, mode))
}

/// Whether a tool changes anything. What an MCP server says of its own tools is not
/// believed.
fn has_effect(tool: &Definition) -> bool {
    !tool.is_read_only || matches!(tool.source, Source::Mcp(_))
}

/// Whether text that the owner does not trust describes one of these tools.
pub fn describes_from_outside(toolbox: &Toolbox, offered: &[ToolSpec]) -> bool {
    let is_outside =
        |tool: &Definition| matches!(tool.source, Source::Mcp(_)) && tool.origin == Origin::Outside;
    offered
        .iter()
        .filter_map(|spec| toolbox.get(&spec.name))
        .any(|tool| is_outside(tool.definition()))
}

/// Whether this person may answer the approval of a tool for themselves, without
/// being an admin. Commands, custom tools and those of MCP servers only where
/// `approves` names them.
pub fn may_answer_own(config: &Config, person: &str, toolbox: &Toolbox, tool: &str) -> bool {
    match config.person(person) {
        Some(person) if person.approves.is_some() => person.approves(tool),
        _ => {
            let found = toolbox.get(tool);
            OWN_TOOLS.contains(&tool)
                && found.is_some_and(|tool| tool.definition().source == Source::Builtin)
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Permission::{Allow, Ask, Deny};
    use super::*;
    use base::people::Audience;
    use base::testing::rows;
    use config::{Channel, WebhookChannel};

    fn permission(word: &str) -> Option<Permission> {
        match word {
            "allow" => Some(Allow),
            "ask" => Some(Ask),
            "deny" => Some(Deny),
            "-" => None,
            other => panic!("{other}"),
        }
    }

    /// What is said of one tool.
    fn said(tool: &str, word: &str) -> BTreeMap<String, Permission> {
        let other = ("other".to_owned(), Allow);
        let own = permission(word).map(|own| (tool.to_owned(), own));
        own.into_iter().chain([other]).collect()
    }

    fn tools(word: &str) -> Option<Vec<String>> {
        (word != "-").then(|| word.split(',').map(str::to_owned).collect())
    }

    fn account(mode: &str, listed: &str, own: &str) -> WebhookAccount {
        WebhookAccount {
            name: "shop".to_owned(),
            incoming_path: "/in".to_owned(),
            outgoing_url: "http://127.0.0.1/".to_owned(),
            secret: None,
            model: None,
            permission_mode: permission(mode),
            tools: tools(listed),
            tool_permissions: said("light", own),
            secret_previous: None,
            timeout_seconds: None,
            max_attempts: 10,
            enabled: true,
            audience: Audience::Household,
            trusted: false,
            map: None,
        }
    }

    fn person(mode: &str, listed: &str, own: &str) -> Person {
        Person {
            permission_mode: permission(mode),
            tools: tools(listed),
            tool_permissions: said("light", own),
            monthly_tokens: None,
            instructions: None,
            approves: None,
        }
    }

    fn config(mode: Permission, general: &str) -> Config {
        Config {
            permission_mode: mode,
            tool_permissions: said("light", general),
            ..Config::default()
        }
    }

    fn light(is_read_only: bool, source: Source) -> Definition {
        Definition {
            spec: ToolSpec {
                name: "light".to_owned(),
                description: "Switches a light.".to_owned(),
                parameters: json!({}).into(),
            },
            source,
            is_read_only,
            origin: Origin::Outside,
            is_private: false,
        }
    }

    /// What is decided: as it is, with a grant, with text from outside, with both.
    fn decisions(actor: &Actor<'_>, tool: &Definition) -> String {
        let cases = [(false, false), (true, false), (false, true), (true, true)];
        let decided = cases.map(|(is_granted, is_outside)| {
            let circumstances = Circumstances {
                is_granted,
                is_outside,
            };
            match actor.decide(tool, circumstances) {
                Allow => "allow",
                Ask => "ask",
                Deny => "deny",
            }
        });
        decided.join(" ")
    }

    #[test]
    fn the_decision_about_a_tool_with_an_effect() {
        // The mode, the permission of the tool, and of who asks: mode, tools, and own
        // permission of the tool. Then what is decided: as it is, with a grant, with
        // text from outside, with both.
        let table = "
            ask   | -     | - - -             | ask allow ask ask
            ask   | ask   | - - -             | ask allow ask ask
            ask   | allow | - - -             | allow allow ask ask
            ask   | deny  | - - -             | deny deny deny deny
            allow | -     | - - -             | allow allow allow allow
            allow | allow | - - -             | allow allow allow allow
            allow | ask   | - - -             | ask allow ask ask
            allow | deny  | - - -             | deny deny deny deny
            deny  | -     | - - -             | deny deny deny deny
            deny  | allow | - - -             | allow allow ask ask
            deny  | ask   | - - -             | ask allow ask ask
            ask   | -     | - - allow         | allow allow ask ask
            ask   | ask   | - - allow         | allow allow ask ask
            ask   | deny  | - - allow         | deny deny deny deny
            ask   | allow | - - ask           | ask allow ask ask
            ask   | allow | - - deny          | deny deny deny deny
            ask   | -     | ask - allow       | ask allow ask ask
            allow | -     | ask - -           | ask allow ask ask
            allow | -     | ask - allow       | ask allow ask ask
            allow | -     | deny - allow      | deny deny deny deny
            allow | ask   | - - allow         | allow allow ask ask
            allow | -     | - - allow         | allow allow allow allow
            allow | -     | - light,door -    | allow allow allow allow
            allow | -     | - door -          | deny deny deny deny
            ask   | allow | - door allow      | deny deny deny deny
            deny  | -     | allow light allow | deny deny deny deny
        ";
        let effect = light(false, Source::Custom);
        for [mode, general, own, expected] in rows(table) {
            let config = config(permission(mode).unwrap(), general);
            let [own_mode, listed, own] = own.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{own}");
            };
            let person = person(own_mode, listed, own);
            let account = account(own_mode, listed, own);
            let of_person = Actor {
                person: Some(&person),
                ..Actor::of_turn(&config, None, None)
            };
            let of_account = Actor {
                account: Some(&account),
                ..Actor::of_turn(&config, None, None)
            };
            for actor in [of_person, of_account] {
                assert_eq!(decisions(&actor, &effect), expected, "{actor:?}");
            }
        }
    }

    #[test]
    fn a_token_s_tools_are_the_only_ones() {
        let config = config(Allow, "-");
        let effect = light(false, Source::Custom);
        for (listed, expected) in [("light", Allow), ("door", Deny)] {
            let tools = tools(listed);
            let actor = Actor::of_turn(&config, None, None).with_tools(tools.as_deref());
            assert_eq!(actor.decide(&effect, Circumstances::default()), expected);
        }
    }

    /// A person for whom an account gets the reply is narrowed by both.
    #[test]
    fn the_strictest_counts() {
        let config = config(Allow, "-");
        for (of_person, of_account, expected) in [
            ("ask", "-", Ask),
            ("-", "ask", Ask),
            ("ask", "deny", Deny),
            ("-", "-", Allow),
        ] {
            let (person, account) = (person(of_person, "-", "-"), account(of_account, "-", "-"));
            let actor = Actor {
                person: Some(&person),
                account: Some(&account),
                ..Actor::of_turn(&config, None, None)
            };
            let found = actor.decide(&light(false, Source::Custom), Circumstances::default());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_only_reads_is_not_asked_for_again() {
        let config = config(Ask, "allow");
        let actor = Actor::of_turn(&config, None, None);
        let decided = |is_read_only, source| decisions(&actor, &light(is_read_only, source));
        assert_eq!(decided(true, Source::Custom), "allow allow allow allow");
        // Of the server's own word nobody knows whether it holds.
        let foreign = Source::Mcp("attic".to_owned());
        assert_eq!(decided(true, foreign), "allow allow ask ask");
    }

    #[test]
    fn whoever_is_gone_is_asked_for() {
        let config = config(Allow, "-");
        let effect = light(false, Source::Custom);
        let removed = Actor::of_turn(&config, None, Some("ann")).gone();
        assert_eq!(decisions(&removed, &effect), "ask allow ask ask");
        let removed = Actor::of_turn(&config, Some("shop"), None);
        assert_eq!(decisions(&removed, &effect), "ask allow ask ask");
        let toolbox = Toolbox::builtin();
        let recall = toolbox.get("recall").unwrap().definition();
        assert_eq!(decisions(&removed, recall), "deny deny deny deny");
    }

    #[test]
    fn an_account_is_offered_the_household_s_tools_by_name_alone() {
        let names = |listed: &str| {
            let mut config = config(Allow, "-");
            config.channels = vec![Channel::Webhook(WebhookChannel {
                port: None,
                accounts: vec![account("-", listed, "-")],
            })];
            let actor = Actor::of_turn(&config, Some("shop"), None);
            let toolbox = Toolbox::from_config(&config);
            let offered = actor.offered(&toolbox).into_iter();
            offered.map(|spec| spec.name).collect::<Vec<String>>()
        };
        assert_eq!(names("-"), ["current_time", "web_fetch"]);
        assert_eq!(names("recall,light"), ["recall"]);
    }

    #[test]
    fn what_is_denied_is_not_offered() {
        let toolbox = Toolbox::builtin();
        let names = |mode, permissions: &[(&str, Permission)]| {
            let mut config = config(mode, "-");
            let permissions = permissions.iter();
            let permissions =
                permissions.map(|(name, permission)| ((*name).to_owned(), *permission));
            config.tool_permissions = permissions.collect();
            let offered = Actor::of_turn(&config, None, None).offered(&toolbox);
            offered
                .into_iter()
                .map(|spec| spec.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Ask, &[]).len(), toolbox.iter().count());
        assert!(names(Deny, &[]).is_empty());
        assert_eq!(
            names(Deny, &[("recall", Ask), ("forget", Deny)]),
            ["recall"]
        );
    }

    #[test]
    fn people_answer_for_their_own_things() {
        let mut config = config(Ask, "-");
        let mut narrowed = person("-", "-", "-");
        narrowed.approves = Some(vec!["light".to_owned()]);
        config.people = BTreeMap::from([("Bob".to_owned(), narrowed)]);
        let toolbox = Toolbox::from_config(&config);
        for (name, tool, may) in [
            ("ann", "remember", true),
            ("ann", "write_file", true),
            ("ann", "web_fetch", false),
            ("ann", "run_command", false),
            ("ann", "light", false),
            ("bob", "light", true),
            ("bob", "remember", false),
        ] {
            let found = may_answer_own(&config, name, &toolbox, tool);
            assert_eq!(found, may, "{name} {tool}");
        }
    }
}
