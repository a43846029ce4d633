//! Who sees, continues and changes what.

mod changed;
mod removed;
mod seen;
mod withdrawn;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::testing::*;
use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::Code;
use base::ids::{ConversationId, TurnId, UserId};

/// A household with a conversation for each audience. Each has a message and a reply
/// with its name in them, a callback, a turn that waits for an answer, a memory and a
/// schedule.
struct House {
    store: TestStore,
    people: BTreeMap<&'static str, (UserId, UserRole)>,
    made: BTreeMap<&'static str, (ConversationId, TurnId)>,
}

/// Name, owner, account, audience.
const MADE: &str = "
    diary       | ann |      | private
    kitchen     | ann |      | household
    holiday     | ann |      | bob
    party       | ann |      | gina
    bell        |     | door | household
    alarm       |     | door | bob, nobody
    reminder    | ann | door | private
    bins        | ann | door | household
";

/// Who, and the conversations that they see.
const SEEN: &str = "
    the server               | diary kitchen holiday party bell alarm reminder bins
    ann                      | diary kitchen holiday party bell reminder bins
    bob                      | kitchen holiday bell alarm bins
    root                     | kitchen bell bins
    gina                     | party
    ann, household only      | kitchen bell bins
    gina, household only     |
    account door             | bell alarm bins
    account window           |
    readers of diary         | diary kitchen holiday party bell reminder bins
    readers of holiday       | kitchen holiday bell bins
    readers of party         | party
    readers of kitchen       | kitchen bell bins
    readers of alarm         | kitchen bell alarm bins
    readers of bell          | kitchen bell bins
    readers of reminder      | diary kitchen holiday party bell reminder bins
";

fn once_at(next_at: Timestamp) -> Timing {
    Timing::once(next_at)
}

fn lines(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split('|').map(str::trim).collect())
}

fn audience(text: &str) -> Audience {
    match text {
        "private" => Audience::Private,
        "household" => Audience::Household,
        names => Audience::People(names.split(", ").map(str::to_owned).collect()),
    }
}

impl House {
    fn new() -> House {
        let store = TestStore::new();
        let roles = [
            ("root", UserRole::Admin),
            ("ann", UserRole::User),
            ("bob", UserRole::User),
            ("gina", UserRole::Viewer),
        ];
        let add = |(name, role)| {
            let id = store.add_user(name, role, "-").unwrap().id;
            (name, (id, role))
        };
        let people = roles.map(add).into();
        let mut house = House {
            store,
            people,
            made: BTreeMap::new(),
        };
        for line in lines(MADE) {
            let [name, owner, account, seen_by] = line[..] else {
                panic!("{line:?}")
            };
            let made = house.make(name, owner, account, &audience(seen_by));
            house.made.insert(name, made);
        }
        house
    }

    fn make(
        &self,
        name: &'static str,
        owner: &str,
        account: &str,
        audience: &Audience,
    ) -> (ConversationId, TurnId) {
        let store = &self.store;
        let owner = self.people.get(owner).map(|person| person.0);
        let new = NewTurn {
            owner,
            audience: audience.clone(),
            account: Some(account.to_owned()).filter(|account| !account.is_empty()),
            ..message(Target::New, name)
        };
        let begun = store.begin_turn(new).unwrap().into_inner();
        let turn = begun.turn().clone();
        let reply = testing::done(&format!("answered {name}"));
        store
            .finish_turn(
                turn.id,
                reply,
                Usage::default(),
                "m",
                Some(callback(name)),
                Vec::new(),
            )
            .unwrap();
        let waiting = begin(store, Target::Existing(turn.conversation_id), name);
        let far = Timestamp::from_millis(i64::MAX / 2);
        store
            .suspend_turn(
                waiting.id,
                vec![],
                waiting.audience_id,
                vec![question(name)],
                far,
            )
            .unwrap();
        let memory = NewMemory {
            owner_id: owner,
            seen_as: Some(turn.conversation_id),
            ..fact(&format!("remember {name}"), None)
        };
        store.remember(memory).unwrap();
        let schedule = NewSchedule {
            owner_id: owner,
            conversation_id: Some(turn.conversation_id),
            account: turn.account.clone(),
            ..NewSchedule::new(name, Some(once_at(far)))
        };
        store.add_schedule(&all(), schedule).unwrap();
        (turn.conversation_id, turn.id)
    }

    fn id(&self, name: &str) -> ConversationId {
        self.made[name].0
    }

    fn viewer(&self, who: &str) -> Viewer {
        if let Some(account) = who.strip_prefix("account ") {
            return Viewer::account(account);
        }
        if let Some(conversation) = who.strip_prefix("readers of ") {
            return Viewer::readers_of(self.id(conversation), &Readers::Household);
        }
        if who == "the server" {
            return Viewer::server();
        }
        let (name, only) = who.split_once(", ").unwrap_or((who, ""));
        let (id, role) = self.people[name];
        let viewer = Viewer::person(id, role);
        match only {
            "" => viewer,
            _ => viewer.household_only(),
        }
    }

    /// The names of what is found, in the order in which they were made.
    fn names(&self, found: impl IntoIterator<Item = ConversationId>) -> Vec<&'static str> {
        let found: Vec<_> = found.into_iter().collect();
        let name = |id: &ConversationId| {
            let of_id = self.made.iter().find(|(_, made)| made.0 == *id);
            *of_id.expect("it was made").0
        };
        let mut names: Vec<_> = found.iter().map(name).collect();
        names.sort_by_key(|name| self.id(name));
        names
    }
}
