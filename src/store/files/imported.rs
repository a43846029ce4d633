//! Attachments of imported messages.

use rusqlite::params;

use super::{PIECE_BYTES, UploadLimits, append, check_space, count, name};
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use base::error::Result;
use base::ids::{AttachmentId, MessageId};

/// A file that is being imported. Until [`AttachmentImport::finish`] its message has
/// it not.
pub struct AttachmentImport {
    store: Store,
    id: AttachmentId,
    message: MessageId,
    declared_type: Option<String>,
    received: u64,
}

/// Stores the row of a file that is about to come.
///
/// # Errors
/// `server_error` 507 without space.
pub(crate) fn begin(
    write: &Write<'_>,
    id: AttachmentId,
    message: MessageId,
    name: &str,
    declared_type: Option<String>,
    bytes: u64,
    limits: &UploadLimits,
) -> Outcome<()> {
    check_space(write, bytes, limits)?;
    write.run(
        "INSERT INTO attachments (id, name, declared_type, bytes, message_id)
         VALUES (?1, ?2, ?3, 0, ?4)",
        params![id, name::cleaned(name), declared_type, message],
    )
}

impl AttachmentImport {
    pub(crate) fn new(
        store: &Store,
        id: AttachmentId,
        message: MessageId,
        declared_type: Option<String>,
    ) -> AttachmentImport {
        AttachmentImport {
            store: store.clone(),
            id,
            message,
            declared_type,
            received: 0,
        }
    }

    /// Adds what follows, in a transaction for each [`PIECE_BYTES`].
    pub fn add(&mut self, data: &[u8]) -> Result<()> {
        for piece in data.chunks(PIECE_BYTES) {
            let (id, start, piece) = (self.id, self.received, piece.to_vec());
            self.received += piece.len() as u64;
            self.store
                .write(move |write| append(write, id, start, &piece))?;
        }
        Ok(())
    }

    /// Deletes what has come of it.
    pub fn discard(self) {
        self.store.discard_upload(self.id);
    }

    /// Gives the file to its message.
    pub fn finish(self) -> Result<()> {
        let AttachmentImport {
            store, id, message, ..
        } = self;
        let media_type = store.media_type(id, self.declared_type.as_deref())?;
        store.write(move |write| {
            write.execute(
                "UPDATE attachments SET media_type = ?2, bytes = received WHERE id = ?1",
                params![id, media_type],
            )?;
            count(write, message, 1)
        })
    }
}
