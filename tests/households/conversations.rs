//! Conversations: said, listed, read, searched, shared, renamed, deleted.

use serde_json::{Value, json};

use super::household::{Household, MOST_CONVERSATIONS, Said, shown, string};
use super::reference::{
    Actor, Audience, Conversation, ConversationNumber, FileNumber, Outside, Person, Refusal, Role,
};
use super::world::Way;

impl Household {
    pub(super) fn chat(
        &mut self,
        actor: Actor,
        way: Way,
        number: Option<ConversationNumber>,
        text: &str,
    ) -> Option<(ConversationNumber, Value)> {
        self.chat_with(actor, way, number, text, &[])
    }

    /// Says something, with these files.
    fn chat_with(
        &mut self,
        actor: Actor,
        way: Way,
        number: Option<ConversationNumber>,
        text: &str,
        files: &[FileNumber],
    ) -> Option<(ConversationNumber, Value)> {
        let mut request = json!({ "type": "chat", "message": text });
        if !files.is_empty() {
            let id = |file: &FileNumber| self.reference.files[*file].id.clone();
            request["attachments"] = files.iter().map(id).collect();
        }
        if let Some(number) = number {
            request["conversation_id"] = json!(self.reference.conversations[number].id);
        }
        let allowed = self
            .reference
            .needs(actor, Role::User)
            .and_then(|()| number.map_or(Ok(()), |number| self.reference.visible(actor, number)))
            .and_then(|()| {
                let mut files = files.iter();
                files.try_for_each(|file| self.reference.may_send(actor, *file))
            });
        let answer = self.ask(actor, way, request.clone());
        let data = self.compare(&request, answer, allowed)?;
        let number = number.unwrap_or_else(|| {
            let audience = self.new_audience(actor);
            self.made(Conversation {
                id: data["conversation_id"].as_str().unwrap().to_owned(),
                title: Some(text.to_owned()),
                owner: actor.person(),
                account: None,
                audience,
                messages: Vec::new(),
                latest: 0,
                outside: Outside::No,
                is_deleted: false,
            })
        });
        let question = self.said_with(number, text, files, Said::Question(actor.person()), true);
        self.said(number, string(&data["response"]), Said::Reply(question));
        Some((number, data["response"].clone()))
    }

    pub(super) fn chat_anew(&mut self) -> &'static str {
        if self.reference.conversations.len() < MOST_CONVERSATIONS {
            let ((_, actor), way, text) = (self.actor(), self.way(), self.text());
            let files = self.files_of(actor);
            self.chat_with(actor, way, None, &text, &files);
        }
        "chat"
    }

    pub(super) fn chat_on(&mut self) -> &'static str {
        if let Some(number) = self.conversation() {
            let ((_, actor), way, text) = (self.actor(), self.way(), self.text());
            let files = self.files_of(actor);
            self.chat_with(actor, way, Some(number), &text, &files);
        }
        "chat on"
    }

    pub(super) fn list(&mut self) -> &'static str {
        let ((_, actor), way) = (self.actor(), self.way());
        self.compare_list(actor, way);
        "list"
    }

    pub(super) fn compare_list(&mut self, actor: Actor, way: Way) {
        let Actor::Person { number: person, .. } = actor else {
            return;
        };
        let limit = 1 + self.random.below(60);
        let archived = self.random.below(2) == 0;
        let (mut found, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut request =
                json!({ "type": "list_conversations", "limit": limit, "archived": archived });
            if !cursor.is_null() {
                request["cursor"] = cursor;
            }
            let data = self.ask(actor, way, request).unwrap();
            found.extend(data["conversations"].as_array().unwrap().iter().cloned());
            cursor = data["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let mut listed = self.reference.listed(actor);
        listed.retain(|number| archived || !self.reference.marks_of(person, *number).is_archived);
        if self.has_moved {
            // By the newest message that is left.
            found.sort_by_key(|one| string(&one["id"]).to_owned());
            listed.sort_by_key(|number| self.reference.conversations[*number].id.clone());
        }
        let ids = |found: &[Value]| -> Vec<String> {
            found
                .iter()
                .map(|one| one["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let conversations = &self.reference.conversations;
        let expected: Vec<String> = listed
            .iter()
            .map(|number| conversations[*number].id.clone())
            .collect();
        assert_eq!(
            ids(&found),
            expected,
            "what {} is listed",
            self.name(person)
        );
        for (shown, number) in found.iter().zip(listed) {
            let conversation = &self.reference.conversations[number];
            assert_eq!(
                shown["message_count"],
                conversation.shown().count(),
                "{shown}"
            );
            if let Some(title) = &conversation.title {
                assert_eq!(shown["title"], *title, "{shown}");
            }
            assert_eq!(self.audience_of(shown), conversation.audience, "{shown}");
            let owner = conversation.owner.map(|owner| self.name(owner));
            assert_eq!(shown["owner"], json!(owner), "{shown}");
            self.compare_marks(person, number, shown);
        }
    }

    pub(super) fn audience_of(&self, shown: &Value) -> Audience {
        let by_name = |name: &Value| {
            let is_it = |one: &Person| one.is_here && one.name == name.as_str().unwrap_or_default();
            self.reference.people.iter().position(is_it)
        };
        match &shown["audience"] {
            Value::String(word) if word == "household" => Audience::Household,
            Value::Array(names) => {
                let named = names.iter().filter_map(by_name);
                Audience::People(named.chain(by_name(&shown["owner"])).collect())
            }
            _ => Audience::People(by_name(&shown["owner"]).into_iter().collect()),
        }
    }

    pub(super) fn read(&mut self) -> &'static str {
        if let Some(number) = self.conversation() {
            let ((_, actor), way) = (self.actor(), self.way());
            let id = self.reference.conversations[number].id.clone();
            let limit = 1 + self.random.below(40);
            let request = json!({ "type": "get_messages", "conversation_id": id, "limit": limit });
            let allowed = self.reference.visible(actor, number);
            let answer = self.ask(actor, way, request.clone());
            if let Some(data) = self.compare(&request, answer, allowed) {
                let messages = data["messages"].as_array().unwrap();
                let shown: Vec<String> = messages.iter().map(shown).collect();
                let messages = self.reference.conversations[number].shown();
                let with_files = |message| self.with_files(message);
                let expected: Vec<String> = messages.map(with_files).collect();
                let last = expected.len().saturating_sub(limit);
                assert_eq!(shown, expected[last..], "{request}");
            }
        }
        "read"
    }

    pub(super) fn search(&mut self) -> &'static str {
        let ((person, actor), way, word) = (self.actor(), self.way(), self.word());
        let limit = 1 + self.random.below(40);
        let request = json!({ "type": "search_messages", "query": word, "limit": limit,
            "order": "newest" });
        let allowed = self.reference.needs(actor, Role::User);
        let answer = self.ask(actor, way, request.clone());
        if let Some(data) = self.compare(&request, answer, allowed) {
            let shown: Vec<(&str, &str)> = data["messages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| (string(&one["conversation_id"]), string(&one["role"])))
                .collect();
            let found = self
                .reference
                .found(word, |number| self.reference.visible(actor, number).is_ok());
            let expected: Vec<(&str, &str)> = found
                .iter()
                .take(limit)
                .map(|(number, message)| {
                    let role = if message.is_reply {
                        "assistant"
                    } else {
                        "user"
                    };
                    (self.reference.conversations[*number].id.as_str(), role)
                })
                .collect();
            assert_eq!(shown, expected, "{} searches for {word}", self.name(person));
        }
        "search"
    }

    pub(super) fn share(&mut self) -> &'static str {
        if let Some(number) = self.conversation() {
            // Mostly by somebody who may.
            let owner = self.reference.conversations[number].owner;
            let actor = match owner {
                Some(owner) if self.random.below(4) > 0 => Actor::whole(owner),
                _ => self.actor().1,
            };
            let way = self.way();
            let (wire, audience) = self.audience(owner);
            let id = self.reference.conversations[number].id.clone();
            let request =
                json!({ "type": "share_conversation", "conversation_id": id, "audience": wire });
            let allowed = self.reference.may_share(actor, number, &audience);
            if owner.is_none() && wire == "private" {
                return "share";
            }
            let answer = self.ask(actor, way, request.clone());
            if self.compare(&request, answer, allowed).is_some() {
                self.reference.conversations[number].audience = audience;
                self.became_visible(number);
                self.withdraw_what_is_lost(number);
            }
        }
        "share"
    }

    pub(super) fn rename(&mut self) -> &'static str {
        if let Some(number) = self.conversation() {
            let ((_, actor), way, title) = (self.actor(), self.way(), self.text());
            let id = self.reference.conversations[number].id.clone();
            let request =
                json!({ "type": "rename_conversation", "conversation_id": id, "title": title });
            let allowed = self.reference.may_change(actor, number);
            let answer = self.ask(actor, way, request.clone());
            if self.compare(&request, answer, allowed).is_some() {
                self.reference.conversations[number].title = Some(title);
            }
        }
        "rename"
    }

    pub(super) fn delete(&mut self) -> &'static str {
        if let Some(number) = self.conversation() {
            let ((_, actor), way) = (self.actor(), self.way());
            let id = self.reference.conversations[number].id.clone();
            let request = json!({ "type": "delete_conversation", "conversation_id": id });
            let mut waiting = self.reference.approvals.iter();
            let allowed = self.reference.may_delete(actor, number).and(
                // First somebody answers what waits there.
                match waiting.any(|one| one.conversation == number && !one.is_decided) {
                    true => Err(Refusal::Invalid),
                    false => Ok(()),
                },
            );
            let answer = self.ask(actor, way, request.clone());
            if self.compare(&request, answer, allowed).is_some() {
                self.reference.conversations[number].is_deleted = true;
            }
        }
        "delete"
    }
}
