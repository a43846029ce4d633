//! Random households and random commands over every way in, against a reference
//! made of plain vectors: each answer, each list, each search and each event must be
//! the one that the handbook's page on privacy promises. `tests/it` runs a short
//! version, `make fuzz` a long one.

mod approvals;
mod conversations;
mod files;
mod household;
mod memory;
mod outside;
mod programs;
mod reference;
mod versions;
mod windows;
mod world;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

pub use household::Household;

/// Steps in one household; then comes another one.
const STEPS_EACH: usize = 1_000;
/// Households at a time.
const AT_A_TIME: usize = 4;

/// Runs so many steps, in several households at a time. The same seed runs the same
/// ones.
///
/// # Panics
/// At the first difference. It says how to repeat it.
pub fn run(seed: u64, steps: usize) {
    let began = Instant::now();
    let households = steps.div_ceil(STEPS_EACH);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(households) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= households {
                        return;
                    }
                    // A household alone can be repeated by its own seed.
                    let seed = seed.wrapping_add(number as u64);
                    let count = STEPS_EACH.min(steps - number * STEPS_EACH);
                    let told = TellSeed(seed);
                    Household::new(seed).run(count);
                    drop(told);
                }
            });
        }
    });
    println!(
        "{steps} steps in {households} households, in {:?}: no difference",
        began.elapsed()
    );
}

/// Says which household it was when it is dropped by a panic.
struct TellSeed(u64);

impl Drop for TellSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the household with seed {} differs", self.0);
        }
    }
}
