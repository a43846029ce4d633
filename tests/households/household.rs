//! One household: the choices that its steps make, and what everybody should be told.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};
use support::random::Random;

use super::reference::{
    Actor, Audience, Conversation, ConversationNumber, Message, Person, PersonNumber, Reference,
    Refusal, Role,
};
use super::world::{Answered, Way, World};

/// What is talked about: no word is the beginning of another, and the offline model
/// uses none by itself.
const WORDS: [&str; 12] = [
    "alder", "birch", "cedar", "dogwood", "elm", "fir", "gingko", "hazel", "juniper", "larch",
    "maple", "oak",
];
/// Most conversations of one household: lists are compared whole.
pub(super) const MOST_CONVERSATIONS: usize = 40;

/// One household: the server and what it should do.
pub struct Household {
    pub(super) random: Random,
    pub(super) world: World,
    pub(super) reference: Reference,
    /// Whether a new conversation is private.
    pub(super) is_private: bool,
    /// Makes every text unique.
    pub(super) texts: usize,
    /// What each window should be told next: conversation and text.
    pub(super) expected: HashMap<PersonNumber, Vec<(String, String)>>,
    /// The conversations that a window may have been told of since it was asked.
    pub(super) tellable: HashMap<PersonNumber, HashSet<String>>,
    /// The conversations that somebody saw at some time: they learn that it is gone.
    pub(super) seen: HashSet<(PersonNumber, String)>,
    /// The conversations that the household saw at some time.
    pub(super) was_common: HashSet<String>,
    /// Event numbers with the count of messages at that time.
    pub(super) marks: Vec<(u64, usize)>,
    /// Conversations that the interface of OpenAI continues, and what was said there.
    pub(super) replayed: Vec<(ConversationNumber, PersonNumber, Vec<Value>)>,
}

impl Household {
    pub fn new(seed: u64) -> Household {
        let mut random = Random::new(seed);
        let mut people = vec![("ann".to_owned(), Role::Admin)];
        for number in 1..3 + random.below(6) {
            let role = Role::ALL[random.below(3).max(random.below(3))];
            people.push((format!("person{number}"), role));
        }
        let names: Vec<&str> = people.iter().map(|(name, _)| name.as_str()).collect();
        let members = 1 + random.below(names.len() - 1);
        let accounts = json!({
            "shop": { "incoming_path": "/in/shop", "outgoing_url": "http://127.0.0.1:9/", "trusted": true },
            "door": {
                "incoming_path": "/in/door", "outgoing_url": "http://127.0.0.1:9/",
                "audience": names[..members], "trusted": true,
            },
        });
        let door = names[..members]
            .iter()
            .map(|name| name.to_string())
            .collect();
        let is_private = random.below(2) == 0;
        let setting = if is_private { "private" } else { "household" };
        let world = World::start(&people, &accounts, setting);
        let reference = Reference {
            people: people
                .into_iter()
                .map(|(name, role)| Person {
                    name,
                    role,
                    is_here: true,
                })
                .collect(),
            accounts: vec![("shop".to_owned(), None), ("door".to_owned(), Some(door))],
            ..Reference::default()
        };
        let mut household = Household {
            random,
            world,
            reference,
            is_private,
            texts: 0,
            expected: HashMap::new(),
            tellable: HashMap::new(),
            seen: HashSet::new(),
            was_common: HashSet::new(),
            marks: Vec::new(),
            replayed: Vec::new(),
        };
        for person in 0..household.reference.people.len() {
            household.window(person);
        }
        household
    }

    pub fn run(mut self, steps: usize) {
        for step in 0..steps {
            let what = self.random.below(100);
            let name = match what {
                0..12 => self.chat_anew(),
                12..27 => self.chat_on(),
                27..37 => self.list(),
                37..47 => self.read(),
                47..55 => self.search(),
                55..65 => self.share(),
                65..68 => self.rename(),
                68..71 => self.delete(),
                71..75 => self.webhook(),
                75..79 => self.complete(),
                79..82 => self.remember(),
                82..84 => self.recall(),
                84..86 => self.search_by_the_model(),
                86..88 => self.memories(),
                88..89 => self.forget(),
                89..91 => self.schedule(),
                91..94 => self.look_at_windows(),
                94..96 => self.replay(),
                96..98 => self.counts(),
                98 => self.come_and_go(),
                _ => self.schedules(),
            };
            if std::env::var("VERBOSE").is_ok() {
                println!("{step}: {name}");
            }
        }
        self.look_at_windows();
        for person in self.present() {
            let actor = person_actor(person);
            self.compare_list(actor, Way::WebSocket);
        }
    }

    pub(super) fn present(&self) -> Vec<PersonNumber> {
        let people = &self.reference.people;
        (0..people.len())
            .filter(|number| people[*number].is_here)
            .collect()
    }

    pub(super) fn person(&mut self) -> PersonNumber {
        let present = self.present();
        present[self.random.below(present.len())]
    }

    pub(super) fn way(&mut self) -> Way {
        match self.random.below(30) {
            0 => Way::Relay,
            1..10 => Way::Lines,
            _ => Way::WebSocket,
        }
    }

    pub(super) fn conversation(&mut self) -> Option<ConversationNumber> {
        match self.reference.conversations.len() {
            0 => None,
            count => Some(self.random.below(count)),
        }
    }

    pub(super) fn text(&mut self) -> String {
        self.texts += 1;
        let one = WORDS[self.random.below(WORDS.len())];
        let other = WORDS[self.random.below(WORDS.len())];
        format!("about {one} and {other} n{}", self.texts)
    }

    pub(super) fn word(&mut self) -> &'static str {
        WORDS[self.random.below(WORDS.len())]
    }

    pub(super) fn audience(&mut self, owner: Option<PersonNumber>) -> (Value, Audience) {
        match self.random.below(3) {
            0 => (json!("household"), Audience::Household),
            1 => {
                let people = owner.into_iter().collect();
                (json!("private"), Audience::People(people))
            }
            _ => {
                let mut people: BTreeSet<PersonNumber> = BTreeSet::new();
                for _ in 0..1 + self.random.below(2) {
                    people.insert(self.person());
                }
                let names: Vec<String> = people.iter().map(|one| self.name(*one)).collect();
                people.extend(owner);
                (json!(names), Audience::People(people))
            }
        }
    }

    pub(super) fn name(&self, person: PersonNumber) -> String {
        self.reference.people[person].name.clone()
    }

    pub(super) fn new_audience(&self, actor: Actor) -> Audience {
        match actor {
            Actor::Person {
                number,
                household_only: false,
            } if self.is_private => Audience::People(BTreeSet::from([number])),
            _ => Audience::Household,
        }
    }

    /// Somebody with one of their tokens.
    pub(super) fn actor(&mut self) -> (PersonNumber, Actor) {
        let number = self.person();
        let household_only = self.random.below(8) == 0 && self.world.has_narrow_token(number);
        let actor = Actor::Person {
            number,
            household_only,
        };
        (number, actor)
    }

    pub(super) fn ask(&mut self, actor: Actor, way: Way, request: Value) -> Answered {
        let Actor::Person {
            number,
            household_only,
        } = actor
        else {
            panic!("an account sends no commands");
        };
        self.world.ask(number, household_only, way, &request)
    }

    pub(super) fn window(&mut self, person: PersonNumber) {
        self.world.observed(person);
        self.expected.insert(person, Vec::new());
        let seen = self.listed_ids(person);
        self.seen.extend(seen.iter().map(|id| (person, id.clone())));
        self.tellable.insert(person, seen);
    }

    pub(super) fn listed_ids(&self, person: PersonNumber) -> HashSet<String> {
        let listed = self.reference.listed(person_actor(person));
        let conversations = &self.reference.conversations;
        listed
            .into_iter()
            .map(|number| conversations[number].id.clone())
            .collect()
    }

    pub(super) fn became_visible(&mut self, number: ConversationNumber) {
        let conversation = &self.reference.conversations[number];
        let id = conversation.id.clone();
        if conversation.audience == Audience::Household {
            self.was_common.insert(id.clone());
        }
        for person in self.present() {
            if self.reference.visible(person_actor(person), number).is_ok()
                && let Some(tellable) = self.tellable.get_mut(&person)
            {
                tellable.insert(id.clone());
                self.seen.insert((person, id.clone()));
            }
        }
    }

    pub(super) fn made(&mut self, conversation: Conversation) -> ConversationNumber {
        let number = self.reference.conversations.len();
        self.reference.conversations.push(conversation);
        self.became_visible(number);
        number
    }

    pub(super) fn said(
        &mut self,
        number: ConversationNumber,
        text: &str,
        is_reply: bool,
        is_told: bool,
    ) {
        self.reference.messages += 1;
        let place = self.reference.messages;
        let conversation = &mut self.reference.conversations[number];
        conversation.messages.push(Message {
            is_reply,
            is_told,
            text: text.to_owned(),
            place,
        });
        let id = conversation.id.clone();
        if !is_told {
            return;
        }
        for person in self.present() {
            if self.reference.visible(person_actor(person), number).is_ok()
                && let Some(expected) = self.expected.get_mut(&person)
            {
                expected.push((id.clone(), text.to_owned()));
            }
        }
    }

    pub(super) fn exchanged(&mut self, number: ConversationNumber, text: &str, reply: &Value) {
        self.said(number, text, false, true);
        self.said(number, reply.as_str().unwrap(), true, true);
    }

    pub(super) fn compare(
        &self,
        request: &Value,
        answer: Answered,
        allowed: Result<(), Refusal>,
    ) -> Option<Value> {
        match (&answer, allowed) {
            (Ok(data), Ok(())) => Some(data.clone()),
            (Err(code), Err(refusal)) if code == refusal.code() => None,
            _ => panic!("{request}: expected {allowed:?}, got {answer:?}"),
        }
    }
}

pub(super) fn person_actor(number: PersonNumber) -> Actor {
    Actor::Person {
        number,
        household_only: false,
    }
}

pub(super) fn string(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}

/// The ids with this prefix in a text, in their order.
pub(super) fn ids(text: &str, prefix: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with(prefix) && word.len() == prefix.len() + 13)
        .map(str::to_owned)
        .collect()
}

/// Conversation and text of each message among events.
pub(super) fn messages_of(events: &[Value]) -> Vec<(String, String)> {
    events
        .iter()
        .filter(|event| event["event"] == "message.created")
        .map(|event| {
            let text = string(&event["message"]["content"]).to_owned();
            (string(&event["conversation_id"]).to_owned(), text)
        })
        .collect()
}
