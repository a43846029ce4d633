//! Asks questions in a terminal; without one, asks nothing.

use std::io::ErrorKind;

use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::password;
use base::secret::Secret;

/// Longest answer, in bytes.
const ANSWER_BYTES: usize = 4 * 1024;
/// How many times a question is asked.
const TRIES: usize = 3;

/// Asks the person at the terminal, if there is one.
pub struct Prompter<'a, 'c> {
    context: &'a mut Context<'c>,
}

impl<'a, 'c> Prompter<'a, 'c> {
    pub fn new(context: &'a mut Context<'c>) -> Prompter<'a, 'c> {
        Prompter { context }
    }

    /// Whether there is a terminal.
    pub fn is_interactive(&self) -> bool {
        self.context.input_is_terminal
    }

    /// Prints a line, in a terminal only.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn say(&mut self, text: &str) -> Outcome {
        if self.is_interactive() {
            writeln!(self.context.errors, "{text}")?;
        }
        Ok(())
    }

    /// An answer, or `default` when it is empty; `None` without a terminal.
    ///
    /// # Errors
    ///
    /// The input ends or cannot be read.
    pub fn ask(&mut self, question: &str, default: &str) -> Result<Option<String>, Failure> {
        if !self.is_interactive() {
            return Ok(None);
        }
        let shown = match default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        write!(self.context.errors, "{question}{shown} ")?;
        self.context.errors.flush()?;
        let answer = self.read_line()?;
        let answer = answer.trim();
        let answer = if answer.is_empty() { default } else { answer };
        Ok(Some(answer.to_owned()))
    }

    /// Asks until the answer is one of these words, at most three times.
    ///
    /// # Errors
    ///
    /// No answer was one of them, or the input ends.
    pub fn choose(
        &mut self,
        question: &str,
        words: &[&str],
        default: &str,
    ) -> Result<Option<String>, Failure> {
        for _ in 0..TRIES {
            match self.ask(question, default)? {
                Some(answer) if !words.contains(&answer.as_str()) => {
                    self.say(&format!("Please enter one of {}.", words.join(", ")))?;
                }
                answer => return Ok(answer),
            }
        }
        Err(Failure::failed("no valid answer; nothing was written"))
    }

    /// A secret, typed invisibly; `None` without a terminal.
    ///
    /// # Errors
    ///
    /// The input ends or the person cancels.
    pub fn ask_secret(&mut self, question: &str) -> Result<Option<Secret>, Failure> {
        if !self.is_interactive() {
            return Ok(None);
        }
        password::read_secret(self.context, &format!("{question} "), true).map(Some)
    }

    /// A secret as the next line of standard input.
    ///
    /// # Errors
    ///
    /// The input ends or the person cancels.
    pub fn read_secret(&mut self) -> Result<Secret, Failure> {
        let ask = self.is_interactive();
        password::read_secret(self.context, "API key: ", ask)
    }

    /// An environment variable.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.context.variable(name)
    }

    /// Byte by byte, as the rest is for the next reader.
    fn read_line(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            match self.context.input.read(&mut byte) {
                Ok(0) => return Err(Failure::failed("standard input ended; nothing was written")),
                Ok(_) if byte[0] == b'\n' => break,
                Ok(_) => line.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Failure::failed(format!(
                        "cannot read standard input: {error}"
                    )));
                }
            }
            if line.len() > ANSWER_BYTES {
                return Err(Failure::failed(
                    "the answer is too long; nothing was written",
                ));
            }
        }
        String::from_utf8(line).map_err(|_| Failure::failed("the answer is not UTF-8"))
    }
}
