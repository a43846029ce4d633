//! The table of figures, printed as it grows.

/// What a figure must reach.
#[derive(Clone, Copy)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// One line of the table.
pub struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    floor: Option<f64>,
    rival: &'static str,
    goal: Option<Goal>,
    how: String,
}

impl Figure {
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure {
            name: name.into(),
            value,
            unit,
            floor: None,
            rival: "",
            goal: None,
            how: String::new(),
        }
    }

    /// The same work without us, in the same run and unit.
    pub fn floor(mut self, value: f64) -> Figure {
        self.floor = Some(value);
        self
    }

    /// What comparable servers reached on a machine of this kind.
    pub fn rival(mut self, text: &'static str) -> Figure {
        self.rival = text;
        self
    }

    pub fn at_most(mut self, goal: f64) -> Figure {
        self.goal = Some(Goal::AtMost(goal));
        self
    }

    pub fn at_least(mut self, goal: f64) -> Figure {
        self.goal = Some(Goal::AtLeast(goal));
        self
    }

    /// How it was measured: runs, length, what it is the median of.
    pub fn how(mut self, text: impl Into<String>) -> Figure {
        self.how = text.into();
        self
    }

    fn verdict(&self) -> Option<bool> {
        self.goal.map(|goal| match goal {
            Goal::AtMost(most) => self.value <= most,
            Goal::AtLeast(least) => self.value >= least,
        })
    }
}

/// Counts verdicts and prints each figure when it comes.
#[derive(Default)]
pub struct Table {
    ok: usize,
    not_ok: Vec<String>,
    headed: bool,
}

impl Table {
    /// Begins a family of figures.
    pub fn begin(&mut self, title: &str) {
        if !self.headed {
            line(["", "hearth", "", "floor", "rivals", "goal", "", ""]);
            self.headed = true;
        }
        println!("\n{title}");
    }

    pub fn add(&mut self, figure: Figure) {
        let verdict = match figure.verdict() {
            Some(true) => {
                self.ok += 1;
                "ok"
            }
            Some(false) => {
                self.not_ok.push(figure.name.clone());
                "NOT OK"
            }
            None => "",
        };
        let goal = match figure.goal {
            Some(Goal::AtMost(most)) => format!("<= {}", number(most)),
            Some(Goal::AtLeast(least)) => format!(">= {}", number(least)),
            None => String::new(),
        };
        line([
            &format!("  {}", figure.name),
            &number(figure.value),
            figure.unit,
            &figure.floor.map(number).unwrap_or_default(),
            figure.rival,
            &goal,
            verdict,
            &figure.how,
        ]);
    }

    pub fn summary(&self) -> String {
        match self.not_ok.as_slice() {
            [] => format!("{} goals, all reached", self.ok),
            missed => format!(
                "{} goals, {} missed: {}",
                self.ok + missed.len(),
                missed.len(),
                missed.join("; ")
            ),
        }
    }
}

fn line([name, value, unit, floor, rival, goal, verdict, how]: [&str; 8]) {
    let text = format!(
        "{name:<48} {value:>9} {unit:<7} {floor:>9}  {rival:>13}  {goal:>11}  {verdict:<6}  {how}"
    );
    println!("{}", text.trim_end());
}

/// A number as a person reads it: three digits that count, thousands apart.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude < 1000.0 {
        let decimals = match magnitude {
            magnitude if magnitude >= 100.0 => 0,
            magnitude if magnitude >= 10.0 => 1,
            magnitude if magnitude >= 1.0 => 2,
            _ => 3,
        };
        let text = format!("{value:.decimals$}");
        return match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        };
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
