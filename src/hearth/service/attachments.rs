//! Files that messages carry: uploads, in parts or as one stream, and reading.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Service;
use agent::model::FileKind;
use agent::tools::MOST_PDF_BYTES;
use base::error::{Error, Result};
use base::ids::AttachmentId;
use base::language::Said;
use config::Limits;
use net::cancel::Cancel;
use protocol::attachment::encode;
use protocol::command::{GetAttachment, PutAttachment, PutAttachmentPart};
use protocol::record::Attachment;
use store::{Identity, NewUpload, Upload, UploadLimits, UserRole, Viewer};

/// Most files that arrive over HTTP at the same time. Each holds a piece in memory.
const MOST_ARRIVING: usize = 16;
/// How long the reading of a PDF may take for a person.
const PDF_TIME: Duration = Duration::from_secs(10);
/// Most bytes of its text that are shown.
const SHOWN_TEXT: usize = 256 * 1024;

/// What the settings say of attachments.
pub fn limits(limits: &Limits) -> UploadLimits {
    UploadLimits {
        bytes: limits.attachment_bytes,
        total_bytes: limits.attachments_total_bytes,
        time: Duration::from_secs(limits.attachment_seconds),
    }
}

/// A file that arrives as a stream. What is not finished is deleted.
pub struct ArrivingFile<'a> {
    service: &'a Service,
    viewer: Viewer,
    id: AttachmentId,
    received: u64,
    is_finished: bool,
}

impl ArrivingFile<'_> {
    /// Stores the next piece, of at most [`store::PIECE_BYTES`].
    ///
    /// # Errors
    /// Those of [`store::Store::add_to_upload`].
    pub fn add(&mut self, piece: Vec<u8>) -> Result<()> {
        let start = self.received;
        let upload = self
            .service
            .add_to_upload(&self.viewer, self.id, start, piece)?;
        self.received = upload.received;
        Ok(())
    }

    /// Makes an attachment of what has arrived.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn finish(mut self) -> Result<Attachment> {
        let store = &self.service.store;
        let attachment = store.finish_upload(&self.viewer, self.id)?;
        self.is_finished = true;
        Ok(attachment)
    }
}

impl Drop for ArrivingFile<'_> {
    fn drop(&mut self) {
        self.service.arriving_files.fetch_sub(1, Ordering::SeqCst);
        if !self.is_finished {
            self.service.store.discard_upload(self.id);
        }
    }
}

impl Service {
    /// Announces a file of at most `bytes` that arrives as a stream.
    ///
    /// # Errors
    /// `unauthorized` below the role `user`; `server_error` 503 when too many arrive at
    /// once; those of [`store::Store::begin_upload`].
    pub fn receive_file(
        &self,
        identity: &Identity,
        name: String,
        declared_type: Option<String>,
        bytes: u64,
    ) -> Result<ArrivingFile<'_>> {
        check_may_upload(identity)?;
        let has_room =
            self.arriving_files
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |arriving| {
                    (arriving < MOST_ARRIVING).then_some(arriving + 1)
                });
        if has_room.is_err() {
            let most = MOST_ARRIVING.to_string();
            let busy = Said::of("error.uploads_busy", &[("most", &most)]);
            return Err(Error::overloaded(busy, 5));
        }
        let begun = self.begin_upload(identity, name, declared_type, bytes);
        let id = begun.inspect_err(|_| {
            self.arriving_files.fetch_sub(1, Ordering::SeqCst);
        })?;
        Ok(ArrivingFile {
            service: self,
            viewer: identity.viewer(),
            id,
            received: 0,
            is_finished: false,
        })
    }

    fn begin_upload(
        &self,
        identity: &Identity,
        name: String,
        declared_type: Option<String>,
        bytes: u64,
    ) -> Result<AttachmentId> {
        let new = NewUpload {
            viewer: identity.viewer(),
            name,
            declared_type,
            bytes,
        };
        let limits = limits(&self.settings.current().limits);
        self.store.begin_upload(new, limits)
    }

    fn add_to_upload(
        &self,
        viewer: &Viewer,
        id: AttachmentId,
        start: u64,
        data: Vec<u8>,
    ) -> Result<Upload> {
        let limits = limits(&self.settings.current().limits);
        self.store.add_to_upload(viewer, id, start, data, limits)
    }

    /// `put_attachment`.
    pub(super) fn put_attachment(&self, identity: &Identity, put: PutAttachment) -> Result<Value> {
        let id = self.begin_upload(identity, put.name, put.media_type, put.bytes)?;
        if put.bytes == 0 {
            self.store.finish_upload(&identity.viewer(), id)?;
        }
        Ok(json!({ "attachment_id": id }))
    }

    /// `put_attachment_part`. The last part finishes the attachment.
    pub(super) fn put_attachment_part(
        &self,
        viewer: &Viewer,
        put: PutAttachmentPart,
    ) -> Result<Value> {
        let id = put.attachment_id;
        let upload = self.add_to_upload(viewer, id, put.offset, put.data)?;
        let is_complete = upload.received == upload.bytes;
        let mut view = if is_complete {
            json!(self.store.finish_upload(viewer, id)?)
        } else {
            json!({ "attachment_id": id, "bytes": upload.bytes })
        };
        view["received"] = json!(upload.received);
        view["complete"] = json!(is_complete);
        Ok(view)
    }

    /// `get_attachment`.
    pub(super) fn get_attachment(&self, viewer: &Viewer, get: &GetAttachment) -> Result<Value> {
        let id = get.attachment_id;
        let (attachment, part) = self
            .store
            .snapshot(viewer)?
            .attachment_part(id, get.offset, get.length)?;
        let mut view = json!(attachment);
        view["offset"] = json!(get.offset);
        view["data"] = json!(encode(&part));
        Ok(view)
    }

    /// The text of a PDF.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` for what is no PDF, and with why one has no text.
    pub(super) fn read_attachment(&self, viewer: &Viewer, id: AttachmentId) -> Result<Value> {
        let file = self.store.snapshot(viewer)?.attachment(id)?;
        if FileKind::of(&file.media_type, &file.name) != FileKind::Document {
            return Err(Error::refused("error.no_pdf", &[("name", &file.name)]));
        }
        let seen = self.store.snapshot(viewer)?;
        let (_, bytes) = seen.attachment_part(id, 0, MOST_PDF_BYTES + 1)?;
        drop(seen);
        let read = self.assistant().pdfs.of(
            id,
            || Some(bytes),
            &self.data_dir,
            Instant::now() + PDF_TIME,
            &Cancel::default(),
        );
        let mut text =
            read.map_err(|why| Error::invalid_request(format!("{:?} {why}", file.name)))?;
        let end = text.floor_char_boundary(SHOWN_TEXT);
        let is_cut = end < text.len();
        text.truncate(end);
        Ok(json!({ "text": text, "is_cut": is_cut }))
    }
}

/// Who may send messages may attach files to them.
fn check_may_upload(identity: &Identity) -> Result<()> {
    if identity.role >= UserRole::User {
        return Ok(());
    }
    let (needed, own) = (UserRole::User.as_str(), identity.role.as_str());
    let fields = [("needed", needed), ("own", own)];
    Err(Error::unauthorized(Said::of(
        "error.role_for_files",
        &fields,
    )))
}
