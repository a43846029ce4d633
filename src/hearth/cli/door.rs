//! The way of a command to the service: the running server's, else one in this process.
//! Either way it sends what the page sends, as the owner of the machine.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::context::{CliContext, CliError};
use super::data_directory::DataDirectory;
use super::running_server::RunningServer;
use crate::server::door::{OwnService, connect};
use crate::server::{Holder, Lock};
use base::clock::Clock;
use base::secret::Secret;
use config::Settings;
use net::listener::LocalConnection;
use store::{Store, is_of_older_version};

/// How long a server may take to start, or another command to end.
const OPEN_TIME: Duration = Duration::from_secs(30);
/// How long a server may take to stop once its socket is gone.
const STOP_TIME: Duration = Duration::from_secs(2);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);
/// Time limit of one answer: a tool may be tried, or the end of a file be imported first.
const ANSWER_TIME: Duration = Duration::from_secs(15 * 60);
/// What is sent of a file at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Longest response to a file, in bytes.
const RESPONSE_BYTES: u64 = 1 << 20;

/// Whether a command works on a configuration that does not load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// It does not.
    Needed,
    /// It does: it has nothing to do with the file.
    Unneeded,
    /// It needs it, and no database.
    Alone,
    /// It reads or mends the file, whatever is in it, and needs no database.
    Mended,
}

/// The way to the service of a data directory. It opens with the first request.
pub struct Door {
    /// Or why none is named: what is wrong with the command line is said first.
    directory: Result<DataDirectory, String>,
    configuration: Configuration,
    open: Option<Open>,
}

/// A connection to the service, signed in.
struct Open {
    stream: BufReader<UnixStream>,
    server: Option<RunningServer>,
    // Dropped in this order: the connection ends before its service.
    _connection: Option<LocalConnection>,
    service: Option<OwnService>,
    _scratch: Option<Scratch>,
}

impl Door {
    /// That of a command with `--data-dir`.
    pub fn of(configuration: Configuration, arguments: &Arguments, context: &CliContext) -> Door {
        Door {
            directory: DataDirectory::of(arguments, context)
                .map_err(|error| error.message().to_owned()),
            configuration,
            open: None,
        }
    }

    /// That of a directory.
    pub fn at(directory: DataDirectory) -> Door {
        Door {
            directory: Ok(directory),
            configuration: Configuration::Needed,
            open: None,
        }
    }

    /// The directory.
    ///
    /// # Errors
    ///
    /// As for [`DataDirectory::of`].
    pub fn directory(&self) -> Result<&DataDirectory, CliError> {
        self.directory.as_ref().map_err(CliError::failed)
    }

    /// The server that answers; without one, the service is in this process.
    pub fn server(&mut self) -> Result<Option<&RunningServer>, CliError> {
        Ok(self.open()?.server.as_ref())
    }

    /// Lets a server or another command have the directory, while a person is asked.
    pub fn release(&mut self) {
        self.open = None;
    }

    /// Sends a request and returns the data of its response.
    ///
    /// # Errors
    ///
    /// There is no Hearth in the directory, this user may not use it, it is busy, or the
    /// service refuses.
    pub fn ask(&mut self, request: &Value) -> Result<Value, CliError> {
        self.open()?.ask(request)
    }

    /// Posts a file to a path of the HTTP interface and returns the data of the response.
    /// `read` gets each piece before it is sent, until `bytes` were read or, without them,
    /// until there is no more.
    ///
    /// # Errors
    ///
    /// As for [`Door::ask`], and those of `read`.
    pub fn post(
        &mut self,
        target: &str,
        bytes: Option<u64>,
        read: &mut dyn FnMut(&mut [u8]) -> Result<usize, CliError>,
    ) -> Result<Value, CliError> {
        let directory = self.directory()?.clone();
        let (mut stream, _connection, key) = match &self.open()?.service {
            Some(service) => {
                let (stream, connection, key) = service.connect()?;
                (stream, Some(connection), key)
            }
            None => {
                let (stream, key) =
                    connect(directory.path()).map_err(|error| busy(&directory, &error))?;
                (stream, None, key)
            }
        };
        limit(&stream)?;
        let length = bytes.map_or("Transfer-Encoding: chunked".to_owned(), |bytes| {
            format!("Content-Length: {bytes}")
        });
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\n{length}\r\n\r\n",
            key.expose()
        );
        let mut is_open = stream.write_all(head.as_bytes()).is_ok();
        let (mut piece, mut left) = (vec![0; PIECE_BYTES], bytes.unwrap_or(u64::MAX));
        while is_open && left > 0 {
            let most = left.min(PIECE_BYTES as u64) as usize;
            let count = read(&mut piece[..most])?;
            // Whoever refuses a file reads no more of it, and says why.
            is_open = match (bytes, count) {
                (Some(_), 0) => {
                    return Err(CliError::failed(
                        "the file became shorter while it was read",
                    ));
                }
                (Some(_), _) => stream.write_all(&piece[..count]),
                (None, 0) => stream.write_all(b"0\r\n\r\n"),
                // A chunk (RFC 9112, section 7.1).
                (None, _) => write!(stream, "{count:x}\r\n")
                    .and_then(|()| stream.write_all(&piece[..count]))
                    .and_then(|()| stream.write_all(b"\r\n")),
            }
            .is_ok();
            left = if count == 0 { 0 } else { left - count as u64 };
        }
        let mut response = Vec::new();
        let read = stream.take(RESPONSE_BYTES).read_to_end(&mut response);
        let response = String::from_utf8_lossy(&response);
        // Where some of the file was not read, an error stands behind the response.
        match (response.split_once("\r\n\r\n"), read) {
            (Some((_, body)), _) => data(body),
            (None, Err(error)) => Err(ended(error)),
            (None, Ok(_)) => Err(ended(ErrorKind::UnexpectedEof.into())),
        }
    }

    fn open(&mut self) -> Result<&mut Open, CliError> {
        if self.open.is_none() {
            self.open = Some(Open::new(self.directory()?, self.configuration)?);
        }
        Ok(self.open.as_mut().expect("it was just opened"))
    }
}

impl Open {
    fn new(directory: &DataDirectory, configuration: Configuration) -> Result<Open, CliError> {
        match configuration {
            Configuration::Alone | Configuration::Mended => directory.check_is_configured()?,
            Configuration::Needed | Configuration::Unneeded => directory.check_is_used()?,
        }
        let mut deadline = Instant::now() + OPEN_TIME;
        let mut is_older = false;
        let (mut open, key) = loop {
            let unwritable = match Lock::try_take(directory.path(), Holder::Command) {
                Ok(Some(lock)) => break Open::own_service(directory, configuration, Some(lock))?,
                Ok(None) => None,
                Err(error) => Some(error),
            };
            match (connect(directory.path()), unwritable) {
                (Ok((stream, key)), _) => {
                    let open = Open {
                        stream: BufReader::new(stream),
                        server: RunningServer::find(directory),
                        _connection: None,
                        service: None,
                        _scratch: None,
                    };
                    break (open, key);
                }
                // The file can be read where nothing can be written.
                (Err(_), Some(_))
                    if configuration == Configuration::Mended
                        && File::open(directory.config()).is_ok() =>
                {
                    break Open::own_service(directory, configuration, None)?;
                }
                (Err(_), Some(error)) => return Err(CliError::failed(error)),
                (Err(error), None)
                    if error.kind() == ErrorKind::PermissionDenied
                        || Instant::now() >= deadline =>
                {
                    return Err(busy(directory, &error));
                }
                // It starts or stops, or another command holds the directory. One that listens
                // and has no socket is of a version that knows none.
                (Err(error), None) => {
                    let server = RunningServer::find(directory);
                    let listens = server.is_some_and(|server| !server.addresses.is_empty());
                    if listens && error.kind() == ErrorKind::NotFound && !is_older {
                        is_older = true;
                        deadline = Instant::now() + STOP_TIME;
                    }
                    thread::sleep(PAUSE);
                }
            }
        };
        limit(open.stream.get_ref())?;
        open.ask(&json!({ "type": "auth", "token": key.expose() }))?;
        Ok(open)
    }

    fn own_service(
        directory: &DataDirectory,
        configuration: Configuration,
        lock: Option<Lock>,
    ) -> Result<(Open, Secret), CliError> {
        let settings = settings(directory, configuration)?;
        let needs_none = matches!(configuration, Configuration::Alone | Configuration::Mended);
        // Without the lock, the database is left alone; and an older one, for the server to
        // upgrade.
        let store = match lock {
            Some(_) if needs_none && is_of_older_version(&directory.database()) => {
                Err(CliError::failed("an older version has made the database"))
            }
            Some(_) => directory.open_store(),
            None => Err(CliError::failed("the database is not locked")),
        };
        let (store, scratch) = match store {
            Ok(store) => (store, None),
            Err(_) if needs_none => {
                let scratch = Scratch::new()?;
                let database = DataDirectory::at(&scratch.0).database();
                let store = Store::open(&database, Clock::system()).map_err(CliError::failed)?;
                (store, Some(scratch))
            }
            Err(error) => return Err(error),
        };
        let service = OwnService::open(directory.path(), settings, store, Clock::system(), lock)
            .map_err(CliError::failed)?;
        let (stream, connection, key) = service.connect()?;
        let open = Open {
            stream: BufReader::new(stream),
            server: None,
            _connection: Some(connection),
            service: Some(service),
            _scratch: scratch,
        };
        Ok((open, key))
    }

    fn ask(&mut self, request: &Value) -> Result<Value, CliError> {
        writeln!(self.stream.get_mut(), "{request}").map_err(ended)?;
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(ended)?;
        if line.is_empty() {
            return Err(ended(ErrorKind::UnexpectedEof.into()));
        }
        data(&line)
    }
}

fn limit(stream: &UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    stream.set_write_timeout(Some(ANSWER_TIME))
}

fn ended(error: std::io::Error) -> CliError {
    CliError::failed(format!("the server ended the connection: {error}"))
}

/// The data of a response.
fn data(response: &str) -> Result<Value, CliError> {
    let mut response: Value = serde_json::from_str(response)
        .map_err(|error| CliError::failed(format!("the server's response: {error}")))?;
    match response["error"].take() {
        Value::String(error) => Err(CliError::Failed(error)),
        _ => Ok(response["data"].take()),
    }
}

/// A directory for the database of a service that needs none: the data directory has none
/// yet, or a damaged one.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, CliError> {
        let name = format!("hearth-{}", Secret::random_token().expose());
        let path = env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is small, and goes with the next start of the machine.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The settings for a service in this process, whose environment may not be the server's. A
/// directory without a configuration has the defaults.
///
/// # Errors
///
/// The configuration does not load, and the command needs it.
pub fn settings(
    directory: &DataDirectory,
    configuration: Configuration,
) -> Result<Settings, CliError> {
    let path = directory.config();
    let defaults = || Settings::from_text(&path, "{}", |_| None).map_err(CliError::failed);
    if !path.exists() {
        return defaults();
    }
    let settings = Settings::open(&path, |name| env::var(name).ok());
    let problems = settings.problems();
    match configuration {
        _ if problems.is_empty() => Ok(settings),
        Configuration::Mended => Ok(settings),
        Configuration::Unneeded => defaults(),
        Configuration::Needed | Configuration::Alone => Err(CliError::failed(problems)),
    }
}

/// The settings for where the server listens. Others may be left to its environment.
pub fn address_settings(directory: &DataDirectory) -> Result<Settings, CliError> {
    directory.check_is_configured()?;
    let settings = settings(directory, Configuration::Needed)?;
    for key in ["channels", "tls"] {
        settings.check_is_set(key).map_err(CliError::failed)?;
    }
    Ok(settings)
}

fn busy(directory: &DataDirectory, error: &std::io::Error) -> CliError {
    CliError::failed(match RunningServer::find(directory) {
        Some(server) if error.kind() == ErrorKind::PermissionDenied => format!(
            "the server (process {}) is another user's: run this as that user, or with sudo",
            server.process()
        ),
        Some(server) => format!(
            "the server (process {}) does not answer: {error}. If it is of an older version, \
             restart it",
            server.process()
        ),
        None => match Lock::command(directory.path()) {
            Some(command) => format!(
                "{command} has used {} for {} seconds; try again when it has ended, or end it",
                directory.path().display(),
                OPEN_TIME.as_secs()
            ),
            None => format!("nobody answers in {}: {error}", directory.path().display()),
        },
    })
}
