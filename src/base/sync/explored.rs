//! The same types for tests of interleavings: those of shuttle, which switches threads
//! at every use of one. Shuttle knows no time: see [`channel`] for waits that end.

use std::sync::{Arc, Mutex as SystemMutex, MutexGuard as SystemMutexGuard, PoisonError};

pub use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, atomic};
pub use shuttle::thread;

/// A mutex of either kind: only part of the program is run by shuttle.
pub trait Lockable {
    /// Unlocks when it is dropped.
    type Guard<'a>
    where
        Self: 'a;

    /// Locks it, poisoned or not.
    fn guard(&self) -> Self::Guard<'_>;
}

impl<T: ?Sized> Lockable for Mutex<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn guard(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Lockable for SystemMutex<T> {
    type Guard<'a>
        = SystemMutexGuard<'a, T>
    where
        T: 'a;

    fn guard(&self) -> SystemMutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Lockable> Lockable for Arc<M> {
    type Guard<'a>
        = M::Guard<'a>
    where
        M: 'a;

    fn guard(&self) -> M::Guard<'_> {
        M::guard(self)
    }
}

/// Locks a mutex.
pub fn lock<M: Lockable + ?Sized>(mutex: &M) -> M::Guard<'_> {
    mutex.guard()
}

/// The part of crossbeam's channels that the program uses, made of shuttle's locks.
///
/// A wait for less than [`channel::LONG`] may time out at any moment, however short
/// the others took; a longer one never does, so that a message that does not come is
/// found as a deadlock.
pub mod channel {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use shuttle::rand::{Rng, thread_rng};

    use super::{Condvar, Mutex, lock, thread};

    pub use crossbeam_channel::{
        RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
    };

    /// Waits of this length do not time out.
    pub const LONG: Duration = Duration::from_secs(5);

    struct Shared<T> {
        state: Mutex<State<T>>,
        changed: Condvar,
        bound: usize,
    }

    struct State<T> {
        messages: VecDeque<T>,
        senders: usize,
        receivers: usize,
    }

    /// The sending side.
    pub struct Sender<T>(Arc<Shared<T>>);

    /// The receiving side.
    pub struct Receiver<T>(Arc<Shared<T>>);

    /// A channel for `bound` messages. Without room for any, it is good only for
    /// noticing the end of the other side.
    pub fn bounded<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                messages: VecDeque::new(),
                senders: 1,
                receivers: 1,
            }),
            changed: Condvar::new(),
            bound,
        });
        (Sender(Arc::clone(&shared)), Receiver(shared))
    }

    impl<T> Shared<T> {
        /// Repeats `attempt` until it gives something; `None` after a time-out.
        fn wait<R>(
            &self,
            timeout: Option<Duration>,
            mut attempt: impl FnMut(&mut State<T>) -> Option<R>,
        ) -> Option<R> {
            let ends = timeout.is_some_and(|timeout| timeout < LONG);
            let mut state = lock(&self.state);
            loop {
                if let Some(result) = attempt(&mut state) {
                    drop(state);
                    self.changed.notify_all();
                    return Some(result);
                }
                if !ends {
                    state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
                    continue;
                }
                drop(state);
                if thread_rng().gen_bool(0.5) {
                    return None;
                }
                thread::yield_now();
                state = lock(&self.state);
            }
        }
    }

    impl<T> Sender<T> {
        /// Sends once there is room.
        ///
        /// # Errors
        /// No receiver is left.
        pub fn send(&self, message: T) -> Result<(), SendError<T>> {
            self.send_timeout(message, LONG)
                .map_err(|refused| SendError(refused.into_inner()))
        }

        /// Sends once there is room, unless it takes too long.
        ///
        /// # Errors
        /// No receiver is left, or the time is up.
        pub fn send_timeout(
            &self,
            message: T,
            timeout: Duration,
        ) -> Result<(), SendTimeoutError<T>> {
            let mut message = Some(message);
            let bound = self.0.bound;
            let sent = self.0.wait(Some(timeout), |state| {
                if state.receivers == 0 {
                    return Some(false);
                }
                let has_room = state.messages.len() < bound;
                state.messages.extend(message.take_if(|_| has_room));
                has_room.then_some(true)
            });
            match (sent, message) {
                (Some(true), _) | (_, None) => Ok(()),
                (Some(false), Some(message)) => Err(SendTimeoutError::Disconnected(message)),
                (None, Some(message)) => Err(SendTimeoutError::Timeout(message)),
            }
        }

        /// Sends if there is room.
        ///
        /// # Errors
        /// No receiver or no room is left.
        pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
            let mut state = lock(&self.0.state);
            if state.receivers == 0 {
                return Err(TrySendError::Disconnected(message));
            }
            if state.messages.len() >= self.0.bound {
                return Err(TrySendError::Full(message));
            }
            state.messages.push_back(message);
            drop(state);
            self.0.changed.notify_all();
            Ok(())
        }

        /// How many messages wait.
        pub fn len(&self) -> usize {
            lock(&self.0.state).messages.len()
        }

        /// Whether none waits.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
    }

    impl<T> Receiver<T> {
        /// Waits for a message.
        ///
        /// # Errors
        /// No sender is left, and no message.
        pub fn recv(&self) -> Result<T, RecvError> {
            self.recv_timeout(LONG).map_err(|_| RecvError)
        }

        /// Waits for a message, but not too long.
        ///
        /// # Errors
        /// No sender is left, and no message; or the time is up.
        pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
            let received = self.0.wait(Some(timeout), |state| {
                let message = state.messages.pop_front();
                match message {
                    None if state.senders > 0 => None,
                    message => Some(message),
                }
            });
            match received {
                Some(Some(message)) => Ok(message),
                Some(None) => Err(RecvTimeoutError::Disconnected),
                None => Err(RecvTimeoutError::Timeout),
            }
        }

        /// The same, until a point in time.
        ///
        /// # Errors
        /// As [`Receiver::recv_timeout`].
        pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
            self.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        }

        /// Takes a message that waits.
        ///
        /// # Errors
        /// There is none.
        pub fn try_recv(&self) -> Result<T, TryRecvError> {
            let mut state = lock(&self.0.state);
            let message = state.messages.pop_front();
            let is_alone = state.senders == 0;
            drop(state);
            match message {
                Some(message) => {
                    self.0.changed.notify_all();
                    Ok(message)
                }
                None if is_alone => Err(TryRecvError::Disconnected),
                None => Err(TryRecvError::Empty),
            }
        }

        /// How many messages wait.
        pub fn len(&self) -> usize {
            lock(&self.0.state).messages.len()
        }

        /// Whether none waits.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
    }

    impl<T> Clone for Sender<T> {
        fn clone(&self) -> Sender<T> {
            lock(&self.0.state).senders += 1;
            Sender(Arc::clone(&self.0))
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            lock(&self.0.state).senders -= 1;
            self.0.changed.notify_all();
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            let mut state = lock(&self.0.state);
            state.receivers -= 1;
            // As crossbeam does: nobody can receive them any more.
            let messages = std::mem::take(&mut state.messages);
            drop(state);
            drop(messages);
            self.0.changed.notify_all();
        }
    }
}
