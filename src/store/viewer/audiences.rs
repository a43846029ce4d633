//! The audiences that a viewer belongs to.

use rusqlite::{Connection, Row, params};

use super::{Actor, BELONGS, Belongs, Person};
use crate::audience::{self, Readers};
use crate::failure::Outcome;
use crate::query::{row, rows};
use base::ids::{AudienceId, ConversationId, UserId};
use base::role::UserRole;

/// A person, as whom the model acts.
pub(super) fn actor(connection: &Connection, id: UserId) -> Outcome<Actor> {
    let role = row(connection, ROLE, params![id], |row| row.get(0))?;
    Ok(role.map_or(Actor::Nobody, |role| {
        Actor::Person(Person {
            id,
            role,
            household_only: false,
        })
    }))
}

/// The audiences that a person belongs to.
pub(super) fn audiences_of(connection: &Connection, person: Person) -> Outcome<Vec<AudienceId>> {
    let mut audiences = match person.household_only {
        true => Vec::new(),
        false => rows(connection, AUDIENCES_OF, params![person.id], |row| {
            row.get(0)
        })?,
    };
    if person.role >= UserRole::User {
        // The lowest of all ids.
        audiences.insert(0, AudienceId::HOUSEHOLD);
    }
    Ok(audiences)
}

/// The audiences that include all people who read a conversation, and the webhook
/// account whose caller reads it, too.
pub(super) fn audiences_within(
    connection: &Connection,
    conversation: ConversationId,
    known: &Readers,
) -> Outcome<(Vec<AudienceId>, Option<String>)> {
    let of_row = |row: &Row<'_>| Belongs::from_row(row);
    let own = row(connection, BELONGS, params![conversation], of_row)?;
    let now = match &own {
        Some(own) => &audience::readers(connection, own.audience_id)?,
        None => known,
    };
    let (own, account) = match own {
        // What a person has sent to an account is read by it once it is there.
        Some(own) => (
            Some(own.audience_id),
            own.account.filter(|_| own.owner_id.is_none()),
        ),
        None => (None, None),
    };
    let Readers::People(people) = now else {
        // A narrower audience could lose to whoever joins the household.
        return Ok((vec![AudienceId::HOUSEHOLD], account));
    };
    let mut within: Option<Vec<AudienceId>> = None;
    for &id in people.iter() {
        let role = row(connection, ROLE, params![id], |row| row.get(0))?;
        let person = Person {
            id,
            role: role.unwrap_or(UserRole::Viewer),
            household_only: false,
        };
        let of_person = audiences_of(connection, person)?;
        within = Some(match within {
            Some(mut within) => {
                within.retain(|audience| of_person.binary_search(audience).is_ok());
                within
            }
            None => of_person,
        });
    }
    // Without people, all of them are removed.
    let within = within.unwrap_or_else(|| own.into_iter().collect());
    Ok((within, account))
}

pub(crate) const AUDIENCES_OF: &str =
    "SELECT audience_id FROM audience_members WHERE user_id = ? ORDER BY audience_id";

const ROLE: &str = "SELECT role FROM users WHERE id = ?";
