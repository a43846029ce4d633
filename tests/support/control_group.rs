//! A control group: a ceiling for memory and one processor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A control group, removed when dropped.
pub struct ControlGroup {
    /// One folder, or one for each controller where those are apart (cgroup v1).
    folders: Vec<PathBuf>,
    most_used: PathBuf,
    /// Where the kernel counts what it killed for want of memory.
    killed: PathBuf,
}

impl ControlGroup {
    /// A group with this much memory and one processor, where this user may make one.
    pub fn new(memory: u64) -> Option<ControlGroup> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hearth-test-{}-{number}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let memory = memory.to_string();
        let group = if root.join("cgroup.controllers").exists() {
            let folder = root.join(name);
            let group = ControlGroup {
                folders: vec![folder.clone()],
                most_used: folder.join("memory.peak"),
                killed: folder.join("memory.events"),
            };
            fs::create_dir(&folder).ok()?;
            fs::write(folder.join("memory.max"), &memory).ok()?;
            let _ = fs::write(folder.join("memory.swap.max"), "0");
            fs::write(folder.join("cpu.max"), "100000 100000").ok()?;
            group
        } else {
            let (space, time) = (
                root.join("memory").join(&name),
                root.join("cpu").join(&name),
            );
            let group = ControlGroup {
                folders: vec![space.clone(), time.clone()],
                most_used: space.join("memory.max_usage_in_bytes"),
                killed: space.join("memory.oom_control"),
            };
            fs::create_dir(&space).ok()?;
            fs::write(space.join("memory.limit_in_bytes"), &memory).ok()?;
            let _ = fs::write(space.join("memory.memsw.limit_in_bytes"), &memory);
            fs::create_dir(&time).ok()?;
            fs::write(time.join("cpu.cfs_period_us"), "100000").ok()?;
            fs::write(time.join("cpu.cfs_quota_us"), "100000").ok()?;
            group
        };
        Some(group)
    }

    /// A command line that goes into the group before it becomes `hearth`.
    pub fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("/bin/sh");
        let mut script = String::new();
        for folder in &self.folders {
            script.push_str(&format!("echo $$ > {}/cgroup.procs && ", folder.display()));
        }
        wrapped
            .arg("-c")
            .arg(script + "exec \"$0\" \"$@\"")
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        wrapped
    }

    /// The most bytes that it has used, with the kernel's and the page cache.
    pub fn most_used(&self) -> Option<u64> {
        fs::read_to_string(&self.most_used)
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// How many processes the kernel has killed for want of memory, if it counts them.
    pub fn killed(&self) -> Option<u64> {
        let events = fs::read_to_string(&self.killed).ok()?;
        let count = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))?;
        count.trim().parse().ok()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}
