//! Who reads, and which things they may see and change.
//!
//! Every statement that reads for somebody selects the columns of [`seen_columns`],
//! and drops the rows that their [`Sight`] does not include.

pub(crate) mod audiences;

use std::fmt::Display;
use std::ops::ControlFlow;

use rusqlite::{Connection, Row, ToSql, params};

use crate::engine::failure::Outcome;
use crate::engine::query::{Statements, not_found};
use crate::engine::readers::Source;
pub(crate) use crate::sight::audience::{
    BELONGS, Belongs, SEEN_COLUMNS, seen_columns, select_seen,
};
use crate::sight::audience::{Directory, Readers};
use base::error::{Code, Error};
use base::ids::{AudienceId, ConversationId, UserId};
use base::people::UserRole;

/// Who reads. What they may not see does not exist for them.
#[derive(Clone, Debug)]
pub struct Viewer(Scope);

#[derive(Clone, Debug)]
enum Scope {
    Server,
    Person(Person),
    Account(String),
    ReadersOf {
        conversation: ConversationId,
        known: Readers,
        asker: Asker,
        household_only: bool,
        is_admin: bool,
    },
}

#[derive(Clone, Debug)]
enum Asker {
    Nobody,
    Person(UserId),
    Account(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Person {
    id: UserId,
    role: UserRole,
    household_only: bool,
}

impl Viewer {
    /// Sees and changes everything: the server's own work, and whoever owns the
    /// machine.
    pub fn server() -> Viewer {
        Viewer(Scope::Server)
    }

    /// A person: what is shared with them, and what is the household's unless the
    /// role is that of a guest.
    pub fn person(id: UserId, role: UserRole) -> Viewer {
        Viewer(Scope::Person(Person {
            id,
            role,
            household_only: false,
        }))
    }

    /// The same without what is not the household's. New things are then the
    /// household's.
    #[must_use]
    pub fn household_only(mut self) -> Viewer {
        match &mut self.0 {
            Scope::Person(person) => person.household_only = true,
            Scope::ReadersOf { household_only, .. } => *household_only = true,
            Scope::Server | Scope::Account(_) => {}
        }
        self
    }

    /// A webhook account: its conversations, but for those that a person keeps to
    /// themselves and has sent there.
    pub fn account(name: &str) -> Viewer {
        Viewer(Scope::Account(name.to_owned()))
    }

    /// The model in a conversation: what everybody who reads the conversation may
    /// see. One of a webhook account is read by the account's caller, too. It changes
    /// nothing that has an owner. The readers are those of a turn, and count until the
    /// conversation itself is committed.
    pub fn readers_of(conversation: ConversationId, known: &Readers) -> Viewer {
        Viewer(Scope::ReadersOf {
            conversation,
            known: known.clone(),
            asker: Asker::Nobody,
            household_only: false,
            is_admin: true,
        })
    }

    /// The model in a conversation, in a turn of this person, or else of this webhook
    /// account: it sees nothing that they do not see, too, and changes what they may
    /// change.
    #[must_use]
    pub fn asked_by(mut self, user: Option<UserId>, account: Option<&str>) -> Viewer {
        if let Scope::ReadersOf { asker, .. } = &mut self.0 {
            *asker = match (user, account) {
                (Some(user), _) => Asker::Person(user),
                (None, Some(account)) => Asker::Account(account.to_owned()),
                (None, None) => Asker::Nobody,
            };
        }
        self
    }

    /// The same where whoever asks has no more rights than a user, even as an admin.
    #[must_use]
    pub fn without_admin(mut self) -> Viewer {
        match &mut self.0 {
            Scope::Person(person) => person.role = person.role.min(UserRole::User),
            Scope::ReadersOf { is_admin, .. } => *is_admin = false,
            Scope::Server | Scope::Account(_) => {}
        }
        self
    }

    /// Whether a person reads or, in a conversation, asks.
    pub fn is_person(&self) -> bool {
        match &self.0 {
            Scope::Server | Scope::Person(_) => true,
            Scope::Account(_) => false,
            Scope::ReadersOf { asker, .. } => matches!(asker, Asker::Person(_)),
        }
    }

    /// The person who reads or, in a conversation, asks.
    pub fn asker(&self) -> Option<UserId> {
        match &self.0 {
            Scope::ReadersOf {
                asker: Asker::Person(id),
                ..
            } => Some(*id),
            _ => self.user_id(),
        }
    }

    /// The person who reads, if it is one.
    pub fn user_id(&self) -> Option<UserId> {
        match &self.0 {
            Scope::Person(person) => Some(person.id),
            _ => None,
        }
    }

    /// Whether an approval is seen for which this person asked; none stands for a
    /// webhook account. Whoever may answer for others sees what they asked for.
    pub(crate) fn sees_approval_of(&self, asker: Option<UserId>) -> bool {
        match &self.0 {
            Scope::Server => true,
            // What is asked for may be about a private conversation.
            Scope::Person(person) if person.household_only => false,
            Scope::Person(person) => person.role >= UserRole::Admin || asker == Some(person.id),
            Scope::Account(_) | Scope::ReadersOf { .. } => false,
        }
    }

    /// Whether only what is the household's is seen and made.
    pub fn is_household_only(&self) -> bool {
        matches!(&self.0, Scope::Person(person) if person.household_only)
    }

    /// The conversation whose readers see what the model sees, with those of a turn; none where
    /// it is only shown what is the household's.
    pub(crate) fn conversation(&self) -> Option<(ConversationId, &Readers)> {
        match &self.0 {
            Scope::ReadersOf {
                conversation,
                known,
                household_only: false,
                ..
            } => Some((*conversation, known)),
            _ => None,
        }
    }

    /// What is seen at this moment.
    pub(crate) fn sight<'a>(&self, source: impl Into<Source<'a>>) -> Outcome<Sight<'a>> {
        let (mut caller, directory) = (None, Directory::new(source));
        let (seen, actor) = match &self.0 {
            Scope::Server => (Seen::All, Actor::Server),
            Scope::Account(name) => (Seen::OfAccount(name.clone()), Actor::Account(name.clone())),
            Scope::Person(person) => (
                Seen::Of(directory.audiences_of(*person)?),
                Actor::Person(*person),
            ),
            Scope::ReadersOf {
                conversation,
                known,
                asker,
                household_only,
                is_admin,
            } => {
                let mut actor = match asker {
                    Asker::Nobody => Actor::Nobody,
                    Asker::Account(name) => Actor::Account(name.clone()),
                    Asker::Person(id) => directory.actor(*id)?,
                };
                if let Actor::Person(person) = &mut actor
                    && !is_admin
                {
                    person.role = person.role.min(UserRole::User);
                }
                let (mut audiences, account) = directory.audiences_within(*conversation, known)?;
                if let Actor::Person(person) = &actor {
                    let own = directory.audiences_of(*person)?;
                    audiences.retain(|audience| own.binary_search(audience).is_ok());
                }
                if *household_only {
                    audiences.retain(|audience| *audience == AudienceId::HOUSEHOLD);
                }
                caller = match &actor {
                    Actor::Account(name) => Some(name.clone()),
                    _ => account,
                };
                (Seen::Of(audiences), actor)
            }
        };
        Ok(Sight {
            viewer: self.clone(),
            seen,
            caller,
            actor,
            directory,
        })
    }
}

/// What a [`Viewer`] sees at one moment.
pub(crate) struct Sight<'a> {
    pub viewer: Viewer,
    seen: Seen,
    /// The webhook account whose caller reads along: of what is seen, the household's
    /// and the account's own are left.
    caller: Option<String>,
    actor: Actor,
    /// The names of users and the members of audiences, as far as they were asked for.
    pub directory: Directory<'a>,
}

/// The part of all things that a viewer sees.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    All,
    /// Things of these audiences, in rising order.
    Of(Vec<AudienceId>),
    OfAccount(String),
}

enum Actor {
    Server,
    Person(Person),
    Account(String),
    Nobody,
}

impl Statements for Sight<'_> {
    fn connection(&self) -> &Connection {
        self.directory.connection()
    }
}

impl Sight<'_> {
    /// What of all there is, but for what a caller who reads along does not see.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// All that it depends on what is seen.
    pub fn scope(&self) -> (Seen, Option<String>) {
        (self.seen.clone(), self.caller.clone())
    }

    /// Whether somebody from outside reads along.
    pub fn has_caller(&self) -> bool {
        self.caller.is_some()
    }

    /// At most `limit` rows of a cached statement that are seen. It selects the
    /// [`seen_columns`] first.
    pub fn seen_rows<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        limit: usize,
        mut from_row: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let mut found = Vec::new();
        if self.is_blind() {
            return Ok(found);
        }
        self.each_row(sql, parameters, &mut |row| {
            if found.len() == limit {
                return Ok(ControlFlow::Break(()));
            }
            if self.sees_row(row)? {
                found.push(from_row(row)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The row of a `what` by its id, the only parameter of the statement, which
    /// selects the [`seen_columns`] first; and whose it is.
    ///
    /// # Errors
    /// `not_found`, also for one that is not seen.
    pub fn find_seen<T, I: ToSql + Display>(
        &self,
        what: &str,
        sql: &str,
        id: I,
        mut from_row: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<(T, Belongs)> {
        let found = self.row(sql, &[&id], |row| {
            let belongs = Belongs::from_row(row)?;
            Ok(match self.sees(&belongs) {
                true => Some((from_row(row)?, belongs)),
                false => None,
            })
        })?;
        found.flatten().ok_or_else(|| not_found(what, id))
    }

    /// Whether nothing is seen.
    pub fn is_blind(&self) -> bool {
        matches!(&self.seen, Seen::Of(audiences) if audiences.is_empty())
    }

    /// Whether the thing of a row is seen, whose first columns are [`seen_columns`].
    pub fn sees_row(&self, row: &Row<'_>) -> Outcome<bool> {
        Ok(match &self.seen {
            Seen::All => true,
            Seen::Of(audiences) if self.caller.is_none() => {
                audiences.binary_search(&row.get(0)?).is_ok()
            }
            Seen::Of(_) | Seen::OfAccount(_) => self.sees(&Belongs::from_row(row)?),
        })
    }

    /// Whether a thing is seen.
    pub fn sees(&self, thing: &Belongs) -> bool {
        match &self.seen {
            Seen::All => true,
            Seen::Of(audiences) => {
                let is_for_caller = self.caller.as_ref().is_none_or(|name| {
                    let is_own = thing.owner_id.is_none() && thing.account.as_ref() == Some(name);
                    is_own || thing.audience_id == AudienceId::HOUSEHOLD
                });
                is_for_caller && audiences.binary_search(&thing.audience_id).is_ok()
            }
            Seen::OfAccount(name) => {
                thing.account.as_deref() == Some(name)
                    && (thing.owner_id.is_none() || thing.audience_id == AudienceId::HOUSEHOLD)
            }
        }
    }

    /// Checks that a thing that is seen may also be deleted: by whoever may change it, and
    /// what is nobody's and not the household's by everybody who sees it but guests. There
    /// may be no admin among them.
    ///
    /// # Errors
    /// `unauthorized`, with the owner's name.
    pub fn check_delete(&self, what: &str, thing: &Belongs) -> Outcome<()> {
        let is_left = thing.owner_id.is_none() && thing.audience_id != AudienceId::HOUSEHOLD;
        match &self.actor {
            Actor::Person(person) if is_left && person.role >= UserRole::User => Ok(()),
            _ => self.check_change(what, thing),
        }
    }

    /// Checks that a thing that is seen may also be changed: by its owner, and where
    /// it is the household's or nobody's by an admin.
    ///
    /// # Errors
    /// `unauthorized`, with the owner's name.
    pub fn check_change(&self, what: &str, thing: &Belongs) -> Outcome<()> {
        let may = match &self.actor {
            Actor::Server => true,
            Actor::Person(person) => {
                let is_shared_by_all =
                    thing.audience_id == AudienceId::HOUSEHOLD || thing.owner_id.is_none();
                thing.owner_id == Some(person.id)
                    || (person.role == UserRole::Admin && is_shared_by_all)
            }
            Actor::Account(name) => {
                thing.owner_id.is_none() && thing.account.as_deref() == Some(name)
            }
            Actor::Nobody => false,
        };
        if may {
            return Ok(());
        }
        let owner: Option<String> = match thing.owner_id {
            Some(owner) => self.value(
                "SELECT ifnull(display_name, name) FROM users WHERE id = ?",
                params![owner],
            )?,
            None => None,
        };
        let key = match (&owner, thing.audience_id) {
            (Some(_), AudienceId::HOUSEHOLD) => "error.owner_or_admin_changes",
            (Some(_), _) => "error.owner_changes",
            (None, _) => "error.admin_changes",
        };
        let fields = [("owner", &*owner.unwrap_or_default()), ("what", what)];
        Err(Error::worded(Code::Unauthorized, key, &fields).into())
    }
}
