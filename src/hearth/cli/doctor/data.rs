//! The data directory, its database, disk and log, the clock, and the running server.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::health;
use crate::cli::progress::size;
use crate::cli::running_server::RunningServer;
use crate::cli::table::time;
use crate::server::door::connect;
use crate::server::{StartError, check_ports};
use base::clock::{Clock, Timestamp};
use config::Settings;
use store::{Examination, examine};

/// Time limit of the check of the database.
const EXAMINATION: Duration = Duration::from_secs(60);
const MB: u64 = 1_000_000;
/// With less free space the server will soon refuse messages.
const LITTLE_SPACE: u64 = 50 * MB;
/// With less free space somebody should see what fills the disk.
const SOME_SPACE: u64 = 500 * MB;
/// Files that must still fit on the disk: SQLite makes and removes some.
const FEW_FILES: u64 = 100;
/// The log keeps 25 MB; older versions kept more.
const LARGE_LOG: u64 = 30 * MB;
/// 2026-01-01T00:00:00Z: no version of Hearth is older.
const BEGINNING: i64 = 1_767_225_600_000;
/// How far clocks may differ.
const SKEW: Duration = Duration::from_secs(10 * 60);

/// Who owns the directory and its files, and who can read them.
pub fn directory(installation: &Installation<'_>) -> Vec<Diagnosis> {
    let path = installation.directory.path();
    let shown = path.display();
    let status = match fs::metadata(path) {
        Ok(status) => status,
        Err(error) => {
            return vec![
                Diagnosis::problem(format!("{shown} cannot be read: {error}"))
                    .advise("run this as the user who runs hearth"),
            ];
        }
    };
    let mut found = Vec::new();
    if access(path, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        found.push(
            Diagnosis::problem(format!("{shown} is not writable by this user")).advise(format!(
                "chown -R USER {shown}, for the user who runs hearth"
            )),
        );
    }
    if status.mode() & 0o077 != 0 {
        found.push(
            Diagnosis::warning(format!("others on this machine can read {shown}"))
                .advise(format!("chmod 700 {shown}")),
        );
    }
    for name in ["config.json", "hearth.db", "hearth.db-wal", "hearth.log"] {
        let file = path.join(name);
        let Ok(file_status) = fs::metadata(&file) else {
            continue;
        };
        let file = file.display();
        if file_status.uid() != status.uid() {
            let text = format!("{file} and its directory have different owners");
            found
                .push(Diagnosis::problem(text).advise(format!("chown --reference={shown} {file}")));
        }
        if file_status.mode() & 0o022 != 0 {
            found.push(
                Diagnosis::warning(format!("others can write {file}"))
                    .advise(format!("chmod 600 {file}")),
            );
        }
        let is_written = name != "config.json";
        let may_write = access(path.join(name), Access::WRITE_OK).is_ok();
        if is_written && !(file_status.is_file() && may_write) {
            let text = format!("{file} is not a file that this user may write");
            let advice =
                format!("give it to the user who runs hearth; if it is none: mv {file} /tmp");
            found.push(Diagnosis::problem(text).advise(advice));
        }
    }
    if found.is_empty() {
        found.push(Diagnosis::ok(format!("{shown} is private")));
    }
    found
}

/// Whether the database is intact, and its newest message is not from the future: a
/// clock that is slow sorts new messages before old ones.
pub fn database(installation: &Installation<'_>) -> Vec<Diagnosis> {
    let path = installation.directory.database();
    let shown = path.display();
    if !path.exists() {
        return vec![
            Diagnosis::warning(format!("{shown} does not exist yet"))
                .advise("`hearth serve` creates it at its first start"),
        ];
    }
    let restore = format!(
        "stop the server, then: hearth restore{} BACKUP",
        installation.option
    );
    let size = size(fs::metadata(&path).map_or(0, |status| status.len()));
    match examine(&path, EXAMINATION) {
        Err(error) if error.is_damage() => {
            vec![Diagnosis::problem(error.to_string()).advise(restore.as_str())]
        }
        // The error says what to do.
        Err(error) => vec![Diagnosis::problem(error.to_string())],
        Ok(Examination {
            faults,
            is_complete,
            last_message_at,
            schema,
            missing_migrations,
        }) => {
            let first = match (faults.as_slice(), is_complete) {
                ([], true) => Diagnosis::ok(format!("{shown} is intact ({size})")),
                ([], false) => Diagnosis::warning(format!(
                    "{shown} ({size}) could not be checked completely within a minute"
                ))
                .advise(format!("sqlite3 {shown} 'PRAGMA integrity_check'")),
                (faults, _) => {
                    let text = format!("{shown} is damaged: {}", faults.join("; "));
                    Diagnosis::problem(text).advise(restore.as_str())
                }
            };
            let mut found = vec![first];
            if missing_migrations > 0 {
                let text = format!(
                    "{shown} was made by an older Hearth (schema {schema}; this one makes {})",
                    schema + missing_migrations
                );
                found.push(Diagnosis::warning(text).advise(
                    "start the server, or restart it: it upgrades the database, and keeps a copy first",
                ));
            }
            found.extend(
                last_message_at.and_then(|newest| backwards(newest, Clock::system().now())),
            );
            found
        }
    }
}

/// What is wrong when the newest message is from the future.
fn backwards(newest: Timestamp, now: Timestamp) -> Option<Diagnosis> {
    (newest.since(now) > SKEW).then(|| {
        let text = format!(
            "the clock says {}, but the newest message is from {}",
            time(now),
            time(newest)
        );
        Diagnosis::problem(text).of("clock").advise(SET_CLOCK)
    })
}

const SET_CLOCK: &str = "timedatectl set-ntp true   (or set the time with `date -s`)";

/// Whether the clock is plausible. No time server is asked.
pub fn clock(_: &Installation<'_>) -> Vec<Diagnosis> {
    let now = Clock::system().now();
    let program = std::env::current_exe().and_then(fs::metadata);
    let installed = program.and_then(|status| status.modified()).ok();
    let installed = installed.and_then(|time| {
        let millis = time.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
        i64::try_from(millis).ok().map(Timestamp::from_millis)
    });
    vec![judge_clock(now, installed)]
}

fn judge_clock(now: Timestamp, installed: Option<Timestamp>) -> Diagnosis {
    if now < Timestamp::from_millis(BEGINNING) {
        let text = format!(
            "the clock says {}, which is wrong: secure connections will fail",
            time(now)
        );
        return Diagnosis::problem(text).advise(SET_CLOCK);
    }
    let text = format!("the clock says {}", time(now));
    match installed.filter(|installed| installed.since(now) > SKEW) {
        None => Diagnosis::ok(text),
        Some(installed) => Diagnosis::problem(format!(
            "{text}, but this program was installed at {}",
            time(installed)
        ))
        .advise(SET_CLOCK),
    }
}

/// Whether the disk is writable and has space.
pub fn disk(installation: &Installation<'_>) -> Vec<Diagnosis> {
    let path = installation.directory.path();
    let shown = path.display();
    match statvfs(path) {
        Err(error) => {
            let error = io::Error::from(error);
            vec![Diagnosis::warning(format!(
                "cannot read the state of the disk of {shown}: {error}"
            ))]
        }
        Ok(disk) if disk.f_flag.contains(StatVfsMountFlags::RDONLY) => vec![
            Diagnosis::problem(format!("the disk of {shown} is mounted read-only"))
                .advise("a failing SD card is mounted read-only: see `dmesg`, then copy it"),
        ],
        Ok(disk) => {
            // A file system that does not count its files reports 0 of 0.
            let files = (disk.f_files > 0).then_some(disk.f_favail);
            vec![judge_disk(
                path,
                disk.f_bavail.saturating_mul(disk.f_frsize),
                files,
            )]
        }
    }
}

fn judge_disk(path: &Path, free: u64, files: Option<u64>) -> Diagnosis {
    let shown = path.display();
    let text = format!("{} free for {shown}", size(free));
    let look = format!("see what fills it: du -xh --max-depth=2 {shown}");
    if files.is_some_and(|files| files < FEW_FILES) {
        let text = format!("the disk of {shown} has no room for more files (inodes)");
        return Diagnosis::problem(text).advise("remove unneeded small files");
    }
    match free {
        ..LITTLE_SPACE => Diagnosis::problem(text).advise(look),
        LITTLE_SPACE..SOME_SPACE => Diagnosis::warning(text).advise(look),
        _ => Diagnosis::ok(text),
    }
}

/// The size of the log.
pub fn log(installation: &Installation<'_>) -> Vec<Diagnosis> {
    let path = installation.directory.log();
    let entries = fs::read_dir(installation.directory.path())
        .into_iter()
        .flatten()
        .flatten();
    let is_log = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()
            .is_some_and(|name| name.starts_with("hearth.log"))
    };
    let parts = entries.filter(is_log);
    let total: u64 = parts
        .map(|part| part.metadata().map_or(0, |status| status.len()))
        .sum();
    let text = format!("{} and its older parts: {}", path.display(), size(total));
    vec![if total < LARGE_LOG {
        Diagnosis::ok(text)
    } else {
        Diagnosis::warning(text).advise("remove unneeded parts; the server keeps 25 MB")
    }]
}

/// Whether a server that does not run yet could listen.
pub fn ports(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let path = installation.directory.path();
    if RunningServer::find(installation.directory).is_some() || connect(path).is_ok() {
        return Vec::new();
    }
    let taken = check_ports(&settings.current(), None, None).err();
    let warn = |error: StartError| {
        Diagnosis::warning(error.to_string()).advise("`ss -ltnp` shows which program listens where")
    };
    taken.map(warn).into_iter().collect()
}

/// Whether the server that runs on the data directory answers.
pub fn server(installation: &Installation<'_>) -> Vec<Diagnosis> {
    let Some(server) = RunningServer::find(installation.directory) else {
        let path = installation.directory.path().display();
        if connect(installation.directory.path()).is_ok() {
            let text = format!("a server runs on {path}, and hearth.lock there does not name it");
            return vec![
                Diagnosis::warning(text).advise("restart it, which writes the file again"),
            ];
        }
        let start = format!("hearth serve{}", installation.option);
        let text = format!("no server is running on {path}");
        return vec![Diagnosis::warning(text).advise(start)];
    };
    let subject = format!("the server (process {})", server.process());
    let wrong = |text| vec![Diagnosis::problem(text).advise(installation.see_log())];
    let Some(url) = server.url() else {
        return wrong(format!("{subject} is not listening"));
    };
    match health::ask(&url, &server.trust()) {
        Ok(_) => vec![Diagnosis::ok(format!("{subject} answers at {url}"))],
        Err(said) => wrong(format!("the server is not healthy: {said}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::diagnosis::Level;
    use super::*;

    #[test]
    fn an_implausible_clock_is_a_problem() {
        let at = Timestamp::from_millis;
        let day = 24 * 60 * 60 * 1000;
        for (now, installed, level) in [
            (0, None, Level::Problem),
            (BEGINNING - 1, None, Level::Problem),
            (BEGINNING + day, None, Level::Ok),
            (BEGINNING + day, Some(BEGINNING), Level::Ok),
            (BEGINNING + day, Some(BEGINNING + 2 * day), Level::Problem),
            (BEGINNING + day, Some(BEGINNING + day + 1000), Level::Ok),
        ] {
            let found = judge_clock(at(now), installed.map(at));
            assert_eq!(found.level, level, "{now} {installed:?}");
            assert_eq!(found.advice.is_empty(), level == Level::Ok);
        }
        assert!(backwards(at(BEGINNING + day), at(BEGINNING)).is_some());
        assert!(backwards(at(BEGINNING), at(BEGINNING + day)).is_none());
    }

    #[test]
    fn little_disk_space_is_a_problem() {
        for (free, files, level) in [
            (0, None, Level::Problem),
            (LITTLE_SPACE - 1, None, Level::Problem),
            (LITTLE_SPACE, None, Level::Warning),
            (SOME_SPACE, None, Level::Ok),
            (SOME_SPACE, Some(0), Level::Problem),
            (SOME_SPACE, Some(1_000_000), Level::Ok),
        ] {
            let found = judge_disk(Path::new("/srv"), free, files);
            assert_eq!(found.level, level, "{free} {files:?}");
            assert!(found.text.contains("/srv"), "{}", found.text);
        }
    }
}
