//! What wakes the timekeeper before its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

/// Why the timekeeper woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Its time has come, or deliveries may be due.
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

impl Wakes {
    pub fn new() -> Wakes {
        Wakes {
            bell: bounded(1),
            has_jumped: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Deliveries may be due.
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
        if !self.is_stopping.load(Ordering::SeqCst) {
            // Either way, the flags say why.
            let _ = self.bell.1.recv_timeout(most);
        }
        if self.is_stopping.load(Ordering::SeqCst) {
            Wake::Stop
        } else if self.has_jumped.swap(false, Ordering::SeqCst) {
            Wake::Everything
        } else {
            Wake::Look
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_however_often_the_timekeeper_is_woken() {
        const LONG: Duration = Duration::from_secs(60);
        let wakes = Wakes::new();
        (0..10).for_each(|_| wakes.look());
        wakes.look_at_everything();
        assert_eq!(wakes.wait(LONG), Wake::Everything);
        assert_eq!(wakes.wait(Duration::ZERO), Wake::Look);

        (0..10).for_each(|_| wakes.look());
        wakes.stop();
        assert_eq!(wakes.wait(LONG), Wake::Stop);
        assert_eq!(wakes.wait(LONG), Wake::Stop);
    }
}
