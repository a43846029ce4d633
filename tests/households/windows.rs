//! What open windows are told, what is counted, and people who come and go.

use serde_json::json;

use super::household::{Household, messages_of, person_actor};
use super::reference::{Person, Role};
use super::world::Way;

impl Household {
    pub(super) fn look_at_windows(&mut self) -> &'static str {
        for person in self.present() {
            let events = self.world.observed(person);
            let told: Vec<(String, String)> = messages_of(&events);
            let expected = std::mem::take(self.expected.get_mut(&person).unwrap());
            assert_eq!(
                told,
                expected,
                "what {}'s window is told",
                self.name(person)
            );
            for event in &events {
                if let Some(id) = event["conversation_id"].as_str() {
                    assert!(
                        self.tellable[&person].contains(id),
                        "{}: {event}",
                        self.name(person)
                    );
                }
            }
            let seen = self.listed_ids(person);
            self.tellable.insert(person, seen);
        }
        let sequence = self.world.sequence();
        self.marks.push((sequence, self.reference.messages));
        "windows"
    }

    pub(super) fn replay(&mut self) -> &'static str {
        if self.marks.is_empty() {
            return "replay";
        }
        let (since, messages) = self.marks[self.random.below(self.marks.len())];
        let person = self.person();
        let Some(events) = self.world.replayed(person, since) else {
            return "replay of what is lost";
        };
        let seen = self.listed_ids(person);
        for event in &events {
            if let Some(id) = event["conversation_id"].as_str() {
                // Those who came later learn the bare id of what the household saw once.
                let was_common =
                    self.was_common.contains(id) && self.reference.role(person) >= Role::User;
                let is_gone = event["event"] == "conversation.deleted"
                    && (was_common || self.seen.contains(&(person, id.to_owned())));
                let name = self.name(person);
                assert!(seen.contains(id) || is_gone, "{name} is replayed {event}");
            }
        }
        let mut expected: Vec<(usize, String, String)> = self
            .reference
            .listed(person_actor(person))
            .into_iter()
            .map(|number| &self.reference.conversations[number])
            .flat_map(|one| one.messages.iter().map(move |message| (one, message)))
            .filter(|(_, message)| message.place > messages && message.is_told)
            .map(|(one, message)| (message.place, one.id.clone(), message.text.clone()))
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
        let (person, way) = (self.person(), self.way());
        let actor = person_actor(person);
        let info = self
            .ask(actor, way, json!({ "type": "server_info" }))
            .unwrap();
        let count = match self.reference.role(person) {
            Role::Admin => {
                let conversations = &self.reference.conversations;
                conversations.iter().filter(|one| !one.is_deleted).count()
            }
            _ => self.reference.listed(person_actor(person)).len(),
        };
        assert_eq!(info["conversations"], count, "for {}", self.name(person));
        "counts"
    }

    pub(super) fn come_and_go(&mut self) -> &'static str {
        let person = self.person();
        if person != 0 && self.random.below(2) == 0 {
            self.look_at_windows();
            let name = self.name(person);
            let request = json!({ "type": "remove_user", "name": name });
            self.ask(person_actor(0), Way::WebSocket, request).unwrap();
            self.reference.remove(person);
            self.world.removed(person);
            self.expected.remove(&person);
            self.tellable.remove(&person);
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
            self.ask(person_actor(0), Way::WebSocket, request).unwrap();
            self.reference.people.push(Person {
                name: name.clone(),
                role,
                is_here: true,
            });
            let number = self.reference.people.len() - 1;
            self.world.added(number, name);
            self.window(number);
        }
        "come"
    }
}
