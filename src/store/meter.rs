//! Sizes and times of commits since the database was opened.

use base::measure::Histogram;

/// Buckets for the jobs of one commit.
const JOBS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Buckets for the time of one commit, in microseconds.
const TIMES: &[u64] = &[
    50, 100, 250, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];

/// The histograms of the writer thread.
#[derive(Debug)]
pub struct WriterMeter {
    /// Jobs per transaction.
    pub batch: Histogram,
    /// Microseconds per commit.
    pub commit: Histogram,
}

impl Default for WriterMeter {
    fn default() -> WriterMeter {
        WriterMeter {
            batch: Histogram::new(JOBS),
            commit: Histogram::new(TIMES),
        }
    }
}
