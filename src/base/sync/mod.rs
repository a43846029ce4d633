//! Locks that ignore poisoning: a panic ends one job, and the other threads continue.
//!
//! Code whose interleavings are tested takes its locks, channels, atomics and threads
//! from here. They are those of the standard library and of crossbeam, except with the
//! feature `shuttle`: then they are those of a checker that runs one thread at a time
//! and tries many orders (see `base::testing::explore`).

#[cfg(feature = "shuttle")]
mod explored;

use std::io;
use std::sync::{PoisonError, RwLock as SystemRwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::Builder;

#[cfg(feature = "shuttle")]
pub use explored::{Condvar, Mutex, MutexGuard, RwLock, atomic, channel, lock, thread};
#[cfg(not(feature = "shuttle"))]
pub use {
    crossbeam_channel as channel,
    std::sync::{Condvar, Mutex, MutexGuard, RwLock, atomic},
    std::thread,
};

/// Starts the thread that `builder` describes. Boxed,
/// because each type of body would add about 2 KB of code.
///
/// # Errors
/// The system has no threads left.
pub fn spawn(
    builder: Builder,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    let body: Box<dyn FnOnce() + Send> = Box::new(body);
    builder.spawn(body)
}

/// Locks a mutex.
#[cfg(not(feature = "shuttle"))]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading.
pub fn read<T: ?Sized>(lock: &SystemRwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub fn write<T: ?Sized>(lock: &SystemRwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
