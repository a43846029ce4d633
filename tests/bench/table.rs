//! The table of figures, printed as it grows, and the statistics behind them.

use std::time::Duration;

use crate::floor;

/// One line of the table.
pub struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    floor: Option<(f64, &'static str)>,
    /// Whether the goal is the most, and the goal.
    goal: Option<(bool, f64)>,
}

impl Figure {
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure {
            name: name.into(),
            value,
            unit,
            floor: None,
            goal: None,
        }
    }

    /// The same work without Hearth, in the same run and unit, and what it is.
    pub fn floor(mut self, value: f64, what: &'static str) -> Figure {
        self.floor = Some((value, what));
        self
    }

    pub fn at_most(mut self, goal: f64) -> Figure {
        self.goal = Some((true, goal));
        self
    }

    pub fn at_least(mut self, goal: f64) -> Figure {
        self.goal = Some((false, goal));
        self
    }
}

/// The goals so far.
#[derive(Default)]
pub struct Table {
    goals: usize,
    missed: Vec<String>,
}

impl Table {
    /// Says what the machine is, and heads the columns.
    pub fn begin() -> Table {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let commits = floor::commits();
        println!(
            "{cores} cores, Linux {}, load {}; a commit of SQLite takes {:.2} ms (p99 {:.2})\n",
            read("/proc/sys/kernel/osrelease").trim(),
            read("/proc/loadavg").split(' ').next().unwrap_or_default(),
            commits.p50(),
            commits.p99()
        );
        line("", "hearth", "", "floor", "goal", "");
        Table::default()
    }

    pub fn add(&mut self, figure: Figure) {
        let mut notes = String::new();
        let mut goal = String::new();
        if let Some((is_most, value)) = figure.goal {
            self.goals += 1;
            let is_missed = if is_most {
                figure.value > value
            } else {
                figure.value < value
            };
            goal = format!("{} {}", if is_most { "<=" } else { ">=" }, number(value));
            if is_missed {
                notes.push_str("MISSED ");
                self.missed.push(figure.name.clone());
            }
        }
        let mut floor = String::new();
        if let Some((value, what)) = figure.floor {
            floor = number(value);
            notes.push_str(&format!("(floor: {what})"));
        }
        let name = format!("  {}", figure.name);
        line(
            &name,
            &number(figure.value),
            figure.unit,
            &floor,
            &goal,
            &notes,
        );
    }

    pub fn summary(&self) -> String {
        if self.missed.is_empty() {
            return format!("\n{} goals, all reached", self.goals);
        }
        let (goals, missed) = (self.goals, self.missed.len());
        format!(
            "\n{goals} goals, {missed} missed: {}",
            self.missed.join("; ")
        )
    }
}

fn line(name: &str, value: &str, unit: &str, floor: &str, goal: &str, notes: &str) {
    let text = format!("{name:<44} {value:>9} {unit:<4} {floor:>9} {goal:>10}  {notes}");
    println!("{}", text.trim_end());
}

/// A number as a person reads it: three digits that count, thousands apart.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if decimals > 0 {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let mut grouped = String::new();
    for (place, digit) in text.chars().enumerate() {
        if place > 0 && (text.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Durations in order.
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// At least one duration, in any order.
    pub fn new(mut durations: Vec<Duration>) -> Latencies {
        assert!(!durations.is_empty(), "nothing was measured");
        durations.sort_unstable();
        Latencies(durations)
    }

    /// The milliseconds that `share` (0 to 1) of all do not exceed.
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

/// The middle value; of an even number, the higher one of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
