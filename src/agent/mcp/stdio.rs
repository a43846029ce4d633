//! Servers that are programs: one JSON-RPC message on each line of their
//! standard input and output (MCP specification, transports, stdio). Their
//! error output is a log.
//!
//! One thread supervises the program and reads what it writes. Callers queue
//! lines for its input and wait for their answers, so that a program that stops
//! reading, prints without end or dies delays no caller beyond its deadline.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::call::{Call, CallError};
use super::message::{self, MESSAGE_BYTES};
use super::output_lines::{LOGGED_BYTES, LineLog, Lines};
use super::peer::Peer;
use super::session::Transport;
use base::secret::Secret;
use base::sync::lock;
use net::cancel::Cancel;
use net::process::{
    Control, ExitReason, InputFull, Limits, Process, Sandbox, StopMode, Stream, describe_exit,
    has_landlock, keep_only,
};
use net::task::Task;

/// What a program inherits of our environment.
const INHERITED: [&str; 8] = [
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER",
];

/// A running program as a server.
pub(super) struct StdioTransport {
    program: Control,
    reading: Mutex<Option<Task>>,
}

impl StdioTransport {
    /// Starts the program in its own process group, and the thread that
    /// supervises it. The peer is closed when the program has ended.
    ///
    /// # Errors
    /// It cannot be started, in a sentence for the log.
    pub(super) fn start(
        name: &str,
        (program, arguments): (&str, &[String]),
        environment: &BTreeMap<String, Secret>,
        (directory, sandbox): (&Path, Option<&Sandbox>),
        peer: &Arc<Peer>,
    ) -> Result<StdioTransport, String> {
        let failed = |error| format!("it cannot be started: {error}");
        if sandbox.is_some() && !has_landlock() {
            return Err("it is to run in a sandbox, and this kernel has no Landlock".to_owned());
        }
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory);
        keep_only(&mut command, &INHERITED);
        for (name, value) in environment {
            command.env(name, value.expose());
        }
        let process = Process::start(&mut command, sandbox).map_err(failed)?;
        let program = process.control().clone();
        let reader = Reader {
            output: Lines::new(MESSAGE_BYTES),
            errors: Lines::new(LOGGED_BYTES),
            log: LineLog::new(format!("mcp {}", name)),
            noise: LineLog::new(format!("mcp {}: not a message", name)),
            peer: Arc::clone(peer),
            program: program.clone(),
        };
        let name = format!("mcp-io-{}", name);
        let read = move |_: &Cancel| reader.run(process);
        let reading = Task::start(name, &Cancel::default(), read).map_err(failed)?;
        Ok(StdioTransport {
            program,
            reading: Mutex::new(Some(reading)),
        })
    }
}

impl Transport for StdioTransport {
    fn send(&self, _: &Peer, request: &Call<'_>) -> Result<(), CallError> {
        send(&self.program, request.message.clone())
            .map_err(|full| CallError::Unusable(full.to_string().into()))
    }

    fn notify(&self, message: Vec<u8>) {
        // If the input is full, the next request fails.
        let _ = send(&self.program, message);
    }

    fn listen(&self, _: &Arc<Peer>, subscription: Option<Vec<u8>>) {
        if let Some(subscription) = subscription {
            self.notify(subscription);
        }
    }

    fn close(&self, at_once: bool) {
        let mode = if at_once {
            StopMode::AtOnce
        } else {
            StopMode::Gentle
        };
        self.program.stop(mode);
        let reading = lock(&self.reading).take();
        drop(reading);
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.close(true);
    }
}

fn send(program: &Control, mut line: Vec<u8>) -> Result<(), InputFull> {
    line.push(b'\n');
    program.send(line)
}

/// Reads what the program writes, on the program's thread.
struct Reader {
    output: Lines,
    errors: Lines,
    log: LineLog,
    noise: LineLog,
    peer: Arc<Peer>,
    program: Control,
}

impl Reader {
    /// Supervises the program until it ends, and closes the peer.
    fn run(mut self, process: Process) {
        let limits = Limits {
            deadline: None,
            ends_with_output: true,
            children_may_stay: false,
        };
        let end = process.run(limits, &mut |stream, bytes| match stream {
            Stream::Output => self.take_output(bytes),
            Stream::Error => self.take_errors(bytes),
        });
        self.take_output(b"\n");
        self.take_errors(b"\n");
        let reason = match end {
            Ok(ExitReason::Exited(status)) => {
                let reason = describe_exit(status, "ended");
                match self.log.last.as_str() {
                    "" => format!("it {reason}"),
                    words => format!("it {reason}: {words}"),
                }
            }
            Ok(ExitReason::OutputClosed) => "it closed its output".to_owned(),
            Ok(ExitReason::Stopped | ExitReason::TimedOut) => "it was stopped".to_owned(),
            Err(error) => format!("it cannot be waited for: {error}"),
        };
        self.peer.close(&reason);
    }

    fn take_errors(&mut self, bytes: &[u8]) {
        let log = &mut self.log;
        self.errors.push(bytes, &mut |line| log.push(line.text));
    }

    /// Passes on the messages in the program's output.
    fn take_output(&mut self, bytes: &[u8]) {
        let (peer, program, noise) = (&self.peer, &self.program, &mut self.noise);
        self.output.push(bytes, &mut |line| {
            if line.is_cut && matches!(line.text.first(), Some(b'{' | b'[')) {
                let most = MESSAGE_BYTES >> 20;
                return peer
                    .fail_waiting(&format!("it sent a message of more than {most} MiB").into());
            }
            let whole = (!line.is_cut).then_some(line.text);
            let Some(messages) = whole.and_then(message::read) else {
                return noise.push(line.text);
            };
            for answer in messages.into_iter().filter_map(|one| peer.receive(one)) {
                // A server that asks and does not read gets no answer.
                let _ = send(program, answer);
            }
        });
    }
}

impl Drop for Reader {
    /// Closes the peer if the thread could not be started or panicked.
    fn drop(&mut self) {
        self.peer.close("it is gone");
    }
}
