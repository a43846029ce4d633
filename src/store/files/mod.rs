//! Attachments: files that messages carry, stored in pieces.
//!
//! An upload is seen by its uploader alone, and with a token that sees only what is the
//! household's only if such a token uploaded it. Its pieces are commits of their own, so
//! that a large file fills no memory and delays no other write;
//! [`Store::finish_upload`] makes an attachment of it. The commit of a message links
//! it: from then on it is seen as its conversation is, and deleted with it. What no
//! message has carried for a day is deleted.
//!
//! Deleting removes the row at once, and the pieces later, some at a time
//! ([`Store::purge`]).
//!
//! What tools bring belongs to their turn, and then to its reply.

mod content;
pub(crate) mod imported;
mod name;
mod upload;

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::meta;
use crate::engine::query::{Statements, not_found};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Belongs, Sight};
use base::error::{Code, Error, Result};
use base::ids::{AttachmentId, AudienceId, ConversationId, MessageId, TurnId, UserId};
use protocol::record::Attachment;

pub(crate) use upload::link;
use upload::store_file;
pub use upload::{IncludedFile, NewAttachments, NewUpload, Upload, UploadLimits};

/// Most bytes of a piece, in a row and in what a client is sent at once.
pub const PIECE_BYTES: usize = protocol::attachment::PART_BYTES;

/// Pieces that are deleted at once.
const DELETED_AT_ONCE: usize = 8;

/// Most files of one turn that are found again: no turn has so many rounds.
const MOST_BROUGHT: i64 = 10_000;

impl Snapshot<'_> {
    /// An attachment that the viewer sees: one of a conversation, or their own that
    /// no message carries yet.
    ///
    /// # Errors
    /// `not_found`, also while it has not arrived whole.
    pub fn attachment(&self, id: AttachmentId) -> Result<Attachment> {
        Ok(find(&self.sight, id)?)
    }

    /// The same, with at most `most` of its bytes from `start` on: fewer at its end,
    /// and none after it.
    ///
    /// # Errors
    /// `not_found`.
    pub fn attachment_part(
        &self,
        id: AttachmentId,
        start: u64,
        most: usize,
    ) -> Result<(Attachment, Vec<u8>)> {
        let attachment = find(&self.sight, id)?;
        Ok(with_part(self.connection(), attachment, start, most)?)
    }

    /// A file of a message of this conversation, with at most `most` of its first bytes.
    ///
    /// # Errors
    /// `not_found`, also for one of another conversation.
    pub fn attachment_in(
        &self,
        conversation: ConversationId,
        id: AttachmentId,
        most: usize,
    ) -> Result<(Attachment, Vec<u8>)> {
        let found = self.row(
            IN_CONVERSATION,
            params![id, conversation],
            attachment_from_row,
        )?;
        let attachment = found.ok_or_else(|| not_found("attachment", id))?;
        Ok(with_part(self.connection(), attachment, 0, most)?)
    }
}

impl Store {
    /// Deletes the uploads that have expired, and some of the pieces of what was
    /// deleted. Returns whether there may be more.
    pub(crate) fn purge_attachments(&self) -> Result<bool> {
        self.write(|write| {
            let expired = write.execute(
                "DELETE FROM attachments WHERE id IN (
                     SELECT id FROM attachments WHERE expires_at <= ?1 LIMIT 100)",
                params![write.now],
            )?;
            let deleted: Option<AttachmentId> =
                write.value("SELECT id FROM deleted_attachments LIMIT 1", params![])?;
            let Some(id) = deleted else {
                return Ok(expired > 0);
            };
            let pieces = write.execute(
                "DELETE FROM attachment_pieces WHERE id IN (
                     SELECT id FROM attachment_pieces WHERE attachment_id = ?1 LIMIT ?2)",
                params![id, DELETED_AT_ONCE],
            )?;
            if pieces < DELETED_AT_ONCE {
                write.execute("DELETE FROM deleted_attachments WHERE id = ?", params![id])?;
            }
            Ok(true)
        })
    }
}

/// A message that is written anew; its files may be used again.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// The message.
    pub message: MessageId,
    /// What its files may take once more.
    pub limits: UploadLimits,
}

/// Finds one that has arrived whole.
fn find(sight: &Sight<'_>, id: AttachmentId) -> Outcome<Attachment> {
    let (attachment, is_seen) = sight.find("attachment", FIND, id, |row| {
        let is_seen = is_seen(sight, row)?;
        Ok((attachment_from_row(row)?, is_seen))
    })?;
    match is_seen {
        true => Ok(attachment),
        false => Err(not_found("attachment", id)),
    }
}

fn is_seen(sight: &Sight<'_>, row: &Row<'_>) -> Outcome<bool> {
    let Some(audience_id) = row.get::<_, Option<AudienceId>>("audience_id")? else {
        let uploader: Option<UserId> = row.get("user_id")?;
        let is_of_household: bool = row.get("household_only")?;
        let is_narrowed_out = sight.viewer.is_household_only() && !is_of_household;
        return Ok(uploader.is_some() && uploader == sight.viewer.user_id() && !is_narrowed_out);
    };
    Ok(sight.sees(&Belongs {
        audience_id,
        owner_id: row.get("owner_id")?,
        account: row.get("account")?,
    }))
}

pub(crate) const FIND: &str = "SELECT a.id, a.name, a.media_type, a.bytes, a.user_id, \
         a.household_only, c.audience_id, c.owner_id, c.account \
     FROM attachments a \
     LEFT JOIN messages m ON m.id = a.message_id \
     LEFT JOIN turns t ON t.id = a.turn_id \
     LEFT JOIN conversations c ON c.id = ifnull(m.conversation_id, t.conversation_id) \
     WHERE a.id = ? AND a.media_type IS NOT NULL";

pub(crate) const IN_CONVERSATION: &str = "SELECT a.id, a.name, a.media_type, a.bytes \
     FROM attachments a \
     LEFT JOIN messages m ON m.id = a.message_id \
     LEFT JOIN turns t ON t.id = a.turn_id \
     WHERE a.id = ?1 AND ?2 IN (m.conversation_id, t.conversation_id) \
         AND a.media_type IS NOT NULL";

pub(crate) const OF_MESSAGE: &str = "SELECT id, name, media_type, bytes FROM attachments \
     WHERE message_id = ? AND media_type IS NOT NULL ORDER BY id";

pub(crate) const PIECE_AT: &str = "SELECT start, data FROM attachment_pieces \
     WHERE attachment_id = ?1 AND start <= ?2 ORDER BY start DESC LIMIT 1";

/// The attachments of a message whose row says that it has some.
pub(crate) fn of_message(connection: &Connection, id: MessageId) -> Outcome<Vec<Attachment>> {
    connection.rows(OF_MESSAGE, params![id], attachment_from_row)
}

fn attachment_from_row(row: &Row<'_>) -> Outcome<Attachment> {
    Ok(Attachment {
        attachment_id: row.get("id")?,
        name: row.get("name")?,
        media_type: row.get("media_type")?,
        bytes: row.get("bytes")?,
    })
}

/// What is stored from `start` on, at most `most` bytes.
fn part(connection: &Connection, id: AttachmentId, start: u64, most: usize) -> Outcome<Vec<u8>> {
    let mut found = Vec::new();
    while found.len() < most {
        let place = start + found.len() as u64;
        let added = connection.row(PIECE_AT, params![id, place], |row| {
            let skipped = place - row.get::<_, u64>("start")?;
            let data = row.get_ref("data")?.as_blob()?;
            let rest = data.get(skipped as usize..).unwrap_or_default();
            let added = rest.len().min(most - found.len());
            found.extend_from_slice(&rest[..added]);
            Ok(added)
        })?;
        if added.unwrap_or(0) == 0 {
            break;
        }
    }
    Ok(found)
}

/// An attachment with that part of it.
fn with_part(
    connection: &Connection,
    attachment: Attachment,
    start: u64,
    most: usize,
) -> Outcome<(Attachment, Vec<u8>)> {
    let id = attachment.attachment_id;
    let start = start.min(attachment.bytes);
    let part = part(connection, id, start, most)?;
    let expected = (attachment.bytes - start).min(most as u64);
    match part.len() as u64 == expected {
        true => Ok((attachment, part)),
        // It was deleted between the two statements.
        false => Err(not_found("attachment", id)),
    }
}

/// Stores a piece that follows what has arrived.
fn append(write: &Write<'_>, id: AttachmentId, start: u64, data: &[u8]) -> Outcome<()> {
    write.execute(
        "INSERT INTO attachment_pieces (attachment_id, start, data) VALUES (?1, ?2, ?3)",
        params![id, start, data],
    )?;
    write.run(
        "UPDATE attachments SET received = received + ?2 WHERE id = ?1",
        params![id, data.len()],
    )
}

/// Copies a file for a message, if `earlier` carries it.
fn copy(
    write: &Write<'_>,
    message: MessageId,
    earlier: MessageId,
    id: AttachmentId,
    limits: &UploadLimits,
) -> Outcome<Option<Attachment>> {
    let found = write.row(
        "SELECT * FROM attachments WHERE id = ?1 AND message_id = ?2",
        params![id, earlier],
        attachment_from_row,
    )?;
    let Some(mut attachment) = found else {
        return Ok(None);
    };
    check_space(write, attachment.bytes, limits)?;
    attachment.attachment_id = write.id();
    write.execute(
        "INSERT INTO attachments (id, name, media_type, declared_type, bytes, message_id)
         SELECT ?2, name, media_type, declared_type, bytes, ?3 FROM attachments WHERE id = ?1",
        params![id, attachment.attachment_id, message],
    )?;
    write.execute(
        "INSERT INTO attachment_pieces (attachment_id, start, data)
         SELECT ?2, start, data FROM attachment_pieces WHERE attachment_id = ?1",
        params![id, attachment.attachment_id],
    )?;
    Ok(Some(attachment))
}

/// Notes that a message has so many more attachments.
fn count(write: &Write<'_>, message: MessageId, more: usize) -> Outcome<()> {
    write.run(
        "UPDATE messages SET attachment_count = attachment_count + ?2 WHERE id = ?1",
        params![message, more],
    )
}

/// Keeps what a tool brought in a turn.
pub(crate) fn insert_brought(
    write: &Write<'_>,
    turn: TurnId,
    files: Vec<IncludedFile>,
    limits: &UploadLimits,
) -> Outcome<Vec<Attachment>> {
    let bytes = files.iter().map(|file| file.data.len() as u64).sum();
    check_space(write, bytes, limits)?;
    let keep = |file: IncludedFile| {
        let kept = store_file(write, None, &file, limits)?;
        write.execute(
            "UPDATE attachments SET turn_id = ?2 WHERE id = ?1",
            params![kept.attachment_id, turn],
        )?;
        Ok(kept)
    };
    files.into_iter().map(keep).collect()
}

/// Gives the reply of a turn what its tools brought.
pub(crate) fn link_brought(
    write: &Write<'_>,
    turn: TurnId,
    reply: MessageId,
) -> Outcome<Vec<Attachment>> {
    let brought = write.rows(OF_TURN, params![turn, MOST_BROUGHT], attachment_from_row)?;
    if !brought.is_empty() {
        write.execute(
            "UPDATE attachments SET message_id = ?2 WHERE turn_id = ?1",
            params![turn, reply],
        )?;
        count(write, reply, brought.len())?;
    }
    Ok(brought)
}

/// Deletes what a tool brought that only the earlier readers of a conversation may see.
pub(crate) fn delete_brought(write: &Write<'_>, id: AttachmentId) -> Outcome<()> {
    write.execute(
        "UPDATE messages SET attachment_count = attachment_count - 1
         WHERE id = (SELECT message_id FROM attachments WHERE id = ?)",
        params![id],
    )?;
    write.run("DELETE FROM attachments WHERE id = ?", params![id])
}

pub(crate) const OF_TURN: &str =
    "SELECT id, name, media_type, bytes FROM attachments WHERE turn_id = ?1 ORDER BY id LIMIT ?2";

/// Finds attachments whose pieces do not make up the whole.
pub(crate) fn faults(connection: &Connection) -> Outcome<Vec<String>> {
    let faults = "SELECT id, bytes, has FROM (
             SELECT a.id, a.bytes, (SELECT ifnull(sum(length(data)), 0) FROM attachment_pieces
                 WHERE attachment_id = a.id) AS has
             FROM attachments a WHERE a.media_type IS NOT NULL)
         WHERE has <> bytes LIMIT 5";
    connection.rows(faults, params![], |row| {
        let (id, bytes, has): (AttachmentId, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("attachment {id} has {has} of its {bytes} bytes"))
    })
}

/// How many bytes all attachments have.
pub(crate) fn bytes_stored(connection: &Connection) -> Outcome<u64> {
    let bytes: Option<i64> = meta::get(connection, "attachment_bytes")?;
    Ok(bytes.unwrap_or_default().unsigned_abs())
}

/// Refuses what would need more space than all attachments may have.
fn check_space(write: &Write<'_>, more: u64, limits: &UploadLimits) -> Outcome<()> {
    if bytes_stored(write.connection)?.saturating_add(more) <= limits.total_bytes {
        return Ok(());
    }
    let most = limits.total_bytes.to_string();
    let full = Error::worded(Code::ServerError, "error.files_full", &[("most", &most)]);
    Err(full.with_status(507).with_retry_after(FULL_RETRY).into())
}

/// After how many seconds a client should try again whose file found no space: what
/// nobody uses is deleted every hour.
const FULL_RETRY: u32 = 3_600;
