//! Broken input for as long as asked (`make fuzz SECONDS=60 SEED=7`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::broken_input::{self, Effort};
use super::household_steps;

/// What the environment asks for; the seed is printed, so that a failure can
/// be repeated.
fn effort() -> Effort {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("SEED").unwrap_or(now.as_secs());
    println!("seed {seed}");
    Effort {
        seed,
        time: Duration::from_secs(number("SECONDS").unwrap_or(60)),
    }
}

#[test]
#[ignore = "long"]
fn broken_connections() {
    broken_input::connections(effort());
}

#[test]
#[ignore = "long"]
fn broken_answers_of_the_model() {
    broken_input::model_answers(effort());
}

#[test]
#[ignore = "long"]
fn broken_configurations() {
    broken_input::configurations(effort());
}

#[test]
#[ignore = "long"]
fn broken_imports() {
    broken_input::imports(effort());
}

#[test]
#[ignore = "long"]
fn broken_backups() {
    broken_input::backups(effort());
}

/// A million steps, whatever `SECONDS` says.
#[test]
#[ignore = "long"]
fn random_households() {
    household_steps::run(effort().seed, 1_000_000);
}

#[cfg(feature = "relay")]
#[test]
#[ignore = "long"]
fn broken_frames_of_machines() {
    broken_input::relayed_frames(effort());
}

#[cfg(feature = "tls")]
#[test]
#[ignore = "long"]
fn broken_tls() {
    broken_input::tls_connections(effort());
}
