//! What the first start makes: a configuration and the first user.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use super::data_directory::DataDirectory;
use super::password;
use super::{Context, Failure};
use crate::clock::Clock;
use crate::config::{self, Settings};
use crate::secret::Secret;
use crate::service;
use crate::store::{Store, UserRole};

/// The name of the first user.
pub const ADMIN: &str = "admin";

/// What was made.
#[derive(Debug, Default)]
pub struct Made {
    /// The configuration file.
    pub config: bool,
    /// The user `admin`.
    pub admin: bool,
    /// That user's password, when it was generated: to be shown now or never.
    pub password: Option<Secret>,
}

/// Makes what a data directory lacks to be served from. The configuration is
/// written last: once it is there, a first start has been completed, and later
/// ones cost nothing here.
pub fn prepare(
    directory: &DataDirectory,
    clock: &Clock,
    context: &Context,
) -> Result<Made, Failure> {
    let mut made = Made::default();
    let has_config = directory.config().exists();
    if has_config && directory.database().exists() {
        return Ok(made);
    }
    if has_config {
        // Somebody brought a configuration. If it is wrong the start fails, and
        // must do so before a password is made that nobody would remember.
        Settings::load(&directory.config()).map_err(Failure::failed)?;
    }
    let given = context.variable("HEARTH_ADMIN_PASSWORD").map(Secret::new);
    if let Some(password) = &given {
        password::check(password).map_err(|failure| match failure {
            Failure::Failed(message) => {
                Failure::Failed(format!("HEARTH_ADMIN_PASSWORD: {message}"))
            }
            other => other,
        })?;
    }
    let store = Store::open(&directory.database(), clock.clone()).map_err(Failure::failed)?;
    if store.users()?.is_empty() {
        let password = given.clone().unwrap_or_else(Secret::random_password);
        let hash = service::password::hash(&password)?;
        store.add_user(ADMIN, UserRole::Admin, &hash)?;
        made.admin = true;
        made.password = given.is_none().then_some(password);
    }
    store.close();
    if !has_config {
        write_config(directory).map_err(|error| {
            Failure::failed(format!(
                "{} cannot be written: {error}",
                directory.config().display()
            ))
        })?;
        made.config = true;
    }
    Ok(made)
}

/// Writes the configuration whole or not at all, for its owner only: it is
/// where API keys will be.
fn write_config(directory: &DataDirectory) -> io::Result<()> {
    let path = directory.config();
    let temporary = path.with_extension("json.new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(config::first_run_text().as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, &path)?;
    fs::File::open(directory.path())?.sync_all()
}
