//! Finds the server that runs on a data directory, and makes it reload.
//!
//! A server keeps `hearth.lock` locked (flock) as long as it runs; a file that is
//! not locked was left by one that was killed. The
//! file's first line is its process id; the lines after it, if any, are the
//! addresses on which it listens and, where that is with TLS, the file of its
//! certificate, and then what came of the last reload.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::context::{CliError, CliResult};
use super::data_directory::DataDirectory;
use crate::server::{self, Reload};
use config::Config;
use net::tls::Trust;

/// How long a server may take to reload its configuration.
const RELOAD_TIME: Duration = Duration::from_secs(2);

/// What becomes of a change of the configuration: a part of a sentence.
#[must_use = "a refusal is an error of the command"]
pub struct Applied {
    said: String,
    /// Why the running server refused the configuration, if it did.
    refusal: Option<String>,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl Applied {
    /// How a command ends that has said all else.
    ///
    /// # Errors
    ///
    /// The running server refused the configuration, which is saved.
    pub fn end(self) -> CliResult {
        self.refusal
            .map_or(Ok(()), |why| Err(CliError::failed(why)))
    }
}

/// A running server.
#[derive(Debug, PartialEq, Eq)]
pub struct RunningServer {
    process: Pid,
    lock: PathBuf,
    /// Where it listens; empty until it does.
    pub addresses: Vec<SocketAddr>,
    /// The file of its certificate, if it listens with TLS.
    pub certificate: Option<PathBuf>,
}

impl RunningServer {
    /// The server that runs on this data directory, if one does.
    pub fn find(directory: &DataDirectory) -> Option<RunningServer> {
        let file = fs::File::open(directory.lock()).ok()?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            // Nobody holds it. Closing the file releases our lock.
            Ok(()) => None,
            Err(Errno::WOULDBLOCK) => parse(
                &fs::read_to_string(directory.lock()).ok()?,
                directory.lock(),
            ),
            Err(_) => None,
        }
    }

    /// Makes it reload its configuration and waits for that, so that the next
    /// request meets the new one. Returns what came of it, which the server writes
    /// into its lock file; nothing if it did not do so in time.
    fn reload(&self) -> std::io::Result<Option<Reload>> {
        let last = || fs::read_to_string(&self.lock).map(|text| Reload::read(&text));
        let before = last()?.map(|reload| reload.number);
        kill_process(self.process, Signal::HUP)?;
        let deadline = Instant::now() + RELOAD_TIME;
        while Instant::now() < deadline {
            if let Some(reload) = last()?.filter(|reload| Some(reload.number) != before) {
                return Ok(Some(reload));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
    }

    /// Makes the server that runs on this data directory, if one does, reload its
    /// configuration.
    pub fn reload_if_running(directory: &DataDirectory) -> Applied {
        let Some(server) = RunningServer::find(directory) else {
            return Applied {
                said: "applies from the next start".to_owned(),
                refusal: None,
            };
        };
        let name = format!("the server (process {})", server.process());
        let reloaded = server.reload();
        let refusal = match &reloaded {
            Ok(Some(reload)) if !reload.problems.is_empty() => Some(format!(
                "{name} refused the configuration. It keeps the one it had, and does not start \
                 again before this is put right:\n{}",
                reload.problems.join("\n")
            )),
            _ => None,
        };
        let said = match reloaded {
            Ok(Some(_)) if refusal.is_some() => format!("but {name} refused it"),
            Ok(Some(_)) => format!("{name} reloaded it"),
            Ok(None) => format!("{name} has not confirmed the reload; see its log"),
            Err(error) => format!("but {name} could not be signalled: {error}; send it SIGHUP"),
        };
        Applied { said, refusal }
    }

    /// The same after a change from `before` to `after`: some of it applies only when the
    /// server starts again.
    pub fn apply(directory: &DataDirectory, before: &Config, after: &Config) -> Applied {
        let mut applied = RunningServer::reload_if_running(directory);
        if applied.refusal.is_none()
            && let Some(server) = RunningServer::find(directory)
            && server::needs_restart(before, after)
        {
            let process = server.process();
            applied.said = format!("restart the server (process {process}) to apply it");
        }
        applied
    }

    /// Its URL from this machine, if it listens yet.
    pub fn url(&self) -> Option<String> {
        let address = reachable_here(*self.addresses.first()?);
        Some(format!("{}://{address}", self.scheme()))
    }

    /// The scheme of its addresses: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        match self.certificate {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Trust in its certificate only.
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

/// The address at which this machine reaches a server that listens at `address`.
pub fn reachable_here(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        // Not every machine has ::1, and IPv6 sockets accept IPv4 too.
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    }
}

/// Whether a process runs a program of this one's name. A server hides what it runs, so
/// that nobody can read its memory, but not the name.
fn is_this_program(process: &str) -> bool {
    let name = |process| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    name(process).is_some_and(|found| name("self") == Some(found))
}

fn parse(text: &str, lock: PathBuf) -> Option<RunningServer> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let process: i32 = first.trim().parse().ok()?;
    let certificate = rest
        .lines()
        .find_map(|line| line.strip_prefix("certificate "));
    // 0 and negative numbers would signal whole process groups. 1 is init, but in a
    // container the server itself.
    if process < 1 || process == 1 && !is_this_program("1") {
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
    use crate::cli::tests::DataDirectoryUnderTest;

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
    fn a_server_on_all_addresses_is_reached_on_loopback() {
        for (listens, reached) in [
            ("[::]:5000", "127.0.0.1:5000"),
            ("0.0.0.0:81", "127.0.0.1:81"),
            ("[::1]:81", "[::1]:81"),
            ("192.0.2.7:5000", "192.0.2.7:5000"),
        ] {
            let address = reachable_here(listens.parse().unwrap());
            assert_eq!(address.to_string(), reached, "{listens}");
        }
    }

    #[test]
    fn a_server_runs_as_long_as_it_holds_the_lock() {
        let root = DataDirectoryUnderTest::default();
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
