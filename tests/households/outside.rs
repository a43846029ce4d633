//! What comes from webhooks.

use serde_json::json;

use super::household::{Household, MOST_CONVERSATIONS, string};
use super::reference::{Actor, Conversation, ConversationNumber, Outside};

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
}
