//! Parses the words after a command against its declaration in the table.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use lexopt::Arg;

use super::Failure;
use super::commands::{Found, Many, Setting};
use super::help::nearest;

/// The options and operands of one command line.
#[derive(Debug)]
pub struct Arguments {
    command: String,
    options: Vec<(&'static Setting, OsString)>,
    operands: Vec<String>,
}

impl Arguments {
    /// Parses `words` for a command; `None` when they ask for its help.
    ///
    /// A word that begins like a negative number is an operand, as is every word
    /// after `--`.
    ///
    /// # Errors
    /// A usage failure that names the word and, for an unknown option,
    /// the nearest known one.
    pub fn parse(
        found: &Found,
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<Option<Arguments>, Failure> {
        let command = found.command;
        let mut parsed = Arguments {
            command: found.path.clone(),
            options: Vec::new(),
            operands: Vec::new(),
        };
        let mut parser = lexopt::Parser::from_args(words);
        loop {
            let number = parser
                .try_raw_args()
                .and_then(|mut words| words.next_if(is_negative));
            let next = match number {
                Some(number) => Some(Arg::Value(number)),
                None => parser.next().map_err(|error| parsed.usage(error))?,
            };
            let name = match next {
                None => break,
                Some(Arg::Long("help") | Arg::Short('h')) => return Ok(None),
                Some(Arg::Value(word)) => {
                    let word = word.into_string().map_err(|word| {
                        parsed.usage(format!("{:?} is not UTF-8", word.to_string_lossy()))
                    })?;
                    parsed.operands.push(word);
                    continue;
                }
                Some(Arg::Short(letter)) => {
                    return Err(parsed.usage(format!("there is no option -{letter}")));
                }
                Some(Arg::Long(name)) => name.to_owned(),
            };
            let Some(setting) = command.options.iter().find(|known| known.name == name) else {
                let names = command.options.iter().map(|known| known.name);
                let hint = nearest(&name, names)
                    .map(|near| format!("; did you mean --{near}?"))
                    .unwrap_or_default();
                return Err(parsed.usage(format!("there is no option --{name}{hint}")));
            };
            if parsed.has(setting.name) && !setting.repeats {
                return Err(parsed.usage(format!("--{name} is given twice")));
            }
            let value = match setting.value {
                Some(_) => parser.value().map_err(|error| parsed.usage(error))?,
                None => OsString::new(),
            };
            parsed.options.push((setting, value));
        }
        if command.action.run().is_some() {
            parsed.check_operands(found)?;
        }
        Ok(Some(parsed))
    }

    fn check_operands(&self, found: &Found) -> Result<(), Failure> {
        let declared = found.command.operands;
        let required = declared
            .iter()
            .filter(|operand| operand.many == Many::One)
            .count();
        if let Some(missing) = declared[..required].get(self.operands.len()) {
            return Err(self.usage(format!("{} is missing", missing.name)));
        }
        let unbounded = declared
            .last()
            .is_some_and(|last| last.many == Many::AnyNumber);
        match self.operands.get(declared.len()) {
            Some(extra) if !unbounded => Err(self.usage(format!("{extra:?} is one word too many"))),
            _ => Ok(()),
        }
    }

    /// A usage failure of this command.
    pub fn usage(&self, message: impl fmt::Display) -> Failure {
        Failure::Usage {
            message: message.to_string(),
            command: self.command.clone(),
        }
    }

    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The value of an option as the system gave it: paths.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.options
            .iter()
            .find(|(setting, _)| setting.name == name)
            .map(|(_, value)| value.as_os_str())
    }

    /// The text of an option.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        self.raw(name)
            .map(|value| {
                value
                    .to_str()
                    .ok_or_else(|| self.usage(format!("--{name} is not UTF-8")))
            })
            .transpose()
    }

    /// The texts of an option that may be given more than once.
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, Failure> {
        self.options
            .iter()
            .filter(|(setting, _)| setting.name == name)
            .map(|(_, value)| {
                value
                    .to_str()
                    .ok_or_else(|| self.usage(format!("--{name} is not UTF-8")))
            })
            .collect()
    }

    /// The value of an option, which must be `expected`.
    pub fn value<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, Failure> {
        self.text(name)?
            .map(|text| {
                text.parse()
                    .map_err(|_| self.usage(format!("--{name} must be {expected}, not {text:?}")))
            })
            .transpose()
    }

    /// The whole number of an option, within a range.
    pub fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Failure> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        match self.value(name, &expected)? {
            Some(number) if !range.contains(&number) => {
                Err(self.usage(format!("--{name} must be {expected}, not {number}")))
            }
            number => Ok(number),
        }
    }

    /// The operand at a place, if it is there.
    pub fn operand(&self, place: usize) -> Option<&str> {
        self.operands.get(place).map(String::as_str)
    }

    /// An operand that the declaration requires.
    pub fn required(&self, place: usize) -> &str {
        self.operand(place)
            .expect("parse refuses a line without its required operands")
    }

    /// All operands, as one text.
    pub fn joined(&self) -> Option<String> {
        (!self.operands.is_empty()).then(|| self.operands.join(" "))
    }
}

/// Whether a word begins like a negative number: no option does.
fn is_negative(word: &OsStr) -> bool {
    matches!(word.as_encoded_bytes(), [b'-', digit, ..] if digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::find;

    #[test]
    fn a_negative_number_is_an_operand_and_so_is_all_behind_two_dashes() {
        for (line, operands) in [
            ("config set KEY -1", Some(&["KEY", "-1"][..])),
            ("config set KEY -0.5 --data-dir /d", Some(&["KEY", "-0.5"])),
            ("config set --data-dir /d KEY -", Some(&["KEY", "-"])),
            ("config set --data-dir -1 KEY V", Some(&["KEY", "V"])),
            ("config set -- KEY --none", Some(&["KEY", "--none"])),
            ("config set KEY -- -x", Some(&["KEY", "-x"])),
            ("config set -- KEY -1", Some(&["KEY", "-1"])),
            ("search -- --help", Some(&["--help"])),
            ("chat -- -h -1 --", Some(&["-h", "-1", "--"])),
            ("config set KEY -x", None),
            ("config set KEY --1", None),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let found = find(&words).unwrap_or_else(|_| panic!("{line}"));
            let rest = words[found.words..].iter().map(OsString::from);
            let parsed = Arguments::parse(&found, rest);
            match operands {
                Some(operands) => assert_eq!(parsed.unwrap().unwrap().operands, operands, "{line}"),
                None => assert!(parsed.is_err(), "{line}"),
            }
        }
    }
}
