//! `hearth chat`: a client in the terminal.
//!
//! `dialogue` decides, `screen` shows, `connection` carries, `access`
//! gets in; here is the loop that waits for all of them at once.

pub(super) mod access;
mod address;
mod approvals;
pub(super) mod connection;
mod dialogue;
mod screen;
mod secrecy;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transcripts;

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::arguments::Arguments;
use super::{Context, Failure, Outcome};
use access::Access;
use base::ids::ConversationId;
use connection::{Connection, Read};
use dialogue::{Action, Dialogue, Input, Manner};
use protocol::command::CHAT_MESSAGE_BYTES;
use screen::Screen;

/// Longest line that is read: a little more than the longest message.
const LINE_BYTES: usize = CHAT_MESSAGE_BYTES + 1024;

/// `hearth chat [QUESTION...]`
pub fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let conversation = arguments.text("conversation")?;
    if conversation.is_some() && arguments.has("new") {
        return Err(arguments.usage("--conversation and --new exclude each other"));
    }
    if let Some(id) = conversation {
        id.parse::<ConversationId>()?;
    }
    let manner = Manner {
        question: arguments.joined(),
        interactive: context.input_is_terminal,
        conversation: conversation.map(str::to_owned),
    };
    let color = context.variable("NO_COLOR").is_none()
        && context.variable("TERM").is_none_or(|term| term != "dumb");
    let rich = context.output_is_terminal;
    let prompt = rich && context.input_is_terminal && manner.question.is_none();
    let screen = Screen::new(rich, rich && color, prompt);

    let access = Access::gain(arguments, context)?;
    // Only now: until the token is there, Ctrl-C may simply end the process.
    let outcome = Signals::catch()
        .map_err(|error| Failure::failed(format!("signals cannot be handled: {error}")))
        .and_then(|signals| {
            let connection = Connection::open(&access)?;
            let session = Session {
                connection,
                screen,
                lines: Lines::default(),
                signals,
                heard: Instant::now(),
            };
            session.run(manner, access.credential.message(), context)
        });
    access.end();
    outcome
}

/// Signals as bytes that can be waited for.
struct Signals {
    interrupts: UnixStream,
    ends: UnixStream,
}

impl Signals {
    /// Catches Ctrl-C and what asks the process to end, for the rest of its life.
    fn catch() -> io::Result<Signals> {
        let (interrupts, writer) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGINT, writer)?;
        let (ends, writer) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGTERM, writer.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGHUP, writer)?;
        Ok(Signals { interrupts, ends })
    }
}

struct Session {
    connection: Connection,
    screen: Screen,
    lines: Lines,
    signals: Signals,
    /// When the server last sent anything.
    heard: Instant,
}

impl Session {
    fn run(mut self, manner: Manner, auth: Value, context: &mut Context) -> Outcome {
        let (mut dialogue, actions) = Dialogue::begin(manner, auth);
        let mut end = self.carry_out(actions, context)?;
        while end.is_none() {
            let actions = self.next(&mut dialogue, context)?;
            end = self.carry_out(actions, context)?;
        }
        self.connection.close();
        match end {
            Some(true) => Ok(()),
            _ => Err(Failure::Told),
        }
    }

    /// Waits for whatever comes next and lets the dialogue take it.
    fn next(
        &mut self,
        dialogue: &mut Dialogue,
        context: &mut Context,
    ) -> Result<Vec<Action>, Failure> {
        match self.connection.receive() {
            Read::Text(text) => {
                self.heard = Instant::now();
                return Ok(dialogue.take(Input::Received(&text)));
            }
            Read::Alive => {
                self.heard = Instant::now();
                return Ok(Vec::new());
            }
            Read::Closed(reason) => {
                return Err(Failure::failed(format!("the server has gone: {reason}")));
            }
            Read::Nothing => {}
        }
        if dialogue.wants_line()
            && let Some(line) = self.lines.next()
        {
            return Ok(match line {
                Some(line) => dialogue.take(Input::Line(&line)),
                None => dialogue.take(Input::End),
            });
        }

        let deadline = self.heard + Duration::from_secs(dialogue.silence());
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::failed(format!(
                "the server has been silent for {} seconds",
                dialogue.silence()
            )));
        }
        let Ready {
            input,
            interrupt,
            end,
        } = self.wait(dialogue.wants_line(), left, context)?;
        if end {
            return Ok(dialogue.take(Input::Terminate));
        }
        if interrupt {
            // One byte is one Ctrl-C.
            let _ = self.signals.interrupts.read(&mut [0]);
            return Ok(dialogue.take(Input::Interrupt));
        }
        if input {
            self.lines.fill(context.input)?;
        }
        Ok(Vec::new())
    }

    /// Waits for the socket, a signal and, if a line is wanted, the input.
    fn wait(&self, lines: bool, left: Duration, context: &Context) -> Result<Ready, Failure> {
        let mut waiting = vec![
            PollFd::new(&self.connection, PollFlags::IN),
            PollFd::new(&self.signals.interrupts, PollFlags::IN),
            PollFd::new(&self.signals.ends, PollFlags::IN),
        ];
        if lines {
            waiting.push(PollFd::from_borrowed_fd(
                context.input.as_fd(),
                PollFlags::IN,
            ));
        }
        match poll(&mut waiting, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                let error = io::Error::from(error);
                return Err(Failure::failed(format!(
                    "cannot wait for the server: {error}"
                )));
            }
        }
        let ready = |place: usize| {
            waiting
                .get(place)
                .is_some_and(|waited| !waited.revents().is_empty())
        };
        Ok(Ready {
            interrupt: ready(1),
            end: ready(2),
            input: ready(3),
        })
    }

    /// Does what the dialogue decided; tells when and how it ends.
    fn carry_out(
        &mut self,
        actions: Vec<Action>,
        context: &mut Context,
    ) -> Result<Option<bool>, Failure> {
        for action in actions {
            match action {
                Action::Send(message) => self
                    .connection
                    .send(message.to_string())
                    .map_err(|reason| Failure::failed(format!("the server has gone: {reason}")))?,
                Action::Leave { good } => return Ok(Some(good)),
                shown => self.screen.show(&shown, context.output, context.errors)?,
            }
        }
        Ok(None)
    }
}

/// What need not be waited for any longer.
struct Ready {
    input: bool,
    interrupt: bool,
    end: bool,
}

/// Cuts what is read into lines.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    ended: bool,
}

impl Lines {
    /// Reads once; only to be called when there is something to read.
    fn fill(&mut self, input: &mut dyn super::Input) -> Result<(), Failure> {
        let mut chunk = [0; 4096];
        match input.read(&mut chunk) {
            Ok(0) => self.ended = true,
            Ok(count) => self.bytes.extend_from_slice(&chunk[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => {
                return Err(Failure::failed(format!(
                    "standard input cannot be read: {error}"
                )));
            }
        }
        if self.bytes.len() > LINE_BYTES && !self.bytes.contains(&b'\n') {
            return Err(Failure::failed(format!(
                "a message may have at most {CHAT_MESSAGE_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// The next line, `Some(None)` at the end of all lines, `None` when more
    /// has to be read first.
    fn next(&mut self) -> Option<Option<String>> {
        let (end, length) = match self.bytes.iter().position(|&byte| byte == b'\n') {
            Some(place) => (place, place + 1),
            None if self.ended && !self.bytes.is_empty() => (self.bytes.len(), self.bytes.len()),
            None if self.ended => return Some(None),
            None => return None,
        };
        let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..length);
        Some(Some(line))
    }
}
