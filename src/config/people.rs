//! `people` and `privacy`: what single people may do, and who sees what.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::collections::{list, map_of, object};
use super::declaration::{Rule, Setting, default_is_absent, section};
use super::key_path::KeyPath;
use super::notifications::Notifications;
use super::reader::Reader;
use super::rules::{Choice, Parsed, TOOL_NAME, Text, integer};
use super::tools::{PERMISSIONS, Permission, tool_permissions};
use base::language::Said;
use base::people::{Audience, folded};

/// The tools that people may answer for themselves where their `approves` does not
/// say otherwise: those for their own memories, reminders and files, and for lists and calendars.
pub const OWN_TOOLS: [&str; 11] = [
    "remember",
    "recall",
    "forget",
    "search_conversations",
    "schedule",
    "lists",
    "find_events",
    "edit_events",
    "list_files",
    "read_file",
    "write_file",
];

section! {
    /// `people.NAME`: how one person is narrowed, and where their notifications go.
    #[derive(Clone, Debug, Serialize)]
    pub struct Person {
        /// Narrows `permission_mode` for this person; it never widens it. `ask` does not ask for
        /// built-in tools that only look up the time, memories or conversations.
        pub permission_mode: Option<Permission> = PERMISSIONS.optional("the server's");
        /// The only tools offered to this person.
        pub tools: Option<Vec<String>> = list(TOOL_NAME).optional("all");
        /// Permissions of single tools for this person. They override `tool_permissions`, and are
        /// themselves narrowed by the person's `permission_mode` and `tools`. The answer "always"
        /// to an approval is stored here.
        pub tool_permissions: BTreeMap<String, Permission> = tool_permissions()
            .or(BTreeMap::new());
        /// Tokens that this person may use per calendar month (UTC), input and output together.
        /// When they are used up, the person's turns end with an error.
        pub monthly_tokens: Option<u64> = integer(1..=1_000_000_000_000_000)
            .optional("no limit but `budget.monthly_tokens`");
        /// Instructions that the system prompt has in addition when this person asks, such as
        /// "Answers for a nine year old".
        pub instructions: Option<String> = Text(1..=10_000).optional("none");
        /// Tools whose approvals this person may answer when they have asked for them themselves.
        /// Admins may answer all.
        pub approves: Option<Vec<String>> = list(TOOL_NAME)
            .optional("the built-in ones for memories, search, reminders, lists, calendars and files");
        /// How this person's phone is notified.
        pub notifications: Option<Notifications> = object::<Notifications>().optional("none");
    }
}

default_is_absent!(Person);

impl Person {
    /// Whether an admin has said what this person may do, use or be told: who is limited does
    /// not choose how they are answered. What notifies them and what "always" stored limits
    /// nobody.
    pub fn is_limited(&self) -> bool {
        let mode = self.permission_mode;
        mode.is_some_and(|mode| mode != Permission::Allow)
            || self.tools.is_some()
            || self.monthly_tokens.is_some()
            || self.instructions.is_some()
    }

    /// Whether this person may answer an approval of a tool that they have asked for
    /// themselves.
    pub fn approves(&self, tool: &str) -> bool {
        match &self.approves {
            Some(tools) => tools.iter().any(|named| named == tool),
            None => OWN_TOOLS.contains(&tool),
        }
    }
}

section! {
    /// The section `privacy`.
    #[derive(Clone, Debug, Serialize)]
    pub struct Privacy {
        /// Who sees a new conversation: `private` only the person who began it, `household`
        /// everybody with the role user or admin. Its owner can change that.
        pub conversations: Audience = IS_PRIVATE
            .then(|_, _, _, is_private| {
                Some(if is_private { Audience::Private } else { Audience::Household })
            })
            .or(Audience::Private);
    }
}

const IS_PRIVATE: Choice<bool> = Choice(&[("private", true), ("household", false)]);

/// A user's name. What looks like a comment is one too: a user may have that name,
/// and must not escape the limits by it.
const PERSON: Parsed<String> = Parsed {
    expected: "the name of a user: 1 to 64 characters without spaces",
    parse: |text| {
        let strange = |letter: char| letter.is_control() || letter.is_whitespace();
        let fits = (1..=64).contains(&text.chars().count()) && !text.contains(strange);
        fits.then(|| text.to_owned())
    },
};

/// The setting `people`: no name twice, in any case.
pub(super) fn people()
-> Setting<impl Rule<Output = BTreeMap<String, Person>>, BTreeMap<String, Person>> {
    map_of(PERSON, object::<Person>())
        .then(|reader, path, _, people: BTreeMap<String, Person>| {
            let mut known: BTreeMap<String, &String> = BTreeMap::new();
            for name in people.keys() {
                if let Some(twin) = known.insert(folded(name), name) {
                    reader.refuse(
                        &path.key(name),
                        format_args!("is the same user as {twin:?}"),
                    );
                }
            }
            Some(people)
        })
        .or(BTreeMap::new())
}

/// The audience of what no person owns: `household`, or names.
pub(super) struct SharedAudience;

impl Rule for SharedAudience {
    type Output = Audience;

    fn expected(&self) -> Said {
        "\"household\", or an array of names of users".into()
    }

    fn schema(&self) -> Value {
        json!({ "anyOf": [{ "const": "household" }, list(PERSON).schema()] })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Audience> {
        if value.is_array() {
            let names = list(PERSON).read(reader, path, value)?;
            return Some(Audience::People(names));
        }
        let text = reader.text(path, &self.expected(), value)?;
        let household = (text == "household").then_some(Audience::Household);
        reader.demand(path, &self.expected(), value, household)
    }
}
