//! Who asks in a turn.

use super::turn_context::TurnContext;
use crate::assistant::Assistant;
use crate::model::fence::{MCP_CHANNEL, is_of_sender, is_outside, is_untrusted};
use crate::tools::permission::Actor;
use base::error::Result;
use base::ids::UserId;
use base::language::Words;
use base::people::UserRole;
use config::{Config, Permission, Person};
use store::{Approval, Readers, Snapshot, Turn, User};

/// Who asks in a turn. For a webhook's message that is its account, whoever it says
/// that speaks.
#[derive(Clone, Default)]
pub struct Asker {
    /// The person whose turn it is, if there still is one.
    user: Option<User>,
    /// The name of the person, if it is one.
    name: Option<String>,
    /// Whether the person has been removed since, made a guest, or unlinked the sender.
    is_powerless: bool,
    /// The webhook account whose caller reads the conversation.
    caller: Option<String>,
}

impl Asker {
    /// The asker of this turn. Of one of an older version, the speaker of its message.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of(turn: &Turn, speaker: Option<&str>, seen: &Snapshot<'_>) -> Result<Asker> {
        let caller = seen.caller_of(turn.conversation_id)?;
        let user = match turn.user_id {
            Some(id) => seen.user_by_id(id)?,
            None => None,
        };
        if is_untrusted(&turn.channel) {
            return Ok(Asker {
                user,
                caller,
                ..Asker::default()
            });
        }
        let account = turn.account.as_deref();
        let is_powerless = match &user {
            Some(user) if is_of_sender(&turn.channel) => {
                let is_linked = seen.is_linked(account, turn.user_id, turn.conversation_id)?;
                !is_linked || user.role < UserRole::User
            }
            Some(user) => user.role < UserRole::User,
            None => turn.user_id.is_some(),
        };
        let name = user.as_ref().map(|user| user.name.clone());
        Ok(Asker {
            name: name.or_else(|| speaker.map(str::to_owned)),
            user,
            is_powerless,
            caller,
        })
    }

    /// The words of whoever asks.
    pub fn words(&self) -> Words {
        self.user.as_ref().map_or(Words::ENGLISH, User::words)
    }

    /// Whether an admin asked as such, and nobody else reads the conversation.
    pub fn is_admin_alone(&self, run: &TurnContext<'_>) -> bool {
        let admin = self
            .user
            .as_ref()
            .filter(|user| user.role >= UserRole::Admin);
        let reads_alone = |user: &User| match &run.turn.readers {
            Readers::People(people) => people[..] == [user.id],
            Readers::Household => false,
        };
        let channel = &run.turn.channel;
        !is_untrusted(channel) && !is_of_sender(channel) && admin.is_some_and(reads_alone)
    }

    /// Who asked, where the configuration says something about that person.
    pub fn person<'a>(&self, run: &TurnContext<'a>) -> Option<(UserId, &'a Person)> {
        let user = self.user.as_ref()?;
        let person = run.assistant.config.person(&user.name)?;
        Some((user.id, person))
    }

    /// The same for the permissions.
    pub fn actor<'a>(&'a self, run: &TurnContext<'a>) -> Actor<'a> {
        self.actor_in(run.turn, &run.assistant.config)
    }

    fn actor_in<'a>(&'a self, turn: &'a Turn, config: &'a Config) -> Actor<'a> {
        let tools = match self.is_powerless {
            // Whatever was allowed before: they cause nothing.
            true => Some(&[][..]),
            false => turn.tools.as_deref(),
        };
        let actor = Actor::of_turn(config, turn.account.as_deref(), self.name.as_deref())
            .with_tools(tools)
            .read_by(self.caller.as_deref());
        let channel = &turn.channel;
        let is_admin = |user: &User| user.role >= UserRole::Admin && !is_of_sender(channel);
        match &self.user {
            Some(user) if !is_untrusted(channel) && !is_admin(user) => actor.borrowing_nothing(),
            _ => actor,
        }
    }
}

/// Whether the call for which a turn waits would run if it were allowed: whoever asked may have
/// lost the right to it since.
///
/// # Errors
/// When the database cannot be read.
pub fn would_run(
    assistant: &Assistant,
    turn: &Turn,
    approval: &Approval,
    seen: &Snapshot<'_>,
) -> Result<bool> {
    let asker = Asker::of(turn, approval.requested_by.as_deref(), seen)?;
    let actor = asker.actor_in(turn, &assistant.config);
    let arguments = serde_json::from_str(&approval.arguments).unwrap_or_default();
    let toolbox = &assistant.toolbox;
    Ok(actor.once_allowed(&approval.tool, &arguments, toolbox) != Permission::Deny)
}

/// Who holds a permission "for this conversation": a person, or a webhook account.
pub fn grantee<'a>(run: &TurnContext<'a>) -> (Option<UserId>, Option<&'a str>) {
    match is_untrusted(&run.turn.channel) {
        true => (None, run.turn.account.as_deref()),
        false => (run.turn.user_id, None),
    }
}

/// Whether the message itself is text from outside, or brings some.
pub fn is_from_outside(run: &TurnContext<'_>) -> bool {
    let is_by_mcp = run.turn.channel == MCP_CHANNEL && !run.assistant.config.mcp_api.trusted;
    if is_by_mcp || !run.message.attachments.is_empty() {
        return true;
    }
    is_outside(&run.turn.channel, &run.assistant.config)
}
