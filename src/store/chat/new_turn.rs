//! Beginning a turn: the message, its conversation and the turn in one commit.

use std::sync::Arc;

use rusqlite::{Row, params};

use crate::chat::conversations::{self, NewConversation, Placement};
use crate::chat::messages::{Message, NewMessage, Role, insert_message};
use crate::chat::replayed_history::{self, Following, ReplayedHistory};
use crate::chat::steps::insert_steps;
use crate::chat::turns::{self, Turn, TurnState};
use crate::chat::versions;
use crate::engine::database::Store;
use crate::engine::durability::{Durable, Provisional};
use crate::engine::failure::{Outcome, unwritable};
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row, not_found};
use crate::files::{self, NewAttachments, Replaced};
use crate::home::trigger::{self, Trigger};
use crate::keep::idempotency::{self, IdempotencyKey};
use crate::keep::usage::Usage;
use crate::sight::audience::{self, Audience, UnknownName, intern};
use crate::sight::viewer::{Belongs, Sight, Viewer, select_seen};
use base::error::Result;
use base::ids::{AudienceId, ConversationId, ScheduleId, TurnId, UserId};
use base::reply::Surface;

/// Where a new message goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// A conversation that must exist.
    Existing(ConversationId),
    /// A new conversation.
    New,
    /// The conversation of this name of a webhook account; created on first use.
    Named {
        /// The webhook account. Names are unique within an account.
        account: String,
        /// The caller's name, 1 to 128 characters.
        name: String,
    },
    /// The conversation of this name that its owner began through a linked sender of this
    /// account; created on first use. Without a name a new one.
    OfSender {
        /// The account. Names are unique within what one person has there.
        account: String,
        /// The sender, as the account names it.
        sender: String,
        /// The caller's name, 1 to 128 characters.
        name: Option<String>,
    },
    /// The conversation that ends in the history that a client sends; if there is
    /// none, a new one with that history.
    ReplayedHistory(ReplayedHistory),
}

/// A message to store and a turn to begin.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// Who sends it: a conversation that they do not see does not exist.
    pub viewer: Viewer,
    /// The conversation.
    pub target: Target,
    /// The person who asks, and who owns a new conversation.
    pub owner: Option<UserId>,
    /// Who sees a new conversation. Of a webhook account's, names that nobody has are
    /// left out.
    pub audience: Audience,
    /// Where it comes from, as [`Conversation::channel`](crate::Conversation::channel).
    pub channel: String,
    /// The webhook account that gets the reply.
    pub account: Option<String>,
    /// The text.
    pub message: String,
    /// Who wrote it, if known.
    pub speaker: Option<String>,
    /// Where the replies of a new conversation are read, if known.
    pub surface: Option<Surface>,
    /// Its files.
    pub attachments: NewAttachments,
    /// The message of the conversation that this one is written in place of; both stay.
    pub replaces: Option<Replaced>,
    /// The model to ask, if not the one of the conversation.
    pub model: Option<String>,
    /// The only tools of this turn; absent for all that the asker may have. A token may
    /// narrow them.
    pub tools: Option<Arc<[String]>>,
    /// Present when the request carries a key.
    pub idempotency: Option<IdempotencyKey>,
    /// The schedule that begins it.
    pub schedule: Option<ScheduleId>,
    /// Whether a model wrote the text, and no person.
    pub is_composed: bool,
    /// Whether the webhook account from which it comes is trusted.
    pub is_trusted: bool,
}

impl NewTurn {
    /// A message of nobody who is known, which says nothing else.
    pub fn new(
        viewer: Viewer,
        target: Target,
        audience: Audience,
        channel: impl Into<String>,
        message: String,
    ) -> NewTurn {
        NewTurn {
            viewer,
            target,
            owner: None,
            audience,
            channel: channel.into(),
            account: None,
            message,
            speaker: None,
            surface: None,
            attachments: NewAttachments::default(),
            replaces: None,
            model: None,
            tools: None,
            idempotency: None,
            schedule: None,
            is_composed: false,
            is_trusted: false,
        }
    }
}

/// The outcome of [`Store::begin_turn`](crate::Store::begin_turn).
#[derive(Clone, Debug)]
pub enum Begun {
    /// It was stored.
    New {
        /// The new turn, queued.
        turn: Turn,
        /// The stored message.
        message: Message,
        /// Whether earlier messages, or steps, were stored with it.
        has_history: bool,
    },
    /// The idempotency key was used before, for this turn.
    Repeat(Turn),
    /// The turn had ended, and continues from its last step.
    Again(Turn),
}

impl Begun {
    /// The turn, new or earlier.
    pub fn turn(&self) -> &Turn {
        match self {
            Begun::New { turn, .. } | Begun::Repeat(turn) | Begun::Again(turn) => turn,
        }
    }
}

impl Store {
    /// Stores a message and begins its turn, in one commit.
    ///
    /// # Errors
    /// `not_found` for the conversation; `invalid_request` with HTTP 422 when the
    /// idempotency key was used for another request, and for an audience with a name
    /// that nobody has.
    pub fn begin_turn(&self, new: NewTurn) -> Result<Durable<Begun>> {
        self.durable_write(|write| begin(write, new))
    }

    /// Like [`Store::begin_turn`], but returns before the commit, which follows
    /// within 5 ms, unless messages are hidden or deleted with it. For callers that acknowledge
    /// nothing yet. Until then reads do not see the turn, and if the commit fails, its next
    /// write is `not_found`.
    ///
    /// # Errors
    /// As [`Store::begin_turn`]; and `server_error` 503 while the database cannot be
    /// written: the turn would ask the model, and then be lost.
    pub fn begin_turn_deferred(&self, new: NewTurn) -> Result<Provisional<Begun>> {
        if !self.is_writable() {
            return Err(unwritable());
        }
        let hides = new.replaces.is_some();
        let begin = || {
            let begun = self.deferred_write(|write| begin(write, new))?;
            if self.is_rearranging() {
                // The model must not be shown what is hidden or deleted with that commit.
                self.flush()?;
            }
            Ok(begun)
        };
        match hides {
            true => self.rearrange(begin),
            false => begin(),
        }
    }
}

pub(crate) fn begin(write: &Write<'_>, new: NewTurn) -> Outcome<Begun> {
    // A history that its client brings along is stored in a new conversation, whose past
    // nobody has read.
    if new.replaces.is_none() {
        write.adds_to_the_end();
    }
    let sight = new.viewer.sight(write.connection)?;
    if let Some(key) = &new.idempotency
        && let Some(earlier) = idempotency::earlier_turn(write, key)?
    {
        return Ok(Begun::Repeat(turns::find(&sight, earlier)?));
    }
    if let Target::ReplayedHistory(replayed) = &new.target
        && let Some(turn) = replayed_history::waiting(write, &sight, replayed, &new.message)?
    {
        return Ok(Begun::Again(turn));
    }
    let (placement, mut has_history) = place(write, &sight, &new)?;
    let (instructions, request, steps) = match new.target {
        Target::ReplayedHistory(replayed) => {
            (replayed.instructions, replayed.request, replayed.steps)
        }
        _ => (None, None, Vec::new()),
    };
    let root = new
        .replaces
        .as_ref()
        .map(|earlier| {
            let conversation = placement.conversation_id;
            versions::make_room(write, &sight, conversation, earlier.message)
        })
        .transpose()?;
    let turn_id: TurnId = write.id();
    if let Some(account) = new.channel.strip_prefix("webhook:")
        && new.schedule.is_none()
    {
        let trigger = Trigger::Webhook(account.to_owned());
        let (is_outside, audience) = (!new.is_trusted, placement.audience_id);
        trigger::fire(write, &trigger, None, &new.message, is_outside, audience)?;
    }
    let mut message = insert_message(
        write,
        placement.conversation_id,
        turn_id,
        NewMessage::plain(Role::User, new.message, new.speaker),
    )?;
    let replaces = new.replaces.as_ref();
    message.attachments = files::link(write, &sight, message.id, replaces, new.attachments)?;
    if let Some(root) = root {
        message.versions = versions::note(write, placement.conversation_id, message.id, root)?;
    }
    let turn = Turn {
        id: turn_id,
        conversation_id: placement.conversation_id,
        state: TurnState::Queued,
        user_id: new.owner,
        tools: new.tools,
        readers: audience::readers(write.connection, placement.audience_id)?,
        audience_id: placement.audience_id,
        surface: placement.surface,
        channel: new.channel,
        account: new.account,
        external_name: placement.external_name,
        message_id: message.id,
        reply_id: None,
        error: None,
        said: None,
        created_at: write.now,
        started_at: None,
        model: None,
        wanted_model: new.model.clone().or(placement.model),
        usage: Usage::default(),
        instructions: instructions.clone().or(placement.instructions),
        schedule_id: new.schedule,
        is_composed: new.is_composed,
        is_household_only: new.viewer.is_household_only(),
    };
    write.insert(
        "turns",
        &[
            ("id", &turn.id),
            ("conversation_id", &turn.conversation_id),
            ("state", &turn.state),
            ("channel", &turn.channel),
            ("account", &turn.account),
            ("message_id", &turn.message_id),
            ("created_at", &turn.created_at),
            ("instructions", &instructions),
            ("user_id", &turn.user_id),
            ("tools", &turn.tools.as_ref().map(|tools| tools.join(","))),
            ("wanted_model", &new.model),
            ("schedule_id", &new.schedule),
            ("is_composed", &new.is_composed),
            ("household_only", &turn.is_household_only),
        ],
    )?;
    if !steps.is_empty() {
        has_history = true;
        insert_steps(write, turn.id, steps, false)?;
        conversations::note_outside_text(write, turn.conversation_id)?;
    }
    for key in new.idempotency.iter().chain(&request) {
        idempotency::note(write, key, turn.id)?;
    }
    Ok(Begun::New {
        turn,
        message,
        has_history,
    })
}

/// The conversation of a new message, created if the target says so; and whether earlier
/// messages were stored in it.
fn place(write: &Write<'_>, sight: &Sight<'_>, new: &NewTurn) -> Outcome<(Placement, bool)> {
    let created_for = |message: &str, account: Option<&str>, name: Option<&str>, sender| {
        conversations::create(
            write,
            NewConversation {
                channel: &new.channel,
                message,
                account,
                name,
                sender_account: sender,
                owner: new.owner,
                audience_id: audience_id(write, new)?,
                surface: new.surface,
            },
        )
    };
    let created = |message: &str, account, name| created_for(message, account, name, None);
    let placement = match &new.target {
        Target::Existing(id) => {
            let known = |row: &Row<'_>| known(row, &Belongs::from_row(row)?);
            sight.find_seen("conversation", EXISTING, *id, known)?.0
        }
        Target::New => created(&new.message, new.account.as_deref(), None)?,
        Target::ReplayedHistory(replayed_history) => {
            let create = |message: &str| created(message, None, None);
            let following = Following {
                message: &new.message,
                channel: &new.channel,
                owner: new.owner,
                speaker: new.speaker.as_deref(),
            };
            return replayed_history::place(write, sight, replayed_history, &following, create);
        }
        Target::OfSender {
            account,
            sender,
            name,
        } => {
            let known = match name {
                Some(name) => {
                    let parameters = params![new.owner, account, name];
                    write.row(OF_SENDER, parameters, |row| {
                        known(row, &Belongs::from_row(row)?)
                    })?
                }
                None => None,
            };
            let placement = match known {
                Some(placement) => placement,
                None => created_for(&new.message, None, name.as_deref(), Some(account))?,
            };
            write.execute(
                "UPDATE conversations SET sender = ?2 WHERE id = ?1 AND sender IS NOT ?2",
                params![placement.conversation_id, sender],
            )?;
            placement
        }
        Target::Named { account, name } => {
            let known = write.row(NAMED, params![account, name], |row| {
                let thing = Belongs::from_row(row)?;
                Ok((known(row, &thing)?, thing))
            })?;
            match known {
                Some((_, thing)) if !sight.sees(&thing) => {
                    return Err(not_found("conversation", name));
                }
                Some((placement, _)) => placement,
                None => created(&new.message, Some(account), Some(name))?,
            }
        }
    };
    Ok((placement, false))
}

/// A conversation that exists.
fn known(row: &Row<'_>, thing: &Belongs) -> Outcome<Placement> {
    Ok(from_row!(row => Placement {
        external_name, surface, model, instructions;
        conversation_id: row.get("id")?,
        audience_id: thing.audience_id
    }))
}

const EXISTING: &str = select_seen!(
    "c",
    "id, external_name, surface, model, instructions FROM conversations c WHERE id = ?"
);

const NAMED: &str = select_seen!(
    "c",
    "id, external_name, surface, model, instructions \
     FROM conversations c WHERE account = ?1 AND external_name = ?2"
);

const OF_SENDER: &str = select_seen!(
    "c",
    "id, external_name, surface, model, instructions \
     FROM conversations c WHERE owner_id = ?1 AND sender_account = ?2 AND external_name = ?3"
);

/// The audience of a new conversation.
fn audience_id(write: &Write<'_>, new: &NewTurn) -> Outcome<AudienceId> {
    if new.viewer.is_household_only() {
        return Ok(AudienceId::HOUSEHOLD);
    }
    let unknown = match new.owner {
        Some(_) => UnknownName::Refuse,
        None => UnknownName::Skip,
    };
    intern(write, new.owner, &new.audience, unknown)
}
