//! The log: to standard error and, appended, to `hearth.log`.
//!
//! The `log` crate's logger is the one global of the house. Only `serve` sets
//! it, and `relay`, which keeps nothing on disk and logs to standard error alone;
//! the other commands speak for themselves.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use env_logger::{Builder, Logger, Target};
use log::{LevelFilter, Log, Metadata, Record};

use super::Failure;
use crate::clock::Clock;

/// Begins to log: `filter` is what `HEARTH_LOG` says, if it is set, and `path`
/// the log file, which is made for its owner only.
pub fn start(
    filter: Option<&str>,
    path: &Path,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(), Failure> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| {
            Failure::failed(format!(
                "the log {} cannot be written: {error}",
                path.display()
            ))
        })?;
    let directives = directives(filter);
    let dated = !is_journal(environment);
    let both = Both {
        terminal: logger(&directives, dated, Target::Stderr),
        file: logger(&directives, true, Target::Pipe(Box::new(file))),
    };
    log::set_max_level(both.terminal.filter());
    log::set_boxed_logger(Box::new(both)).map_err(Failure::failed)
}

/// The same without a file.
#[cfg(feature = "relay")]
pub fn start_on_terminal(
    filter: Option<&str>,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(), Failure> {
    let logger = logger(
        &directives(filter),
        !is_journal(environment),
        Target::Stderr,
    );
    log::set_max_level(logger.filter());
    log::set_boxed_logger(Box::new(logger)).map_err(Failure::failed)
}

/// The filter in env_logger's terms. A bare level is meant for us: libraries
/// at `debug` and `trace` would log what they send, secrets included.
fn directives(filter: Option<&str>) -> String {
    let filter = filter.unwrap_or("info").trim();
    match filter.parse::<LevelFilter>() {
        Ok(level) => format!("{},hearth={level}", level.min(LevelFilter::Warn)),
        Err(_) => filter.to_owned(),
    }
}

/// Whether standard error goes to the systemd journal, which dates lines
/// itself: `JOURNAL_STREAM` is its device and inode (systemd.exec(5)).
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

/// Appends a record's text. Control characters are escaped: what a client
/// sends must neither begin a line of its own nor steer the terminal.
fn push_message(line: &mut String, record: &Record) {
    for character in record.args().to_string().chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
}

struct Both {
    terminal: Logger,
    file: Logger,
}

impl Log for Both {
    fn enabled(&self, metadata: &Metadata) -> bool {
        self.terminal.enabled(metadata)
    }

    fn log(&self, record: &Record) {
        self.terminal.log(record);
        self.file.log(record);
    }

    fn flush(&self) {
        self.terminal.flush();
        self.file.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

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
    fn a_line_is_a_time_a_level_and_a_text() {
        assert_eq!(logged(false, "it runs"), "INFO  it runs\n");
        let dated = logged(true, "it runs");
        assert!(dated.ends_with("Z INFO  it runs\n"), "{dated}");
        assert_eq!(
            dated.len(),
            "2026-11-21T09:30:00.125Z INFO  it runs\n".len()
        );
    }

    #[test]
    fn a_message_cannot_begin_a_line_or_steer_the_terminal() {
        assert_eq!(
            logged(false, "from x\nERROR forged \u{1b}[2J"),
            "INFO  from x\\nERROR forged \\u{1b}[2J\n"
        );
    }

    #[test]
    fn a_bare_level_is_not_for_the_libraries() {
        for (filter, directives_expected) in [
            (None, "WARN,hearth=INFO"),
            (Some("debug"), "WARN,hearth=DEBUG"),
            (Some(" error "), "ERROR,hearth=ERROR"),
            (Some("off"), "OFF,hearth=OFF"),
            (Some("ureq=debug,info"), "ureq=debug,info"),
        ] {
            assert_eq!(directives(filter), directives_expected, "{filter:?}");
        }
    }
}
