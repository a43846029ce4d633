//! Servers that are programs: one JSON-RPC message on each line of their
//! standard input and output (MCP specification, transports, stdio). Their
//! error output is a log.
//!
//! One thread has the program: it moves all of its pipes, notices its exit, and
//! ends it. Callers leave lines in an outbox and wait for their answers, so that
//! a program that stops reading, prints without end or dies holds nobody up
//! beyond their own deadline.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

use super::message;
use super::peer::{CallError, Outcome, Peer};
use super::program::Program;
use super::transport::{Call, Revision, Transport};
use base::secret::Secret;
use base::threads;

/// What a program inherits of our own environment. The rest stays here: it may
/// hold keys.
const INHERITED: [&str; 8] = [
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER",
];
/// Where programs are looked for when our own environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Bytes that may wait to be read by the program.
const OUTBOX_BYTES: usize = 16 * 1024 * 1024;
/// A running program as a server.
pub(super) struct StdioTransport {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What callers and the program's thread share.
pub(super) struct Shared {
    outbox: Mutex<Outbox>,
    /// Readable when there is something new in the outbox.
    pub(super) wake: OwnedFd,
}

#[derive(Default)]
pub(super) struct Outbox {
    pub(super) lines: VecDeque<Vec<u8>>,
    pub(super) bytes: usize,
    pub(super) stop: Option<StopMode>,
}

/// How a program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopMode {
    Gentle,
    AtOnce,
}

/// What is started.
pub(super) struct Start<'a> {
    /// The server's name, for the log.
    pub(super) name: &'a str,
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) environment: &'a BTreeMap<String, Secret>,
    pub(super) directory: &'a Path,
}

impl StdioTransport {
    /// Starts the program in a process group of its own, and the thread that
    /// has it. The peer is closed when the program is gone.
    ///
    /// # Errors
    /// It cannot be started; a sentence for the log.
    pub(super) fn start(start: &Start<'_>, peer: &Arc<Peer>) -> Result<StdioTransport, String> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| format!("it cannot be started: {}", io::Error::from(error)))?;
        let shared = Arc::new(Shared {
            outbox: Mutex::default(),
            wake,
        });
        let program = Program::start(start, Arc::clone(peer), Arc::clone(&shared))
            .map_err(|error| start.failed(&error))?;
        let thread = threads::spawn(
            std::thread::Builder::new().name(format!("mcp-io-{}", start.name)),
            move || program.run(),
        )
        .map_err(|error| format!("it cannot be started: {error}"))?;
        Ok(StdioTransport {
            shared,
            thread: Mutex::new(Some(thread)),
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
        let outcome = match self.shared.send(request.message) {
            Ok(()) => request
                .cancel
                .guard(hook, || peer.wait_for(id, &receiver, &request.patience)),
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
            self.tell(message::cancelled(id, reason));
        }
        outcome
    }

    fn tell(&self, message: Vec<u8>) {
        // One who does not read is told of it by the next request.
        let _ = self.shared.send(message);
    }

    fn opened(&self, _: Revision) {}

    fn listen(&self, _: &Arc<Peer>, subscription: Option<Vec<u8>>) {
        if let Some(subscription) = subscription {
            self.tell(subscription);
        }
    }

    fn close(&self, at_once: bool) {
        let haste = if at_once {
            StopMode::AtOnce
        } else {
            StopMode::Gentle
        };
        self.shared.outbox().stop = Some(haste);
        self.shared.wake();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            log::error!("the thread of an MCP server's program ended in a panic");
        }
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.close(true);
    }
}

impl Shared {
    pub(super) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send(&self, mut line: Vec<u8>) -> Result<(), CallError> {
        line.push(b'\n');
        let mut outbox = self.outbox();
        if outbox.bytes + line.len() > OUTBOX_BYTES {
            return Err(CallError::Unusable(
                "it does not read what it is sent".to_owned(),
            ));
        }
        outbox.bytes += line.len();
        outbox.lines.push_back(line);
        drop(outbox);
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        // Can only fail when the counter is full, and then it wakes as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Start<'_> {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(self.command);
        command
            .args(self.args)
            .current_dir(self.directory)
            .env_clear()
            .env("PATH", DEFAULT_PATH);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in self.environment {
            command.env(name, value.expose());
        }
        command
    }

    fn failed(&self, error: &io::Error) -> String {
        // The system says the same of a missing program and a missing directory.
        if self.directory.is_dir() {
            format!("the program {:?} cannot be started: {error}", self.command)
        } else {
            format!("the directory {:?}: {error}", self.directory)
        }
    }
}
