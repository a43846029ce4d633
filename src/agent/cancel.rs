//! How a turn is stopped while it waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Hook = Box<dyn FnOnce() + Send>;

/// Stops a turn from another thread: a flag, a hook that breaks the network
/// call that is under way, and an end to waits. Clones share it.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    hook: Mutex<Option<Hook>>,
    stopped: Condvar,
}

impl Cancel {
    fn hook(&self) -> MutexGuard<'_, Option<Hook>> {
        self.inner
            .hook
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the turn.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::SeqCst);
        let hook = self.hook().take();
        self.inner.stopped.notify_all();
        if let Some(hook) = hook {
            hook();
        }
    }

    /// Whether it was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::SeqCst)
    }

    /// Waits for `duration`, or until the turn is stopped. Returns whether it was.
    pub fn wait(&self, duration: Duration) -> bool {
        // The flag is set before the lock is taken to find the hook, so whoever
        // finds it unset under the lock is waiting when the notice comes.
        let waited = self
            .inner
            .stopped
            .wait_timeout_while(self.hook(), duration, |_| !self.is_cancelled());
        drop(waited);
        self.is_cancelled()
    }

    /// Runs `work`; if the turn is stopped meanwhile, `hook` is called from the
    /// stopping thread to break what `work` waits for. It may still be running
    /// when this returns; the turn is stopped then. Does not nest.
    pub fn guard<T>(&self, hook: impl FnOnce() + Send + 'static, work: impl FnOnce() -> T) -> T {
        *self.hook() = Some(Box::new(hook));
        // Stopped between the caller's last look and the line above: break at once.
        if self.is_cancelled() {
            let hook = self.hook().take();
            if let Some(hook) = hook {
                hook();
            }
        }
        let result = work();
        self.hook().take();
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_wait_ends_when_the_turn_is_stopped() {
        let cancel = Cancel::default();
        assert!(!cancel.wait(Duration::from_millis(1)));
        let waiting = cancel.clone();
        let started = Instant::now();
        let thread = thread::spawn(move || waiting.wait(LONG));
        cancel.cancel();
        assert!(thread.join().unwrap());
        assert!(cancel.wait(LONG), "a later wait ends at once");
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn the_hook_breaks_what_the_work_waits_for() {
        let cancel = Cancel::default();
        let (broken, wait) = mpsc::channel();
        let (running, started) = mpsc::channel();
        let worker = cancel.clone();
        let thread = thread::spawn(move || {
            worker.guard(
                move || broken.send(()).unwrap(),
                || {
                    running.send(()).unwrap();
                    wait.recv_timeout(LONG)
                },
            )
        });
        started.recv_timeout(LONG).unwrap();
        cancel.cancel();
        assert_eq!(thread.join().unwrap(), Ok(()));
    }

    #[test]
    fn work_that_comes_too_late_is_broken_at_once_and_done_work_never() {
        let cancel = Cancel::default();
        let (broken, hooks) = mpsc::channel();
        let sender = broken.clone();
        cancel.guard(move || sender.send("done work").unwrap(), || ());
        cancel.cancel();
        cancel.guard(move || broken.send("late work").unwrap(), || ());
        assert_eq!(hooks.try_iter().collect::<Vec<_>>(), ["late work"]);
    }
}
