//! Measures what Hearth promises about speed and size, on this machine.
//!
//! Each figure stands beside its goal, and beside a floor where there is one: the same work
//! without Hearth in the same run. The server is the release binary in a process of its own,
//! with the environment of its unit file; clients, models and receivers are threads of this
//! one.
//!
//!     make bench                     everything, in about 5 minutes
//!     make bench ONLY="turns relay"  the families whose names begin so

mod clients;
mod floor;
mod history;
mod home;
mod idle;
mod model;
#[cfg(feature = "relay")]
mod relay;
mod streams;
mod table;
mod turns;
mod webhooks;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use support::process::raise_descriptor_limit;
use table::Table;

/// Figures that are measured together, by the name that chooses them.
type Family = (&'static str, fn(&mut Table));

/// In the order of the table.
const FAMILIES: &[Family] = &[
    ("start", idle::start),
    ("connections", idle::connections),
    ("memory", idle::memory),
    ("health", webhooks::health),
    ("request", turns::request),
    ("cache", turns::cache),
    ("turns", turns::turns),
    ("wear", turns::wear),
    ("streams", streams::streams),
    ("webhooks", webhooks::webhooks),
    ("history", history::history),
    ("recall", history::recall),
    #[cfg(feature = "relay")]
    ("relay", relay::relay),
];

fn main() -> ExitCode {
    let mut wanted = Vec::new();
    // Cargo adds `--bench`.
    for argument in std::env::args().skip(1).filter(|one| one != "--bench") {
        match argument.strip_prefix(floor::ROLE) {
            Some(role) => return floor::serve(role),
            None => wanted.push(argument),
        }
    }
    let is_of = |word: &String, family: &Family| family.0.starts_with(word.as_str());
    if let Some(unknown) = wanted
        .iter()
        .find(|word| !FAMILIES.iter().any(|family| is_of(word, family)))
    {
        let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "no figures are named {unknown:?}; there are: {}",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    raise_descriptor_limit();
    let began = Instant::now();
    let mut table = Table::begin();
    let mut broken = 0;
    for family in FAMILIES {
        if !wanted.is_empty() && !wanted.iter().any(|word| is_of(word, family)) {
            continue;
        }
        println!("{}", family.0);
        if catch_unwind(AssertUnwindSafe(|| family.1(&mut table))).is_err() {
            println!("  could not be measured: see above");
            broken += 1;
        }
    }
    println!(
        "{}; {} s in all",
        table.summary(),
        began.elapsed().as_secs()
    );
    // A slower machine misses goals without anything being wrong.
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
