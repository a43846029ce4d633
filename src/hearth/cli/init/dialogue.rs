//! Questions and answers in a terminal; where there is none, nothing is asked.

use std::io::ErrorKind;

use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::password;
use base::secret::Secret;

/// Most bytes of an answer.
const ANSWER_BYTES: usize = 4 * 1024;
/// How often a wrong answer is asked for again.
const TRIES: usize = 3;

/// The conversation with the person at the terminal, if there is one.
pub struct Dialogue<'a, 'c> {
    context: &'a mut Context<'c>,
}

impl<'a, 'c> Dialogue<'a, 'c> {
    pub fn new(context: &'a mut Context<'c>) -> Dialogue<'a, 'c> {
        Dialogue { context }
    }

    /// Whether somebody can be asked.
    pub fn is_open(&self) -> bool {
        self.context.input_is_terminal
    }

    /// Says something to somebody who is asked things.
    pub fn say(&mut self, text: &str) -> Outcome {
        if self.is_open() {
            writeln!(self.context.errors, "{text}")?;
        }
        Ok(())
    }

    /// An answer, `default` when it is empty; nothing where nobody is asked.
    pub fn ask(&mut self, question: &str, default: &str) -> Result<Option<String>, Failure> {
        if !self.is_open() {
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

    /// One of these words.
    pub fn choose(
        &mut self,
        question: &str,
        words: &[&str],
        default: &str,
    ) -> Result<Option<String>, Failure> {
        for _ in 0..TRIES {
            match self.ask(question, default)? {
                Some(answer) if !words.contains(&answer.as_str()) => {
                    self.say(&format!("It must be one of {}.", words.join(", ")))?;
                }
                answer => return Ok(answer),
            }
        }
        Err(Failure::failed(
            "no answer that could be used; nothing was written",
        ))
    }

    /// A secret, which is not shown; nothing where nobody is asked.
    pub fn ask_secret(&mut self, question: &str) -> Result<Option<Secret>, Failure> {
        if !self.is_open() {
            return Ok(None);
        }
        password::read_secret(self.context, &format!("{question} "), true).map(Some)
    }

    /// A secret as the next line of standard input.
    pub fn take_secret(&mut self) -> Result<Secret, Failure> {
        let ask = self.is_open();
        password::read_secret(self.context, "API key: ", ask)
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.context.variable(name)
    }

    /// Byte by byte: what follows is for the next reader.
    fn read_line(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            match self.context.input.read(&mut byte) {
                Ok(0) => return Err(Failure::failed("no more answers; nothing was written")),
                Ok(_) if byte[0] == b'\n' => break,
                Ok(_) => line.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Failure::failed(format!(
                        "standard input cannot be read: {error}"
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
