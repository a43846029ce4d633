//! Changing who sees conversations and what belongs to them.

use rusqlite::params;

use crate::chat::conversations::{self, Conversation};
use crate::chat::steps;
use crate::chat::turns::Turn;
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use crate::engine::query::Statements;
use crate::home::trigger::follow;
use crate::people::senders;
use crate::sight::askers;
use crate::sight::audience::{self, Audience, Directory, Readers, UnknownName, intern};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::Viewer;
use base::error::Result;
use base::ids::{AudienceId, ConversationId, TurnId, UserId};

/// A conversation of a webhook account that has another audience now.
#[derive(Clone, Debug)]
pub struct Reshared {
    /// Which one.
    pub conversation_id: ConversationId,
    /// Who saw it.
    pub before: Readers,
    /// Who sees it.
    pub now: Readers,
    /// The same as the configuration says it.
    pub audience: Audience,
    /// Whether it had an unfinished turn, which knows the earlier readers.
    pub has_turn: bool,
}

impl Snapshot<'_> {
    /// Who sees the conversation of a turn now; none if it is not committed yet.
    ///
    /// # Errors
    /// `not_found` where whoever asked does not see it any longer; `server_error` when
    /// the database cannot be read.
    pub fn audience_of(&self, turn: &Turn) -> Result<Option<AudienceId>> {
        let directory = &self.sight.directory;
        let Some(thing) = directory.conversation(turn.conversation_id)? else {
            return Ok(None);
        };
        // As `askers::still_sees`, of what is read already.
        let is_seen = if turn.channel.starts_with("webhook:") {
            thing.owner_id.is_none() || thing.audience_id == AudienceId::HOUSEHOLD
        } else {
            let asker = turn.user_id.map(|id| directory.user(id)).transpose()?;
            let readers = directory.readers(thing.audience_id)?;
            let asker = asker.flatten();
            asker.is_none_or(|asker| readers.include(asker.id, asker.role))
        };
        match is_seen {
            true => Ok(Some(thing.audience_id)),
            false => Err(askers::unseen(turn.conversation_id)),
        }
    }

    /// The person who reads, or the only one who reads the conversation; none where others
    /// do, the caller of a webhook account too, or only what is the household's is seen.
    pub fn only_reader(&self) -> Result<Option<UserId>> {
        if let Some(person) = self.sight.viewer.user_id() {
            return Ok((!self.sight.viewer.is_household_only()).then_some(person));
        }
        let Some((conversation, known)) = self.sight.viewer.conversation() else {
            return Ok(None);
        };
        if self.caller_of(conversation)?.is_some() {
            return Ok(None);
        }
        let directory = &self.sight.directory;
        let readers = match directory.conversation(conversation)? {
            Some(thing) => directory.readers(thing.audience_id)?,
            None => known.clone(),
        };
        Ok(match &readers {
            Readers::People(people) if people.len() == 1 => people.first().copied(),
            Readers::People(_) | Readers::Household => None,
        })
    }

    /// The webhook account whose caller reads a conversation, if it is one of an account and
    /// no person's own.
    pub fn caller_of(&self, id: ConversationId) -> Result<Option<String>> {
        let thing = self.sight.directory.conversation(id)?;
        Ok(thing.and_then(|thing| {
            let is_read = thing.owner_id.is_none() || thing.audience_id == AudienceId::HOUSEHOLD;
            thing.account.filter(|_| is_read)
        }))
    }

    /// The unfinished turns of a conversation whose askers do not see it any longer, at
    /// most 1,000.
    pub fn turns_of_former_readers(&self, id: ConversationId) -> Result<Vec<TurnId>> {
        let turns: Vec<TurnId> = self.values(
            "SELECT id FROM turns INDEXED BY turns_unfinished
             WHERE conversation_id = ? AND finished_at IS NULL LIMIT 1000",
            params![id],
        )?;
        let mut former = Vec::new();
        for turn in turns {
            if !askers::still_sees(self.connection(), turn)? {
                former.push(turn);
            }
        }
        Ok(former)
    }
}

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
        let audience = audience.clone();
        self.write_for(viewer, move |write, sight| {
            let thing = conversations::check_change(sight, id)?;
            let audience_id = intern(write, thing.owner_id, &audience, UnknownName::Refuse)?;
            write.execute(
                "UPDATE conversations SET audience_id = ?2 WHERE id = ?1",
                params![id, audience_id],
            )?;
            if audience::is_wider(write.connection, thing.audience_id, audience_id)? {
                steps::withdraw_private(write, id)?;
            }
            follow(write, id, audience_id)?;
            // An admin may have shared it without themselves.
            conversations::find(&Viewer::server().sight(write.connection)?, id)
        })
    }

    /// Gives the conversations of webhook accounts their audiences. Names that nobody has
    /// are left out. Costs nothing where it is as it was. Returns those that change. These are
    /// all accounts: the links of senders of any other end.
    pub fn set_account_audiences(
        &self,
        accounts: Vec<(String, Audience)>,
    ) -> Result<Vec<Reshared>> {
        self.write(move |write| set_account_audiences(write, &accounts))
    }
}

pub(crate) fn set_account_audiences(
    write: &Write<'_>,
    accounts: &[(String, Audience)],
) -> Outcome<Vec<Reshared>> {
    senders::retain(write, accounts.iter().map(|(name, _)| name.as_str()))?;
    let mut changed = Vec::new();
    for (account, audience) in accounts {
        changed.extend(set_account_audience(write, account, audience)?);
    }
    Ok(changed)
}

fn set_account_audience(
    write: &Write<'_>,
    account: &str,
    audience: &Audience,
) -> Outcome<Vec<Reshared>> {
    let audience_id = intern(write, None, audience, UnknownName::Skip)?;
    let now = audience::readers(write.connection, audience_id)?;
    // Somebody who was removed changes nothing for the others.
    let applied = format!("audience of {account}");
    if let Some(applied) = meta::get(write.connection, &applied)?
        && (applied == audience_id || audience::readers(write.connection, applied)? == now)
    {
        return Ok(Vec::new());
    }
    let directory = Directory::new(write.connection);
    let changed = write.rows(
        "SELECT id, audience_id, EXISTS (SELECT 1 FROM turns INDEXED BY turns_unfinished
             WHERE conversation_id = c.id AND finished_at IS NULL)
         FROM conversations c
         WHERE account = ?1 AND external_name IS NOT NULL AND owner_id IS NULL
             AND audience_id <> ?2",
        params![account, audience_id],
        |row| {
            let before = row.get(1)?;
            let reshared = Reshared {
                conversation_id: row.get(0)?,
                before: directory.readers(before)?,
                now: now.clone(),
                audience: audience.clone(),
                has_turn: row.get(2)?,
            };
            Ok((before, reshared))
        },
    )?;
    for (before, reshared) in &changed {
        if audience::is_wider(write.connection, *before, audience_id)? {
            steps::withdraw_private(write, reshared.conversation_id)?;
        }
    }
    for sql in [
        "UPDATE conversations SET audience_id = ?2
         WHERE account = ?1 AND external_name IS NOT NULL AND owner_id IS NULL",
        "UPDATE schedules SET audience_id = ?2 WHERE account = ?1 AND owner_id IS NULL",
    ] {
        write.execute(sql, params![account, audience_id])?;
    }
    for (_, reshared) in &changed {
        follow(write, reshared.conversation_id, audience_id)?;
    }
    meta::set(write, &applied, &audience_id)?;
    Ok(changed.into_iter().map(|(_, reshared)| reshared).collect())
}
