//! The words of all memories, kept from question to question.

use std::ops::ControlFlow;

use rusqlite::{Connection, params};

use crate::engine::failure::Outcome;
use crate::engine::query::{Statements, length};
use crate::home::recall::{Choice, Vocabulary, outdated, outdates, rank};
use crate::home::vector::{Vector, nearest};
use crate::sight::viewer::{Belongs, Sight, select_seen};
use base::ids::MemoryId;
use base::sync::{Mutex, MutexGuard, lock};

/// Most memories that are compared with a message, the newest ones. They take about 1 MB
/// of memory, and twice that with search words; a household with a hundred takes 80 KB, and one
/// without any takes none.
const MOST_COMPARED: usize = 10_000;

/// The words of the memories, as far as they have been asked for.
///
/// It is read from the database when somebody first asks and when something was
/// forgotten; what was remembered since is added. Whether it still fits is asked of the
/// database each time, so that neither another process nor a lost write can make it wrong.
#[derive(Default)]
pub(crate) struct MemoryIndex(Mutex<Indexed>);

#[derive(Default)]
struct Indexed {
    state: State,
    vocabulary: Vocabulary,
    /// In the order of the vocabulary: oldest first.
    memories: Vec<Glance>,
    /// Their owners, each once.
    owners: Vec<Belongs>,
}

/// What changes with the memories in the database.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State {
    memories: i64,
    owned: i64,
    worded: i64,
    last: i64,
}

/// What the choice of memories needs of one.
pub(crate) struct Glance {
    pub id: MemoryId,
    /// Of the whole text.
    pub bytes: u32,
    /// Its place in `owners`.
    owner: u32,
    pub is_outside: bool,
}

/// The memories that somebody sees.
pub(crate) struct Seen<'a> {
    index: MutexGuard<'a, Indexed>,
    /// By place in the index.
    is_seen: Vec<bool>,
}

impl MemoryIndex {
    /// Has it read anew: a memory that it may know has other search words.
    pub fn outdate(&self) {
        *lock(&self.0) = Indexed::default();
    }

    /// The memories that are seen at this moment.
    pub fn seen(&self, sight: &Sight<'_>) -> Outcome<Seen<'_>> {
        let mut index = lock(&self.0);
        index.bring_up_to_date(sight.connection())?;
        let sees: Vec<bool> = index.owners.iter().map(|owner| sight.sees(owner)).collect();
        let is_seen = |memory: &Glance| sees[memory.owner as usize];
        let is_seen = index.memories.iter().map(is_seen).collect();
        Ok(Seen { index, is_seen })
    }
}

impl Seen<'_> {
    /// All of them, oldest first.
    pub fn glances(&self) -> impl Iterator<Item = &Glance> {
        let all = self.index.memories.iter().zip(&self.is_seen);
        all.filter(|(_, is_seen)| **is_seen)
            .map(|(glance, _)| glance)
    }

    /// The best of them for a message, at most `limit`, best first. With a vector of the
    /// message, those that are near by their meaning are among them.
    pub fn choose(
        &mut self,
        connection: &Connection,
        message: &str,
        vector: Option<&Vector>,
        choice: Choice,
        limit: usize,
    ) -> Outcome<Vec<MemoryId>> {
        if !self.is_seen.contains(&true) {
            return Ok(Vec::new());
        }
        let near = match vector {
            Some(vector) => self.near(connection, vector, limit)?,
            None => Vec::new(),
        };
        let vocabulary = &self.index.vocabulary;
        let places = rank(vocabulary, &self.is_seen, message, choice, &near, limit);
        let ids = places
            .into_iter()
            .map(|place| self.index.memories[place].id);
        Ok(ids.collect())
    }

    /// Those of these of whose thing a newer memory says something else, each with the newest.
    pub fn outdated(&self, ids: &[MemoryId]) -> Vec<(MemoryId, MemoryId)> {
        let memories = &self.index.memories;
        let places: Vec<usize> = ids.iter().filter_map(|id| self.place(*id)).collect();
        let (vocabulary, is_seen) = (&self.index.vocabulary, &self.is_seen);
        let pairs = outdated(vocabulary, is_seen, &places, |old, new| {
            self.outranks(old, new)
        });
        let pairs = pairs.into_iter();
        pairs
            .map(|(old, new)| (memories[old].id, memories[new].id))
            .collect()
    }

    /// The newest of the older ones of whose thing this one says something else.
    pub fn outdated_by(&self, id: MemoryId) -> Option<MemoryId> {
        let (vocabulary, is_seen) = (&self.index.vocabulary, &self.is_seen);
        let new = self.place(id)?;
        let old = outdates(vocabulary, is_seen, new, |old, new| self.outranks(old, new))?;
        Some(self.index.memories[old].id)
    }

    fn place(&self, id: MemoryId) -> Option<usize> {
        let place = self
            .index
            .memories
            .iter()
            .position(|known| known.id == id)?;
        self.is_seen[place].then_some(place)
    }

    /// Whoever is outside does not correct the household.
    fn outranks(&self, old: usize, new: usize) -> bool {
        let memories = &self.index.memories;
        memories[old].is_outside || !memories[new].is_outside
    }

    fn near(&self, connection: &Connection, vector: &Vector, limit: usize) -> Outcome<Vec<usize>> {
        let seen = (0..self.is_seen.len()).filter(|place| self.is_seen[*place]);
        let places: Vec<usize> = seen.collect();
        let ids = places.iter().map(|place| self.index.memories[*place].id);
        let ids: Vec<MemoryId> = ids.collect();
        let near = nearest(connection, vector, &ids, limit)?;
        Ok(near.into_iter().map(|place| places[place]).collect())
    }
}

impl Indexed {
    fn bring_up_to_date(&mut self, connection: &Connection) -> Outcome<()> {
        let now = connection.row(STATE, params![], |row| {
            Ok(State {
                memories: row.get(0)?,
                owned: row.get(1)?,
                worded: row.get(2)?,
                last: row.get(3)?,
            })
        })?;
        let now = now.unwrap_or_default();
        if now == self.state {
            return Ok(());
        }
        let is_more = now.last > self.state.last && now.memories <= MOST_COMPARED as i64;
        if is_more {
            self.add(connection)?;
            if self.state == now {
                return Ok(());
            }
        }
        *self = Indexed::default();
        self.add(connection)?;
        self.state = now;
        Ok(())
    }

    /// Adds what is newer than what is known.
    fn add(&mut self, connection: &Connection) -> Outcome<()> {
        let mut texts: Vec<(String, String)> = Vec::new();
        let mut added: Vec<Glance> = Vec::new();
        let known = self.state.last;
        let state = &mut self.state;
        connection.each_row(NEWER, params![known, MOST_COMPARED], &mut |row| {
            let belongs = Belongs::from_row(row)?;
            let owner = self.owners.iter().position(|owner| *owner == belongs);
            let search_words: Option<String> = row.get("search_words")?;
            let id: MemoryId = row.get("id")?;
            state.memories += 1;
            state.owned += i64::from(belongs.owner_id.is_some());
            state.worded += i64::from(search_words.is_some());
            state.last = state.last.max(id.as_i64());
            added.push(Glance {
                id,
                bytes: length(row, "content")? as u32,
                owner: owner.unwrap_or(self.owners.len()) as u32,
                is_outside: row.get("is_outside")?,
            });
            texts.push((row.get("content")?, search_words.unwrap_or_default()));
            if owner.is_none() {
                self.owners.push(belongs);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.memories.extend(added.into_iter().rev());
        let texts = texts.iter().rev();
        let texts = texts.map(|(text, search_words)| (text.as_str(), search_words.as_str()));
        self.vocabulary.add(texts);
        Ok(())
    }
}

/// An owner is taken from a memory, and not given to another one. That search words change
/// is not seen here: see [`MemoryIndex::outdate`].
const STATE: &str =
    "SELECT count(*), count(owner_id), count(search_words), ifnull(max(id), 0) FROM memories";

const NEWER: &str = select_seen!(
    "m",
    "id, content, search_words, is_outside \
     FROM memories m WHERE id > ?1 ORDER BY id DESC LIMIT ?2"
);
