//! Memories: facts that the assistant was asked to remember, and which of them fit a
//! message.

use std::collections::HashSet;
use std::ops::ControlFlow;

use rusqlite::{Connection, Row, params};

use crate::chat::conversations::check_seen;
use crate::chat::search_words;
use crate::chat::steps::note_told;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{each_row, from_row, not_found, row};
use crate::home::forgetting::{forget, plain};
use crate::home::memory_index::Seen;
use crate::home::recall::Choice;
use crate::home::vector::Vector;
use crate::sight::audience::{self, Audience, Directory, Readers};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, Viewer, seen_columns};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, MemoryId, TurnId, UserId};

/// Most rows of one list.
const MOST: usize = 1000;

/// Most memories that are compared with one that is to be replaced, the newest ones.
const MOST_COMPARED: usize = 10_000;

/// Bytes of all memories up to which they are shown whole: cheaper than to miss one.
const SMALL: usize = 2_000;
/// How many these are at most: each is shown with who said it, and when.
const FEW: usize = 64;

/// Most relevant memories of a larger set.
const MOST_RELEVANT: usize = 4;

/// A fact that the assistant was asked to remember.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What `delete_memory` takes.
    pub id: MemoryId,
    /// One fact, as the model worded it; unique within an audience.
    pub content: String,
    /// Other words by which it is found.
    pub search_words: Vec<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// The name of the person whose it is.
    pub owner: Option<String>,
    /// The same person.
    pub owner_id: Option<UserId>,
    /// Who sees it.
    pub audience: Audience,
    /// The same, for what is sent to many.
    pub readers: Readers,
    /// Where it was said, as [`Conversation::channel`](crate::Conversation::channel);
    /// absent for one that is older than this column.
    pub channel: Option<String>,
    /// The webhook account through which it came.
    pub account: Option<String>,
    /// When it was first remembered.
    pub created_at: Timestamp,
    /// Whether text from outside was in the conversation.
    pub is_outside: bool,
}

/// A fact to remember.
#[derive(Clone, Debug, Default)]
pub struct NewMemory {
    /// One fact.
    pub content: String,
    /// Other words by which people may ask about it. Of more than 16, or 240 characters,
    /// the first ones are kept.
    pub search_words: Vec<String>,
    /// Who said it, as it is shown.
    pub speaker: Option<String>,
    /// The same, if it was a person with an account.
    pub owner_id: Option<UserId>,
    /// The conversation whose audience sees it.
    pub seen_as: Option<ConversationId>,
    /// Without a conversation, whether only its owner sees it; if not, the household does.
    pub is_private: bool,
    /// Where it was said.
    pub channel: Option<String>,
    /// The webhook account through which it came.
    pub account: Option<String>,
    /// Whether text from outside was in the conversation.
    pub is_outside: bool,
    /// The turn whose call has it, and is to forget it with the rest.
    pub told_in: Option<TurnId>,
}

impl Snapshot<'_> {
    /// Whether more people see the memory of this id or text, if there is one, than are of
    /// this audience.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn is_seen_by_more(&self, memory: &str, audience: AudienceId) -> Result<bool> {
        let (connection, sight) = self.parts();
        let Some(id) = find_to_replace(connection, sight, memory)? else {
            return Ok(false);
        };
        let of_memory = row(connection, MEMORY, params![id], |row| {
            Ok(Belongs::from_row(row)?.audience_id)
        })?;
        Ok(match of_memory {
            Some(of_memory) => audience::is_wider(connection, audience, of_memory)?,
            None => false,
        })
    }

    /// The memories that share a word with `query`, or a part of one, best first, at
    /// most `limit` (and 1,000). Words of grammar are ignored. With a vector of the
    /// query, what is near by its meaning is among them.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn recall(
        &self,
        query: &str,
        vector: Option<&Vector>,
        limit: usize,
    ) -> Result<Vec<Memory>> {
        let (connection, sight) = self.parts();
        let index = &self.store.memory_index;
        let most = limit.min(MOST);
        let mut seen = index.seen(connection, sight)?;
        let ids = seen.choose(connection, query, vector, Choice::Any, most)?;
        drop(seen);
        Ok(load(connection, sight, ids)?)
    }

    /// The memories to show with a message. If all that is seen is little, all of it,
    /// oldest first; otherwise what is relevant, best first, at most four. Text from
    /// outside is shown only where it is relevant. What the model has been shown before,
    /// `shown`, is left out. With a vector of the message, what is near by its meaning is
    /// relevant as well.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn relevant_memories(
        &self,
        message: &str,
        vector: Option<&Vector>,
        shown: &HashSet<MemoryId>,
    ) -> Result<Vec<Memory>> {
        let (connection, sight) = self.parts();
        let index = &self.store.memory_index;
        let mut seen = index.seen(connection, sight)?;
        let is_small = is_small(&seen);
        let mut ids = match is_small && !seen.glances().any(|one| one.is_outside) {
            true => Vec::new(),
            false => seen.choose(connection, message, vector, Choice::Relevant, MOST_RELEVANT)?,
        };
        if is_small {
            let whole = seen
                .glances()
                .filter(|one| !one.is_outside || ids.contains(&one.id));
            ids = whole.map(|one| one.id).collect();
        }
        drop(seen);
        ids.retain(|id| !shown.contains(id));
        Ok(load(connection, sight, ids)?)
    }

    /// Whether more is seen than is shown whole, so that it is chosen from.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn has_many_memories(&self) -> Result<bool> {
        let (connection, sight) = self.parts();
        Ok(!is_small(&self.store.memory_index.seen(connection, sight)?))
    }

    /// All memories, newest first, at most 1,000.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn memories(&self) -> Result<Vec<Memory>> {
        let (connection, sight) = self.parts();
        let all = sight.rows(connection, MEMORIES, params![], MOST, |row| {
            from_row(connection, &mut sight.directory(), row)
        });
        Ok(all?)
    }
}

impl Store {
    /// Stores a memory, durably. The same text is stored once for each audience,
    /// whatever its case, white space and last punctuation; its search words come before
    /// those that it has, unless only these were said by somebody of the household.
    ///
    /// # Errors
    /// `invalid_request` when empty; `not_found` for the conversation.
    pub fn remember(&self, new: NewMemory) -> Result<Memory> {
        let (memory, is_reworded) = self.write(move |write| add(write, new, None))?;
        if is_reworded {
            self.inner.memory_index.outdate();
        }
        Ok(memory)
    }

    /// Stores a memory, and deletes the one that it corrects in the same commit: by its
    /// id, or by its text as [`Store::remember`] compares it. Those who saw that one see it,
    /// or the household if `new` is for the household. Returns both.
    ///
    /// # Errors
    /// As of [`Store::remember`] and [`Store::forget`]; nothing is changed then.
    pub fn replace_memory(
        &self,
        viewer: &Viewer,
        replaced: &str,
        new: NewMemory,
    ) -> Result<(Memory, Memory)> {
        let (viewer, replaced) = (viewer.clone(), replaced.to_owned());
        self.write(move |write| {
            let connection = write.connection;
            let sight = viewer.sight(connection)?;
            let (old, thing) = match find_to_replace(connection, &sight, &replaced)? {
                Some(id) => sight.find(connection, "memory", MEMORY, id, |row| {
                    from_row(connection, &mut sight.directory(), row)
                })?,
                None => return Err(not_found("memory", replaced)),
            };
            sight.check_delete(connection, "memory", &thing)?;
            if let Some(turn) = new.told_in {
                // Its call may have the text.
                note_told(write, turn, old.id)?;
            }
            forget(write, old.id)?;
            let (memory, _) = add(write, new, Some(thing.audience_id))?;
            Ok((memory, old))
        })
    }

    /// Deletes a memory. What tools told the model of it goes, too, in all conversations.
    /// Returns who saw it.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not delete it.
    pub fn forget(&self, viewer: &Viewer, id: MemoryId) -> Result<Readers> {
        let viewer = viewer.clone();
        self.write(move |write| {
            let sight = viewer.sight(write.connection)?;
            let (_, thing) = sight.find(write.connection, "memory", MEMORY, id, |_| Ok(()))?;
            sight.check_delete(write.connection, "memory", &thing)?;
            forget(write, id)?;
            Ok(audience::readers(write.connection, thing.audience_id)?)
        })
    }
}

/// Whether what is seen is little enough to be shown whole.
fn is_small(seen: &Seen<'_>) -> bool {
    let bytes: usize = seen.glances().map(|one| one.bytes as usize).sum();
    bytes <= SMALL && seen.glances().count() <= FEW
}

/// The memories with these ids, in this order.
fn load(connection: &Connection, sight: &Sight, ids: Vec<MemoryId>) -> Outcome<Vec<Memory>> {
    let found = ids.into_iter().map(|id| {
        let found = sight.find(connection, "memory", MEMORY, id, |row| {
            from_row(connection, &mut sight.directory(), row)
        });
        found.map(|(memory, _)| memory)
    });
    found.collect()
}

/// Stores a memory, or finds the same one. Unless it is for the household, those of the
/// audience of what it `replaces` see it. Returns whether it was there and has other search
/// words now.
fn add(write: &Write<'_>, new: NewMemory, replaces: Option<AudienceId>) -> Outcome<(Memory, bool)> {
    let told_in = new.told_in;
    let added = add_or_find(write, new, replaces)?;
    if let Some(turn) = told_in {
        note_told(write, turn, added.0.id)?;
    }
    Ok(added)
}

fn add_or_find(
    write: &Write<'_>,
    new: NewMemory,
    replaces: Option<AudienceId>,
) -> Outcome<(Memory, bool)> {
    let content = new.content.trim().to_owned();
    if content.is_empty() {
        return Err(Error::invalid_request("there is nothing to remember").into());
    }
    let owner = new.owner_id.filter(|_| new.is_private);
    let audience_id = match (new.seen_as, owner, replaces) {
        (Some(conversation), _, None) => audience_of(write.connection, conversation)?,
        (None, Some(owner), None) => audience::private(write, owner)?,
        (Some(_), _, Some(audience_id)) | (None, Some(_), Some(audience_id)) => audience_id,
        (None, None, _) => AudienceId::HOUSEHOLD,
    };
    let search_words = search_words::clean(&new.search_words);
    let mut directory = Directory::default();
    let same = plain(&content);
    let mut known = None;
    each_row(
        write.connection,
        OF_AUDIENCE,
        params![audience_id],
        &mut |row| {
            if plain(row.get_ref("content")?.as_str()?) != same {
                return Ok(ControlFlow::Continue(()));
            }
            known = Some(from_row(write.connection, &mut directory, row)?);
            Ok(ControlFlow::Break(()))
        },
    )?;
    if let Some(memory) = known {
        // Whoever is outside says nothing of what the household knows.
        let may_add = memory.is_outside || !new.is_outside;
        let search_words = search_words::clean(&[&search_words[..], &memory.search_words].concat());
        if !may_add || search_words == memory.search_words {
            return Ok((memory, false));
        }
        write.execute(
            "UPDATE memories SET search_words = ?2 WHERE id = ?1",
            params![memory.id, search_words::to_column(&search_words)],
        )?;
        let reworded = Memory {
            search_words,
            ..memory
        };
        return Ok((reworded, true));
    }
    let memory = Memory {
        id: write.id(),
        content,
        search_words,
        speaker: new.speaker,
        owner: directory.name(write.connection, new.owner_id)?,
        owner_id: new.owner_id,
        audience: directory.audience(write.connection, new.owner_id, audience_id)?,
        readers: directory.readers(write.connection, audience_id)?,
        channel: new.channel,
        account: new.account,
        is_outside: new.is_outside,
        created_at: write.now,
    };
    write.execute(
        "INSERT INTO memories
             (id, content, speaker, created_at, owner_id, audience_id, channel, account,
              is_outside, search_words)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            memory.id,
            memory.content,
            memory.speaker,
            memory.created_at,
            memory.owner_id,
            audience_id,
            memory.channel,
            memory.account,
            memory.is_outside,
            search_words::to_column(&memory.search_words),
        ],
    )?;
    Ok((memory, false))
}

fn audience_of(connection: &Connection, conversation: ConversationId) -> Outcome<AudienceId> {
    let sight = Viewer::server().sight(connection)?;
    Ok(check_seen(connection, &sight, conversation)?.audience_id)
}

/// The memory with this id or this text, if it is seen.
fn find_to_replace(
    connection: &Connection,
    sight: &Sight,
    replaced: &str,
) -> Outcome<Option<MemoryId>> {
    if let Ok(id) = replaced.trim().parse() {
        return Ok(Some(id));
    }
    let same = plain(replaced);
    let found = sight.rows(connection, MEMORIES, params![], MOST_COMPARED, |row| {
        Ok((row.get("id")?, plain(row.get_ref("content")?.as_str()?)))
    })?;
    let mut found = found.into_iter();
    Ok(found.find(|(_, text)| *text == same).map(|(id, _)| id))
}

const OF_AUDIENCE: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.* FROM memories m WHERE audience_id = ?1"
);

const MEMORIES: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.* FROM memories m ORDER BY id DESC"
);

const MEMORY: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.* FROM memories m WHERE id = ?"
);

/// Of a row that begins with the [`seen_columns`].
pub(crate) fn from_row(
    connection: &Connection,
    directory: &mut Directory,
    row: &Row<'_>,
) -> rusqlite::Result<Memory> {
    let thing = Belongs::from_row(row)?;
    Ok(from_row!(row => Memory {
        channel, is_outside, id, content, speaker, created_at;
        owner: directory.name(connection, thing.owner_id)?,
        owner_id: thing.owner_id,
        audience: directory.audience(connection, thing.owner_id, thing.audience_id)?,
        readers: directory.readers(connection, thing.audience_id)?,
        account: thing.account,
        search_words: search_words::of_row(row)?,
    }))
}
