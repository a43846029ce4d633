//! `hearth import`: imports conversations from Hearth's own export and from those
//! of ChatGPT and Claude. A conversation is imported once, however often its file
//! is. What cannot be read is skipped and counted.

mod array;
mod chatgpt;
mod claude;
mod hearth;
mod importer;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::progress::{ProgressLine, count};
use super::running_server::RunningServer;
use super::table;
use importer::{ImportCounts, Importer};
use serde_json::json;

pub const COMMAND: Command = Command::new(
    "\
import FILE: Import conversations, also from ChatGPT and Claude
FILE was written by `hearth export`, or is the file conversations.json of an account export of
ChatGPT or Claude. Conversations that exist already are skipped, so the same file can be imported
again. Works whether or not the server runs. What ChatGPT or Claude exported is the household's
then; with --owner, it is private to that person. Hearth's own export says itself whose each
conversation is, and private ones of people without a user are left out.
--owner NAME  The user whose conversations these are
--json
--data-dir",
)
.run(run);

/// `hearth import FILE`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let path = PathBuf::from(arguments.required(0));
    let unread = |error: std::io::Error| {
        CliError::failed(format!("{} cannot be read: {error}", path.display()))
    };
    let file = File::open(&path).map_err(unread)?;
    let about = file.metadata().map_err(unread)?;
    if about.is_dir() {
        return Err(CliError::failed(format!(
            "{} is a directory; import the file conversations.json in it",
            path.display()
        )));
    }
    let total = about.len();
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let format = FileFormat::of(reader.fill_buf().map_err(unread)?);
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    let owner = match arguments.text("owner")? {
        Some(name) => match store.user(name)? {
            Some(user) => Some(user.id),
            None => return Err(CliError::failed(format!("there is no user {name:?}"))),
        },
        None => None,
    };
    let line = ProgressLine::stoppable();
    let mut importer = Importer {
        store: &store,
        line: &line,
        yields: RunningServer::find(&directory).is_some(),
        total,
        owner,
        counts: ImportCounts::default(),
    };
    let read = match format {
        FileFormat::Hearth => hearth::read(reader, &mut importer),
        FileFormat::Array => array::read(reader, &mut importer),
        FileFormat::Zip => Err(CliError::failed(format!(
            "{} is a zip archive; unzip it and import its conversations.json",
            path.display()
        ))),
        FileFormat::Unknown => Err(CliError::failed(format!(
            "{} is not a known export: it must be Hearth's own JSON Lines, or conversations.json of \
             a ChatGPT or Claude account export",
            path.display()
        ))),
    };
    let counts = importer.counts;
    drop(line);
    store.close();
    // What was imported before a failure stays.
    if read.is_ok() || counts.imported > 0 {
        print(arguments, context, &counts)?;
    }
    read.map_err(|failure| match failure {
        CliError::Failed(message) => {
            CliError::Failed(match message.contains("conversations.json") {
                true => message,
                false => format!("{}: {message}", path.display()),
            })
        }
        other => other,
    })
}

fn print(arguments: &Arguments, context: &mut CliContext, counts: &ImportCounts) -> CliResult {
    if arguments.has("json") {
        return table::print_json(context, &json!(counts));
    }
    context.print(format_args!(
        "Imported {} in {}; {} already there.",
        count(counts.messages, "message"),
        count(counts.imported, "conversation"),
        match counts.known {
            1 => "1 was".to_owned(),
            known => format!("{known} were"),
        }
    ))?;
    for (reason, times) in &counts.reasons {
        writeln!(context.output, "Skipped {times}: {reason}")?;
    }
    Ok(())
}

/// The format of a file, judged by its beginning.
#[derive(Debug, PartialEq, Eq)]
enum FileFormat {
    Hearth,
    Array,
    Zip,
    Unknown,
}

impl FileFormat {
    fn of(beginning: &[u8]) -> FileFormat {
        if beginning.starts_with(b"PK\x03\x04") {
            return FileFormat::Zip;
        }
        let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        let line = beginning.trim_ascii_start();
        let first = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match line.first() {
            Some(b'[') => FileFormat::Array,
            Some(b'{') if hearth::is_head(first) => FileFormat::Hearth,
            _ => FileFormat::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_recognised_by_the_beginning() {
        for (beginning, kind) in [
            (&b"PK\x03\x04rest"[..], FileFormat::Zip),
            (b"\xef\xbb\xbf\n [ {", FileFormat::Array),
            (
                b"{\"type\":\"hearth_export\",\"version\":1}\n{",
                FileFormat::Hearth,
            ),
            (
                b"{\"type\":\"hearth_export\",\"version\":2}\n{",
                FileFormat::Unknown,
            ),
            (b"{\"mapping\": {}}", FileFormat::Unknown),
            (b"# Title", FileFormat::Unknown),
            (b"", FileFormat::Unknown),
        ] {
            assert_eq!(FileFormat::of(beginning), kind);
        }
    }
}
