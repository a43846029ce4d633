//! Finds the server that runs on a data directory.
//!
//! A server keeps `hearth.lock` locked (flock) as long as it runs; a file that is
//! not locked was left by one that was killed. The
//! file's first line is its process id; the lines after it, if any, are the
//! addresses on which it listens and, where that is with TLS, the file of its
//! certificate.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;

use super::data_directory::DataDirectory;
use net::tls::Trust;

/// A running server.
#[derive(Debug, PartialEq, Eq)]
pub struct RunningServer {
    process: Pid,
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
            Err(Errno::WOULDBLOCK) => parse(&fs::read_to_string(directory.lock()).ok()?),
            Err(_) => None,
        }
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

fn parse(text: &str) -> Option<RunningServer> {
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
            let parsed = parse(text);
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
            let parsed = parse(text).unwrap();
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
