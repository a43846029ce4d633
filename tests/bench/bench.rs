//! Measures what Hearth promises about speed and size, on this machine.
//!
//! Each figure stands beside a floor, which is the same work without us in the
//! same run, beside the best that a comparable server reached on a machine of
//! this kind, and beside our goal. The server is the real release binary in a
//! process of its own; its clients, models and receivers are threads of this one.
//!
//!     make bench                   everything but the clean build, in about 6 minutes
//!     make bench ONLY="turns web"  the families whose names begin so
//!     make bench BUILD=1           the clean release build too

mod families;
mod floor;
mod home;
mod http;
mod load;
mod machine;
mod model;
mod receiver;
#[cfg(feature = "relay")]
mod relay;
#[cfg(feature = "relay")]
mod secured;
mod statistics;
mod table;
mod websocket;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use families::{FAMILIES, Family};
use machine::Machine;
use support::process::raise_descriptor_limit;
use table::Table;

fn main() -> ExitCode {
    let mut wanted = Vec::new();
    let mut build = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // Cargo says what it runs.
            "--bench" => {}
            "--build" => build = true,
            argument => match argument.strip_prefix(floor::ROLE) {
                Some(role) => return floor::serve(role),
                None => wanted.push(argument.to_owned()),
            },
        }
    }
    let families = match choose(&wanted, build) {
        Ok(families) => families,
        Err(unknown) => {
            let known: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
            eprintln!(
                "no figures are named {unknown:?}; there are: {}",
                known.join(", ")
            );
            return ExitCode::from(2);
        }
    };
    raise_descriptor_limit();
    let started = Instant::now();
    println!("{}\n", Machine::look());
    let mut table = Table::default();
    let mut broken = 0;
    for family in families {
        table.begin(family.title);
        let measured = AssertUnwindSafe(|| (family.measure)(&mut table));
        if catch_unwind(measured).is_err() {
            println!("  could not be measured: see above");
            broken += 1;
        }
    }
    println!(
        "\n{}; {:.0} s in all",
        table.summary(),
        started.elapsed().as_secs_f64()
    );
    // A slower machine misses goals without anything being wrong.
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The families to run: those whose names begin with a wanted word, or all.
fn choose(wanted: &[String], build: bool) -> Result<Vec<&'static Family>, String> {
    for word in wanted {
        if !FAMILIES
            .iter()
            .any(|family| family.name.starts_with(word.as_str()))
        {
            return Err(word.clone());
        }
    }
    let chosen = |family: &&Family| {
        wanted
            .iter()
            .any(|word| family.name.starts_with(word.as_str()))
            || match family.name {
                "build" => build,
                _ => wanted.is_empty(),
            }
    };
    Ok(FAMILIES.iter().filter(chosen).collect())
}
