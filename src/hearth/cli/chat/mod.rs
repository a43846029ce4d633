//! `hearth chat`: a client in the terminal.
//!
//! `access` signs in, `connection` is the WebSocket, `client` decides what to do and
//! `screen` shows it. The loop here waits for server, person and signals at once.

pub(super) mod access;
mod action;
mod address;
pub(super) mod approval;
pub(super) mod approvals;
mod attach;
mod client;
pub(super) mod connection;
mod encryption;
mod listing;
mod screen;
#[cfg(test)]
mod tests;

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use access::ServerAccess;
use action::Action;
use base::ids::ConversationId;
use client::{ChatClient, ChatMode, ClientEvent};
use connection::{ChatConnection, ReadResult};
use protocol::command::CHAT_MESSAGE_BYTES;
use screen::ChatScreen;

pub const COMMAND: Command = Command::new(
    "\
chat [QUESTION...]: Talk to the assistant
With a question, prints the answer and exits. Without one, prompts in the terminal, or reads one
message per line of standard input. When the output is a file or pipe, only answers are written.

Without --url it talks to the server on this machine and needs no password: anyone who can write
to the data directory has full access. Ctrl-C stops an answer; a second Ctrl-C exits.
--conversation ID    Continue this conversation
--new                Start a new conversation (the default)
--attach FILE...     Send this file with the first message, or alone if
                     there is none; may be repeated
--SERVER",
)
.run(run);

/// Longest line, a little more than the longest message.
const LINE_BYTES: usize = CHAT_MESSAGE_BYTES + 1024;

/// `hearth chat [QUESTION...]`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let conversation = arguments.text("conversation")?;
    arguments.exclude("conversation", "new")?;
    if let Some(id) = conversation {
        id.parse::<ConversationId>()?;
    }
    let files = arguments.texts("attach")?;
    let mut mode = ChatMode {
        question: arguments.joined(),
        interactive: context.input_is_terminal,
        conversation: conversation.map(str::to_owned),
        file_names: attach::names(&files),
        ..ChatMode::default()
    };
    let color = context.variable("NO_COLOR").is_none()
        && context.variable("TERM").is_none_or(|term| term != "dumb");
    let rich = context.output_is_terminal;
    let prompt = rich && context.input_is_terminal && mode.question.is_none();
    let screen = ChatScreen::new(rich, rich && color, prompt);

    let access = ServerAccess::gain(arguments, context)?;
    mode.is_from_environment = access.is_from_environment;
    // Until here, Ctrl-C simply ends the process.
    let signals = SignalSockets::catch()
        .map_err(|error| CliError::failed(format!("cannot handle signals: {error}")))?;
    let mut connection = ChatConnection::open(&access)?;
    mode.attachments = attach::put(&files, &access, &mut connection)?;
    let event_loop = EventLoop {
        connection,
        screen,
        lines: LineBuffer::default(),
        signals,
        heard: Instant::now(),
    };
    event_loop.run(mode, access.credential.message(), context)
}

/// Signals as bytes on sockets, which can be polled.
struct SignalSockets {
    interrupts: UnixStream,
    ends: UnixStream,
}

impl SignalSockets {
    /// Catches Ctrl-C and what asks the process to end, for the rest of its life.
    fn catch() -> io::Result<SignalSockets> {
        let (interrupts, writer) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGINT, writer)?;
        let (ends, writer) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGTERM, writer.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGHUP, writer)?;
        Ok(SignalSockets { interrupts, ends })
    }
}

struct EventLoop {
    connection: ChatConnection,
    screen: ChatScreen,
    lines: LineBuffer,
    signals: SignalSockets,
    /// When the server last sent anything.
    heard: Instant,
}

impl EventLoop {
    fn run(mut self, mode: ChatMode, auth: Value, context: &mut CliContext) -> CliResult {
        let (mut client, actions) = ChatClient::begin(mode, auth);
        let mut end = self.carry_out(actions, context)?;
        while end.is_none() {
            let actions = self.next(&mut client, context)?;
            end = self.carry_out(actions, context)?;
        }
        match end {
            Some(true) => Ok(()),
            _ => Err(CliError::Reported),
        }
    }

    /// Waits for the next event and lets the client handle it.
    fn next(
        &mut self,
        client: &mut ChatClient,
        context: &mut CliContext,
    ) -> Result<Vec<Action>, CliError> {
        match self.connection.receive() {
            ReadResult::Text(text) => {
                self.heard = Instant::now();
                return Ok(client.take(ClientEvent::Received(&text)));
            }
            ReadResult::Alive => {
                self.heard = Instant::now();
                return Ok(Vec::new());
            }
            ReadResult::Closed(reason) => {
                return Err(CliError::failed(format!(
                    "the connection to the server ended: {reason}"
                )));
            }
            ReadResult::Nothing => {}
        }
        if client.wants_line()
            && let Some(line) = self.lines.next()
        {
            return Ok(match line {
                Some(line) => client.take(ClientEvent::Line(&line)),
                None => client.take(ClientEvent::End),
            });
        }

        let deadline = self.heard + Duration::from_secs(client.silence());
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(CliError::failed(format!(
                "the server has not answered for {} seconds",
                client.silence()
            )));
        }
        // Waits for the socket, a signal and, if a line is wanted, the input.
        let mut waiting = vec![
            PollFd::new(&self.connection, PollFlags::IN),
            PollFd::new(&self.signals.interrupts, PollFlags::IN),
            PollFd::new(&self.signals.ends, PollFlags::IN),
        ];
        if client.wants_line() {
            let input = context.input.as_fd();
            waiting.push(PollFd::from_borrowed_fd(input, PollFlags::IN));
        }
        match poll(&mut waiting, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                let error = io::Error::from(error);
                return Err(CliError::failed(format!(
                    "cannot wait for the server: {error}"
                )));
            }
        }
        let mut ready = waiting.iter().map(|one| !one.revents().is_empty()).skip(1);
        let mut is_ready = || ready.next().unwrap_or_default();
        let (interrupt, end, input) = (is_ready(), is_ready(), is_ready());
        if end {
            return Ok(client.take(ClientEvent::Terminate));
        }
        if interrupt {
            // One byte is one Ctrl-C.
            let _ = self.signals.interrupts.read(&mut [0]);
            return Ok(client.take(ClientEvent::Interrupt));
        }
        if input {
            self.lines.fill(context.input)?;
        }
        Ok(Vec::new())
    }

    /// Carries out the client's actions. Returns the success when the client exits.
    fn carry_out(
        &mut self,
        actions: Vec<Action>,
        context: &mut CliContext,
    ) -> Result<Option<bool>, CliError> {
        for action in actions {
            match action {
                Action::Send(message) => {
                    self.connection
                        .send(message.to_string())
                        .map_err(|reason| {
                            CliError::failed(format!(
                                "the connection to the server ended: {reason}"
                            ))
                        })?
                }
                Action::Exit { success } => return Ok(Some(success)),
                shown => self.screen.show(&shown, context.output, context.errors)?,
            }
        }
        Ok(None)
    }
}

/// Splits the input into lines.
#[derive(Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    ended: bool,
}

impl LineBuffer {
    /// Reads once; call it only when the input is readable.
    fn fill(&mut self, input: &mut dyn crate::cli::context::Input) -> Result<(), CliError> {
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
                return Err(CliError::failed(format!(
                    "cannot read standard input: {error}"
                )));
            }
        }
        if self.bytes.len() > LINE_BYTES && !self.bytes.contains(&b'\n') {
            return Err(CliError::failed(format!(
                "a message may have at most {CHAT_MESSAGE_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// The next line, `Some(None)` at the end of the input, `None` when more must be
    /// read first.
    fn next(&mut self) -> Option<Option<String>> {
        let (end, length) = match self.bytes.iter().position(|&byte| byte == b'\n') {
            Some(index) => (index, index + 1),
            None if self.ended && !self.bytes.is_empty() => (self.bytes.len(), self.bytes.len()),
            None if self.ended => return Some(None),
            None => return None,
        };
        let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..length);
        Some(Some(line))
    }
}
