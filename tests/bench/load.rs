//! Clients that ask again and again, each in its own thread.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::statistics::Latencies;

/// Most durations that one client keeps; later ones are counted alone.
const KEPT: usize = 200_000;

/// What a load came to.
pub struct Load {
    pub per_second: f64,
    pub latencies: Latencies,
    pub count: usize,
}

/// Runs `clients` threads for `time`. `connect` makes each client, by its
/// number; `ask` makes one request and waits for its answer.
pub fn run<C: Send>(
    clients: usize,
    time: Duration,
    connect: impl FnMut(usize) -> C,
    ask: impl Fn(&mut C, usize) + Sync,
) -> Load {
    paced(clients, time, Duration::ZERO, connect, ask)
}

/// The same, but each client asks once every `interval`, and the clients begin
/// one after the other within the first, so that the load is even. A request
/// that begins late because the one before it was slow counts from when it was
/// due.
pub fn paced<C: Send>(
    clients: usize,
    time: Duration,
    interval: Duration,
    connect: impl FnMut(usize) -> C,
    ask: impl Fn(&mut C, usize) + Sync,
) -> Load {
    let connected: Vec<C> = (0..clients).map(connect).collect();
    let ready = Barrier::new(clients);
    let one = |number: usize, mut client: C| {
        ready.wait();
        let began = Instant::now() + interval * number as u32 / clients as u32;
        let mut durations = Vec::new();
        let (mut count, mut now) = (0, began);
        while now.saturating_duration_since(began) < time {
            let mut before = now;
            if !interval.is_zero() {
                before = began + interval * count as u32;
                std::thread::sleep(before.saturating_duration_since(now));
            }
            ask(&mut client, count);
            now = Instant::now();
            count += 1;
            if durations.len() < KEPT {
                durations.push(now - before);
            }
        }
        (count, now.saturating_duration_since(began), durations)
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = connected
            .into_iter()
            .enumerate()
            .map(|(number, client)| scope.spawn(move || one(number, client)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a client failed"))
            .collect()
    });
    let per_second = ended
        .iter()
        .map(|(count, took, _)| *count as f64 / took.as_secs_f64())
        .sum();
    let count = ended.iter().map(|(count, _, _)| count).sum();
    let durations = ended
        .into_iter()
        .flat_map(|(_, _, durations)| durations)
        .collect();
    Load {
        per_second,
        latencies: Latencies::new(durations),
        count,
    }
}

/// Asks one after the other, so many times.
pub fn one_by_one(count: usize, mut ask: impl FnMut(usize)) -> Latencies {
    let durations = (0..count).map(|number| {
        let began = Instant::now();
        ask(number);
        began.elapsed()
    });
    Latencies::new(durations.collect())
}
