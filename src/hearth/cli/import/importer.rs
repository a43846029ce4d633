//! Stores the conversations that the readers of the formats parse.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::cli::context::{CliError, CliResult};
use crate::cli::progress::ProgressLine;
use base::clock::Timestamp;
use base::ids::UserId;
use base::people::Audience;
use protocol::attachment::decode;
use store::{AttachmentImport, Import, ImportedConversation, ImportedMessage, Store};

/// The channel of conversations from other assistants.
pub const CHANNEL: &str = "import";
/// Maximum messages, and approximate maximum bytes, of one transaction.
const MESSAGES: usize = 200;
const BYTES: usize = 1024 * 1024;
/// Longest pause between two transactions, in which a running server can write.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of different reasons that are counted.
const REASONS: usize = 20;
/// Longest title, in characters.
const TITLE_CHARACTERS: usize = 200;

/// The result of an import.
#[derive(Debug, Default, Serialize)]
pub struct ImportCounts {
    pub imported: u64,
    pub messages: u64,
    #[serde(rename = "already_there")]
    pub known: u64,
    pub left_out: u64,
    /// Why items were skipped, and how often.
    pub reasons: BTreeMap<String, u64>,
}

impl ImportCounts {
    pub fn skip(&mut self, reason: impl Into<String>) {
        self.left_out += 1;
        let mut reason = reason.into();
        if self.reasons.len() >= REASONS && !self.reasons.contains_key(&reason) {
            reason = "for other reasons".to_owned();
        }
        *self.reasons.entry(reason).or_insert(0) += 1;
    }
}

/// Stores what the readers of the formats parse.
pub struct Importer<'a> {
    pub store: &'a Store,
    pub line: &'a ProgressLine,
    /// Whether a server writes to the database at the same time.
    pub yields: bool,
    /// Size of the file.
    pub total: u64,
    /// Whose the conversations are that come from elsewhere; the household's if
    /// absent.
    pub owner: Option<UserId>,
    pub counts: ImportCounts,
}

/// A conversation that is being imported, with the messages not stored yet.
pub struct OpenImport {
    importing: Import,
    waiting: Vec<ImportedMessage>,
    bytes: usize,
    messages: u64,
    /// Whether the last message was taken: files that follow are its.
    has_message: bool,
    /// The file that is being read, and how many bytes of it are missing.
    file: Option<(AttachmentImport, u64)>,
}

impl Importer<'_> {
    /// Shows how much of the file has been read.
    ///
    /// # Errors
    /// A signal asks it to stop.
    pub fn note(&self, read: u64) -> CliResult {
        match self.line.note("importing", read, Some(self.total)) {
            true => Ok(()),
            false => Err(CliError::failed(
                "stopped before the end; import the file again to continue",
            )),
        }
    }

    /// The owner and the audience of an exported conversation, of those people who
    /// have a user here; none when nobody would see it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn place(
        &self,
        owner: Option<&str>,
        audience: Audience,
    ) -> Result<Option<(Option<UserId>, Audience)>, CliError> {
        let find = |name: &str| self.store.user(name).map(|user| user.map(|user| user.id));
        let owner = owner.map(find).transpose()?.flatten();
        let audience = match audience {
            Audience::People(names) => {
                let mut known = Vec::new();
                for name in names {
                    if find(&name)?.is_some() {
                        known.push(name);
                    }
                }
                match known.is_empty() {
                    true => Audience::Private,
                    false => Audience::People(known),
                }
            }
            other => other,
        };
        let is_lost = owner.is_none() && audience == Audience::Private;
        Ok((!is_lost).then_some((owner, audience)))
    }

    /// Stores a whole conversation.
    pub fn add(
        &mut self,
        conversation: ImportedConversation,
        messages: Vec<ImportedMessage>,
    ) -> CliResult {
        let conversation = match self.owner {
            Some(_) => ImportedConversation {
                owner: self.owner,
                audience: Audience::Private,
                ..conversation
            },
            None => conversation,
        };
        if messages.is_empty() {
            self.counts.skip("conversations without messages");
            return Ok(());
        }
        let Some(mut open) = self.begin(conversation)? else {
            return Ok(());
        };
        for message in messages {
            self.push(&mut open, message)?;
        }
        self.finish(open)
    }

    /// Starts a conversation; none when it exists already.
    pub fn begin(
        &mut self,
        mut conversation: ImportedConversation,
    ) -> Result<Option<OpenImport>, CliError> {
        let title = conversation.title.trim();
        conversation.title = title.chars().take(TITLE_CHARACTERS).collect();
        let Some(importing) = self.store.begin_import(conversation)? else {
            self.counts.known += 1;
            return Ok(None);
        };
        Ok(Some(OpenImport {
            importing,
            waiting: Vec::new(),
            bytes: 0,
            messages: 0,
            has_message: false,
            file: None,
        }))
    }

    pub fn push(&mut self, open: &mut OpenImport, message: ImportedMessage) -> CliResult {
        self.finish_file(open)?;
        open.has_message = true;
        open.bytes += message.content.len();
        open.messages += 1;
        open.waiting.push(message);
        match open.waiting.len() >= MESSAGES || open.bytes >= BYTES {
            true => self.store_waiting(open),
            false => Ok(()),
        }
    }

    /// Leaves out a message, and the files that follow.
    pub fn push_nothing(&mut self, open: &mut OpenImport) {
        open.has_message = false;
    }

    /// Begins a file of the last message.
    pub fn begin_file(
        &mut self,
        open: &mut OpenImport,
        name: &str,
        media_type: Option<String>,
        bytes: u64,
    ) -> CliResult {
        self.finish_file(open)?;
        if !open.has_message {
            self.counts.skip("attachments without a message");
            return Ok(());
        }
        self.store_waiting(open)?;
        let file = open.importing.begin_attachment(name, media_type)?;
        open.file = Some((file, bytes));
        Ok(())
    }

    /// Adds a part, in base64, to the file.
    pub fn add_to_file(&mut self, open: &mut OpenImport, data: &str) -> CliResult {
        let Some((file, missing)) = &mut open.file else {
            return Ok(());
        };
        let part = decode(data).unwrap_or_default();
        match missing.checked_sub(part.len() as u64) {
            Some(rest) if !part.is_empty() => {
                *missing = rest;
                file.add(&part)?;
                if self.yields {
                    thread::sleep(PAUSE);
                }
            }
            // The rest does not count either.
            _ => *missing = u64::MAX,
        }
        Ok(())
    }

    fn finish_file(&mut self, open: &mut OpenImport) -> CliResult {
        match open.file.take() {
            Some((file, 0)) => file.finish()?,
            Some((file, _)) => {
                file.discard();
                self.counts.skip("attachments that are not whole");
            }
            None => {}
        }
        Ok(())
    }

    fn store_waiting(&mut self, open: &mut OpenImport) -> CliResult {
        let began = Instant::now();
        open.bytes = 0;
        open.importing.add(std::mem::take(&mut open.waiting))?;
        if self.yields {
            // Without the pause the next transaction would take the lock again at once.
            thread::sleep(began.elapsed().min(PAUSE));
        }
        Ok(())
    }

    pub fn finish(&mut self, mut open: OpenImport) -> CliResult {
        self.finish_file(&mut open)?;
        self.store_waiting(&mut open)?;
        open.importing.finish()?;
        self.counts.imported += 1;
        self.counts.messages += open.messages;
        Ok(())
    }
}

/// A time in ISO 8601.
pub fn time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_millis(time.as_millisecond()))
}

/// The line of a message that stands for an attachment.
pub fn attached(kind: &str, name: Option<&Value>) -> String {
    match name.and_then(Value::as_str) {
        Some(name) => format!("[{kind}: {name}]"),
        None => format!("[{kind}]"),
    }
}
