//! Whether those who asked still see the conversation in which they did.

use rusqlite::{Connection, params};

use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::sight::audience;
use crate::sight::viewer::{Belongs, select_seen};
use base::error::Error;
use base::ids::{AudienceId, ConversationId, TurnId, UserId};
use base::language::Said;
use base::people::UserRole;

/// Whether whoever asked in a turn sees its conversation. Of a turn that nobody asked,
/// or somebody who was removed since, nobody gets the answer but its readers.
pub(crate) fn still_sees(connection: &Connection, turn: TurnId) -> Outcome<bool> {
    let asked = connection.row(ASKED, params![turn], |row| {
        let user: Option<UserId> = row.get("user_id")?;
        let role: Option<UserRole> = row.get("role")?;
        let is_caller: bool = row.get("is_caller")?;
        Ok((Belongs::from_row(row)?, user.zip(role), is_caller))
    })?;
    Ok(match asked {
        Some((thing, _, true)) => {
            thing.owner_id.is_none() || thing.audience_id == AudienceId::HOUSEHOLD
        }
        Some((thing, Some((user, role)), false)) => {
            audience::readers(connection, thing.audience_id)?.include(user, role)
        }
        Some((_, None, false)) | None => true,
    })
}

/// Checks that a turn may go on, and its answer be stored.
///
/// # Errors
/// `not_found` where whoever asked does not see the conversation any longer.
pub(crate) fn check(
    connection: &Connection,
    turn: TurnId,
    conversation: ConversationId,
) -> Outcome<()> {
    match lost(connection, turn, conversation)? {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// What whoever asked is answered instead of a reply, if they do not see the conversation
/// any longer: the same as for one that never was.
pub(crate) fn lost(
    connection: &Connection,
    turn: TurnId,
    conversation: ConversationId,
) -> Outcome<Option<Error>> {
    Ok(match still_sees(connection, turn)? {
        true => None,
        false => Some(unseen(conversation)),
    })
}

/// What is said of a conversation that is not seen.
pub(crate) fn unseen(id: ConversationId) -> Error {
    let fields = [("what", "conversation"), ("id", &*id.to_string())];
    Error::not_found(Said::of("error.none", &fields))
}

/// A webhook's turn is its account's, whoever its caller says that speaks.
pub(crate) const ASKED: &str = select_seen!(
    "c",
    "t.user_id, u.role, t.channel LIKE 'webhook:%' AS is_caller FROM turns t \
     CROSS JOIN conversations c ON c.id = t.conversation_id \
     LEFT JOIN users u ON u.id = t.user_id WHERE t.id = ?"
);

/// Checks that the person who asks, if it is one, is still there and no guest.
///
/// # Errors
/// `unauthorized`.
pub(crate) fn check_causes(connection: &Connection, user: Option<UserId>) -> Outcome<()> {
    let sql = "SELECT 1 FROM users WHERE id = ?1 AND role <> ?2";
    let causes = |id| connection.exists(sql, params![id, UserRole::Viewer]);
    match user.map(causes).transpose()? {
        Some(false) => Err(Error::unauthorized(Said::of("error.asker_gone", &[])).into()),
        None | Some(true) => Ok(()),
    }
}
