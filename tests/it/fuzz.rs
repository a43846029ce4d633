//! The short version of the fuzzing; `make fuzz` runs the long one.

use std::time::Duration;

use super::broken_input::{self, Effort};

/// Always the same inputs, so that a failure is one for everybody.
const EFFORT: Effort = Effort {
    seed: 20_260_101,
    time: Duration::from_secs(2),
};

#[test]
fn broken_connections_disturb_nobody() {
    broken_input::connections(EFFORT);
}

#[test]
fn broken_answers_of_the_model_end_the_turn() {
    broken_input::model_answers(EFFORT);
}

#[test]
fn broken_configurations_are_refused_with_a_sentence() {
    broken_input::configurations(EFFORT);
}

#[test]
fn broken_imports_take_in_what_is_good() {
    broken_input::imports(EFFORT);
}

#[test]
fn broken_backups_are_refused_with_a_sentence() {
    broken_input::backups(EFFORT);
}

#[cfg(feature = "relay")]
#[test]
fn broken_frames_of_a_machine_end_its_link_alone() {
    broken_input::relayed_frames(EFFORT);
}

#[cfg(feature = "tls")]
#[test]
fn broken_tls_disturbs_nobody() {
    broken_input::tls_connections(EFFORT);
}
