//! What open windows are told, what is counted, and people who come and go.

use serde_json::{Value, json};

use super::household::{Household, messages_of, signed_in, string};
use super::reference::{Actor, Person, Role};
use super::world::Way;

impl Household {
    pub(super) fn look_at_windows(&mut self) -> &'static str {
        for window in self.windows() {
            let (person, token) = signed_in(window);
            let events = self.world.observed(person, token);
            let expected = std::mem::take(self.expected.get_mut(&window).unwrap());
            let name = self.name(person);
            assert_eq!(
                messages_of(&events),
                expected,
                "{name}'s window, {window:?}"
            );
            let asked = std::mem::take(self.asked.get_mut(&window).unwrap());
            assert_eq!(asked_of(&events), asked, "{name} is asked, {window:?}");
            for event in events.iter().filter(|event| !is_of_approval(event)) {
                if let Some(id) = event["conversation_id"].as_str() {
                    assert!(self.tellable[&window].contains(id), "{name}: {event}");
                    // How somebody keeps a conversation is told to nobody else.
                    let is_kept = self.kept.contains(&(person, id.to_owned()));
                    assert!(event["marks_only"] != true || is_kept, "{name}: {event}");
                }
            }
            let seen = self.listed_ids(window);
            self.tellable.insert(window, seen);
        }
        self.kept.clear();
        let sequence = self.world.sequence();
        self.marks.push((sequence, self.reference.messages));
        "windows"
    }

    pub(super) fn replay(&mut self) -> &'static str {
        if self.marks.is_empty() {
            return "replay";
        }
        let (since, messages) = self.marks[self.random.below(self.marks.len())];
        let (person, actor) = self.actor();
        let (_, token) = signed_in(actor);
        let Some(events) = self.world.replayed(person, token, since) else {
            return "replay of what is lost";
        };
        let seen = self.listed_ids(actor);
        for event in &events {
            if is_of_approval(event) {
                let id = string(&event["approval_id"]);
                let approval = self.reference.approvals.iter().find(|one| one.id == id);
                let approval = approval.unwrap_or_else(|| panic!("{event}"));
                let is_seen = self.reference.hears_of_approval(actor, approval);
                assert!(is_seen, "{} is replayed {event}", self.name(person));
            } else if let Some(id) = event["conversation_id"].as_str() {
                // Those who came later learn the bare id of what the household saw once.
                let was_common =
                    self.was_common.contains(id) && self.reference.role(person) >= Role::User;
                let was_seen = self.seen.contains(&(Actor::whole(person), id.to_owned()));
                let is_gone = event["event"] == "conversation.deleted" && (was_common || was_seen);
                let name = self.name(person);
                assert!(seen.contains(id) || is_gone, "{name} is replayed {event}");
            }
        }
        let mut expected: Vec<(usize, String, String)> = self
            .reference
            .listed(actor)
            .into_iter()
            .map(|number| &self.reference.conversations[number])
            .flat_map(|one| one.messages.iter().map(move |message| (one, message)))
            .filter(|(_, message)| message.place > messages && message.is_told)
            .map(|(one, message)| (message.place, one.id.clone(), self.with_files(message)))
            .collect();
        expected.sort();
        let expected: Vec<(String, String)> = expected
            .into_iter()
            .map(|(_, id, text)| (id, text))
            .collect();
        assert_eq!(
            messages_of(&events),
            expected,
            "replayed to {}",
            self.name(person)
        );
        "replay"
    }

    pub(super) fn counts(&mut self) -> &'static str {
        let ((person, actor), way) = (self.actor(), self.way());
        let info = self
            .ask(actor, way, json!({ "type": "server_info" }))
            .unwrap();
        let conversations = &self.reference.conversations;
        let (count, bytes) = match self.reference.is_admin(actor) {
            true => {
                let count = conversations.iter().filter(|one| !one.is_deleted).count();
                (count, Some(self.reference.bytes_of_files()))
            }
            false => (self.reference.listed(actor).len(), None),
        };
        let name = self.name(person);
        assert_eq!(info["conversations"], count, "for {name}, {actor:?}");
        assert_eq!(
            info["attachment_bytes"],
            json!(bytes),
            "for {name}, {actor:?}"
        );
        "counts"
    }

    pub(super) fn come_and_go(&mut self) -> &'static str {
        let person = self.person();
        if person != 0 && self.random.below(2) == 0 {
            self.look_at_windows();
            self.remove_person(person);
            return "go";
        }
        let gone: Vec<String> = (0..self.reference.people.len())
            .filter(|number| !self.reference.people[*number].is_here)
            .map(|number| self.name(number))
            .filter(|name| self.present().iter().all(|one| self.name(*one) != *name))
            .collect();
        if let Some(name) = gone.first() {
            let role = Role::ALL[self.random.below(3)];
            let request = json!({
                "type": "add_user", "name": name, "role": role.as_str(), "password": "correct horse",
            });
            self.ask(Actor::whole(0), Way::WebSocket, request).unwrap();
            self.reference.people.push(Person {
                name: name.clone(),
                role,
                is_here: true,
                tools: None,
                approves: None,
            });
            let number = self.reference.people.len() - 1;
            self.world.added(number, name);
            self.window(Actor::whole(number));
        }
        "come"
    }
}

fn is_of_approval(event: &Value) -> bool {
    string(&event["event"]).starts_with("approval.")
}

/// The id of each approval among events, and what it says of it.
fn asked_of(events: &[Value]) -> Vec<(String, String)> {
    events
        .iter()
        .filter(|event| is_of_approval(event))
        .map(|event| {
            let what = event["decision"].as_str().unwrap_or("requested");
            (string(&event["approval_id"]).to_owned(), what.to_owned())
        })
        .collect()
}
