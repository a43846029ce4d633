//! The long versions of the fault harness (`make soak`) and of the fuzzing
//! (`make fuzz`): minutes, not seconds. They print what they counted.

#[path = "../fuzz/mod.rs"]
mod broken_input;
#[path = "../households/mod.rs"]
mod household_steps;
#[path = "../faults/mod.rs"]
mod scenarios;

mod ceilings;
mod crowded;
mod fuzz;
#[cfg(feature = "relay")]
mod relay_churn;

use scenarios::{backups, crash, disk, kill, order, power, pressure, receivers};

#[test]
#[ignore = "long"]
fn kill_9_in_200_rounds() {
    kill::rounds(200);
}

#[test]
#[ignore = "long"]
fn a_crash_at_every_step() {
    crash::kill_at_every_step(usize::MAX);
}

#[test]
#[ignore = "long"]
fn an_error_at_every_step() {
    crash::fail_at_every_step(usize::MAX);
}

#[test]
#[ignore = "long"]
fn many_receivers_that_fail_in_every_way() {
    receivers::fail_in_every_way(5);
}

#[test]
#[ignore = "long"]
fn a_disk_that_fills_up_again_and_again() {
    disk::full(24);
}

#[test]
#[ignore = "long"]
fn encrypted_backups_that_are_broken_off() {
    backups::killed(20);
    backups::full_disk();
}

#[test]
#[ignore = "long"]
fn reads_that_fail_under_turns() {
    disk::reads(40);
}

#[test]
#[ignore = "long"]
fn power_cuts_at_many_points() {
    power::cuts(400, 500);
}

#[test]
#[ignore = "long"]
fn the_order_of_10_000_messages() {
    order::random_failures(10_000, 100);
}

#[test]
#[ignore = "long"]
fn one_key_for_100_posts_over_and_over() {
    for _ in 0..20 {
        order::one_key(100);
    }
}

#[test]
#[ignore = "long"]
fn large_messages_with_a_stalled_model() {
    pressure::stalled_model(200 * 1024);
}
