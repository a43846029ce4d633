//! Accepts connections on one port: within limits, from permitted peers, and
//! whatever goes wrong.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::admission::Admission;
use super::connection::Connection;
use super::exchange::Response;
use super::registry::Registry;
use super::respond::{Persistence, Responder};
use super::stream::Socket;
use super::wait::{Interest, Waker, wait};
use super::{ListenerPolicy, Shared, detect_protocol};
use crate::peer::AddressKey;
use base::error::Error;
use base::threads;
use config::Config;

/// How long connections may take to end by themselves when the listener stops;
/// then they are cut.
const GRACE: Duration = Duration::from_secs(3);
/// How long cut connections may take.
const CUT: Duration = Duration::from_secs(2);

/// Pauses after a failure to accept: the first, doubling up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// One listening port and all its connections.
pub struct Listener {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
    registry: Arc<Registry>,
    accepting: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts to accept connections from `socket` to `door`.
    ///
    /// # Errors
    /// The socket cannot be used, or no thread or descriptor is left.
    pub(super) fn start(
        shared: &Arc<Shared>,
        door: ListenerPolicy,
        socket: TcpListener,
    ) -> io::Result<Listener> {
        // A client may give up between `poll` and `accept`, which then must
        // not wait for the next one.
        socket.set_nonblocking(true)?;
        let accept = |socket: &TcpListener| socket.accept();
        Listener::start_with(shared, door, socket, accept)
    }

    /// [`Listener::start`] with another way to accept, for tests of its errors.
    pub(super) fn start_with(
        shared: &Arc<Shared>,
        door: ListenerPolicy,
        socket: TcpListener,
        accept: impl FnMut(&TcpListener) -> io::Result<(TcpStream, SocketAddr)> + Send + 'static,
    ) -> io::Result<Listener> {
        let address = socket.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Waker::new()?);
        let registry = Arc::new(Registry::new(Arc::clone(&waker)));
        let acceptor = Acceptor {
            shared: Arc::clone(shared),
            door: Arc::new(door),
            socket,
            accept,
            address,
            stopping: Arc::clone(&stopping),
            waker: Arc::clone(&waker),
            registry: Arc::clone(&registry),
            refused: Refused::default(),
            pause: Pause::default(),
        };
        let accepting = threads::spawn(
            thread::Builder::new().name(format!("accept-{}", address.port())),
            move || acceptor.run(),
        )?;
        Ok(Listener {
            address,
            stopping,
            waker,
            registry,
            accepting: Some(accepting),
        })
    }

    /// Where it listens; the port is the one that the system chose for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port; connections go on. The way to begin a stop: what is
    /// under way can end while nothing new comes.
    pub fn refuse_new(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// Stops accepting, ends every connection and joins all threads. Returns
    /// after at most five seconds, with a warning in the log if a handler is
    /// still at work then.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        self.refuse_new();
        // It ends at once; had it panicked, that was reported then.
        let _ = accepting.join();
        self.registry.close();
        if self.registry.join(Instant::now() + GRACE) > 0 {
            self.registry.cut();
            let left = self.registry.join(Instant::now() + CUT);
            if left > 0 {
                log::warn!("{}: {left} connections did not end", self.address);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the accept thread works with.
struct Acceptor<A> {
    shared: Arc<Shared>,
    door: Arc<ListenerPolicy>,
    socket: TcpListener,
    accept: A,
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
    registry: Arc<Registry>,
    refused: Refused,
    pause: Pause,
}

impl<A> Acceptor<A>
where
    A: FnMut(&TcpListener) -> io::Result<(TcpStream, SocketAddr)>,
{
    /// Ends only when the listener stops, whatever happens.
    fn run(mut self) {
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
                    // Without poll there is no other way to pause.
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
        let config = (self.shared.config)();
        let admission = match self.judge(&config, remote) {
            Ok(admission) => admission,
            Err(error) => {
                log::info!("{}: {remote} refused: {error}", self.address);
                self.refused.add(stream, &error, self.door.is_secure());
                return Ok(());
            }
        };
        // Without it a small answer waits for the acknowledgement of the one
        // before. A connection that refuses it is of no use anyway.
        let _ = stream.set_nodelay(true);
        let stream = Arc::new(stream);
        let socket = Socket::new(Arc::clone(&stream));
        let connection = Connection {
            door: Arc::clone(&self.door),
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
            self.refused.add(stream, &error, self.door.is_secure());
        }
        spawned
    }

    /// Whether `remote` may connect now.
    fn judge(&self, config: &Config, remote: IpAddr) -> Result<Admission, Error> {
        self.door.admit(remote)?;
        let mut admission = self.shared.admissions.enter(&config.limits)?;
        // All clients behind a proxy have its address. They are counted one by
        // one where they can be told apart.
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
        // They hold descriptors, which may be what is missing.
        self.refused.clear();
        self.pause.begin();
    }
}

/// The pause after a failure to accept.
#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    /// Its length; zero while all is well.
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

/// Refused connections whose clients are still given a moment to read why. If
/// they were closed at once with something unread, the reset could overtake
/// the answer.
#[derive(Default)]
struct Refused {
    open: VecDeque<(Instant, TcpStream)>,
    responder: Responder,
}

#[cfg(feature = "tls")]
fn refuse_handshake(stream: &mut impl io::Write) -> io::Result<()> {
    stream.write_all(super::tls_policy::REFUSAL)
}

#[cfg(not(feature = "tls"))]
fn refuse_handshake(_: &mut impl io::Write) -> io::Result<()> {
    Ok(())
}

impl Refused {
    const MOST: usize = 32;
    const TIME: Duration = Duration::from_secs(1);

    /// Sends `error` as far as that is possible without waiting; where TLS is
    /// spoken, only that there is one.
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
                // What was sent meanwhile is taken in, and not answered.
                let _ = (&stream).read(&mut [0; 2048]);
            }
        }
    }

    fn clear(&mut self) {
        self.open.clear();
    }
}
