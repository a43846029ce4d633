//! The fault scenarios on one processor, which busy processes want as well: what
//! depends on who is faster shows here.

use std::process::{Child, Command, Stdio};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::scenarios::{disk, kill, order, power, pressure, receivers};

/// Busy processes beside the test and its server.
const BUSY: usize = 4;
/// Spins, but not beyond the end of the test.
const SPIN: &str = "while kill -0 $PPID; do i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done; done";

/// A process that is always ready to run. Dropping it ends it.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let mut shell = Command::new("sh");
        let quiet = shell.args(["-c", SPIN]).stderr(Stdio::null());
        Busy(quiet.spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Binds this thread to the first processor that it may use; the threads and
/// processes that it starts are bound with it.
fn bind_to_one_processor() {
    let allowed = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|&number| allowed.is_set(number));
    let mut one = CpuSet::new();
    one.set(first.expect("this thread runs on one"));
    sched_setaffinity(None, &one).unwrap();
}

#[test]
#[ignore = "long"]
fn every_scenario_on_a_crowded_processor() {
    bind_to_one_processor();
    let busy: Vec<Busy> = (0..BUSY).map(|_| Busy::start()).collect();
    kill::rounds(20);
    receivers::fail_in_every_way(1);
    order::random_failures(300, 20);
    order::one_key(100);
    pressure::stalled_model(6 * 1024);
    disk::full(2);
    power::cuts(40, 16);
    println!(
        "all of them on one processor with {} busy processes",
        busy.len()
    );
}
