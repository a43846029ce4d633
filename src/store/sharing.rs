//! Changing who sees conversations and what belongs to them.

use std::collections::HashSet;

use rusqlite::params;

use crate::audience::{self, Audience, Readers, UnknownName, intern};
use crate::conversations::{self, Conversation};
use crate::database::Store;
use crate::failure::Outcome;
use crate::job::Write;
use crate::query::{row, rows};
use crate::steps;
use crate::viewer::Viewer;
use base::error::Result;
use base::ids::{AudienceId, ConversationId, ScheduleId, UserId};

impl Store {
    /// Changes who sees a conversation with all its messages, turns and callbacks.
    /// What the model has remembered from it stays as it is.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may see and not change it;
    /// `invalid_request` for a name that nobody has, and when nobody would see it.
    pub fn share_conversation(
        &self,
        viewer: &Viewer,
        id: ConversationId,
        audience: &Audience,
    ) -> Result<Conversation> {
        let (viewer, audience) = (viewer.clone(), audience.clone());
        self.write(move |write| {
            let thing = conversations::check_change(write, &viewer, id)?;
            let audience_id = intern(write, thing.owner_id, &audience, UnknownName::Refuse)?;
            write.execute(
                "UPDATE conversations SET audience_id = ?2 WHERE id = ?1",
                params![id, audience_id],
            )?;
            if audience_id != thing.audience_id {
                steps::withdraw_private(write, id)?;
            }
            follow(write, id, audience_id)?;
            // An admin may have shared it without themselves.
            conversations::find(
                write.connection,
                &Viewer::server().sight(write.connection)?,
                id,
            )
        })
    }

    /// Gives the conversations of a webhook account this audience. Names that nobody
    /// has are left out. Costs nothing when it is as it was. Returns those among
    /// `known` that change, with those who saw them before and who see them now.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn set_account_audience(
        &self,
        account: &str,
        audience: &Audience,
        known: HashSet<ConversationId>,
    ) -> Result<Vec<(ConversationId, Readers, Readers)>> {
        let (account, audience) = (account.to_owned(), audience.clone());
        self.write(move |write| {
            let audience_id = intern(write, None, &audience, UnknownName::Skip)?;
            let key = format!("audience of {account}");
            let applied = row(
                write.connection,
                "SELECT value FROM meta WHERE key = ?",
                params![key],
                |row| row.get::<_, AudienceId>(0),
            )?;
            if applied == Some(audience_id) {
                return Ok(Vec::new());
            }
            let now = audience::readers(write.connection, audience_id)?;
            let mut changed = Vec::new();
            for id in known {
                let before = row(
                    write.connection,
                    "SELECT audience_id FROM conversations
                     WHERE id = ?1 AND account = ?2 AND external_name IS NOT NULL
                         AND owner_id IS NULL AND audience_id <> ?3",
                    params![id, account, audience_id],
                    |row| row.get(0),
                )?;
                if let Some(before) = before {
                    let before = audience::readers(write.connection, before)?;
                    changed.push((id, before, now.clone()));
                }
            }
            let all: Vec<ConversationId> = rows(
                write.connection,
                "SELECT id FROM conversations
                 WHERE account = ?1 AND external_name IS NOT NULL AND owner_id IS NULL
                     AND audience_id <> ?2",
                params![account, audience_id],
                |row| row.get(0),
            )?;
            for id in all {
                steps::withdraw_private(write, id)?;
            }
            for sql in [
                "UPDATE conversations SET audience_id = ?2
                 WHERE account = ?1 AND external_name IS NOT NULL AND owner_id IS NULL",
                "UPDATE schedules SET audience_id = ?2 WHERE account = ?1 AND owner_id IS NULL",
            ] {
                write.execute(sql, params![account, audience_id])?;
            }
            write.execute(
                "INSERT INTO meta (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = ?2",
                params![key, audience_id],
            )?;
            Ok(changed)
        })
    }
}

/// Gives the schedules of a conversation its new audience. One whose owner does not see
/// the conversation any more gets a conversation of its own.
fn follow(write: &Write<'_>, conversation: ConversationId, audience_id: AudienceId) -> Outcome<()> {
    write.execute(
        "UPDATE schedules SET audience_id = ?2 WHERE conversation_id = ?1",
        params![conversation, audience_id],
    )?;
    if audience_id == AudienceId::HOUSEHOLD {
        return Ok(());
    }
    let parted: Vec<(ScheduleId, UserId)> = rows(
        write.connection,
        "SELECT id, owner_id FROM schedules s
         WHERE conversation_id = ?1 AND owner_id IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM audience_members WHERE user_id = s.owner_id AND audience_id = ?2)",
        params![conversation, audience_id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (id, owner) in parted {
        write.execute(
            "UPDATE schedules SET conversation_id = NULL, audience_id = ?2 WHERE id = ?1",
            params![id, audience::private(write, owner)?],
        )?;
    }
    Ok(())
}
