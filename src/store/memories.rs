//! Memories: facts that the assistant was asked to remember, with full-text search.

use rusqlite::{Row, params};

use crate::database::Store;
use crate::fulltext;
use crate::query::{check_changed, row, rows};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::MemoryId;

/// The share of the best rank that a memory needs to be relevant.
const RELEVANT: f64 = 0.2;

/// Most rows of one list.
const MOST: usize = 1000;

/// A fact that the assistant was asked to remember.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What `delete_memory` takes.
    pub id: MemoryId,
    /// One fact, as the model worded it; unique.
    pub content: String,
    /// Who said it.
    pub speaker: Option<String>,
    /// When it was first remembered.
    pub created_at: Timestamp,
}

impl Store {
    /// Stores a memory, durably. The same text, apart from white space around it, is
    /// stored once.
    ///
    /// # Errors
    /// `invalid_request` when empty.
    pub fn remember(&self, content: &str, speaker: Option<&str>) -> Result<Memory> {
        let content = content.trim().to_owned();
        let speaker = speaker.map(str::to_owned);
        self.write(move |write| {
            if content.is_empty() {
                return Err(Error::invalid_request("there is nothing to remember").into());
            }
            let known = row(
                write.connection,
                "SELECT * FROM memories WHERE content = ?",
                params![&content],
                from_row,
            )?;
            if let Some(memory) = known {
                return Ok(memory);
            }
            let memory = Memory {
                id: write.id(),
                content,
                speaker,
                created_at: write.now,
            };
            write.execute(
                "INSERT INTO memories (id, content, speaker, created_at) VALUES (?1, ?2, ?3, ?4)",
                params![memory.id, memory.content, memory.speaker, memory.created_at],
            )?;
            Ok(memory)
        })
    }

    /// The memories that match `query` best, at most `limit` (and 1,000). Any word
    /// may match, as a prefix and regardless of accents.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn recall(&self, query: &str, limit: usize) -> Result<Vec<Memory>> {
        let Some(query) = fulltext::any_word(query) else {
            return Ok(Vec::new());
        };
        self.read(|connection| {
            rows(
                connection,
                "SELECT m.* FROM memories_fts f CROSS JOIN memories m ON m.id = f.rowid
                 WHERE memories_fts MATCH ?1 ORDER BY f.rank LIMIT ?2",
                params![query, limit.min(MOST) as i64],
                from_row,
            )
        })
    }

    /// The memories that are relevant for a message, best first, at most `limit`
    /// (and 1,000). Words of one or two letters are ignored. So are memories that
    /// match far worse than the best: common words match nearly everything.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn relevant_memories(&self, message: &str, limit: usize) -> Result<Vec<Memory>> {
        let Some(query) = fulltext::significant_words(message) else {
            return Ok(Vec::new());
        };
        let mut found = self.read(|connection| {
            rows(
                connection,
                "SELECT m.*, f.rank AS rank
                 FROM memories_fts f CROSS JOIN memories m ON m.id = f.rowid
                 WHERE memories_fts MATCH ?1 ORDER BY f.rank LIMIT ?2",
                params![query, limit.min(MOST) as i64],
                |row| Ok((row.get::<_, f64>("rank")?, from_row(row)?)),
            )
        })?;
        // The better the match, the more negative the rank.
        let worst = found.first().map_or(0.0, |(best, _)| best * RELEVANT);
        found.retain(|(rank, _)| *rank <= worst);
        Ok(found.into_iter().map(|(_, memory)| memory).collect())
    }

    /// All memories, newest first, at most 1,000.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn memories(&self) -> Result<Vec<Memory>> {
        self.read(|connection| {
            rows(
                connection,
                "SELECT * FROM memories ORDER BY id DESC LIMIT ?",
                params![MOST as i64],
                from_row,
            )
        })
    }

    /// Deletes a memory.
    ///
    /// # Errors
    /// `not_found`.
    pub fn forget(&self, id: MemoryId) -> Result<()> {
        self.write(move |write| {
            let deleted = write.execute("DELETE FROM memories WHERE id = ?", params![id])?;
            check_changed(deleted, "memory", id)
        })
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Memory> {
    Ok(Memory {
        id: row.get("id")?,
        content: row.get("content")?,
        speaker: row.get("speaker")?,
        created_at: row.get("created_at")?,
    })
}
