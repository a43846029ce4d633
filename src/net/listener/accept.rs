//! Accepts connections on one port, within limits and from permitted peers. No
//! error ends the accept loop.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::error::Error;
use config::Config;

use super::detect_protocol;
use super::refused::Refused;
use crate::capacity;
use crate::connection::Connection;
use crate::connection::admission::{Admission, Admissions};
use crate::connection::policy::ListenerPolicy;
use crate::connection::registry::{Registry, STACK_BYTES};
use crate::peer::AddressKey;
use crate::stream::Socket;
use crate::wait::{Interest, Waker, wait_beside};

/// Pauses after a failure to accept: the first, doubling up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// After how many seconds a client should try again that was refused for lack of
/// something.
const RETRY_SECONDS: u32 = 5;

/// Returns the current configuration.
pub type ConfigSource = Arc<dyn Fn() -> Arc<Config> + Send + Sync>;

/// The accept thread of one port.
pub struct AcceptLoop<A> {
    /// Read once for each connection.
    pub config: ConfigSource,
    /// Counts connections over all ports.
    pub admissions: Arc<Admissions>,
    /// What the port serves, and who may connect.
    pub policy: Arc<ListenerPolicy>,
    /// The port. Does not block.
    pub socket: TcpListener,
    /// Accepts a connection.
    pub accept: A,
    /// The port's address, for logs.
    pub address: SocketAddr,
    /// Ends the thread once the waker is used.
    pub stopping: Arc<AtomicBool>,
    /// Ends the thread's wait.
    pub waker: Arc<Waker>,
    /// The port's connections.
    pub registry: Arc<Registry>,
    /// Refused connections that may still read why.
    pub refused: Refused,
    /// Given up when no descriptor is left, to accept and refuse with it.
    pub spare: Option<TcpListener>,
    /// The pause after a failure to accept.
    pub pause: Pause,
}

impl<A> AcceptLoop<A>
where
    A: FnMut(&TcpListener) -> io::Result<(TcpStream, SocketAddr)>,
{
    /// Runs until the listener stops; no error ends it.
    pub fn run(mut self) {
        loop {
            self.waker.prepare();
            self.registry.reap();
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            self.refused.advance(&self.policy);
            if self.spare.is_none() {
                self.spare = self.socket.try_clone().ok();
            }
            self.pause.expire();
            let (interest, deadline) = match self.pause.until {
                Some(until) => (Interest::Hangup, Some(until)),
                None => (Interest::Read, self.refused.deadline()),
            };
            let silent = self.refused.silent();
            let (socket, waker) = (self.socket.as_fd(), Some(&*self.waker));
            match wait_beside(socket, interest, waker, &silent, deadline) {
                Ok(woken) if woken.ready && self.pause.until.is_none() => self.accept_one(),
                Ok(_) => {}
                Err(error) => {
                    self.back_off(&error);
                    // Where `poll` fails, only sleep can pause.
                    thread::sleep(self.pause.length);
                }
            }
        }
    }

    fn accept_one(&mut self) {
        match (self.accept)(&self.socket) {
            Ok((stream, address)) => {
                self.pause.forget();
                self.admit(stream, address.ip().to_canonical());
            }
            Err(error) if capacity::is_out_of_descriptors(&error) => self.refuse_next(),
            Err(error) => match error.kind() {
                // The client has already gone.
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => {}
                _ => self.back_off(&error),
            },
        }
    }

    /// Accepts with the descriptors that were kept for it, and refuses. While another
    /// client holds them that is about to read why, the next one waits.
    fn refuse_next(&mut self) {
        self.spare = None;
        self.refused.clear(&self.policy);
        match (self.accept)(&self.socket) {
            Ok((stream, address)) => {
                let error = Error::overloaded("the server has no descriptor left", RETRY_SECONDS);
                self.refuse(stream, address.ip().to_canonical(), error);
            }
            Err(_) if !self.refused.is_empty() => {
                self.pause.until = Some(Instant::now() + FIRST_PAUSE);
            }
            Err(error) => self.back_off(&error),
        }
    }

    fn refuse(&mut self, stream: TcpStream, remote: IpAddr, error: Error) {
        log::info!(
            peer:% = AddressKey::of(remote);
            "{}: {remote} refused: {error}",
            self.address
        );
        self.refused.add(stream, error, &self.policy);
    }

    /// Serves a connection or refuses it.
    fn admit(&mut self, stream: TcpStream, remote: IpAddr) {
        let config = (self.config)();
        let mut admission = match self.check_limits(&config, remote) {
            Ok(admission) => admission,
            Err(error) => return self.refuse(stream, remote, error),
        };
        // Otherwise a small answer would wait for the acknowledgement of the one
        // before. A connection that refuses the option is broken anyway.
        let _ = stream.set_nodelay(true);
        let stream = Arc::new(stream);
        if !self.policy.is_local {
            admission.may_make_way(&stream);
        }
        let socket = Socket::new(Arc::clone(&stream));
        let connection = Connection {
            policy: Arc::clone(&self.policy),
            config,
            admission,
            remote,
            secure: false,
            begun: Instant::now(),
            received: 0,
        };
        let spawned = self.registry.spawn(Arc::clone(&stream), move |registered| {
            detect_protocol::serve(connection, socket, registered);
        });
        if let Err(error) = spawned
            && let Some(stream) = Arc::into_inner(stream)
        {
            log::debug!("no thread for {remote}: {error}");
            let error = Error::overloaded("the server has no thread left", RETRY_SECONDS);
            self.refuse(stream, remote, error);
        }
    }

    /// Whether `remote` may connect now.
    fn check_limits(&self, config: &Config, remote: IpAddr) -> Result<Admission, Error> {
        self.policy.admit(remote)?;
        // All clients behind a proxy have its address. They are counted by their
        // own addresses once the request's headers are known.
        // Nor are those of this machine's owner: a tool that keeps connections open must
        // not keep the owner out.
        let is_counted = !self.policy.is_local && !config.trusted_proxies.allows(remote);
        let address = is_counted.then(|| AddressKey::of(remote));
        let admission = self.admissions.enter(&config.limits, address)?;
        // A thread that starts without room for its second stack aborts the process.
        match capacity::has_room(STACK_BYTES) {
            true => Ok(admission),
            false => Err(Error::overloaded(
                "the server has no memory left",
                RETRY_SECONDS,
            )),
        }
    }

    fn back_off(&mut self, error: &io::Error) {
        if self.pause.is_new() {
            log::warn!(
                "{}: cannot accept connections for now: {error}",
                self.address
            );
        }
        self.pause.begin();
    }
}

/// The pause after a failure to accept.
#[derive(Default)]
pub struct Pause {
    until: Option<Instant>,
    /// Its length; zero while accepting works.
    length: Duration,
}

impl Pause {
    fn is_new(&self) -> bool {
        self.length.is_zero()
    }

    fn begin(&mut self) {
        self.length = (self.length * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
        self.until = Some(Instant::now() + self.length);
    }

    fn expire(&mut self) {
        self.until = self.until.filter(|until| Instant::now() < *until);
    }

    fn forget(&mut self) {
        *self = Pause::default();
    }
}
