//! A program that serves over its standard streams, in the hands of one thread,
//! which moves all of its pipes, notices its exit, and ends it.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::lines::{IncomingLines, Line};
use super::log_lines::LogLines;
use super::message::{self, MESSAGE_BYTES};
use super::peer::Peer;
use super::stdio::{Shared, Start, StopMode};
use net::pipe::{drain, is_transient, readable, sleep, writable};
use net::process_group::ProcessGroup;

/// Bytes read at a time.
const CHUNK: usize = 16 * 1024;
/// How long a program may take to end after the end of its input, and then
/// after being told to terminate.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The same when it has to go at once.
const HASTY_GRACE: Duration = Duration::from_millis(300);
/// How long output is still read after the exit.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// How often the exit is looked for on kernels without pidfd (Linux before 5.3).
const EXIT_INTERVAL: Duration = Duration::from_millis(500);

/// The program and our ends of its pipes, in the hands of their thread.
pub(super) struct Program {
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The line being written, and how much of it is.
    writing: Vec<u8>,
    written: usize,
    incoming: IncomingLines,
    log: LogLines,
    noise: LogLines,
    buffer: Box<[u8]>,
    peer: Arc<Peer>,
    shared: Arc<Shared>,
}

impl Program {
    /// Starts it in a process group of its own.
    pub(super) fn start(
        start: &Start<'_>,
        peer: Arc<Peer>,
        shared: Arc<Shared>,
    ) -> io::Result<Program> {
        let (group, pipes) = ProcessGroup::start(&mut start.command())?;
        Ok(Program {
            group,
            stdin: Some(pipes.stdin),
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            writing: Vec::new(),
            written: 0,
            incoming: IncomingLines::default(),
            log: LogLines::new(format!("mcp {}", start.name)),
            noise: LogLines::new(format!("mcp {}: not a message", start.name)),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            peer,
            shared,
        })
    }

    /// Serves the pipes until the program is gone, and says so to the peer.
    pub(super) fn run(mut self) {
        let reason = match self.serve() {
            Ok(reason) => reason,
            Err(error) => format!("it cannot be waited for: {error}"),
        };
        self.group.kill();
        self.noise.finish();
        self.log.finish();
        self.peer.close(&reason);
    }

    fn serve(&mut self) -> io::Result<String> {
        loop {
            let stop = self.shared.outbox().stop;
            if let Some(haste) = stop {
                self.end(haste)?;
                return Ok("it was stopped".to_owned());
            }
            if self.group.has_exited()? {
                // It would wake every wait for the rest of the output.
                self.group.forget_exit();
                let until = Instant::now() + OUTPUT_GRACE;
                while (self.stdout.is_some() || self.stderr.is_some()) && self.step(Some(until))? {}
                let status = self.reap()?;
                return Ok(exit_reason(status, self.log.finish()));
            }
            if self.stdout.is_none() && !self.exits_within(OUTPUT_GRACE)? {
                self.end(StopMode::Gentle)?;
                return Ok("it closed its output".to_owned());
            }
            self.step(None)?;
        }
    }

    /// Waits until something can be done, and does it. False when it is later
    /// than `until`.
    fn step(&mut self, until: Option<Instant>) -> io::Result<bool> {
        let left = match until {
            Some(until) => match until.checked_duration_since(Instant::now()) {
                Some(left) => Some(left),
                None => return Ok(false),
            },
            None => self.group.exit().is_none().then_some(EXIT_INTERVAL),
        };
        self.wait(left)?;
        self.feed();
        self.take_output();
        let buffer = &mut self.buffer;
        drain(&mut self.stderr, buffer, |bytes| self.log.push(bytes));
        Ok(true)
    }

    fn wait(&mut self, left: Option<Duration>) -> io::Result<()> {
        let has_input = self.written < self.writing.len() || !self.shared.outbox().lines.is_empty();
        let stdin = self.stdin.as_ref().filter(|_| has_input);
        let watched = [
            writable(stdin),
            readable(self.stdout.as_ref()),
            readable(self.stderr.as_ref()),
            readable(self.group.exit()),
            readable(Some(&self.shared.wake)),
        ];
        sleep(watched, left)?;
        // Empties the counter; there is nothing to learn from it.
        let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        Ok(())
    }

    /// Writes what the pipe takes; closes it when the program does not want
    /// more.
    fn feed(&mut self) {
        while let Some(pipe) = &mut self.stdin {
            if self.written == self.writing.len() {
                let mut outbox = self.shared.outbox();
                let Some(line) = outbox.lines.pop_front() else {
                    return;
                };
                outbox.bytes -= line.len();
                drop(outbox);
                (self.writing, self.written) = (line, 0);
            }
            match pipe.write(&self.writing[self.written..]) {
                Ok(count) if count > 0 => self.written += count,
                Err(error) if is_transient(&error) => return,
                Ok(_) | Err(_) => self.stdin = None,
            }
        }
    }

    /// Reads what the program says, and hands its messages on.
    fn take_output(&mut self) {
        let Some(pipe) = &mut self.stdout else { return };
        let length = match pipe.read(&mut self.buffer) {
            Ok(length) if length > 0 => length,
            Err(error) if is_transient(&error) => return,
            Ok(_) | Err(_) => {
                self.stdout = None;
                0
            }
        };
        let (peer, shared, noise) = (&self.peer, &self.shared, &mut self.noise);
        let mut take = |line: Line<'_>| match line {
            Line::Whole(line) => match message::read(line) {
                Some(messages) => {
                    for answer in messages.into_iter().filter_map(|one| peer.receive(one)) {
                        // A server that asks and does not read gets no answer.
                        let _ = shared.send(answer);
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
        };
        match length {
            0 => self.incoming.end(&mut take),
            length => self.incoming.push(&self.buffer[..length], &mut take),
        }
    }

    /// Closes its input, then asks its group to terminate, then kills it.
    fn end(&mut self, haste: StopMode) -> io::Result<()> {
        self.stdin = None;
        let grace = match haste {
            StopMode::Gentle => STOP_GRACE,
            StopMode::AtOnce => HASTY_GRACE,
        };
        if !self.exits_within(grace)? {
            self.group.signal(Signal::TERM);
            if !self.exits_within(grace)? {
                self.group.signal(Signal::KILL);
                if !self.exits_within(STOP_GRACE)? {
                    self.group.give_up();
                    return Ok(());
                }
            }
        }
        self.reap().map(drop)
    }

    fn exits_within(&mut self, grace: Duration) -> io::Result<bool> {
        let until = Instant::now() + grace;
        loop {
            if self.group.has_exited()? {
                return Ok(true);
            }
            // Without a pidfd the exit wakes nobody.
            let soon = match self.group.exit() {
                Some(_) => until,
                None => until.min(Instant::now() + EXIT_INTERVAL / 10),
            };
            if !self.step(Some(soon))? && Instant::now() >= until {
                return self.group.has_exited();
            }
        }
    }

    /// Kills what it left running, while its group's id is still taken.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.group.signal(Signal::KILL);
        self.group.reap()
    }
}

impl Drop for Program {
    /// Reached alive only when its thread could not be started or panicked.
    fn drop(&mut self) {
        self.group.kill();
        self.peer.close("it is gone");
    }
}

/// How a program ended, with its last words.
fn exit_reason(status: ExitStatus, last_words: &str) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    };
    match last_words {
        "" => how,
        words => format!("{how}: {words}"),
    }
}
