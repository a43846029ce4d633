//! Does one thing many times in parallel: tools run, servers are asked.

use base::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Calls `work` with each number below `count`, on at most `most` threads at a
/// time, the caller's among them, and returns the results in the order of the
/// numbers. Where the system has no threads left, the caller does the work
/// alone. `work` must not panic.
pub fn run_parallel<T: Send>(
    count: usize,
    most: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let take_part = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = work(number);
            let mut done = lock(&done);
            done[number] = Some(result);
        }
    };
    thread::scope(|scope| {
        for number in 1..count.min(most) {
            let thread = thread::Builder::new().name(format!("parallel-{number}"));
            if let Err(error) = thread.spawn_scoped(scope, take_part) {
                log::warn!("one after the other, since no thread can be started: {error}");
                break;
            }
        }
        take_part();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_keep_their_order() {
        for (count, most) in [(0, 4), (1, 4), (3, 4), (20, 4), (5, 1)] {
            let squares = run_parallel(count, most, |number| number * number);
            let expected: Vec<usize> = (0..count).map(|number| number * number).collect();
            assert_eq!(squares, expected);
        }
    }

    #[test]
    fn so_many_run_at_a_time_and_no_more() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Passed only when four threads have reached it.
        let barrier = Barrier::new(4);
        run_parallel(8, 4, |_| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            barrier.wait();
            running.fetch_sub(1, Ordering::SeqCst);
        });
        assert_eq!(most.load(Ordering::SeqCst), 4);
    }
}
