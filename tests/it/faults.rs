//! The short versions of the fault harness; `make soak` runs the long ones.

use super::scenarios::{backups, crash, disk, kill, order, power, pressure, receivers};

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    kill::rounds(6);
}

#[test]
fn receivers_may_fail_in_every_way_for_a_day() {
    receivers::fail_in_every_way(1);
}

#[test]
fn callbacks_keep_their_order_past_random_failures() {
    order::random_failures(300, 20);
}

#[test]
fn many_posts_with_one_key_are_one_turn() {
    order::one_key(100);
}

#[test]
fn a_stalled_model_fills_the_queue_and_no_more() {
    pressure::stalled_model(6 * 1024);
}

#[test]
fn a_full_disk_is_told_and_survived() {
    disk::full(2);
}

#[test]
fn an_encrypted_backup_that_kill_9_breaks_off_passes_for_none() {
    backups::killed(1);
}

#[test]
fn an_encrypted_backup_that_finds_no_room_passes_for_none() {
    backups::full_disk();
}

#[test]
fn a_read_that_fails_ends_no_turn() {
    disk::reads(6);
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    power::cuts(40, 16);
}

#[test]
fn a_crash_at_some_steps() {
    crash::kill_at_every_step(4);
}

#[test]
fn an_error_at_some_steps() {
    crash::fail_at_every_step(4);
}
