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

use super::lines::{IncomingLines, Line};
use super::log_lines::LogLines;
use super::message::{self, MESSAGE_BYTES};
use super::peer::{CallError, Outcome, Peer};
use super::transport::{Call, Revision, Transport};
use crate::tool::Workspace;
use base::secret::Secret;
use base::sync::lock;
use net::cancel::Cancel;
use net::process::{
    Control, ExitReason, Limits, Process, StopMode, Stream, describe_exit, has_landlock, keep_only,
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

/// How to start the program.
pub(super) struct Start<'a> {
    /// The server's name, for the log.
    pub(super) name: &'a str,
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) environment: &'a BTreeMap<String, Secret>,
    /// Where it runs, if not where [`Workspace::confine`] says.
    pub(super) directory: Option<&'a Path>,
    pub(super) workspace: &'a Workspace,
    /// Whether it may reach only a part of the file system.
    pub(super) sandbox: bool,
}

impl StdioTransport {
    /// Starts the program in its own process group, and the thread that
    /// supervises it. The peer is closed when the program has ended.
    ///
    /// # Errors
    /// It cannot be started, in a sentence for the log.
    pub(super) fn start(start: &Start<'_>, peer: &Arc<Peer>) -> Result<StdioTransport, String> {
        let failed = |error| format!("it cannot be started: {error}");
        if start.sandbox && !has_landlock() {
            return Err("it is to run in a sandbox, and this kernel has no Landlock".to_owned());
        }
        let rest = start.args.iter().map(String::as_str);
        let words: Vec<&str> = [start.command].into_iter().chain(rest).collect();
        let workspace = start.workspace;
        let (directory, sandbox) = workspace.confine(&words, start.directory, start.sandbox);
        let mut command = Command::new(start.command);
        command.args(start.args).current_dir(directory);
        keep_only(&mut command, &INHERITED);
        for (name, value) in start.environment {
            command.env(name, value.expose());
        }
        let process = Process::start(&mut command, sandbox.as_ref()).map_err(failed)?;
        let program = process.control().clone();
        let reader = Reader {
            incoming: IncomingLines::default(),
            log: LogLines::new(format!("mcp {}", start.name)),
            noise: LogLines::new(format!("mcp {}: not a message", start.name)),
            peer: Arc::clone(peer),
            program: program.clone(),
        };
        let name = format!("mcp-io-{}", start.name);
        let read = move |_: &Cancel| reader.run(process);
        let reading = Task::start(name, &Cancel::default(), read).map_err(failed)?;
        Ok(StdioTransport {
            program,
            reading: Mutex::new(Some(reading)),
        })
    }
}

impl Transport for StdioTransport {
    fn request(&self, peer: &Peer, request: Call<'_>) -> Outcome {
        let id = request.id;
        let (sender, receiver) = peer.expect(id);
        let hook = move || {
            let _ = sender.try_send(Err(CallError::Cancelled));
        };
        let outcome = match send(&self.program, request.message) {
            Ok(()) => request
                .cancel
                .guard(hook, || peer.wait_for(id, &receiver, &request.timeout)),
            Err(error) => Err(error),
        };
        peer.forget(id);
        let reason = match &outcome {
            // The handshake must not be cancelled (specification, cancellation).
            _ if request.method == "initialize" => None,
            Err(CallError::Cancelled) => Some("stopped"),
            Err(CallError::Silent(_) | CallError::TimedOut) => Some("it took too long"),
            _ => None,
        };
        if let Some(reason) = reason {
            self.notify(message::cancelled(id, reason));
        }
        outcome
    }

    fn notify(&self, message: Vec<u8>) {
        // If the input is full, the next request fails.
        let _ = send(&self.program, message);
    }

    fn opened(&self, _: Revision) {}

    fn listen(&self, _: &Arc<Peer>, subscription: Option<Vec<u8>>) {
        if let Some(subscription) = subscription {
            self.notify(subscription);
        }
    }

    fn close(&self, at_once: bool) {
        self.program.stop(if at_once {
            StopMode::AtOnce
        } else {
            StopMode::Gentle
        });
        let reading = lock(&self.reading).take();
        drop(reading);
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.close(true);
    }
}

fn send(program: &Control, mut line: Vec<u8>) -> Result<(), CallError> {
    line.push(b'\n');
    program
        .send(line)
        .map_err(|full| CallError::Unusable(full.to_string()))
}

/// Reads what the program writes, on the program's thread.
struct Reader {
    incoming: IncomingLines,
    log: LogLines,
    noise: LogLines,
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
            Stream::Error => self.log.push(bytes),
        });
        self.take_output(b"\n");
        self.noise.finish();
        let last_words = self.log.finish();
        let reason = match end {
            Ok(ExitReason::Exited(status)) => {
                let reason = describe_exit(status, "ended");
                match last_words {
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

    /// Passes on the messages in the program's output.
    fn take_output(&mut self, bytes: &[u8]) {
        let (peer, program, noise) = (&self.peer, &self.program, &mut self.noise);
        self.incoming.push(bytes, &mut |line| match line {
            Line::Whole(line) => match message::read(line) {
                Some(messages) => {
                    for answer in messages.into_iter().filter_map(|one| peer.receive(one)) {
                        // A server that asks and does not read gets no answer.
                        let _ = send(program, answer);
                    }
                }
                None => noise.push_line(line),
            },
            Line::TooLong => {
                peer.fail_waiting(&format!(
                    "it sent a message of more than {} MiB",
                    MESSAGE_BYTES >> 20
                ));
            }
            Line::LongNoise(start) => noise.push_line(start),
        });
    }
}

impl Drop for Reader {
    /// Closes the peer if the thread could not be started or panicked.
    fn drop(&mut self) {
        self.peer.close("it is gone");
    }
}
