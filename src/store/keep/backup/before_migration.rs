//! The copy that is kept of a database before its schema is migrated, so that an update
//! can be undone.

use std::error::Error;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use super::{BackupRequest, back_up};
use crate::engine::check::ProgressWatcher;
use base::files::give_to_owner_of;

/// Where the copies are, beside the database.
const FOLDER: &str = "backups";
/// Around the schema in the name of a copy.
const NAME: (&str, &str) = ("hearth-schema-", ".db");
/// Copies that are kept.
const KEPT: usize = 2;

/// Copies a database of this schema, and deletes the oldest of such copies. The caller
/// keeps others from writing to it.
pub(crate) fn keep_before_migration(
    database: &Path,
    schema: usize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = database.with_file_name(FOLDER);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(format!("{} cannot be created: {error}", folder.display()).into());
        }
        _ => give_to_owner_of(database, &folder)?,
    }
    let target = folder.join(format!("{}{schema}{}", NAME.0, NAME.1));
    let request = BackupRequest {
        database,
        target: &target,
        // From an update that was undone, or did not end.
        overwrite: true,
        files: Vec::new(),
        encryption: None,
    };
    let watch: ProgressWatcher = Arc::new(|_| true);
    back_up(request, &watch)?;
    give_to_owner_of(database, &target)?;
    log::info!(
        "the database before the upgrade is kept in {}",
        target.display()
    );
    delete_old(&folder, schema);
    Ok(())
}

/// Deletes all copies but the one of this schema and the newest others.
fn delete_old(folder: &Path, schema: usize) {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut others: Vec<usize> = names
        .filter_map(|entry| schema_of(entry.file_name().to_str()?))
        .filter(|other| *other != schema)
        .collect();
    others.sort_unstable_by(|one, other| other.cmp(one));
    for old in others.iter().skip(KEPT - 1) {
        let path = folder.join(format!("{}{old}{}", NAME.0, NAME.1));
        if let Err(error) = fs::remove_file(&path) {
            log::warn!("{} cannot be deleted: {error}", path.display());
        }
    }
}

/// The schema in the name of a copy.
fn schema_of(name: &str) -> Option<usize> {
    name.strip_prefix(NAME.0)?
        .strip_suffix(NAME.1)?
        .parse()
        .ok()
}
