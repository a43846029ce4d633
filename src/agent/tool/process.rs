//! Runs a program to its end, whatever it does: one loop on the calling thread
//! waits for its pipes, its exit, the deadline and cancellation at once.
//!
//! No thread is started and nothing is waited for without a limit, so that a
//! program that fills its pipes, closes them, ignores signals or leaves
//! children behind that keep the pipes open can neither block the caller nor
//! outlive its time.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Signal;

use super::output::{Captured, Tail};
use net::cancel::Cancel;
use net::pipe::{drain, is_transient, readable, sleep, writable};
use net::process_group::ProcessGroup;

/// How long a program that is told to stop may take before it is killed.
const STOP_GRACE: Duration = Duration::from_millis(500);
/// How long a killed program is waited for. Only one that hangs inside the
/// kernel (a dead network drive) takes longer than a moment.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long output is still read after the program's own exit, for children
/// of it that are just finishing.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// How often the exit is looked for on kernels without pidfd (Linux before 5.3).
const EXIT_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes read at a time; a pipe holds 64 KiB.
const CHUNK: usize = 16 * 1024;
/// Bytes kept of the end of the error output.
const STDERR_BYTES: usize = 4 * 1024;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// Its time was up; its process group was killed.
    TimedOut,
    /// Somebody stopped the turn; its process group was killed.
    Cancelled,
}

/// What came of a run.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    /// The beginning of its standard output.
    pub(super) stdout: Captured,
    /// The end of its error output.
    pub(super) stderr: Tail,
}

/// What a run gets and what it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'a> {
    /// What it reads from its standard input.
    pub(super) input: &'a [u8],
    /// Most bytes that are kept of its standard output.
    pub(super) output_bytes: usize,
    /// When it must be over.
    pub(super) deadline: Instant,
    /// Whether children that it leaves running when it exits by itself are left
    /// alone. When it is stopped, its whole group is, children and all.
    pub(super) children_may_stay: bool,
}

/// Runs `command` in a process group of its own.
///
/// # Errors
/// It cannot be started, or the system refuses to wait for it.
pub(super) fn run(command: &mut Command, plan: Plan<'_>, cancel: &Cancel) -> io::Result<Finished> {
    let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let mut program = Program::start(command, plan)?;
    let waker = Arc::clone(&wake);
    let hook = move || {
        // Can only fail when the counter is full, and then it wakes as well.
        let _ = rustix::io::write(&*waker, &1u64.to_ne_bytes());
    };
    cancel.guard(hook, || program.supervise(plan.deadline, cancel, &wake))
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// That the program exits.
    Exit,
    /// That all its output is read.
    EndOfOutput,
}

/// Why waiting was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Reached,
    TimedOut,
    Cancelled,
}

/// A running program and our ends of its pipes.
struct Program<'a> {
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffer: Box<[u8]>,
    captured: Captured,
    tail: Tail,
    children_may_stay: bool,
}

impl<'a> Program<'a> {
    fn start(command: &mut Command, plan: Plan<'a>) -> io::Result<Self> {
        let (group, pipes) = ProcessGroup::start(command)?;
        Ok(Program {
            group,
            stdin: Some(pipes.stdin),
            input: plan.input,
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            captured: Captured::new(plan.output_bytes),
            tail: Tail::new(STDERR_BYTES),
            children_may_stay: plan.children_may_stay,
        })
    }

    fn supervise(
        &mut self,
        deadline: Instant,
        cancel: &Cancel,
        wake: &OwnedFd,
    ) -> io::Result<Finished> {
        let end = match self.wait(Goal::Exit, deadline, Some((cancel, wake)))? {
            Waited::Reached => {
                // Not reaped yet, it keeps its group's id from being another's.
                if !self.children_may_stay {
                    self.group.signal(Signal::KILL);
                }
                self.wait(Goal::EndOfOutput, Instant::now() + OUTPUT_GRACE, None)?;
                End::Exited(self.group.reap()?)
            }
            Waited::TimedOut => {
                self.stop()?;
                End::TimedOut
            }
            Waited::Cancelled => {
                self.stop()?;
                End::Cancelled
            }
        };
        Ok(Finished {
            end,
            stdout: std::mem::replace(&mut self.captured, Captured::new(0)),
            stderr: std::mem::replace(&mut self.tail, Tail::new(0)),
        })
    }

    /// Moves input and output until the goal is reached, the time is up, or,
    /// where that is watched, the turn is cancelled.
    fn wait(
        &mut self,
        goal: Goal,
        until: Instant,
        cancel: Option<(&Cancel, &OwnedFd)>,
    ) -> io::Result<Waited> {
        loop {
            let reached = match goal {
                Goal::Exit => self.group.has_exited()?,
                Goal::EndOfOutput => self.stdout.is_none() && self.stderr.is_none(),
            };
            if reached {
                return Ok(Waited::Reached);
            }
            if cancel.is_some_and(|(cancel, _)| cancel.is_cancelled()) {
                return Ok(Waited::Cancelled);
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Ok(Waited::TimedOut);
            };
            self.sleep(goal, left, cancel.map(|(_, wake)| wake))?;
            self.feed();
            let buffer = &mut self.buffer;
            drain(&mut self.stdout, buffer, |bytes| self.captured.push(bytes));
            drain(&mut self.stderr, buffer, |bytes| self.tail.push(bytes));
        }
    }

    /// Sleeps until something can be done, at most `left`.
    fn sleep(&self, goal: Goal, left: Duration, wake: Option<&OwnedFd>) -> io::Result<()> {
        let exit = self.group.exit().filter(|_| goal == Goal::Exit);
        let left = match goal {
            Goal::Exit if exit.is_none() => left.min(EXIT_INTERVAL),
            _ => left,
        };
        let watched = [
            writable(self.stdin.as_ref()),
            readable(self.stdout.as_ref()),
            readable(self.stderr.as_ref()),
            readable(exit),
            readable(wake),
        ];
        sleep(watched, Some(left))
    }

    /// Writes what the pipe takes, and closes it after the last byte or when
    /// the program does not want more.
    fn feed(&mut self) {
        if let Some(pipe) = &mut self.stdin {
            match pipe.write(self.input) {
                Ok(written) if written < self.input.len() => self.input = &self.input[written..],
                Err(error) if is_transient(&error) => {}
                Ok(_) | Err(_) => self.stdin = None,
            }
        }
    }

    /// Asks the whole group to stop, then makes it. What the program still
    /// writes is read, so that it is not held up on its way out.
    fn stop(&mut self) -> io::Result<()> {
        self.group.signal(Signal::TERM);
        self.wait(Goal::Exit, Instant::now() + STOP_GRACE, None)?;
        self.group.signal(Signal::KILL);
        match self.wait(Goal::Exit, Instant::now() + KILL_GRACE, None)? {
            Waited::Reached => self.group.reap().map(drop),
            Waited::TimedOut | Waited::Cancelled => {
                self.group.give_up();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Old kernels have no pidfd: the exit is then found without one.
    #[test]
    fn an_exit_is_noticed_without_a_pidfd() {
        for (script, deadline, code) in [
            ("exec >&- 2>&-; exit 7", Duration::from_secs(10), Some(7)),
            ("echo x; exit 0", Duration::from_secs(10), Some(0)),
            ("exec sleep 60", Duration::from_millis(50), None),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let plan = Plan {
                input: b"{}",
                output_bytes: 10,
                deadline: Instant::now() + deadline,
                children_may_stay: true,
            };
            let mut program = Program::start(&mut command, plan).unwrap();
            program.group.forget_exit();
            let wake = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let finished = program
                .supervise(plan.deadline, &Cancel::default(), &wake)
                .unwrap();
            match (finished.end, code) {
                (End::Exited(status), code) => assert_eq!(status.code(), code, "{script}"),
                (end, code) => assert_eq!((end, code), (End::TimedOut, None), "{script}"),
            }
        }
    }
}
