//! Child programs under one supervisor: their pipes, deadline, stop and exit.
//!
//! ```text
//! Process::start  -> its own process group, three pipes, a Control
//! Process::run    -> wait (feed input, take output) until exit, stop or deadline
//!                 -> stop (end of input, TERM, KILL) -> reap
//! Control         -> send, end_input, stop: from any thread
//! ```
//!
//! Everything happens on the thread that calls [`Process::run`], and nothing is
//! waited for without a limit. A program that fills its pipes, closes them,
//! ignores signals or leaves children behind that keep the pipes open can
//! neither block its caller nor outlive its time, nor, with a [guard](enable_guard), the
//! process that started it.

mod group;
mod guard;
mod sandbox;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::wait::{self, Interest, wait_beside};
use base::sync::lock;
use group::ProcessGroup;
pub use guard::{enable_guard, was_guard};
pub use sandbox::{Sandbox, has_landlock, keep_only};

/// Most bytes that may wait to be read by a program.
const INPUT_BYTES: usize = 16 * 1024 * 1024;
/// Bytes read at a time; a pipe holds 64 KiB.
const CHUNK: usize = 16 * 1024;
/// How long a program may take to exit after the end of its input, and then
/// after TERM, when it is stopped gently.
const GENTLE_GRACE: Duration = Duration::from_secs(2);
/// How long it may take after TERM when it is stopped at once.
const SHORT_GRACE: Duration = Duration::from_millis(500);
/// How long a killed program is waited for. Only one that hangs inside the
/// kernel (a dead network drive) takes longer than a moment.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long output is still read after the program's exit, for children of it
/// that are just finishing; and how long an exit is waited for after the end of
/// the output.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// How often the exit is looked for where there are no pidfds.
const EXIT_INTERVAL: Duration = Duration::from_millis(50);

/// Which of its outputs a program wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// How a program is stopped. KILL follows where it does not exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Its input ends; after 2 s comes TERM, and after another 2 s KILL.
    Gentle,
    /// TERM, and KILL after 500 ms.
    AtOnce,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The program exited by itself.
    Exited(ExitStatus),
    /// Its time was up; its process group was killed.
    TimedOut,
    /// [`Control::stop`] was called; its process group was killed.
    Stopped,
    /// It closed its standard output, where that ends the run; its process group
    /// was killed.
    OutputClosed,
}

/// What a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// When it must be over; none where only an exit or a stop ends it.
    pub deadline: Option<Instant>,
    /// Whether the end of its standard output ends it too.
    pub ends_with_output: bool,
    /// Whether children that it leaves running when it exits by itself are left
    /// alone. When it is stopped, its whole group is, children and all.
    pub children_may_stay: bool,
}

/// A started program. Dropping it kills its process group.
pub struct Process {
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The input being written, and how much of it is.
    writing: Vec<u8>,
    written: usize,
    buffer: Box<[u8]>,
    control: Control,
}

/// What other threads may ask of a program: clones are of the same one.
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

struct Shared {
    requests: Mutex<Requests>,
    /// Readable when there is a new request.
    wake: wait::Signal,
}

#[derive(Default)]
struct Requests {
    input: VecDeque<Vec<u8>>,
    input_bytes: usize,
    is_input_over: bool,
    stop: Option<StopMode>,
}

/// A program does not read its input: 16 MiB are waiting already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputFull;

impl fmt::Display for InputFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not read what it is sent")
    }
}

impl std::error::Error for InputFull {}

impl Control {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        lock(&self.shared.requests)
    }

    /// Leaves bytes for the program to read; waits for nothing. They are lost
    /// when it exits or closes its input first.
    ///
    /// # Errors
    /// More than 16 MiB would wait to be read.
    pub fn send(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        let mut requests = self.requests();
        if requests.input_bytes + bytes.len() > INPUT_BYTES {
            return Err(InputFull);
        }
        requests.input_bytes += bytes.len();
        requests.input.push_back(bytes);
        drop(requests);
        self.shared.wake.send();
        Ok(())
    }

    /// Closes the program's input after what was sent.
    pub fn end_input(&self) {
        self.requests().is_input_over = true;
        self.shared.wake.send();
    }

    /// Has the program stopped; [`Process::run`] returns when it is.
    pub fn stop(&self, mode: StopMode) {
        self.requests().stop = Some(mode);
        self.shared.wake.send();
    }
}

impl Process {
    /// Starts `command` in its own process group, with a pipe for each of
    /// its standard streams, and within `sandbox` if there is one.
    ///
    /// # Errors
    /// It cannot be started; the error names the program or, where that is
    /// missing, the directory.
    pub fn start(command: &mut Command, sandbox: Option<&Sandbox>) -> io::Result<Process> {
        let wake = wait::Signal::new()?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group =
            ProcessGroup::start(command, sandbox).map_err(|error| named(command, &error))?;
        let child = group.child();
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Process {
            group,
            stdin,
            stdout,
            stderr,
            writing: Vec::new(),
            written: 0,
            buffer: vec![0; CHUNK].into_boxed_slice(),
            control: Control {
                shared: Arc::new(Shared {
                    requests: Mutex::default(),
                    wake,
                }),
            },
        })
    }

    /// For other threads, and for whatever takes the output.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Serves the program's pipes until it is gone, and hands what it writes to
    /// `take`.
    ///
    /// # Errors
    /// The system refuses to wait for it; it was killed.
    pub fn run(
        mut self,
        limits: Limits,
        take: &mut dyn FnMut(Stream, &[u8]),
    ) -> io::Result<ExitReason> {
        enum Cause {
            Exit,
            Stop(StopMode),
            EndOfOutput,
        }
        let cause = self.wait(limits.deadline, take, |process| {
            Ok(if process.group.has_exited()? {
                Some(Cause::Exit)
            } else if let Some(mode) = process.control.requests().stop {
                Some(Cause::Stop(mode))
            } else {
                let is_closed = limits.ends_with_output && process.stdout.is_none();
                is_closed.then_some(Cause::EndOfOutput)
            })
        })?;
        match cause {
            Some(Cause::EndOfOutput) if !self.exits_within(OUTPUT_GRACE, take)? => {
                self.stop(StopMode::Gentle, take)?;
                Ok(ExitReason::OutputClosed)
            }
            Some(Cause::Exit | Cause::EndOfOutput) => {
                // Not reaped yet, it keeps its group's id from being another's.
                if !limits.children_may_stay {
                    self.group.signal(Signal::KILL);
                }
                self.reap(take).map(ExitReason::Exited)
            }
            Some(Cause::Stop(mode)) => self.stop(mode, take).map(|()| ExitReason::Stopped),
            None => self
                .stop(StopMode::AtOnce, take)
                .map(|()| ExitReason::TimedOut),
        }
    }

    /// Moves input and output until `look` finds something; nothing when it is
    /// later than `until`.
    fn wait<T>(
        &mut self,
        until: Option<Instant>,
        take: &mut dyn FnMut(Stream, &[u8]),
        mut look: impl FnMut(&mut Process) -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        loop {
            // Before it waits: it may have nothing but an end of the input to do.
            self.feed();
            if let Some(found) = look(self)? {
                return Ok(Some(found));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            self.sleep(until)?;
            let buffer = &mut self.buffer;
            drain(&mut self.stdout, buffer, |bytes| {
                take(Stream::Output, bytes)
            });
            drain(&mut self.stderr, buffer, |bytes| take(Stream::Error, bytes));
        }
    }

    /// Sleeps until something can be done, at most until `until`.
    fn sleep(&mut self, until: Option<Instant>) -> io::Result<()> {
        let wake = &self.control.shared.wake;
        let has_input = self.written < self.writing.len();
        let (first, interest) = match self.stdin.as_ref().filter(|_| has_input) {
            Some(pipe) => (pipe.as_fd(), Interest::Write),
            None => (wake.receiver(), Interest::Read),
        };
        let outputs = [
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
            self.group.exit.as_ref().map(AsFd::as_fd),
            Some(wake.receiver()),
        ];
        let outputs: Vec<_> = outputs.into_iter().flatten().collect();
        let look_again = (self.group.exit.is_none()).then(|| Instant::now() + EXIT_INTERVAL);
        let until = until.into_iter().chain(look_again).min();
        wait_beside(first, interest, None, &outputs, until)?;
        wake.clear();
        Ok(())
    }

    /// Writes what the pipe takes, and closes it after the last byte or when
    /// the program does not want more.
    fn feed(&mut self) {
        while let Some(pipe) = &mut self.stdin {
            if self.written == self.writing.len() {
                let mut requests = self.control.requests();
                let Some(next) = requests.input.pop_front() else {
                    if requests.is_input_over {
                        self.stdin = None;
                    }
                    return;
                };
                requests.input_bytes -= next.len();
                (self.writing, self.written) = (next, 0);
                continue;
            }
            match pipe.write(&self.writing[self.written..]) {
                Ok(count) if count > 0 => self.written += count,
                Err(error) if is_transient(&error) => return,
                Ok(_) | Err(_) => self.stdin = None,
            }
        }
    }

    fn exits_within(
        &mut self,
        grace: Duration,
        take: &mut dyn FnMut(Stream, &[u8]),
    ) -> io::Result<bool> {
        let exited = self.wait(Some(Instant::now() + grace), take, |process| {
            Ok(process.group.has_exited()?.then_some(()))
        });
        Ok(exited?.is_some())
    }

    /// Ends the program and its children. What it still writes is read, so that
    /// it is not held up on its way out.
    fn stop(&mut self, mode: StopMode, take: &mut dyn FnMut(Stream, &[u8])) -> io::Result<()> {
        self.stdin = None;
        let is_gentle = mode == StopMode::Gentle;
        if !is_gentle || !self.exits_within(GENTLE_GRACE, take)? {
            self.group.signal(Signal::TERM);
            let grace = if is_gentle { GENTLE_GRACE } else { SHORT_GRACE };
            self.exits_within(grace, take)?;
        }
        // Its children too, while its group's id is still taken.
        self.group.signal(Signal::KILL);
        if self.exits_within(KILL_GRACE, take)? {
            self.reap(take).map(drop)
        } else {
            self.group.give_up();
            Ok(())
        }
    }

    /// Reads the last output of a program that has exited, and takes its status.
    fn reap(&mut self, take: &mut dyn FnMut(Stream, &[u8])) -> io::Result<ExitStatus> {
        self.wait(Some(Instant::now() + OUTPUT_GRACE), take, |process| {
            let is_open = process.stdout.is_some() || process.stderr.is_some();
            Ok((!is_open).then_some(()))
        })?;
        self.group.reap()
    }
}

/// How a program ended: `verb` and its exit code, such as "failed with exit
/// code 3", or the signal that ended it.
pub fn describe_exit(status: ExitStatus, verb: &str) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("{verb} with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => verb.to_owned(),
    }
}

/// The error with what it is about. The system says the same of a missing
/// program and a missing directory.
fn named(command: &Command, error: &io::Error) -> io::Error {
    let message = match command.get_current_dir().filter(|path| !path.is_dir()) {
        Some(directory) => format!("directory {directory:?}: {error}"),
        None => format!("program {:?}: {error}", command.get_program()),
    };
    io::Error::new(error.kind(), message)
}

/// Reads what the pipe has, once, and closes it at its end.
fn drain(pipe: &mut Option<impl Read>, buffer: &mut [u8], mut take: impl FnMut(&[u8])) {
    if let Some(reader) = pipe {
        match reader.read(buffer) {
            Ok(length) if length > 0 => take(&buffer[..length]),
            Err(error) if is_transient(&error) => {}
            Ok(_) | Err(_) => *pipe = None,
        }
    }
}

/// Whether the pipe is only empty or full for now.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
