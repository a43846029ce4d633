//! Whether the database is backed up.

use std::path::Path;
use std::time::Duration;

use jiff::civil::DateTime;
use rustix::fs::{Access, access};

use super::diagnosis::{Diagnosis, Installation};
use crate::service::backups::{directory, nightly_backups};
use base::calendar::Zone;
use base::clock::Clock;
use config::Settings;

/// Age limit of the newest backup: a machine may be off for a night or two.
const STALE: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// Looks for a recent backup of the database.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let data_dir = installation.directory.path();
    if !installation.directory.database().exists() {
        return Vec::new();
    }
    let backup = &settings.current().backup;
    let mut found = vec![newest(installation, settings, data_dir)];
    if backup.keep > 0 {
        found.extend(unwritable(&directory(backup, data_dir)));
    }
    found
}

/// A directory that is not writable, for example on a disk that is not mounted.
fn unwritable(place: &Path) -> Option<Diagnosis> {
    // The server creates the directory itself.
    let existing = place.ancestors().find(|path| path.exists())?;
    let may_write =
        existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    (!may_write).then(|| {
        let text = format!(
            "backups cannot be written to {}: {} is not a directory that this user may write to",
            place.display(),
            existing.display()
        );
        Diagnosis::problem(text)
            .advise("give it to the user who runs hearth, or change backup.directory")
    })
}

fn newest(installation: &Installation<'_>, settings: &Settings, data_dir: &Path) -> Diagnosis {
    let backup = &settings.current().backup;
    let place = directory(backup, data_dir);
    let shown = place.display();
    if backup.keep == 0 {
        let option = &installation.option;
        let advice = format!("hearth config set{option} backup.keep 7");
        return Diagnosis::ok("nightly backups are off").advise(advice);
    }
    let Some((night, path)) = nightly_backups(&place).into_iter().next() else {
        return Diagnosis::ok(format!("there is no nightly backup in {shown} yet"));
    };
    let now = Zone::system().local(Clock::system().now());
    let today = now.unwrap_or(DateTime::MAX).date();
    if today.duration_since(night).unsigned_abs() <= STALE {
        return Diagnosis::ok(format!("the newest nightly backup is {}", path.display()));
    }
    Diagnosis::warning(format!("the newest nightly backup is from {night}")).advise(format!(
        "run the server at night, or see its log for why {shown} has none"
    ))
}
