//! Storing attachments: uploads, and what messages carry.

use std::time::Duration;

use rusqlite::params;

use super::content::{BEGINNING, TextCheck, by_beginning};
use super::{
    PIECE_BYTES, Replaced, append, attachment_from_row, check_space, copy, count, find, name, part,
};
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, not_found};
use crate::sight::viewer::{Sight, Viewer};
use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use base::ids::{AttachmentId, MessageId, UserId};
use base::language::Said;
use protocol::record::Attachment;

/// How long an attachment is kept that no message carries.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);
/// Most attachments of one person that no message carries.
const MOST_UNUSED: usize = 256;
/// Most files of one person that are arriving: half of those that arrive over HTTP.
const MOST_ARRIVING: usize = 8;
/// Longest type that is kept as a hint, in characters.
const TYPE_CHARACTERS: usize = 100;

/// The condition for the upload ?1 of the person ?2; with ?3, only if a token that sees
/// only what is the household's uploaded it.
macro_rules! own {
    () => {
        "id = ?1 AND user_id = ?2 AND household_only >= ?3"
    };
}

/// A file that is about to arrive.
#[derive(Clone, Debug)]
pub struct NewUpload {
    /// Whose it is.
    pub viewer: Viewer,
    /// What its sender calls it.
    pub name: String,
    /// What its sender says that it is: a hint.
    pub declared_type: Option<String>,
    /// Its size, or what it may need if that is not known.
    pub bytes: u64,
}

/// What attachments may take.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// Most bytes of one.
    pub bytes: u64,
    /// Most bytes of all together.
    pub total_bytes: u64,
    /// How long one may take to arrive.
    pub time: Duration,
}

/// How much of a file has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Bytes from its beginning: where the next piece begins.
    pub received: u64,
    /// As announced.
    pub bytes: u64,
}

/// The attachments of a message that is about to be stored: often none.
#[derive(Clone, Debug)]
pub enum NewAttachments {
    /// Uploads of the sender that no message carries yet.
    Uploaded(Vec<AttachmentId>),
    /// Files that came with the message.
    Included(Vec<IncludedFile>, UploadLimits),
}

impl Default for NewAttachments {
    fn default() -> NewAttachments {
        NewAttachments::Uploaded(Vec::new())
    }
}

/// A file that came with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncludedFile {
    /// What its sender calls it.
    pub name: String,
    /// What its sender says that it is: a hint.
    pub declared_type: Option<String>,
    /// All of it.
    pub data: Vec<u8>,
}

impl IncludedFile {
    /// What it is, by its content.
    pub fn media_type(&self) -> &'static str {
        let beginning = &self.data[..self.data.len().min(BEGINNING)];
        by_beginning(beginning, self.declared_type.as_deref()).unwrap_or_else(|| {
            let mut check = TextCheck::default();
            check.next(&self.data);
            check.media_type()
        })
    }
}

/// Its row while a file arrives.
struct Arriving {
    bytes: u64,
    received: u64,
    expires_at: Timestamp,
    is_complete: bool,
}

impl Store {
    /// Announces a file. It takes space only as it arrives.
    ///
    /// # Errors
    /// `invalid_request` 413 for one that is too large; `rate_limited` with too many
    /// that are arriving or that no message carries; `server_error` 507 without space.
    pub fn begin_upload(&self, new: NewUpload, limits: UploadLimits) -> Result<AttachmentId> {
        check_size(new.bytes, &limits)?;
        self.write(move |write| {
            check_number(write, new.viewer.user_id(), &limits)?;
            check_space(write, new.bytes, &limits)?;
            let id: AttachmentId = write.id();
            write.insert(
                "attachments",
                &[
                    ("id", &id),
                    ("name", &name::cleaned(&new.name)),
                    ("declared_type", &new.declared_type.as_deref().map(hint)),
                    ("bytes", &new.bytes),
                    ("user_id", &new.viewer.user_id()),
                    ("expires_at", &write.now.plus(limits.time)),
                    ("household_only", &new.viewer.is_household_only()),
                ],
            )?;
            Ok(id)
        })
    }

    /// Adds a piece of at most [`PIECE_BYTES`] to an upload of the viewer. What has
    /// arrived before is not stored again.
    ///
    /// # Errors
    /// `not_found`, also when its time is over; `invalid_request` for what does not
    /// follow what has arrived, differs from it, or is more than was announced;
    /// `server_error` 507 without space.
    pub fn add_to_upload(
        &self,
        viewer: &Viewer,
        id: AttachmentId,
        start: u64,
        data: Vec<u8>,
        limits: UploadLimits,
    ) -> Result<Upload> {
        let viewer = viewer.clone();
        self.write(move |write| add(write, &viewer, id, start, &data, &limits))
    }

    /// Makes an attachment of what has arrived of an upload of the viewer.
    ///
    /// # Errors
    /// `not_found`.
    pub fn finish_upload(&self, viewer: &Viewer, id: AttachmentId) -> Result<Attachment> {
        let declared: Option<String> = self.read(|connection| {
            let declared = connection.value(
                concat!("SELECT declared_type FROM attachments WHERE ", own!()),
                params![id, viewer.user_id(), viewer.is_household_only()],
            )?;
            declared.ok_or_else(|| not_found("attachment", id))
        })?;
        let media_type = self.media_type(id, declared.as_deref())?;
        let (user, is_narrow) = (viewer.user_id(), viewer.is_household_only());
        self.write(move |write| {
            write.execute(
                concat!(
                    "UPDATE attachments SET media_type = ?4, bytes = received, expires_at = ?5 \
                     WHERE media_type IS NULL AND ",
                    own!()
                ),
                params![id, user, is_narrow, media_type, write.now.plus(UNUSED)],
            )?;
            let attachment = write.row(
                concat!("SELECT * FROM attachments WHERE ", own!()),
                params![id, user, is_narrow],
                attachment_from_row,
            )?;
            attachment.ok_or_else(|| not_found("attachment", id))
        })
    }

    /// Deletes an upload that will not be finished.
    pub fn discard_upload(&self, id: AttachmentId) {
        self.post(move |write| {
            write.run(
                "DELETE FROM attachments WHERE id = ? AND media_type IS NULL",
                params![id],
            )
        });
    }

    /// The type of what has arrived. Reads text to its end, piece by piece.
    pub(super) fn media_type(
        &self,
        id: AttachmentId,
        declared: Option<&str>,
    ) -> Result<&'static str> {
        let mut check = TextCheck::default();
        let mut start = 0;
        loop {
            let piece = self.read(|connection| part(connection, id, start, PIECE_BYTES))?;
            if start == 0 {
                let beginning = &piece[..piece.len().min(BEGINNING)];
                if let Some(known) = by_beginning(beginning, declared) {
                    return Ok(known);
                }
            }
            if piece.is_empty() || !check.next(&piece) {
                return Ok(check.media_type());
            }
            start += piece.len() as u64;
        }
    }
}

fn check_number(write: &Write<'_>, user: Option<UserId>, limits: &UploadLimits) -> Outcome<()> {
    let counted = write.row(
        "SELECT count(*), ifnull(sum(media_type IS NULL AND expires_at > ?2), 0)
         FROM attachments WHERE user_id = ?1",
        params![user, write.now],
        |row| Ok(row.try_into()?),
    )?;
    let (unused, arriving): (usize, usize) = counted.unwrap_or_default();
    let seconds = limits.time.as_secs();
    let (why, wait) = if arriving >= MOST_ARRIVING {
        let (most, seconds) = (MOST_ARRIVING.to_string(), seconds.to_string());
        let fields = [("most", &*most), ("seconds", &seconds)];
        (Said::of("error.files_arriving", &fields), 5)
    } else if unused >= MOST_UNUSED {
        let most = MOST_UNUSED.to_string();
        (Said::of("error.files_unused", &[("most", &most)]), 3_600)
    } else {
        return Ok(());
    };
    Err(Error::rate_limited(why, wait).into())
}

fn check_size(bytes: u64, limits: &UploadLimits) -> Result<()> {
    if bytes <= limits.bytes {
        return Ok(());
    }
    let (bytes, most) = (bytes.to_string(), limits.bytes.to_string());
    let fields = [("bytes", &*bytes), ("most", &*most)];
    Err(Error::worded(Code::InvalidRequest, "error.file_large", &fields).with_status(413))
}

fn hint(declared: &str) -> String {
    declared.chars().take(TYPE_CHARACTERS).collect()
}

fn add(
    write: &Write<'_>,
    viewer: &Viewer,
    id: AttachmentId,
    start: u64,
    data: &[u8],
    limits: &UploadLimits,
) -> Outcome<Upload> {
    let found = write.row(
        concat!(
            "SELECT bytes, received, expires_at, media_type IS NOT NULL FROM attachments WHERE ",
            own!()
        ),
        params![id, viewer.user_id(), viewer.is_household_only()],
        |row| {
            Ok(Arriving {
                bytes: row.get(0)?,
                received: row.get(1)?,
                expires_at: row.get(2)?,
                is_complete: row.get(3)?,
            })
        },
    )?;
    let upload = found.ok_or_else(|| not_found("attachment", id))?;
    if upload.expires_at <= write.now {
        let over = Said::of("error.file_over", &[("id", &id.to_string())]);
        return Err(Error::not_found(over).into());
    }
    let refused = |why: String| Err(Error::invalid_request(why).into());
    let (bytes, received) = (upload.bytes, upload.received);
    let Some(repeated) = received.checked_sub(start) else {
        return refused(format!(
            "\"offset\" must be at most {received}: that is how much has arrived"
        ));
    };
    let repeated = usize::try_from(repeated)
        .unwrap_or(usize::MAX)
        .min(data.len());
    let (repeated, new) = data.split_at(repeated);
    if part(write.connection, id, start, repeated.len())? != repeated {
        return refused("this differs from what has arrived before for the same part".to_owned());
    }
    if new.len() as u64 > bytes - received || (upload.is_complete && !new.is_empty()) {
        return refused(format!(
            "the file was announced with {bytes} bytes; this is more"
        ));
    }
    if !new.is_empty() {
        check_space(write, new.len() as u64, limits)?;
        append(write, id, received, new)?;
    }
    Ok(Upload {
        received: received + new.len() as u64,
        bytes,
    })
}

/// Gives a message its attachments.
///
/// # Errors
/// `not_found` for one that is somebody else's, or that another message carries;
/// `invalid_request` for one that has not arrived whole.
pub(crate) fn link(
    write: &Write<'_>,
    sight: &Sight<'_>,
    message: MessageId,
    replaces: Option<&Replaced>,
    new: NewAttachments,
) -> Outcome<Vec<Attachment>> {
    let attachments = match new {
        NewAttachments::Included(files, _) if files.is_empty() => return Ok(Vec::new()),
        NewAttachments::Uploaded(ids) if ids.is_empty() => return Ok(Vec::new()),
        NewAttachments::Uploaded(ids) => ids
            .into_iter()
            .map(|id| {
                let copy =
                    |earlier: &Replaced| copy(write, message, earlier.message, id, &earlier.limits);
                match replaces.map(copy).transpose()?.flatten() {
                    Some(copy) => Ok(copy),
                    None => take(write, sight, message, id),
                }
            })
            .collect::<Outcome<Vec<Attachment>>>()?,
        NewAttachments::Included(files, limits) => {
            let bytes = files.iter().map(|file| file.data.len() as u64).sum();
            check_space(write, bytes, &limits)?;
            files
                .into_iter()
                .map(|file| store_file(write, Some(message), &file, &limits))
                .collect::<Outcome<Vec<Attachment>>>()?
        }
    };
    count(write, message, attachments.len())?;
    Ok(attachments)
}

fn take(
    write: &Write<'_>,
    sight: &Sight<'_>,
    message: MessageId,
    id: AttachmentId,
) -> Outcome<Attachment> {
    let (user, is_narrow) = (sight.viewer.user_id(), sight.viewer.is_household_only());
    let taken = write.row(
        concat!(
            "UPDATE attachments SET message_id = ?4, user_id = NULL, expires_at = NULL \
             WHERE media_type IS NOT NULL AND ",
            own!(),
            " RETURNING *"
        ),
        params![id, user, is_narrow, message],
        attachment_from_row,
    )?;
    if let Some(taken) = taken {
        return Ok(taken);
    }
    let own: Option<(i64, i64)> = write.row(
        concat!("SELECT received, bytes FROM attachments WHERE ", own!()),
        params![id, user, is_narrow],
        |row| Ok(row.try_into()?),
    )?;
    if let Some((received, bytes)) = own {
        return Err(Error::invalid_request(format!(
            "{id} is not complete: {received} of {bytes} bytes have arrived"
        ))
        .into());
    }
    // Who does not see it learns nothing of it.
    find(sight, id)?;
    let sent = Said::of("error.file_sent", &[("id", &id.to_string())]);
    Err(Error::not_found(sent).into())
}

/// Stores a file whole; without a message, the caller says whose it is.
pub(super) fn store_file(
    write: &Write<'_>,
    message: Option<MessageId>,
    file: &IncludedFile,
    limits: &UploadLimits,
) -> Outcome<Attachment> {
    check_size(file.data.len() as u64, limits)?;
    let attachment = Attachment {
        attachment_id: write.id(),
        name: name::cleaned(&file.name),
        media_type: file.media_type().to_owned(),
        bytes: file.data.len() as u64,
    };
    write.insert(
        "attachments",
        &[
            ("id", &attachment.attachment_id),
            ("name", &attachment.name),
            ("media_type", &attachment.media_type),
            ("declared_type", &file.declared_type.as_deref().map(hint)),
            ("bytes", &attachment.bytes),
            ("message_id", &message),
        ],
    )?;
    for (number, piece) in file.data.chunks(PIECE_BYTES).enumerate() {
        let start = (number * PIECE_BYTES) as u64;
        append(write, attachment.attachment_id, start, piece)?;
    }
    Ok(attachment)
}
