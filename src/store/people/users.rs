//! Users.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::integrity;
use crate::engine::job::Write;
use crate::engine::query::{Statements, check_changed};
use crate::engine::schema::OpenError;
use crate::home::forgetting::forget_all;
use crate::home::trigger::plan_events;
use crate::people::belongings;
use crate::people::removals;
use crate::people::tokens::{Identity, SESSION, UserRole};
pub(crate) use crate::people::user::{FIND, NO_PASSWORD, OF_PROGRAM, User, end_ways_in, from_row};
use crate::sight::audience::{self, Directory, Readers};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::Belongs;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AudienceId, ConversationId, TokenId, UserId};
use base::language::Words;
use base::people::{look, plain_look};
use protocol::record::Belongings;

/// Most rows of one list.
const MOST: i64 = 10_000;

const HOUSEHOLD: &str = "SELECT ifnull(display_name, name) AS name, role FROM users \
     WHERE role <> ?1 AND password_hash NOT IN (?2, ?3) ORDER BY folded_name LIMIT ?4";

impl User {
    /// In this person's name the machine's owner acts, without a token.
    pub fn identity(&self) -> Identity {
        Identity {
            user_id: self.id,
            user: self.name.clone(),
            words: self.words(),
            role: self.role,
            ..Identity::owner()
        }
    }
}

/// Names, and what their people are called; of these a guest knows those who see the same.
const PEOPLE: &str = "SELECT * FROM users u \
     WHERE password_hash <> ?2 AND (?1 IS NULL OR id = ?1 OR EXISTS ( \
         SELECT 1 FROM audience_members own CROSS JOIN audience_members other \
             ON other.audience_id = own.audience_id \
         WHERE own.user_id = ?1 AND other.user_id = u.id)) ORDER BY folded_name LIMIT 10000";

/// What people are called who have a display name, by their names.
pub type DisplayNames = BTreeMap<String, String>;

pub(crate) fn display_names(connection: &Connection) -> Outcome<DisplayNames> {
    let sql = "SELECT name, display_name FROM users WHERE display_name IS NOT NULL";
    let named: Vec<(String, String)> =
        connection.rows(sql, params![], |row| Ok(row.try_into()?))?;
    Ok(named.into_iter().collect())
}

/// Puts what somebody is called in the place of their name.
pub fn show_name(speaker: &mut Option<String>, names: &DisplayNames) {
    if let Some(name) = speaker.as_ref().and_then(|name| names.get(name)) {
        *speaker = Some(name.clone());
    }
}

impl Snapshot<'_> {
    /// The people of whom a viewer may know; of whom a guest sees what a conversation shared with
    /// them shows.
    pub fn people(&self) -> Result<Vec<User>> {
        let connection = self.connection();
        let viewer = &self.sight.viewer;
        let of = match viewer.user_id() {
            Some(id) if is_guest(connection, Some(id))? || viewer.is_household_only() => Some(id),
            _ => None,
        };
        if self.sight.has_caller() {
            return Ok(Vec::new());
        }
        Ok(self.rows(PEOPLE, params![of, OF_PROGRAM], from_row)?)
    }

    /// What people are called who have a display name, by their names.
    pub fn display_names(&self) -> Result<DisplayNames> {
        Ok(display_names(self.connection())?)
    }

    /// The people of the household by what they are called, for a viewer who sees what is the
    /// household's; nobody for others, and where the caller of a webhook account reads along.
    /// Guests, programs, and whoever was invited and has not come yet are not among them.
    /// One more than `most` if there are more.
    pub fn household(&self, most: usize) -> Result<Vec<(String, UserRole)>> {
        let of_household = Belongs {
            owner_id: None,
            audience_id: AudienceId::HOUSEHOLD,
            account: None,
        };
        if self.sight.has_caller() || !self.sight.sees(&of_household) {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(most).unwrap_or(MOST).saturating_add(1);
        let person = |row: &Row<'_>| Ok((row.get("name")?, row.get("role")?));
        let parameters = params![UserRole::Viewer, NO_PASSWORD, OF_PROGRAM, limit];
        Ok(self.rows(HOUSEHOLD, parameters, person)?)
    }

    /// The user of this id, if there still is one.
    pub fn user_by_id(&self, id: UserId) -> Result<Option<User>> {
        Ok(self.sight.directory.user(id)?)
    }
}

impl Store {
    /// When the first user was added.
    pub fn in_use_since(&self) -> Result<Provisional<Option<Timestamp>>> {
        self.look(|connection| {
            let sql = "SELECT min(created_at) FROM users";
            Ok(connection.value(sql, params![])?.flatten())
        })
    }

    /// Adds a user.
    ///
    /// # Errors
    /// `invalid_request` when the name is taken, in any case.
    pub fn add_user(&self, name: &str, role: UserRole, password_hash: &str) -> Result<User> {
        let (name, password_hash) = (name.to_owned(), password_hash.to_owned());
        self.write(move |write| insert(write, name, role, password_hash))
    }

    /// The user of this name, in any case.
    pub fn user(&self, name: &str) -> Result<Option<User>> {
        self.read(|connection| by_name(connection, name))
    }

    /// The user with this name, in any case.
    pub fn user_called(&self, called: &str) -> Result<Option<User>> {
        let wanted = fold(called);
        let mut users = self.users()?.into_iter();
        Ok(users.find(|user| fold(user.called()) == wanted))
    }

    /// Sets what people call a user, or with none that it is the name.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` when somebody else is called so or has it as name.
    pub fn set_display_name(&self, id: UserId, display_name: Option<&str>) -> Result<User> {
        let display_name = display_name.map(str::to_owned);
        self.write(move |write| {
            if let Some(name) = &display_name {
                check_free(write.connection, name, Some(id), true)?;
            }
            write.execute(
                "UPDATE users SET display_name = ?2 WHERE id = ?1",
                params![id, display_name],
            )?;
            find(write.connection, id)
        })
    }

    /// The language that a person has chosen.
    pub fn language(&self, person: UserId) -> Result<Option<String>> {
        let language = "SELECT language FROM users WHERE id = ?";
        self.read(move |connection| Ok(connection.value(language, params![person])?.flatten()))
    }

    /// The words that this person reads, as [`User::words`]; English for nobody.
    pub fn words_of(&self, person: impl Into<Option<UserId>>) -> Words {
        let person: Option<UserId> = person.into();
        let user = self.read(move |connection| connection.row(FIND, params![person], from_row));
        user.ok()
            .flatten()
            .map_or(Words::ENGLISH, |user| user.words())
    }

    /// The words that somebody here reads, each once, beside those of English.
    pub fn languages(&self) -> Vec<Words> {
        let mut languages = Vec::new();
        for words in self.users().unwrap_or_default().iter().map(User::words) {
            if words != Words::ENGLISH && !languages.contains(&words) {
                languages.push(words);
            }
        }
        languages
    }

    /// Sets the language that a person has chosen.
    pub fn set_language(&self, person: UserId, language: Option<&'static str>) -> Result<()> {
        self.write(move |write| {
            let set = "UPDATE users SET language = ?2 WHERE id = ?1";
            write.run(set, params![person, language])
        })
    }

    /// Notes the language of the browser in which a person has signed in.
    pub fn note_language(&self, person: UserId, language: &'static str) -> Result<()> {
        let sql = "SELECT last_language FROM users WHERE id = ?";
        let known: Option<String> =
            self.read(move |connection| Ok(connection.value(sql, params![person])?.flatten()))?;
        if known.as_deref() == Some(language) {
            return Ok(());
        }
        self.write(move |write| {
            let set = "UPDATE users SET last_language = ?2 WHERE id = ?1";
            write.run(set, params![person, language])
        })
    }

    /// Checks that nobody is called so, or has it as name: for a name, or a display name.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn check_is_free(&self, name: &str, is_display: bool) -> Result<()> {
        self.read(|connection| check_free(connection, name, None, is_display))
    }

    /// All users, by name, at most 10,000.
    pub fn users(&self) -> Result<Vec<User>> {
        self.read(|connection| {
            connection.rows(
                "SELECT * FROM users ORDER BY folded_name LIMIT ?",
                params![MOST],
                from_row,
            )
        })
    }

    /// Sets a password and revokes the user's session tokens, but for `kept`, the link that
    /// would set another one, and the codes that link senders.
    ///
    /// # Errors
    /// `not_found`.
    pub fn set_password(
        &self,
        id: UserId,
        password_hash: &str,
        kept: Option<TokenId>,
    ) -> Result<()> {
        let password_hash = password_hash.to_owned();
        self.write(move |write| set_password(write, id, &password_hash, kept))
    }

    /// Checks that this user may lose the role of an admin.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for the last admin.
    pub fn check_not_the_last_admin(&self, id: UserId) -> Result<()> {
        self.read(|connection| not_the_last_admin(connection, id).map(drop))
    }

    /// Changes the role of a user, revokes their session tokens, and lowers API
    /// tokens of a higher role. The schedules of a guest are paused.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for the last admin.
    pub fn set_role(&self, id: UserId, role: UserRole) -> Result<()> {
        self.write(move |write| {
            if role < UserRole::Admin {
                not_the_last_admin(write.connection, id)?;
                // Admins answer for themselves what others are asked for.
                write.execute("DELETE FROM grants WHERE user_id = ?", params![id])?;
            }
            let changed = write.execute(
                "UPDATE users SET role = ?2 WHERE id = ?1",
                params![id, role],
            )?;
            end_sessions(write, id, changed, None)?;
            for higher in UserRole::ALL.into_iter().filter(|one| *one > role) {
                write.execute(
                    "UPDATE tokens SET role = ?3 WHERE user_id = ?1 AND role = ?2",
                    params![id, higher, role],
                )?;
            }
            if role == UserRole::Viewer {
                let pause = "UPDATE schedules SET is_paused = 1 WHERE owner_id = ?";
                write.execute(pause, params![id])?;
            }
            Ok(())
        })
    }

    /// Removes a user with all their tokens, schedules, and what they alone see. What
    /// they shared stays without an owner. Where somebody is named, they get all of it but
    /// the tokens.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for the last admin.
    pub fn remove_user(&self, id: UserId, heir: Option<UserId>) -> Result<Removed> {
        self.remove(id, heir, move |write| {
            let handed_over = heir.map(|heir| removals::hand_over(write, id, heir));
            Ok((HashMap::new(), handed_over.transpose()?.unwrap_or_default()))
        })
    }

    /// The same at the wish of that user: with all that they own, shared or not.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for the last admin.
    pub fn delete_account(&self, id: UserId) -> Result<Removed> {
        self.remove(id, None, move |write| {
            let directory = Directory::new(write.connection);
            let owned = write.rows(
                "SELECT id, audience_id FROM conversations WHERE owner_id = ?1",
                params![id],
                |row| {
                    let readers = directory.readers(row.get(1)?)?;
                    Ok((row.get(0)?, readers))
                },
            )?;
            // Of an audience that ends with the user.
            let alone = audience::private(write, id)?;
            write.execute(
                "UPDATE conversations SET audience_id = ?2 WHERE owner_id = ?1",
                params![id, alone],
            )?;
            forget_all(write, "SELECT id FROM memories WHERE owner_id = ?", id)?;
            Ok((owned.into_iter().collect(), Vec::new()))
        })
    }

    /// Removes a user after `prepare`, which returns who saw the conversations until
    /// then that nobody else sees any more, and those that were handed over.
    fn remove(
        &self,
        id: UserId,
        heir: Option<UserId>,
        prepare: impl FnOnce(&Write<'_>) -> Outcome<Prepared> + Send + 'static,
    ) -> Result<Removed> {
        let removed = self.write(move |write| {
            let user = not_the_last_admin(write.connection, id)?;
            let had = belongings::count(write.connection, &user)?;
            let (mut before, handed_over) = prepare(write)?;
            let unseen = write.rows(SEEN_BY_ONE, params![id], |row| {
                let conversation = row.get(0)?;
                let readers = before.remove(&conversation);
                let alone = || Readers::People([id].into());
                Ok((conversation, readers.unwrap_or_else(alone)))
            })?;
            forget_all(
                write,
                "SELECT id FROM memories WHERE audience_id IN (
                     SELECT audience_id FROM audience_members WHERE user_id = ?1)
                 AND NOT EXISTS (SELECT 1 FROM audience_members
                     WHERE audience_id = memories.audience_id AND user_id <> ?1)",
                id,
            )?;
            audience::retire_those_with(write, id)?;
            // Without an owner it would be the account's own.
            write.execute(
                "UPDATE conversations SET account = NULL, external_name = NULL
                 WHERE owner_id = ?1 AND account IS NOT NULL",
                params![id],
            )?;
            write.execute("DELETE FROM users WHERE id = ?", params![id])?;
            // Their calendars are gone, for which routines of others may wait.
            plan_events(write, None)?;
            removals::note(write, &user, heir)?;
            Ok(Removed {
                had,
                unseen,
                handed_over,
            })
        })?;
        // In parts, so that other writes do not wait for long. What a crash leaves is
        // deleted by the next purge.
        self.delete_unseen()?;
        Ok(removed)
    }
}

/// What came of removing a person.
#[derive(Clone, Debug)]
pub struct Removed {
    /// What belonged to them until then.
    pub had: Belongings,
    /// The conversations that are gone, and who saw each.
    pub unseen: Vec<(ConversationId, Readers)>,
    /// Those of somebody else now, and who saw each.
    pub handed_over: Vec<(ConversationId, Readers)>,
}

/// Who saw conversations until a person is removed, and which ones are handed over.
type Prepared = (
    HashMap<ConversationId, Readers>,
    Vec<(ConversationId, Readers)>,
);

/// The conversations of a person that nobody else sees.
const SEEN_BY_ONE: &str = "SELECT c.id FROM audience_members m
     CROSS JOIN conversations c INDEXED BY conversations_by_audience
         ON c.audience_id = m.audience_id
     WHERE m.user_id = ?1 AND (c.account IS NULL OR c.owner_id = ?1)
         AND NOT EXISTS (SELECT 1 FROM audience_members
             WHERE audience_id = m.audience_id AND user_id <> ?1)";

/// The role of the user of this name, in any case, in the database at `path`,
/// without changing it; a server may be using it.
///
/// # Errors
/// It does not exist, cannot be read, or is not a database of Hearth.
pub fn look_up_role(path: &Path, name: &str) -> std::result::Result<Option<UserRole>, OpenError> {
    let role = "SELECT role FROM users WHERE folded_name = ?";
    let found = integrity::open_to_look(path)?.value(role, params![fold(name)]);
    found.map_err(|failure| OpenError::new(path, failure))
}

/// Names that differ only in case have the same folded form.
fn fold(name: &str) -> String {
    name.to_lowercase()
}

/// The user, unless it is the only admin.
fn not_the_last_admin(connection: &Connection, id: UserId) -> Outcome<User> {
    let other_admin = connection.exists(
        // Who has not accepted the invitation yet cannot sign in, and a program is nobody.
        "SELECT 1 FROM users WHERE role = ?1 AND id <> ?2 AND password_hash NOT IN (?3, ?4)",
        params![UserRole::Admin, id, NO_PASSWORD, OF_PROGRAM],
    )?;
    let user = find(connection, id)?;
    if user.role == UserRole::Admin && !other_admin {
        return Err(Error::refused("error.last_admin", &[("name", &user.name)]).into());
    }
    Ok(user)
}

/// Adds a user.
///
/// # Errors
/// `invalid_request` when the name is taken, in any case, or looks like another's, or the
/// configuration may still say what an earlier person of this name may do.
pub(crate) fn insert(
    write: &Write<'_>,
    name: String,
    role: UserRole,
    password_hash: String,
) -> Outcome<User> {
    check_free(write.connection, &name, None, false)?;
    removals::check_forgotten(write, &name)?;
    let user = User {
        id: write.id(),
        name,
        role,
        password_hash,
        created_at: write.now,
        display_name: None,
        language: None,
        last_language: None,
    };
    write.insert(
        "users",
        &[
            ("id", &user.id),
            ("name", &user.name),
            ("folded_name", &fold(&user.name)),
            ("role", &user.role),
            ("password_hash", &user.password_hash),
            ("created_at", &user.created_at),
        ],
    )?;
    Ok(user)
}

/// Checks that nobody else has this name or is called so, or looks as if: nobody could tell
/// them apart. Between names to sign in with alone, punctuation tells them apart.
fn check_free(
    connection: &Connection,
    name: &str,
    own: Option<UserId>,
    is_display: bool,
) -> Outcome<()> {
    let (wanted, looks, plain) = (fold(name), look(name), plain_look(name));
    let all = connection.rows("SELECT * FROM users", params![], from_row)?;
    let others = all.iter().filter(|user| Some(user.id) != own);
    let names = others.flat_map(|user| {
        let called = user.display_name.as_deref().map(|name| (name, true));
        called.into_iter().chain([(user.name.as_str(), is_display)])
    });
    for (other, is_plain) in names {
        let looks_the_same = look(other) == looks || is_plain && plain_look(other) == plain;
        let key = match (fold(other) == wanted, looks_the_same) {
            (true, _) => "error.name_taken",
            (false, true) => "error.name_looks",
            (false, false) => continue,
        };
        return Err(Error::refused(key, &[("name", other)]).into());
    }
    Ok(())
}

/// Sets a password; see [`Store::set_password`].
pub(crate) fn set_password(
    write: &Write<'_>,
    id: UserId,
    password_hash: &str,
    kept: Option<TokenId>,
) -> Outcome<()> {
    let changed = write.execute(
        "UPDATE users SET password_hash = ?2 WHERE id = ?1",
        params![id, password_hash],
    )?;
    end_sessions(write, id, changed, kept)?;
    end_ways_in(write, id)?;
    // Whoever knew the old password may have signed in from there.
    write.run("DELETE FROM sign_ins WHERE user_id = ?", params![id])
}

/// Revokes the session tokens of the user whose row was `changed`, but for `kept`.
fn end_sessions(
    write: &Write<'_>,
    id: UserId,
    changed: usize,
    kept: Option<TokenId>,
) -> Outcome<()> {
    check_changed(changed, "user", id)?;
    write.run(
        "DELETE FROM tokens WHERE user_id = ?1 AND name = ?2 AND id IS NOT ?3",
        params![id, SESSION, kept],
    )
}

/// Whether this person is a guest, who causes nothing.
pub(crate) fn is_guest(connection: &Connection, id: Option<UserId>) -> Outcome<bool> {
    let sql = "SELECT role FROM users WHERE id = ?";
    let role = connection.value(sql, params![id])?;
    Ok(role == Some(UserRole::Viewer))
}

/// The user with this id.
pub(crate) fn find(connection: &Connection, id: UserId) -> Outcome<User> {
    connection.find("user", FIND, id, from_row)
}

fn by_name(connection: &Connection, name: &str) -> Outcome<Option<User>> {
    connection.row(
        "SELECT * FROM users WHERE folded_name = ?",
        params![fold(name)],
        from_row,
    )
}
