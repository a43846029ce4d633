//! Tool calls that somebody has to allow: who is asked, who answers, and what then runs.

use serde_json::{Value, json};
use support::client::Client;

use super::household::{Household, Said, signed_in, string};
use super::reference::{
    Actor, Approval, Asker, ConversationNumber, Outside, PersonNumber, Refusal, Role, Verdict,
};
use super::world::{Way, answered};

/// The tools that change something, and for which the household is asked.
const TOOLS: [&str; 2] = ["lamp", "write_file"];
/// Most calls that wait in one household.
const MOST_WAITING: usize = 8;

/// What happens once somebody has answered.
pub(super) struct Waiting {
    /// Who asked, and what signed them in.
    actor: Actor,
    /// The connection that gets the reply; a webhook's caller has none.
    client: Option<Client>,
    /// Part of the reply if the tool runs: of this call, and of no other.
    result: String,
}

impl Household {
    pub(super) fn call_a_tool(&mut self) -> &'static str {
        let ((_, actor), way) = (self.actor(), self.way());
        let Some((number, tool)) = self.call_place() else {
            return "no call yet";
        };
        let (text, arguments, result) = self.call_of(tool);
        let allowed = self
            .reference
            .needs(actor, Role::User)
            .and_then(|()| self.reference.visible(actor, number));
        let verdict = self.reference.verdict(actor, number, tool);
        if allowed.is_ok() && self.cannot_tell(verdict, number) {
            return "no call";
        }
        if allowed.is_err() || verdict != Verdict::Asks {
            if let Some((_, reply)) = self.chat(actor, way, Some(number), &text) {
                let ran = string(&reply).contains(&result);
                assert_eq!(ran, verdict == Verdict::Runs, "{actor:?} {text}: {reply}");
            }
            return "call";
        }
        let id = self.reference.conversations[number].id.clone();
        let request = json!({ "type": "chat", "message": text, "conversation_id": id });
        let (person, token) = signed_in(actor);
        let client = self.world.begin(person, token, way, &request);
        self.asks(actor, number, (tool, &arguments), &text);
        self.waits(actor, Some(client), result);
        "call that asks"
    }

    pub(super) fn call_by_webhook(&mut self) -> &'static str {
        let actor = Actor::Account(self.random.below(2));
        let Actor::Account(account) = actor else {
            return "no account";
        };
        let own = |number: &ConversationNumber| self.reference.visible(actor, *number).is_ok();
        let own: Vec<usize> = (0..self.reference.conversations.len())
            .filter(own)
            .collect();
        if own.is_empty() {
            return "no call yet";
        }
        let number = own[self.random.below(own.len())];
        let tool = TOOLS[self.random.below(TOOLS.len())];
        let (text, arguments, result) = self.call_of(tool);
        let verdict = self.reference.verdict(actor, number, tool);
        if self.cannot_tell(verdict, number) {
            return "no call";
        }
        let body = json!({
            "message": text, "user_id": "ann",
            "conversation_id": self.reference.conversations[number].id,
        });
        let name = self.reference.accounts[account].0.clone();
        if verdict == Verdict::Asks {
            self.world.post_and_leave(&name, &body);
            self.asks(actor, number, (tool, &arguments), &text);
            self.waits(actor, None, result);
            return "call by a webhook that asks";
        }
        let data = self.world.post(&name, &body);
        let ran = string(&data["message"]).contains(&result);
        assert_eq!(ran, verdict == Verdict::Runs, "{name}: {text}: {data}");
        self.exchanged(number, None, &text, &data["message"]);
        "call by a webhook"
    }

    /// A conversation and a tool to call there, often one that somebody was allowed there.
    fn call_place(&mut self) -> Option<(ConversationNumber, &'static str)> {
        let is_there = |number: &usize| !self.reference.conversations[*number].is_deleted;
        let grants = self.reference.grants.iter();
        let granted: Vec<(ConversationNumber, &'static str)> = grants
            .filter_map(|(place, _, tool)| Some((place.filter(is_there)?, *tool)))
            .collect();
        if !granted.is_empty() && self.random.below(2) == 0 {
            return Some(granted[self.random.below(granted.len())]);
        }
        let tool = TOOLS[self.random.below(TOOLS.len())];
        Some((self.conversation()?, tool))
    }

    /// A message that has the model call this tool, the arguments, and what the reply
    /// has if it ran.
    fn call_of(&mut self, tool: &str) -> (String, Value, String) {
        let note = self.text();
        let (arguments, result) = match tool {
            "lamp" => (json!({ "note": note }), note),
            _ => {
                let name = format!("{}.txt", note.replace(' ', "-"));
                (json!({ "path": name, "content": "x" }), name)
            }
        };
        (format!("run {tool} {arguments}"), arguments, result)
    }

    /// Whether too many wait, or it depends on what is not in the reference.
    fn cannot_tell(&self, verdict: Verdict, number: ConversationNumber) -> bool {
        let is_unclear = self.reference.conversations[number].outside == Outside::Unclear;
        match verdict {
            Verdict::NotOffered => false,
            Verdict::Runs => is_unclear,
            Verdict::Asks => self.waiting.len() >= MOST_WAITING,
        }
    }

    /// The question that the household gets, of this call.
    fn asks(
        &mut self,
        actor: Actor,
        number: ConversationNumber,
        (tool, arguments): (&'static str, &Value),
        text: &str,
    ) {
        let asked = self.world.asked();
        let by = match actor.asker() {
            Asker::Person(person) => self.name(person),
            Asker::Account(account) => self.reference.accounts[account].0.clone(),
        };
        let expected = (tool, arguments, by.as_str());
        let (name, shown) = (string(&asked["tool"]), &asked["arguments"]);
        let requested_by = string(&asked["requested_by"]);
        assert_eq!((name, shown, requested_by), expected, "{asked}");
        let id = self.reference.conversations[number].id.as_str();
        assert_eq!(asked["conversation_id"], id, "{asked}");
        let question = self.said(number, text, Said::Question(actor.person()));
        self.reference.approvals.push(Approval {
            id: string(&asked["approval_id"]).to_owned(),
            turn: string(&asked["turn_id"]).to_owned(),
            tool,
            asker: actor.asker(),
            conversation: number,
            question,
            is_decided: false,
        });
        self.told_of_approval(self.reference.approvals.len() - 1, "requested");
    }

    fn waits(&mut self, actor: Actor, client: Option<Client>, result: String) {
        let waiting = Waiting {
            actor,
            client,
            result,
        };
        let place = self.reference.approvals.len() - 1;
        self.waiting.insert(place, waiting);
    }

    fn told_of_approval(&mut self, place: usize, what: &str) {
        let approval = self.reference.approvals[place].clone();
        for window in self.windows() {
            if self.reference.hears_of_approval(window, &approval)
                && let Some(asked) = self.asked.get_mut(&window)
            {
                asked.push((approval.id.clone(), what.to_owned()));
            }
        }
    }

    /// Somebody allows or refuses a call, mostly one that waits.
    pub(super) fn answer(&mut self) -> &'static str {
        self.forget_what_is_gone();
        let waiting: Vec<usize> = self.waiting.keys().copied().collect();
        let all = self.reference.approvals.len();
        let place = match (waiting.len(), all) {
            (_, 0) => return "no answer yet",
            (count @ 1.., _) if self.random.below(8) > 0 => waiting[self.random.below(count)],
            _ => self.random.below(all),
        };
        let approval = self.reference.approvals[place].clone();
        let number = approval.conversation;
        let sees = |one: &usize| self.reference.visible(Actor::whole(*one), number).is_ok();
        let Some(reader) = self.present().into_iter().find(sees) else {
            return "an answer whose result nobody sees";
        };
        // Mostly somebody who may.
        let actor = match self.random.below(3) {
            0 => Actor::whole(0),
            _ => self.actor().1,
        };
        let way = self.way();
        let words = [
            "deny",
            "once",
            "once",
            "conversation",
            "conversation",
            "always",
        ];
        let word = words[self.random.below(words.len())];
        let request = match word {
            "deny" => json!({ "type": "deny", "approval_id": approval.id }),
            _ => json!({ "type": "approve", "approval_id": approval.id, "remember": word }),
        };
        let is_nobody = word == "always" && !self.reference.is_there(approval.asker);
        let allowed = self.reference.may_answer(actor, &approval);
        let allowed = match approval.is_decided || is_nobody {
            true => allowed.and(Err(Refusal::Invalid)),
            false => allowed,
        };
        let listener = self.world.listener(reader, "message.created");
        let answer = self.ask(actor, way, request.clone());
        if self.compare(&request, answer, allowed).is_some() {
            self.reference.approvals[place].is_decided = true;
            let grant = |place| (place, approval.asker, approval.tool);
            let (grants, decision) = match word {
                "conversation" => (Some(grant(Some(number))), "approved_conversation"),
                "always" => (Some(grant(None)), "approved_always"),
                "once" => (None, "approved"),
                _ => (None, "denied"),
            };
            self.reference.grants.extend(grants);
            self.told_of_approval(place, decision);
            let runs = word != "deny" && self.reference.is_there(approval.asker);
            self.replied(place, listener, runs);
        }
        "answer"
    }

    /// The turn goes on: the reply comes, late or not, and the tool ran if it may.
    fn replied(&mut self, place: usize, mut listener: Client, runs: bool) {
        let number = self.reference.approvals[place].conversation;
        let waiting = self.waiting.remove(&place).expect("it waited");
        let reply = listener.event("message.created")["message"].clone();
        // Once it has another turn, everybody else has been told, too.
        listener.ask(json!({ "type": "subscribe", "events": [] }));
        let text = string(&reply["content"]).to_owned();
        let ran = text.contains(&waiting.result);
        assert_eq!(ran, runs, "{}: {reply}", waiting.result);
        let question = self.reference.approvals[place].question;
        let is_late = {
            let mut later = self.reference.conversations[number].shown();
            later.any(|message| message.place > question)
        };
        assert_eq!(reply["in_reply_to"].is_string(), is_late, "{reply}");
        let asker = self.reference.approvals[place].asker;
        if let Some(mut client) = waiting.client
            && self.reference.is_there(asker)
        {
            let response = answered(client.response());
            match self.reference.visible(waiting.actor, number) {
                Ok(()) => assert_eq!(response.unwrap()["response"], text),
                Err(refusal) => assert_eq!(response.unwrap_err(), refusal.code()),
            }
        }
        self.said(number, &text, Said::Reply(question));
    }

    /// Whoever does not see a conversation any longer gets no answer from it, and nobody is
    /// asked for what they wanted.
    pub(super) fn withdraw_what_is_lost(&mut self, number: ConversationNumber) {
        for place in 0..self.reference.approvals.len() {
            let approval = &self.reference.approvals[place];
            let is_there = approval.conversation == number && !approval.is_decided;
            if !is_there || !self.reference.is_lost(approval) {
                continue;
            }
            self.reference.approvals[place].is_decided = true;
            self.told_of_approval(place, "expired");
            let waiting = self.waiting.remove(&place).expect("it waited");
            let response = waiting.client.map(|mut client| answered(client.response()));
            assert_eq!(response, Some(Err(Refusal::NotFound.code().to_owned())));
        }
    }

    /// Removes a person. What waits for an answer because of them is refused, and its turns end.
    pub(super) fn remove_person(&mut self, person: PersonNumber) {
        self.forget_what_is_gone();
        let asked = |place: &usize| {
            let approval = &self.reference.approvals[*place];
            approval.asker == Asker::Person(person) && self.reference.waits(approval)
        };
        let asked: Vec<usize> = self.waiting.keys().copied().filter(asked).collect();
        let mut listeners = Vec::new();
        for place in asked {
            let number = self.reference.approvals[place].conversation;
            let sees = |one: &PersonNumber| {
                *one != person && self.reference.visible(Actor::whole(*one), number).is_ok()
            };
            let reader = self.present().into_iter().find(sees);
            let listener = reader.map(|one| self.world.listener(one, "message.created"));
            listeners.push((place, listener));
        }
        let request = json!({ "type": "remove_user", "name": self.name(person) });
        self.ask(Actor::whole(0), Way::WebSocket, request).unwrap();
        self.reference.remove(person);
        self.world.removed(person);
        self.expected
            .retain(|window, _| window.person() != Some(person));
        self.forget_what_is_gone();
        let mut replies = Vec::new();
        for (place, listener) in listeners {
            // It went with its conversation.
            let Some(waiting) = self.waiting.remove(&place) else {
                continue;
            };
            self.reference.approvals[place].is_decided = true;
            self.told_of_approval(place, "denied");
            let turn = &self.reference.approvals[place].turn;
            let reply = listener.map(|mut listener| {
                let event = listener.past(|one| {
                    one["event"] == "message.created" && one["turn_id"] == turn.as_str()
                });
                // Once it has another turn, everybody else has been told, too.
                listener.ask(json!({ "type": "subscribe", "events": [] }));
                let text = string(&event["message"]["content"]).to_owned();
                assert!(!text.contains(&waiting.result), "{text}");
                (event["seq"].as_u64(), text)
            });
            replies.push((reply.unwrap_or_default(), place));
        }
        // As they came.
        replies.sort();
        for ((_, text), place) in replies {
            let Approval {
                conversation,
                question,
                ..
            } = self.reference.approvals[place];
            self.said(conversation, &text, Said::Reply(question));
        }
    }

    /// What waited in a conversation that is deleted is asked of nobody.
    fn forget_what_is_gone(&mut self) {
        let (approvals, conversations) = (&self.reference.approvals, &self.reference.conversations);
        self.waiting
            .retain(|place, _| !conversations[approvals[*place].conversation].is_deleted);
    }

    pub(super) fn approvals(&mut self) -> &'static str {
        let ((person, actor), way) = (self.actor(), self.way());
        let request = json!({ "type": "list_approvals" });
        let allowed = self.reference.needs(actor, Role::User);
        let answer = self.ask(actor, way, request.clone());
        if let Some(data) = self.compare(&request, answer, allowed) {
            let shown: Vec<(&str, bool)> = data["approvals"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| (string(&one["approval_id"]), one["may_answer"] == true))
                .collect();
            let may_answer = |one: &&Approval| self.reference.may_answer(actor, one).is_ok();
            let expected: Vec<(&str, bool)> = self
                .reference
                .waiting(actor)
                .into_iter()
                .map(|one| (one.id.as_str(), may_answer(&one)))
                .collect();
            assert_eq!(shown, expected, "{} lists, {actor:?}", self.name(person));
        }
        "approvals"
    }
}
