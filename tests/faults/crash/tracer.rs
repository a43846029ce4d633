//! strace: notes the system calls of a process, and makes one of them kill it or
//! fail.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use super::super::within;
use support::MAX_WAIT;
use support::home::{TemporaryDirectory, make_people};
use support::program::{Program, ended, is_there, send_signal, skipped};

/// The system calls after which the world or the process's view of it differs.
/// Left out are those that only its own threads and memory notice (`futex`,
/// `mmap`, clocks). A `?` lets strace pass over what a machine does not have.
pub const CALLS: &str = "?read,?pread64,?readv,?recvfrom,?recvmsg,?write,?pwrite64,?writev,\
     ?pwritev,?sendto,?sendmsg,?open,?openat,?close,?fsync,?fdatasync,?sync_file_range,\
     ?ftruncate,?fallocate,?rename,?renameat,?renameat2,?unlink,?unlinkat,?rmdir,?mkdir,\
     ?mkdirat,?link,?linkat,?symlink,?chmod,?fchmod,?fchmodat,?fchown,?utimensat,?fcntl,?flock,\
     ?socket,?bind,?listen,?connect,?accept4,?shutdown,?poll,?ppoll,?pipe2,?eventfd2,?clone,\
     ?clone3,?vfork,?fork,?execve,?wait4,?waitid,?kill,?pidfd_send_signal,?getdents64,\
     ?copy_file_range,?sendfile,?setsockopt,?statx,?newfstatat,?unshare,?prctl";

/// Where a process can be hit: at the so-manieth call of this name that a thread
/// makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    pub thread: String,
    pub call: String,
    pub number: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.thread, self.call, self.number)
    }
}

/// A call as it was noted.
#[derive(Clone, Debug)]
pub struct Event {
    pub point: Point,
    /// Its arguments as strace prints them, with the files behind the numbers.
    pub arguments: String,
    /// Whether its thread begins within the life, so that strace follows it there.
    pub is_followed: bool,
}

/// Whether strace is installed and may trace a server, which is not dumpable; says
/// that the test is skipped otherwise.
pub fn can_trace() -> bool {
    if !is_there("strace") {
        return false;
    }
    let folder = TemporaryDirectory::new();
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let attached = Tracer::attach(&[program.id()], &["-e", "trace=none"], None).is_some();
    program.kill();
    if !attached {
        skipped("strace cannot attach to the server here: perhaps only root may");
    }
    attached
}

/// A strace that is attached to some threads; it lets go when dropped.
pub struct Tracer(Child);

impl Tracer {
    /// Attaches to these threads, and to them alone; none when one has gone or
    /// tracing is forbidden.
    pub fn attach(threads: &[u32], arguments: &[&str], log: Option<&Path>) -> Option<Tracer> {
        let mut command = Command::new("strace");
        command.args(arguments);
        command.arg("-o").arg(log.unwrap_or(Path::new("/dev/null")));
        for thread in threads {
            command.args(["-p", &thread.to_string()]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let (sender, attached) = mpsc::channel();
        // Reads all of it: what else it says must not fill the pipe.
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                if line.contains(" attached") {
                    let _ = sender.send(());
                }
            }
        });
        let tracer = Tracer(child);
        let all = (threads.iter()).all(|_| attached.recv_timeout(MAX_WAIT).is_ok());
        all.then_some(tracer)
    }

    /// Lets the threads go on without it.
    pub fn detach(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            send_signal(self.0.id(), "INT");
        }
        if ended(&mut self.0).is_none() {
            // The system lets the threads go on.
            let _ = self.0.kill();
            ended(&mut self.0);
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end();
    }
}

/// The threads of a process, by their names without what differs from run to run.
pub fn threads_of(process: u32) -> Vec<(u32, String)> {
    let mut threads = Vec::new();
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else {
        return threads;
    };
    for entry in entries.filter_map(Result::ok) {
        let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        threads.push((number, plain(name.trim())));
    }
    threads.sort();
    threads
}

/// A thread's name without its port.
fn plain(name: &str) -> String {
    match name {
        "hearth" => "main".to_owned(),
        _ if name.starts_with("accept-") => "accept".to_owned(),
        _ => name.to_owned(),
    }
}

/// Reads what `strace -Y` noted: the calls that were begun, each with its place
/// among those of its name and thread.
pub fn read_log(log: &Path) -> Vec<Event> {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    let mut counts = HashMap::new();
    let mut events = Vec::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once("> ") else {
            continue;
        };
        let Some((number, name)) = thread.split_once('<') else {
            continue;
        };
        let call = call.trim_start();
        let Some((call, arguments)) = call.split_once('(') else {
            continue;
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !call.chars().all(is_name) || call == "restart_syscall" {
            continue;
        }
        let count = counts
            .entry((number.to_owned(), call.to_owned()))
            .or_insert(0);
        *count += 1;
        events.push(Event {
            point: Point {
                thread: plain(name),
                call: call.to_owned(),
                number: *count,
            },
            arguments: arguments.to_owned(),
            is_followed: false,
        });
    }
    events
}

/// Makes the strace that writes this log, and is no child of ours, let go.
pub fn detach(log: &Path) {
    let log = log.to_str().unwrap();
    within(MAX_WAIT, "strace has ended", || {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let strace = processes.filter_map(|process| {
            let line = fs::read(process.path().join("cmdline")).ok()?;
            let is_it = line.starts_with(b"strace") && String::from_utf8_lossy(&line).contains(log);
            let number = process.file_name().to_str()?.parse().ok()?;
            is_it.then_some(number)
        });
        // It may have ended meanwhile.
        let pid = strace.last().and_then(rustix::process::Pid::from_raw);
        pid.map_or(Some(()), |pid| {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            None
        })
    });
}

/// The calls at which `strace -f` can hit the thread that is meant: it counts for
/// each thread, and hits the first that comes so far. Also how many others there
/// are.
pub fn reachable(all: Vec<Event>) -> (Vec<Event>, usize) {
    let mut known = HashSet::new();
    let (events, others): (Vec<Event>, Vec<Event>) = all.into_iter().partition(|event| {
        // The first `execve` is the start of the program itself.
        let Point { call, number, .. } = &event.point;
        call != "execve" && known.insert((call.clone(), *number))
    });
    (events, others.len())
}
