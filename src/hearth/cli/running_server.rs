//! Finds the server that runs on a data directory, and tells it things.
//!
//! A server holds `hearth.lock` locked (flock) for as long as it lives, so that
//! a lock tells a running one from the leftovers of one that was killed. The
//! file's first line is its process id; the lines after it, if any, are the
//! addresses on which it listens and, where that is with TLS, the file of its
//! certificate.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::data_directory::DataDirectory;
use net::tls::Trust;

/// How long a server may take to reread its configuration.
const RELOAD_TIME: Duration = Duration::from_secs(2);

/// A server that runs.
#[derive(Debug, PartialEq, Eq)]
pub struct RunningServer {
    process: Pid,
    lock: PathBuf,
    /// Where it listens, as far as it says so.
    pub addresses: Vec<SocketAddr>,
    /// The file of its certificate, if it listens with TLS.
    pub certificate: Option<PathBuf>,
}

impl RunningServer {
    /// The server that runs on this data directory, if one does.
    pub fn find(directory: &DataDirectory) -> Option<RunningServer> {
        let file = fs::File::open(directory.lock()).ok()?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            // Nobody holds it; closing the file gives our lock back.
            Ok(()) => None,
            Err(Errno::WOULDBLOCK) => parse(
                &fs::read_to_string(directory.lock()).ok()?,
                directory.lock(),
            ),
            Err(_) => None,
        }
    }

    /// Has it reread its configuration, and waits until it has: what is asked
    /// of it next must not meet the old one. It shows that by the time of its
    /// lock file. Returns whether it has done so in time.
    pub fn reload(&self) -> std::io::Result<bool> {
        let before = fs::metadata(&self.lock)?.modified()?;
        kill_process(self.process, Signal::HUP)?;
        let deadline = Instant::now() + RELOAD_TIME;
        while Instant::now() < deadline {
            if fs::metadata(&self.lock)?.modified()? != before {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(false)
    }

    /// Tells the server that runs on this data directory, if one does, that its
    /// configuration has changed. Returns what to tell the person.
    pub fn notify(directory: &DataDirectory) -> String {
        match RunningServer::find(directory) {
            None => "it takes effect at the next start".to_owned(),
            Some(server) => match server.reload() {
                Ok(true) => format!("the running server (process {}) has it", server.process()),
                Ok(false) => format!(
                    "the running server (process {}) was told, but has not answered; see its log",
                    server.process()
                ),
                Err(error) => format!(
                    "but the running server (process {}) could not be told: {error}; send it SIGHUP",
                    server.process()
                ),
            },
        }
    }

    /// How its addresses are reached by HTTP: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        match self.certificate {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Trust in it and in nobody else.
    pub fn trust(&self) -> Trust {
        match &self.certificate {
            Some(path) => Trust::pinned(path),
            None => Trust::default(),
        }
    }

    /// Its process id.
    pub fn process(&self) -> i32 {
        self.process.as_raw_nonzero().get()
    }
}

fn parse(text: &str, lock: PathBuf) -> Option<RunningServer> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let process: i32 = first.trim().parse().ok()?;
    let certificate = rest
        .lines()
        .find_map(|line| line.strip_prefix("certificate "));
    // 0 and negative numbers would signal whole process groups, 1 is init.
    if process < 2 && process != std::process::id() as i32 {
        return None;
    }
    Some(RunningServer {
        process: Pid::from_raw(process)?,
        lock,
        addresses: rest
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect(),
        certificate: certificate.map(PathBuf::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::TemporaryDirectory;

    #[test]
    fn a_lock_file_names_a_process_and_its_addresses() {
        for (text, process, addresses) in [
            ("4711", Some(4711), 0),
            ("4711\n", Some(4711), 0),
            ("4711\n[::]:5000\n192.0.2.1:5001\n", Some(4711), 2),
            ("4711\nsomething newer\n", Some(4711), 0),
            ("", None, 0),
            ("0", None, 0),
            ("-4711", None, 0),
            ("1", None, 0),
            ("hearth", None, 0),
        ] {
            let parsed = parse(text, PathBuf::new());
            assert_eq!(
                parsed.as_ref().map(RunningServer::process),
                process,
                "{text:?}"
            );
            assert_eq!(
                parsed.map_or(0, |server| server.addresses.len()),
                addresses,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_lock_file_names_the_certificate() {
        for (text, certificate) in [
            ("4711\n[::]:5000\n", None),
            (
                "4711\n[::]:5000\ncertificate /my data/cert.pem\n",
                Some("/my data/cert.pem"),
            ),
        ] {
            let parsed = parse(text, PathBuf::new()).unwrap();
            assert_eq!(parsed.certificate, certificate.map(PathBuf::from));
            assert_eq!(parsed.addresses.len(), 1);
        }
    }

    #[test]
    fn a_server_runs_as_long_as_it_holds_the_lock() {
        let root = TemporaryDirectory::new();
        let directory = root.data_directory();
        assert_eq!(RunningServer::find(&directory), None, "no file");
        fs::write(directory.lock(), "4711\n").unwrap();
        assert_eq!(RunningServer::find(&directory), None, "a leftover");
        let file = fs::File::open(directory.lock()).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(RunningServer::find(&directory).unwrap().process(), 4711);
        drop(file);
        assert_eq!(RunningServer::find(&directory), None, "it has ended");
    }
}
