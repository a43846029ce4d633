//! What is wrong with a configuration file, as a person reads it.

use std::fmt;
use std::path::{Path, PathBuf};

use super::key_path::KeyPath;
use super::lines::Lines;
use base::language::Said;
use base::nearest::nearest;

/// Everything that is wrong with a configuration file; one line for each in its
/// text, `config.json line 4: unknown key "modell" (did you mean "model"?)`.
/// It contains no secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Problems {
    file: PathBuf,
    list: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, from 1, where there is one.
    pub line: Option<usize>,
    /// The column, from 1, where the file is not JSON at all.
    pub column: Option<usize>,
    /// Which key is wrong, and what is expected of it.
    pub message: Said,
    /// The key; the top of the file where there is none.
    pub(super) path: KeyPath,
    /// Whether nothing is wrong but that the environment lacks its variable.
    is_unset: bool,
}

/// A setting that names a variable of an environment that is not at hand.
#[derive(Clone, Debug)]
pub(super) struct Unset {
    pub path: KeyPath,
    /// What the configuration lacks: the setting, or the entry that is nothing without it.
    pub left_out: KeyPath,
    /// The line of [`Problems`] for it.
    pub line: String,
}

impl Problem {
    /// What was found at a key, whose line is not known yet.
    pub(super) fn of(path: &KeyPath, message: impl Into<Said>, is_unset: bool) -> Problem {
        Problem {
            line: None,
            column: None,
            message: message.into(),
            path: path.clone(),
            is_unset,
        }
    }
}

impl Problems {
    /// Nothing.
    pub(super) fn none(file: &Path) -> Problems {
        Problems {
            file: file.to_owned(),
            list: Vec::new(),
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Those that the file did not have before.
    pub(super) fn since(&self, before: &Problems) -> impl Iterator<Item = &Problem> {
        let is_known = |one: &Problem| before.iter().any(|known| known.message == one.message);
        self.iter().filter(move |one| !is_known(one))
    }

    /// A problem of the file as a whole.
    pub(super) fn of_file(file: &Path, message: impl Into<Said>) -> Problems {
        Problems::at(file, None, None, message)
    }

    /// A problem of a place that has no key.
    pub(super) fn at(
        file: &Path,
        line: Option<usize>,
        column: Option<usize>,
        message: impl Into<Said>,
    ) -> Problems {
        Problems {
            file: file.to_owned(),
            list: vec![Problem {
                line,
                column,
                ..Problem::of(&KeyPath::top(), message, false)
            }],
        }
    }

    /// What was found in a file, in the order of its lines.
    pub(super) fn placed(file: &Path, mut list: Vec<Problem>, lines: &Lines) -> Problems {
        for problem in &mut list {
            problem.line = Some(lines.line(&problem.path));
        }
        list.sort_by_key(|problem| problem.line);
        Problems {
            file: file.to_owned(),
            list,
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Each problem, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// Takes those out that only come from variables which the environment lacks.
    pub(super) fn take_unset(&mut self) -> Vec<Unset> {
        let (unset, others): (Vec<_>, Vec<_>) =
            (self.list.drain(..)).partition(|problem| problem.is_unset);
        self.list = others;
        let taken = unset.into_iter().map(|problem| Unset {
            line: self.line_of(&problem),
            left_out: problem.path.clone(),
            path: problem.path,
        });
        taken.collect()
    }

    /// One line for each, as in its text.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.list.iter().map(|problem| self.line_of(problem))
    }

    fn line_of(&self, problem: &Problem) -> String {
        let place = match (problem.line, problem.column) {
            (Some(line), Some(column)) => format!(" line {line}, column {column}"),
            (Some(line), None) => format!(" line {line}"),
            (None, _) => String::new(),
        };
        format!("{}{place}: {}", self.file.display(), problem.message)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, line) in self.lines().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&line)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Problems {}

/// What is said of a mistyped word, and after it the known one that is nearest, if one is near.
pub(super) fn with_nearest<'k>(
    said: Said,
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Said {
    match nearest(word, known) {
        Some(near) => Said::of("config.meant", &[("near", near)]).with("said", said),
        None => said,
    }
}

/// ` (did you mean "x"?)` for the known word nearest to a mistyped one, or
/// nothing when none is near.
pub(super) fn suggestion<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(word, known).map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"))
}
