//! The vectors of memories, of one model at a time.

use rusqlite::{Connection, params};

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use crate::engine::query::Statements;
use crate::home::vector::Vector;
use base::error::Result;
use base::ids::MemoryId;

/// Of which model the vectors are.
const MODEL_KEY: &str = "memory_vectors";

impl Store {
    /// Memories without a vector of this model, oldest first, at most `most`, with the
    /// beginning of their texts. Another model than before makes all anew.
    pub fn memories_without_vector(
        &self,
        model: &str,
        most: usize,
    ) -> Result<Vec<(MemoryId, String)>> {
        let model = model.to_owned();
        self.write(move |write| {
            if !is_of_model(write.connection, MODEL_KEY, &model)? {
                write.execute("DELETE FROM memory_vectors", params![])?;
                meta::set(write, MODEL_KEY, &model)?;
            }
            write.rows(WITHOUT, params![most], |row| Ok(row.try_into()?))
        })
    }

    /// Stores vectors of this model. Those of memories that were forgotten in the
    /// meantime, and of a model that no longer is the one in use, are not stored.
    pub fn keep_vectors(&self, model: &str, vectors: Vec<(MemoryId, Vector)>) -> Result<()> {
        let model = model.to_owned();
        self.write(move |write| {
            if is_of_model(write.connection, MODEL_KEY, &model)? {
                keep(write, vectors)?;
            }
            Ok(())
        })
    }

    /// The newest memory, which changes when one is remembered.
    pub fn newest_memory(&self) -> Result<Provisional<Option<MemoryId>>> {
        self.look(|connection| {
            Ok(connection
                .value("SELECT max(id) FROM memories", params![])?
                .flatten())
        })
    }
}

/// Whether the vectors of this key are of this model.
pub(crate) fn is_of_model(connection: &Connection, key: &str, model: &str) -> Outcome<bool> {
    let known: Option<String> = meta::get(connection, key)?;
    Ok(known.as_deref() == Some(model))
}

fn keep(write: &Write<'_>, vectors: Vec<(MemoryId, Vector)>) -> Outcome<()> {
    for (memory, vector) in vectors {
        write.execute(
            "INSERT OR REPLACE INTO memory_vectors (memory_id, vector)
             SELECT id, ?2 FROM memories WHERE id = ?1",
            params![memory, vector.to_bytes()],
        )?;
    }
    Ok(())
}

const WITHOUT: &str = "SELECT id, substr(content, 1, 1000) FROM memories m
     WHERE NOT EXISTS (SELECT 1 FROM memory_vectors v WHERE v.memory_id = m.id)
     ORDER BY id LIMIT ?1";
