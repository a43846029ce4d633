//! Sizes and times of commits since the database was opened.

use base::measure::Histogram;
use base::sync::Mutex;

/// Buckets for the jobs of one commit.
const JOBS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Buckets for the time of one commit, in microseconds.
const TIMES: &[u64] = &[
    50, 100, 250, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];

/// Changes whenever something is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// By this process.
    pub own: u64,
    /// By others: the command line, while the server runs.
    pub others: u64,
}

/// What the writer thread has done.
#[derive(Debug)]
pub struct WriterMeter {
    /// Jobs per transaction.
    pub batch: Histogram,
    /// Microseconds per commit.
    pub commit: Histogram,
    /// What it knows to be committed.
    pub(crate) version: Mutex<Version>,
}

impl Default for WriterMeter {
    fn default() -> WriterMeter {
        WriterMeter {
            batch: Histogram::new(JOBS),
            commit: Histogram::new(TIMES),
            version: Mutex::default(),
        }
    }
}
