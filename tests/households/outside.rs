//! What comes from programs: webhooks and the interface of OpenAI.

use serde_json::{Value, json};

use super::household::{Household, MOST_CONVERSATIONS, Said, string};
use super::reference::{Actor, Conversation, ConversationNumber, Outside, Role};
use super::world::Way;

impl Household {
    pub(super) fn webhook(&mut self) -> &'static str {
        let account = self.random.below(2);
        let text = self.text();
        // One of its own conversations, or a new one.
        let own: Vec<ConversationNumber> = (0..self.reference.conversations.len())
            .filter(|number| {
                self.reference
                    .visible(Actor::Account(account), *number)
                    .is_ok()
            })
            .collect();
        let known = match own.len() {
            0 => None,
            count => Some(own[self.random.below(count)]).filter(|_| self.random.below(4) > 0),
        };
        let mut body = json!({ "message": text, "user_id": "ann" });
        if let Some(number) = known {
            body["conversation_id"] = json!(self.reference.conversations[number].id);
        } else if self.reference.conversations.len() >= MOST_CONVERSATIONS {
            return "webhook";
        }
        let name = self.reference.accounts[account].0.clone();
        let audience = self.reference.audience_of_account(account);
        let data = self.world.post(&name, &body);
        let number = known.unwrap_or_else(|| {
            self.made(Conversation {
                id: string(&data["conversation_id"]).to_owned(),
                title: Some(text.clone()),
                owner: None,
                account: Some(account),
                audience,
                messages: Vec::new(),
                latest: 0,
                outside: Outside::No,
                is_deleted: false,
            })
        });
        self.exchanged(number, None, &text, &data["message"]);
        "webhook"
    }

    pub(super) fn complete(&mut self) -> &'static str {
        let (person, text) = (self.person(), self.text());
        let actor = Actor::whole(person);
        if self.reference.role(person) < Role::User
            || self.reference.conversations.len() >= MOST_CONVERSATIONS
        {
            return "complete";
        }
        let known = match self.replayed.len() {
            0 => None,
            count => Some(self.random.below(count + 1)).filter(|place| *place < count),
        };
        let mut history = known.map_or(Vec::new(), |place| self.replayed[place].2.clone());
        let before = history.clone();
        history.push(json!({ "role": "user", "content": text }));
        let reply = self.world.complete(person, &json!(history)).unwrap();
        history.push(json!({ "role": "assistant", "content": reply }));
        // One of its own that ends in this, and that began with it unless it is long. What a
        // program has asked there last decides: one whose end was deleted is not found by what
        // is left of it.
        let said: Vec<&str> = before.iter().map(|one| string(&one["content"])).collect();
        let ends_in_it = |number: ConversationNumber| {
            let messages = self.reference.conversations[number].shown();
            let texts: Vec<&str> = messages.map(|one| one.text.as_str()).collect();
            texts.ends_with(&said) && (texts.len() == said.len() || said.len() >= 8)
        };
        let continued = self
            .replayed
            .iter()
            .filter(|(number, by, newest)| {
                let is_gone = self.reference.conversations[*number].is_deleted;
                let is_newest = last_question(&before) == last_question(newest);
                *by == person && !is_gone && is_newest && ends_in_it(*number)
            })
            .max_by_key(|(number, ..)| *number);
        let number = match continued {
            Some((number, ..)) => *number,
            None => {
                let request = json!({ "type": "list_conversations", "limit": 1 });
                let newest = self.ask(actor, Way::WebSocket, request).unwrap();
                let audience = self.new_audience(actor);
                let id = string(&newest["conversations"][0]["id"]).to_owned();
                let is_new = |one: &Conversation| one.id != id;
                assert!(
                    self.reference.conversations.iter().all(is_new),
                    "{id} for {text}"
                );
                let number = self.made(Conversation {
                    id,
                    title: None,
                    owner: Some(person),
                    account: None,
                    audience,
                    messages: Vec::new(),
                    latest: 0,
                    outside: if before.is_empty() {
                        Outside::No
                    } else {
                        Outside::Unclear
                    },
                    is_deleted: false,
                });
                let mut asked = None;
                for message in before {
                    let said = match asked.take() {
                        Some(question) => Said::Reply(question),
                        None => Said::Question(Some(person)),
                    };
                    let text = string(&message["content"]);
                    let place = self.said_with(number, text, &[], said, false);
                    asked = matches!(said, Said::Question(_)).then_some(place);
                }
                number
            }
        };
        self.exchanged(number, Some(person), &text, &reply);
        let mut replayed = self.replayed.iter_mut();
        match replayed.find(|(continued, ..)| *continued == number) {
            Some((.., newest)) => *newest = history,
            None => self.replayed.push((number, person, history)),
        }
        "complete"
    }
}

/// What was asked last in a history of questions and their replies.
fn last_question(history: &[Value]) -> Option<&Value> {
    history.iter().rev().nth(1)
}
