//! What a check looks at, and what it reports.

use serde::Serialize;

use crate::cli::data_directory::DataDirectory;
use base::error::without_numbers;
use config::Settings;

/// The installation that is checked.
pub struct Installation<'a> {
    pub directory: &'a DataDirectory,
    /// What follows `hearth COMMAND` in advice when the data directory is not
    /// the default one.
    pub option: String,
}

impl Installation<'_> {
    /// How to set a key of the model at `place` in the configuration: empty for the first
    /// one, else such as `fallback[0].`.
    pub fn set(&self, settings: &Settings, place: &str, key: &str, value: &str) -> String {
        match place {
            "" => format!("hearth config set{} {key} {value}", self.option),
            place => format!("set {place}{key} in {}", settings.path().display()),
        }
    }

    /// To look into the log.
    pub fn see_log(&self) -> String {
        format!("see the end of {}", self.directory.log().display())
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It works.
    Ok,
    /// It works, but perhaps not as intended.
    Warning,
    /// It does not work.
    Problem,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The group of checks.
    pub check: &'static str,
    pub level: Level,
    /// What was checked, and the result.
    pub text: String,
    /// How to fix it, one line per step.
    pub advice: Vec<String>,
}

impl Diagnosis {
    pub fn new(level: Level, text: impl AsRef<str>) -> Diagnosis {
        Diagnosis {
            check: "",
            level,
            text: without_numbers(text.as_ref()),
            advice: Vec::new(),
        }
    }

    pub fn ok(text: impl AsRef<str>) -> Diagnosis {
        Diagnosis::new(Level::Ok, text)
    }

    pub fn warning(text: impl AsRef<str>) -> Diagnosis {
        Diagnosis::new(Level::Warning, text)
    }

    pub fn problem(text: impl AsRef<str>) -> Diagnosis {
        Diagnosis::new(Level::Problem, text)
    }

    /// Names its group of checks, unless it has one.
    pub fn of(mut self, check: &'static str) -> Diagnosis {
        if self.check.is_empty() {
            self.check = check;
        }
        self
    }

    /// Adds a line of advice.
    pub fn advise(mut self, line: impl Into<String>) -> Diagnosis {
        self.advice.push(line.into());
        self
    }
}
