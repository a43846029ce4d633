//! Programs that speak the model interfaces or the Model Context Protocol, with tokens of each
//! kind; and the whole household on another machine.

use serde_json::{Value, json};

use super::household::{Household, MOST_CONVERSATIONS, Said, string};
use super::reference::{
    Actor, Audience, Conversation, ConversationNumber, Outside, PersonNumber, Role, Token,
};
use super::world::{Program, Way};

/// What programs call their chats.
const CHATS: [&str; 2] = ["1", "2"];

/// A conversation that a program continues.
pub struct Replayed {
    number: ConversationNumber,
    /// What it was begun with, and alone is continued with.
    program: Program,
    /// What the program calls it, and whether it asked over `/mcp`.
    chat: Option<(&'static str, bool)>,
    /// Who saw it then.
    audience: Audience,
    /// What the program has sent and been answered there last.
    history: Vec<Value>,
}

impl Household {
    /// Somebody's program: with a token of theirs, or with one that speaks for several.
    fn program(&mut self) -> (PersonNumber, Program, Actor) {
        let person = self.person();
        let is_bot = self.random.below(4) == 0 && self.world.is_spoken_for(person);
        if is_bot {
            return (person, Program::Bot(person), Actor::whole(person));
        }
        let (person, actor) = self.actor();
        let Actor::Person { token, .. } = actor else {
            unreachable!("somebody");
        };
        (person, Program::Own(person, token), actor)
    }

    pub(super) fn ask_as_a_program(&mut self) -> &'static str {
        let ((person, program, actor), text) = (self.program(), self.text());
        if self.reference.role(person) < Role::User
            || self.reference.conversations.len() >= MOST_CONVERSATIONS
        {
            return "ask as a program";
        }
        let is_mcp = self.random.below(5) == 0;
        let chat = match self.random.below(3) {
            0 => Some((CHATS[self.random.below(CHATS.len())], is_mcp)),
            _ if is_mcp => Some((CHATS[0], true)),
            _ => None,
        };
        // Also one that another program has had, or another person's.
        let known = match self.replayed.len() {
            0 => None,
            count => Some(self.random.below(count + 1)).filter(|place| *place < count),
        };
        let known = known.filter(|_| !is_mcp);
        let before = known.map_or(Vec::new(), |place| self.replayed[place].history.clone());
        let mut history = before.clone();
        history.push(json!({ "role": "user", "content": text }));
        let name = chat.map(|(name, _)| name);
        let reply = match is_mcp {
            true => self
                .world
                .ask_over_mcp(program, name.unwrap_or_default(), &text),
            false => {
                let is_ollama = self.random.below(3) == 0;
                self.world
                    .complete(program, is_ollama, name, &json!(history))
            }
        };
        let reply = reply.unwrap();
        history.push(json!({ "role": "assistant", "content": reply }));
        let continued = self
            .replayed
            .iter()
            .filter(|one| one.program == program && one.chat == chat)
            .filter(|one| self.is_continued_by(one, &before))
            .map(|one| one.number)
            .max();
        let number = match continued {
            Some(number) => number,
            None => self.begun_by_a_program(person, actor, &before, &text),
        };
        self.exchanged(number, Some(person), &text, &reply);
        let mut replayed = self.replayed.iter_mut();
        match replayed.find(|one| one.number == number) {
            Some(one) => one.history = history,
            None => self.replayed.push(Replayed {
                number,
                program,
                chat,
                audience: self.reference.conversations[number].audience.clone(),
                history,
            }),
        }
        "ask as a program"
    }

    /// Whether who sees it is still the same, and it ends in this history, unless the program
    /// has named it. What a program has asked there last decides: one whose end was deleted is
    /// not found by what is left of it.
    fn is_continued_by(&self, replayed: &Replayed, before: &[Value]) -> bool {
        let conversation = &self.reference.conversations[replayed.number];
        if conversation.is_deleted || conversation.audience != replayed.audience {
            return false;
        }
        if replayed.chat.is_some() {
            return true;
        }
        let said: Vec<&str> = before.iter().map(|one| string(&one["content"])).collect();
        let messages = conversation.shown();
        let texts: Vec<&str> = messages.map(|one| one.text.as_str()).collect();
        last_question(before) == last_question(&replayed.history)
            && texts.ends_with(&said)
            && (texts.len() == said.len() || said.len() >= 8)
    }

    fn begun_by_a_program(
        &mut self,
        person: PersonNumber,
        actor: Actor,
        before: &[Value],
        text: &str,
    ) -> ConversationNumber {
        let request = json!({ "type": "list_conversations", "limit": 1 });
        let newest = self
            .ask(Actor::whole(person), Way::WebSocket, request)
            .unwrap();
        let id = string(&newest["conversations"][0]["id"]).to_owned();
        let is_new = |one: &Conversation| one.id != id;
        assert!(
            self.reference.conversations.iter().all(is_new),
            "{id} for {text}"
        );
        let audience = self.new_audience(actor);
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

    /// A program is asked to run a tool of its own: nobody else's result is taken.
    pub(super) fn call_a_program(&mut self) -> &'static str {
        let (person, program, actor) = self.program();
        let ((other, another, _), text) = (self.program(), self.text());
        let is_offered = |actor| {
            !matches!(
                actor,
                Actor::Person {
                    token: Token::Tools,
                    ..
                }
            )
        };
        if self.reference.role(person) < Role::User
            || self.reference.conversations.len() >= MOST_CONVERSATIONS
            || self.reference.people[person].tools.is_some()
            || !is_offered(actor)
        {
            return "call a program";
        }
        let message = format!("run light {{\"note\":\"{text}\"}}");
        let question = json!({ "role": "user", "content": message });
        let id = self.world.called(program, &json!([question])).unwrap();
        let result = json!({ "role": "tool", "tool_call_id": id, "content": "it shines" });
        let results = json!([question, result]);
        if another != program && self.reference.role(other) >= Role::User {
            let taken = self.world.complete(another, false, None, &results);
            assert_eq!(taken, Err("404".to_owned()), "{another:?} for {program:?}");
        }
        let reply = self.world.complete(program, false, None, &results).unwrap();
        let number = self.begun_by_a_program(person, actor, &[], &message);
        self.exchanged(number, Some(person), &message, &reply);
        self.reference.conversations[number].outside = Outside::Unclear;
        "call a program"
    }

    /// All that there is leaves, and comes back on an empty machine: everybody sees what they
    /// saw.
    pub(super) fn move_house(&mut self) {
        let present = self.present();
        let people = present.iter().map(|number| {
            let person = self.reference.people[*number].clone();
            (*number, person)
        });
        self.world.move_house(&people.collect::<Vec<_>>());
        // What nobody owns and nobody would see is private to whoever imports it.
        let nobody = |one: &&mut Conversation| match &one.audience {
            Audience::Household => false,
            Audience::People(people) => !people.iter().any(|number| present.contains(number)),
        };
        let left = self.reference.conversations.iter_mut();
        for conversation in left.filter(|one| one.owner.is_none()).filter(nobody) {
            conversation.owner = Some(0);
            conversation.audience = Audience::People([0].into());
        }
        self.has_moved = true;
    }
}

/// What was asked last in a history of questions and their replies.
fn last_question(history: &[Value]) -> Option<&Value> {
    history.iter().rev().nth(1)
}
