//! Listening ports. The path of a connection:
//!
//! ```text
//! Listeners::listen -> AcceptLoop::run -> detect_protocol::serve
//!     -> HttpConnection::serve -> Handler::admit, Admitted::respond
//!        '-> websocket::run ----> ClientHandler::receive
//!     -> lines::run ------------> ClientHandler::receive
//! ```

mod accept;
mod detect_protocol;
mod refused;
#[cfg(feature = "tls")]
mod tls_opening;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use base::sync::spawn;
use config::{AddressPatterns, Config, Settings};
use rustix::net::{SocketFlags, sockopt};
use rustix::process::geteuid;

use crate::capacity;
use crate::client_handler::HandlerFactory;
use crate::connection::Connection;
use crate::connection::policy::ListenerPolicy;
#[cfg(feature = "tls")]
use crate::connection::policy::TlsPolicy;
use crate::connection::registry::Registry;
use crate::http::handler::Handler;
use crate::stream::Socket;
#[cfg(feature = "tls")]
use crate::tls::Acceptor;
use crate::wait::Waker;
use accept::{AcceptLoop, ConfigSource};

pub use crate::connection::admission::{Admissions, Connections};
pub use crate::connection::registry::STACK_BYTES;

/// How many connections may wait until they are accepted, if the system allows so many. Of
/// the 128 of the standard library, clients that all come back after a restart are reset.
const BACKLOG: i32 = 4_096;
/// What stands for the address of a peer on this machine that has none.
const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Opens listeners and counts their connections together.
pub struct Listeners {
    config: ConfigSource,
    admissions: Arc<Admissions>,
    /// `None` for a relay, which has no sessions.
    sessions: Option<HandlerFactory>,
    #[cfg(feature = "tls")]
    tls: Option<(Arc<Acceptor>, bool)>,
}

impl Listeners {
    /// Connections are handled by `sessions`. The limits come from `settings`
    /// and are read once for each connection, so that a change applies to the
    /// next one.
    pub fn new(settings: Arc<Settings>, sessions: HandlerFactory) -> Listeners {
        Listeners::with(move || settings.current(), Some(sessions))
    }

    /// The listeners of a relay: no sessions, and limits that do not change.
    pub fn of_relay(config: Config) -> Listeners {
        let config = Arc::new(config);
        Listeners::with(move || Arc::clone(&config), None)
    }

    /// Listeners that read the current configuration from `config`.
    pub(crate) fn with(
        config: impl Fn() -> Arc<Config> + Send + Sync + 'static,
        sessions: Option<HandlerFactory>,
    ) -> Listeners {
        let wanted = config().limits.connections;
        let (most, limit) = capacity::connections();
        if most < wanted {
            log::warn!("limits.connections is {wanted}, but {limit} leaves room for {most}");
        }
        Listeners {
            config: Arc::new(config),
            admissions: Arc::new(Admissions::new(most)),
            sessions,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Makes all listeners opened from now on speak TLS, if there is an acceptor.
    /// With `only`, clients that do not speak TLS are redirected or refused.
    #[cfg(feature = "tls")]
    pub fn with_tls(mut self, acceptor: Option<Arc<Acceptor>>, only: bool) -> Listeners {
        self.tls = acceptor.map(|acceptor| (acceptor, only));
        self
    }

    /// Serves WebSocket, JSON lines and HTTP on `socket`, to peers that
    /// `allow_from` permits (contract section 5).
    ///
    /// # Errors
    /// The socket cannot be used, or no thread or descriptor is left.
    pub fn listen(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        self.open(socket, allow_from, handler, true)
    }

    /// Serves only HTTP on `socket`: a port for webhooks alone.
    ///
    /// # Errors
    /// As [`Listeners::listen`].
    pub fn listen_http(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        self.open(socket, allow_from, handler, false)
    }

    fn open(
        &self,
        socket: TcpListener,
        allow_from: AddressPatterns,
        handler: Arc<dyn Handler>,
        upgrades: bool,
    ) -> io::Result<Listener> {
        #[cfg(feature = "tls")]
        let tls = (self.tls.clone())
            .map(|(acceptor, only)| TlsPolicy::new(acceptor, only, allow_from.clone()));
        let policy = ListenerPolicy {
            allow_from,
            handler,
            sessions: self.sessions.clone().filter(|_| upgrades),
            upgrades,
            is_local: false,
            #[cfg(feature = "tls")]
            tls,
        };
        // A client may disconnect between `poll` and `accept`; `accept` must not
        // wait for the next one then.
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        self.start(policy, socket, address, TcpListener::accept)
    }

    /// Serves what [`Listeners::listen`] serves on a socket of the file system, to
    /// processes of this process's user and of root. Its peers are
    /// [local](crate::peer::Peer::is_local).
    ///
    /// # Errors
    /// As [`Listeners::listen`].
    pub fn listen_local(
        &self,
        socket: UnixListener,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        // The standard library's TCP types hold any stream socket.
        let socket = TcpListener::from(OwnedFd::from(socket));
        self.start(self.local_policy(handler), socket, LOCAL, |socket| {
            let stream = rustix::net::accept_with(socket, SocketFlags::CLOEXEC)?;
            let peer = sockopt::socket_peercred(&stream)?;
            match peer.uid.is_root() || peer.uid == geteuid() {
                true => Ok((TcpStream::from(stream), LOCAL)),
                false => Err(io::ErrorKind::ConnectionAborted.into()),
            }
        })
    }

    /// Serves one end of a pair of sockets as a connection to [`Listeners::listen_local`].
    ///
    /// # Errors
    /// As [`Listeners::listen`].
    pub fn serve_local(
        &self,
        stream: UnixStream,
        handler: Arc<dyn Handler>,
    ) -> io::Result<LocalConnection> {
        let config = (self.config)();
        let admission = (self.admissions.enter(&config.limits, None))
            .map_err(|error| io::Error::other(error.to_string()))?;
        let stream = Arc::new(TcpStream::from(OwnedFd::from(stream)));
        let socket = Socket::new(Arc::clone(&stream));
        let connection = Connection {
            policy: Arc::new(self.local_policy(handler)),
            config,
            admission,
            remote: LOCAL.ip(),
            secure: false,
            begun: Instant::now(),
            received: 0,
        };
        let registry = Arc::new(Registry::new(Arc::new(Waker::new()?)));
        registry.spawn(stream, move |registered| {
            detect_protocol::serve(connection, socket, registered);
        })?;
        Ok(LocalConnection { registry })
    }

    fn local_policy(&self, handler: Arc<dyn Handler>) -> ListenerPolicy {
        ListenerPolicy {
            allow_from: AddressPatterns::all(),
            handler,
            sessions: self.sessions.clone(),
            upgrades: true,
            is_local: true,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Starts a listener. Tests pass their own `accept` to test its errors.
    pub(crate) fn start(
        &self,
        policy: ListenerPolicy,
        socket: TcpListener,
        address: SocketAddr,
        accept: impl FnMut(&TcpListener) -> io::Result<(TcpStream, SocketAddr)> + Send + 'static,
    ) -> io::Result<Listener> {
        rustix::net::listen(&socket, BACKLOG)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Waker::new()?);
        let registry = Arc::new(Registry::new(Arc::clone(&waker)));
        let accept_loop = AcceptLoop {
            config: Arc::clone(&self.config),
            admissions: Arc::clone(&self.admissions),
            policy: Arc::new(policy),
            socket,
            accept,
            address,
            stopping: Arc::clone(&stopping),
            waker: Arc::clone(&waker),
            registry: Arc::clone(&registry),
            refused: Default::default(),
            spare: None,
            pause: Default::default(),
        };
        let accepting = spawn(
            thread::Builder::new().name(format!("accept-{}", address.port())),
            move || accept_loop.run(),
        )?;
        Ok(Listener {
            address,
            stopping,
            waker,
            registry,
            accepting: Some(accepting),
        })
    }

    /// The counts of connections. They outlive the listeners.
    pub fn admissions(&self) -> Arc<Admissions> {
        Arc::clone(&self.admissions)
    }

    /// How many connections are open now, over all listeners.
    pub fn connections(&self) -> Connections {
        self.admissions.open()
    }
}

/// One connection that no listener accepted; dropping it ends it.
pub struct LocalConnection {
    registry: Arc<Registry>,
}

impl Drop for LocalConnection {
    fn drop(&mut self) {
        self.registry.end("a local connection");
    }
}

/// One listening port and all its connections.
pub struct Listener {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
    registry: Arc<Registry>,
    accepting: Option<JoinHandle<()>>,
}

impl Listener {
    /// Where it listens; the port is the one that the system chose for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port but keeps its connections. The first step of a stop: running
    /// work can finish while nothing new arrives.
    pub fn refuse_new(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// Stops accepting, ends every connection and joins all threads. Returns
    /// after at most five seconds, with a warning in the log if a handler is
    /// still running then.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        self.refuse_new();
        // It ends at once. A panic was reported when it happened.
        let _ = accepting.join();
        self.registry.end(self.address);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}
