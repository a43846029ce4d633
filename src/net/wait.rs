//! Waiting on a socket and a wake-up at once, with a deadline.
//!
//! A connection has one thread, and two events to wait for: input from its client,
//! and an item that another thread puts into its outbox. One `poll` waits for
//! both, without intervals and without a second thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

#[cfg(not(feature = "shuttle"))]
use rustix::event::poll;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use base::sync::atomic::{AtomicBool, Ordering};

/// Ends another thread's wait. Makes no system call while that thread is awake.
pub struct Waker {
    signal: Signal,
    /// Set while the owner is sure to check for work again before it waits.
    awake: AtomicBool,
}

impl Waker {
    /// A waker whose owner is awake.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker {
            signal: Signal::new()?,
            awake: AtomicBool::new(true),
        })
    }

    /// Ends the owner's wait, or the next one if it is not waiting.
    pub fn wake(&self) {
        if !self.awake.swap(true, Ordering::SeqCst) {
            self.signal.send();
        }
    }

    /// Call this before checking for work a last time and then waiting. Work added
    /// after this call sends a signal; that last check finds earlier work.
    pub fn prepare(&self) {
        self.awake.store(false, Ordering::SeqCst);
    }

    fn finish(&self, signalled: bool) {
        self.awake.store(true, Ordering::SeqCst);
        if signalled {
            self.signal.clear();
        }
    }
}

/// What a wait ended with. All false: the deadline has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// The descriptor is ready, at the end of input, or has an error.
    pub ready: bool,
    /// The other end is gone; nothing can be sent any more.
    pub gone: bool,
    /// The waker was used.
    pub signalled: bool,
}

/// What is waited for on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Input, or its end.
    Read,
    /// Room for output.
    Write,
    /// Either of the two.
    ReadOrWrite,
    /// Only that the other end is gone.
    Hangup,
}

/// Waits until `descriptor` is ready, `waker` is used or `deadline` passes;
/// without a deadline for as long as it takes.
///
/// # Errors
/// `poll` failed: the kernel is out of memory.
pub fn wait(
    descriptor: BorrowedFd<'_>,
    interest: Interest,
    waker: Option<&Waker>,
    deadline: Option<Instant>,
) -> io::Result<Woken> {
    wait_beside(descriptor, interest, waker, &[], deadline)
}

/// [`wait`], which also ends when one of `others` has input.
///
/// # Errors
/// As [`wait`].
pub fn wait_beside(
    descriptor: BorrowedFd<'_>,
    interest: Interest,
    waker: Option<&Waker>,
    others: &[BorrowedFd<'_>],
    deadline: Option<Instant>,
) -> io::Result<Woken> {
    let flags = match interest {
        Interest::Read => PollFlags::IN,
        Interest::Write => PollFlags::OUT,
        Interest::ReadOrWrite => PollFlags::IN | PollFlags::OUT,
        Interest::Hangup => PollFlags::empty(),
    };
    let signal = waker.map_or(descriptor, |waker| waker.signal.receiver());
    let input = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
    let mut pair = [PollFd::from_borrowed_fd(descriptor, flags), input(signal)];
    let mut all;
    let entries = match others {
        [] => &mut pair[..if waker.is_some() { 2 } else { 1 }],
        _ => {
            all = Vec::from(pair);
            all.extend(others.iter().copied().map(input));
            &mut all[..]
        }
    };
    loop {
        let left = deadline.map(time_left);
        match poll(entries, left.map(timespec).as_ref()) {
            // The longest single poll has passed, not the deadline.
            Ok(0) if left.is_some_and(|left| left > LONGEST) => {}
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let found = entries[0].revents();
    let signalled = waker.is_some() && !entries[1].revents().is_empty();
    if let Some(waker) = waker {
        waker.finish(signalled);
    }
    Ok(Woken {
        ready: !found.is_empty(),
        gone: found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        signalled,
    })
}

/// `poll` for tests of interleavings: lets other threads continue while it waits,
/// because shuttle runs all of them in one thread of the system.
#[cfg(feature = "shuttle")]
fn poll(entries: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> rustix::io::Result<usize> {
    let now = Timespec::default();
    loop {
        match rustix::event::poll(entries, Some(&now)) {
            Ok(0) if timeout.is_none_or(|timeout| *timeout > now) => {
                base::sync::thread::yield_now();
            }
            result => return result,
        }
    }
}

/// How long it is until `deadline`; zero once it has passed.
pub fn time_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Longest single `poll`; every duration up to it fits the kernel's type.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn timespec(duration: Duration) -> Timespec {
    let duration = duration.min(LONGEST);
    Timespec {
        tv_sec: duration.as_secs() as _,
        tv_nsec: duration.subsec_nanos() as _,
    }
}

/// One event descriptor: half the descriptors of a pipe.
pub(crate) struct Signal(std::os::fd::OwnedFd);

impl Signal {
    pub(crate) fn new() -> io::Result<Signal> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Signal(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn send(&self) {
        // It fails only when 2^64-2 signals wait, and then one signal waits.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        // It fails only when nothing waits.
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn a_wake_up_before_and_during_the_wait_ends_it_once() {
        let (quiet, _other) = UnixStream::pair().unwrap();
        let waker = Arc::new(Waker::new().unwrap());
        waker.prepare();
        waker.wake();
        waker.wake();
        let woken = wait(quiet.as_fd(), Interest::Read, Some(&waker), soon()).unwrap();
        assert_eq!((woken.ready, woken.signalled), (false, true));

        waker.prepare();
        let past = Some(Instant::now());
        let woken = wait(quiet.as_fd(), Interest::Read, Some(&waker), past).unwrap();
        assert_eq!(woken, Woken::default(), "the signal was taken");

        waker.prepare();
        let other = Arc::clone(&waker);
        let thread = std::thread::spawn(move || other.wake());
        assert!(
            wait(quiet.as_fd(), Interest::Read, Some(&waker), soon())
                .unwrap()
                .signalled
        );
        thread.join().unwrap();
    }

    #[test]
    fn no_signal_is_sent_to_an_owner_that_is_awake() {
        let (quiet, _other) = UnixStream::pair().unwrap();
        let waker = Waker::new().unwrap();
        waker.wake();
        let woken = wait(
            quiet.as_fd(),
            Interest::Read,
            Some(&waker),
            Some(Instant::now()),
        );
        assert_eq!(woken.unwrap(), Woken::default());
    }

    #[test]
    fn input_and_hang_up_are_told_apart() {
        let (socket, other) = UnixStream::pair().unwrap();
        io::Write::write_all(&mut &other, b"x").unwrap();
        let woken = wait(socket.as_fd(), Interest::Read, None, soon()).unwrap();
        assert_eq!((woken.ready, woken.gone), (true, false));
        drop(other);
        let woken = wait(socket.as_fd(), Interest::Hangup, None, soon()).unwrap();
        assert!(woken.gone);
    }
}
