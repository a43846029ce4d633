//! One household: the choices that its steps make, and what everybody should be told.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};
use support::random::Random;

use super::approvals::Waiting;
use super::programs::Replayed;
use super::reference::{
    Actor, Audience, Conversation, ConversationNumber, FileNumber, Message, Outside, Person,
    PersonNumber, Place, Reference, Refusal, Role, Token,
};
use super::world::{Answered, Way, World};

/// What is talked about: no word is the beginning of another, and the offline model
/// uses none by itself.
const WORDS: [&str; 12] = [
    "alder", "birch", "cedar", "dogwood", "elm", "fir", "gingko", "hazel", "juniper", "larch",
    "maple", "oak",
];
/// Most conversations of one household: lists are compared whole.
pub(super) const MOST_CONVERSATIONS: usize = 30;

/// People who have a window with a narrowed token, too.
const NARROW_WINDOWS: usize = 2;

/// What a message is.
#[derive(Clone, Copy)]
pub(super) enum Said {
    /// It begins a turn, of a person or of a program.
    Question(Option<PersonNumber>),
    /// It ends the turn of this message.
    Reply(Place),
}

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
    pub(super) expected: HashMap<Actor, Vec<(String, String)>>,
    /// What each window should be told of approvals next: its id and what of it.
    pub(super) asked: HashMap<Actor, Vec<(String, String)>>,
    /// The conversations that a window may have been told of since it was asked.
    pub(super) tellable: HashMap<Actor, HashSet<String>>,
    /// The conversations that somebody saw at some time: they learn that it is gone.
    pub(super) seen: HashSet<(Actor, String)>,
    /// Who waits for the replies to what was asked, by the number of the approval.
    pub(super) waiting: BTreeMap<usize, Waiting>,
    /// The conversations that the household saw at some time.
    pub(super) was_common: HashSet<String>,
    /// Event numbers with the count of messages at that time.
    pub(super) marks: Vec<(u64, usize)>,
    /// Who kept a conversation in another way since windows were last looked at.
    pub(super) kept: HashSet<(PersonNumber, String)>,
    /// Whether all of it was exported and imported on another machine.
    pub(super) has_moved: bool,
    /// Conversations that programs continue. Each has one entry.
    pub(super) replayed: Vec<Replayed>,
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
        let people: Vec<Person> = people
            .into_iter()
            .map(|(name, role)| narrowed(&mut random, name, role))
            .collect();
        let tells_words = random.below(8) == 0;
        let world = World::start(&people, &accounts, setting, tells_words);
        let reference = Reference {
            people,
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
            asked: HashMap::new(),
            tellable: HashMap::new(),
            seen: HashSet::new(),
            waiting: BTreeMap::new(),
            was_common: HashSet::new(),
            marks: Vec::new(),
            kept: HashSet::new(),
            replayed: Vec::new(),
            has_moved: false,
        };
        household.world.listen();
        for window in household.windows() {
            household.window(window);
        }
        household
    }

    pub fn run(mut self, steps: usize) {
        for step in 0..steps {
            let what = self.random.below(142);
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
                75..79 => self.ask_as_a_program(),
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
                99..103 => self.put_file(),
                103..107 => self.read_file(),
                107..112 => self.call_a_tool(),
                112 => self.call_by_webhook(),
                113..118 => self.answer(),
                118 => self.approvals(),
                119..128 => self.write_anew(),
                128..133 => self.select_version(),
                133..136 => self.delete_message(),
                136..139 => self.keep(),
                139 => self.schedules(),
                _ => self.call_a_program(),
            };
            if is_verbose() {
                println!("{step}: {name}");
            }
        }
        self.look_at_windows();
        self.compare_lists();
        self.move_house();
        self.compare_lists();
    }

    fn compare_lists(&mut self) {
        for person in self.present() {
            let actor = Actor::whole(person);
            self.compare_list(actor, Way::WebSocket);
            self.compare_memories(actor, Way::WebSocket);
        }
    }

    pub(super) fn present(&self) -> Vec<PersonNumber> {
        let people = &self.reference.people;
        (0..people.len())
            .filter(|number| people[*number].is_here)
            .collect()
    }

    /// What is open to be told: for everybody, and with a narrowed token for some.
    pub(super) fn windows(&self) -> Vec<Actor> {
        let all = |number| [Token::Whole, Token::Household].map(|token| (number, token));
        self.present()
            .into_iter()
            .flat_map(all)
            .filter(|(number, token)| *token == Token::Whole || *number < NARROW_WINDOWS)
            .map(|(number, token)| Actor::Person { number, token })
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
            Actor::Person { number, token } if self.is_private && token != Token::Household => {
                Audience::People(BTreeSet::from([number]))
            }
            _ => Audience::Household,
        }
    }

    /// Somebody with one of their tokens.
    pub(super) fn actor(&mut self) -> (PersonNumber, Actor) {
        let number = self.person();
        let token = match self.random.below(16) {
            0 | 1 if self.world.has_token(number, Token::Household) => Token::Household,
            2 if self.world.has_token(number, Token::Tools) => Token::Tools,
            _ => Token::Whole,
        };
        (number, Actor::Person { number, token })
    }

    pub(super) fn ask(&mut self, actor: Actor, way: Way, request: Value) -> Answered {
        let (number, token) = signed_in(actor);
        let answer = self.world.ask(number, token, way, &request);
        if is_verbose() {
            println!("{actor:?}, {way:?}: {request}: {answer:?}");
        }
        answer
    }

    pub(super) fn window(&mut self, window: Actor) {
        let (number, token) = signed_in(window);
        self.world.observed(number, token);
        self.expected.insert(window, Vec::new());
        self.asked.insert(window, Vec::new());
        let seen = self.listed_ids(window);
        self.seen.extend(seen.iter().map(|id| (window, id.clone())));
        self.tellable.insert(window, seen);
    }

    pub(super) fn listed_ids(&self, actor: Actor) -> HashSet<String> {
        let listed = self.reference.listed(actor);
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
        for window in self.windows() {
            if self.reference.visible(window, number).is_ok()
                && let Some(tellable) = self.tellable.get_mut(&window)
            {
                tellable.insert(id.clone());
                self.seen.insert((window, id.clone()));
            }
        }
    }

    pub(super) fn made(&mut self, conversation: Conversation) -> ConversationNumber {
        let number = self.reference.conversations.len();
        self.reference.conversations.push(conversation);
        self.became_visible(number);
        number
    }

    pub(super) fn said(&mut self, number: ConversationNumber, text: &str, said: Said) -> Place {
        self.said_with(number, text, &[], said, true)
    }

    pub(super) fn said_with(
        &mut self,
        number: ConversationNumber,
        text: &str,
        files: &[FileNumber],
        said: Said,
        is_told: bool,
    ) -> Place {
        self.reference.messages += 1;
        let place = self.reference.messages;
        let conversation = &mut self.reference.conversations[number];
        let (is_reply, question, asker) = match said {
            Said::Question(asker) => (false, place, asker),
            Said::Reply(question) => {
                let asked = conversation.message(question);
                (true, question, asked.and_then(|asked| asked.asker))
            }
        };
        conversation.messages.push(Message {
            is_reply,
            is_told,
            text: text.to_owned(),
            files: files.to_vec(),
            place,
            question,
            asker,
            version_of: None,
            hidden_with: None,
        });
        conversation.latest = place;
        let id = conversation.id.clone();
        if !files.is_empty() {
            conversation.outside = Outside::Yes;
        }
        for file in files {
            self.reference.files[*file].conversation = Some(number);
        }
        if !is_told {
            return place;
        }
        let told = self.reference.conversations[number].messages.last();
        let told = self.with_files(told.expect("it has just been said"));
        for window in self.windows() {
            if self.reference.visible(window, number).is_ok()
                && let Some(expected) = self.expected.get_mut(&window)
            {
                expected.push((id.clone(), told.clone()));
            }
        }
        place
    }

    /// A message as [`shown`] has it.
    pub(super) fn with_files(&self, message: &Message) -> String {
        let ids = message.files.iter();
        ids.fold(message.text.clone(), |text, file| {
            format!("{text} [{}]", self.reference.files[*file].id)
        })
    }

    pub(super) fn exchanged(
        &mut self,
        number: ConversationNumber,
        asker: Option<PersonNumber>,
        text: &str,
        reply: &Value,
    ) {
        let question = self.said(number, text, Said::Question(asker));
        self.said(number, string(reply), Said::Reply(question));
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

/// Whether to say what every step does.
fn is_verbose() -> bool {
    std::env::var_os("VERBOSE").is_some()
}

/// A person with limits as the configuration may have them.
fn narrowed(random: &mut Random, name: String, role: Role) -> Person {
    let (tools, approves): (Option<&[&str]>, Option<&[&str]>) = match random.below(8) {
        0 => (Some(&["remember", "recall", "search_conversations"]), None),
        1 => (None, Some(&["lamp"])),
        2 => (None, Some(&[])),
        _ => (None, None),
    };
    Person {
        name,
        role,
        is_here: true,
        tools,
        approves,
    }
}

/// Who it is and what signed them in.
pub(super) fn signed_in(actor: Actor) -> (PersonNumber, Token) {
    match actor {
        Actor::Person { number, token } => (number, token),
        Actor::Account(_) => panic!("an account sends no commands"),
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

/// The text of a message, and the ids of its files.
pub(super) fn shown(message: &Value) -> String {
    let files = message["attachments"].as_array().into_iter().flatten();
    files.fold(string(&message["content"]).to_owned(), |text, file| {
        format!("{text} [{}]", string(&file["attachment_id"]))
    })
}

/// Conversation and content of each message among events.
pub(super) fn messages_of(events: &[Value]) -> Vec<(String, String)> {
    events
        .iter()
        .filter(|event| event["event"] == "message.created")
        .map(|event| {
            let text = shown(&event["message"]);
            (string(&event["conversation_id"]).to_owned(), text)
        })
        .collect()
}
