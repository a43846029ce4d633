//! Audiences: the sets of people who may see a thing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::engine::readers::Source;
use crate::people::user::{self, User};
use base::error::Error;
use base::ids::{AudienceId, ConversationId, UserId};
pub use base::people::Audience;
use base::people::UserRole;

/// Who may see a thing, for what is sent to many: no query is needed to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Everybody with the role user or admin.
    Household,
    /// These people.
    People(Arc<[UserId]>),
}

impl Readers {
    /// Whether a person with this role is one of them.
    pub fn include(&self, id: UserId, role: UserRole) -> bool {
        match self {
            Readers::Household => role >= UserRole::User,
            Readers::People(people) => people.contains(&id),
        }
    }
}

/// The owner of a thing and its audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belongs {
    pub owner_id: Option<UserId>,
    pub audience_id: AudienceId,
    pub account: Option<String>,
}

/// The columns of [`Belongs`], of the table with this name in the statement. They
/// come first, and have names of their own beside `*`.
macro_rules! seen_columns {
    ($table:literal) => {
        concat!(
            $table,
            ".audience_id AS its_audience, ",
            $table,
            ".owner_id AS its_owner, ",
            $table,
            ".account AS its_account "
        )
    };
}

pub(crate) use seen_columns;

/// A statement that selects the [`seen_columns`] of a table, and then what follows.
macro_rules! select_seen {
    ($table:literal, $($rest:tt)+) => {
        concat!(
            "SELECT ",
            crate::sight::viewer::seen_columns!($table),
            ", ",
            $($rest)+
        )
    };
}

pub(crate) use select_seen;

/// How many they are.
pub(crate) const SEEN_COLUMNS: usize = 3;

impl Belongs {
    /// From the first three columns of a row.
    pub fn from_row(row: &Row<'_>) -> Outcome<Belongs> {
        Ok(Belongs {
            audience_id: row.get(0)?,
            owner_id: row.get(1)?,
            account: row.get(2)?,
        })
    }
}

/// The owner of a conversation and its audience.
pub(crate) const BELONGS: &str = concat!(
    "SELECT ",
    seen_columns!("c"),
    "FROM conversations c WHERE id = ?"
);

/// What to do with a name that nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownName {
    /// Refuse the request.
    Refuse,
    /// Leave it out: a configuration may name somebody who is not added yet.
    Skip,
}

/// The id of an audience, which is stored if it is new.
///
/// # Errors
/// `invalid_request` for a name that nobody has, and for a private thing without an
/// owner, which nobody could see.
pub(crate) fn intern(
    write: &Write<'_>,
    owner: Option<UserId>,
    audience: &Audience,
    unknown: UnknownName,
) -> Outcome<AudienceId> {
    let names = match (audience, owner) {
        (Audience::Household, _) => return Ok(AudienceId::HOUSEHOLD),
        (Audience::Private, None) => {
            return Err(Error::invalid_request(
                "what has no owner cannot be private: name the people who may see it",
            )
            .into());
        }
        (Audience::Private, Some(_)) => &[][..],
        (Audience::People(names), _) => names,
    };
    let mut people: BTreeSet<UserId> = owner.into_iter().collect();
    for name in names {
        let user = "SELECT id FROM users WHERE folded_name = ?";
        let found: Option<UserId> = write.value(user, params![base::people::folded(name)])?;
        match (found, unknown) {
            (Some(id), _) => {
                people.insert(id);
            }
            (None, UnknownName::Skip) => {}
            (None, UnknownName::Refuse) => {
                return Err(Error::refused("error.nobody_to_share", &[("name", name)]).into());
            }
        }
    }
    of_people(write, &people)
}

/// The audience of exactly these people.
pub(crate) fn of_people(write: &Write<'_>, people: &BTreeSet<UserId>) -> Outcome<AudienceId> {
    let ids: Vec<String> = people.iter().map(|id| id.as_i64().to_string()).collect();
    let key = ids.join(",");
    let known = write.value("SELECT id FROM audiences WHERE members = ?", params![key])?;
    if let Some(known) = known {
        return Ok(known);
    }
    write.execute("INSERT INTO audiences (members) VALUES (?)", params![key])?;
    let id = AudienceId::from(write.connection.last_insert_rowid());
    for person in people {
        write.execute(
            "INSERT INTO audience_members (user_id, audience_id) VALUES (?1, ?2)",
            params![person, id],
        )?;
    }
    Ok(id)
}

/// The audience of exactly one person.
pub(crate) fn private(write: &Write<'_>, owner: UserId) -> Outcome<AudienceId> {
    of_people(write, &BTreeSet::from([owner]))
}

/// Makes sure that no audience with a person who is removed is found by its members
/// again: another person might get the same id.
pub(crate) fn retire_those_with(write: &Write<'_>, person: UserId) -> Outcome<()> {
    write.run(
        "UPDATE audiences SET members = 'retired ' || id
         WHERE id IN (SELECT audience_id FROM audience_members WHERE user_id = ?)",
        params![person],
    )
}

/// Those who may see what has this audience.
pub(crate) fn readers(connection: &Connection, id: AudienceId) -> Outcome<Readers> {
    if id == AudienceId::HOUSEHOLD {
        return Ok(Readers::Household);
    }
    let people = connection.values(MEMBERS, params![id])?;
    Ok(Readers::People(people.into()))
}

/// Whether somebody may see what has the audience `now` who may not see what has the
/// audience `before`.
pub(crate) fn is_wider(
    connection: &Connection,
    before: AudienceId,
    now: AudienceId,
) -> Outcome<bool> {
    if before == now {
        return Ok(false);
    }
    match (before, now) {
        // Whoever joins the household later sees it, too.
        (_, AudienceId::HOUSEHOLD) => Ok(true),
        (AudienceId::HOUSEHOLD, now) => connection.exists(
            "SELECT 1 FROM audience_members m CROSS JOIN users u ON u.id = m.user_id
             WHERE m.audience_id = ?1 AND u.role = ?2 LIMIT 1",
            params![now, UserRole::Viewer],
        ),
        (before, now) => connection.exists(
            "SELECT 1 FROM audience_members m
             WHERE audience_id = ?1 AND NOT EXISTS (SELECT 1 FROM audience_members
                 WHERE audience_id = ?2 AND user_id = m.user_id) LIMIT 1",
            params![now, before],
        ),
    }
}

/// Those who may see a conversation.
pub(crate) fn readers_of(
    connection: &Connection,
    conversation: ConversationId,
) -> Outcome<Readers> {
    let audience = "SELECT audience_id FROM conversations WHERE id = ?";
    let read = |row: &Row<'_>| Ok(row.get(0)?);
    let audience = connection.find("conversation", audience, conversation, read)?;
    readers(connection, audience)
}

/// Users, the members of audiences, and the owners of conversations, each read once.
pub(crate) struct Directory<'a> {
    source: Source<'a>,
    users: Known<UserId, Option<User>>,
    audiences: Known<UserId, Vec<AudienceId>>,
    readers: Known<AudienceId, Readers>,
    conversations: Known<ConversationId, Option<Belongs>>,
}

type Known<K, V> = RefCell<BTreeMap<K, V>>;

impl Statements for Directory<'_> {
    fn connection(&self) -> &Connection {
        self.source.connection()
    }
}

impl<'a> Directory<'a> {
    /// That of a reader, or of another's transaction.
    pub fn new(source: impl Into<Source<'a>>) -> Directory<'a> {
        Directory {
            source: source.into(),
            users: Known::default(),
            audiences: Known::default(),
            readers: Known::default(),
            conversations: Known::default(),
        }
    }

    /// A user, if there still is one.
    pub fn user(&self, id: UserId) -> Outcome<Option<User>> {
        kept(&self.users, id, || {
            self.row(user::FIND, params![id], user::from_row)
        })
    }

    /// The audiences of people to which a person belongs, in rising order.
    pub fn audiences(&self, id: UserId) -> Outcome<Vec<AudienceId>> {
        kept(&self.audiences, id, || {
            self.values(AUDIENCES_OF, params![id])
        })
    }

    /// The owner of a conversation and its audience; none if it is not there.
    pub fn conversation(&self, id: ConversationId) -> Outcome<Option<Belongs>> {
        kept(&self.conversations, id, || {
            self.row(BELONGS, params![id], Belongs::from_row)
        })
    }

    /// The name of a user; none if there is no owner.
    pub fn name(&self, user: Option<UserId>) -> Outcome<Option<String>> {
        let Some(user) = user else { return Ok(None) };
        Ok(self.user(user)?.map(|user| user.name))
    }

    /// Those who may see what has this audience.
    pub fn readers(&self, id: AudienceId) -> Outcome<Readers> {
        kept(&self.readers, id, || readers(self.connection(), id))
    }

    /// The audience of a thing of `owner`, as people write it.
    pub fn audience(&self, owner: Option<UserId>, id: AudienceId) -> Outcome<Audience> {
        let Readers::People(people) = self.readers(id)? else {
            return Ok(Audience::Household);
        };
        let mut names = Vec::new();
        for &person in people.iter().filter(|&&person| Some(person) != owner) {
            names.extend(self.name(Some(person))?);
        }
        names.sort();
        Ok(match names.is_empty() && owner.is_some() {
            true => Audience::Private,
            false => Audience::People(names),
        })
    }
}

/// What is known of a key, or else is read now and kept.
fn kept<K: Copy + Ord, V: Clone>(
    known: &Known<K, V>,
    key: K,
    read: impl FnOnce() -> Outcome<V>,
) -> Outcome<V> {
    if let Some(value) = known.borrow().get(&key) {
        return Ok(value.clone());
    }
    let value = read()?;
    known.borrow_mut().insert(key, value.clone());
    Ok(value)
}

pub(crate) const AUDIENCES_OF: &str =
    "SELECT audience_id FROM audience_members WHERE user_id = ? ORDER BY audience_id";

pub(crate) const MEMBERS: &str = "SELECT user_id FROM audience_members \
     INDEXED BY audience_members_by_audience WHERE audience_id = ? ORDER BY user_id";
