//! The files of a conversation, as the model reads them.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::output::{MAX_RESULT_CHARS, cap_paged, cap_text, first_page};
use super::pdf::{MAX_BYTES as MAX_PDF_BYTES, PdfError, text_of_pdf};
use super::readable::decode;
use crate::model::{FileKind, FileReader, ModelFile};
use base::ids::{AttachmentId, ConversationId};
use base::sync::lock;
use net::cancel::Cancel;
use store::{Attachment, Store, Viewer};

/// Most bytes of a text that are read.
const MAX_READ: usize = 2 * 1024 * 1024;
/// Bytes of a text that is not UTF-8 in which control characters are looked for.
const BEGINNING: usize = 4 * 1024;
/// Most PDFs that are kept as text, and most bytes of all of them.
const MOST_PDFS: usize = 64;
const MOST_PDF_TEXT: usize = 8 * 1024 * 1024;
/// Longest reading of one PDF.
const PDF_TIME: Duration = Duration::from_secs(10);

/// Reads the files of one conversation.
pub struct ConversationFiles<'a> {
    /// Where they are.
    pub store: &'a Store,
    /// Whose they are.
    pub conversation: ConversationId,
    /// Whether the model has the tool that reads on.
    pub can_read_on: bool,
    /// What the program that reads PDFs must not see.
    pub data_dir: &'a Path,
    /// When its time is up.
    pub deadline: Instant,
    /// Stops it.
    pub cancel: &'a Cancel,
    /// The PDFs that were read.
    pub pdfs: &'a PdfTexts,
}

/// The texts of the PDFs that were read last, or why they have none. A file stays in the
/// history for many turns, and only the first waits for `pdftotext`.
#[derive(Default)]
pub struct PdfTexts(Mutex<Vec<(AttachmentId, Result<String, String>)>>);

impl PdfTexts {
    /// The text of a PDF of which `read` gives the bytes, within 10 seconds.
    ///
    /// # Errors
    /// Why there is none, to follow the name of the file.
    pub fn of(
        &self,
        id: AttachmentId,
        read: impl FnOnce() -> Option<Vec<u8>>,
        data_dir: &Path,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<String, String> {
        let known = |kept: &[(AttachmentId, Result<String, String>)]| {
            let found = kept.iter().find(|(kept, _)| *kept == id);
            found.map(|(_, text)| text.clone())
        };
        if let Some(text) = known(&lock(&self.0)) {
            return text;
        }
        let pdf = read().ok_or("is stored no more")?;
        let limit = Instant::now() + PDF_TIME;
        let text = text_of_pdf(pdf, data_dir, deadline.min(limit), cancel);
        let is_lasting = match &text {
            Ok(_) | Err(PdfError::Unreadable(_)) => true,
            Err(PdfError::TooSlow) => limit <= deadline,
            Err(PdfError::NotRead(_)) => false,
        };
        let text = text.map_err(|why| why.to_string());
        if is_lasting {
            let mut kept = lock(&self.0);
            kept.push((id, text.clone()));
            let bytes =
                |(_, text): &(_, Result<String, String>)| text.as_ref().map_or(0, String::len);
            while kept.len() > MOST_PDFS || kept.iter().map(bytes).sum::<usize>() > MOST_PDF_TEXT {
                drop(kept.remove(0));
            }
        }
        text
    }
}

impl ConversationFiles<'_> {
    fn part(&self, id: AttachmentId, most: usize) -> Option<(Attachment, Vec<u8>)> {
        let read = || {
            self.store
                .snapshot(&Viewer::server())
                .and_then(|seen| seen.attachment_in(self.conversation, id, most))
        };
        // The commit of its message may be on its way.
        let part = read().or_else(|_| self.store.flush().and_then(|()| read()));
        part.inspect_err(|error| log::info!("{id} is not read: {error}"))
            .ok()
    }

    /// All of a text file or the text of a PDF, and what follows it where it was cut.
    ///
    /// # Errors
    /// Why there is no text, for the model.
    pub fn whole_text(&self, id: AttachmentId) -> Result<(String, String), String> {
        let gone = || format!("there is no file {id} in this conversation");
        let (file, bytes) = self.part(id, MAX_READ).ok_or_else(gone)?;
        let kind = FileKind::of(&file.media_type, &file.name);
        if kind == FileKind::Document {
            let read = || Some(self.part(id, MAX_PDF_BYTES + 1)?.1);
            let (deadline, cancel) = (self.deadline, self.cancel);
            let text = (self.pdfs).of(id, read, self.data_dir, deadline, cancel);
            let text = text.map_err(|why| format!("the file {id} {why}"))?;
            return Ok((text, String::new()));
        }
        let text = text_of(&bytes).filter(|_| kind == FileKind::Text);
        let text = text.ok_or_else(|| format!("the file {id} is no text ({})", file.media_type))?;
        let after = match file.bytes > MAX_READ as u64 {
            true => format!(
                "\n[the file has {} bytes; what is beyond the first {MAX_READ} cannot be read]",
                file.bytes
            ),
            false => String::new(),
        };
        Ok((text, after))
    }
}

impl FileReader for ConversationFiles<'_> {
    fn bytes(&self, file: &ModelFile) -> Option<Vec<u8>> {
        let most = usize::try_from(file.bytes).ok()?;
        self.part(file.id, most).map(|(_, bytes)| bytes)
    }

    fn text(&self, file: &ModelFile) -> Option<String> {
        let (text, after) = self.whole_text(file.id).ok()?;
        let most = file.most_chars.min(MAX_RESULT_CHARS);
        if text.is_empty() {
            return Some("[the file is empty]".to_owned());
        }
        if !self.can_read_on || (after.is_empty() && text.chars().count() <= most) {
            return Some(cap_text(text, most) + &after);
        }
        let (first, range) = first_page(&text);
        let how = format!("\n[read_file with the path {} and that offset]", file.id);
        Some(cap_paged(&(first + &how), range, most))
    }
}

/// The text of bytes in UTF-8, UTF-16 with a byte order mark, or Latin-1; none if they
/// are something else.
pub(crate) fn text_of(bytes: &[u8]) -> Option<String> {
    let is_utf_16 = matches!(bytes, [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..]);
    let is_layout = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c);
    let is_control = |&byte: &u8| byte.is_ascii_control() && !is_layout(byte);
    let beginning = &bytes[..bytes.len().min(BEGINNING)];
    if !is_utf_16 && beginning.iter().any(is_control) {
        return None;
    }
    Some(decode(bytes, "").into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::pdf::pdf_obstacle;
    use crate::tools::pdf::samples::letter;
    use crate::tools::testing::Household;
    use base::testing::{TemporaryDirectory, skipped};
    use serde_json::json;
    use store::{IncludedFile, NewAttachments, UploadLimits};

    #[test]
    fn a_pdf_is_read_once_and_what_is_not_its_fault_is_tried_again() {
        if let Some(obstacle) = pdf_obstacle() {
            return skipped(obstacle);
        }
        let (data, pdfs) = (TemporaryDirectory::new(), PdfTexts::default());
        let read = |id, pdf: Option<Vec<u8>>, seconds| {
            let deadline = Instant::now() + Duration::from_secs(seconds);
            let id = AttachmentId::from(id);
            pdfs.of(id, || pdf, &data, deadline, &Cancel::default())
        };
        // The turn was over.
        assert!(read(1, Some(letter(&["Hi"])), 0).is_err());
        let text = Ok("[page 1]\nHi".to_owned());
        assert_eq!(read(1, Some(letter(&["Hi"])), 60), text);
        let damaged = read(2, Some(b"%PDF-1.7".to_vec()), 60);
        assert!(
            damaged.as_ref().is_err_and(|why| why.contains("damaged")),
            "{damaged:?}"
        );
        for _ in 0..3 {
            assert_eq!(read(1, None, 0), text);
            assert_eq!(read(2, None, 0), damaged);
        }
        for id in 3..200 {
            assert!(read(id, Some(vec![0; MAX_PDF_BYTES + 1]), 60).is_err());
        }
        assert_eq!(lock(&pdfs.0).len(), MOST_PDFS);
        assert!(read(1, None, 60).is_err(), "the oldest went");
    }

    #[test]
    fn reading_on_in_a_pdf_does_not_read_the_file_again() {
        let mut household = Household::new();
        let limits = UploadLimits {
            bytes: 1_000,
            total_bytes: 1_000,
            time: Duration::from_secs(60),
        };
        let bill = IncludedFile {
            name: "bill.pdf".to_owned(),
            declared_type: None,
            data: b"%PDF-1.7 of which nothing can be read".to_vec(),
        };
        let files = NewAttachments::Included(vec![bill], limits);
        household.conversation_id = household.say_with("the bill", files);
        let seen = household.store().snapshot(&Viewer::server()).unwrap();
        let messages = seen.messages(household.conversation_id, 1, None).unwrap();
        let id = messages.messages[0].attachments[0].attachment_id;
        drop(seen);
        lock(&household.pdfs.0).push((id, Ok("x".repeat(40_000))));
        for offset in [0, 15_000, 30_000] {
            let arguments = json!({ "path": id.to_string(), "offset": offset });
            let page = household.run("read_file", arguments).unwrap();
            assert!(
                page.contains(&format!("\n[characters {offset} to ")),
                "{page}"
            );
        }
    }

    #[test]
    fn text_is_decoded() {
        for (bytes, text) in [
            (&b"caf\xC3\xA9"[..], Some("café")),
            (b"\xEF\xBB\xBFcaf\xC3\xA9", Some("café")),
            (b"\xFF\xFEc\0a\0f\0\xE9\0", Some("café")),
            (b"\xFE\xFF\0c\0a\0f\0\xE9", Some("café")),
            (b"caf\xE9;\x80", Some("café;€")),
            (b"a\0b", None),
            (b"\x1b[31m", None),
            (b"", Some("")),
        ] {
            assert_eq!(text_of(bytes).as_deref(), text, "{bytes:?}");
        }
    }
}
