//! The open connections of one listener, their threads, and how to end them.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::outbox::{Close, Outbox};
use crate::wait::{Waker, time_left};
use base::sync::lock;
use base::sync::spawn;

/// Virtual size of a connection's stack; memory is only what is touched, about
/// two pages for an idle connection. The deepest recursion that a message can
/// cause, JSON nested 127 times, was measured at 136 KiB (400 KiB without
/// optimisation). The rest is reserve: an overflow would abort the whole server.
pub const STACK_BYTES: usize = if cfg!(debug_assertions) { 1024 } else { 512 } * 1024;

/// How long connections may take to end by themselves when the listener stops;
/// then they are cut.
const GRACE: Duration = Duration::from_secs(3);
/// How long cut connections may take to end.
const CUT: Duration = Duration::from_secs(2);

/// The open connections of one listener.
pub struct Registry {
    state: Mutex<State>,
    /// Set under the lock of `state`, read without it once per request.
    stopping: AtomicBool,
    /// Notified whenever a connection ends.
    ended: Condvar,
    /// Wakes the accept thread to join what has ended.
    reaper: Arc<Waker>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: HashMap<u64, Open>,
    ended: Vec<JoinHandle<()>>,
}

struct Open {
    socket: Arc<TcpStream>,
    /// Present once the connection has one. Closing it ends the connection.
    outbox: Option<Arc<Outbox>>,
    thread: JoinHandle<()>,
}

impl Registry {
    /// An empty registry. It wakes `reaper` when [`Registry::reap`] has threads to
    /// join.
    pub fn new(reaper: Arc<Waker>) -> Registry {
        Registry {
            state: Mutex::default(),
            stopping: AtomicBool::new(false),
            ended: Condvar::new(),
            reaper,
        }
    }

    /// Starts a thread that serves `socket`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn spawn(
        self: &Arc<Registry>,
        socket: Arc<TcpStream>,
        serve: impl FnOnce(&Registered) + Send + 'static,
    ) -> io::Result<()> {
        // Held while the thread starts: its end must find its entry.
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        let registry = Arc::clone(self);
        let thread = spawn(
            thread::Builder::new()
                .name(format!("conn-{number}"))
                .stack_size(STACK_BYTES),
            move || serve(&Registered { registry, number }),
        )?;
        let open = Open {
            socket,
            outbox: None,
            thread,
        };
        state.open.insert(number, open);
        Ok(())
    }

    /// Joins the threads of connections that have ended.
    pub fn reap(&self) {
        let ended = std::mem::take(&mut self.lock().ended);
        for thread in ended {
            // The thread is about to return. A panic was reported when it happened.
            let _ = thread.join();
        }
    }

    /// Ends every connection and joins their threads: after at most five seconds, with a
    /// warning in the log that names `what` if a handler is still running then.
    pub fn end(&self, what: impl std::fmt::Display) {
        self.close();
        if self.join(Instant::now() + GRACE) > 0 {
            self.cut();
            let left = self.join(Instant::now() + CUT);
            if left > 0 {
                log::warn!("{what}: {left} connections did not end");
            }
        }
    }

    /// Asks every connection to end: those with an outbox once it is sent, the
    /// others once their current request is answered.
    pub fn close(&self) {
        let state = self.lock();
        self.stopping.store(true, Ordering::SeqCst);
        for open in state.open.values() {
            match &open.outbox {
                Some(outbox) => outbox.close(Close::GOING_AWAY),
                // Only ends the wait for input. A connection that its client has
                // already closed cannot be shut down again.
                None => drop(open.socket.shutdown(Shutdown::Read)),
            }
        }
    }

    /// Shuts down every connection that is still open after [`Registry::close`].
    pub fn cut(&self) {
        for open in self.lock().open.values() {
            drop(open.socket.shutdown(Shutdown::Both));
        }
    }

    /// Waits until every connection has ended and joins their threads. Returns
    /// how many have not ended by `deadline`.
    pub fn join(&self, deadline: Instant) -> usize {
        let mut state = self.lock();
        loop {
            let left = time_left(deadline);
            if state.open.is_empty() || left.is_zero() {
                break;
            }
            state = self
                .ended
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let remaining = state.open.len();
        drop(state);
        self.reap();
        remaining
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// A connection's own entry; dropping it reports its end.
pub struct Registered {
    registry: Arc<Registry>,
    number: u64,
}

impl Registered {
    /// Sets the outbox whose closing ends this connection.
    pub fn set_outbox(&self, outbox: &Arc<Outbox>) {
        let mut state = self.registry.lock();
        if self.is_stopping() {
            outbox.close(Close::GOING_AWAY);
        }
        if let Some(open) = state.open.get_mut(&self.number) {
            open.outbox = Some(Arc::clone(outbox));
        }
    }

    /// Whether the listener is ending its connections.
    pub fn is_stopping(&self) -> bool {
        self.registry.stopping.load(Ordering::SeqCst)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        if let Some(open) = state.open.remove(&self.number) {
            state.ended.push(open.thread);
        }
        let wake = state.ended.len() == 1;
        drop(state);
        self.registry.ended.notify_all();
        if wake {
            self.registry.reaper.wake();
        }
    }
}
