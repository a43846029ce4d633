//! What belongs to a person, counted before they are removed.

use rusqlite::Connection;

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::people::user::User;
use base::error::Result;
use protocol::record::Belongings;

impl Store {
    /// What belongs to a person.
    pub fn belongings(&self, of: &User) -> Result<Belongings> {
        self.read(|connection| count(connection, of))
    }
}

/// The same within a transaction.
pub(crate) fn count(connection: &Connection, of: &User) -> Outcome<Belongings> {
    connection.find("user", COUNT, of.id, |row| {
        Ok(Belongings {
            name: of.name.clone(),
            private_conversations: row.get(0)?,
            shared_conversations: row.get(1)?,
            private_memories: row.get(2)?,
            shared_memories: row.get(3)?,
            files: row.get(4)?,
            schedules: row.get(5)?,
            tokens: row.get(6)?,
            calendars: row.get(7)?,
        })
    })
}

const COUNT: &str = "WITH alone AS (
         SELECT audience_id AS id FROM audience_members m WHERE user_id = ?1
             AND NOT EXISTS (SELECT 1 FROM audience_members
                 WHERE audience_id = m.audience_id AND user_id <> ?1))
     SELECT
         (SELECT count(*) FROM conversations WHERE audience_id IN (SELECT id FROM alone)),
         (SELECT count(*) FROM conversations
             WHERE owner_id = ?1 AND audience_id NOT IN (SELECT id FROM alone)),
         (SELECT count(*) FROM memories WHERE audience_id IN (SELECT id FROM alone)),
         (SELECT count(*) FROM memories
             WHERE owner_id = ?1 AND audience_id NOT IN (SELECT id FROM alone)),
         (SELECT count(*) FROM attachments WHERE user_id = ?1 AND message_id IS NULL)
             + (SELECT count(*) FROM conversations c
                 CROSS JOIN messages m ON m.conversation_id = c.id
                 CROSS JOIN attachments a ON a.message_id = m.id
                 WHERE c.audience_id IN (SELECT id FROM alone) AND m.attachment_count > 0),
         (SELECT count(*) FROM schedules WHERE owner_id = ?1),
         (SELECT count(*) FROM tokens WHERE user_id = ?1 AND name <> 'session'),
         (SELECT count(*) FROM calendars WHERE owner_id = ?1)";
