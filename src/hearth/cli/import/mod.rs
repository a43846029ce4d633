//! `hearth import`: takes conversations in from our own export and from those
//! of ChatGPT and Claude. Each conversation comes once, however often its file
//! is imported; what cannot be read is left out and counted.

mod array;
mod chatgpt;
mod claude;
mod hearth;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::Arguments;
use super::data_directory::DataDirectory;
use super::progress::{ProgressLine, count};
use super::running_server::RunningServer;
use super::{Context, Failure, Outcome, table};
use base::clock::{Clock, Timestamp};
use serde_json::json;
use store::{Import, ImportedConversation, ImportedMessage, Store};

/// Where conversations of other assistants are said to have begun.
const CHANNEL: &str = "import";
/// Most messages, and about how many bytes, of one transaction.
const MESSAGES: usize = 200;
const BYTES: usize = 1024 * 1024;
/// Longest time that is left to a running server between two transactions.
const PAUSE: Duration = Duration::from_millis(50);
/// Different reasons that are told apart.
const REASONS: usize = 20;
/// Longest title that is taken over, in characters.
const TITLE_CHARACTERS: usize = 200;

/// `hearth import FILE`
pub fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let path = PathBuf::from(arguments.required(0));
    let unread = |error: std::io::Error| {
        Failure::failed(format!("{} cannot be read: {error}", path.display()))
    };
    let file = File::open(&path).map_err(unread)?;
    let about = file.metadata().map_err(unread)?;
    if about.is_dir() {
        return Err(Failure::failed(format!(
            "{} is a directory; import the file conversations.json in it",
            path.display()
        )));
    }
    let total = about.len();
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let kind = Kind::of(reader.fill_buf().map_err(unread)?);
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store(&Clock::system())?;
    let line = ProgressLine::stoppable();
    let mut importer = Importer {
        store: &store,
        line: &line,
        yields: RunningServer::find(&directory).is_some(),
        total,
        tally: Tally::default(),
    };
    let read = match kind {
        Kind::Hearth => hearth::read(reader, &mut importer),
        Kind::Array => array::read(reader, &mut importer),
        Kind::Zip => Err(Failure::failed(format!(
            "{} is a zip archive: unzip it first, and import the file conversations.json in it",
            path.display()
        ))),
        Kind::Unknown => Err(Failure::failed(format!(
            "{} is no export that Hearth knows: its own JSON Lines, or conversations.json of a \
             ChatGPT or Claude account export",
            path.display()
        ))),
    };
    let tally = importer.tally;
    drop(line);
    store.close();
    // What came before a failure has come.
    if read.is_ok() || tally.imported > 0 {
        print(arguments, context, &tally)?;
    }
    read.map_err(|failure| match failure {
        Failure::Failed(message) => Failure::Failed(match message.contains("conversations.json") {
            true => message,
            false => format!("{}: {message}", path.display()),
        }),
        other => other,
    })
}

fn print(arguments: &Arguments, context: &mut Context, tally: &Tally) -> Outcome {
    if arguments.has("json") {
        let counts = json!({
            "imported": tally.imported,
            "messages": tally.messages,
            "already_there": tally.known,
            "left_out": tally.left_out,
            "reasons": tally.reasons,
        });
        return table::print_json(context, &counts);
    }
    writeln!(
        context.output,
        "Imported {} in {}; {} already there.",
        count(tally.messages, "message"),
        count(tally.imported, "conversation"),
        match tally.known {
            1 => "1 was".to_owned(),
            known => format!("{known} were"),
        }
    )?;
    for (reason, times) in &tally.reasons {
        writeln!(context.output, "Left out {times}: {reason}")?;
    }
    Ok(())
}

/// What kind of file begins so.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Hearth,
    Array,
    Zip,
    Unknown,
}

impl Kind {
    fn of(beginning: &[u8]) -> Kind {
        if beginning.starts_with(b"PK\x03\x04") {
            return Kind::Zip;
        }
        let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        let line = beginning.trim_ascii_start();
        let first = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match line.first() {
            Some(b'[') => Kind::Array,
            Some(b'{') if hearth::is_head(first) => Kind::Hearth,
            _ => Kind::Unknown,
        }
    }
}

/// What came of an import.
#[derive(Debug, Default)]
struct Tally {
    imported: u64,
    messages: u64,
    known: u64,
    left_out: u64,
    /// Why something was left out, and how often.
    reasons: BTreeMap<String, u64>,
}

impl Tally {
    fn leave_out(&mut self, reason: impl Into<String>) {
        self.left_out += 1;
        let mut reason = reason.into();
        if self.reasons.len() >= REASONS && !self.reasons.contains_key(&reason) {
            reason = "for other reasons".to_owned();
        }
        *self.reasons.entry(reason).or_insert(0) += 1;
    }
}

/// Takes in what the readers of the formats find.
struct Importer<'a> {
    store: &'a Store,
    line: &'a ProgressLine,
    /// Whether a server writes to the database at the same time.
    yields: bool,
    /// Size of the file.
    total: u64,
    tally: Tally,
}

/// A conversation that is being taken in, and what of it is not stored yet.
struct Open {
    importing: Import,
    waiting: Vec<ImportedMessage>,
    bytes: usize,
    messages: u64,
}

impl Importer<'_> {
    /// Shows how much of the file has been read.
    ///
    /// # Errors
    /// Somebody wants it to stop.
    fn note(&self, read: u64) -> Outcome {
        match self.line.note("importing", read, Some(self.total)) {
            true => Ok(()),
            false => Err(Failure::failed(
                "stopped before the end; importing again goes on",
            )),
        }
    }

    /// Takes a whole conversation in.
    fn add(
        &mut self,
        conversation: ImportedConversation,
        messages: Vec<ImportedMessage>,
    ) -> Outcome {
        if messages.is_empty() {
            self.tally.leave_out("conversations without messages");
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

    /// Begins a conversation; none when it is there already.
    fn begin(&mut self, mut conversation: ImportedConversation) -> Result<Option<Open>, Failure> {
        let title = conversation.title.trim();
        conversation.title = title.chars().take(TITLE_CHARACTERS).collect();
        let Some(importing) = self.store.begin_import(conversation)? else {
            self.tally.known += 1;
            return Ok(None);
        };
        Ok(Some(Open {
            importing,
            waiting: Vec::new(),
            bytes: 0,
            messages: 0,
        }))
    }

    fn push(&mut self, open: &mut Open, message: ImportedMessage) -> Outcome {
        open.bytes += message.content.len();
        open.messages += 1;
        open.waiting.push(message);
        match open.waiting.len() >= MESSAGES || open.bytes >= BYTES {
            true => self.store_waiting(open),
            false => Ok(()),
        }
    }

    fn store_waiting(&mut self, open: &mut Open) -> Outcome {
        let began = Instant::now();
        open.bytes = 0;
        open.importing.add(std::mem::take(&mut open.waiting))?;
        if self.yields {
            // SQLite lets whoever asks first go first; this lets others ask.
            thread::sleep(began.elapsed().min(PAUSE));
        }
        Ok(())
    }

    fn finish(&mut self, mut open: Open) -> Outcome {
        self.store_waiting(&mut open)?;
        open.importing.finish()?;
        self.tally.imported += 1;
        self.tally.messages += open.messages;
        Ok(())
    }
}

/// A time in ISO 8601.
fn time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_millis(time.as_millisecond()))
}

/// Text of a file that is no text, as a line of the message.
fn attached(kind: &str, name: Option<&Value>) -> String {
    match name.and_then(Value::as_str) {
        Some(name) => format!("[{kind}: {name}]"),
        None => format!("[{kind}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_beginning() {
        for (beginning, kind) in [
            (&b"PK\x03\x04rest"[..], Kind::Zip),
            (b"\xef\xbb\xbf\n [ {", Kind::Array),
            (
                b"{\"type\":\"hearth_export\",\"version\":1}\n{",
                Kind::Hearth,
            ),
            (
                b"{\"type\":\"hearth_export\",\"version\":2}\n{",
                Kind::Unknown,
            ),
            (b"{\"mapping\": {}}", Kind::Unknown),
            (b"# Title", Kind::Unknown),
            (b"", Kind::Unknown),
        ] {
            assert_eq!(Kind::of(beginning), kind);
        }
    }
}
