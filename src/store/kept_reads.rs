//! What every turn reads and what seldom changes, kept from turn to turn: the past of the
//! conversations that go on at present, of which each turn reads only what has ended since
//! the one before it, and who holds a token.
//!
//! Nothing that was deleted, hidden, forgotten, shared otherwise or revoked may come from
//! here. So all of it is thrown away with every write, but for the few of a running turn that
//! say that they only add to the end of a conversation (`Write::adds_to_the_end`), and with
//! every write of another process, within a second. In debug builds, and so in all tests,
//! what comes from here is compared with the database.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::error::Result;
use base::ids::ConversationId;
use base::sync::{Mutex, lock};

/// Most conversations whose past is kept.
const CONVERSATIONS: usize = 4;
/// Fewest turns that are worth it; in debug builds, all are compared.
pub(crate) const FEWEST_TURNS: usize = if cfg!(debug_assertions) { 1 } else { 16 };
/// Most bytes of their text.
const MOST_BYTES: usize = 256 * 1024;
/// Most tokens whose holders are kept.
const TOKENS: usize = 16;
/// How long a holder is believed after the last look for writes of other processes.
const BELIEVED: Duration = Duration::from_secs(1);

/// Who holds a token: only `tokens` knows it.
pub(crate) type Holder = Arc<dyn Any + Send + Sync>;

/// The past of a conversation.
pub(crate) struct KeptPast {
    /// Of its text.
    pub bytes: usize,
    /// Only `history` knows it, which builds on the writer that throws it away.
    pub past: Box<dyn Any + Send>,
}

#[derive(Default)]
struct State {
    rewrites: u64,
    /// When it was last known that no other process has written.
    looked: Option<Instant>,
    /// The one that was read last at the end.
    pasts: Vec<(ConversationId, KeptPast)>,
    /// By the fingerprint of the token, the newest at the end.
    holders: Vec<([u8; 32], Holder)>,
}

impl State {
    /// Whether nothing may have changed since there were so many.
    fn is_settled_since(&self, rewrites: u64) -> bool {
        rewrites == self.rewrites && rewrites.is_multiple_of(2)
    }
}

/// What a reader made of a turn of the past: it is kept with the turn, and gone with it.
#[derive(Clone, Default)]
pub struct Memo(Arc<Mutex<Option<Arc<dyn Any + Send + Sync>>>>);

impl Memo {
    /// What was made last, if it is of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        lock(&self.0).clone()?.downcast().ok()
    }

    /// Keeps this instead.
    pub fn set<T: Any + Send + Sync>(&self, made: &Arc<T>) {
        *lock(&self.0) = Some(Arc::<T>::clone(made));
    }
}

/// Nothing of it: a turn is the same with and without.
impl fmt::Debug for Memo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memo")
    }
}

/// A few pasts, and holders of tokens.
#[derive(Default)]
pub(crate) struct KeptReads(Mutex<State>);

impl KeptReads {
    /// Throws all away: before a commit that may change something of it, and again after it,
    /// before anybody is told of it.
    pub fn throw_away(&self) {
        let mut state = lock(&self.0);
        *state = State {
            rewrites: state.rewrites + 1,
            looked: state.looked,
            ..State::default()
        };
    }

    /// Notes that no other process has written since the last transaction, or that all was
    /// thrown away.
    pub fn note_look(&self) {
        lock(&self.0).looked = Some(Instant::now());
    }

    /// How often everything was thrown away: odd while such a commit is under way.
    pub fn rewrites(&self) -> u64 {
        lock(&self.0).rewrites
    }

    /// Reads the past of a conversation: `read` gets the [`rewrites`](KeptReads::rewrites)
    /// and what is kept, and returns what may be kept next.
    pub fn read<T>(
        &self,
        conversation: ConversationId,
        read: impl Fn(u64, Option<KeptPast>) -> Result<(T, Option<KeptPast>)>,
    ) -> Result<T> {
        let (rewrites, kept) = self.take(conversation);
        let (mut found, mut next) = read(rewrites, kept)?;
        if self.rewrites() != rewrites {
            // What was kept may be gone by now.
            (found, next) = read(rewrites, None)?;
        }
        if let Some(kept) = next {
            self.keep(conversation, rewrites, kept);
        }
        Ok(found)
    }

    fn take(&self, conversation: ConversationId) -> (u64, Option<KeptPast>) {
        let mut state = lock(&self.0);
        let place = state.pasts.iter().position(|(id, _)| *id == conversation);
        let kept = place.map(|place| state.pasts.remove(place).1);
        (state.rewrites, kept)
    }

    /// Keeps one, unless anything may have changed since it was read.
    fn keep(&self, conversation: ConversationId, rewrites: u64, kept: KeptPast) {
        let mut state = lock(&self.0);
        if !state.is_settled_since(rewrites) || kept.bytes > MOST_BYTES {
            return;
        }
        if state.pasts.len() >= CONVERSATIONS {
            state.pasts.remove(0);
        }
        state.pasts.push((conversation, kept));
    }

    /// Who holds the token with this fingerprint, if that is kept; it may have expired. Of
    /// what other processes write nothing is known while the writer waits for them.
    pub fn holder(&self, fingerprint: &[u8; 32]) -> Option<Holder> {
        let state = lock(&self.0);
        state.looked.filter(|looked| looked.elapsed() < BELIEVED)?;
        let mut all = state.holders.iter();
        let (_, holder) = all.find(|(one, _)| one == fingerprint)?;
        Some(Arc::clone(holder))
    }

    /// Keeps who holds a token, unless anything may have changed since it was read, when
    /// there were so many [`rewrites`](KeptReads::rewrites).
    pub fn keep_holder(&self, rewrites: u64, fingerprint: &[u8; 32], holder: Holder) {
        let mut state = lock(&self.0);
        if !state.is_settled_since(rewrites) {
            return;
        }
        state.holders.retain(|(one, _)| one != fingerprint);
        if state.holders.len() >= TOKENS {
            state.holders.remove(0);
        }
        state.holders.push((*fingerprint, holder));
    }

    /// Gives the memory back.
    pub fn clear(&self) {
        let mut state = lock(&self.0);
        (state.pasts, state.holders) = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_believed_only_after_a_look_for_other_processes() {
        let (kept, fingerprint) = (KeptReads::default(), [1; 32]);
        let keep = || kept.keep_holder(kept.rewrites(), &fingerprint, Arc::new("grace"));
        keep();
        assert!(kept.holder(&fingerprint).is_none());
        kept.note_look();
        assert!(kept.holder(&fingerprint).is_some());
        assert!(kept.holder(&[2; 32]).is_none());
        lock(&kept.0).looked = Instant::now().checked_sub(BELIEVED);
        assert!(kept.holder(&fingerprint).is_none());
        kept.note_look();
        kept.throw_away();
        assert!(kept.holder(&fingerprint).is_none());
        // Something may be changing.
        keep();
        assert!(kept.holder(&fingerprint).is_none());
    }

    #[test]
    fn the_holders_of_a_few_tokens_are_kept() {
        let kept = KeptReads::default();
        kept.note_look();
        for number in 0..=TOKENS as u8 {
            kept.keep_holder(0, &[number; 32], Arc::new(()));
        }
        assert!(kept.holder(&[0; 32]).is_none());
        assert!(kept.holder(&[1; 32]).is_some());
    }
}
