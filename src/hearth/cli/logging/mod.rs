//! The log, which goes to standard error and to `hearth.log`, five files of 5 MB.
//!
//! The `log` crate's logger is the only global state. `serve` sets it, and so does
//! `relay`, which logs to standard error only; other commands do not log.

mod rotation;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use env_logger::{Builder, Logger, Target};
use log::{LevelFilter, Log, Metadata, Record};

use super::context::CliError;
use base::clock::Clock;
use base::sync;
use rotation::RotatingFile;

/// The default log level.
const DEFAULT_LEVEL: &str = "info";

/// The logger of a server, whose level can be changed.
#[derive(Clone)]
pub struct Logging {
    current: Arc<RwLock<LoggerPair>>,
    file: SharedFile,
    is_dated: bool,
    /// Whether `HEARTH_LOG` overrides the configuration.
    is_fixed: bool,
}

/// Starts to log. `filter` is the value of `HEARTH_LOG`, if set, and `path` the log
/// file, which is created for its owner only.
///
/// # Errors
///
/// The file cannot be written, or the filter is not valid.
pub fn start(
    filter: Option<&str>,
    path: &Path,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Logging, CliError> {
    let file = RotatingFile::open(path, rotation::MOST_BYTES).map_err(|error| {
        CliError::failed(format!("cannot write the log {}: {error}", path.display()))
    })?;
    let file = SharedFile(Arc::new(Mutex::new(file)));
    let is_dated = !is_journal(environment);
    let both = LoggerPair::new(checked(filter)?, is_dated, &file);
    log::set_max_level(both.terminal.filter());
    let logging = Logging {
        current: Arc::new(RwLock::new(both)),
        file,
        is_dated,
        is_fixed: filter.is_some(),
    };
    log::set_boxed_logger(Box::new(logging.clone())).map_err(CliError::failed)?;
    Ok(logging)
}

impl Logging {
    /// Applies the configuration's `log_level`, unless `HEARTH_LOG` is set.
    pub fn set_level(&self, level: &str) {
        if self.is_fixed {
            return;
        }
        let both = LoggerPair::new(level, self.is_dated, &self.file);
        let most = both.terminal.filter();
        *sync::write(&self.current) = both;
        log::set_max_level(most);
    }

    fn with<T>(&self, look: impl FnOnce(&LoggerPair) -> T) -> T {
        look(&sync::read(&self.current))
    }
}

impl Log for Logging {
    fn enabled(&self, metadata: &Metadata) -> bool {
        self.with(|both| both.terminal.enabled(metadata))
    }

    fn log(&self, record: &Record) {
        self.with(|both| {
            both.terminal.log(record);
            both.file.log(record);
        });
    }

    fn flush(&self) {
        self.with(|both| {
            both.terminal.flush();
            both.file.flush();
        });
    }
}

/// Two loggers with the same filter.
struct LoggerPair {
    terminal: Logger,
    file: Logger,
}

impl LoggerPair {
    fn new(filter: &str, is_dated: bool, file: &SharedFile) -> LoggerPair {
        let directives = directives(filter);
        LoggerPair {
            terminal: logger(&directives, is_dated, Target::Stderr),
            file: logger(&directives, true, Target::Pipe(Box::new(file.clone()))),
        }
    }
}

/// The file, which stays open when the level changes.
#[derive(Clone)]
struct SharedFile(Arc<Mutex<RotatingFile>>);

impl Write for SharedFile {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        sync::lock(&self.0).write(lines)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        sync::lock(&self.0).flush()
    }
}

/// Starts to log to standard error only.
///
/// # Errors
///
/// The filter is not valid.
#[cfg(feature = "relay")]
pub fn start_on_terminal(
    filter: Option<&str>,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(), CliError> {
    let logger = logger(
        &directives(checked(filter)?),
        !is_journal(environment),
        Target::Stderr,
    );
    log::set_max_level(logger.filter());
    log::set_boxed_logger(Box::new(logger)).map_err(CliError::failed)
}

/// Checks the value of `HEARTH_LOG`: env_logger takes an unknown word for the name of
/// a module, so a mistyped level would turn the log off.
fn checked(filter: Option<&str>) -> Result<&str, CliError> {
    let filter = filter.unwrap_or(DEFAULT_LEVEL);
    match filter.trim().parse::<LevelFilter>().is_ok() || filter.contains('=') {
        true => Ok(filter),
        false => Err(CliError::failed(format!(
            "HEARTH_LOG must be error, warn, info, debug or trace, not {filter:?}"
        ))),
    }
}

/// The members of the workspace, as env_logger knows the targets of our records.
const MEMBERS: [&str; 8] = [
    "agent", "base", "config", "hearth", "net", "protocol", "relay", "store",
];

/// The filter in env_logger's terms. A bare level applies to Hearth alone:
/// libraries at `debug` and `trace` would log what they send, secrets included.
/// `hearth=LEVEL` stands for all members.
fn directives(filter: &str) -> String {
    let ours = |level: &str| MEMBERS.map(|member| format!("{member}={level}")).join(",");
    let filter = filter.trim();
    match filter.parse::<LevelFilter>() {
        Ok(level) => format!("{},{}", level.min(LevelFilter::Warn), ours(level.as_str())),
        Err(_) => filter
            .split(',')
            .map(|directive| match directive.trim().strip_prefix("hearth=") {
                Some(level) => ours(level),
                None => directive.to_owned(),
            })
            .collect::<Vec<_>>()
            .join(","),
    }
}

/// Whether standard error goes to the systemd journal, which adds the time itself: `JOURNAL_STREAM` is its device and inode (systemd.exec(5)).
fn is_journal(environment: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let Ok(status) = rustix::fs::fstat(std::io::stderr()) else {
        return false;
    };
    let stream = format!("{}:{}", status.st_dev, status.st_ino);
    environment("JOURNAL_STREAM").is_some_and(|value| value == stream.as_str())
}

fn logger(directives: &str, dated: bool, target: Target) -> Logger {
    let clock = Clock::system();
    Builder::new()
        .parse_filters(directives)
        .target(target)
        .format(move |out, record| {
            let mut line = String::with_capacity(128);
            if dated {
                let _ = write!(line, "{} ", clock.now());
            }
            let _ = write!(line, "{:<5} ", record.level());
            push_message(&mut line, record);
            line.push('\n');
            out.write_all(line.as_bytes())
        })
        .build()
}

/// Appends a record's text. Control characters are escaped, so that input from a
/// client can neither start a new line nor control the terminal.
fn push_message(line: &mut String, record: &Record) {
    for character in record.args().to_string().chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(dated: bool, message: &str) -> String {
        let sink = Sink::default();
        let logger = logger("info", dated, Target::Pipe(Box::new(sink.clone())));
        logger.log(
            &Record::builder()
                .level(log::Level::Info)
                .args(format_args!("{message}"))
                .build(),
        );
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_has_a_time_a_level_and_a_text() {
        assert_eq!(logged(false, "it runs"), "INFO  it runs\n");
        let dated = logged(true, "it runs");
        assert!(dated.ends_with("Z INFO  it runs\n"), "{dated}");
        assert_eq!(
            dated.len(),
            "2026-11-21T09:30:00.125Z INFO  it runs\n".len()
        );
    }

    #[test]
    fn a_message_cannot_start_a_line_or_control_the_terminal() {
        assert_eq!(
            logged(false, "from x\nERROR forged \u{1b}[2J"),
            "INFO  from x\\nERROR forged \\u{1b}[2J\n"
        );
    }

    #[test]
    fn a_bare_level_does_not_apply_to_libraries() {
        for (filter, expected) in [
            (DEFAULT_LEVEL, "WARN,OURS=INFO"),
            ("debug", "WARN,OURS=DEBUG"),
            (" error ", "ERROR,OURS=ERROR"),
            ("off", "OFF,OURS=OFF"),
            ("ureq=debug,info", "ureq=debug,info"),
            ("ureq=debug,hearth=trace", "ureq=debug,OURS=trace"),
        ] {
            let expected = match expected.split_once("OURS=") {
                Some((before, level)) => {
                    let ours = MEMBERS.map(|member| format!("{member}={level}"));
                    format!("{before}{}", ours.join(","))
                }
                None => expected.to_owned(),
            };
            assert_eq!(directives(filter), expected, "{filter:?}");
            assert!(checked(Some(filter)).is_ok(), "{filter:?}");
        }
        for mistyped in ["loud", "inof", "debug,hearth"] {
            let Err(CliError::Failed(message)) = checked(Some(mistyped)) else {
                panic!("{mistyped} was taken");
            };
            assert!(message.contains(mistyped), "{message}");
        }
    }
}
