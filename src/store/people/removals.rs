//! What is left of people who are removed: what others get of it, their files until these are
//! settled, and their names, until the configuration has none of them.

use rusqlite::{Connection, params};

use crate::chat::steps;
use crate::engine::database::Store;
use crate::engine::durability::{Durable, Provisional};
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use crate::engine::query::Statements;
use crate::home::trigger;
use crate::people::user::User;
use crate::sight::audience::{self, AUDIENCES_OF, Readers};
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, UserId};
use base::people::folded;

impl Store {
    /// The names of removed people that the configuration may still have. Once it has not, call
    /// [`Store::name_forgotten`].
    pub fn removed_names(&self) -> Result<Provisional<Vec<String>>> {
        self.look(|connection| {
            let (from, until) = (removal_key(""), removal_key("\u{10FFFF}"));
            connection.values(
                "SELECT value FROM meta WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
                params![from, until],
            )
        })
    }

    /// Whether files of removed people may still be there. What is not committed yet counts.
    pub fn has_left_files(&self) -> Result<Provisional<bool>> {
        self.look(|connection| Ok(!noted_files(connection)?.is_empty()))
    }

    /// The files of removed people that may still be there. Once they are not, call
    /// [`Store::files_settled`].
    pub fn left_files(&self) -> Result<Durable<Vec<LeftFiles>>> {
        self.durable_read(|connection| {
            let noted = noted_files(connection)?;
            let left = |(key, value): (String, String)| {
                let (heir, name) = value.split_once(' ')?;
                Some(LeftFiles {
                    person: key.strip_prefix(&files_key(""))?.parse().ok()?,
                    name: name.to_owned(),
                    heir: heir.parse().ok(),
                })
            };
            Ok(noted.into_iter().filter_map(left).collect())
        })
    }

    /// The files of a removed person are deleted, or somebody else's.
    pub fn files_settled(&self, person: UserId) -> Result<()> {
        let key = files_key(&person.to_string());
        self.write(move |write| meta::remove(write, &key))
    }

    /// The configuration has the name of a removed person no longer: somebody else may
    /// get it.
    pub fn name_forgotten(&self, name: &str) -> Result<()> {
        let key = removal_key(name);
        self.write(move |write| meta::remove(write, &key))
    }
}

/// The files of a removed person.
#[derive(Clone, Debug)]
pub struct LeftFiles {
    /// Whose they were.
    pub person: UserId,
    /// The name of that person.
    pub name: String,
    /// Who gets them; they are deleted where nobody does.
    pub heir: Option<UserId>,
}

/// Gives what belongs to a person to another one, who sees it instead. Schedules are paused: they
/// would act as the other. Returns the conversations that others see now, and who saw them.
pub(crate) fn hand_over(
    write: &Write<'_>,
    from: UserId,
    to: UserId,
) -> Outcome<Vec<(ConversationId, Readers)>> {
    let mut changed = Vec::new();
    let audiences: Vec<AudienceId> = write.values(AUDIENCES_OF, params![from])?;
    for old in audiences {
        let Readers::People(people) = audience::readers(write.connection, old)? else {
            continue;
        };
        let heirs = people
            .iter()
            .map(|one| if *one == from { to } else { *one });
        let new = audience::of_people(write, &heirs.collect())?;
        let is_wider = audience::is_wider(write.connection, old, new)?;
        let owned = "SELECT id FROM conversations WHERE owner_id = ?1 AND audience_id = ?2";
        let owned: Vec<ConversationId> = write.values(owned, params![from, old])?;
        for conversation in owned {
            if is_wider {
                steps::withdraw_private(write, conversation)?;
            }
            changed.push((conversation, Readers::People(people.clone())));
        }
        for sql in [
            "UPDATE conversations SET audience_id = ?3 WHERE owner_id = ?1 AND audience_id = ?2",
            // One that the other knows already goes.
            "UPDATE OR IGNORE memories SET audience_id = ?3
             WHERE owner_id = ?1 AND audience_id = ?2",
            "UPDATE schedules SET audience_id = ?3 WHERE owner_id = ?1 AND audience_id = ?2",
        ] {
            write.execute(sql, params![from, old, new])?;
        }
    }
    for sql in [
        // What a sender of the heir calls so is another conversation.
        "UPDATE conversations SET owner_id = ?2, sender_account = NULL,
             external_name = iif(sender_account IS NULL, external_name, NULL) WHERE owner_id = ?1",
        "UPDATE memories SET owner_id = ?2 WHERE owner_id = ?1",
        "UPDATE schedules SET owner_id = ?2, is_paused = 1,
             owner = (SELECT name FROM users WHERE id = ?2) WHERE owner_id = ?1",
    ] {
        write.execute(sql, params![from, to])?;
    }
    // Some of them are in conversations of others, which stay as they are.
    let places = "SELECT DISTINCT c.id, c.audience_id FROM schedules s
                  CROSS JOIN conversations c ON c.id = s.conversation_id WHERE s.owner_id = ?";
    let places = write.rows(places, params![to], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (conversation, audience) in places {
        trigger::follow(write, conversation, audience)?;
    }
    Ok(changed)
}

/// Notes that a person was removed, and who gets their files.
pub(crate) fn note(write: &Write<'_>, person: &User, heir: Option<UserId>) -> Outcome<()> {
    let heir = heir.map(|heir| heir.to_string()).unwrap_or_default();
    let left = format!("{heir} {}", person.name);
    meta::set(write, &files_key(&person.id.to_string()), &left)?;
    meta::set(write, &removal_key(&person.name), &person.name)
}

/// Checks that the configuration says nothing about an earlier person of this name.
///
/// # Errors
/// `invalid_request`.
pub(crate) fn check_forgotten(write: &Write<'_>, name: &str) -> Outcome<()> {
    let removed: Option<String> = meta::get(write.connection, &removal_key(name))?;
    match removed {
        None => Ok(()),
        Some(removed) => Err(Error::invalid_request(format!(
            "{removed:?} was removed, but the configuration may still name them: try again, and \
             if that does not help, see that its file can be written"
        ))
        .into()),
    }
}

/// Whose files are noted, as [`files_key`] has it, and what is noted of them.
fn noted_files(connection: &Connection) -> Outcome<Vec<(String, String)>> {
    let (from, until) = (files_key(""), files_key("\u{10FFFF}"));
    let sql = "SELECT key, value FROM meta WHERE key BETWEEN ?1 AND ?2 ORDER BY key";
    connection.rows(sql, params![from, until], |row| Ok(row.try_into()?))
}

/// The key of the `meta` table under which the files of a person are noted.
fn files_key(person: &str) -> String {
    format!("files {person}")
}

/// The key of the `meta` table under which a name is noted.
fn removal_key(name: &str) -> String {
    format!("removed {}", folded(name))
}
