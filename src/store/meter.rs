//! What writing the database has come to since it was opened.

use base::measure::Histogram;

/// Bounds of how many jobs share a commit.
const JOBS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Bounds of how long a commit takes, in microseconds.
const TIMES: &[u64] = &[
    50, 100, 250, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];

/// The counts of the writer thread.
#[derive(Debug)]
pub struct WriterMeter {
    /// Jobs in a transaction.
    pub batch: Histogram,
    /// How long the commit of one took, in microseconds.
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
