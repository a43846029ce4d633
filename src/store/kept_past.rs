//! The past of the conversations that go on at present, kept from turn to turn: each turn
//! reads only what has ended since the one before it.
//!
//! Nothing that was deleted, hidden, forgotten or shared otherwise may come from here. So
//! all of it is thrown away with every write, but for the few of a running turn that say
//! that they only add to the end of a conversation (`Write::adds_to_the_end`), and with
//! every write of another process. In debug builds, and so in all tests, what comes from
//! here is compared with the database.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use base::error::Result;
use base::ids::ConversationId;
use base::sync::{Mutex, lock};

/// Most conversations whose past is kept.
const CONVERSATIONS: usize = 4;
/// Fewest turns that are worth it; in debug builds, all are compared.
pub(crate) const FEWEST_TURNS: usize = if cfg!(debug_assertions) { 1 } else { 16 };
/// Most bytes of their text.
const MOST_BYTES: usize = 256 * 1024;

/// The past of a conversation.
pub(crate) struct Kept {
    /// Of its text.
    pub bytes: usize,
    /// Only `history` knows it, which builds on the writer that throws it away.
    pub past: Box<dyn Any + Send>,
}

#[derive(Default)]
struct State {
    rewrites: u64,
    /// The one that was read last at the end.
    all: Vec<(ConversationId, Kept)>,
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

/// The past of a few conversations.
#[derive(Default)]
pub(crate) struct KeptPasts(Mutex<State>);

impl KeptPasts {
    /// Throws all away: before a commit that may change something of a past, and again
    /// after it, before anybody is told of it.
    pub fn throw_away(&self) {
        let mut state = lock(&self.0);
        state.rewrites += 1;
        state.all = Vec::new();
    }

    /// How often everything was thrown away: odd while such a commit is under way.
    pub fn rewrites(&self) -> u64 {
        lock(&self.0).rewrites
    }

    /// Reads the past of a conversation: `read` gets the [`rewrites`](KeptPasts::rewrites)
    /// and what is kept, and returns what may be kept next.
    pub fn read<T>(
        &self,
        conversation: ConversationId,
        read: impl Fn(u64, Option<Kept>) -> Result<(T, Option<Kept>)>,
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

    fn take(&self, conversation: ConversationId) -> (u64, Option<Kept>) {
        let mut state = lock(&self.0);
        let place = state.all.iter().position(|(id, _)| *id == conversation);
        let kept = place.map(|place| state.all.remove(place).1);
        (state.rewrites, kept)
    }

    /// Keeps one, unless anything may have changed since it was read.
    fn keep(&self, conversation: ConversationId, rewrites: u64, kept: Kept) {
        let mut state = lock(&self.0);
        let is_settled = rewrites == state.rewrites && rewrites.is_multiple_of(2);
        if !is_settled || kept.bytes > MOST_BYTES {
            return;
        }
        if state.all.len() >= CONVERSATIONS {
            state.all.remove(0);
        }
        state.all.push((conversation, kept));
    }

    /// Gives the memory back.
    pub fn clear(&self) {
        lock(&self.0).all = Vec::new();
    }
}
