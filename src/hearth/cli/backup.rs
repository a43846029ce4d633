//! `hearth backup`: all data in one file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::Door;
use super::password::new_passphrase;
use super::progress::{ProgressLine, size};
use super::row::{Shown, text};
use crate::service::backup_contents::enclosed;
use base::age::{Recipient, SecretKey};
use base::clock::Clock;
use base::key_file;
use base::measure::count;
use protocol::attachment::decode;
use store::{BackupEncryption, BackupWriter};

pub const COMMAND: Command = Command::new(
    "\
backup [FILE]: Back everything up into one file, even while the server runs
FILE is a database that any SQLite program can open. It appears under its name only after it has
been read back and verified. Its copy of the configuration has *** in place of each secret. The
server makes such backups itself every night (`hearth config keys` explains `backup`).
--with-secrets  Include API keys, passwords and the machine's key
--encrypt       Encrypt FILE (format age v1) with a passphrase, which is asked for
--force         Replace FILE if it exists
--list          Instead, list the server's nightly backups
--start         Instead, have the running server make tonight's backup now
--new-key       Instead, make a key for the server's backups; its secret goes to FILE
--json",
)
.ask(run);

/// `hearth backup`
fn run(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    match arguments.operand(0) {
        None if arguments.has("list") => list(door, arguments, context),
        None if arguments.has("start") => start(door, context),
        Some("-") => Err(arguments.usage("a backup is a file: give its name in place of `-`")),
        Some(file) if !arguments.has("list") && !arguments.has("start") => {
            let file = PathBuf::from(file);
            match arguments.has("new-key") {
                true => make_key(&file, context),
                false => back_up(door, file, arguments, context),
            }
        }
        _ => Err(arguments.usage("give either FILE, --list or --start")),
    }
}

/// `hearth backup --list`
fn list(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let data = door.ask(&json!({ "type": "list_backups" }))?;
    let shown = Shown::List {
        member: "backups",
        columns: &[
            ("night", |backup| text(&backup["night"])),
            ("file", |backup| text(&backup["name"])),
            ("size", |backup| {
                size(backup["bytes"].as_u64().unwrap_or_default())
            }),
        ],
        empty: "There are no nightly backups yet.",
    };
    shown.print(&data, arguments, context)?;
    match arguments.has("json") {
        true => Ok(()),
        false => context.note(format_args!("They are in {}.", text(&data["directory"]))),
    }
}

/// `hearth backup --start`
fn start(door: &mut Door, context: &mut CliContext) -> CliResult {
    if door.server()?.is_none() {
        return Err(CliError::failed(
            "no server is running that could make it; `hearth backup FILE` makes one",
        ));
    }
    door.ask(&json!({ "type": "start_backup" }))?;
    context.note("The server makes it now; `hearth backup --list` shows it.")
}

/// `hearth backup --new-key FILE`
fn make_key(file: &Path, context: &mut CliContext) -> CliResult {
    let key = SecretKey::generate();
    let public = key.public();
    let (directory, name) = (file.parent(), file.file_name().unwrap_or_default());
    let directory = directory.filter(|directory| *directory != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let text = format!("# public key: {public}\n{}", key.text().expose());
    key_file::make(directory, &name.to_string_lossy(), &text).map_err(|error| {
        let shown = file.display();
        CliError::failed(match error.kind() {
            ErrorKind::AlreadyExists => format!("{shown} already exists; choose another name"),
            _ => format!("{shown} cannot be written: {error}"),
        })
    })?;
    context.print(format_args!("Public key: {public}"))?;
    context.note(format_args!(
        "The secret key is in {0}. Keep two copies of it away from this machine: without it nobody\n\
         can read the backups, and with it anybody can. To have the nightly backups encrypted:\n  \
         hearth config set backup.encrypt_to {public}",
        file.display()
    ))
}

/// `hearth backup FILE`
fn back_up(
    door: &mut Door,
    target: PathBuf,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let directory = door.directory()?.clone();
    directory.check_is_used()?;
    directory.check_output(&target)?;
    let with_secrets = arguments.has("with-secrets");
    let encryption = match arguments.has("encrypt") {
        false => None,
        true => Some(BackupEncryption {
            recipient: Recipient::Passphrase(new_passphrase(context)?),
            directory: directory.path(),
        }),
    };
    let mut copy = BackupWriter::create(&target, arguments.has("force"), encryption)
        .map_err(CliError::failed)?;
    let (files, left_out) = enclosed(directory.path(), with_secrets, Clock::system().now());
    let line = ProgressLine::new();
    let mut copied = 0;
    for number in 0u64.. {
        let part = door.ask(&json!({ "type": "back_up", "part": number }))?;
        if part["done"] == true {
            break;
        }
        let piece = decode(part["data"].as_str().unwrap_or_default())
            .ok_or_else(|| CliError::failed("the server's response is not base64"))?;
        copy.add(&piece).map_err(CliError::failed)?;
        copied += piece.len() as u64;
        if !line.note("copying", copied, part["bytes"].as_u64()) {
            return Err(CliError::failed("stopped before it was complete"));
        }
    }
    // Nobody waits while the copy is checked.
    door.release();
    let made = (copy.finish(files, &line.watch())).map_err(CliError::failed)?;
    drop(line);
    if let Some(reason) = left_out {
        writeln!(context.errors, "hearth: {reason}")?;
    }
    context.print(format_args!(
        "Backed up {} in {} to {} ({}), {}.",
        count(made.messages, "message"),
        count(made.conversations, "conversation"),
        target.display(),
        size(made.bytes),
        if with_secrets {
            "including all secrets: keep it safe"
        } else {
            "without secrets"
        }
    ))
}
