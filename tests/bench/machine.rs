//! What this machine is, and what its disk takes: the floor of all that is durable.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::home::directory_on_disk;
use crate::statistics::Latencies;

/// How long the disk is looked at for the machine's own line.
const LOOK: Duration = Duration::from_millis(1500);
/// How long it is looked at for the floor beside a run of ours.
const FLOOR: Duration = Duration::from_millis(500);

/// The machine that everything here runs on.
pub struct Machine {
    cores: usize,
    processor: String,
    kernel: String,
    load: String,
    /// `fdatasync` after 4 KiB.
    sync: Latencies,
    /// One SQLite commit after another: WAL, `synchronous = FULL`.
    commit: Latencies,
}

impl Machine {
    pub fn look() -> Machine {
        let load = read("/proc/loadavg");
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(),
            kernel: read("/proc/sys/kernel/osrelease"),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
            sync: sync(LOOK),
            commit: commits_for(LOOK),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} cores ({}), Linux {}, load {} before the start",
            self.cores, self.processor, self.kernel, self.load
        )?;
        write!(
            f,
            "disk: fdatasync of 4 KiB p50 {:.2} ms, p99 {:.2} ms; SQLite commit (WAL, FULL) p50 {:.2} ms, p99 {:.2} ms, {:.0}/s one by one",
            self.sync.p50(),
            self.sync.p99(),
            self.commit.p50(),
            self.commit.p99(),
            self.commit.per_second()
        )
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn processor() -> String {
    read("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or(std::env::consts::ARCH.to_owned(), |(_, name)| {
            name.to_owned()
        })
}

fn repeat(time: Duration, mut work: impl FnMut()) -> Latencies {
    let end = Instant::now() + time;
    let mut durations = Vec::new();
    loop {
        let began = Instant::now();
        if began >= end {
            return Latencies::new(durations);
        }
        work();
        durations.push(began.elapsed());
    }
}

fn sync(time: Duration) -> Latencies {
    let folder = directory_on_disk();
    let mut file = File::create(folder.path().join("sync")).unwrap();
    repeat(time, || {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
    })
}

/// One SQLite commit after another, as now: what a shared disk takes changes
/// from minute to minute, so that each run of ours has its own floor.
pub fn commits() -> Latencies {
    commits_for(FLOOR)
}

fn commits_for(time: Duration) -> Latencies {
    let folder = directory_on_disk();
    let connection = Connection::open(folder.path().join("commit.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE row (id INTEGER PRIMARY KEY, content TEXT NOT NULL);",
        )
        .unwrap();
    let mut insert = connection
        .prepare("INSERT INTO row (content) VALUES (?)")
        .unwrap();
    let content = "x".repeat(200);
    repeat(time, || {
        insert.execute([&content]).unwrap();
    })
}
