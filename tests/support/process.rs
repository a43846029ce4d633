//! What the system says about a process (proc(5)).

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Clock ticks per second in /proc: 100 on every Linux that people run.
const TICKS: f64 = 100.0;

/// A number of /proc/PID/status, such as `Threads`, or `VmRSS` in KiB; none when
/// the process has gone.
pub fn status(process: u32, field: &str) -> Option<u64> {
    number(process, "status", field)
}

/// What a process has written to in memory, in KiB: what the system cannot take back
/// while it runs. `Private_Dirty` would count the program itself, too, until a file
/// that was just built is on the disk. None when the process has gone, and of Hearth,
/// which lets only root look into it, for anybody else.
pub fn private_kib(process: u32) -> Option<u64> {
    number(process, "smaps_rollup", "Anonymous")
}

/// The number in a line `FIELD: NUMBER` of a file in /proc/PID.
fn number(process: u32, file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Numbered fields of /proc/PID/stat, from field 3 (`state`) on.
fn stat(process: &str) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Processor seconds, user and system, that a process has used.
pub fn cpu_seconds(process: u32) -> f64 {
    let fields = stat(&process.to_string()).expect("the process runs");
    let ticks = |field: usize| {
        fields[field - 3]
            .parse::<f64>()
            .expect("ticks are a number")
    };
    (ticks(14) + ticks(15)) / TICKS
}

/// Bytes that a process has had written to the disk: whole pages of files that
/// it changed (`write_bytes` of /proc/PID/io). The file system's own journal
/// comes on top. None where the kernel does not count them, and of Hearth for
/// anybody but root.
pub fn written_bytes(process: u32) -> Option<f64> {
    let io = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let value = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?;
    value.parse().ok()
}

/// Lets this process, and those that it starts, open as many files as they may:
/// thousands of connections need as many descriptors.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}
