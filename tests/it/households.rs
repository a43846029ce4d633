//! The short version of the random households; `make fuzz` runs the long one.

use super::household_steps;

/// `SEED=N` repeats the household with that seed.
#[test]
fn random_households_see_what_they_should() {
    match std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => household_steps::run(seed, 1_000),
        None => household_steps::run(20_260_101, 20_000),
    }
}

/// What differed once, by its seed.
#[test]
fn households_that_differed_do_not_any_longer() {
    // A program goes back to before what was deleted.
    for seed in [1_795_540_949, 1_795_540_990] {
        household_steps::run(seed, 300);
    }
}
