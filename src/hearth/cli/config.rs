//! `hearth config`: the configuration file, read and checked by the code that the
//! server uses.

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::running_server::RunningServer;
use super::{password, table};
use crate::server;

use serde_json::json;

pub const COMMAND: Command = Command::new(
    "\
config: Check, read and change the configuration
The configuration is the file config.json in the data directory.",
)
.members(&[
    Command::new("check: Report every error in the configuration\n--data-dir").run(check),
    Command::new(
        "\
get [KEY]: Print one setting, or all that may be shown
KEY may be dotted, as in tool_permissions.current_time. Secrets are not printed.
--json
--data-dir",
    )
    .run(get),
    Command::new(
        "\
set KEY VALUE: Change one setting
KEY may be dotted, such as limits.turn_seconds. VALUE is JSON, or else plain text. null restores
the default. `-` reads the value from standard input, which keeps a secret out of the shell's
history. A running server reloads its configuration; the change applies from the next turn.
--data-dir",
    )
    .run(set),
    Command::new("path: Print the path of the configuration file\n--data-dir").run(path),
    Command::new("keys: Explain every setting\n--json").run(keys),
]);

/// `hearth config check`
fn check(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    server::check(&settings.current()).map_err(CliError::failed)?;
    for warning in settings.warnings() {
        writeln!(context.errors, "{warning}")?;
    }
    context.print(format_args!("{} is valid.", directory.config().display()))
}

/// `hearth config get [KEY]`
fn get(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    let Some(key) = arguments.operand(0) else {
        let readable = settings.readable();
        if arguments.has("json") {
            return table::print_json(context, &Value::Object(readable));
        }
        for (name, value) in &readable {
            writeln!(context.output, "{name} = {value}")?;
        }
        return Ok(());
    };
    match settings.get(key, false)? {
        Value::String(text) if !arguments.has("json") => writeln!(context.output, "{text}")?,
        value => table::print_json(context, &value)?,
    }
    Ok(())
}

/// `hearth config set KEY VALUE`
fn set(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    let (key, given) = (arguments.required(0), arguments.required(1));
    let text = match given {
        "-" => {
            let ask = context.input_is_terminal;
            let secret = password::read_secret(context, &format!("{key}: "), ask)?;
            secret.expose().to_owned()
        }
        given => given.to_owned(),
    };
    let known = settings.warnings();
    let removed = settings.set(key, &text)?;
    let path = directory.config();
    let reloaded = RunningServer::reload_if_running(&directory);
    context.note(format_args!(
        "{key} saved in {}; {reloaded}.",
        path.display()
    ))?;
    if let Some(removed) = removed {
        let option = directory.option(arguments.has("data-dir"));
        context.note(format_args!(
            "{removed} is removed: it was given for another address. Set the new one: \
             hearth config set{option} {removed} -"
        ))?;
    }
    for warning in settings.warnings() {
        if !known.contains(&warning) {
            writeln!(context.errors, "{warning}")?;
        }
    }
    Ok(())
}

/// `hearth config path`
fn path(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    context.print(format_args!("{}", directory.config().display()))
}

/// `hearth config keys`
fn keys(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let settings = config::documentation();
    if arguments.has("json") {
        let settings: Vec<Value> = settings
            .iter()
            .map(|setting| {
                json!({
                    "key": setting.key,
                    "expects": setting.expects,
                    "default": setting.default,
                    "documentation": setting.documentation,
                    "writable": setting.writable,
                })
            })
            .collect();
        return table::print_json(context, &Value::from(settings));
    }
    for setting in settings {
        let while_running = match setting.writable {
            true => "; clients may set it",
            false => "",
        };
        context.print(format_args!(
            "{}\n    {}\n    Type: {}. Default: {}{while_running}.\n",
            setting.key, setting.documentation, setting.expects, setting.default
        ))?;
    }
    Ok(())
}
