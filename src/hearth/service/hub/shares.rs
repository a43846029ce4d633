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
    readers: Readers,
    is_deleted: bool,
}

impl Shares {
    /// Replaces the readers that a conversation had when a turn began by those that
    /// it has now.
    pub fn update(&self, conversation: ConversationId, readers: &mut Readers) {
        if let Some(share) = self.readers.get(&conversation) {
            share.readers.clone_into(readers);
        }
    }

    /// Whether the conversation was deleted.
    pub fn is_deleted(&self, conversation: ConversationId) -> bool {
        let share = self.readers.get(&conversation);
        share.is_some_and(|share| share.is_deleted)
    }

    /// Notes who sees a conversation from now on, or who saw it when it was deleted, which
    /// is final. What is neither among the newest nor in `busy`, the conversations with
    /// turns, is forgotten: nobody holds its earlier readers.
    pub fn note(
        &mut self,
        conversation: ConversationId,
        readers: Readers,
        is_deleted: bool,
        busy: &HashSet<ConversationId>,
    ) {
        if self.is_deleted(conversation) {
            return;
        }
        let number = self.next;
        self.next += 1;
        let share = Share {
            number,
            readers,
            is_deleted,
        };
        self.readers.insert(conversation, share);
        if self.readers.len() as u64 > 2 * REMEMBERED {
            self.readers
                .retain(|id, share| share.number + REMEMBERED > number || busy.contains(id));
        }
    }
}
