//! Memories, what the model finds, and schedules.

use serde_json::json;

use super::household::{Household, MOST_CONVERSATIONS, ids, string};
use super::reference::{
    Actor, Audience, Conversation, ConversationNumber, Outside, Refusal, Role, Thing, has_word,
};
use super::world::Way;

impl Household {
    pub(super) fn remember(&mut self) -> &'static str {
        let ((_, actor), way, text) = (self.actor(), self.way(), self.text());
        let number = self.conversation();
        if number.is_none() && self.reference.conversations.len() >= MOST_CONVERSATIONS {
            return "remember";
        }
        // What is kept after text from outside is asked for; other tests look at that.
        let outside = number.map(|number| self.reference.conversations[number].outside);
        if outside.is_some_and(|outside| outside != Outside::No) {
            return "remember";
        }
        let text = format!("remember that {text}");
        if let Some((number, reply)) = self.chat(actor, way, number, &text) {
            let reply = string(&reply);
            if !self.reference.is_offered(actor, number, "remember") {
                assert!(ids(reply, "mem_").is_empty(), "{actor:?} {text}: {reply}");
                return "remember";
            }
            // Its own comes first: others that say something alike may be named after it.
            let id = ids(reply, "mem_")
                .into_iter()
                .next()
                .unwrap_or_else(|| panic!("{text}: {reply}"));
            self.reference.memories.push(Thing {
                id,
                text: text["remember that ".len()..].to_owned(),
                owner: actor.person(),
                audience: self.reference.conversations[number].audience.clone(),
                is_deleted: false,
            });
        }
        "remember"
    }

    pub(super) fn recall(&mut self) -> &'static str {
        let ((_, actor), way, word) = (self.actor(), self.way(), self.word());
        let number = self.conversation();
        let text = format!("recall {word}");
        if let Some(number) = number
            && let Some((_, reply)) = self.chat(actor, way, Some(number), &text)
        {
            let readers = &self.reference.conversations[number].audience;
            let is_own = self.reference.conversations[number].account.is_none();
            let mut shown = ids(string(&reply), "mem_");
            let mut expected: Vec<String> = self
                .reference
                .memories
                .iter()
                .filter(|one| !one.is_deleted && has_word(&one.text, word))
                .filter(|one| self.reference.is_seen_by_all_of(readers, &one.audience))
                // The caller of a webhook reads along, and sees what the household sees.
                .filter(|one| is_own || one.audience == Audience::Household)
                .map(|one| one.id.clone())
                .collect();
            if expected.len() > 10 || !is_own {
                assert!(shown.iter().all(|id| expected.contains(id)), "{reply}");
                assert!(!is_own || shown.len() == 10, "{reply}");
            } else {
                shown.sort();
                expected.sort();
                assert_eq!(shown, expected, "{text} in {readers:?}: {reply}");
            }
        }
        "recall"
    }

    pub(super) fn search_by_the_model(&mut self) -> &'static str {
        let ((_, actor), way, word) = (self.actor(), self.way(), self.word());
        let number = self.conversation();
        let text = format!("search for {word}");
        if let Some(number) = number
            && let Some((_, reply)) = self.chat(actor, way, Some(number), &text)
        {
            if !self
                .reference
                .is_offered(actor, number, "search_conversations")
            {
                assert!(
                    ids(string(&reply), "conv_").is_empty(),
                    "{actor:?} {text}: {reply}"
                );
                return "search by the model";
            }
            let conversation = &mut self.reference.conversations[number];
            if conversation.outside == Outside::No {
                conversation.outside = Outside::Unclear;
            }
            let readers = self.reference.conversations[number].audience.clone();
            let own = self.reference.conversations[number].id.clone();
            // The caller of a webhook reads along, and sees what the household sees.
            let account = self.reference.conversations[number].account;
            let sees = |other: ConversationNumber| {
                let conversation = &self.reference.conversations[other];
                let is_seen = self
                    .reference
                    .is_seen_by_all_of(&readers, &conversation.audience);
                let is_through_it = conversation.account == account;
                let is_known = account.is_none()
                    || is_through_it
                    || conversation.audience == Audience::Household;
                !conversation.is_deleted && is_seen && is_known
            };
            let allowed: Vec<&str> = self
                .reference
                .found(word, sees)
                .into_iter()
                .map(|(number, _)| self.reference.conversations[number].id.as_str())
                .collect();
            // What was said in it may itself quote what was found earlier.
            let lines = string(&reply).lines();
            let shown: Vec<String> = lines
                .filter(|line| line.starts_with("conv_"))
                .flat_map(|line| ids(line, "conv_").into_iter().take(1))
                .collect();
            for id in &shown {
                // By a title as well, which keeps words that no message has any more.
                let is_seen = |(number, one): (usize, &Conversation)| one.id == *id && sees(number);
                let mut all = self.reference.conversations.iter().enumerate();
                let is_allowed = all.any(is_seen) || *id == own;
                assert!(is_allowed, "{text} in {readers:?} shows {id}: {reply}");
            }
            // Its own question may be found or not: it has just been asked.
            let others = allowed.iter().filter(|id| **id != own).count();
            // An account may be offered less, and what says the same as another is left out.
            assert!(
                account.is_some() || shown.len() >= others.min(1),
                "{text} in {readers:?}: {reply}"
            );
        }
        "search by the model"
    }

    pub(super) fn memories(&mut self) -> &'static str {
        let ((_, actor), way) = (self.actor(), self.way());
        self.compare_memories(actor, way);
        "memories"
    }

    pub(super) fn compare_memories(&mut self, actor: Actor, way: Way) {
        let request = json!({ "type": "list_memories" });
        let allowed = self.reference.needs(actor, Role::User);
        let answer = self.ask(actor, way, request.clone());
        if let Some(data) = self.compare(&request, answer, allowed) {
            let shown: Vec<&str> = data["memories"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| string(&one["id"]))
                .collect();
            let expected: Vec<&str> = self
                .reference
                .memories
                .iter()
                .rev()
                .filter(|one| !one.is_deleted && self.reference.sees(actor, &one.audience))
                .map(|one| one.id.as_str())
                .collect();
            assert_eq!(shown, expected, "what {actor:?} is shown");
        }
    }

    pub(super) fn forget(&mut self) -> &'static str {
        if self.reference.memories.is_empty() {
            return "forget";
        }
        let place = self.random.below(self.reference.memories.len());
        let ((person, actor), way) = (self.actor(), self.way());
        let memory = &self.reference.memories[place];
        let request = json!({ "type": "delete_memory", "memory_id": memory.id });
        let is_common = memory.audience == Audience::Household;
        let is_left = memory.owner.is_none() && !is_common;
        let is_own = memory.owner == Some(person);
        let may = is_own || is_left || (is_common && self.reference.is_admin(actor));
        let is_visible = !memory.is_deleted && self.reference.sees(actor, &memory.audience);
        let allowed = self
            .reference
            .needs(actor, Role::User)
            .and(self.reference.needs_all_tools(actor))
            .and(match (is_visible, may) {
                (false, _) => Err(Refusal::NotFound),
                (true, false) => Err(Refusal::Unauthorized),
                (true, true) => Ok(()),
            });
        let answer = self.ask(actor, way, request.clone());
        if self.compare(&request, answer, allowed).is_some() {
            self.reference.memories[place].is_deleted = true;
        }
        "forget"
    }

    pub(super) fn schedule(&mut self) -> &'static str {
        let ((_, actor), way, text) = (self.actor(), self.way(), self.text());
        let number = self.conversation().filter(|_| self.random.below(2) == 0);
        let mut request =
            json!({ "type": "create_schedule", "prompt": text, "at": "2090-01-01T10:00" });
        if let Some(number) = number {
            request["conversation_id"] = json!(self.reference.conversations[number].id);
        }
        let allowed = self
            .reference
            .needs(actor, Role::User)
            .and(self.reference.needs_all_tools(actor))
            .and_then(|()| number.map_or(Ok(()), |number| self.reference.visible(actor, number)));
        let answer = self.ask(actor, way, request.clone());
        if let Some(data) = self.compare(&request, answer, allowed) {
            self.reference.schedules.push(Thing {
                id: string(&data["schedule_id"]).to_owned(),
                text,
                owner: actor.person(),
                audience: Audience::Household,
                is_deleted: false,
            });
        }
        "schedule"
    }

    pub(super) fn schedules(&mut self) -> &'static str {
        let (person, way) = (self.person(), self.way());
        let actor = Actor::whole(person);
        let data = match self.ask(actor, way, json!({ "type": "list_schedules" })) {
            Ok(data) => data,
            Err(code) => {
                assert!(self.reference.role(person) < Role::User, "{code}");
                return "schedules";
            }
        };
        let shown: Vec<&str> = data["schedules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| string(&one["schedule_id"]))
            .collect();
        for schedule in &self.reference.schedules {
            let is_own = schedule.owner == Some(person) && !schedule.is_deleted;
            let is_shown = shown.contains(&schedule.id.as_str());
            assert!(
                is_shown || !is_own,
                "{} misses {}",
                self.name(person),
                schedule.id
            );
            assert!(!is_shown || !schedule.is_deleted, "{} is gone", schedule.id);
        }
        "schedules"
    }
}
