//! Messages that are written anew or deleted, and how people keep conversations for
//! themselves.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::household::{Household, Said, string};
use super::reference::{
    Actor, Conversation, ConversationNumber, Marks, Message, Outside, PersonNumber, Place,
    Reference, Refusal, Role,
};

/// Most messages of a conversation whose messages are changed: all are read at once.
const MOST_MESSAGES: usize = 200;

/// Characters of a title that is taken from a message.
const TITLE_CHARACTERS: usize = 60;

impl Household {
    pub(super) fn write_anew(&mut self) -> &'static str {
        let Some((number, place, id)) = self.message() else {
            return "nothing to write anew";
        };
        let (actor, way, text) = (self.actor_for(number, place), self.way(), self.text());
        let conversation = &self.reference.conversations[number];
        let request = json!({
            "type": "chat", "message": text, "conversation_id": conversation.id, "replaces": id,
        });
        let message = conversation.message(place).expect("it was chosen");
        let refused = message.is_reply || message.hidden_with.is_some();
        let allowed = self
            .reference
            .may_replace(actor, number, place)
            .and(refuse_if(refused))
            .and(refuse_if(self.reference.is_busy(number, place)));
        let answer = self.ask(actor, way, request.clone());
        if let Some(data) = self.compare(&request, answer, allowed) {
            let titles = self.reference.conversations[number].titles(place);
            let conversation = &mut self.reference.conversations[number];
            conversation.hide(place);
            let message = conversation.message_mut(place).expect("it was chosen");
            let root = *message.version_of.get_or_insert(place);
            let question = self.said(number, &text, Said::Question(actor.person()));
            let conversation = &mut self.reference.conversations[number];
            let version = conversation.message_mut(question).expect("just said");
            version.version_of = Some(root);
            conversation.retitle(&titles);
            self.said(number, string(&data["response"]), Said::Reply(question));
        }
        "write anew"
    }

    pub(super) fn select_version(&mut self) -> &'static str {
        let Some((number, place, id)) = self.message() else {
            return "nothing to select";
        };
        let (actor, way) = (self.actor_for(number, place), self.way());
        let request = json!({ "type": "select_version", "message_id": id });
        let conversation = &self.reference.conversations[number];
        let message = conversation.message(place).expect("it was chosen");
        let root = message.version_of;
        let is_with_others = message.hidden_with.is_some_and(|with| with != place);
        let shown = root.and_then(|root| conversation.shown_version(root));
        let refused = root.is_none() || is_with_others || shown.is_none();
        let allowed = self
            .reference
            .needs(actor, Role::User)
            .and(self.reference.visible(actor, number))
            .and(refuse_if(refused))
            .and(refuse_if(
                self.reference.is_busy(number, root.unwrap_or(place)),
            ));
        let answer = self.ask(actor, way, request.clone());
        if self.compare(&request, answer, allowed).is_some()
            && let Some(shown) = shown.filter(|shown| *shown != place)
        {
            let conversation = &mut self.reference.conversations[number];
            let titles = conversation.titles(place);
            conversation.hide(shown);
            conversation.show(place);
            conversation.retitle(&titles);
        }
        "select a version"
    }

    pub(super) fn delete_message(&mut self) -> &'static str {
        let Some((number, place, id)) = self.message() else {
            return "nothing to delete";
        };
        let (actor, way) = (self.actor_for(number, place), self.way());
        let request = json!({ "type": "delete_message", "message_id": id });
        let conversation = &self.reference.conversations[number];
        let message = conversation.message(place).expect("it was chosen");
        let is_with_others =
            message.version_of.is_some() && message.hidden_with.is_some_and(|with| with != place);
        let question = message.question;
        let doomed = conversation.goes_with(question);
        // What others asked there is not for everybody to delete.
        let asked_by_others = doomed.iter().any(|place| {
            let message = conversation.message(*place).expect("it is there");
            !message.is_reply && message.asker != actor.person()
        });
        let has_versions = conversation
            .message(question)
            .is_some_and(|question| question.version_of.is_some());
        let allowed = self
            .reference
            .may_replace(actor, number, place)
            .and(refuse_if(is_with_others))
            .and(refuse_if(self.reference.is_busy(number, question)))
            .and(match has_versions && asked_by_others {
                true => self.reference.may_change(actor, number),
                false => Ok(()),
            });
        let answer = self.ask(actor, way, request.clone());
        if self.compare(&request, answer, allowed).is_some() {
            self.deleted(number, question, &doomed);
        }
        "delete a message"
    }

    fn deleted(&mut self, number: ConversationNumber, question: Place, doomed: &BTreeSet<Place>) {
        let conversation = &mut self.reference.conversations[number];
        let titles = conversation.titles(question);
        let message = conversation.message(question);
        let root = message.and_then(|message| message.version_of);
        let was_shown = message.is_some_and(|message| message.hidden_with.is_none());
        for message in &conversation.messages {
            if doomed.contains(&message.place) {
                for file in &message.files {
                    self.reference.files[*file].is_deleted = true;
                }
            }
        }
        conversation
            .messages
            .retain(|message| !doomed.contains(&message.place));
        if let Some(root) = root {
            let left = conversation.versions(root);
            let before = left.iter().rev().find(|version| **version < question);
            if let Some(version) = before.or(left.first()).filter(|_| was_shown) {
                conversation.show(*version);
            }
            if let [only] = left[..] {
                let only = conversation.message_mut(only).expect("it is left");
                only.version_of = None;
            }
        }
        let places = conversation.messages.iter().map(|message| message.place);
        conversation.latest = places.max().unwrap_or(conversation.latest);
        conversation.retitle(&titles);
        if conversation.outside == Outside::Yes {
            conversation.outside = Outside::Unclear;
        }
    }

    /// Pins, archives or reads a conversation.
    pub(super) fn keep(&mut self) -> &'static str {
        let Some(number) = self.conversation() else {
            return "nothing to keep";
        };
        let ((person, actor), way) = (self.actor(), self.way());
        let conversation = &self.reference.conversations[number];
        let (id, latest) = (conversation.id.clone(), conversation.latest);
        let mut marks = self.reference.marks_of(person, number);
        let reads = self.random.below(2) == 0;
        let request = match reads {
            true => {
                marks.read_until = marks.read_until.max(Some(latest));
                json!({ "type": "mark_read", "conversation_id": id })
            }
            false => {
                marks.is_pinned = self.random.below(2) == 0;
                marks.is_archived = self.random.below(4) == 0;
                json!({
                    "type": "update_conversation", "conversation_id": id,
                    "pinned": marks.is_pinned, "archived": marks.is_archived,
                })
            }
        };
        let least = if reads { Role::Viewer } else { Role::User };
        let allowed = self
            .reference
            .needs(actor, least)
            .and(self.reference.visible(actor, number));
        let answer = self.ask(actor, way, request.clone());
        if self.compare(&request, answer, allowed).is_some() {
            self.reference.marks.insert((person, number), marks);
            self.kept.insert((person, id));
        }
        "keep"
    }

    pub(super) fn compare_marks(
        &self,
        person: PersonNumber,
        number: ConversationNumber,
        shown: &Value,
    ) {
        let marks = self.reference.marks_of(person, number);
        let expected = [
            ("pinned", marks.is_pinned),
            ("archived", marks.is_archived),
            ("unread", self.reference.is_unread(person, number)),
        ];
        for (name, expected) in expected {
            let name_of = self.name(person);
            assert_eq!(
                shown[name] == true,
                expected,
                "{name} of {shown} for {name_of}"
            );
        }
    }

    /// A message with its id; what is hidden is as it should be, too.
    fn message(&mut self) -> Option<(ConversationNumber, Place, String)> {
        let number = self.conversation()?;
        let conversation = &self.reference.conversations[number];
        let reader = self
            .present()
            .into_iter()
            .map(Actor::whole)
            .find(|reader| self.reference.visible(*reader, number).is_ok())?;
        if conversation.messages.is_empty() || conversation.messages.len() > MOST_MESSAGES {
            return None;
        }
        let (id, way) = (conversation.id.clone(), self.way());
        let mut found = Vec::new();
        for hidden in [false, true] {
            let request = json!({
                "type": "get_messages", "conversation_id": id,
                "limit": MOST_MESSAGES, "hidden": hidden,
            });
            let data = self.ask(reader, way, request).unwrap();
            found.extend(data["messages"].as_array().unwrap().iter().cloned());
        }
        // The order of the ids is that of the messages.
        found.sort_by_key(|message| string(&message["id"]).to_owned());
        let messages = &self.reference.conversations[number].messages;
        let texts: Vec<&str> = found.iter().map(|one| string(&one["content"])).collect();
        let expected: Vec<&str> = messages.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, expected, "all of {id}, hidden or not");
        // Mostly one that was asked, and often one that has versions.
        let versions: Vec<usize> = (0..messages.len())
            .filter(|place| messages[*place].version_of.is_some())
            .collect();
        let chosen = match self.random.below(4) {
            0 => self.random.below(found.len()),
            1 | 2 if !versions.is_empty() => versions[self.random.below(versions.len())],
            _ => self.random.below(found.len().div_ceil(2)) * 2,
        };
        let chosen = chosen.min(found.len() - 1);
        let messages = &self.reference.conversations[number].messages;
        let id = string(&found[chosen]["id"]).to_owned();
        Some((number, messages[chosen].place, id))
    }

    /// Mostly whoever asked it.
    fn actor_for(&mut self, number: ConversationNumber, place: Place) -> Actor {
        let message = self.reference.conversations[number].message(place);
        let asker = message.and_then(|message| message.asker);
        match asker.filter(|asker| self.reference.people[*asker].is_here) {
            Some(asker) if self.random.below(4) > 0 => Actor::whole(asker),
            _ => self.actor().1,
        }
    }
}

impl Reference {
    /// Whether the actor may replace or delete a message: whoever asked, and whoever may
    /// change the conversation.
    fn may_replace(
        &self,
        actor: Actor,
        number: ConversationNumber,
        place: Place,
    ) -> Result<(), Refusal> {
        self.needs(actor, Role::User)?;
        self.visible(actor, number)?;
        let asker = self.conversations[number]
            .message(place)
            .and_then(|message| message.asker);
        match asker.is_some() && asker == actor.person() {
            true => Ok(()),
            false => self.may_change(actor, number),
        }
    }

    /// Whether the turn of a message, or of a later one, waits for an answer.
    fn is_busy(&self, number: ConversationNumber, since: Place) -> bool {
        let mut approvals = self.approvals.iter();
        approvals.any(|one| one.conversation == number && self.waits(one) && one.question >= since)
    }

    pub fn marks_of(&self, person: PersonNumber, number: ConversationNumber) -> Marks {
        let marks = self.marks.get(&(person, number));
        marks.copied().unwrap_or_default()
    }

    /// Whether the newest message is new to a person: not if they asked for it themselves.
    fn is_unread(&self, person: PersonNumber, number: ConversationNumber) -> bool {
        let conversation = &self.conversations[number];
        let newest = conversation.message(conversation.latest);
        match self.marks_of(person, number).read_until {
            _ if conversation.shown().count() == 0 => false,
            Some(read_until) => conversation.latest > read_until,
            None => newest.is_some_and(|newest| newest.asker != Some(person)),
        }
    }
}

impl Conversation {
    fn message_mut(&mut self, place: Place) -> Option<&mut Message> {
        let mut messages = self.messages.iter_mut();
        messages.find(|message| message.place == place)
    }

    /// All versions, the oldest first.
    fn versions(&self, root: Place) -> Vec<Place> {
        let messages = self.messages.iter();
        let versions = messages.filter(|message| message.version_of == Some(root));
        versions.map(|message| message.place).collect()
    }

    fn shown_version(&self, root: Place) -> Option<Place> {
        let mut shown = self.shown();
        let version = shown.find(|message| message.version_of == Some(root));
        version.map(|message| message.place)
    }

    /// What is shown from a message on; not the late reply to an earlier one.
    fn from(&self, place: Place) -> Vec<Place> {
        let follows = |message: &&Message| message.place >= place && message.question >= place;
        let following = self.shown().filter(follows);
        following.map(|message| message.place).collect()
    }

    fn hide(&mut self, from: Place) {
        for place in self.from(from) {
            if let Some(message) = self.message_mut(place) {
                message.hidden_with = Some(from);
            }
        }
    }

    fn show(&mut self, version: Place) {
        for message in &mut self.messages {
            if message.hidden_with == Some(version) {
                message.hidden_with = None;
            }
        }
    }

    /// What is deleted with a question: its reply; if it has versions, all that follows it,
    /// with all versions of that.
    fn goes_with(&self, question: Place) -> BTreeSet<Place> {
        let root = self.message(question).and_then(|one| one.version_of);
        let mut doomed = BTreeSet::new();
        if root.is_none() {
            let of_turn = |one: &&Message| one.question == question;
            let of_turn = self.messages.iter().filter(of_turn);
            doomed.extend(of_turn.map(|message| message.place));
            return doomed;
        }
        let mut versions = vec![question];
        while let Some(version) = versions.pop() {
            let with = match self.message(version).and_then(|one| one.hidden_with) {
                None => self.from(version),
                Some(_) => {
                    let hidden = self.messages.iter();
                    let hidden = hidden.filter(|one| one.hidden_with == Some(version));
                    hidden.map(|message| message.place).collect()
                }
            };
            for place in with {
                if !doomed.insert(place) {
                    continue;
                }
                let of = self.message(place).and_then(|one| one.version_of);
                if let Some(of) = of.filter(|of| Some(*of) != root) {
                    let others = self.versions(of).into_iter();
                    let hidden_alone = |other: &Place| {
                        self.message(*other).and_then(|one| one.hidden_with) == Some(*other)
                    };
                    versions.extend(others.filter(hidden_alone));
                }
            }
        }
        doomed
    }

    /// The titles that it has by itself if it begins with a message or another version.
    fn titles(&self, place: Place) -> Vec<String> {
        let root = self.message(place).and_then(|one| one.version_of);
        let messages = self.messages.iter();
        let versions =
            messages.filter(|one| one.place == place || (root.is_some() && one.version_of == root));
        versions.map(|message| usual_title(&message.text)).collect()
    }

    /// The title follows what it was taken from.
    fn retitle(&mut self, former: &[String]) {
        if self
            .title
            .as_ref()
            .is_some_and(|title| former.contains(title))
        {
            let first = self.shown().find(|message| !message.is_reply);
            self.title = Some(first.map_or_else(String::new, |message| usual_title(&message.text)));
        }
    }
}

/// What a conversation is called that begins with this.
fn usual_title(text: &str) -> String {
    text.chars().take(TITLE_CHARACTERS).collect()
}

fn refuse_if(refused: bool) -> Result<(), Refusal> {
    match refused {
        true => Err(Refusal::Invalid),
        false => Ok(()),
    }
}
