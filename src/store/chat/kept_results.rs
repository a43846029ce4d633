//! Results of tools that are kept whole, because a model is shown them in parts. They
//! belong to their conversation, and nothing else reads them.

use rusqlite::params;

use crate::engine::database::Store;
use crate::engine::query::{Statements, not_found};
use crate::sight::snapshot::Snapshot;
use base::error::Result;
use base::ids::{AudienceId, ConversationId, ResultId};

/// Longest result that is kept, in bytes.
pub const KEPT_RESULT_BYTES: usize = 1024 * 1024;
/// Most results that are kept, of all conversations together: the newest.
pub const KEPT_RESULTS: usize = 100;

impl Snapshot<'_> {
    /// A result of this conversation, and whether anybody outside the household may have
    /// written it.
    ///
    /// # Errors
    /// `not_found`, also for one of another conversation.
    pub fn kept_result(
        &self,
        conversation: ConversationId,
        id: ResultId,
    ) -> Result<(String, bool)> {
        let parameters = params![id, conversation];
        let found = self.row(FIND, parameters, |row| Ok(row.try_into()?))?;
        Ok(found.ok_or_else(|| not_found("result", id))?)
    }
}

impl Store {
    /// Keeps a result whole, in place of the oldest; none where it is too long, or where others
    /// see the conversation by now than the audience that it is `only` for.
    pub fn keep_result(
        &self,
        conversation: ConversationId,
        content: &str,
        is_outside: bool,
        only: Option<AudienceId>,
    ) -> Result<Option<ResultId>> {
        if content.len() > KEPT_RESULT_BYTES {
            return Ok(None);
        }
        let content = content.to_owned();
        self.write(move |write| {
            let audience = "SELECT audience_id FROM conversations WHERE id = ?";
            if only.is_some() && write.value(audience, params![conversation])? != only {
                return Ok(None);
            }
            let id: ResultId = write.id();
            write.execute(
                "INSERT INTO kept_results (id, conversation_id, content, is_outside, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, conversation, content, is_outside, write.now],
            )?;
            write.execute(
                "DELETE FROM kept_results WHERE id <=
                     (SELECT id FROM kept_results ORDER BY id DESC LIMIT 1 OFFSET ?1)",
                params![KEPT_RESULTS],
            )?;
            Ok(Some(id))
        })
    }
}

pub(crate) const FIND: &str =
    "SELECT content, is_outside FROM kept_results WHERE id = ?1 AND conversation_id = ?2";
