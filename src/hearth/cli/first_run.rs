//! The first start creates a configuration and the first user.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::context::CliError;
use super::data_directory::DataDirectory;
use super::password;
use crate::server::restore;
use crate::service;
use base::clock::Clock;
use base::secret::Secret;
use config::{self, Config, Settings};
use store::{Store, UserRole};

/// The name of the first user.
pub const ADMIN: &str = "admin";

/// Exists while a first run is unfinished: the database is there before its first
/// user is.
const UNFINISHED: &str = "first-run";

/// What a first run created.
#[derive(Debug, Default)]
pub struct FirstRun {
    /// The configuration file.
    pub config: bool,
    /// The user `admin`.
    pub admin: bool,
}

/// The configuration with which the first start would serve; none when the first run
/// is complete, or an interrupted restore will bring one. `given` is the first user's
/// password, if the owner chose one. Makes nothing; the directory may be missing.
///
/// # Errors
///
/// The existing configuration is invalid, or the password is too short.
pub fn config_to_be(
    directory: &DataDirectory,
    given: Option<&Secret>,
) -> Result<Option<Arc<Config>>, CliError> {
    let path = directory.config();
    if is_complete(directory) || restore::is_pending(directory.path()) {
        return Ok(None);
    }
    if let Some(password) = given {
        password::check(password).map_err(|failure| match failure {
            CliError::Failed(message) => {
                CliError::Failed(format!("HEARTH_ADMIN_PASSWORD: {message}"))
            }
            other => other,
        })?;
    }
    let settings = if path.exists() {
        Settings::load(&path)
    } else {
        Settings::from_text(&path, &config::first_run(), |_| None)
    };
    Ok(Some(settings.map_err(CliError::failed)?.current()))
}

fn is_complete(directory: &DataDirectory) -> bool {
    // A crash or a failed copy may leave an empty file.
    let has_database = fs::metadata(directory.database()).is_ok_and(|file| file.len() > 0);
    directory.config().exists() && has_database && !unfinished(directory).exists()
}

fn unfinished(directory: &DataDirectory) -> PathBuf {
    directory.path().join(UNFINISHED)
}

/// Creates what a data directory lacks. `given` is the first user's password, if the
/// owner chose one; else one is generated. `show` gets the generated one before the
/// user exists: whatever stops the first run, nobody is locked out by a password
/// that was never shown.
///
/// # Errors
///
/// A file is invalid or cannot be written, the password is too short, or it cannot
/// be shown.
pub fn prepare(
    directory: &DataDirectory,
    clock: &Clock,
    given: Option<Secret>,
    show: &mut dyn FnMut(Option<&Secret>) -> io::Result<()>,
) -> Result<FirstRun, CliError> {
    let mut made = FirstRun::default();
    // If an existing configuration is invalid, the start must fail before it generates
    // a password.
    if config_to_be(directory, given.as_ref())?.is_none() {
        return Ok(made);
    }
    let unfinished = unfinished(directory);
    let unwritable = |error| CliError::unwritable(&unfinished, &error);
    File::create(&unfinished).map_err(unwritable)?;
    let store = Store::open(&directory.database(), clock.clone()).map_err(CliError::failed)?;
    if store.users()?.is_empty() {
        let generated = given.is_none().then(Secret::random_password);
        let password = given.as_ref().or(generated.as_ref());
        let hash = service::password::hash(password.expect("one of the two is there"))?;
        show(generated.as_ref())?;
        store.add_user(ADMIN, UserRole::Admin, &hash)?;
        made.admin = true;
    }
    store.close();
    made.config = config::write_first_run(&directory.config()).map_err(CliError::failed)?;
    fs::remove_file(&unfinished).map_err(unwritable)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;

    fn unseen(_: Option<&Secret>) -> io::Result<()> {
        panic!("no user is made")
    }

    #[test]
    fn a_first_run_happens_once() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let clock = Clock::system();
        let mut shown = None;
        let made = prepare(&directory, &clock, None, &mut |generated| {
            let store = Store::open(&directory.database(), clock.clone()).unwrap();
            assert!(store.users().unwrap().is_empty(), "shown before it counts");
            shown = generated.cloned();
            Ok(())
        });
        let made = made.unwrap();
        assert!(made.config && made.admin);
        assert!(password::check(&shown.unwrap()).is_ok());
        let mode = fs::metadata(directory.config())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        Settings::load(&directory.config()).expect("the written configuration is valid");

        let again = prepare(&directory, &clock, None, &mut unseen).unwrap();
        assert!(!again.config && !again.admin);

        // Without its configuration, a directory keeps its users.
        fs::remove_file(directory.config()).unwrap();
        let again = prepare(&directory, &clock, None, &mut unseen).unwrap();
        assert!(again.config && !again.admin);
    }

    #[test]
    fn an_unfinished_first_run_is_finished() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let clock = Clock::system();
        // A password that cannot be shown is nobody's.
        let stopped = prepare(&directory, &clock, None, &mut |_| {
            Err(io::ErrorKind::BrokenPipe.into())
        });
        assert!(stopped.is_err() && directory.database().exists());
        config::write_first_run(&directory.config()).unwrap();
        let made = prepare(&directory, &clock, None, &mut |_| Ok(())).unwrap();
        assert!(made.admin && !unfinished(&directory).exists());
    }

    #[test]
    fn a_given_password_is_used_and_not_shown() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let clock = Clock::system();
        assert!(prepare(&directory, &clock, Some(Secret::new("short")), &mut unseen).is_err());
        assert!(!directory.database().exists(), "nothing was created");
        let given = Some(Secret::new("correct horse"));
        let made = prepare(&directory, &clock, given, &mut |generated| {
            assert!(generated.is_none());
            Ok(())
        });
        assert!(made.unwrap().admin);
    }

    #[test]
    fn an_invalid_configuration_is_reported_first() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        fs::write(directory.config(), "{").unwrap();
        assert!(prepare(&directory, &Clock::system(), None, &mut unseen).is_err());
        assert!(!directory.database().exists());
    }
}
