//! `hearth restore`: checks a backup, and replaces the current data with it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::password::read_secret;
use super::progress::ProgressLine;
use crate::server::{Holder, Lock, restore};
use crate::service::backup_contents::{ABOUT, CONFIG, KEYS};
use agent::skills;
use base::age::{AgeError, EncryptedFile, FIRST_LINE, Identity, SecretKey};
use base::calendar::Zone;
use base::clock::Clock;
use base::files::create;
use base::key_file;
use base::measure::count;
use base::secret::reference;
use config::{Settings, reunite};
use store::{BackupContents, inspect, unpack};

pub const COMMAND: Command = Command::new(
    "\
restore FILE: Replace the current data with a backup
FILE is a backup, or a copy of hearth.db. It is checked first; the data that it replaces is moved
to a directory beside it. For an encrypted backup, Hearth asks for the passphrase. Secrets that
are not in the backup are kept from the current configuration where they still apply. The server
must be stopped.
--check          Only check the file, and change nothing
--identity FILE  The secret key of a backup that is encrypted to a key
--data-dir",
)
.run(run);

/// `hearth restore FILE`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let file = PathBuf::from(arguments.required(0));
    if arguments.has("check") {
        // On a disk: in memory there may be no room for it.
        let place = context.variable("TMPDIR");
        let place = place.unwrap_or_else(|| "/var/tmp".to_owned());
        let decrypted = decrypt(&file, Path::new(&place), arguments, context)?;
        let line = ProgressLine::new();
        let plain = decrypted.as_ref().map_or(&file, |decrypted| &decrypted.0);
        let contents = inspect(plain, true, &line.watch()).map_err(CliError::failed)?;
        drop(line);
        context.print(format_args!(
            "{} is valid: {}.",
            file.display(),
            describe(&contents)
        ))?;
        return Ok(());
    }
    let directory = DataDirectory::of(arguments, context)?;
    directory.create()?;
    // Held to the end, so that no server can start.
    let _lock = Lock::take(directory.path(), Holder::Server).map_err(CliError::failed)?;
    let unusable = |error: io::Error| {
        CliError::failed(format!(
            "{} cannot be changed: {error}",
            directory.path().display()
        ))
    };
    if let Some(aside) = restore::finish(directory.path()).map_err(unusable)? {
        context.note(format_args!(
            "hearth: completed an interrupted restore first; the data that it replaced is in {}",
            aside.display()
        ))?;
    }
    let staged = restore::begin(directory.path()).map_err(unusable)?;
    let result = stage(&file, &directory, &staged, arguments, context).and_then(|contents| {
        let aside = aside_name(directory.path());
        restore::commit(directory.path(), &aside).map_err(unusable)?;
        Ok(contents)
    });
    let contents = match result {
        Ok(contents) => contents,
        Err(failure) => {
            // An error of the cleanup would hide the reason.
            let _ = restore::discard(directory.path());
            return Err(failure);
        }
    };
    let aside = restore::finish(directory.path()).map_err(unusable)?;
    writeln!(context.output, "Restored {}.", describe(&contents))?;
    if let Some(aside) = aside {
        match fs::remove_dir(&aside) {
            // There was no earlier data.
            Ok(()) => {}
            Err(_) => context.print(format_args!("The earlier data is in {}.", aside.display()))?,
        }
    }
    if directory.config().exists()
        && let Err(problems) = Settings::load(&directory.config())
    {
        context.note(format_args!(
            "hearth: the server cannot start until this is corrected:\n{problems}"
        ))?;
    }
    Ok(())
}

/// Prepares all files beside their final place, and reports what happened to the
/// secrets.
fn stage(
    file: &Path,
    directory: &DataDirectory,
    staged: &Path,
    arguments: &Arguments,
    context: &mut CliContext,
) -> Result<BackupContents, CliError> {
    let decrypted = decrypt(file, staged, arguments, context)?;
    let line = ProgressLine::new();
    let database = staged.join(restore::DATABASE_FILE);
    let plain = decrypted.as_ref().map_or(file, |decrypted| &decrypted.0);
    let contents = unpack(plain, &database, &line.watch()).map_err(CliError::failed)?;
    drop((line, decrypted));
    let put = |name: &str, content: &[u8]| {
        let path = staged.join(name);
        write_private(&path, content).map_err(|error| CliError::unwritable(&path, &error))
    };
    match contents.text(CONFIG) {
        None => context.print(format_args!(
            "{} contains no configuration; the current one is kept.",
            file.display()
        ))?,
        Some(text) => {
            let present = fs::read_to_string(directory.config()).ok();
            let reunited = reunite(text, present.as_deref()).map_err(|error| {
                CliError::failed(format!("the configuration in {}: {error}", file.display()))
            })?;
            put(CONFIG, reunited.text.as_bytes())?;
            report(
                context,
                "Secrets kept from the current configuration",
                &reunited.kept,
            )?;
            report(
                context,
                "Generated again; copy them from config.json to the systems that use them",
                &reunited.renewed,
            )?;
            report(
                context,
                "Not in the backup; set them with `hearth config set KEY -`",
                &reunited.missing,
            )?;
        }
    }
    let files = contents.files.iter();
    for key in files.filter(|file| KEYS.contains(&file.name.as_str())) {
        put(&key.name, &key.content)?;
    }
    for file in &contents.files {
        skills::unpack(staged, &file.name, &file.content)
            .map_err(|error| CliError::failed(format!("{}: {error}", file.name)))?;
    }
    Ok(contents)
}

/// The decrypted copy of a backup, which is removed when it is dropped.
struct Decrypted(PathBuf);

impl Drop for Decrypted {
    fn drop(&mut self) {
        // The first error matters more than one of cleaning up.
        let _ = fs::remove_file(&self.0);
    }
}

/// Decrypts a backup into a file in `place`; none if it is not encrypted.
fn decrypt(
    file: &Path,
    place: &Path,
    arguments: &Arguments,
    context: &mut CliContext,
) -> Result<Option<Decrypted>, CliError> {
    let failed = |error: AgeError| CliError::failed(format!("{} {error}", file.display()));
    // Opening a FIFO would wait for its writer; what is no file is refused later.
    if !file.is_file() {
        return Ok(None);
    }
    let unread = |error| failed(AgeError::Read(error));
    let mut source = BufReader::new(File::open(file).map_err(unread)?);
    let total = fs::metadata(file).map_err(unread)?.len();
    if !source.fill_buf().map_err(unread)?.starts_with(FIRST_LINE) {
        return match arguments.has("identity") {
            true => Err(failed(AgeError::Foreign)),
            false => Ok(None),
        };
    }
    let encrypted = EncryptedFile::open(source).map_err(failed)?;
    let identity = match arguments.text("identity")? {
        Some(path) => Identity::Key(secret_key(path)?),
        None if encrypted.needs_passphrase() => {
            Identity::Passphrase(read_secret(context, "Passphrase: ")?)
        }
        None => return Err(failed(AgeError::NeedsKey)),
    };
    let decrypted = Decrypted(place.join(format!("hearth-decrypted-{}.db", reference())));
    let target = create(&decrypted.0);
    let mut target = target.map_err(|error| CliError::unwritable(&decrypted.0, &error))?;
    let line = ProgressLine::new();
    let mut watch = |done| line.note("decrypting", done, Some(total));
    let done = encrypted.decrypt(&identity, &mut target, &mut watch);
    drop(line);
    done.map_err(failed)?;
    Ok(Some(decrypted))
}

fn secret_key(path: &str) -> Result<SecretKey, CliError> {
    let text = key_file::read(Path::new(path))
        .map_err(|error| CliError::failed(format!("{path} cannot be read: {error}")))?;
    SecretKey::find(&String::from_utf8_lossy(&text)).ok_or_else(|| {
        CliError::failed(format!(
            "{path} holds no secret key, which begins with AGE-SECRET-KEY-1"
        ))
    })
}

fn report(context: &mut CliContext, what: &str, keys: &[String]) -> CliResult {
    if !keys.is_empty() {
        writeln!(context.output, "{what}: {}.", keys.join(", "))?;
    }
    Ok(())
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    create(path)?.write_all(content)
}

/// An unused name in the data directory, such as `replaced-20261121-093000`.
fn aside_name(data_dir: &Path) -> String {
    // Such as 2026-11-21T09:30:00.
    let now = Zone::system().local(Clock::system().now());
    let now = format!("{:.0}", now.unwrap_or(DateTime::MAX));
    let now = now.replace(['-', ':'], "").replace('T', "-");
    let name = format!("replaced-{now}");
    let mut free = name.clone();
    let mut number = 1;
    while data_dir.join(&free).exists() {
        number += 1;
        free = format!("{name}-{number}");
    }
    free
}

fn describe(contents: &BackupContents) -> String {
    let mut text = format!(
        "{} in {}",
        count(contents.messages, "message"),
        count(contents.conversations, "conversation")
    );
    let about: Value = contents
        .text(ABOUT)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    if let Some(made_at) = about["made_at"].as_str() {
        text.push_str(&format!(", backed up {made_at}"));
    }
    if let Some(machine) = about["machine"].as_str().filter(|name| !name.is_empty()) {
        text.push_str(&format!(" on {machine}"));
    }
    text
}
