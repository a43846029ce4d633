//! Conversations that were shared, or deleted, while the server ran.

use std::collections::{HashMap, HashSet};

use base::ids::ConversationId;
use store::Readers;

/// Shares and deletions that are remembered in any case.
const REMEMBERED: u64 = 1_000;

/// The readers of conversations that were shared: a turn that began before still has
/// the earlier ones.
#[derive(Default)]
pub struct Shares {
    readers: HashMap<ConversationId, Share>,
    next: u64,
}

struct Share {
    /// Rises with each share.
    number: u64,
    /// None once the conversation is deleted.
    readers: Option<Readers>,
}

impl Shares {
    /// Replaces the readers that a conversation had when a turn began by those that
    /// it has now.
    pub fn update(&self, conversation: ConversationId, readers: &mut Readers) {
        let share = self.readers.get(&conversation);
        if let Some(now) = share.and_then(|share| share.readers.as_ref()) {
            *readers = now.clone();
        }
    }

    /// Whether the conversation was deleted.
    pub fn is_deleted(&self, conversation: ConversationId) -> bool {
        let share = self.readers.get(&conversation);
        share.is_some_and(|share| share.readers.is_none())
    }

    /// Notes a share, or without readers a deletion, which is final. What is neither among the newest nor in `busy`, the
    /// conversations with turns, is forgotten: nobody holds its earlier readers.
    pub fn note(
        &mut self,
        conversation: ConversationId,
        readers: Option<Readers>,
        busy: &HashSet<ConversationId>,
    ) {
        if self.is_deleted(conversation) {
            return;
        }
        let number = self.next;
        self.next += 1;
        self.readers.insert(conversation, Share { number, readers });
        if self.readers.len() as u64 > 2 * REMEMBERED {
            self.readers
                .retain(|id, share| share.number + REMEMBERED > number || busy.contains(id));
        }
    }
}
