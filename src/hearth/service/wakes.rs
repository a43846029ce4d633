//! What wakes the timekeeper.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

/// Why the timekeeper woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Its time has come.
    Time,
    /// Something may be due.
    Look,
    /// Time has jumped: everything may be due.
    Everything,
    /// The server stops.
    Stop,
}

/// Wakes the timekeeper. Nothing is lost while it is busy, however often it is woken:
/// a lost [`Wake::Stop`] would leave the server waiting for its thread for ever.
pub(super) struct Wakes {
    bell: (Sender<()>, Receiver<()>),
    has_jumped: AtomicBool,
    is_stopping: AtomicBool,
}

impl Default for Wakes {
    fn default() -> Wakes {
        Wakes {
            bell: bounded(1),
            has_jumped: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        }
    }
}

impl Wakes {
    /// Something may be due.
    pub fn look(&self) {
        // A full channel wakes it already.
        let _ = self.bell.0.try_send(());
    }

    /// Time has jumped.
    pub fn look_at_everything(&self) {
        self.has_jumped.store(true, Ordering::SeqCst);
        self.look();
    }

    /// The server stops. Every later wait ends at once.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.look();
    }

    /// Waits to be woken, at most this long.
    pub fn wait(&self, most: Duration) -> Wake {
        let is_stopping = || self.is_stopping.load(Ordering::SeqCst);
        let was_woken = is_stopping() || self.bell.1.recv_timeout(most).is_ok();
        if is_stopping() {
            Wake::Stop
        } else if self.has_jumped.swap(false, Ordering::SeqCst) {
            Wake::Everything
        } else if was_woken {
            Wake::Look
        } else {
            Wake::Time
        }
    }
}
