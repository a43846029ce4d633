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
use crate::engine::query::{Statements, from_row, not_found};
use crate::home::forgetting::{forget, plain};
use crate::home::memory_index::{Glance, Seen};
use crate::home::recall::Choice;
use crate::home::vector::Vector;
use crate::sight::audience::{self, Audience, Directory, Readers, UnknownName, intern};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight, Viewer, select_seen};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, MemoryId, TurnId, UserId};

/// Most rows of one list.
const MOST: usize = 1000;

/// Most memories that are compared with one that is to be replaced, the newest ones.
const MOST_COMPARED: usize = 10_000;

/// Bytes that a memory takes beside its text: who said it, and when.
const LINE: usize = 40;

/// Most of the memories that were shown last of which those are counted that fitted.
const LATE: i64 = 10_000;

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
    /// As what the model is shown it with a message.
    pub shown_as: ShownAs,
}

/// As what the model is shown a memory with a message, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownAs {
    /// It fits the message.
    Match,
    /// One of the rest.
    #[default]
    Other,
    /// What was before: a newer one says something else of the same thing.
    Former,
}

impl ShownAs {
    /// The places of each kind.
    const PLACES: i64 = 1_000;

    /// Where the database has the one at this place among those of its kind.
    pub(crate) fn position(self, place: usize) -> i64 {
        self as i64 * ShownAs::PLACES + place as i64
    }

    /// What stands at this position.
    pub(crate) fn at(position: i64) -> ShownAs {
        match position / ShownAs::PLACES {
            0 => ShownAs::Match,
            1 => ShownAs::Other,
            _ => ShownAs::Former,
        }
    }
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
    /// Who sees it, whatever else is said here.
    pub audience: Option<Audience>,
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
    pub fn is_seen_by_more(&self, memory: &str, audience: AudienceId) -> Result<bool> {
        let Some(id) = find_to_replace(&self.sight, memory)? else {
            return Ok(false);
        };
        let of_memory = self.row(MEMORY, params![id], |row| {
            Ok(Belongs::from_row(row)?.audience_id)
        })?;
        Ok(match of_memory {
            Some(of_memory) => audience::is_wider(self.connection(), audience, of_memory)?,
            None => false,
        })
    }

    /// The memories that share a word with `query`, or a part of one, best first, at
    /// most `limit` (and 1,000). Words of grammar are ignored. With a vector of the
    /// query, what is near by its meaning is among them.
    pub fn recall(
        &self,
        query: &str,
        vector: Option<&Vector>,
        limit: usize,
    ) -> Result<Vec<Memory>> {
        let index = &self.store.memory_index;
        let most = limit.min(MOST);
        let mut seen = index.seen(&self.sight)?;
        let ids = seen.choose(self.connection(), query, vector, Choice::Any, most)?;
        drop(seen);
        Ok(load(&self.sight, ids)?)
    }

    /// The memories to show with a message: all that are seen, oldest first, if they fit into
    /// so many bytes. Otherwise what fits the message, best first, at most four, and besides
    /// as many of the others as there is room for in the conversation: the most used of late
    /// and the newest. Of two that say something else of the same thing, the older one comes
    /// last, or not at all. Text from outside is shown only where it fits. What the model
    /// has been shown before, `shown`, is left out. With a vector of the message, what is
    /// near by its meaning fits as well.
    pub fn relevant_memories(
        &self,
        message: &str,
        vector: Option<&Vector>,
        shown: &HashSet<MemoryId>,
        most_bytes: usize,
    ) -> Result<Vec<Memory>> {
        let index = &self.store.memory_index;
        let mut seen = index.seen(&self.sight)?;
        let fit_all = fit_all(&seen, most_bytes);
        let mut matching = match fit_all && !seen.glances().any(|one| one.is_outside) {
            true => Vec::new(),
            false => seen.choose(
                self.connection(),
                message,
                vector,
                Choice::Relevant,
                MOST_RELEVANT,
            )?,
        };
        let is_outside = |id: &MemoryId| seen.glances().any(|one| one.id == *id && one.is_outside);
        if fit_all {
            matching.retain(is_outside);
        }
        for (old, new) in seen.outdated(&matching) {
            let is_known = matching.contains(&new);
            matching.retain_mut(|id| {
                let is_old = *id == old;
                *id = if is_old { new } else { *id };
                !(is_old && is_known)
            });
        }
        let is_other = |one: &&Glance| {
            !one.is_outside && !matching.contains(&one.id) && !shown.contains(&one.id)
        };
        let mut others: Vec<MemoryId> = match fit_all {
            true => seen.glances().filter(is_other).map(|one| one.id).collect(),
            false => {
                let is_shown =
                    |one: &&Glance| matching.contains(&one.id) || shown.contains(&one.id);
                let taken: usize = seen.glances().filter(is_shown).map(bytes_of).sum();
                let room = most_bytes.saturating_sub(taken);
                let candidates: Vec<&Glance> = seen.glances().filter(is_other).collect();
                used_or_new(self.connection(), &candidates, room)?
            }
        };
        let outdated: Vec<MemoryId> = seen
            .outdated(&others)
            .into_iter()
            .map(|(old, _)| old)
            .collect();
        drop(seen);
        matching.retain(|id| !shown.contains(id));
        let mut former = Vec::new();
        others.retain(|id| {
            let is_former = outdated.contains(id);
            former.extend((is_former && fit_all).then_some(*id));
            !is_former
        });
        let mut memories = Vec::new();
        for (ids, shown_as) in [
            (matching, ShownAs::Match),
            (others, ShownAs::Other),
            (former, ShownAs::Former),
        ] {
            let loaded = load(&self.sight, ids)?.into_iter();
            memories.extend(loaded.map(|memory| Memory { shown_as, ..memory }));
        }
        Ok(memories)
    }

    /// Whether more is seen than fits into so many bytes, so that it is chosen from.
    pub fn has_many_memories(&self, most_bytes: usize) -> Result<bool> {
        let seen = self.store.memory_index.seen(&self.sight)?;
        Ok(!fit_all(&seen, most_bytes))
    }

    /// The newest of the memories that are older than this one and say something else of the
    /// same thing.
    pub fn outdated_by(&self, id: MemoryId) -> Result<Option<Memory>> {
        let seen = self.store.memory_index.seen(&self.sight)?;
        let old = seen.outdated_by(id);
        drop(seen);
        Ok(load(&self.sight, old.into_iter().collect())?.pop())
    }

    /// One memory.
    ///
    /// # Errors
    /// `not_found`; `server_error` when the database cannot be read.
    pub fn memory(&self, id: MemoryId) -> Result<Memory> {
        Ok(find(&self.sight, id)?.0)
    }

    /// All memories, newest first, at most 1,000.
    pub fn memories(&self) -> Result<Vec<Memory>> {
        let all = self.sight.seen_rows(MEMORIES, params![], MOST, |row| {
            from_row(&self.sight.directory, row)
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
        let replaced = replaced.to_owned();
        self.write_for(viewer, move |write, sight| {
            let Some(id) = find_to_replace(sight, &replaced)? else {
                return Err(not_found("memory", replaced));
            };
            let (old, thing) = find(sight, id)?;
            sight.check_delete("memory", &thing)?;
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
        self.write_for(viewer, move |write, sight| {
            let (_, thing) = sight.find_seen("memory", MEMORY, id, |_| Ok(()))?;
            sight.check_delete("memory", &thing)?;
            forget(write, id)?;
            audience::readers(write.connection, thing.audience_id)
        })
    }
}

/// Whether all that is seen takes no more than this.
fn fit_all(seen: &Seen<'_>, most_bytes: usize) -> bool {
    seen.glances().map(bytes_of).sum::<usize>() <= most_bytes
}

/// The bytes of a memory as it is shown whole.
fn bytes_of(memory: &Glance) -> usize {
    LINE + memory.bytes as usize
}

/// Those of the candidates for which there is room, oldest first: in half of it those that
/// fitted most messages of late, and then the newest.
fn used_or_new(
    connection: &Connection,
    candidates: &[&Glance],
    room: usize,
) -> Outcome<Vec<MemoryId>> {
    if room == 0 {
        return Ok(Vec::new());
    }
    let parameters = params![LATE, ShownAs::PLACES];
    let used: Vec<MemoryId> = connection.values(MOST_USED, parameters)?;
    let is_used = |id| candidates.iter().find(|one| one.id == id).copied();
    let used = used.into_iter().filter_map(is_used);
    let newest = candidates.iter().rev().copied();
    let (mut left, mut chosen) = (room, Vec::new());
    let in_half = used
        .map(|one| (one, room / 2))
        .chain(newest.map(|one| (one, 0)));
    for (one, kept_free) in in_half {
        if left >= kept_free + bytes_of(one) && !chosen.contains(&one.id) {
            left -= bytes_of(one);
            chosen.push(one.id);
        }
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// The memories with these ids, in this order.
fn load(sight: &Sight<'_>, ids: Vec<MemoryId>) -> Outcome<Vec<Memory>> {
    let found = ids.into_iter().map(|id| find(sight, id));
    found.map(|found| Ok(found?.0)).collect()
}

fn find(sight: &Sight<'_>, id: MemoryId) -> Outcome<(Memory, Belongs)> {
    let from_row = |row: &Row<'_>| from_row(&sight.directory, row);
    sight.find_seen("memory", MEMORY, id, from_row)
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
        return Err(Error::refused("error.memory_empty", &[]).into());
    }
    let owner = new.owner_id.filter(|_| new.is_private);
    let audience_id = match (&new.audience, new.seen_as, owner, replaces) {
        (Some(audience), ..) => intern(write, new.owner_id, audience, UnknownName::Refuse)?,
        (_, Some(conversation), _, None) => audience_of(write.connection, conversation)?,
        (_, None, Some(owner), None) => audience::private(write, owner)?,
        (_, Some(_), _, Some(audience_id)) | (_, None, Some(_), Some(audience_id)) => audience_id,
        (_, None, None, _) => AudienceId::HOUSEHOLD,
    };
    let search_words = search_words::clean(&new.search_words);
    let directory = Directory::new(write.connection);
    let same = plain(&content);
    let mut known = None;
    write.each_row(OF_AUDIENCE, params![audience_id], &mut |row| {
        if plain(row.get_ref("content")?.as_str()?) != same {
            return Ok(ControlFlow::Continue(()));
        }
        known = Some(from_row(&directory, row)?);
        Ok(ControlFlow::Break(()))
    })?;
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
        owner: directory.name(new.owner_id)?,
        owner_id: new.owner_id,
        audience: directory.audience(new.owner_id, audience_id)?,
        readers: directory.readers(audience_id)?,
        channel: new.channel,
        account: new.account,
        is_outside: new.is_outside,
        created_at: write.now,
        shown_as: ShownAs::default(),
    };
    let search_words = search_words::to_column(&memory.search_words);
    write.insert(
        "memories",
        &[
            ("id", &memory.id),
            ("content", &memory.content),
            ("speaker", &memory.speaker),
            ("created_at", &memory.created_at),
            ("owner_id", &memory.owner_id),
            ("audience_id", &audience_id),
            ("channel", &memory.channel),
            ("account", &memory.account),
            ("is_outside", &memory.is_outside),
            ("search_words", &search_words),
        ],
    )?;
    Ok((memory, false))
}

fn audience_of(connection: &Connection, conversation: ConversationId) -> Outcome<AudienceId> {
    let sight = Viewer::server().sight(connection)?;
    Ok(check_seen(&sight, conversation)?.audience_id)
}

/// The memory with this id or this text, if it is seen.
fn find_to_replace(sight: &Sight<'_>, replaced: &str) -> Outcome<Option<MemoryId>> {
    if let Ok(id) = replaced.trim().parse() {
        return Ok(Some(id));
    }
    let same = plain(replaced);
    let found = sight.seen_rows(MEMORIES, params![], MOST_COMPARED, |row| {
        Ok((row.get("id")?, plain(row.get_ref("content")?.as_str()?)))
    })?;
    let mut found = found.into_iter();
    Ok(found.find(|(_, text)| *text == same).map(|(id, _)| id))
}

/// The memories that fitted messages of late, those that fitted most of them first.
const MOST_USED: &str = "SELECT memory_id FROM \
     (SELECT memory_id, position FROM shown_memories ORDER BY turn_id DESC LIMIT ?1) \
     WHERE position < ?2 GROUP BY memory_id ORDER BY count(*) DESC, memory_id DESC";

const OF_AUDIENCE: &str = select_seen!("m", "m.* FROM memories m WHERE audience_id = ?1");

const MEMORIES: &str = select_seen!("m", "m.* FROM memories m ORDER BY id DESC");

const MEMORY: &str = select_seen!("m", "m.* FROM memories m WHERE id = ?");

/// Of a row that begins with the [`seen_columns`].
pub(crate) fn from_row(directory: &Directory<'_>, row: &Row<'_>) -> Outcome<Memory> {
    let thing = Belongs::from_row(row)?;
    Ok(from_row!(row => Memory {
        channel, is_outside, id, content, speaker, created_at;
        owner: directory.name(thing.owner_id)?,
        owner_id: thing.owner_id,
        audience: directory.audience(thing.owner_id, thing.audience_id)?,
        readers: directory.readers(thing.audience_id)?,
        account: thing.account,
        search_words: search_words::of_row(row)?,
        shown_as: ShownAs::default(),
    }))
}
