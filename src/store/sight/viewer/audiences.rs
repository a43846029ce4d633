//! The audiences that a viewer belongs to.

use super::{Actor, Person};
use crate::engine::failure::Outcome;
use crate::sight::audience::{Directory, Readers};
use base::ids::{AudienceId, ConversationId, UserId};
use base::people::UserRole;

impl Directory<'_> {
    /// A person on whose behalf the model acts.
    pub(super) fn actor(&self, id: UserId) -> Outcome<Actor> {
        let user = self.user(id)?;
        Ok(user.map_or(Actor::Nobody, |user| {
            Actor::Person(Person {
                id,
                role: user.role,
                household_only: false,
            })
        }))
    }

    /// The audiences that a person belongs to, the household's first.
    pub(super) fn audiences_of(&self, person: Person) -> Outcome<Vec<AudienceId>> {
        let mut audiences = match person.household_only {
            true => Vec::new(),
            false => self.audiences(person.id)?,
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
        &self,
        conversation: ConversationId,
        known: &Readers,
    ) -> Outcome<(Vec<AudienceId>, Option<String>)> {
        let own = self.conversation(conversation)?;
        let now = match &own {
            Some(own) => &self.readers(own.audience_id)?,
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
            let user = self.user(id)?;
            let person = Person {
                id,
                role: user.map_or(UserRole::Viewer, |user| user.role),
                household_only: false,
            };
            let of_person = self.audiences_of(person)?;
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
}
