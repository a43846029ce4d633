//! Accepts connections on one port, within limits and from permitted peers. No
//! error ends the accept loop.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::error::Error;
use config::Config;

use super::detect_protocol;
use crate::connection::Connection;
use crate::connection::admission::{Admission, Admissions};
use crate::connection::policy::ListenerPolicy;
use crate::connection::registry::Registry;
use crate::http::message::Response;
use crate::http::response_writer::{Persistence, Responder};
use crate::peer::AddressKey;
use crate::stream::Socket;
use crate::wait::{Interest, Waker, wait};

/// Pauses after a failure to accept: the first, doubling up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Returns the current configuration.
pub type ConfigSource = Arc<dyn Fn() -> Arc<Config> + Send + Sync>;

/// The accept thread of one port.
pub struct AcceptLoop<A> {
    /// Read once for each connection.
    pub config: ConfigSource,
    /// Counts connections over all ports.
    pub admissions: Arc<Admissions>,
    /// What the port serves, and to whom.
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
            let (interest, deadline) = match self.pause.until {
                Some(until) => (Interest::Hangup, Some(until)),
                None => (Interest::Read, self.refused.deadline()),
            };
            let woken = wait(self.socket.as_fd(), interest, Some(&self.waker), deadline);
            self.refused.expire();
            match woken {
                Ok(woken) if woken.ready && self.pause.until.is_none() => self.accept_one(),
                Ok(woken) if woken.signalled => {}
                Ok(_) => self.pause.until = None,
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
            Ok((stream, address)) => match self.admit(stream, address.ip().to_canonical()) {
                Ok(()) => self.pause.forget(),
                Err(error) => self.back_off(&error),
            },
            Err(error) => match error.kind() {
                // The client has already gone.
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => {}
                _ => self.back_off(&error),
            },
        }
    }

    /// Serves a connection or refuses it.
    ///
    /// # Errors
    /// No thread can be started.
    fn admit(&mut self, stream: TcpStream, remote: IpAddr) -> io::Result<()> {
        let config = (self.config)();
        let admission = match self.check_limits(&config, remote) {
            Ok(admission) => admission,
            Err(error) => {
                log::info!("{}: {remote} refused: {error}", self.address);
                self.refused.add(stream, &error, self.policy.is_secure());
                return Ok(());
            }
        };
        // Otherwise a small answer would wait for the acknowledgement of the one
        // before. A connection that refuses the option is broken anyway.
        let _ = stream.set_nodelay(true);
        let stream = Arc::new(stream);
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
        if spawned.is_err()
            && let Some(stream) = Arc::into_inner(stream)
        {
            let error = Error::overloaded("the server has no thread left", 5);
            self.refused.add(stream, &error, self.policy.is_secure());
        }
        spawned
    }

    /// Whether `remote` may connect now.
    fn check_limits(&self, config: &Config, remote: IpAddr) -> Result<Admission, Error> {
        self.policy.admit(remote)?;
        let mut admission = self.admissions.enter(&config.limits)?;
        // All clients behind a proxy have its address. They are counted by their
        // own addresses once the request's headers are known.
        if !config.trusted_proxies.allows(remote) {
            admission.belong_to(AddressKey::of(remote), &config.limits)?;
        }
        Ok(admission)
    }

    fn back_off(&mut self, error: &io::Error) {
        if self.pause.is_new() {
            log::warn!(
                "{}: cannot accept connections for now: {error}",
                self.address
            );
        }
        // They hold file descriptors, which may have run out.
        self.refused.clear();
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

    fn forget(&mut self) {
        *self = Pause::default();
    }
}

/// Refused connections whose clients still have a moment to read why. If they
/// were closed at once with unread input, the reset could overtake the answer.
#[derive(Default)]
pub struct Refused {
    open: VecDeque<(Instant, TcpStream)>,
    responder: Responder,
}

#[cfg(feature = "tls")]
fn refuse_handshake(stream: &mut impl io::Write) -> io::Result<()> {
    stream.write_all(super::tls_opening::REFUSAL)
}

#[cfg(not(feature = "tls"))]
fn refuse_handshake(_: &mut impl io::Write) -> io::Result<()> {
    Ok(())
}

impl Refused {
    const MOST: usize = 32;
    const TIME: Duration = Duration::from_secs(1);

    /// Sends `error` as far as possible without waiting. On a TLS port it sends
    /// only an alert.
    fn add(&mut self, stream: TcpStream, error: &Error, is_secure: bool) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let written = match is_secure {
            true => refuse_handshake(&mut &stream),
            false => self.responder.write(
                &Response::error(error),
                false,
                Persistence::Close,
                &mut &stream,
            ),
        };
        if written.is_ok() && stream.shutdown(Shutdown::Write).is_ok() {
            if self.open.len() == Refused::MOST {
                self.open.pop_front();
            }
            self.open
                .push_back((Instant::now() + Refused::TIME, stream));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.open.front().map(|(deadline, _)| *deadline)
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some((deadline, _)) = self.open.front()
            && *deadline <= now
        {
            if let Some((_, stream)) = self.open.pop_front() {
                // Reads and drops what the client sent meanwhile.
                let _ = (&stream).read(&mut [0; 2048]);
            }
        }
    }

    fn clear(&mut self) {
        self.open.clear();
    }
}
