//! Tells the service manager how the server is: the protocol of sd_notify(3),
//! datagrams of `NAME=VALUE` lines to the socket in `NOTIFY_SOCKET`.
//! Where nobody listens for it, nothing is sent and no thread runs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use rustix::time::{ClockId, clock_gettime};

use super::context::Failure;
use crate::server::Server;

/// How long a database may refuse to be written before the watchdog is let
/// down. A new process mends a file handle that has gone stale; it does not mend
/// a full disk, with which this one can at least be read.
const UNWRITABLE: Duration = Duration::from_secs(5 * 60);

/// The way to the service manager, if one listens.
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// How often it wants to hear that we are alive, if it does.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// As the environment says.
    pub fn find(environment: &dyn Fn(&str) -> Option<OsString>) -> ServiceManager {
        let socket = environment("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let socket = socket.and_then(|name| match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                log::warn!("NOTIFY_SOCKET {}: {error}", name.to_string_lossy());
                None
            }
        });
        let number = |name: &str| environment(name)?.to_str()?.parse::<u64>().ok();
        // The variables may have been meant for a process above us.
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&time| time > 0 && is_ours);
        ServiceManager {
            watchdog: watchdog
                .map(Duration::from_micros)
                .filter(|_| socket.is_some()),
            socket,
        }
    }

    /// The server listens; `status` is for `systemctl status`.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// The configuration is being reread, until the next [`ServiceManager::ready`].
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\n"));
    }

    /// The server stops.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Stopping: turns under way get 10 seconds\n");
    }

    fn tell(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            log::debug!("the service manager was not told: {error}");
        }
    }

    /// Tells the service manager twice in each of its periods that the server is
    /// alive, as long as it is. Does nothing where nobody wants to hear it.
    pub fn watch<'scope, 'env>(
        &'env self,
        server: &'env Server,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Result<Option<Watch<'scope>>, Failure> {
        let Some(period) = self.watchdog else {
            return Ok(None);
        };
        let (end, ended) = bounded(0);
        let body = move || {
            let mut health = Health::new(period);
            loop {
                let complaint = health.look(server);
                match complaint {
                    None => self.tell("WATCHDOG=1\n"),
                    // The watchdog's silence has its reason in the journal.
                    Some(complaint) => self.tell(&format!("STATUS={complaint}\n")),
                }
                match ended.recv_timeout(period / 2) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
            }
        };
        let thread = thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn_scoped(scope, body)
            .map_err(|error| Failure::failed(format!("no thread for the watchdog: {error}")))?;
        Ok(Some(Watch {
            _end: end,
            _thread: thread,
        }))
    }
}

/// The watchdog's thread; ends when this is dropped, and its scope joins it.
pub struct Watch<'scope> {
    _end: Sender<()>,
    _thread: ScopedJoinHandle<'scope, ()>,
}

/// Whether the server does its work, seen from outside its threads.
struct Health {
    period: Duration,
    unwritable_since: Option<Instant>,
}

impl Health {
    fn new(period: Duration) -> Health {
        Health {
            period,
            unwritable_since: None,
        }
    }

    /// What is wrong, if anything: the timekeeper asks the database something
    /// each second, so that it is late when either hangs.
    fn look(&mut self, server: &Server) -> Option<&'static str> {
        if server.is_writable() {
            self.unwritable_since = None;
        } else {
            let since = *self.unwritable_since.get_or_insert_with(Instant::now);
            if since.elapsed() > UNWRITABLE {
                return Some("The database cannot be written");
            }
        }
        (server.last_tick().elapsed() > self.period)
            .then_some("The timekeeper is late: the database or the machine hangs")
    }
}

/// A socket to this address: a path, or a name after `@` in the abstract
/// namespace of Linux.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address(name)?)?;
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    Ok(socket)
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(Path::new(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::TemporaryDirectory;

    fn find(variables: &[(&str, &str)]) -> ServiceManager {
        ServiceManager::find(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn a_socket_is_a_path_or_an_abstract_name() {
        let root = TemporaryDirectory::new();
        let path = root.path().join("notify");
        let abstract_name = format!("hearth-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (listener, name) in [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.to_str().unwrap().to_owned(),
            ),
            (
                UnixDatagram::bind_addr(&abstract_address).unwrap(),
                format!("@{abstract_name}"),
            ),
        ] {
            find(&[("NOTIFY_SOCKET", &name)]).ready("all is well");
            let mut bytes = [0; 100];
            let length = listener.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"READY=1\nSTATUS=all is well\n");
        }
    }

    #[test]
    fn nobody_who_listens_is_no_failure() {
        find(&[]).ready("unheard");
        find(&[("NOTIFY_SOCKET", "/nonexistent/socket")]).stopping();
    }

    #[test]
    fn a_watchdog_is_heeded_when_it_is_meant_for_us() {
        let root = TemporaryDirectory::new();
        let path = root.path().join("notify");
        let _listener = UnixDatagram::bind(&path).unwrap();
        let socket = ("NOTIFY_SOCKET", path.to_str().unwrap());
        let own = std::process::id().to_string();
        let second = Some(Duration::from_secs(1));
        let time = ("WATCHDOG_USEC", "1000000");
        for (variables, watchdog) in [
            (&[socket, time][..], second),
            (&[socket, time, ("WATCHDOG_PID", &own)], second),
            (&[socket, time, ("WATCHDOG_PID", "1")], None),
            (&[socket, ("WATCHDOG_USEC", "0")], None),
            (&[socket, ("WATCHDOG_USEC", "soon")], None),
            (&[socket], None),
            (&[time], None),
        ] {
            assert_eq!(find(variables).watchdog, watchdog, "{variables:?}");
        }
    }
}
