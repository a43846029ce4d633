//! The server under callgrind, which notes the functions that run.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::support::eventually;
use super::support::home::Folder;
use super::support::program::Program;

/// Without work for so long, a start is over.
const PAUSE: Duration = Duration::from_secs(2);

/// The server that runs, and where its counts go.
pub struct Recording {
    program: Program,
    counts: PathBuf,
}

impl Recording {
    /// Starts it on a data directory.
    pub fn start(program: &str, folder: &Folder) -> Recording {
        let counts = folder.path().join("counts");
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--demangle=no", "--quiet"])
            .arg(format!("--callgrind-out-file={}", counts.display()))
            .args([program, "serve", "--bind", "127.0.0.1", "--port", "0"])
            .env("HEARTH_DATA_DIR", folder.path());
        Recording {
            program: Program::launch(command, folder.path()),
            counts,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.program.address
    }

    /// The functions that ran since it was last asked, once it has nothing more
    /// to do.
    pub fn so_far(&mut self) -> BTreeSet<String> {
        let mut before = None;
        eventually("a pause", || {
            let now = processor_time(self.program.id());
            let pauses = before.replace(now.clone()) == Some(now);
            thread::park_timeout(PAUSE);
            pauses.then_some(())
        });
        let asked = Command::new("callgrind_control")
            .args(["--dump", &self.program.id().to_string()])
            .output()
            .expect("callgrind_control comes with valgrind");
        assert!(asked.status.success(), "{asked:?}");
        let dumped = self.counts.with_extension("1");
        let text = eventually("the counts", || {
            let text = fs::read_to_string(&dumped).ok()?;
            text.contains("\ntotals:").then_some(text)
        });
        functions(&text)
    }

    /// Stops it; the functions that ran since it was last asked.
    pub fn end(self) -> BTreeSet<String> {
        assert_eq!(self.program.signal("TERM"), Some(0));
        functions(&fs::read_to_string(self.counts).unwrap())
    }
}

/// How long a process has used the processor: two fields of /proc/PID/stat.
fn processor_time(process: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name before the last parenthesis may hold anything.
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    fields.skip(11).take(2).map(str::to_owned).collect()
}

/// The functions that a file of counts names, those of libraries among them. It
/// writes a name once, with a number that stands for it from there on:
/// `fn=(7) main`, `fn=(7)`; one that is only called begins with a `c`.
fn functions(counts: &str) -> BTreeSet<String> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut found = BTreeSet::new();
    for line in counts.lines() {
        let called = line.strip_prefix('c');
        let Some(entry) = called.unwrap_or(line).strip_prefix("fn=(") else {
            continue;
        };
        let (number, name) = entry.split_once(')').expect("a number in parentheses");
        if !name.is_empty() {
            names.insert(number, name.trim());
        }
        if called.is_none() {
            // A function that calls itself is counted once more, as `name'2`.
            let name = names[number].split('\'').next();
            found.insert(name.expect("a split gives something").to_owned());
        }
    }
    found
}
