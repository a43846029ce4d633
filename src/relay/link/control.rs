//! Stops a link from another thread, no matter what the link waits for.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::sync;
use net::wait::Waker;

/// What a link's thread and its owner share.
pub(super) struct Control {
    state: Mutex<Stopping>,
    changed: Condvar,
    /// Ends the wait of an open link.
    pub waker: Arc<Waker>,
}

#[derive(Default)]
struct Stopping {
    is_stopping: bool,
    /// The connection of a link that is not open yet: stopping shuts it down.
    opening: Option<Arc<TcpStream>>,
}

impl Control {
    /// Of a link that is to run.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new() -> io::Result<Control> {
        Ok(Control {
            state: Mutex::default(),
            changed: Condvar::new(),
            waker: Arc::new(Waker::new()?),
        })
    }

    /// Ends the link, no matter what it waits for.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopping = true;
        if let Some(socket) = state.opening.take() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state);
        self.changed.notify_all();
        self.waker.wake();
    }

    /// Whether the link is to end.
    pub fn is_stopping(&self) -> bool {
        self.lock().is_stopping
    }

    /// Notes the connection of a link that is being opened.
    pub fn begun(&self, socket: &Arc<TcpStream>) {
        let mut state = self.lock();
        if state.is_stopping {
            let _ = socket.shutdown(Shutdown::Both);
        }
        state.opening = Some(Arc::clone(socket));
    }

    /// Forgets it: an open link closes in an orderly way.
    pub fn opened(&self) {
        self.lock().opening = None;
    }

    /// Waits for `time`; returns whether the link is to continue.
    pub fn pause(&self, time: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, time, |state| !state.is_stopping)
            .unwrap_or_else(PoisonError::into_inner);
        !state.is_stopping
    }

    fn lock(&self) -> MutexGuard<'_, Stopping> {
        sync::lock(&self.state)
    }
}
