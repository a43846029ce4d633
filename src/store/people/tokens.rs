//! Session and API tokens. Only the fingerprint of a token is stored.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, check_changed, from_row};
use crate::people::user;
use crate::sight::viewer::Viewer;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{TokenId, UserId};
use base::language::Words;
pub use base::people::UserRole;

/// The name of every session token, and of no API token.
pub const SESSION: &str = "session";

/// Places remembered from which a person signed in; the oldest goes first.
pub const PLACES: usize = 32;

/// Most rows of one list.
const MOST: i64 = 10_000;

/// A session or API token to store. Only its fingerprint is kept.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its owner; the token is deleted with the user.
    pub user_id: UserId,
    /// A name for people; [`SESSION`] for those of POST /auth.
    pub name: String,
    /// SHA-256 of the token.
    pub fingerprint: [u8; 32],
    /// Can only lower the role of its owner.
    pub role: UserRole,
    /// Absent if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// How it is narrowed beyond its role.
    pub scope: TokenScope,
    /// The people beside its owner in whose name it may ask.
    pub speaks_for: Vec<UserId>,
}

impl NewToken {
    /// A session that does not end by itself.
    pub fn session(user_id: UserId, role: UserRole, fingerprint: [u8; 32]) -> NewToken {
        NewToken {
            user_id,
            name: SESSION.to_owned(),
            fingerprint,
            role,
            expires_at: None,
            scope: TokenScope::default(),
            speaks_for: Vec::new(),
        }
    }
}

/// What a program asks with: what it begins with it, it continues with nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The person in whose name it asks.
    pub user_id: UserId,
    /// The token; none where the owner lets programs in without one.
    pub token_id: Option<TokenId>,
}

impl Credential {
    /// The scope of its idempotency keys, since a key tells of the turn that it began.
    pub fn key_scope(&self) -> String {
        let token = self.token_id.map(|id| id.to_string());
        format!("{}:{}", self.user_id, token.unwrap_or_default())
    }
}

/// How a token is narrowed beyond its role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenScope {
    /// The only tools of the turns that it begins; absent for all.
    pub tools: Option<Arc<[String]>>,
    /// Whether it sees and makes only what is the household's.
    pub household_only: bool,
}

impl TokenScope {
    /// Whether it narrows at all.
    pub fn is_narrow(&self) -> bool {
        *self != TokenScope::default()
    }

    /// The scope of the idempotency keys of this person's tokens that are narrowed in
    /// this way. The others have their own, since a key tells of the turn that it began.
    pub fn key_scope(&self, owner: UserId) -> String {
        let mut scope = format!("user:{owner}");
        if self.household_only {
            scope.push_str(":household");
        }
        if let Some(tools) = &self.tools {
            scope.push_str(&format!(":tools:{}", tools.join(",")));
        }
        scope
    }
}

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What `hearth token revoke` takes.
    pub id: TokenId,
    /// The owner's name.
    pub user: String,
    /// A name for people.
    pub name: String,
    /// As given; the owner's role may be lower by now.
    pub role: UserRole,
    /// When it was created.
    pub created_at: Timestamp,
    /// Absent if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// How it is narrowed beyond its role.
    pub scope: TokenScope,
    /// The names of the people beside its owner in whose name it may ask; absent for a token
    /// that was made for its owner alone, empty once all of them are removed.
    pub speaks_for: Option<Vec<String>>,
}

/// The user of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Revoking this token ends its access.
    pub token_id: TokenId,
    /// The token's owner.
    pub user_id: UserId,
    /// The owner's name.
    pub user: String,
    /// What the owner read when this was looked up, as [`User::words`](crate::User::words).
    pub words: Words,
    /// The lower of the roles of token and owner.
    pub role: UserRole,
    /// When the token expires; absent for never.
    pub expires_at: Option<Timestamp>,
    /// How the token is narrowed beyond its role.
    pub scope: TokenScope,
    /// Whether the token is not as good as the person: its role is lower than theirs, its
    /// scope is narrow, or it speaks for others, too.
    pub is_narrowed: bool,
}

impl Identity {
    /// Whoever owns the machine. No token has this identity, and nothing belongs to it.
    pub fn owner() -> Identity {
        Identity {
            token_id: TokenId::from(0),
            user_id: UserId::from(0),
            user: UserRole::Owner.as_str().to_owned(),
            words: Words::ENGLISH,
            role: UserRole::Owner,
            expires_at: None,
            scope: TokenScope::default(),
            is_narrowed: false,
        }
    }

    /// The person, unless it is the machine's owner.
    pub fn person(&self) -> Option<&str> {
        (self.role < UserRole::Owner).then_some(self.user.as_str())
    }

    /// What is seen with this identity.
    pub fn viewer(&self) -> Viewer {
        if self.role == UserRole::Owner {
            return Viewer::server();
        }
        let viewer = Viewer::person(self.user_id, self.role);
        match self.scope.household_only {
            true => viewer.household_only(),
            false => viewer,
        }
    }
}

impl Store {
    /// Stores a token, durably.
    ///
    /// # Errors
    /// `not_found` when its owner does not exist.
    pub fn add_token(&self, new: NewToken) -> Result<Token> {
        self.write(move |write| insert(write, new))
    }

    /// Stores the token of a sign-in with a password, and the place where the person
    /// is, for [`Store::has_signed_in`]; durably.
    ///
    /// # Errors
    /// `not_found` when its owner does not exist.
    pub fn add_session(&self, new: NewToken, place: String) -> Result<()> {
        self.write(move |write| {
            let user_id = new.user_id;
            insert(write, new)?;
            write.execute(
                "INSERT OR REPLACE INTO sign_ins (user_id, place, at) VALUES (?1, ?2, ?3)",
                params![user_id, place, write.now],
            )?;
            write.run(
                "DELETE FROM sign_ins WHERE user_id = ?1 AND place IN (
                     SELECT place FROM sign_ins WHERE user_id = ?1
                     ORDER BY place = ?2 DESC, at DESC LIMIT -1 OFFSET ?3)",
                params![user_id, place, PLACES],
            )
        })
    }

    /// Whether this person has signed in with their present password from this place,
    /// one of the last `PLACES`.
    pub fn has_signed_in(&self, user_id: UserId, place: &str) -> Result<bool> {
        self.read(|connection| {
            connection.exists(
                "SELECT 1 FROM sign_ins WHERE user_id = ?1 AND place = ?2",
                params![user_id, place],
            )
        })
    }

    /// The user of the token with this fingerprint, unless it is expired or revoked.
    pub fn identity(&self, fingerprint: &[u8; 32]) -> Result<Option<Identity>> {
        let now = self.now();
        self.inner.readers.read_once(|connection| {
            connection.row(FIND_IDENTITY, params![fingerprint, now], identity_from_row)
        })
    }

    /// The person of this name, in any case, in whose name a token asks that was made to
    /// speak for them. The role is the lower of both.
    ///
    /// # Errors
    /// `unauthorized` for anybody else, whether or not there is such a person.
    pub fn speak_for(&self, identity: &Identity, name: &str) -> Result<Identity> {
        let folded = name.to_lowercase();
        if identity.user.to_lowercase() == folded {
            return Ok(identity.clone());
        }
        let found = self.read(|connection| {
            connection.row(SPOKEN_FOR, params![identity.token_id, folded], |row| {
                let role: UserRole = row.get("role")?;
                Ok(Identity {
                    user_id: row.get("id")?,
                    user: row.get("name")?,
                    words: words_of(row.get("language")?),
                    role: role.min(identity.role),
                    ..identity.clone()
                })
            })
        })?;
        found.ok_or_else(not_spoken_for)
    }

    /// The lower of the roles of a token and its owner; none once it is no longer
    /// valid.
    pub fn token_role(&self, id: TokenId) -> Result<Option<UserRole>> {
        let now = self.now();
        self.read(|connection| {
            connection.row(
                "SELECT t.role, u.role FROM tokens t JOIN users u ON u.id = t.user_id
                 WHERE t.id = ?1 AND (t.expires_at IS NULL OR t.expires_at > ?2)",
                params![id, now],
                granted_role,
            )
        })
    }

    /// Tokens, newest first, at most 10,000; without those of sessions unless
    /// `sessions`.
    pub fn tokens(&self, sessions: bool) -> Result<Vec<Token>> {
        self.read(|connection| list(connection, sessions, None))
    }

    /// The tokens and sessions of one person, and the tokens that speak for them, newest first,
    /// at most 10,000.
    pub fn tokens_of(&self, id: UserId) -> Result<Vec<Token>> {
        self.read(|connection| list(connection, true, Some(id)))
    }

    /// Deletes a token or session of this person, or ends that one of somebody else speaks for
    /// them.
    ///
    /// # Errors
    /// `not_found`, also for another one of somebody else.
    pub fn revoke_token_of(&self, user_id: UserId, id: TokenId) -> Result<()> {
        self.write(move |write| {
            let mut ended = 0;
            for sql in [
                "DELETE FROM tokens WHERE id = ?1 AND user_id = ?2",
                "DELETE FROM token_speaks_for WHERE token_id = ?1 AND user_id = ?2",
            ] {
                ended += write.execute(sql, params![id, user_id])?;
            }
            check_changed(ended, "token", id)
        })
    }

    /// Deletes all sessions of a person and, if `tokens`, all API tokens; returns how
    /// many there were. The link that sets a password ends, and the codes that link senders.
    pub fn sign_out_everywhere(&self, id: UserId, tokens: bool) -> Result<usize> {
        self.write(move |write| {
            user::end_ways_in(write, id)?;
            write.execute(
                "DELETE FROM tokens WHERE user_id = ?1 AND (?2 OR name = ?3)",
                params![id, tokens, SESSION],
            )
        })
    }

    /// Deletes a token.
    ///
    /// # Errors
    /// `not_found`.
    pub fn revoke_token(&self, id: TokenId) -> Result<()> {
        self.write(move |write| {
            let deleted = write.execute("DELETE FROM tokens WHERE id = ?", params![id])?;
            check_changed(deleted, "token", id)
        })
    }
}

/// Why a program may not ask on behalf of a person, whether or not there is one.
pub fn not_spoken_for() -> Error {
    Error::unauthorized(
        "this program does not speak for that person: give it a token from `hearth token create \
         --speaks-for NAME`, or have it name nobody",
    )
}

fn insert(write: &Write<'_>, new: NewToken) -> Outcome<Token> {
    let name_of = |id: UserId| write.find("user", NAME, id, |row| Ok(row.get(0)?));
    let user = name_of(new.user_id)?;
    let mut token = Token {
        id: write.id(),
        user,
        name: new.name,
        role: new.role,
        created_at: write.now,
        expires_at: new.expires_at,
        scope: new.scope,
        speaks_for: None,
    };
    let tools = token.scope.tools.as_ref().map(|tools| tools.join(","));
    write.insert(
        "tokens",
        &[
            ("id", &token.id),
            ("user_id", &new.user_id),
            ("name", &token.name),
            ("fingerprint", &new.fingerprint),
            ("role", &token.role),
            ("created_at", &token.created_at),
            ("expires_at", &token.expires_at),
            ("tools", &tools),
            ("household_only", &token.scope.household_only),
            ("speaks_for_others", &!new.speaks_for.is_empty()),
        ],
    )?;
    for person in new.speaks_for {
        token
            .speaks_for
            .get_or_insert_default()
            .push(name_of(person)?);
        write.execute(
            "INSERT OR IGNORE INTO token_speaks_for (token_id, user_id) VALUES (?1, ?2)",
            params![token.id, person],
        )?;
    }
    Ok(token)
}

const NAME: &str = "SELECT name FROM users WHERE id = ?";

/// The API tokens, newest first, at most 10,000, and the sessions, of everybody or of one person.
pub(crate) fn list(
    connection: &Connection,
    sessions: bool,
    of: Option<UserId>,
) -> Outcome<Vec<Token>> {
    connection.rows(LIST_TOKENS, params![sessions, SESSION, MOST, of], from_row)
}

/// Names have no line ends.
const LIST_TOKENS: &str = "SELECT t.tools, t.household_only, t.*, u.name AS user, \
         (SELECT group_concat(o.name, char(10)) FROM token_speaks_for s \
             JOIN users o ON o.id = s.user_id WHERE s.token_id = t.id) AS others \
     FROM tokens t JOIN users u ON u.id = t.user_id \
     WHERE (?1 OR t.name <> ?2) AND (?4 IS NULL OR t.user_id = ?4 \
         OR EXISTS (SELECT 1 FROM token_speaks_for WHERE token_id = t.id AND user_id = ?4)) \
     ORDER BY t.id DESC LIMIT ?3";

pub(crate) const SPOKEN_FOR: &str = "SELECT u.id, u.name, u.role, \
         ifnull(u.language, u.last_language) AS language \
     FROM users u CROSS JOIN token_speaks_for s ON s.user_id = u.id \
     WHERE s.token_id = ?1 AND u.folded_name = ?2";

pub(crate) const FIND_IDENTITY: &str = "SELECT t.role, u.role, t.tools, t.household_only, \
     t.speaks_for_others, t.id, t.user_id, u.name, t.expires_at, \
         ifnull(u.language, u.last_language) \
     FROM tokens t CROSS JOIN users u ON u.id = t.user_id \
     WHERE t.fingerprint = ?1 AND (t.expires_at IS NULL OR t.expires_at > ?2)";

fn words_of(language: Option<String>) -> Words {
    language.as_deref().map_or(Words::ENGLISH, Words::of)
}

/// The lower of the roles of a token and its owner, of a row that begins with them.
fn granted_role(row: &Row<'_>) -> Outcome<UserRole> {
    let (token_role, user_role): (UserRole, UserRole) = (row.get(0)?, row.get(1)?);
    Ok(token_role.min(user_role))
}

/// Of a row of [`FIND_IDENTITY`], by the places of its columns: every request with a token
/// comes here.
fn identity_from_row(row: &Row<'_>) -> Outcome<Identity> {
    let (role, scope) = (granted_role(row)?, scope_from_row(row, 2)?);
    let is_lower = role < row.get(1)?;
    let speaks_for_others: bool = row.get(4)?;
    Ok(Identity {
        is_narrowed: is_lower || scope.is_narrow() || speaks_for_others,
        token_id: row.get(5)?,
        user_id: row.get(6)?,
        user: row.get(7)?,
        role,
        expires_at: row.get(8)?,
        words: words_of(row.get(9)?),
        scope,
    })
}

/// From two columns of a row.
fn scope_from_row(row: &Row<'_>, first: usize) -> Outcome<TokenScope> {
    let tools: Option<String> = row.get(first)?;
    Ok(TokenScope {
        tools: tools.as_deref().map(tool_names),
        household_only: row.get(first + 1)?,
    })
}

/// The names in a column `tools`.
pub(crate) fn tool_names(column: &str) -> Arc<[String]> {
    let names = column.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn from_row(row: &Row<'_>) -> Outcome<Token> {
    let others: Option<String> = row.get("others")?;
    let others = others.iter().flat_map(|names| names.lines());
    let speaks_for_others: bool = row.get("speaks_for_others")?;
    Ok(from_row!(row => Token {
        id, user, name, role, created_at, expires_at;
        scope: scope_from_row(row, 0)?,
        speaks_for: speaks_for_others.then(|| others.map(str::to_owned).collect()),
    }))
}
