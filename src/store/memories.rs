//! Memories: facts that the assistant was asked to remember, with full-text search.

use rusqlite::{Connection, Row, params};

use crate::audience::{Audience, Directory};
use crate::conversations::check_seen;
use crate::database::Store;
use crate::fulltext;
use crate::query::row;
use crate::viewer::{Belongs, Viewer, seen_columns};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, MemoryId, UserId};

/// The share of the best rank that a memory needs to be relevant.
const RELEVANT: f64 = 0.2;

/// Most rows of one list.
const MOST: usize = 1000;

/// A fact that the assistant was asked to remember.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What `delete_memory` takes.
    pub id: MemoryId,
    /// One fact, as the model worded it; unique within an audience.
    pub content: String,
    /// Who said it.
    pub speaker: Option<String>,
    /// The name of the person whose it is.
    pub owner: Option<String>,
    /// The same person.
    pub owner_id: Option<UserId>,
    /// Who sees it.
    pub audience: Audience,
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
    /// Who said it, as it is shown.
    pub speaker: Option<String>,
    /// The same, if it was a person with an account.
    pub owner_id: Option<UserId>,
    /// The conversation whose audience sees it; if absent, the household does.
    pub seen_as: Option<ConversationId>,
    /// Where it was said.
    pub channel: Option<String>,
    /// The webhook account through which it came.
    pub account: Option<String>,
    /// Whether text from outside was in the conversation.
    pub is_outside: bool,
}

impl Store {
    /// Stores a memory, durably. The same text, apart from white space around it, is
    /// stored once for each audience.
    ///
    /// # Errors
    /// `invalid_request` when empty; `not_found` for the conversation.
    pub fn remember(&self, new: NewMemory) -> Result<Memory> {
        self.write(move |write| {
            let content = new.content.trim().to_owned();
            if content.is_empty() {
                return Err(Error::invalid_request("there is nothing to remember").into());
            }
            let audience_id = match new.seen_as {
                Some(conversation) => {
                    let sight = Viewer::server().sight(write.connection)?;
                    check_seen(write.connection, &sight, conversation)?.audience_id
                }
                None => AudienceId::HOUSEHOLD,
            };
            let mut directory = Directory::default();
            let known = row(
                write.connection,
                SAME_MEMORY,
                params![audience_id, &content],
                |row| from_row(write.connection, &mut directory, row),
            )?;
            if let Some(memory) = known {
                return Ok(memory);
            }
            let memory = Memory {
                id: write.id(),
                content,
                speaker: new.speaker,
                owner: directory.name(write.connection, new.owner_id)?,
                owner_id: new.owner_id,
                audience: directory.audience(write.connection, new.owner_id, audience_id)?,
                channel: new.channel,
                account: new.account,
                is_outside: new.is_outside,
                created_at: write.now,
            };
            write.execute(
                "INSERT INTO memories
                     (id, content, speaker, created_at, owner_id, audience_id, channel, account,
                      is_outside)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
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
                ],
            )?;
            Ok(memory)
        })
    }

    /// The memories that match `query` best, at most `limit` (and 1,000). Any word
    /// may match, as a prefix and regardless of accents.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn recall(&self, viewer: &Viewer, query: &str, limit: usize) -> Result<Vec<Memory>> {
        let Some(query) = fulltext::any_word(query) else {
            return Ok(Vec::new());
        };
        let found = self.ranked(viewer, &query, limit)?;
        Ok(found.into_iter().map(|(_, memory)| memory).collect())
    }

    /// The memories that are relevant for a message, best first, at most `limit`
    /// (and 1,000). Words of one or two letters are ignored. So are memories that
    /// match far worse than the best: common words match nearly everything.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn relevant_memories(
        &self,
        viewer: &Viewer,
        message: &str,
        limit: usize,
    ) -> Result<Vec<Memory>> {
        let Some(query) = fulltext::significant_words(message) else {
            return Ok(Vec::new());
        };
        let mut found = self.ranked(viewer, &query, limit)?;
        // The better the match, the more negative the rank.
        let worst = found.first().map_or(0.0, |(best, _)| best * RELEVANT);
        found.retain(|(rank, _)| *rank <= worst);
        Ok(found.into_iter().map(|(_, memory)| memory).collect())
    }

    /// All memories, newest first, at most 1,000.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn memories(&self, viewer: &Viewer) -> Result<Vec<Memory>> {
        self.read(|connection| {
            let (sight, mut directory) = (viewer.sight(connection)?, Directory::default());
            sight.rows(connection, MEMORIES, params![], MOST, |row| {
                from_row(connection, &mut directory, row)
            })
        })
    }

    /// Deletes a memory.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not delete it.
    pub fn forget(&self, viewer: &Viewer, id: MemoryId) -> Result<()> {
        let viewer = viewer.clone();
        self.write(move |write| {
            let sight = viewer.sight(write.connection)?;
            let (_, thing) = sight.find(write.connection, "memory", MEMORY, id, |_| Ok(()))?;
            sight.check_change(write.connection, "memory", &thing)?;
            write.execute("DELETE FROM memories WHERE id = ?", params![id])?;
            Ok(())
        })
    }

    /// The memories that match a full-text query best, each with its rank.
    fn ranked(&self, viewer: &Viewer, query: &str, limit: usize) -> Result<Vec<(f64, Memory)>> {
        self.read(|connection| {
            let (sight, mut directory) = (viewer.sight(connection)?, Directory::default());
            sight.rows(connection, RANKED, params![query], limit.min(MOST), |row| {
                let memory = from_row(connection, &mut directory, row)?;
                Ok((row.get("rank")?, memory))
            })
        })
    }
}

const SAME_MEMORY: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.* FROM memories m WHERE audience_id = ?1 AND content = ?2"
);

const MEMORIES: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.* FROM memories m ORDER BY id DESC"
);

const MEMORY: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    " FROM memories m WHERE id = ?"
);

const RANKED: &str = concat!(
    "SELECT ",
    seen_columns!("m"),
    ", m.*, f.rank AS rank FROM memories_fts f CROSS JOIN memories m ON m.id = f.rowid \
     WHERE memories_fts MATCH ?1 ORDER BY f.rank"
);

/// Of a row that begins with the [`seen_columns`].
fn from_row(
    connection: &Connection,
    directory: &mut Directory,
    row: &Row<'_>,
) -> rusqlite::Result<Memory> {
    let thing = Belongs::from_row(row)?;
    Ok(Memory {
        owner: directory.name(connection, thing.owner_id)?,
        owner_id: thing.owner_id,
        audience: directory.audience(connection, thing.owner_id, thing.audience_id)?,
        channel: row.get("channel")?,
        account: thing.account,
        is_outside: row.get("is_outside")?,
        id: row.get("id")?,
        content: row.get("content")?,
        speaker: row.get("speaker")?,
        created_at: row.get("created_at")?,
    })
}
