//! Events that are kept for connections that were away.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::{Person, Recipients};
use base::ids::{ConversationId, TurnId};
use protocol::event::{Event, EventName};
use store::Readers;

/// Events kept for connections that were away (protocol section 5).
pub const KEPT_EVENTS: usize = 10_000;
/// Bytes that the kept events may take. The handbook names both bounds.
pub const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// The newest events, oldest first.
#[derive(Default)]
pub struct KeptEvents {
    events: VecDeque<KeptEvent>,
    /// The texts of the events, one after the other, except of those with [`KeptEvent::worded`].
    /// Thousands of texts of their own, made while much comes and goes, would keep the
    /// memory around them from being given back.
    texts: VecDeque<u8>,
    /// The length of all events, with their translations.
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
    /// The length of what is sent to programs, in bytes.
    pub length: usize,
    /// The event, where others get it in their own words: it is kept in place of its text.
    pub worded: Option<Box<Event>>,
}

impl KeptEvent {
    /// The length of its text among the [`KeptEvents::texts`].
    fn in_texts(&self) -> usize {
        if self.worded.is_some() {
            0
        } else {
            self.length
        }
    }

    /// What it counts: each translation is about as long as its text.
    fn bytes(&self) -> usize {
        let translations = self.worded.as_ref().map(|event| event.translations.len());
        self.length * (1 + translations.unwrap_or_default())
    }
}

impl KeptEvents {
    /// None so far; those up to `last` are not kept.
    pub fn after(last: u64) -> KeptEvents {
        KeptEvents {
            forgotten: last,
            ..KeptEvents::default()
        }
    }

    /// Keeps one more, with the text that is sent, and forgets the oldest that there is
    /// no room for.
    pub fn push(&mut self, mut kept: KeptEvent, text: &str) {
        let bytes = kept.bytes();
        let is_full =
            |kept: &KeptEvents| kept.events.len() >= KEPT_EVENTS || kept.bytes + bytes > KEPT_BYTES;
        while is_full(self) {
            let Some(oldest) = self.events.pop_front() else {
                self.forgotten = kept.seq;
                return;
            };
            self.texts.drain(..oldest.in_texts());
            self.bytes -= oldest.bytes();
            self.forgotten = oldest.seq;
        }
        if self.events.capacity() == 0 {
            // All at once, so that neither is ever copied. What is not used of it is
            // only addresses.
            self.events.reserve_exact(KEPT_EVENTS);
            self.texts.reserve_exact(KEPT_BYTES);
        }
        self.share_readers(&mut kept.recipients);
        self.bytes += bytes;
        if kept.worded.is_none() {
            self.texts.extend(text.as_bytes());
        }
        self.events.push_back(kept);
    }

    /// Takes the list of readers from an earlier event that has the same: most events
    /// follow others of their conversation.
    fn share_readers(&mut self, recipients: &mut Recipients) {
        const LOOKED_AT: usize = 8;
        let Some(readers) = recipients.readers_mut() else {
            return;
        };
        let latest = self.events.iter_mut().rev().take(LOOKED_AT);
        let mut known = latest.filter_map(|kept| kept.recipients.readers_mut());
        if let Some(same) = known.find(|known| **known == *readers) {
            *readers = same.clone();
        }
    }

    /// Those up to this one are not kept.
    pub fn forget(&mut self, seq: u64) {
        self.forgotten = seq;
    }

    /// Whether some of those after `seq` are no longer kept.
    pub fn has_forgotten_after(&self, seq: u64) -> bool {
        seq < self.forgotten
    }

    /// The texts of those after `seq` that are wanted, for this person.
    pub fn after_seq(
        &self,
        seq: u64,
        person: Person,
        wants: impl Fn(&KeptEvent) -> bool,
    ) -> Vec<Arc<str>> {
        let mut texts = Vec::new();
        let mut begin = 0;
        for kept in &self.events {
            let end = begin + kept.in_texts();
            if kept.seq > seq && wants(kept) {
                let text = match &kept.worded {
                    Some(event) => event.to_text(kept.seq, person.words, person.is_program),
                    None => {
                        let text = self.texts.range(begin..end).copied().collect();
                        String::from_utf8(text).expect("a text was put there")
                    }
                };
                texts.push(text.into());
            }
            begin = end;
        }
        texts
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

    /// Forgets some of them.
    pub fn delete(&mut self, is_gone: impl Fn(&KeptEvent) -> bool) {
        let mut begin = 0;
        let mut texts = VecDeque::with_capacity(self.texts.capacity());
        self.events.retain(|kept| {
            let end = begin + kept.in_texts();
            let stays = !is_gone(kept);
            match stays {
                true => texts.extend(self.texts.range(begin..end)),
                false => self.bytes -= kept.bytes(),
            }
            begin = end;
            stays
        });
        self.texts = texts;
    }

    /// How many are kept, how many bytes they have, and how many of these are texts.
    #[cfg(test)]
    pub fn size(&self) -> (usize, usize, usize) {
        (self.events.len(), self.bytes, self.texts.len())
    }
}
