//! Nothing that was started outlives this process, however it ends.
//!
//! ```text
//! this process --- pipe ---> guard: the same program, in a process of its own
//!      | starts programs, with a mark in their environment
//!      v
//!   program -> its children -> daemons that left its group and its session
//! ```
//!
//! The guard reads from the pipe which process groups there are. When the pipe ends, so
//! has this process, even if it was killed. Then the guard ends all that belong to these
//! groups, bear the mark, or descend from one that does: TERM, and KILL a second later.
//! What escapes is a process that has left its group, its environment and its parents.
//!
//! The guard is started with the first program. Where that fails, programs run all the
//! same.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use base::secret::{base32_lower, random_bytes};
use base::sync::lock;

/// The variable with the mark.
const MARK: &str = "HEARTH_STARTED_BY";
/// The argument that makes this program a guard.
const ARGUMENT: &str = "__guard";
const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long programs may take to end after TERM.
const GRACE: Duration = Duration::from_secs(1);
/// How long the guard goes on ending them.
const LIMIT: Duration = Duration::from_secs(20);
/// Pause between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(20);

/// That of this process, if it has one.
static GUARD: OnceLock<Guard> = OnceLock::new();

/// Ends what this process started when it has ended.
pub(super) struct Guard {
    mark: String,
    helper: Mutex<Option<Helper>>,
}

struct Helper {
    process: Child,
    pipe: ChildStdin,
}

/// From now on, nothing that this process starts outlives it. For the program `hearth`
/// alone, because the guard is this program again.
pub fn enable_guard() {
    let _ = GUARD.set(Guard {
        mark: base32_lower(&random_bytes::<10>()),
        helper: Mutex::default(),
    });
}

/// Whether the command line asks for a guard, which has then done its work.
pub fn was_guard(mut arguments: impl Iterator<Item = OsString>) -> bool {
    let is_guard = arguments.next().is_some_and(|first| first == ARGUMENT);
    if is_guard && let Some(mark) = arguments.next() {
        let mark = format!("{MARK}={}", mark.display());
        let mut groups = BTreeSet::new();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match line.parse::<i32>() {
                Ok(group) if group < 0 => groups.remove(&-group),
                Ok(group) => groups.insert(group),
                Err(_) => false,
            };
        }
        end(mark.as_bytes(), &groups);
    }
    is_guard
}

/// The guard of this process.
pub(super) fn guard() -> Option<&'static Guard> {
    GUARD.get()
}

impl Guard {
    /// Marks a program that is about to start.
    pub(super) fn mark(&self, command: &mut Command) {
        let mut helper = lock(&self.helper);
        let is_running = |helper: &mut Helper| matches!(helper.process.try_wait(), Ok(None));
        if !helper.as_mut().is_some_and(is_running) {
            *helper = self
                .start()
                .inspect_err(|error| {
                    log::warn!("programs may outlive a server that is killed: {error}");
                })
                .ok();
        }
        command.env(MARK, &self.mark);
    }

    fn start(&self) -> io::Result<Helper> {
        let mut process = Command::new(THIS_PROGRAM)
            .arg0("hearth-guard")
            .args([ARGUMENT, &self.mark])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A terminal's Ctrl-C is not for it.
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Helper { process, pipe })
    }

    /// Has the guard know that a group was started.
    pub(super) fn add(&self, group: Pid) {
        self.tell(group.as_raw_nonzero().get());
    }

    /// Has the guard know that a group has ended, before its number is another's.
    pub(super) fn remove(&self, group: Pid) {
        self.tell(-group.as_raw_nonzero().get());
    }

    fn tell(&self, group: i32) {
        if let Some(helper) = &mut *lock(&self.helper) {
            // It reads at once, or is gone: marked programs are found without this.
            let _ = helper.pipe.write_all(format!("{group}\n").as_bytes());
        }
    }
}

/// A process as the system shows it.
struct Process {
    parent: i32,
    group: i32,
    /// When it was started; with its id, it is the only one.
    start: u64,
    is_marked: bool,
}

/// Ends all processes of these groups or with this mark, and their descendants.
fn end(mark: &[u8], groups: &BTreeSet<i32>) {
    let began = Instant::now();
    let mut ours: BTreeMap<i32, u64> = BTreeMap::new();
    while began.elapsed() < LIMIT {
        let processes = processes(mark);
        let is_there =
            |id: &i32, start: &u64| processes.get(id).is_some_and(|it| it.start == *start);
        ours.retain(|id, start| is_there(id, start));
        loop {
            let count = ours.len();
            for (id, process) in &processes {
                let is_ours = process.is_marked
                    || groups.contains(&process.group)
                    || ours.contains_key(&process.group)
                    || ours.contains_key(&process.parent);
                if is_ours && ours.insert(*id, process.start).is_none() {
                    signal(*id, Signal::TERM);
                }
            }
            if ours.len() == count {
                break;
            }
        }
        if ours.is_empty() {
            return;
        }
        if began.elapsed() > GRACE {
            ours.keys().for_each(|id| signal(*id, Signal::KILL));
        }
        sleep(PAUSE);
    }
}

fn signal(id: i32, signal: Signal) {
    // It may have ended just now.
    let _ = Pid::from_raw(id).map(|id| kill_process(id, signal));
}

/// All processes that have not ended.
fn processes(mark: &[u8]) -> BTreeMap<i32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, process(id, mark)?)))
        .collect()
}

/// A process by its id (proc_pid_stat(5), proc_pid_environ(5)).
fn process(id: i32, mark: &[u8]) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Its name, in parentheses, may hold anything.
    let mut fields = status.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let start = fields.nth(16)?.parse().ok()?;
    // Those of other users cannot be read, nor ended.
    let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let is_marked = variables.split(|&byte| byte == 0).any(|one| one == mark);
    (state != "Z").then_some(Process {
        parent,
        group,
        start,
        is_marked,
    })
}
