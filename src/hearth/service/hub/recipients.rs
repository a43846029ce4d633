//! Who gets an event.

use base::ids::UserId;
use base::language::Words;
use store::{Identity, Readers, UserRole};

/// A connection, as the hub and the service's registry know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// Who listens on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// Who signed in.
    pub id: UserId,
    /// With this role.
    pub role: UserRole,
    /// Whether the token is narrowed to what is the household's.
    pub household_only: bool,
    /// Their words.
    pub words: Words,
    /// Whether a program listens in their name, which reads errors in English.
    pub is_program: bool,
}

impl Person {
    /// Whoever listens on a connection: somebody in these words, or else a program in their name.
    pub fn reading(identity: &Identity, words: Option<Words>) -> Person {
        Person {
            id: identity.user_id,
            role: identity.role,
            household_only: identity.scope.household_only,
            words: words.unwrap_or(identity.words),
            is_program: words.is_none(),
        }
    }

    /// Whether they are among these readers.
    pub(super) fn may_see(self, readers: &Readers) -> bool {
        let is_narrowed_out = self.household_only && *readers != Readers::Household;
        readers.include(self.id, self.role) && !is_narrowed_out
    }
}

/// Who gets an event.
#[derive(Clone, Debug)]
pub enum Recipients {
    /// Those who may see its conversation.
    Readers(Readers),
    /// Those with the role `user` or more among the readers.
    Members(Readers),
    /// The admins among them.
    ReadingAdmins(Readers),
    /// Those who could see its conversation and cannot any longer.
    Former {
        /// Who could see it.
        before: Readers,
        /// Who can now.
        now: Readers,
    },
    /// Those who could see its conversation when a tool found what the event says, and
    /// still can: who it is shared with later must not learn that.
    Finders {
        /// Who could see it.
        then: Readers,
        /// Who can now.
        now: Readers,
    },
    /// The person who asked, if it was one and they still see the conversation, and every
    /// admin; but not with a token that is narrowed to what is the household's, nor with one
    /// of the role `viewer`.
    Askers {
        /// Who asked.
        asker: Option<UserId>,
        /// Who sees the conversation.
        readers: Readers,
    },
    /// Of these, the person who asked.
    Asker {
        /// Who asked.
        asker: UserId,
        /// Who sees the conversation.
        readers: Readers,
    },
    /// Of these, the others.
    OtherAdmins(UserId),
    /// This person, if they see the conversation, on their other connections.
    Elsewhere {
        /// Who.
        id: UserId,
        /// The one that knows.
        connection: ConnectionId,
        /// Who sees the conversation.
        readers: Readers,
    },
    /// Every admin.
    Admins,
}

impl Recipients {
    /// Whether this person is among them.
    pub fn include(&self, person: Person) -> bool {
        let is_admin = person.role >= UserRole::Admin;
        let may_see = |readers: &Readers| person.may_see(readers);
        match self {
            Recipients::Readers(readers) => may_see(readers),
            Recipients::Members(readers) => person.role >= UserRole::User && may_see(readers),
            Recipients::ReadingAdmins(readers) => is_admin && may_see(readers),
            Recipients::Former { before, now } => may_see(before) && !may_see(now),
            Recipients::Finders { then, now } => may_see(then) && may_see(now),
            Recipients::Elsewhere { id, readers, .. } => *id == person.id && may_see(readers),
            Recipients::Admins => is_admin,
            _ if person.household_only => false,
            Recipients::OtherAdmins(asker) => is_admin && *asker != person.id,
            Recipients::Askers { .. } if is_admin => true,
            // Such a token may not list them either, nor read what the reason quotes.
            _ if person.role < UserRole::User => false,
            Recipients::Askers { asker, readers } => *asker == Some(person.id) && may_see(readers),
            Recipients::Asker { asker, readers } => *asker == person.id && may_see(readers),
        }
    }

    /// Whether what happened was done on this connection.
    pub(super) fn leave_out(&self, one: ConnectionId) -> bool {
        matches!(self, Recipients::Elsewhere { connection, .. } if *connection == one)
    }

    /// The readers of the conversation, if they decide, to be changed.
    pub fn readers_mut(&mut self) -> Option<&mut Readers> {
        match self {
            Recipients::Readers(readers)
            | Recipients::Members(readers)
            | Recipients::ReadingAdmins(readers)
            | Recipients::Finders { now: readers, .. }
            | Recipients::Askers { readers, .. }
            | Recipients::Asker { readers, .. }
            | Recipients::Elsewhere { readers, .. } => Some(readers),
            Recipients::Former { .. } | Recipients::OtherAdmins(_) | Recipients::Admins => None,
        }
    }
}
