//! Reads passwords and other secrets, typed invisibly or from standard input, and
//! generates passwords.

use std::fmt::Display;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::arguments::Arguments;
use super::context::{CliContext, CliError};
use crate::service;
use crate::service::password::LEAST_CHARACTERS;
use base::secret::Secret;

/// Longest secret, in bytes.
const LINE_BYTES: usize = 64 * 1024;
/// Fewest characters of a passphrase.
const PASSPHRASE_CHARACTERS: usize = 12;

/// The password of a user that the terminal sets. With `--generate` it is generated and
/// printed to the output.
///
/// # Errors
///
/// The password cannot be read, breaks the rules, or was typed differently.
pub fn of_new_user(
    arguments: &Arguments,
    context: &mut CliContext,
    user: &str,
) -> Result<Secret, CliError> {
    if arguments.has("generate") {
        arguments.exclude("generate", "password-stdin")?;
        let password = Secret::random_password();
        context.print(password.expose())?;
        return Ok(password);
    }
    if arguments.has("password-stdin") {
        let password = read_plain(context)?;
        return check(&password).map(|()| password);
    }
    new_password(context, user)
}

/// A new password that meets the rules: in a terminal typed twice, else a line of standard
/// input.
///
/// # Errors
///
/// The password cannot be read, breaks the rules, or was typed differently.
pub fn new_password(context: &mut CliContext, user: &str) -> Result<Secret, CliError> {
    let hint = format!(
        "Enter a password for {user}, at least {LEAST_CHARACTERS} characters. It is not displayed."
    );
    new_secret(context, "password", &hint, check)
}

/// A new passphrase for a file: in a terminal typed twice, else a line of standard input.
///
/// # Errors
///
/// It cannot be read, is too short, or was typed differently.
pub fn new_passphrase(context: &mut CliContext) -> Result<Secret, CliError> {
    let hint = "Enter a passphrase: whoever has the file can try as many as they like, so take \
                five\nwords or more. It is not displayed. Without it nobody can read the file.";
    new_secret(context, "passphrase", hint, |passphrase| {
        match passphrase.expose().chars().count() < PASSPHRASE_CHARACTERS {
            true => Err(CliError::failed(format!(
                "a passphrase has at least {PASSPHRASE_CHARACTERS} characters; nothing was changed"
            ))),
            false => Ok(()),
        }
    })
}

fn new_secret(
    context: &mut CliContext,
    what: &str,
    hint: &str,
    check: impl FnOnce(&Secret) -> Result<(), CliError>,
) -> Result<Secret, CliError> {
    let ask = context.input_is_terminal;
    if ask {
        context.note(hint)?;
    }
    let prompt = format!("{}{}: ", what[..1].to_uppercase(), &what[1..]);
    let secret = read_secret(context, &prompt)?;
    check(&secret)?;
    if ask && read_secret(context, "Repeat: ")? != secret {
        return Err(CliError::failed(format!(
            "the {what}s do not match; nothing was changed"
        )));
    }
    Ok(secret)
}

/// Checks a password's length.
///
/// # Errors
///
/// It is too short or too long.
pub fn check(password: &Secret) -> Result<(), CliError> {
    Ok(service::password::check(password)?)
}

/// Reads one line as a secret: in a terminal with a prompt and invisibly, else as it comes.
///
/// # Errors
///
/// The input ends, is not UTF-8 or too long, or the person cancels.
pub fn read_secret(context: &mut CliContext, prompt: &str) -> Result<Secret, CliError> {
    if !context.input_is_terminal {
        return read_plain(context);
    }
    write!(context.errors, "{prompt}")?;
    context.errors.flush()?;
    let typed = {
        // A second descriptor restores the terminal, as reading borrows the first.
        let terminal = context
            .input
            .as_fd()
            .try_clone_to_owned()
            .map_err(unreadable)?;
        let _no_echo = NoEcho::begin(terminal.as_fd()).map_err(unreadable)?;
        read_line(context.input, edit)
    };
    writeln!(context.errors)?;
    typed
}

/// Reads one line as a secret as it comes, also in a terminal.
///
/// # Errors
///
/// As [`read_secret`].
pub fn read_plain(context: &mut CliContext) -> Result<Secret, CliError> {
    read_line(context.input, |line, byte| line.push(byte))
}

fn unreadable(error: impl Display) -> CliError {
    CliError::failed(format!("cannot read standard input: {error}"))
}

/// Reads to the end of the line, byte by byte, so that the rest stays for the next
/// reader. `take` appends a byte to the line.
///
/// # Errors
///
/// The input ends, is not UTF-8 or too long, or the person cancels.
pub fn read_line(
    input: &mut (impl Read + ?Sized),
    take: impl Fn(&mut Vec<u8>, u8),
) -> Result<Secret, CliError> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match input.read(&mut byte) {
            Ok(0) if line.is_empty() => {
                return Err(CliError::failed(
                    "standard input ended; nothing was written",
                ));
            }
            Ok(0) => break,
            Ok(_) => match byte[0] {
                b'\n' => break,
                CONTROL_C => return Err(CliError::failed("cancelled; nothing was changed")),
                CONTROL_D if line.is_empty() => {
                    return Err(CliError::failed("cancelled; nothing was changed"));
                }
                byte => take(&mut line, byte),
            },
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
        if line.len() > LINE_BYTES {
            return Err(CliError::failed("the line on standard input is too long"));
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line)
        .map(Secret::new)
        .map_err(|_| CliError::failed("the input is not UTF-8"))
}

const CONTROL_C: u8 = 0x03;
const CONTROL_D: u8 = 0x04;
const CONTROL_U: u8 = 0x15;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// What a terminal does with a typed byte while a person edits a line.
fn edit(line: &mut Vec<u8>, byte: u8) {
    match byte {
        CONTROL_U => line.clear(),
        byte if BACKSPACE.contains(&byte) => {
            // A character goes with all its bytes.
            while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
        }
        byte => line.push(byte),
    }
}

/// Turns a terminal's echo off until dropped. Keys that would kill the process arrive
/// as bytes instead, so that the echo is always turned on again.
struct NoEcho<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> NoEcho<'a> {
    fn begin(terminal: BorrowedFd<'a>) -> rustix::io::Result<NoEcho<'a>> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(NoEcho { terminal, before })
    }
}

impl Drop for NoEcho<'_> {
    fn drop(&mut self) {
        // A closed terminal has nothing to restore.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_no_more() {
        let mut input: &[u8] = b"first\r\nsecond";
        for expected in ["first", "second"] {
            let line = read_line(&mut input, |line, byte| line.push(byte)).unwrap();
            assert_eq!(line.expose(), expected);
        }
        assert!(read_line(&mut input, edit).is_err(), "the input has ended");
    }

    #[test]
    fn typing_can_be_corrected_and_cancelled() {
        for (typed, line) in [
            ("secret\n", Some("secret")),
            ("secrex\x7ft\n", Some("secret")),
            ("gr\u{fc}\u{df}\x7f\x08e\n", Some("gre")),
            ("\x7f\x7fa\n", Some("a")),
            ("wrong\x15right\n", Some("right")),
            ("secret\x03", None),
            ("\x04", None),
        ] {
            let read = read_line(&mut typed.as_bytes(), edit).ok();
            assert_eq!(read.as_ref().map(Secret::expose), line, "{typed:?}");
        }
    }

    #[test]
    fn a_password_has_limits() {
        for (password, good) in [
            ("1234567".to_owned(), false),
            ("12345678".to_owned(), true),
            ("\u{fc}".repeat(7), false),
            ("\u{fc}".repeat(8), true),
            ("x".repeat(1024), true),
            ("x".repeat(1025), false),
        ] {
            assert_eq!(check(&Secret::new(&*password)).is_ok(), good, "{password}");
        }
    }
}
