//! Events that are kept for connections that were away.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::Recipients;
use base::ids::{ConversationId, TurnId};
use protocol::event::EventName;
use store::Readers;

/// Events kept for connections that were away (protocol section 5).
pub const KEPT_EVENTS: usize = 10_000;
/// Bytes that the kept events may take. The handbook names both bounds.
pub const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// The newest events, oldest first.
#[derive(Default)]
pub struct KeptEvents {
    events: VecDeque<KeptEvent>,
    bytes: usize,
    /// The newest event that is no longer kept but once was: a connection that was
    /// away since before it has missed something.
    forgotten: u64,
}

/// One of them.
pub struct KeptEvent {
    /// Its number.
    pub seq: u64,
    /// What `subscribe` asks for.
    pub name: EventName,
    /// The turn it belongs to.
    pub turn: Option<TurnId>,
    /// The conversation it belongs to.
    pub conversation: Option<ConversationId>,
    /// Who may see it now.
    pub recipients: Recipients,
    /// What is sent.
    pub text: Arc<str>,
}

impl KeptEvents {
    /// None so far; those up to `last` are not kept.
    pub fn after(last: u64) -> KeptEvents {
        KeptEvents {
            forgotten: last,
            ..KeptEvents::default()
        }
    }

    /// Keeps one more, and forgets the oldest that there is no room for.
    pub fn push(&mut self, kept: KeptEvent) {
        self.bytes += kept.text.len();
        self.events.push_back(kept);
        while self.events.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
            self.forgotten = oldest.seq;
        }
    }

    /// Whether some of those after `seq` are no longer kept.
    pub fn has_forgotten_after(&self, seq: u64) -> bool {
        seq < self.forgotten
    }

    /// Those after `seq`.
    pub fn after_seq(&self, seq: u64) -> impl Iterator<Item = &KeptEvent> {
        self.events.iter().filter(move |kept| kept.seq > seq)
    }

    /// Those to which some of the events belong.
    pub fn conversations(&self) -> HashSet<ConversationId> {
        let kept = self.events.iter();
        kept.filter_map(|kept| kept.conversation).collect()
    }

    /// A conversation has other readers now.
    pub fn share(&mut self, conversation: ConversationId, readers: &Readers) {
        for kept in &mut self.events {
            if kept.conversation == Some(conversation)
                && let Some(known) = kept.recipients.readers_mut()
            {
                *known = readers.clone();
            }
        }
    }

    /// A conversation is gone. That it is remains for those who could not see it any
    /// longer before, and were told so.
    pub fn delete(&mut self, conversation: ConversationId) {
        let bytes = &mut self.bytes;
        self.events.retain(|kept| {
            let stays = kept.conversation != Some(conversation)
                || kept.name == EventName::ConversationDeleted;
            if !stays {
                *bytes -= kept.text.len();
            }
            stays
        });
    }

    /// How many are kept, and how many bytes they have.
    #[cfg(test)]
    pub fn size(&self) -> (usize, usize) {
        (self.events.len(), self.bytes)
    }
}
