//! Counters and histograms. Each module owns its own, in its `meter`; counting
//! costs an atomic addition. The module `metrics` shows them.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts one.
    pub fn count(&self) {
        self.add(1);
    }

    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The count so far.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A millisecond and a second in the unit of [`Histogram::note_time`].
pub const MILLISECOND: u64 = 1_000;
/// See [`MILLISECOND`].
pub const SECOND: u64 = 1_000 * MILLISECOND;

/// How many bounds a [`Histogram`] may have.
const MOST_BOUNDS: usize = 12;

/// The distribution of values over fixed ranges.
#[derive(Debug)]
pub struct Histogram {
    /// The largest value of each range but the last, rising.
    bounds: &'static [u64],
    ranges: [AtomicU64; MOST_BOUNDS + 1],
    sum: AtomicU64,
}

/// The values of a [`Histogram`] so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Each bound with how many values were not above it.
    pub up_to: Vec<(u64, u64)>,
    /// How many values there were.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

impl Histogram {
    /// An empty one with these bounds, at most twelve of them.
    pub const fn new(bounds: &'static [u64]) -> Histogram {
        assert!(bounds.len() <= MOST_BOUNDS);
        Histogram {
            bounds,
            ranges: [const { AtomicU64::new(0) }; MOST_BOUNDS + 1],
            sum: AtomicU64::new(0),
        }
    }

    /// Records a value.
    pub fn note(&self, value: u64) {
        let range = self.bounds.partition_point(|bound| *bound < value);
        self.ranges[range].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Records a time, in microseconds.
    pub fn note_time(&self, time: Duration) {
        self.note(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// The values so far.
    pub fn read(&self) -> Spread {
        let mut count = 0;
        let mut counted = self.ranges.iter().map(|range| {
            count += range.load(Ordering::Relaxed);
            count
        });
        let up_to = self.bounds.iter().copied().zip(counted.by_ref()).collect();
        let count = counted.last().unwrap_or(0);
        Spread {
            up_to,
            count,
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// A number of things in words: `1 byte`, `2 bytes`, `3 memories`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    match one.strip_suffix('y') {
        _ if number == N::from(1) => format!("1 {one}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {one}s"),
    }
}

/// A number of bytes in words: `1 byte`, `2 bytes`.
pub fn byte_count<N: Display + PartialEq + From<u8>>(number: N) -> String {
    count(number, "byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_ranges() {
        let histogram = Histogram::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 1_000] {
            histogram.note(value);
        }
        histogram.note_time(Duration::from_micros(100));
        assert_eq!(
            histogram.read(),
            Spread {
                up_to: vec![(1, 2), (10, 4), (100, 6)],
                count: 7,
                sum: 1_124,
            }
        );
    }
}
