//! The first start creates a configuration and the first user.

use std::fs;
use std::sync::Arc;

use super::context::CliError;
use super::data_directory::DataDirectory;
use super::password;
use crate::service;
use base::clock::Clock;
use base::secret::Secret;
use config::{self, Config, Settings};
use store::{Store, UserRole};

/// The name of the first user.
pub const ADMIN: &str = "admin";

/// What a first run created.
#[derive(Debug, Default)]
pub struct FirstRun {
    /// The configuration file.
    pub config: bool,
    /// The user `admin`.
    pub admin: bool,
    /// That user's generated password, which must be shown now.
    pub password: Option<Secret>,
}

/// The configuration with which the first start would serve; none when the first run
/// is complete.
///
/// # Errors
///
/// The existing configuration is invalid.
pub fn config_to_be(directory: &DataDirectory) -> Result<Option<Arc<Config>>, CliError> {
    let path = directory.config();
    if is_complete(directory) {
        return Ok(None);
    }
    let settings = match path.exists() {
        true => Settings::load(&path),
        false => Settings::from_text(&path, &config::first_run(), |_| None),
    };
    Ok(Some(settings.map_err(CliError::failed)?.current()))
}

fn is_complete(directory: &DataDirectory) -> bool {
    // A crash or a failed copy may leave an empty file.
    let has_database = fs::metadata(directory.database()).is_ok_and(|file| file.len() > 0);
    directory.config().exists() && has_database
}

/// Creates what a data directory lacks. `given` is the first user's password, if the
/// owner chose one. The configuration is written last: once it exists, the first
/// run is complete.
///
/// # Errors
///
/// A file is invalid or cannot be written, or the password is too short.
pub fn prepare(
    directory: &DataDirectory,
    clock: &Clock,
    given: Option<Secret>,
) -> Result<FirstRun, CliError> {
    let mut made = FirstRun::default();
    if is_complete(directory) {
        return Ok(made);
    }
    if directory.config().exists() {
        // If an existing configuration is invalid, the start must fail before it
        // generates a password.
        Settings::load(&directory.config()).map_err(CliError::failed)?;
    }
    if let Some(password) = &given {
        password::check(password).map_err(|failure| match failure {
            CliError::Failed(message) => {
                CliError::Failed(format!("HEARTH_ADMIN_PASSWORD: {message}"))
            }
            other => other,
        })?;
    }
    let store = Store::open(&directory.database(), clock.clone()).map_err(CliError::failed)?;
    if store.users()?.is_empty() {
        let password = given.clone().unwrap_or_else(Secret::random_password);
        let hash = service::password::hash(&password)?;
        store.add_user(ADMIN, UserRole::Admin, &hash)?;
        made.admin = true;
        made.password = given.is_none().then_some(password);
    }
    store.close();
    made.config = config::write_first_run(&directory.config()).map_err(CliError::failed)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;

    #[test]
    fn a_first_run_happens_once() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let clock = Clock::system();
        let made = prepare(&directory, &clock, None).unwrap();
        assert!(made.config && made.admin);
        assert!(password::check(&made.password.unwrap()).is_ok());
        let mode = fs::metadata(directory.config())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        Settings::load(&directory.config()).expect("the written configuration is valid");

        let again = prepare(&directory, &clock, None).unwrap();
        assert!(!again.config && !again.admin && again.password.is_none());

        // Without its configuration, a directory keeps its users.
        fs::remove_file(directory.config()).unwrap();
        let again = prepare(&directory, &clock, None).unwrap();
        assert!(again.config && !again.admin);
    }

    #[test]
    fn a_given_password_is_used_and_not_shown() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let clock = Clock::system();
        assert!(prepare(&directory, &clock, Some(Secret::new("short"))).is_err());
        assert!(!directory.database().exists(), "nothing was created");
        let made = prepare(&directory, &clock, Some(Secret::new("correct horse"))).unwrap();
        assert!(made.admin && made.password.is_none());
    }

    #[test]
    fn an_invalid_configuration_is_reported_first() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        fs::write(directory.config(), "{").unwrap();
        assert!(prepare(&directory, &Clock::system(), None).is_err());
        assert!(!directory.database().exists());
    }
}
