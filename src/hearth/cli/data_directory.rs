//! The data directory and the names of its files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;

use super::arguments::Arguments;
use super::context::{CliContext, CliError};
use crate::server::door::SOCKET_FILE;
use crate::server::restore;
use crate::service::backups::how_to_restore;
use base::clock::Clock;
use base::files::check_is_file;
use config::Settings;
use store::Store;

/// The files that a server reads or writes.
const SERVED: [&str; 10] = [
    "config.json",
    "hearth.db",
    "hearth.db-shm",
    "hearth.db-wal",
    "hearth.lock",
    "hearth.log",
    "hearth.sock.key",
    "identity.key",
    "push.key",
    "secrets.key",
];

/// The application data directory (contract section 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDirectory(PathBuf);

impl DataDirectory {
    /// The directory that a command line and the environment name: `--data-dir`,
    /// else `HEARTH_DATA_DIR`, `STATE_DIRECTORY` (systemd; the first of its
    /// list), `XDG_DATA_HOME/hearth`, `~/.local/share/hearth`. A variable that
    /// is empty counts as unset, and so does an `XDG_DATA_HOME` that is not
    /// absolute (XDG Base Directory Specification).
    ///
    /// # Errors
    ///
    /// None of them is set, or the option is empty.
    pub fn resolve(
        option: Option<&OsStr>,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<DataDirectory, CliError> {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        let state_directory = || {
            let list = variable("STATE_DIRECTORY")?;
            let first = std::env::split_paths(&list).next()?;
            Some(first)
        };
        let below = |root: Option<OsString>, rest: &str| {
            let root = root.map(PathBuf::from).filter(|root| root.is_absolute())?;
            Some(root.join(rest))
        };
        match option {
            Some(option) if option.is_empty() => Err(CliError::failed("--data-dir is empty")),
            Some(option) => Ok(PathBuf::from(option)),
            None => variable("HEARTH_DATA_DIR")
                .map(PathBuf::from)
                .or_else(state_directory)
                .or_else(|| below(variable("XDG_DATA_HOME"), "hearth"))
                .or_else(|| below(variable("HOME"), ".local/share/hearth"))
                .ok_or_else(|| {
                    CliError::failed(
                        "HOME is not set; give a data directory with --data-dir or HEARTH_DATA_DIR",
                    )
                }),
        }
        .map(DataDirectory)
    }

    /// The directory of a command with `--data-dir`.
    ///
    /// # Errors
    ///
    /// As for [`DataDirectory::resolve`]; what is no file has the name of one.
    pub fn of(arguments: &Arguments, context: &CliContext) -> Result<DataDirectory, CliError> {
        let directory = DataDirectory::resolve(arguments.raw("data-dir"), context.environment)?;
        directory.check_files()?;
        Ok(directory)
    }

    /// The one at this path.
    pub fn at(path: &Path) -> DataDirectory {
        DataDirectory(path.to_owned())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The configuration file.
    pub fn config(&self) -> PathBuf {
        self.0.join("config.json")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.0.join("hearth.db")
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.0.join("hearth.log")
    }

    /// The file that a running server locks.
    pub fn lock(&self) -> PathBuf {
        self.0.join("hearth.lock")
    }

    /// Checks that no directory, pipe or the like has the name of a file of a server. A server
    /// replaces whatever has the name of its socket, except a directory.
    fn check_files(&self) -> Result<(), CliError> {
        for name in SERVED {
            let path = self.0.join(name);
            check_is_file(&path)
                .map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?;
        }
        let socket = self.0.join(SOCKET_FILE);
        if socket.is_dir() && !socket.is_symlink() {
            return Err(CliError::failed(format!(
                "{}: it is a directory and must be a socket; move it away and try again",
                socket.display()
            )));
        }
        Ok(())
    }

    /// Checks that this user may read the files of a server.
    ///
    /// # Errors
    ///
    /// The path, and what to do.
    pub fn check_readable(&self) -> Result<(), CliError> {
        for name in SERVED {
            let path = self.0.join(name);
            if rustix::fs::access(&path, Access::READ_OK) == Err(Errno::ACCESS) {
                return Err(CliError::failed(format!(
                    "{}: this user may not read it; give it to the user who runs hearth (chown)",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// Checks that an output file is not one of Hearth's own, which `--force` must
    /// not replace.
    ///
    /// # Errors
    ///
    /// It is one of them.
    pub fn check_output(&self, file: &Path) -> Result<(), CliError> {
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
        let is_here = matches!((folder, fs::canonicalize(&self.0)), (Ok(a), Ok(b)) if a == b);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_own = [
            "hearth.db",
            "hearth.lock",
            "hearth.log",
            "config.json",
            "identity.key",
            "push.key",
            "secrets.key",
        ]
        .iter()
        .any(|own| name.starts_with(own))
            || name.ends_with(".pem");
        if is_here && is_own {
            Err(CliError::failed(format!(
                "{} is one of Hearth's own files; choose another name",
                file.display()
            )))
        } else {
            Ok(())
        }
    }

    /// Creates the directory, for its owner only, if it is missing, and checks that
    /// it is writable.
    ///
    /// # Errors
    ///
    /// It cannot be created or written.
    pub fn create(&self) -> Result<(), CliError> {
        let path = &self.0;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        if let Err(error) = made {
            let reason = match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                    "a file has its name".to_owned()
                }
                _ => error.to_string(),
            };
            return Err(CliError::failed(format!(
                "the data directory {} cannot be created: {reason}; choose another with --data-dir",
                path.display()
            )));
        }
        // A failing SD card is mounted read-only.
        rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
            CliError::failed(format!(
                "the data directory {} is not writable: {}; give it to the user who runs hearth \
                 (chown, or chmod u+rwx), or choose another with --data-dir",
                path.display(),
                std::io::Error::from(error)
            ))
        })
    }

    /// Opens the existing database; a mistyped directory must not get an empty one.
    ///
    /// # Errors
    ///
    /// There is no database, or it cannot be opened.
    pub fn open_store(&self) -> Result<Store, CliError> {
        self.check_is_used()?;
        Store::open(&self.database(), Clock::system()).map_err(|error| {
            let settings = Settings::load(&self.config());
            let backup = settings.map(|settings| settings.current().backup.clone());
            let advice = if error.is_damage() {
                how_to_restore(&backup.unwrap_or_default(), &self.0)
            } else {
                String::new()
            };
            CliError::failed(format!("{error}{advice}"))
        })
    }

    /// Loads the configuration.
    pub fn settings(&self) -> Result<Settings, CliError> {
        self.check_is_configured()?;
        Settings::load(&self.config()).map_err(CliError::failed)
    }

    /// Checks that there is a configuration.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn check_is_configured(&self) -> Result<(), CliError> {
        let path = self.config();
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(CliError::failed(format!(
                "there is no configuration {}; `hearth serve` writes one at its first start",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// What follows `hearth COMMAND` in advice when the directory was given with
    /// `--data-dir`.
    pub fn option(&self, is_given: bool) -> String {
        if is_given {
            format!(" --data-dir {}", self.0.display())
        } else {
            String::new()
        }
    }

    /// Checks that there is a database.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be read.
    pub fn check_is_used(&self) -> Result<(), CliError> {
        let path = self.database();
        if restore::is_pending(&self.0) {
            return Err(CliError::failed(format!(
                "a restore in {} was interrupted; `hearth serve` completes it",
                self.0.display()
            )));
        }
        match fs::metadata(&path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(CliError::failed(format!(
                "there is no Hearth in {}: start one there with `hearth serve`, or give its directory \
                 with --data-dir",
                self.0.display()
            ))),
            Err(error) => Err(CliError::failed(format!(
                "{} cannot be read: {error}; run this as the user who runs hearth",
                path.display()
            ))),
        }
    }
}

/// A warning of the configuration, which knows no `--data-dir`, with `option` in the
/// commands that it names.
pub fn with_option(warning: &str, option: &str) -> String {
    const COMMAND: &str = "hearth config set";
    warning.replace(COMMAND, &format!("{COMMAND}{option}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;

    #[test]
    fn the_first_given_directory_is_used() {
        let all = [
            ("HEARTH_DATA_DIR", "/hearth"),
            ("STATE_DIRECTORY", "/state:/other"),
            ("XDG_DATA_HOME", "/xdg"),
            ("HOME", "/home/ada"),
        ];
        for (option, variables, expected) in [
            (Some("/option"), &all[..], Some("/option")),
            (Some("relative"), &all[..], Some("relative")),
            (None, &all[..], Some("/hearth")),
            (None, &all[1..], Some("/state")),
            (None, &all[2..], Some("/xdg/hearth")),
            (None, &all[3..], Some("/home/ada/.local/share/hearth")),
            (None, &[("HEARTH_DATA_DIR", "here")], Some("here")),
            (
                None,
                &[("HEARTH_DATA_DIR", ""), ("HOME", "/h")],
                Some("/h/.local/share/hearth"),
            ),
            (
                None,
                &[("XDG_DATA_HOME", "not/absolute"), ("HOME", "/h")],
                Some("/h/.local/share/hearth"),
            ),
            (None, &[], None),
            (Some(""), &all[..], None),
        ] {
            let environment = |name: &str| {
                variables
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| OsString::from(value))
            };
            let found = DataDirectory::resolve(option.map(OsStr::new), &environment);
            let found = found.ok().map(|directory| directory.0);
            assert_eq!(
                found.as_deref(),
                expected.map(Path::new),
                "{option:?} {variables:?}"
            );
        }
    }

    #[test]
    fn it_is_created_for_its_owner_only() {
        let root = DataDirectoryUnderTest::default();
        let directory = DataDirectory(root.path().join("a/b"));
        directory.create().unwrap();
        directory.create().unwrap();
        let mode = fs::metadata(directory.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn an_unusable_path_is_reported_with_advice() {
        let root = DataDirectoryUnderTest::default();
        fs::write(root.path().join("file"), "").unwrap();
        for place in ["file", "file/below"] {
            let directory = DataDirectory(root.path().join(place));
            let Err(CliError::Failed(message)) = directory.create() else {
                panic!("{place} was made");
            };
            assert!(
                message.contains(place) && message.contains("--data-dir"),
                "{message}"
            );
        }
    }
}
