//! What a request shows of the files of its messages: images and documents in the form
//! of the dialect, text as text, and of everything else why it is not shown, so that the
//! model can say so.
//!
//! All images and documents of a request have a bound. Where a new one exceeds it, so many
//! of the oldest go that half of the bound is free again: what was sent stays as it
//! was for many turns, and providers can cache it. What goes follows from the messages
//! alone.

mod accused;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

use super::profile::Profile;
use super::server_capabilities::ServerCapabilities;
use crate::model::fence::{NOTE_TAG, OUTSIDE_TAG, fenced};
use crate::model::{ChatMessage, FileKind, ModelFile, ModelRequest};
use base::ids::AttachmentId;
use protocol::attachment::{encode, encode_to};
use serde_json::Value;

pub use accused::Guesses;

/// Stands before what tools brought, where that is a message of its own.
pub const FROM_RESULTS: &str = "(These came with the results above, in that order.)";

/// A file that a dialect sends in its own form.
pub enum Media {
    /// An image.
    Image {
        /// PNG, JPEG, GIF or WebP.
        media_type: String,
        /// As it is stored.
        bytes: Vec<u8>,
    },
    /// A PDF.
    Document {
        /// What its sender called it.
        name: String,
        /// As it is stored.
        bytes: Vec<u8>,
    },
}

impl Media {
    fn bytes(&self) -> &[u8] {
        match self {
            Media::Image { bytes, .. } | Media::Document { bytes, .. } => bytes,
        }
    }

    /// Its media type.
    pub fn media_type(&self) -> &str {
        match self {
            Media::Image { media_type, .. } => media_type,
            Media::Document { .. } => "application/pdf",
        }
    }

    /// The file in base64.
    pub fn base64(&self) -> Value {
        encode(self.bytes()).into()
    }

    /// The file as a `data:` address.
    pub fn url(&self) -> Value {
        let mut url = format!("data:{};base64,", self.media_type());
        encode_to(self.bytes(), &mut url);
        url.into()
    }
}

/// An object of these members. Unlike `json!`, it does not copy them: they may hold files.
pub fn object<const COUNT: usize>(members: [(&str, Value); COUNT]) -> Value {
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Value::Object(members.into_iter().collect())
}

/// The files of one request to one model.
pub struct Files<'a> {
    request: &'a ModelRequest<'a>,
    profile: Profile,
    capabilities: ServerCapabilities,
    /// Those that the model's server has refused.
    refused: BTreeSet<AttachmentId>,
    /// The images and documents that are within the bound.
    kept: BTreeSet<AttachmentId>,
    /// How many of them are images.
    images: usize,
    /// Bytes of base64 that were written, and the estimated tokens of what they show.
    written: Cell<(usize, usize)>,
}

impl<'a> Files<'a> {
    /// The files of a request to a server with these capabilities, which has refused some.
    pub fn of(
        request: &'a ModelRequest<'a>,
        profile: Profile,
        capabilities: ServerCapabilities,
        refused: BTreeSet<AttachmentId>,
    ) -> Files<'a> {
        let mut files = Files {
            request,
            profile,
            capabilities,
            refused,
            kept: BTreeSet::new(),
            images: 0,
            written: Cell::default(),
        };
        let mut kept: VecDeque<&ModelFile> = VecDeque::new();
        let mut bytes = 0;
        for file in all(request).filter(|file| files.is_media(file)) {
            let (most, most_bytes) = (profile.most_images, profile.image_bytes);
            if kept.len() >= most || bytes + file.bytes > most_bytes {
                while let Some(oldest) = kept.front()
                    && (kept.len() > most / 2 || bytes + file.bytes > most_bytes / 2)
                {
                    bytes -= oldest.bytes;
                    kept.pop_front();
                }
            }
            bytes += file.bytes;
            kept.push_back(file);
        }
        let is_image = |file: &&&ModelFile| file.kind() == FileKind::Image;
        if let Some(most) = capabilities.most_images {
            let too_many = kept.iter().filter(is_image).count().saturating_sub(most);
            let oldest = kept.iter().filter(is_image).take(too_many);
            let oldest: BTreeSet<AttachmentId> = oldest.map(|file| file.id).collect();
            kept.retain(|file| !oldest.contains(&file.id));
        }
        files.images = kept.iter().filter(is_image).count();
        files.kept = kept.into_iter().map(|file| file.id).collect();
        files
    }

    /// The text of a message with what is shown of its files as text, and those that are
    /// sent in the dialect's own form.
    pub fn with<'t>(&self, message: &'t ChatMessage<'_>) -> (Cow<'t, str>, Vec<Media>) {
        let (mut text, mut media) = (message.text(), Vec::new());
        for (place, file) in message.files().iter().enumerate() {
            let number = place + 1;
            let shown = match self.why_not(file) {
                // Of a PDF, the text is better than nothing.
                Some(why) if file.kind() == FileKind::Document && !file.is_folded => {
                    let text = self.request.files.text(file);
                    text.map(Shown::Text).ok_or(why)
                }
                Some(why) => Err(why),
                None => self.shown(file),
            };
            match shown {
                Ok(Shown::Media(one)) => media.push(one),
                Ok(Shown::Text(content)) => {
                    let content = fenced(OUTSIDE_TAG, &format!("File {number}:\n{content}"));
                    text.to_mut().push_str(&format!("\n{content}"));
                }
                Err(why) => {
                    let note = format!("File {number} is not shown to you: {why}");
                    text.to_mut()
                        .push_str(&format!("\n{}", fenced(NOTE_TAG, &note)));
                }
            }
        }
        (text, media)
    }

    /// The same for the result of a tool, where only a message behind it can hold media.
    pub fn with_result<'t>(&self, result: &'t ChatMessage<'_>) -> (Cow<'t, str>, Vec<Media>) {
        let (mut content, media) = self.with(result);
        if self.profile.message_after_results {
            return (content, media);
        }
        if !media.is_empty() {
            let note = "The service of the model takes no images and documents with the results of \
                 tools, so you are not shown those of this one.";
            let note = fenced(NOTE_TAG, note);
            content.to_mut().push_str(&format!("\n{note}"));
        }
        (content, Vec::new())
    }

    fn shown(&self, file: &ModelFile) -> Result<Shown, String> {
        let gone = || "it is stored no more.".to_owned();
        let reader = self.request.files;
        Ok(Shown::Media(match file.kind() {
            FileKind::Text => {
                let text = reader.text(file);
                return text
                    .map(Shown::Text)
                    .ok_or_else(|| format!("it is no text. {SAY_SO}"));
            }
            FileKind::Image => Media::Image {
                media_type: file.media_type.clone(),
                bytes: self.read(file).ok_or_else(gone)?,
            },
            _ => Media::Document {
                name: file.name.clone(),
                bytes: self.read(file).ok_or_else(gone)?,
            },
        }))
    }

    fn read(&self, file: &ModelFile) -> Option<Vec<u8>> {
        let read = self.request.files.bytes(file)?;
        let (bytes, tokens) = self.written.get();
        let base64 = read.len().div_ceil(3) * 4;
        self.written.set((bytes + base64, tokens + file.tokens));
        Some(read)
    }

    /// Bytes of base64 in what was written, and about how many tokens they are for.
    pub fn written(&self) -> (usize, usize) {
        self.written.get()
    }

    /// Whether a file would be sent in the dialect's own form if all had room.
    fn is_media(&self, file: &ModelFile) -> bool {
        matches!(file.kind(), FileKind::Image | FileKind::Document)
            && self.why_never(file).is_none()
    }

    /// Why a file is not shown, for the model.
    fn why_not(&self, file: &ModelFile) -> Option<String> {
        self.why_never(file).or_else(|| {
            let is_out = self.is_media(file) && !self.kept.contains(&file.id);
            let most = self.capabilities.most_images;
            let most = most.filter(|most| self.images == *most && file.kind() == FileKind::Image);
            if let Some(most) = most.filter(|_| is_out) {
                return Some(format!(
                    "newer images took its place: the service of the model takes at most {most} \
                     in a request."
                ));
            }
            is_out.then(|| {
                format!(
                    "newer files took its place, since a request has at most {} images and {} of \
                     them.",
                    self.profile.most_images,
                    megabytes(self.profile.image_bytes)
                )
            })
        })
    }

    /// The same, whatever else is sent.
    fn why_never(&self, file: &ModelFile) -> Option<String> {
        let (what, is_taken, most) = match file.kind() {
            FileKind::Other => {
                return Some(format!("files of its type cannot be read here. {SAY_SO}"));
            }
            FileKind::Text if file.is_folded => {
                let how = "read_file shows it with the path";
                return Some(format!("it came long ago; {how} {}.", file.id));
            }
            FileKind::Text => return None,
            FileKind::Image => (
                "images",
                !self.capabilities.no_images,
                self.profile.largest_image,
            ),
            FileKind::Document => ("PDF files", !self.capabilities.no_documents, u64::MAX),
        };
        if !is_taken {
            return Some(format!("the model that you are takes no {what}. {SAY_SO}"));
        }
        if file.is_folded {
            return Some("it came long ago.".to_owned());
        }
        let most = most.min(self.profile.image_bytes);
        if file.bytes > most {
            let most = megabytes(most);
            return Some(format!(
                "it is larger than {most}, the most there may be. {SAY_SO}"
            ));
        }
        let is_refused = self.refused.contains(&file.id);
        is_refused.then(|| format!("the service of the model refused a request with it. {SAY_SO}"))
    }
}

enum Shown {
    Text(String),
    Media(Media),
}

/// Asks the model to tell the person.
const SAY_SO: &str = "Say so if that matters for your answer.";

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / (1024.0 * 1024.0))
}

fn all<'a>(request: &ModelRequest<'a>) -> impl Iterator<Item = &'a ModelFile> {
    request.messages.iter().flat_map(ChatMessage::files)
}

#[cfg(test)]
mod tests;
