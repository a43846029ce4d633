//! Whether the database is whole and backed up.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Diagnosis, Level, Scene};
use crate::cli::progress::ProgressLine;
use crate::server::DATABASE_FILE;
use crate::service::backups::{directory, how_to_restore, nightly_backups};
use crate::store::check_integrity;

/// How old the newest nightly backup may be: a machine may be off for a night.
const STALE: Duration = Duration::from_secs(3 * 24 * 60 * 60);

/// Reads the whole database, and looks for a recent backup of it.
pub fn check(scene: &Scene<'_>) -> Vec<Diagnosis> {
    let config = scene.settings.path();
    let data_dir = config.parent().unwrap_or(Path::new("."));
    let database = data_dir.join(DATABASE_FILE);
    if !database.exists() {
        return Vec::new();
    }
    vec![
        integrity(scene, data_dir, &database),
        backups(scene, data_dir),
    ]
}

fn integrity(scene: &Scene<'_>, data_dir: &Path, database: &Path) -> Diagnosis {
    let line = ProgressLine::new();
    let checked = check_integrity(database, &line.watch());
    drop(line);
    let path = database.display();
    let (level, text, advice) = match checked {
        Ok(Some(findings)) if findings.is_empty() => {
            (Level::Ok, format!("{path} is whole"), Vec::new())
        }
        Ok(Some(findings)) => {
            let backup = &scene.settings.current().backup;
            let advice = how_to_restore(backup, data_dir);
            let advice = advice.trim_start().lines().map(str::to_owned).collect();
            (
                Level::Problem,
                format!("{path} is damaged: {}", findings.join("; ")),
                advice,
            )
        }
        Ok(None) => (
            Level::Warning,
            format!("{path} was not read to its end"),
            Vec::new(),
        ),
        Err(error) => (Level::Problem, error.to_string(), Vec::new()),
    };
    Diagnosis {
        check: "database",
        level,
        text,
        advice,
    }
}

fn backups(scene: &Scene<'_>, data_dir: &Path) -> Diagnosis {
    let backup = &scene.settings.current().backup;
    let place = directory(backup, data_dir);
    let newest = nightly_backups(&place).into_iter().next();
    let today = Timestamp::now().to_zoned(TimeZone::system()).date();
    let age = newest
        .as_ref()
        .map(|(night, _)| today.duration_since(*night));
    let (level, text, advice) = match (backup.keep, newest, age) {
        (0, ..) => (
            Level::Ok,
            "nightly backups are off".to_owned(),
            vec![format!("hearth config set{} backup.keep 7", scene.option)],
        ),
        (_, Some((_, path)), Some(age)) if age.unsigned_abs() <= STALE => (
            Level::Ok,
            format!("the newest nightly backup is {}", path.display()),
            Vec::new(),
        ),
        (_, Some((night, _)), _) => (
            Level::Warning,
            format!("the newest nightly backup is of {night}"),
            vec![format!(
                "Run the server at night, or see its log for why {} has none",
                place.display()
            )],
        ),
        (_, None, _) => (
            Level::Ok,
            format!("there is no nightly backup in {} yet", place.display()),
            Vec::new(),
        ),
    };
    Diagnosis {
        check: "backup",
        level,
        text,
        advice,
    }
}
