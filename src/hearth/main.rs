//! Turns the command line into an exit code; everything else is the library's.

use std::process::ExitCode;

fn main() -> ExitCode {
    hearth::cli::run(std::env::args_os().skip(1))
}
