//! The reference: who sees what and who may change what, as the handbook's page on
//! privacy says it, over plain vectors. No database, no cache, nothing clever.

mod calls;

use std::collections::{BTreeMap, BTreeSet};

/// A person, by their place in [`Reference::people`].
pub type PersonNumber = usize;
/// A conversation, by its place in [`Reference::conversations`].
pub type ConversationNumber = usize;
/// The place of a message among all of the household.
pub type Place = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Viewer,
    User,
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::User, Role::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::User => "user",
            Role::Admin => "admin",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Person {
    pub name: String,
    pub role: Role,
    /// False once the account was removed.
    pub is_here: bool,
    /// The only tools that the person is offered, if they are narrowed.
    pub tools: Option<&'static [&'static str]>,
    /// The tools that the person may answer for themselves, if that is set.
    pub approves: Option<&'static [&'static str]>,
}

/// What a token is narrowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    Whole,
    /// What the household shares.
    Household,
    /// The tools [`OF_TOKEN`].
    Tools,
}

impl Token {
    pub const ALL: [Token; 3] = [Token::Whole, Token::Household, Token::Tools];
}

/// The tools of a token that is narrowed to some.
pub const OF_TOKEN: [&str; 2] = ["recall", "lamp"];

/// Who acts: a person with a token, or a webhook account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    Person { number: PersonNumber, token: Token },
    Account(usize),
}

impl Actor {
    /// A person who signed in with all that is theirs.
    pub fn whole(number: PersonNumber) -> Actor {
        Actor::Person {
            number,
            token: Token::Whole,
        }
    }

    pub fn person(self) -> Option<PersonNumber> {
        match self {
            Actor::Person { number, .. } => Some(number),
            Actor::Account(_) => None,
        }
    }

    /// Who asks.
    pub fn asker(self) -> Asker {
        match self {
            Actor::Person { number, .. } => Asker::Person(number),
            Actor::Account(account) => Asker::Account(account),
        }
    }
}

/// Who had the assistant ask for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    Person(PersonNumber),
    Account(usize),
}

/// Who sees a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    Household,
    /// These people; a private thing has its owner alone.
    People(BTreeSet<PersonNumber>),
}

#[derive(Clone, Debug)]
pub struct Message {
    pub is_reply: bool,
    /// Whether open windows are told of it: not of what was there before.
    pub is_told: bool,
    pub text: String,
    /// The files that it carries.
    pub files: Vec<FileNumber>,
    /// Its place among all messages of the household.
    pub place: Place,
    /// The message that began its turn: itself, or what it replies to.
    pub question: Place,
    /// The person who began that turn.
    pub asker: Option<PersonNumber>,
    /// The oldest version of it, once there are several.
    pub version_of: Option<Place>,
    /// The version with which it is hidden: itself, or what it follows.
    pub hidden_with: Option<Place>,
}

/// Whether text from outside is among what the model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    No,
    /// It depends on what a search has quoted, or a program brought along.
    Unclear,
    Yes,
}

#[derive(Clone, Debug)]
pub struct Conversation {
    pub id: String,
    /// Not known where a client brought its history along.
    pub title: Option<String>,
    pub owner: Option<PersonNumber>,
    pub account: Option<usize>,
    pub audience: Audience,
    pub messages: Vec<Message>,
    /// The place of its newest message: what lists are ordered by.
    pub latest: Place,
    pub outside: Outside,
    pub is_deleted: bool,
}

impl Conversation {
    /// What people and the model are shown of it.
    pub fn shown(&self) -> impl DoubleEndedIterator<Item = &Message> {
        let messages = self.messages.iter();
        messages.filter(|message| message.hidden_with.is_none())
    }

    pub fn message(&self, place: Place) -> Option<&Message> {
        self.messages.iter().find(|message| message.place == place)
    }
}

/// A memory or a schedule.
#[derive(Clone, Debug)]
pub struct Thing {
    pub id: String,
    pub text: String,
    pub owner: Option<PersonNumber>,
    pub audience: Audience,
    pub is_deleted: bool,
}

/// An attachment, by its place in [`Reference::files`].
pub type FileNumber = usize;

#[derive(Clone, Debug)]
pub struct File {
    pub id: String,
    pub content: String,
    /// Who put it and what signed them in; a webhook's file has nobody.
    pub uploader: Option<Actor>,
    /// The conversation of the message that carries it.
    pub conversation: Option<ConversationNumber>,
    pub is_deleted: bool,
}

/// A call that somebody has to allow.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: String,
    /// The turn that makes the call.
    pub turn: String,
    pub tool: &'static str,
    pub asker: Asker,
    pub conversation: ConversationNumber,
    /// The message whose turn makes the call.
    pub question: Place,
    pub is_decided: bool,
}

/// What is to happen when the model calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    NotOffered,
    Asks,
    Runs,
}

/// What a command may answer beside data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotFound,
    Unauthorized,
    Invalid,
}

impl Refusal {
    pub fn code(self) -> &'static str {
        match self {
            Refusal::NotFound => "not_found",
            Refusal::Unauthorized => "unauthorized",
            Refusal::Invalid => "invalid_request",
        }
    }
}

/// A household as it should be.
#[derive(Default)]
pub struct Reference {
    pub people: Vec<Person>,
    /// With the names of those who see what comes in there; none is the household.
    pub accounts: Vec<(String, Option<Vec<String>>)>,
    pub conversations: Vec<Conversation>,
    pub memories: Vec<Thing>,
    pub schedules: Vec<Thing>,
    pub files: Vec<File>,
    pub approvals: Vec<Approval>,
    /// What needs no more asking: whose calls of which tool, in one conversation or,
    /// with none, always.
    pub grants: BTreeSet<(Option<ConversationNumber>, Asker, &'static str)>,
    pub messages: usize,
    /// What people keep of conversations for themselves.
    pub marks: BTreeMap<(PersonNumber, ConversationNumber), Marks>,
}

/// How one person keeps a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    pub is_pinned: bool,
    pub is_archived: bool,
    /// The newest message when it was last marked as read.
    pub read_until: Option<Place>,
}

impl Reference {
    pub fn role(&self, person: PersonNumber) -> Role {
        self.people[person].role
    }

    /// A narrowed token makes nobody an admin.
    pub fn role_of(&self, actor: Actor) -> Option<Role> {
        match actor {
            Actor::Account(_) => None,
            Actor::Person { number, token } => match token {
                Token::Whole => Some(self.role(number)),
                Token::Household | Token::Tools => Some(self.role(number).min(Role::User)),
            },
        }
    }

    /// Who sees a new conversation of this account.
    pub fn audience_of_account(&self, account: usize) -> Audience {
        let Some(names) = &self.accounts[account].1 else {
            return Audience::Household;
        };
        let is_named = |one: &Person| one.is_here && names.contains(&one.name);
        let people = (0..self.people.len()).filter(|number| is_named(&self.people[*number]));
        Audience::People(people.collect())
    }

    /// The whole of privacy in one function.
    pub fn sees(&self, actor: Actor, audience: &Audience) -> bool {
        match (actor, audience) {
            (Actor::Person { number, .. }, Audience::Household) => self.role(number) >= Role::User,
            (
                Actor::Person {
                    token: Token::Household,
                    ..
                },
                Audience::People(_),
            ) => false,
            (Actor::Person { number, .. }, Audience::People(people)) => people.contains(&number),
            (Actor::Account(_), _) => false,
        }
    }

    /// The conversation, unless the actor may not know that it exists.
    pub fn visible(&self, actor: Actor, number: ConversationNumber) -> Result<(), Refusal> {
        let conversation = &self.conversations[number];
        let is_own =
            matches!(actor, Actor::Account(account) if conversation.account == Some(account));
        match !conversation.is_deleted && (is_own || self.sees(actor, &conversation.audience)) {
            true => Ok(()),
            false => Err(Refusal::NotFound),
        }
    }

    /// Whether the actor may delete the conversation: what nobody owns and is not the
    /// household's, whoever sees it.
    pub fn may_delete(&self, actor: Actor, number: ConversationNumber) -> Result<(), Refusal> {
        self.needs(actor, Role::User)?;
        self.visible(actor, number)?;
        let conversation = &self.conversations[number];
        let is_left = conversation.owner.is_none() && conversation.audience != Audience::Household;
        match (actor, is_left) {
            (Actor::Person { .. }, true) => Ok(()),
            _ => self.may_change(actor, number),
        }
    }

    /// Whether the actor may rename or share the conversation.
    pub fn may_change(&self, actor: Actor, number: ConversationNumber) -> Result<(), Refusal> {
        self.needs(actor, Role::User)?;
        self.visible(actor, number)?;
        let conversation = &self.conversations[number];
        let Actor::Person { number: person, .. } = actor else {
            return Err(Refusal::Unauthorized);
        };
        let is_common =
            conversation.owner.is_none() || conversation.audience == Audience::Household;
        let may = conversation.owner == Some(person) || (self.is_admin(actor) && is_common);
        if may {
            Ok(())
        } else {
            Err(Refusal::Unauthorized)
        }
    }

    /// Whether the actor may share the conversation with these. What is made with a token
    /// for the household stays the household's.
    pub fn may_share(
        &self,
        actor: Actor,
        number: ConversationNumber,
        audience: &Audience,
    ) -> Result<(), Refusal> {
        match actor {
            Actor::Person {
                token: Token::Household,
                ..
            } if *audience != Audience::Household => Err(Refusal::Unauthorized),
            _ => self.may_change(actor, number),
        }
    }

    /// Whether the actor has this role.
    pub fn needs(&self, actor: Actor, role: Role) -> Result<(), Refusal> {
        match self.role_of(actor) {
            Some(own) if own < role => Err(Refusal::Unauthorized),
            _ => Ok(()),
        }
    }

    pub fn is_admin(&self, actor: Actor) -> bool {
        self.role_of(actor) == Some(Role::Admin)
    }

    /// The conversations that the actor sees, newest activity first.
    pub fn listed(&self, actor: Actor) -> Vec<ConversationNumber> {
        let mut listed: Vec<usize> = (0..self.conversations.len())
            .filter(|number| self.visible(actor, *number).is_ok())
            .collect();
        listed.sort_by_key(|number| std::cmp::Reverse(self.conversations[*number].latest));
        listed
    }

    /// The messages with this word in conversations that pass, newest first.
    pub fn found(
        &self,
        word: &str,
        sees: impl Fn(ConversationNumber) -> bool,
    ) -> Vec<(ConversationNumber, &Message)> {
        let mut found: Vec<_> = self
            .conversations
            .iter()
            .enumerate()
            .filter(|(number, _)| sees(*number))
            .flat_map(|(number, one)| one.shown().map(move |message| (number, message)))
            .filter(|(_, message)| has_word(&message.text, word))
            .collect();
        found.sort_by_key(|(_, message)| std::cmp::Reverse(message.place));
        found
    }

    /// Whether everybody who sees a thing of the first audience may see one of the
    /// second: what the model may be shown.
    pub fn is_seen_by_all_of(&self, readers: &Audience, audience: &Audience) -> bool {
        match (readers, audience) {
            (Audience::Household, Audience::Household) => true,
            (Audience::Household, Audience::People(_)) => false,
            (Audience::People(readers), _) => readers
                .iter()
                .filter(|number| self.people[**number].is_here)
                .all(|number| self.sees(Actor::whole(*number), audience)),
        }
    }

    /// Somebody's account is removed: what is private to them goes, what they shared
    /// stays without an owner.
    pub fn remove(&mut self, person: PersonNumber) {
        self.people[person].is_here = false;
        let name = &self.people[person].name;
        for (_, audience) in &mut self.accounts {
            if let Some(names) = audience {
                names.retain(|one| one != name);
            }
        }
        let alone = Audience::People(BTreeSet::from([person]));
        for conversation in &mut self.conversations {
            if conversation.owner == Some(person) {
                conversation.is_deleted |= conversation.audience == alone;
                conversation.owner = None;
            }
            forget(&mut conversation.audience, person);
            // What nobody can see any more goes, too.
            let is_unseen = conversation.audience == Audience::People(BTreeSet::new());
            conversation.is_deleted |= is_unseen && conversation.account.is_none();
        }
        for thing in self.memories.iter_mut() {
            if thing.owner == Some(person) {
                thing.is_deleted |= thing.audience == alone;
                thing.owner = None;
            }
            forget(&mut thing.audience, person);
        }
        for schedule in self.schedules.iter_mut() {
            schedule.is_deleted |= schedule.owner == Some(person);
        }
        for file in self.files.iter_mut() {
            let is_own = file.uploader.and_then(Actor::person) == Some(person);
            file.is_deleted |= is_own && file.conversation.is_none();
        }
    }
}

fn forget(audience: &mut Audience, person: PersonNumber) {
    if let Audience::People(people) = audience {
        people.remove(&person);
    }
}

/// Whether a text has this word, of ASCII letters and digits.
pub fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .any(|one| one == word)
}
