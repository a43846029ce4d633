//! Prometheus's text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). By hand: the
//! format is a few lines, a client library several crates.

use std::fmt::Write;

use base::measure::{SECOND, Spread};

/// The type of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only increases while the server runs.
    Counter,
    /// A current value.
    Gauge,
    Histogram,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A text that is being written. Names and labels are ours and need no escapes.
#[derive(Default)]
pub struct Exposition {
    text: String,
    /// The family of the next samples.
    name: &'static str,
}

impl Exposition {
    /// Begins a family; its samples follow.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.name = name;
        let kind = kind.as_str();
        // Writing to a string cannot fail; so below.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A sample of the family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.line("", labels, &value.to_string());
    }

    /// A family of one sample.
    pub fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: u64) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// A histogram of counts.
    pub fn values(&mut self, name: &'static str, help: &str, spread: &Spread) {
        self.histogram(name, help, spread, |value| value.to_string());
    }

    /// A histogram of times, in seconds.
    pub fn times(&mut self, name: &'static str, help: &str, spread: &Spread) {
        self.histogram(name, help, spread, seconds);
    }

    fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        spread: &Spread,
        told: impl Fn(u64) -> String,
    ) {
        self.family(name, Kind::Histogram, help);
        for (bound, count) in &spread.up_to {
            self.line("_bucket", &[("le", &told(*bound))], &count.to_string());
        }
        let count = spread.count.to_string();
        self.line("_bucket", &[("le", "+Inf")], &count);
        self.line("_sum", &[], &told(spread.sum));
        self.line("_count", &[], &count);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: &str) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// Microseconds as seconds, without needless digits.
fn seconds(microseconds: u64) -> String {
    let (whole, rest) = (microseconds / SECOND, microseconds % SECOND);
    match rest {
        0 => whole.to_string(),
        rest => format!("{whole}.{rest:06}")
            .trim_end_matches('0')
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_help_type_and_samples() {
        let mut text = Exposition::default();
        text.family("a_total", Kind::Counter, "How many.");
        text.sample(&[("state", "done"), ("kind", "x")], 3);
        let spread = Spread {
            up_to: vec![(50, 1), (2_000_000, 2)],
            count: 3,
            sum: 3_070_000,
        };
        text.times("b_seconds", "How long.", &spread);
        assert_eq!(
            text.finish(),
            "# HELP a_total How many.\n# TYPE a_total counter\n\
             a_total{state=\"done\",kind=\"x\"} 3\n\
             # HELP b_seconds How long.\n# TYPE b_seconds histogram\n\
             b_seconds_bucket{le=\"0.00005\"} 1\nb_seconds_bucket{le=\"2\"} 2\n\
             b_seconds_bucket{le=\"+Inf\"} 3\nb_seconds_sum 3.07\nb_seconds_count 3\n"
        );
    }
}
