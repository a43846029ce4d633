//! The log, which goes to standard error and to `hearth.log`, five files of 5 MB.
//!
//! The `log` crate's logger is the only global state. `serve` sets it, and so does
//! `relay`, which logs to standard error only; other commands do not log.

mod limit;
mod rotation;
mod standard_error;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use env_logger::{Builder, Logger, Target};
use log::{Level, LevelFilter, Log, Metadata, Record};

use super::context::CliError;
use base::clock::Clock;
use base::sync;
use config::{Config, Limits};
use limit::{LeftOut, LineLimit};
use rotation::RotatingFile;
pub use standard_error::StandardError;

/// The default log level.
const DEFAULT_LEVEL: &str = "info";

/// The logger of a server or a relay, whose level can be changed.
#[derive(Clone)]
pub struct Logging {
    current: Arc<RwLock<Loggers>>,
    /// Lines of clients, and how many of one kind each may cause.
    limit: Arc<Mutex<(LineLimit, u32)>>,
    errors: StandardError,
    file: Option<SharedFile>,
    is_dated: bool,
    /// Whether `HEARTH_LOG` overrides the configuration.
    is_fixed: bool,
}

/// Starts to log. `filter` is the value of `HEARTH_LOG`, if set, and `path` the log
/// file, which is created for its owner only; without one, to standard error only.
///
/// # Errors
///
/// The file cannot be written, or the filter is not valid.
pub fn start(
    filter: Option<&str>,
    path: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Logging, CliError> {
    let open = |path: &Path| {
        let file = RotatingFile::open(path, rotation::MOST_BYTES).map_err(|error| {
            CliError::failed(format!("cannot write the log {}: {error}", path.display()))
        })?;
        Ok::<_, CliError>(SharedFile(Arc::new(Mutex::new(file))))
    };
    let file = path.map(open).transpose()?;
    let is_dated = !is_journal(environment);
    let errors = StandardError::start(std::io::stderr())
        .map_err(|error| CliError::failed(format!("cannot start to log: {error}")))?;
    let loggers = Loggers::new(checked(filter)?, is_dated, &errors, file.as_ref());
    log::set_max_level(loggers.filter());
    let lines = Limits::default().log_lines_per_address;
    let logging = Logging {
        current: Arc::new(RwLock::new(loggers)),
        limit: Arc::new(Mutex::new((LineLimit::default(), lines))),
        errors,
        file,
        is_dated,
        is_fixed: filter.is_some(),
    };
    log::set_boxed_logger(Box::new(logging.clone())).map_err(CliError::failed)?;
    Ok(logging)
}

impl Logging {
    /// Applies the configuration: its limit, and its `log_level` unless `HEARTH_LOG`
    /// is set.
    pub fn apply(&self, config: &Config) {
        sync::lock(&self.limit).1 = config.limits.log_lines_per_address;
        if self.is_fixed {
            return;
        }
        let file = self.file.as_ref();
        let loggers = Loggers::new(config.log_level, self.is_dated, &self.errors, file);
        let most = loggers.filter();
        *sync::write(&self.current) = loggers;
        log::set_max_level(most);
    }

    /// Writes which lines were left out until now, that the program has stopped, and all
    /// that still waits for standard error, unless nobody reads it.
    pub fn finish(&self) {
        self.write_left_out(sync::lock(&self.limit).0.end(None));
        log::info!("stopped");
        self.errors.finish();
    }

    /// Standard error, in order with the log.
    pub fn errors(&self) -> StandardError {
        self.errors.clone()
    }

    fn write_left_out(&self, all: Vec<LeftOut>) {
        for left_out in all {
            sync::read(&self.current).log(
                &Record::builder()
                    .level(left_out.level)
                    .target(&left_out.target)
                    .args(format_args!("{}", left_out.text()))
                    .build(),
            );
        }
    }

    /// Whether a record is not one too many of its client. All of what is asked for at
    /// `debug` is written.
    fn admits(&self, record: &Record, now: Instant) -> bool {
        if record.level() > Level::Info || !self.enabled(record.metadata()) {
            return true;
        }
        let Some(peer) = limit::peer(record) else {
            return true;
        };
        let (limit, most) = &mut *sync::lock(&self.limit);
        limit.admit(record, peer, *most, now)
    }
}

impl Log for Logging {
    fn enabled(&self, metadata: &Metadata) -> bool {
        sync::read(&self.current).terminal.enabled(metadata)
    }

    fn log(&self, record: &Record) {
        let now = Instant::now();
        let over = sync::lock(&self.limit).0.end(Some(now));
        self.write_left_out(over);
        if self.admits(record, now) {
            sync::read(&self.current).log(record);
        }
    }

    /// Writes which lines were left out, once their time is over. Lines themselves are
    /// written at once.
    fn flush(&self) {
        let over = sync::lock(&self.limit).0.end(Some(Instant::now()));
        self.write_left_out(over);
    }
}

/// Loggers with the same filter.
struct Loggers {
    terminal: Logger,
    file: Option<Logger>,
}

impl Loggers {
    fn new(
        filter: &str,
        is_dated: bool,
        errors: &StandardError,
        file: Option<&SharedFile>,
    ) -> Loggers {
        let directives = directives(filter);
        Loggers {
            terminal: logger(&directives, is_dated, errors.clone()),
            file: file.map(|file| logger(&directives, true, file.clone())),
        }
    }

    fn filter(&self) -> LevelFilter {
        self.terminal.filter()
    }

    fn log(&self, record: &Record) {
        self.terminal.log(record);
        if let Some(file) = &self.file {
            file.log(record);
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

/// Checks the value of `HEARTH_LOG`: env_logger takes an unknown word for the name of
/// a module, so a mistyped level would turn the log off.
///
/// # Errors
///
/// It is neither a level nor directives.
pub fn checked(filter: Option<&str>) -> Result<&str, CliError> {
    let filter = filter.unwrap_or(DEFAULT_LEVEL);
    if filter.trim().parse::<LevelFilter>().is_ok() || filter.contains('=') {
        Ok(filter)
    } else {
        Err(CliError::failed(format!(
            "HEARTH_LOG must be error, warn, info, debug or trace, not {filter:?}"
        )))
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

fn logger(directives: &str, dated: bool, target: impl Write + Send + 'static) -> Logger {
    let clock = Clock::system();
    Builder::new()
        .parse_filters(directives)
        .target(Target::Pipe(Box::new(target)))
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

/// Appends a record's text, shortened where a client caused it. Control characters are
/// escaped, so that input from a client can neither start a new line nor control the
/// terminal.
fn push_message(line: &mut String, record: &Record) {
    let mut text = record.args().to_string();
    if limit::peer(record).is_some() {
        text = limit::shorten(&text);
    }
    for character in text.chars() {
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
        let logger = logger("info", dated, sink.clone());
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
