//! `hearth import`: takes in Hearth's own export and those of ChatGPT and Claude.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::progress::{ProgressLine, count};
use super::running_server::RunningServer;
use super::table;
use crate::service::transfer::importer;
use crate::transfer::{self, ImportReport, ImportRequest};
use base::clock::Clock;
use serde_json::json;
use store::{UploadLimits, Viewer};

pub const COMMAND: Command = Command::new(
    "\
import FILE: Import an export of Hearth, or conversations from ChatGPT and Claude
FILE was written by `hearth export`, or is the file conversations.json of an account export of
ChatGPT or Claude. What exists already is skipped, so the same file can be imported again. Works
whether or not the server runs. Hearth's own export says whose each thing is and who sees it.
What names nobody who has a user here is private to the oldest admin then; with --owner, all of
it is private to that person.
--owner NAME  The user whose all of it becomes
--json
--data-dir",
)
.run(run);

/// Longest pause after what was read is stored, in which a running server can write.
const PAUSE: Duration = Duration::from_millis(50);

/// `hearth import FILE`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let path = PathBuf::from(arguments.required(0));
    let named =
        |why: &dyn std::fmt::Display| CliError::failed(format!("{}: {why}", path.display()));
    let unread =
        |error: io::Error| CliError::failed(format!("{} cannot be read: {error}", path.display()));
    let file = File::open(&path).map_err(unread)?;
    let about = file.metadata().map_err(unread)?;
    if about.is_dir() {
        let advice = "it is a directory; import the file conversations.json in it";
        return Err(named(&advice));
    }
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    let owner = arguments.text("owner")?;
    let importer = importer(&store, owner)?;
    let settings = directory.settings().ok();
    let config = settings
        .map(|settings| settings.current())
        .unwrap_or_default();
    let line = ProgressLine::stoppable();
    let imported = transfer::import(
        &store,
        ImportRequest {
            importer,
            restores: owner.is_none(),
            is_trusted: true,
            viewer: Viewer::server(),
            limits: UploadLimits {
                bytes: u64::MAX,
                total_bytes: u64::MAX,
                time: Duration::ZERO,
            },
            zone: config.zone(),
            now: Clock::system().now(),
        },
        WatchedFile {
            file,
            read: 0,
            total: about.len(),
            last: Instant::now(),
            yields: RunningServer::find(&directory).is_some(),
            line: &line,
        },
    );
    drop(line);
    store.close();
    print(
        arguments,
        context,
        &imported.map_err(|error| named(&error.for_owner()))?,
    )
}

/// A file whose reading shows how far the import is, and stops when a signal asks for it.
struct WatchedFile<'a> {
    file: File,
    read: u64,
    total: u64,
    last: Instant,
    /// Whether a server writes to the database at the same time.
    yields: bool,
    line: &'a ProgressLine,
}

impl Read for WatchedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.yields {
            // Without the pause the next transaction would take the lock again at once.
            thread::sleep(self.last.elapsed().min(PAUSE));
        }
        if !self.line.note("importing", self.read, Some(self.total)) {
            return Err(io::Error::other("stopped before the end"));
        }
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        self.last = Instant::now();
        Ok(count)
    }
}

fn print(arguments: &Arguments, context: &mut CliContext, report: &ImportReport) -> CliResult {
    if arguments.has("json") {
        return table::print_json(context, &json!(report));
    }
    context.print(format_args!(
        "Imported {} in {}; {} already there.",
        count(report.messages, "message"),
        count(report.imported, "conversation"),
        match report.known {
            1 => "1 was".to_owned(),
            known => format!("{known} were"),
        }
    ))?;
    for (number, what) in [
        (report.memories, "memory"),
        (report.schedules, "schedule"),
        (report.items, "list item"),
    ] {
        match (number, what) {
            (0, _) => {}
            (1, what) => writeln!(context.output, "Imported 1 {what}.")?,
            (many, "memory") => writeln!(context.output, "Imported {many} memories.")?,
            (many, what) => writeln!(context.output, "Imported {many} {what}s.")?,
        }
    }
    if !report.unknown_names.is_empty() {
        let names: Vec<&str> = report.unknown_names.iter().map(String::as_str).collect();
        let (names, owner) = (names.join(", "), &report.owner);
        writeln!(
            context.output,
            "Nobody here is called {names}: what was theirs is private to {owner} now."
        )?;
    }
    for (reason, times) in &report.reasons {
        writeln!(context.output, "Skipped {times}: {reason}")?;
    }
    Ok(())
}
