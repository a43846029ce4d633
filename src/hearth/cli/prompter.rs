//! Asks questions in a terminal; without one, asks nothing.

use super::arguments::Arguments;
use super::context::{CliContext, CliError, CliResult};
use super::password;
use base::nearest::nearest;
use base::secret::Secret;

/// How many times a question is asked.
const TRIES: usize = 3;

/// Goes on with what deletes for good only if a person wants it: in a terminal if they
/// answer `question` with `expected`, in any case, elsewhere with `--yes`.
///
/// # Errors
///
/// They do not, and nothing may be deleted.
pub fn confirm(
    arguments: &Arguments,
    context: &mut CliContext<'_>,
    question: &str,
    expected: &str,
) -> CliResult {
    if arguments.has("yes") {
        return Ok(());
    }
    let answer = context.ask(question, "")?;
    match answer {
        Some(answer) if answer.to_lowercase() == expected.to_lowercase() => Ok(()),
        Some(_) => Err(CliError::failed("nothing was deleted")),
        None => Err(CliError::failed(
            "nothing was deleted: without a terminal, --yes must say that it is wanted",
        )),
    }
}

/// Choices as they are shown: each can be chosen by its number too.
pub fn numbered<S: AsRef<str>>(words: &[S]) -> String {
    let lines = words.iter().enumerate();
    let lines = lines.map(|(place, word)| format!("{:>4}  {}", place + 1, word.as_ref()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The choice that an answer names by its number. A word that is a number goes first.
pub fn by_number<'w, S: AsRef<str>>(answer: &str, words: &'w [S]) -> Option<&'w str> {
    if words.iter().any(|word| word.as_ref() == answer) {
        return None;
    }
    let place = answer.parse::<usize>().ok()?.checked_sub(1)?;
    words.get(place).map(AsRef::as_ref)
}

/// Asks the person at the terminal, if there is one.
impl CliContext<'_> {
    /// Prints a line, in a terminal only.
    pub fn say(&mut self, text: &str) -> CliResult {
        if self.input_is_terminal {
            writeln!(self.errors, "{text}")?;
        }
        Ok(())
    }

    /// An answer, or `default` when it is empty; `None` without a terminal.
    pub fn ask(&mut self, question: &str, default: &str) -> Result<Option<String>, CliError> {
        if !self.input_is_terminal {
            return Ok(None);
        }
        let shown = match default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        write!(self.errors, "{question}{shown} ")?;
        self.errors.flush()?;
        let answer = password::read_line(self.input, |line, byte| line.push(byte))?;
        let answer = answer.expose().trim();
        let answer = if answer.is_empty() { default } else { answer };
        Ok(Some(answer.to_owned()))
    }

    /// Asks until the answer is one of these words, or the number of one as
    /// [`numbered`] shows it, at most three times.
    ///
    /// # Errors
    ///
    /// No answer was one of them, or the input ends.
    pub fn choose(
        &mut self,
        question: &str,
        words: &[&str],
        default: &str,
    ) -> Result<Option<String>, CliError> {
        for _ in 0..TRIES {
            match self.ask(question, default)? {
                Some(answer) if by_number(&answer, words).is_some() => {
                    return Ok(by_number(&answer, words).map(str::to_owned));
                }
                Some(answer) if !words.contains(&answer.as_str()) => {
                    let hint = nearest(&answer, words.iter().copied())
                        .map_or(String::new(), |near| format!(" Did you mean {near:?}?"));
                    self.say(&format!("Please enter one of {}.{hint}", words.join(", ")))?;
                }
                answer => return Ok(answer),
            }
        }
        Err(CliError::failed("no valid answer; nothing was written"))
    }

    /// A secret, typed invisibly; `None` without a terminal.
    pub fn ask_secret(&mut self, question: &str) -> Result<Option<Secret>, CliError> {
        if !self.input_is_terminal {
            return Ok(None);
        }
        password::read_secret(self, &format!("{question} ")).map(Some)
    }
}
