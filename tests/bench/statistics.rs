//! Percentiles of durations, and medians of runs.

use std::time::Duration;

/// Durations in order.
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// At least one duration, in any order.
    pub fn new(mut durations: Vec<Duration>) -> Latencies {
        assert!(!durations.is_empty(), "nothing was measured");
        durations.sort_unstable();
        Latencies(durations)
    }

    /// The duration, in milliseconds, that `share` (0 to 1) of all do not exceed.
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        milliseconds(self.0[rank.clamp(1, self.0.len()) - 1])
    }

    pub fn p50(&self) -> f64 {
        self.percentile(0.50)
    }

    pub fn p99(&self) -> f64 {
        self.percentile(0.99)
    }

    /// How many there were in each second, one after the other.
    pub fn per_second(&self) -> f64 {
        self.0.len() as f64 / self.0.iter().sum::<Duration>().as_secs_f64()
    }
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The middle value; of an even number, the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}
