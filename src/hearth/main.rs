//! Turns the command line into an exit code; everything else is the library's.

use std::process::ExitCode;

use net::process::{enable_guard, was_guard};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

fn main() -> ExitCode {
    // Else every program of this user could read our environment and memory, where
    // keys are. The children of a process do not inherit it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let arguments = || std::env::args_os().skip(1);
    if was_guard(arguments()) {
        return ExitCode::SUCCESS;
    }
    enable_guard();
    hearth::cli::run(arguments())
}
