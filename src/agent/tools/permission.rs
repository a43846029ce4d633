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
//! then asked for again, whatever was allowed before. What the owner trusts does not count.
//!
//! An address that the model has made up may hold what the model was shown, as memories always
//! are: reading from one is asked for each time. Only `permission_mode: allow` means that nothing
//! is asked.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Arguments, Definition, Origin, READ_SKILL, Source, Toolbox};
use crate::model::ToolSpec;
use config::{Config, OWN_TOOLS, Permission, Person, WebhookAccount};

/// The tool that sets up turns.
const SCHEDULE: &str = "schedule";

/// Who causes a call, and by what that is narrowed.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    config: &'a Config,
    person: Option<&'a Person>,
    account: Option<&'a WebhookAccount>,
    /// Whether what the account may do unasked is lent to this actor.
    borrows: bool,
    /// The only tools of the token that the person used.
    tools: Option<&'a [String]>,
    /// Whether the account has been removed: nothing runs unasked.
    is_gone: bool,
    /// The webhook account whose caller reads what the model is shown.
    caller: Option<&'a str>,
}

/// What else a decision depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Whether a person allowed the tool before, for this actor in this conversation.
    pub is_granted: bool,
    /// Whether text from outside is among what the model is shown.
    pub is_outside: bool,
    /// Whether the call can carry out what the model is shown: it asks an address that
    /// nobody gave to the model, or one more than a turn may choose, or takes much to an MCP
    /// server.
    pub carries_out: bool,
    /// Whether the call tells what is said in the conversation to more people than read it,
    /// unasked.
    pub widens: bool,
    /// Whom the call concerns.
    pub reach: Reach,
}

/// Whom a call of a person's turn concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Others, too, as far as is known.
    #[default]
    Others,
    /// Whoever asks alone.
    Own,
    /// The same, and it only tells them something: a reminder of fixed text, or an item on a
    /// list. Text from outside does not make that ask again.
    Telling,
}

impl Reach {
    /// That of a call in a turn of a person.
    pub fn of(tool: &str, arguments: &Arguments) -> Reach {
        let word = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let has = |name: &str| match arguments.get(name) {
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            _ => false,
        };
        match (tool, word("action")) {
            ("lists", "show" | "add" | "check" | "uncheck") => Reach::Telling,
            ("schedule", "list" | "done" | "snooze") => Reach::Telling,
            ("schedule", "create") if has("people") || has("webhook") => Reach::Others,
            ("schedule", "create") if has("say") && !has("prompt") => Reach::Telling,
            ("schedule", "create" | "cancel") => Reach::Own,
            _ => Reach::Others,
        }
    }

    /// What a permission comes to for such a call.
    fn resolve(self, permission: Permission) -> Permission {
        match (permission, self) {
            (Permission::AllowOwn, Reach::Others) => Permission::Ask,
            (Permission::AllowOwn, Reach::Own | Reach::Telling) => Permission::Allow,
            (other, _) => other,
        }
    }
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
            borrows: true,
            tools: None,
            is_gone: account.is_some_and(|name| !config.has_account(name)),
            caller: None,
        }
    }

    /// The same for a person whose replies go to the account: it narrows them, and lends them
    /// nothing.
    #[must_use]
    pub fn borrowing_nothing(mut self) -> Actor<'a> {
        self.borrows = false;
        self
    }

    /// The same with a token that has only these tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Option<&'a [String]>) -> Actor<'a> {
        self.tools = tools;
        self
    }

    /// The same in a conversation of this webhook account. Its caller is shown later what
    /// tools find there, so that whoever asks has those of the household that the account
    /// has.
    #[must_use]
    pub fn read_by(mut self, caller: Option<&'a str>) -> Actor<'a> {
        self.caller = caller;
        self
    }

    /// Whether the actor is a person who may do less than others here, or whose token
    /// may.
    pub fn is_narrowed_person(&self) -> bool {
        let of_person = self.person.is_some_and(|person| {
            person
                .permission_mode
                .is_some_and(|mode| mode != Permission::Allow)
                || person.tools.is_some()
        });
        of_person || self.tools.is_some()
    }

    /// Whether this tool may run. What is denied stays denied, whoever allowed what.
    pub fn decide(&self, tool: &Definition, circumstances: Circumstances) -> Permission {
        let name = tool.spec.name.as_str();
        let config = self.config;
        let reach = circumstances.reach;
        let resolved = |permission: &Permission| reach.resolve(*permission);
        let general = config.tool_permissions.get(name).map(resolved);
        // What an admin has installed to be read, nobody needs to allow.
        let is_for_all = name == READ_SKILL && config.permission_mode == Permission::Ask;
        let general = general.or(is_for_all.then_some(Permission::Allow));
        if !self.may_have(tool) {
            return Permission::Deny;
        }
        let mut verdict = general.unwrap_or(config.permission_mode);
        // What it comes to where no permission lifts a mode or another permission.
        let mut strictest = lesser(verdict, config.permission_mode);
        let own = |permissions: &BTreeMap<String, Permission>| permissions.get(name).map(resolved);
        let gone = self.is_gone.then_some(Permission::Ask);
        let person = self.person;
        let account = self.account;
        // What a person may look up anyway is not asked for because they are a child.
        // Nor what their own permissions let them tell themselves.
        let is_telling = reach == Reach::Telling;
        let tells_unasked = is_telling
            && person
                .is_some_and(|person| own(&person.tool_permissions) == Some(Permission::Allow));
        let is_harmless =
            |mode: &Permission| *mode == Permission::Ask && (only_looks_up(tool) || tells_unasked);
        let mode_of_person = person.and_then(|person| person.permission_mode);
        let of_account = account.and_then(|account| own(&account.tool_permissions));
        let mode_of_account = account.and_then(|account| account.permission_mode);
        let both = || of_account.into_iter().chain(mode_of_account).reduce(lesser);
        for (own, mode) in [
            (
                person.and_then(|person| own(&person.tool_permissions)),
                mode_of_person.filter(|mode| !is_harmless(mode)),
            ),
            match self.borrows {
                true => (of_account, mode_of_account),
                false => (None, both()),
            },
            (None, gone),
        ] {
            verdict = narrowed(verdict, own, mode);
            strictest = narrowed(narrowed(strictest, None, own), None, mode);
        }
        if verdict == Permission::Ask && circumstances.is_granted {
            verdict = Permission::Allow;
        }
        let is_exception = strictest != Permission::Allow;
        let asks_again = circumstances.is_outside && !tool.is_read_only && !is_telling
            || circumstances.carries_out
            || circumstances.widens;
        if is_exception && asks_again {
            verdict = lesser(verdict, Permission::Ask);
        }
        verdict
    }

    /// What holds for a call that somebody has allowed: what is denied in general stays denied.
    pub fn once_allowed(&self, tool: &str, arguments: &Arguments, toolbox: &Toolbox) -> Permission {
        let circumstances = Circumstances {
            is_granted: true,
            ..Circumstances::default()
        };
        let tools = needed(tool, arguments).into_iter();
        let tools = tools.filter_map(|name| toolbox.get(name));
        least(tools.map(|tool| self.decide(tool.definition(), circumstances)))
    }

    /// What holds for a tool, as a list of tools shows it: nothing is known of a call.
    pub fn permission(&self, tool: &Definition) -> Permission {
        let telling = Circumstances {
            reach: Reach::Telling,
            ..Circumstances::default()
        };
        let is_schedule = tool.spec.name == SCHEDULE;
        match self.decide(tool, Circumstances::default()) {
            Permission::Ask if is_schedule && self.decide(tool, telling) == Permission::Allow => {
                Permission::AllowOwn
            }
            permission => permission,
        }
    }

    /// Whether this tool may run, asked for or not, where nothing speaks against it.
    pub fn may_use(&self, tool: &Definition) -> bool {
        self.decide(tool, Circumstances::default()) != Permission::Deny
    }

    /// Whether the actor's lists of tools have this one.
    pub fn may_have(&self, tool: &Definition) -> bool {
        let name = tool.spec.name.as_str();
        let listed = |tools: &[String]| tools.iter().any(|listed| listed == name);
        let of_person = self.person.and_then(|person| person.tools.as_deref());
        let of_account = match self.account {
            Some(account) => self.config.offers(account, name),
            None => !(self.is_gone && self.config.is_of_household(name)),
        };
        let is_offered = |name: &str, tool: &str| {
            let account = self.config.webhook_account(name);
            account.is_some_and(|account| self.config.offers(account, tool))
        };
        let of_caller = !self.config.is_of_household(name)
            || self.caller.is_none_or(|caller| is_offered(caller, name));
        // What it schedules would run with all tools of the person.
        let of_token = |tools: &[String]| listed(tools) && name != SCHEDULE;
        of_person.is_none_or(listed) && self.tools.is_none_or(of_token) && of_account && of_caller
    }

    /// The tools that are offered to the model: all that are not denied, in the
    /// toolbox's order.
    pub fn offered(&self, toolbox: &Toolbox) -> Vec<ToolSpec> {
        let tools = toolbox.iter().map(|tool| tool.definition());
        let offered = tools.filter(|tool| self.may_use(tool));
        offered.map(|tool| tool.spec.clone()).collect()
    }

    /// What the prompt says about the servers whose tools are offered, each once.
    pub fn server_notes(&self, toolbox: &Toolbox) -> Option<String> {
        let noted = toolbox.iter().filter_map(|tool| {
            let note = tool.server_note()?;
            self.may_use(tool.definition()).then_some(note)
        });
        let mut notes: Vec<&str> = noted.collect();
        notes.dedup();
        (!notes.is_empty()).then(|| notes.join("\n"))
    }
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

/// Whether a tool only finds what those who ask may see anyway: the time, memories,
/// conversations.
fn only_looks_up(tool: &Definition) -> bool {
    tool.is_read_only && tool.source == Source::Builtin && tool.origin != Origin::Outside
}

/// Whether one of these tools is described by text that the owner has not chosen: that of a
/// server that is not trusted and says something else than when it was set up.
pub fn describes_from_outside(toolbox: &Toolbox, offered: &[ToolSpec]) -> bool {
    offered
        .iter()
        .filter_map(|spec| toolbox.get(&spec.name))
        .any(|tool| tool.definition().origin == Origin::Outside && tool.is_changed())
}

/// Most bytes that the calls of a turn together take to servers that are not trusted, unasked,
/// while text from outside is shown to the model.
pub const MOST_CARRIED: usize = 1024;

/// Whether what a call takes along counts towards that.
pub fn carries(tool: &Definition) -> bool {
    matches!(tool.source, Source::Mcp(_)) && tool.origin == Origin::Outside
}

/// Whether this person may answer the approval of a tool for themselves, without
/// being an admin. Commands, custom tools and those of MCP servers only where
/// `approves` names them; never what reminds others or sends them something.
pub fn may_answer_own(
    config: &Config,
    person: &str,
    toolbox: &Toolbox,
    tool: &str,
    arguments: &Arguments,
) -> bool {
    if tool == SCHEDULE && Reach::of(tool, arguments) == Reach::Others {
        return false;
    }
    match config.person(person) {
        Some(person) if person.approves.is_some() => person.approves(tool),
        _ => {
            let found = toolbox.get(tool);
            OWN_TOOLS.contains(&tool)
                && found.is_some_and(|tool| tool.definition().source == Source::Builtin)
        }
    }
}

/// Whether an answer to a call of a person covers later calls like it. What reminds others or
/// sends them something is asked for each time: they may answer for their own alone.
pub fn may_last(tool: &str, reach: Reach) -> bool {
    tool != SCHEDULE || reach != Reach::Others
}

/// What a person may do with a tool once all its later calls are permitted.
pub fn lasting(tool: &str) -> Permission {
    match may_last(tool, Reach::Others) {
        true => Permission::Allow,
        false => Permission::AllowOwn,
    }
}

/// The tools whose permissions a call needs: its own, and that of `forget` where
/// `remember` replaces a memory.
pub fn needed<'a>(tool: &'a str, arguments: &Arguments) -> Vec<&'a str> {
    match tool == "remember" && arguments.contains_key("replaces") {
        true => vec![tool, "forget"],
        false => vec![tool],
    }
}

/// The memory that a call replaces, where it does not say who is to know the new one: those
/// who know the old one.
pub fn replaced<'a>(tool: &str, arguments: &'a Arguments) -> Option<&'a str> {
    let is_shared = arguments.get("share").is_some_and(|share| *share == true);
    let replaced = arguments.get("replaces")?.as_str()?;
    (tool == "remember" && !is_shared).then_some(replaced)
}

/// What is left where all of these hold.
pub fn least(permissions: impl IntoIterator<Item = Permission>) -> Permission {
    permissions.into_iter().fold(Permission::Allow, lesser)
}

/// The lesser of two permissions.
fn lesser(one: Permission, other: Permission) -> Permission {
    match (one, other) {
        (Permission::Deny, _) | (_, Permission::Deny) => Permission::Deny,
        (Permission::Ask, _) | (_, Permission::Ask) => Permission::Ask,
        (Permission::AllowOwn, _) | (_, Permission::AllowOwn) => Permission::AllowOwn,
        (Permission::Allow, Permission::Allow) => Permission::Allow,
    }
}
