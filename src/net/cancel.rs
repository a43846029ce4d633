//! Cancels a turn from another thread, even while it waits.

use std::sync::Arc;
use std::time::Duration;

use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Condvar, Mutex, MutexGuard, lock};

type Hook = Box<dyn FnOnce() + Send>;

/// Cancels a turn from another thread: sets a flag, ends waits, and calls hooks
/// that interrupt blocking calls. Clones share it.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    hooks: Mutex<Hooks>,
    stopped: Condvar,
}

/// The hooks of the running work, each with its own number.
#[derive(Default)]
struct Hooks {
    waiting: Vec<(u64, Hook)>,
    next: u64,
}

impl Hooks {
    fn take(&mut self, number: u64) -> Option<Hook> {
        let place = self
            .waiting
            .iter()
            .position(|(known, _)| *known == number)?;
        Some(self.waiting.swap_remove(place).1)
    }
}

impl Cancel {
    fn hooks(&self) -> MutexGuard<'_, Hooks> {
        lock(&self.inner.hooks)
    }

    /// Cancels the turn and interrupts all running work at once.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::SeqCst);
        let hooks = std::mem::take(&mut self.hooks().waiting);
        self.inner.stopped.notify_all();
        for (_, hook) in hooks {
            hook();
        }
    }

    /// Whether the turn was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::SeqCst)
    }

    /// Waits for `duration` or until the turn is cancelled. Returns whether it was
    /// cancelled.
    pub fn wait(&self, duration: Duration) -> bool {
        // The flag is set before the lock is taken to find the hooks, so a thread
        // that finds it unset under the lock is waiting when the notification comes.
        let waited = self
            .inner
            .stopped
            .wait_timeout_while(self.hooks(), duration, |_| !self.is_cancelled());
        drop(waited);
        self.is_cancelled()
    }

    /// Runs `work`. If the turn is cancelled meanwhile, the cancelling thread calls
    /// `hook` to interrupt what `work` waits for. The hook may still be running
    /// when this returns; the turn is cancelled then. Several threads may call
    /// this at the same time.
    pub fn guard<T>(&self, hook: impl FnOnce() + Send + 'static, work: impl FnOnce() -> T) -> T {
        let number = {
            let mut hooks = self.hooks();
            hooks.next += 1;
            let number = hooks.next;
            hooks.waiting.push((number, Box::new(hook)));
            number
        };
        // Cancelled between the caller's last check and the lines above.
        if self.is_cancelled() {
            let hook = self.hooks().take(number);
            if let Some(hook) = hook {
                hook();
            }
        }
        let result = work();
        // Dropped after the lock: what it holds may take it.
        let unused = self.hooks().take(number);
        drop(unused);
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

    /// Guards something once more when it is dropped.
    struct Guards(Cancel);

    impl Drop for Guards {
        fn drop(&mut self) {
            self.0.guard(|| (), || ());
        }
    }

    #[test]
    fn a_hook_that_is_dropped_or_called_may_use_the_same_turn() {
        let (done, ends) = mpsc::channel();
        thread::spawn(move || {
            let cancel = Cancel::default();
            let hook = |kept: Guards| move || drop(kept);
            cancel.guard(hook(Guards(cancel.clone())), || ());
            let kept = Guards(cancel.clone());
            cancel.guard(hook(kept), || cancel.cancel());
            cancel.guard(hook(Guards(cancel.clone())), || ());
            done.send(()).unwrap();
        });
        assert_eq!(ends.recv_timeout(LONG), Ok(()));
    }

    #[test]
    fn all_that_is_under_way_is_broken_at_once() {
        let cancel = Cancel::default();
        let (running, started) = mpsc::channel();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (cancel, running) = (cancel.clone(), running.clone());
                thread::spawn(move || {
                    let (broken, wait) = mpsc::channel();
                    let hook = move || broken.send(()).unwrap();
                    cancel.guard(hook, || {
                        running.send(()).unwrap();
                        wait.recv_timeout(LONG)
                    })
                })
            })
            .collect();
        for _ in 0..3 {
            started.recv_timeout(LONG).unwrap();
        }
        cancel.guard(|| panic!("done before"), || ());
        cancel.cancel();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok(()));
        }
    }
}
