//! Memories, as people write and change them themselves.

use serde_json::{Value, json};

use super::caller::Caller;
use super::commands::check_audience;
use super::{Service, views};
use base::error::{Error, Result};
use base::language::Said;
use base::people::Audience;
use protocol::command::{AddMemory, UpdateMemory};
use store::{Identity, NewMemory, UserRole, show_name};

impl Service {
    /// Stores a memory of the caller; what the machine's owner writes is the household's.
    ///
    /// # Errors
    /// `invalid_request`, also for an audience that there is not.
    pub(super) fn add_memory(&self, new: AddMemory, by: &Caller<'_>) -> Result<Value> {
        let audience = new
            .audience
            .unwrap_or(match is_machines_owner(by.identity) {
                true => Audience::Household,
                false => Audience::Private,
            });
        check_audience(by.identity, &audience)?;
        let memory = self.store.remember(NewMemory {
            content: new.content,
            audience: Some(audience),
            ..said_by(by)
        })?;
        self.hub.publish_memory(memory.id, memory.readers.clone());
        Ok(json!(views::memory(&memory)))
    }

    /// Puts a memory in place of another one. Conversations in which that was shown lose it, as
    /// when it is forgotten: not all who see them may see this one.
    ///
    /// # Errors
    /// `not_found`; `unauthorized` for who may not change it, and for whose it is not to share.
    pub(super) fn update_memory(&self, update: UpdateMemory, by: &Caller<'_>) -> Result<Value> {
        let identity = by.identity;
        let old = (self.store.snapshot(&identity.viewer())?).memory(update.memory_id)?;
        let is_own = old.owner_id == Some(identity.user_id) || is_machines_owner(identity);
        if let Some(audience) = &update.audience {
            check_audience(identity, audience)?;
            if !is_own && *audience != old.audience {
                let mut whose = old.owner;
                let seen = self.store.snapshot(&identity.viewer())?;
                show_name(&mut whose, &seen.display_names()?);
                let whose = whose.as_deref().unwrap_or("nobody");
                let refused = Said::of("error.memory_of", &[("name", whose)]);
                return Err(Error::unauthorized(refused));
            }
        }
        let said = match &update.content {
            // What a person writes is their own words, whoever said it before.
            Some(_) => said_by(by),
            None => NewMemory {
                speaker: old.speaker,
                search_words: old.search_words,
                channel: old.channel,
                account: old.account,
                is_outside: old.is_outside,
                ..NewMemory::default()
            },
        };
        let new = NewMemory {
            content: update.content.unwrap_or(old.content),
            audience: Some(update.audience.unwrap_or(old.audience)),
            owner_id: old.owner_id,
            ..said
        };
        let replaced = update.memory_id.to_string();
        let (memory, old) = (self.store).replace_memory(&identity.viewer(), &replaced, new)?;
        self.hub.publish_memory(old.id, old.readers);
        self.hub.publish_memory(memory.id, memory.readers.clone());
        Ok(json!(views::memory(&memory)))
    }
}

fn is_machines_owner(identity: &Identity) -> bool {
    identity.role == UserRole::Owner
}

/// A memory that the caller writes, without its text.
fn said_by(caller: &Caller<'_>) -> NewMemory {
    let is_person = !is_machines_owner(caller.identity);
    NewMemory {
        speaker: is_person.then(|| caller.identity.user.clone()),
        owner_id: is_person.then_some(caller.identity.user_id),
        channel: Some(caller.transport.to_owned()),
        ..NewMemory::default()
    }
}
