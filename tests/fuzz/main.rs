//! Broken input for as long as asked (`make fuzz SECONDS=60 SEED=7`).

#[path = "mod.rs"]
mod scenarios;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scenarios::Effort;

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
    scenarios::connections(effort());
}

#[test]
#[ignore = "long"]
fn broken_answers_of_the_model() {
    scenarios::model_answers(effort());
}

#[test]
#[ignore = "long"]
fn broken_configurations() {
    scenarios::configurations(effort());
}

#[test]
#[ignore = "long"]
fn broken_imports() {
    scenarios::imports(effort());
}

#[test]
#[ignore = "long"]
fn broken_backups() {
    scenarios::backups(effort());
}

#[cfg(feature = "relay")]
#[test]
#[ignore = "long"]
fn broken_frames_of_machines() {
    scenarios::relayed_frames(effort());
}

#[cfg(feature = "tls")]
#[test]
#[ignore = "long"]
fn broken_tls() {
    scenarios::tls_connections(effort());
}
