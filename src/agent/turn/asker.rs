//! Who asks in a turn.

use super::turn_context::TurnContext;
use crate::message_text::is_untrusted;
use crate::permission::Actor;
use base::error::Result;
use base::ids::UserId;
use base::role::UserRole;

/// Who asks in a turn. For a webhook's message that is its account, whoever it says
/// that speaks.
#[derive(Default)]
pub struct Asker {
    /// The name of the person, if it is one.
    name: Option<String>,
    /// Whether the person has been removed since.
    is_gone: bool,
    /// Whether the person has been made a guest since.
    is_guest: bool,
}

impl Asker {
    /// The asker of this turn.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of(run: &TurnContext<'_>) -> Result<Asker> {
        if is_untrusted(&run.turn.channel) {
            return Ok(Asker::default());
        }
        let user = match run.turn.user_id {
            Some(id) => run.store.user_by_id(id)?,
            None => None,
        };
        Ok(Asker {
            is_gone: run.turn.user_id.is_some() && user.is_none(),
            is_guest: user.as_ref().is_some_and(|user| user.role < UserRole::User),
            // A turn of an older version says who spoke.
            name: user
                .map(|user| user.name)
                .or_else(|| run.message.speaker.clone()),
        })
    }

    /// The same for the permissions.
    pub fn actor<'a>(&self, run: &TurnContext<'a>) -> Actor<'a> {
        let config = &run.assistant.config;
        let actor = Actor::of_turn(config, run.turn.account.as_deref(), self.name.as_deref())
            .with_tools(run.turn.tools.as_deref());
        match (self.is_gone, self.is_guest) {
            (true, _) => actor.gone(),
            // Whatever was allowed before: a guest causes nothing.
            (false, true) => actor.with_tools(Some(&[])),
            (false, false) => actor,
        }
    }
}

/// For whom a permission "for this conversation" holds: a person, or a webhook account.
pub fn grantee<'a>(run: &TurnContext<'a>) -> (Option<UserId>, Option<&'a str>) {
    match is_untrusted(&run.turn.channel) {
        true => (None, run.turn.account.as_deref()),
        false => (run.turn.user_id, None),
    }
}

/// Whether the message itself is text from outside, or brings some.
pub fn is_from_outside(run: &TurnContext<'_>) -> bool {
    if !run.message.attachments.is_empty() {
        return true;
    }
    is_untrusted(&run.turn.channel) && run.account.is_none_or(|account| !account.trusted)
}
