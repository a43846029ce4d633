//! The backups that the server makes automatically at night.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Service;
use super::backup_contents::enclosed;
use base::age::{FIRST_LINE, Recipient};
use base::calendar::Zone;
use base::clock::Timestamp;
use base::error::Error;
use base::sync::lock;
use config::{Backup, TimeOfDay};
use net::cancel::Cancel;
use net::task::Task;
use protocol::attachment::encode;
use protocol::command::DownloadBackup;
use protocol::record::{BackupStatus, NightlyBackup};
use serde_json::{Value, json};
use store::{
    BackupEncryption, BackupRequest, BackupSummary, PARTIAL, ProgressWatcher, SNAPSHOT_PIECE,
    back_up, check_integrity,
};

/// How often the timekeeper checks whether a backup is due.
const LOOK: Duration = Duration::from_secs(60);
/// How long after a failure the next attempt is made.
const RETRY: Duration = Duration::from_secs(3600);
/// Where nightly backups go in the data directory when nothing else is set.
const DIRECTORY: &str = "backups";
/// Backups that are listed when one is needed.
const LISTED: usize = 3;
/// Around the date in the name of a nightly backup.
const NAME: (&str, &str) = ("hearth-nightly-", ".db");
/// What follows it in that of an encrypted one.
const ENCRYPTED: &str = ".age";
/// Where the nightly backups of a data directory are.
pub fn directory(config: &Backup, data_dir: &Path) -> PathBuf {
    let own = config.directory.clone();
    own.unwrap_or_else(|| data_dir.join(DIRECTORY))
}

/// The nightly backups in a directory with their dates, newest first; none when it
/// cannot be read.
pub fn nightly_backups(directory: &Path) -> Vec<(Date, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<(Date, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        if let Some(night) = entry.file_name().to_str().and_then(night_of) {
            let place = found.partition_point(|(other, _)| *other > night);
            found.insert(place, (night, entry.path()));
        }
    }
    found
}

fn night_of(name: &str) -> Option<Date> {
    let plain = name.strip_suffix(ENCRYPTED).unwrap_or(name);
    let date = plain.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?;
    date.parse()
        .ok()
        .filter(|night: &Date| night.to_string() == date)
}

fn name_of(night: Date, config: &Backup) -> String {
    let ending = config.encrypt_to.map_or("", |_| ENCRYPTED);
    format!("{}{night}{}{ending}", NAME.0, NAME.1)
}

/// The name of a nightly backup in its directory.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What to do about a damaged database: lines to append to the error message.
pub fn how_to_restore(config: &Backup, data_dir: &Path) -> String {
    let directory = directory(config, data_dir);
    let backups = nightly_backups(&directory);
    let restore = format!("hearth restore --data-dir {}", data_dir.display());
    let mut text = String::from("\nNothing was changed. ");
    match backups.first() {
        None => text.push_str(&format!(
            "There are no nightly backups in {}. With a backup from elsewhere:\n  {restore} FILE",
            directory.display()
        )),
        Some((_, newest)) => {
            text.push_str("The newest backups:\n");
            for (_, path) in backups.iter().take(LISTED) {
                text.push_str(&format!("  {}\n", path.display()));
            }
            text.push_str(&format!(
                "To return to the newest and set the present data aside:\n  {restore} {}{}",
                newest.display(),
                match file_name(newest).ends_with(ENCRYPTED) {
                    true => " --identity KEYFILE",
                    false => "",
                }
            ));
        }
    }
    text
}

/// The latest night whose backup time has come, and that time.
fn latest_night(now: Timestamp, at: TimeOfDay, zone: &TimeZone) -> Option<(Date, Timestamp)> {
    let local = jiff::Timestamp::from_millisecond(now.as_millis())
        .ok()?
        .to_zoned(zone.clone());
    let begin = |night: Date| {
        let moment = night
            .at(at.hour, at.minute, 0, 0)
            .to_zoned(zone.clone())
            .ok()?;
        Some(Timestamp::from_millis(moment.timestamp().as_millisecond()))
    };
    let today = begin(local.date())?;
    if today <= now {
        return Some((local.date(), today));
    }
    let yesterday = local.date().yesterday().ok()?;
    Some((yesterday, begin(yesterday)?))
}

/// Whether a backup is dated later than any that can have been made up to this night
/// in any time zone: the clock was ahead then.
fn is_ahead(made: Date, night: Date) -> bool {
    night.tomorrow().is_ok_and(|next| made > next)
}

/// How the nightly backups go.
#[derive(Default)]
pub(super) struct BackupProgress {
    /// Why the last one failed, if it did.
    problem: Option<String>,
    /// Whether somebody wants one at once.
    is_wanted: bool,
    is_running: bool,
}

/// Starts a backup when one is due, on its own thread, which ends with the
/// timekeeper.
pub(super) struct Nightly {
    look_at: Instant,
    /// The last night of which no backup is kept to show that the database was checked: it
    /// was, or it was over when the server started.
    checked: Option<Date>,
    running: Option<Task<bool>>,
}

impl Nightly {
    pub fn new() -> Nightly {
        Nightly {
            look_at: Instant::now(),
            checked: None,
            running: None,
        }
    }

    /// Checks at the next tick, because the clock has jumped.
    pub fn look_now(&mut self) {
        self.look_at = Instant::now();
    }

    /// Starts a backup if one is due and none runs.
    pub fn tick(&mut self, service: &Arc<Service>) {
        if let Some(task) = self.running.take_if(|task| task.is_over())
            && task.stop() != Some(true)
        {
            self.look_at = Instant::now() + RETRY;
        }
        if self.running.is_some() {
            return;
        }
        let is_wanted = {
            let mut backup = lock(&service.backup);
            backup.is_running = std::mem::take(&mut backup.is_wanted);
            backup.is_running
        };
        if !is_wanted && Instant::now() < self.look_at {
            return;
        }
        self.look_at = Instant::now() + LOOK;
        let night = match is_wanted {
            true => service.night_of_today().map(|(night, _)| night),
            false => service.due_night(&mut self.checked),
        };
        let Some(night) = night else {
            return;
        };
        lock(&service.backup).is_running = true;
        let service = Arc::clone(service);
        let work = move |cancel: &Cancel| {
            let cancel = cancel.clone();
            service.back_up_at_night(night, &(Arc::new(move |_| !cancel.is_cancelled()) as _))
        };
        match Task::start("nightly-backup", &Cancel::default(), work) {
            Ok(task) => self.running = Some(task),
            Err(error) => log::warn!("nightly backup: no thread: {error}"),
        }
    }

    /// Stops the backup under way, if there is one, and joins its thread.
    pub fn stop(&mut self) {
        self.running = None;
    }
}

impl Service {
    /// The backups that were made at night, the newest first.
    pub(super) fn list_backups(&self) -> Result<Value, Error> {
        self.settings.check_is_set("backup.directory")?;
        let directory = directory(&self.settings.current().backup, &self.data_dir);
        let backups = nightly_backups(&directory)
            .into_iter()
            .map(|(night, path)| NightlyBackup {
                name: file_name(&path),
                night: night.to_string(),
                bytes: fs::metadata(path).map_or(0, |about| about.len()),
            });
        let progress = lock(&self.backup);
        Ok(json!({
            "backups": backups.collect::<Vec<_>>(),
            "directory": directory.display().to_string(),
            "is_running": progress.is_wanted || progress.is_running,
            "problem": progress.problem.clone(),
        }))
    }

    /// A part of the newest encrypted backup, which has this name. It was encrypted to the key
    /// that the owner of the machine set; what is not encrypted leaves the machine for nobody.
    pub(super) fn download_backup(&self, wanted: &DownloadBackup) -> Result<Value, Error> {
        self.settings.check_is_set("backup.directory")?;
        let directory = directory(&self.settings.current().backup, &self.data_dir);
        let mut paths = nightly_backups(&directory)
            .into_iter()
            .map(|(_, path)| path);
        let newest = paths.find(|path| file_name(path).ends_with(ENCRYPTED));
        let newest = newest.filter(|path| file_name(path) == wanted.name);
        let path = newest.ok_or_else(|| {
            Error::not_found(format!(
                "{:?} is not the newest encrypted backup",
                wanted.name
            ))
        })?;
        let unread = |error: std::io::Error| {
            Error::server(
                "the backup cannot be read",
                format!("{}: {error}", path.display()),
            )
        };
        let file = File::open(&path).map_err(unread)?;
        let bytes = file.metadata().map_err(unread)?.len();
        let mut first = [0; FIRST_LINE.len()];
        file.read_exact_at(&mut first, 0).map_err(unread)?;
        if first != FIRST_LINE {
            return Err(unread(std::io::Error::other("it is not encrypted")));
        }
        let begin = wanted.part.saturating_mul(SNAPSHOT_PIECE).min(bytes);
        let mut data = vec![0; SNAPSHOT_PIECE.min(bytes - begin) as usize];
        file.read_exact_at(&mut data, begin).map_err(unread)?;
        Ok(json!({
            "part": wanted.part,
            "data": encode(&data),
            "done": begin + data.len() as u64 == bytes,
            "bytes": bytes,
        }))
    }

    /// Has the timekeeper make the backup of the night now.
    pub(super) fn start_backup(&self) -> Result<Value, Error> {
        if self.settings.current().backup.keep == 0 {
            return Err(Error::invalid_request(
                "nightly backups are off; `hearth config set backup.keep 7` turns them on",
            ));
        }
        lock(&self.backup).is_wanted = true;
        Ok(json!({ "started": true }))
    }

    /// The latest night whose backup time has come, and that time.
    fn night_of_today(&self) -> Option<(Date, Timestamp)> {
        let at = self.settings.current().backup.at;
        latest_night(self.clock.now(), at, Zone::system().rules())
    }

    /// The night whose backup has yet to be made, or whose check where no backup is kept. A
    /// night before the first user was added needs none.
    fn due_night(&self, checked: &mut Option<Date>) -> Option<Date> {
        let config = &self.settings.current().backup;
        let (night, hour) = self.night_of_today()?;
        if config.keep == 0 {
            let last = checked.replace(night);
            return last.is_some_and(|last| last != night).then_some(night);
        }
        let since = match self.store.in_use_since() {
            Ok(since) => since.uncommitted()?,
            Err(error) => {
                log::warn!("nightly backup: {error}");
                return None;
            }
        };
        let made = nightly_backups(&directory(config, &self.data_dir));
        let is_made = made
            .iter()
            .any(|(made, _)| *made >= night && !is_ahead(*made, night));
        (since < hour && !is_made).then_some(night)
    }

    /// Makes the backup of a night and deletes the oldest beyond `backup.keep`; where none is
    /// kept, checks the database. Returns whether it succeeded.
    fn back_up_at_night(&self, night: Date, watch: &ProgressWatcher) -> bool {
        let config = self.settings.current();
        let began = Instant::now();
        let made = match config.backup.keep {
            0 => check(&self.data_dir.join("hearth.db"), watch)
                .map(|()| None)
                .map_err(|damage| format!("{damage}: restore a backup")),
            _ => self.try_back_up(&config.backup, night, watch).map(Some),
        };
        let problem = match made {
            Ok(None) => None,
            Ok(Some(made)) => {
                log::info!(
                    "nightly backup: {} with {} messages, {} bytes, in {:?}",
                    name_of(night, &config.backup),
                    made.messages,
                    made.bytes,
                    began.elapsed()
                );
                None
            }
            Err(problem) => {
                log::warn!("nightly backup: {problem}");
                Some(problem)
            }
        };
        let is_good = problem.is_none();
        lock(&self.backup).problem = problem;
        is_good
    }

    fn try_back_up(
        &self,
        config: &Backup,
        night: Date,
        watch: &ProgressWatcher,
    ) -> Result<BackupSummary, String> {
        let directory = directory(config, &self.data_dir);
        match &config.directory {
            // While its disk is not mounted, a backup would fill the disk below.
            Some(_) if !directory.is_dir() => {
                return Err(format!(
                    "{} does not exist; is its disk mounted?",
                    directory.display()
                ));
            }
            Some(_) => {}
            // Nor is a missing data directory created again.
            None => match DirBuilder::new().mode(0o700).create(&directory) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(format!(
                        "{} cannot be created: {error}",
                        directory.display()
                    ));
                }
                _ => {}
            },
        }
        let database = self.data_dir.join("hearth.db");
        check_space(&database, &directory)?;
        let encryption = config.encrypt_to.map(|key| BackupEncryption {
            recipient: Recipient::Key(key),
            directory: &self.data_dir,
        });
        if encryption.is_some() {
            check_space(&database, &self.data_dir)?;
        }
        let (files, left_out) = enclosed(&self.data_dir, false, self.clock.now());
        if let Some(reason) = left_out {
            log::warn!("nightly backup: {reason}");
        }
        let target = directory.join(name_of(night, config));
        let overwrite = target.exists();
        if overwrite {
            // The one that is there is lost only to one that is whole.
            check(&database, watch)?;
        }
        let order = BackupRequest {
            database: &database,
            target: &target,
            overwrite,
            files,
            encryption,
        };
        let made = back_up(order, watch).map_err(|error| error.to_string())?;
        // What an encrypted one holds was checked before it was encrypted.
        if config.encrypt_to.is_none()
            && let Err(damage) = check(&target, watch)
        {
            let removed = fs::remove_file(&target);
            removed.map_err(|error| format!("{}: {error}", target.display()))?;
            return Err(format!(
                "{damage}; older backups are kept: restore one of them"
            ));
        }
        let (replaced, others): (Vec<_>, Vec<_>) = nightly_backups(&directory)
            .into_iter()
            // That of this night from before `backup.encrypt_to` was changed.
            .partition(|(made, path)| *made == night && *path != target);
        let (ahead, old): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|(made, _)| is_ahead(*made, night));
        let too_old = old.into_iter().chain(ahead).skip(config.keep);
        for (_, path) in replaced.into_iter().chain(too_old) {
            fs::remove_file(&path)
                .map_err(|error| format!("{} cannot be deleted: {error}", path.display()))?;
        }
        remove_leftovers(&directory);
        Ok(made)
    }

    /// For `server_info`: the newest nightly backup, and the last failure.
    pub(super) fn backup_status(&self) -> BackupStatus {
        let config = &self.settings.current().backup;
        let newest = nightly_backups(&directory(config, &self.data_dir));
        BackupStatus {
            keep: config.keep as u64,
            newest: newest.first().map(|(night, _)| night.to_string()),
            problem: lock(&self.backup).problem.clone(),
        }
    }
}

/// Checks a whole database, until the watcher stops it.
fn check(database: &Path, watch: &ProgressWatcher) -> Result<(), String> {
    let faults = check_integrity(database, watch).map_err(|error| error.to_string())?;
    match faults.unwrap_or_default().first() {
        Some(fault) => Err(format!("the database is damaged ({fault})")),
        None => Ok(()),
    }
}

/// Deletes unfinished nightly backups that a crash has left.
fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let night = name
            .to_str()
            .and_then(|name| night_of(name.strip_suffix(PARTIAL)?));
        if night.is_some() {
            // The next night tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Leaves as much free space as the backup takes.
fn check_space(database: &Path, directory: &Path) -> Result<(), String> {
    let needed = fs::metadata(database).map_or(0, |about| about.len());
    let Ok(about) = rustix::fs::statvfs(directory) else {
        return Ok(());
    };
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    if free / 2 < needed {
        return Err(format!(
            "{} has {free} bytes free, and the backup would take {needed}: too little would be left \
             for the server; free some space, or set backup.directory to another disk",
            directory.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_nights_are_ours() {
        for (name, night) in [
            ("hearth-nightly-2026-11-21.db", Some("2026-11-21")),
            ("hearth-nightly-2026-11-21.db.age", Some("2026-11-21")),
            ("hearth-nightly-2026-11-21.age", None),
            ("hearth-nightly-2026-11-21.db.partial", None),
            ("hearth-nightly-2026-11-31.db", None),
            ("hearth-nightly-20261121.db", None),
            ("hearth-2026-11-21.db", None),
            ("hearth.db", None),
        ] {
            let found = night_of(name).map(|night| night.to_string());
            assert_eq!(found.as_deref(), night, "{name}");
        }
    }

    #[test]
    fn a_night_begins_at_its_hour_where_the_household_is() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = TimeOfDay {
            hour: 3,
            minute: 30,
        };
        for (now, expected) in [
            ("2026-11-21T01:29:59Z", "2026-11-20"),
            ("2026-11-21T01:30:00Z", "2026-11-21"),
            ("2026-11-21T23:00:00Z", "2026-11-21"),
            ("2026-11-22T01:30:00Z", "2026-11-22"),
        ] {
            let parsed: jiff::Timestamp = now.parse().unwrap();
            let now_here = Timestamp::from_millis(parsed.as_millisecond());
            let (night, hour) = latest_night(now_here, at, &zone).unwrap();
            assert_eq!(night.to_string(), expected, "{now}");
            assert!(hour <= now_here);
        }
    }
}
