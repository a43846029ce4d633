//! What the assistant was asked to remember, with full-text search.

use super::*;
use crate::ids::MemoryId;

impl Store {
    /// Remembers a text, durably. The same text is remembered once.
    pub fn remember(&self, content: &str, speaker: Option<&str>) -> Result<Memory> {
        let _ = (content, speaker);
        todo!()
    }

    /// The memories that fit `query` best, at most `limit`; any word may match,
    /// as a prefix and without regard to accents.
    pub fn recall(&self, query: &str, limit: usize) -> Result<Vec<Memory>> {
        let _ = (query, limit);
        todo!()
    }

    /// All memories, newest first, at most 1,000.
    pub fn memories(&self) -> Result<Vec<Memory>> {
        todo!()
    }

    /// Deletes one. Errors: `not_found`.
    pub fn forget(&self, id: MemoryId) -> Result<()> {
        let _ = id;
        todo!()
    }
}
