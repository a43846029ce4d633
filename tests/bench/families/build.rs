//! What a clean release build takes: people build on a Raspberry Pi.

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::home::directory_on_disk;
use crate::table::{Figure, Table};
use support::process;

/// How often the compilers' memory is looked at. The system keeps each one's
/// peak, so that only what it takes in its last moments can be missed.
const LOOK: Duration = Duration::from_millis(50);

pub fn measure(table: &mut Table) {
    let folder = directory_on_disk();
    let others = group_members();
    let before = process::children_cpu_seconds();
    let began = Instant::now();
    let mut cargo = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
        ])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .arg("--target-dir")
        .arg(folder.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    let status = loop {
        if let Some(status) = cargo.try_wait().unwrap() {
            break status;
        }
        peak = group_members()
            .difference(&others)
            .copied()
            .filter_map(|process| process::status(process, "VmHWM"))
            .fold(peak, u64::max);
        std::thread::sleep(LOOK);
    };
    assert!(status.success(), "the build failed: {status}");
    let cpu = process::children_cpu_seconds() - before;
    let how = format!("1 run, {:.0} s of wall time", began.elapsed().as_secs_f64());
    table.add(
        Figure::new("processor time", cpu, "s")
            .at_most(200.0)
            .how(how),
    );
    table.add(
        Figure::new("peak memory of one compiler", peak as f64 / 1024.0, "MiB")
            .at_most(1024.0)
            .how("1 run"),
    );
}

/// The processes of our group: cargo and all that it starts are among them, and
/// an interrupt from the terminal ends them with us.
fn group_members() -> HashSet<u32> {
    // Field 5 of /proc/PID/stat.
    let group = |process: &str| Some(process::stat(process)?.swap_remove(2));
    let ours = group("self");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process: &u32| group(&process.to_string()) == ours)
        .collect()
}
