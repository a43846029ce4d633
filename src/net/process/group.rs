//! A program in its own process group, which is killed with all its children.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use super::guard::guard;
use super::sandbox::Sandbox;

/// A program and the processes that it starts. Dropping it kills them, unless
/// it was reaped or given up.
pub(super) struct ProcessGroup {
    child: Child,
    /// Its process id, which is also that of its group.
    leader: Pid,
    sandbox: Option<Sandbox>,
    /// Readable once the program has exited. None after [`ProcessGroup::has_exited`]
    /// has said so, and without pidfds (Linux before 5.3, some sandboxes).
    pub(super) exit: Option<OwnedFd>,
    /// Whether nothing is left to do: it was reaped, or given up.
    is_done: bool,
}

impl ProcessGroup {
    /// Starts `command`, within `sandbox` if there is one. The caller takes the
    /// child's pipes.
    pub(super) fn start(
        command: &mut Command,
        sandbox: Option<&Sandbox>,
    ) -> io::Result<ProcessGroup> {
        command.process_group(0);
        if let Some(guard) = guard() {
            guard.mark(command);
        }
        let child = match sandbox {
            Some(sandbox) => sandbox.spawn(command)?,
            None => command.spawn()?,
        };
        let leader = Pid::from_child(&child);
        if let Some(guard) = guard() {
            guard.add(leader);
        }
        Ok(ProcessGroup {
            child,
            leader,
            sandbox: sandbox.cloned(),
            exit: pidfd_open(leader, PidfdFlags::empty()).ok(),
            is_done: false,
        })
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether the program has exited. It stays a zombie until
    /// [`ProcessGroup::reap`], so that no other process can take its id, which
    /// is that of its group.
    pub(super) fn has_exited(&mut self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(Some(_)) => {
                // It would wake every wait for the rest of the output.
                self.exit = None;
                Ok(true)
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to the program and its children.
    pub(super) fn signal(&self, signal: Signal) {
        // Fails only when no process of the group is left.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Takes the status of a program that has exited, and leaves its children
    /// alone.
    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        // From now on, its number may be another's.
        if let Some(guard) = guard() {
            guard.remove(self.leader);
        }
        let status = self.child.wait()?;
        self.is_done = true;
        Ok(status)
    }

    /// Stops waiting for a program that was killed and does not exit.
    pub(super) fn give_up(&mut self) {
        self.is_done = true;
        log::warn!(
            "process {} was killed and is still there: it hangs inside the kernel",
            self.leader.as_raw_nonzero()
        );
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.is_done {
            self.signal(Signal::KILL);
            let _ = self.reap();
        }
        if let Some(sandbox) = &self.sandbox {
            sandbox.restore_mode();
        }
    }
}
