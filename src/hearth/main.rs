//! Turns the command line into an exit code; everything else is the library's.

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

fn main() -> ExitCode {
    // Else every program of this user could read our environment and memory, where
    // keys are. The children of a process do not inherit it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    hearth::cli::run(std::env::args_os().skip(1))
}
