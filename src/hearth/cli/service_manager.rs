//! Reports the state of the server to the service manager, by the protocol of
//! sd_notify(3): datagrams of `NAME=VALUE` lines to the socket in `NOTIFY_SOCKET`.
//! Without that variable nothing is sent and no thread runs.

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

use super::context::CliError;
use crate::server::Server;

/// How long the database may be unwritable before the watchdog is no longer
/// notified. A restart fixes a stale file handle, but not a full disk, with which
/// this process can at least read.
const UNWRITABLE: Duration = Duration::from_secs(5 * 60);

/// The connection to the service manager, if there is one.
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// The watchdog's period, if it is enabled.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads the environment.
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
        // The variables may be meant for a parent process.
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
        self.send(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// The configuration is being reread, until the next [`ServiceManager::ready`].
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\n"));
    }

    /// The server stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Stopping: running turns get 10 seconds\n");
    }

    fn send(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            log::debug!("cannot notify the service manager: {error}");
        }
    }

    /// Notifies the watchdog twice per period while the server is healthy. Does
    /// nothing if the watchdog is not enabled.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn watch<'scope, 'env>(
        &'env self,
        server: &'env Server,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Result<Option<WatchdogThread<'scope>>, CliError> {
        let Some(period) = self.watchdog else {
            return Ok(None);
        };
        let (end, ended) = bounded(0);
        let body = move || {
            let mut health = HealthCheck::new(period);
            loop {
                let complaint =
                    health.look(server.store().is_writable(), server.last_tick().elapsed());
                match complaint {
                    None => self.send("WATCHDOG=1\n"),
                    // The journal then has the reason for the restart.
                    Some(complaint) => self.send(&format!("STATUS={complaint}\n")),
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
            .map_err(|error| {
                CliError::failed(format!("cannot start the watchdog thread: {error}"))
            })?;
        Ok(Some(WatchdogThread {
            _end: end,
            _thread: thread,
        }))
    }
}

/// The watchdog's thread; ends when this is dropped, and its scope joins it.
pub struct WatchdogThread<'scope> {
    _end: Sender<()>,
    _thread: ScopedJoinHandle<'scope, ()>,
}

/// Judges from outside the server's threads whether it is healthy.
struct HealthCheck {
    period: Duration,
    unwritable_since: Option<Instant>,
}

impl HealthCheck {
    fn new(period: Duration) -> HealthCheck {
        HealthCheck {
            period,
            unwritable_since: None,
        }
    }

    /// What is wrong, if anything. The timekeeper reads the database every second,
    /// so it is late when either of them hangs.
    fn look(&mut self, is_writable: bool, since_tick: Duration) -> Option<&'static str> {
        if is_writable {
            self.unwritable_since = None;
        } else {
            let since = *self.unwritable_since.get_or_insert_with(Instant::now);
            if since.elapsed() > UNWRITABLE {
                return Some("The database is not writable");
            }
        }
        (since_tick > self.period)
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
    use crate::cli::tests::DataDirectoryUnderTest;

    fn find(variables: &[(&str, &str)]) -> ServiceManager {
        ServiceManager::find(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn what_a_restart_may_mend_is_complained_of() {
        let period = Duration::from_secs(2);
        let mut health = HealthCheck::new(period);
        let late = Some("The timekeeper is late: the database or the machine hangs");
        assert_eq!(health.look(true, period), None);
        assert_eq!(health.look(true, period * 2), late);
        assert_eq!(health.look(false, period), None);
        health.unwritable_since = Instant::now().checked_sub(UNWRITABLE * 2);
        let unwritable = Some("The database is not writable");
        assert_eq!(health.look(false, period), unwritable);
        assert_eq!(health.look(true, period), None);
        assert_eq!(health.look(false, period), None);
    }

    #[test]
    fn a_socket_is_a_path_or_an_abstract_name() {
        let root = DataDirectoryUnderTest::default();
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
    fn a_missing_service_manager_is_no_failure() {
        find(&[]).ready("unheard");
        find(&[("NOTIFY_SOCKET", "/nonexistent/socket")]).stopping();
    }

    #[test]
    fn a_watchdog_for_another_process_is_ignored() {
        let root = DataDirectoryUnderTest::default();
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
