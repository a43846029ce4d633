//! The short version of the random households; `make fuzz` runs the long one.

use super::household_steps;

#[test]
fn random_households_see_what_they_should() {
    household_steps::run(20_260_101, 20_000);
}
