//! A program in a process group of its own, which ends with all its children.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

/// A program and those that it starts. Dropping it kills them, unless it was
/// reaped or given up.
pub struct ProcessGroup {
    child: Child,
    /// Its process id, which is also that of its group.
    leader: Pid,
    /// Readable once it has exited; absent on old kernels (Linux before 5.3).
    exit: Option<OwnedFd>,
    /// Whether nothing more is to be done about it: it was reaped, or given up.
    is_over: bool,
}

/// Our ends of a program's pipes, none of which waits.
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
    /// What it reports.
    pub stderr: ChildStderr,
}

impl ProcessGroup {
    /// Starts `command` with a pipe for each of its standard streams.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<(ProcessGroup, Pipes)> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let piped = "the three pipes were asked for";
        let pipes = Pipes {
            stdin: child.stdin.take().expect(piped),
            stdout: child.stdout.take().expect(piped),
            stderr: child.stderr.take().expect(piped),
        };
        let leader = Pid::from_child(&child);
        let group = ProcessGroup {
            child,
            leader,
            exit: pidfd_open(leader, PidfdFlags::empty()).ok(),
            is_over: false,
        };
        for pipe in [
            pipes.stdin.as_fd(),
            pipes.stdout.as_fd(),
            pipes.stderr.as_fd(),
        ] {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok((group, pipes))
    }

    /// What becomes readable when the program exits, and stays so. Without it
    /// the exit has to be looked for.
    pub fn exit(&self) -> Option<&OwnedFd> {
        self.exit.as_ref()
    }

    /// Lets an exit that is known wake nobody any more.
    pub fn forget_exit(&mut self) {
        self.exit = None;
    }

    /// Whether the program has exited. It stays a zombie until
    /// [`ProcessGroup::reap`], so that its id, and with it that of its group,
    /// cannot be taken by another.
    pub fn has_exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(status) => Ok(status.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to the program and its children.
    pub fn signal(&self, signal: Signal) {
        // Fails only when no process of the group is left.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Takes the status of a program that has exited. Its children are left
    /// alone.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.is_over = true;
        Ok(status)
    }

    /// Kills what is left of it, and reaps it.
    pub fn kill(&mut self) {
        if !self.is_over {
            self.is_over = true;
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }

    /// Leaves a program alone that was killed and does not go, so that nobody
    /// waits for it.
    pub fn give_up(&mut self) {
        self.is_over = true;
        log::warn!(
            "process {} was killed and is still there: it hangs inside the kernel",
            self.leader.as_raw_nonzero()
        );
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
