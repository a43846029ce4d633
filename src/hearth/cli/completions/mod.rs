//! `hearth completions`: scripts that complete the command line in a shell,
//! generated from the table of commands.
//!
//! Each script follows the words typed so far to the command that they name, and
//! offers what may come next.

mod bash;
mod completion;
mod fish;
mod zsh;

#[cfg(test)]
mod tests;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};

pub const COMMAND: Command = Command::new(
    "\
completions SHELL: Print a script that completes `hearth` in a shell
SHELL is bash, zsh or fish. `make install` installs all three.",
)
.run_with_table(run);

fn run(table: &'static [Command], arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let script = match arguments.required(0) {
        "bash" => bash::script(table),
        "zsh" => zsh::script(table),
        "fish" => fish::script(table),
        shell => {
            return Err(arguments.usage(format!("SHELL must be bash, zsh or fish, not {shell:?}")));
        }
    };
    context.output.write_all(script.as_bytes())?;
    Ok(())
}
