//! The options and operands that commands declare, and the parser of the words
//! after a command.
//!
//! Own code on lexopt: libraries that also print help add 0.3 MB or more and ten
//! or more crates.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use lexopt::Arg;

use super::context::CliError;
use base::nearest::nearest;

/// An option of a command: `--name`, followed by a value if `value` names one.
#[derive(Clone, Debug)]
pub struct CommandOption {
    pub name: &'static str,
    pub value: Option<&'static str>,
    pub help: String,
}

/// The options that commands share: a line that only names one of them stands for
/// this.
const SHARED: &str = "\
--data-dir DIR    The data directory. Without it: HEARTH_DATA_DIR,
                  STATE_DIRECTORY, $XDG_DATA_HOME/hearth or
                  ~/.local/share/hearth
--ca-file FILE    Also trust the certificates in this file (PEM) when
                  --url begins with wss:// or https://
--url URL         The server: ws://HOST:PORT/ws, or wss://; through a relay,
                  which cannot read the messages:
                  wss://RELAY/ws?machine_id=M
--relay-token TOKEN  The relay's AUTH_TOKEN; better given as
                     HEARTH_RELAY_TOKEN
--token TOKEN     Sign in with this token; better given as HEARTH_TOKEN,
                  which other people on the machine cannot see
--user NAME       Sign in with a password, which is asked for
--json            Print JSON, for scripts
--yes             Do not ask; needed where nobody can be asked
--password-stdin  Read the password as one line of standard input
--generate        Generate a password and print it once";

/// The options that name a server and sign in to it: what a line `--SERVER` stands for.
const SERVER: &str = "--url\n--relay-token\n--ca-file\n--token\n--user\n--data-dir";

impl CommandOption {
    /// The options in the text of a command: lines `--NAME VALUE  HELP`, with two
    /// spaces or more before the help, which indented lines continue or begin. A value
    /// that ends in `...` may be given more than once.
    pub fn list(text: &'static str) -> Vec<CommandOption> {
        let shared = CommandOption::declared(SHARED);
        let mut options = CommandOption::declared(text);
        for option in options.iter_mut().filter(|option| option.help.is_empty()) {
            if let Some(shared) = shared.iter().find(|shared| shared.name == option.name) {
                *option = shared.clone();
            }
        }
        options
    }

    fn declared(text: &'static str) -> Vec<CommandOption> {
        let mut options: Vec<CommandOption> = Vec::new();
        let lines = text.lines().flat_map(|line| match line {
            "--SERVER" => SERVER.lines(),
            line => line.lines(),
        });
        for line in lines {
            let Some(declared) = line.strip_prefix("--") else {
                if let Some(last) = options.last_mut() {
                    let help = format!("{}\n{}", last.help, line.trim_start());
                    last.help = help.trim_start().to_owned();
                }
                continue;
            };
            let (term, help) = declared.split_once("  ").unwrap_or((declared, ""));
            let (name, value) = match term.split_once(' ') {
                Some((name, value)) => (name, Some(value)),
                None => (term, None),
            };
            options.push(CommandOption {
                name,
                value,
                help: help.trim_start().to_owned(),
            });
        }
        options
    }

    /// Whether it may be given more than once.
    fn repeats(&self) -> bool {
        self.value.is_some_and(|value| value.ends_with("..."))
    }

    /// The option as help shows it: `--name VALUE`.
    pub fn term(&self) -> String {
        match self.value {
            Some(value) => format!("--{} {value}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

/// The options and operands of one command line.
#[derive(Debug)]
pub struct Arguments {
    command: String,
    options: Vec<(&'static str, OsString)>,
    operands: Vec<String>,
}

impl Arguments {
    /// Parses the words after the command that is called as `command`; `None`
    /// when they ask for its help. Without declared operands (`None`), any words
    /// are accepted.
    ///
    /// A word that looks like a negative number is an operand, as is every word
    /// after `--`.
    ///
    /// # Errors
    ///
    /// A usage failure that names the word and, for an unknown option, the
    /// nearest known one.
    pub fn parse(
        command: &str,
        options: &[CommandOption],
        operands: Option<&[&str]>,
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<Option<Arguments>, CliError> {
        let mut parsed = Arguments {
            command: command.to_owned(),
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
                    return Err(parsed.usage(format!("unknown option -{letter}")));
                }
                Some(Arg::Long(name)) => name.to_owned(),
            };
            let Some(option) = options.iter().find(|known| known.name == name) else {
                let names = options.iter().map(|known| known.name);
                let hint = nearest(&name, names)
                    .map(|near| format!("; did you mean --{near}?"))
                    .unwrap_or_default();
                return Err(parsed.usage(format!("unknown option --{name}{hint}")));
            };
            if parsed.has(option.name) && !option.repeats() {
                return Err(parsed.usage(format!("--{name} is given more than once")));
            }
            let value = match option.value {
                Some(_) => parser.value().map_err(|error| parsed.usage(error))?,
                None => OsString::new(),
            };
            parsed.options.push((option.name, value));
        }
        if let Some(operands) = operands {
            parsed.check_operands(operands)?;
        }
        Ok(Some(parsed))
    }

    fn check_operands(&self, declared: &[&str]) -> Result<(), CliError> {
        let missing = declared.get(self.operands.len());
        if let Some(missing) = missing.filter(|operand| !operand.starts_with('[')) {
            return Err(self.usage(format!("{missing} is missing")));
        }
        let is_unbounded = declared.last().is_some_and(|last| last.ends_with("...]"));
        match self.operands.get(declared.len()) {
            Some(extra) if !is_unbounded => {
                Err(self.usage(format!("unexpected argument {extra:?}")))
            }
            _ => Ok(()),
        }
    }

    /// A usage failure of this command.
    pub fn usage(&self, message: impl fmt::Display) -> CliError {
        CliError::Usage {
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
            .find(|(option, _)| *option == name)
            .map(|(_, value)| value.as_os_str())
    }

    /// The text of an option.
    ///
    /// # Errors
    ///
    /// A usage failure when it is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>, CliError> {
        Ok(self.texts(name)?.into_iter().next())
    }

    /// The texts of an option that may be given more than once.
    ///
    /// # Errors
    ///
    /// A usage failure when one is not UTF-8.
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, CliError> {
        self.options
            .iter()
            .filter(|(option, _)| *option == name)
            .map(|(_, value)| {
                value
                    .to_str()
                    .ok_or_else(|| self.usage(format!("--{name} is not UTF-8")))
            })
            .collect()
    }

    /// Checks that no two of these options are given together.
    ///
    /// # Errors
    ///
    /// A usage failure that names both.
    pub fn exclude(&self, one: &str, other: &str) -> Result<(), CliError> {
        if self.has(one) && self.has(other) {
            return Err(self.usage(format!("--{one} and --{other} cannot be used together")));
        }
        Ok(())
    }

    /// The parsed value of an option; `expected` says what it must be.
    pub fn value<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, CliError> {
        self.text(name)?
            .map(|text| {
                text.parse()
                    .map_err(|_| self.usage(format!("--{name} must be {expected}, not {text:?}")))
            })
            .transpose()
    }

    /// The text of an option that must be one of these words.
    pub fn choice(&self, name: &str, words: &[&str]) -> Result<Option<&str>, CliError> {
        let (given, Some((last, others))) = (self.text(name)?, words.split_last()) else {
            return Ok(None);
        };
        let or = if others.is_empty() { "" } else { " or " };
        match given {
            Some(word) if !words.contains(&word) => {
                let hint = nearest(word, words.iter().copied())
                    .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                Err(self.usage(format!(
                    "--{name} must be {}{or}{last}, not {word:?}{hint}",
                    others.join(", ")
                )))
            }
            given => Ok(given),
        }
    }

    /// The whole number of an option, within a range.
    pub fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, CliError> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        match self.value(name, &expected)? {
            Some(number) if !range.contains(&number) => {
                Err(self.usage(format!("--{name} must be {expected}, not {number}")))
            }
            number => Ok(number),
        }
    }

    /// The port in `--port`.
    pub fn port(&self) -> Result<Option<u16>, CliError> {
        let port = self.number("port", 0..=u64::from(u16::MAX))?;
        Ok(port.and_then(|port| u16::try_from(port).ok()))
    }

    /// The operand at an index, if given.
    pub fn operand(&self, index: usize) -> Option<&str> {
        self.operands.get(index).map(String::as_str)
    }

    /// An operand that the declaration requires.
    pub fn required(&self, index: usize) -> &str {
        self.operand(index)
            .expect("parse fails without the required operands")
    }

    /// The operands after this many.
    pub fn operands_after(&self, count: usize) -> impl Iterator<Item = &str> {
        self.operands.iter().skip(count).map(String::as_str)
    }

    /// All operands, joined by spaces.
    pub fn joined(&self) -> Option<String> {
        (!self.operands.is_empty()).then(|| self.operands.join(" "))
    }
}

/// Whether a word looks like a negative number, as no option does.
fn is_negative(word: &OsStr) -> bool {
    matches!(word.as_encoded_bytes(), [b'-', digit, ..] if digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_declared_option_is_lost() {
        let text = "do: Something\nAt length.\n--short  Help\n--a-very-long-option VALUE\n    \
            Help of it,\n    and more\n--json\n--none VALUE";
        let options = CommandOption::list(text);
        let found: Vec<(String, &str)> = options
            .iter()
            .map(|option| (option.term(), option.help.as_str()))
            .collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(term, help)| (&**term, *help)).collect();
        assert_eq!(
            found,
            [
                ("--short", "Help"),
                ("--a-very-long-option VALUE", "Help of it,\nand more"),
                ("--json", "Print JSON, for scripts"),
                ("--none VALUE", ""),
            ]
        );
    }

    #[test]
    fn a_negative_number_is_an_operand_and_so_is_all_behind_two_dashes() {
        for (line, operands) in [
            ("KEY -1", Some(&["KEY", "-1"][..])),
            ("KEY -0.5 --data-dir /d", Some(&["KEY", "-0.5"])),
            ("--data-dir /d KEY -", Some(&["KEY", "-"])),
            ("--data-dir -1 KEY V", Some(&["KEY", "V"])),
            ("-- KEY --none", Some(&["KEY", "--none"])),
            ("KEY -- -x", Some(&["KEY", "-x"])),
            ("-- KEY -1", Some(&["KEY", "-1"])),
            ("-- --help", Some(&["--help"])),
            ("-- -h -1 --", Some(&["-h", "-1", "--"])),
            ("KEY -x", None),
            ("KEY --1", None),
        ] {
            let words = line.split_whitespace().map(OsString::from);
            let options = CommandOption::list("--data-dir");
            let parsed = Arguments::parse("hearth x", &options, Some(&["[W...]"]), words);
            match operands {
                Some(operands) => assert_eq!(parsed.unwrap().unwrap().operands, operands, "{line}"),
                None => assert!(parsed.is_err(), "{line}"),
            }
        }
    }
}
