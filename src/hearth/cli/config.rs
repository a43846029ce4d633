//! `hearth config`: the configuration file, read and checked by the code that the
//! server uses.

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::{DataDirectory, with_option};
use super::doctor::warnings_of_names;
use super::local_models::quoted;
use super::running_server::RunningServer;
use super::{password, table};
use crate::handbook::{CONFIG_SCHEMA, unpack};
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
    Command::new(
        "\
unset KEY: Restore the default of one setting
KEY may be dotted. A running server reloads its configuration.
--data-dir",
    )
    .run(unset),
    Command::new("path: Print the path of the configuration file\n--data-dir").run(path),
    Command::new("keys: Explain every setting\n--json").run(keys),
    Command::new(
        "\
schema: Print the JSON Schema of the configuration
An editor that is given it completes and explains settings while you write.",
    )
    .run(schema),
]);

/// `hearth config check`
fn check(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    server::check(&settings.current()).map_err(CliError::failed)?;
    let option = directory.option(arguments.has("data-dir"));
    for warning in settings.warnings() {
        context.note(with_option(&warning, &option))?;
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

/// `hearth config schema`
fn schema(_: &Arguments, context: &mut CliContext) -> CliResult {
    Ok(context.output.write_all(&unpack(CONFIG_SCHEMA))?)
}

/// `hearth config set KEY VALUE`
fn set(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let (key, given) = (arguments.required(0), arguments.required(1));
    let text = match given {
        "-" => {
            let ask = context.input_is_terminal;
            let secret = password::read_secret(context, &format!("{key}: "), ask)?;
            secret.expose().to_owned()
        }
        given => given.to_owned(),
    };
    change(key, &text, "saved in", arguments, context)
}

/// `hearth config unset KEY`
fn unset(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let key = arguments.required(0);
    // A key that does not exist is a typing mistake.
    DataDirectory::of(arguments, context)?
        .settings()?
        .get(key, false)?;
    change(key, "null", "removed from", arguments, context)
}

/// Changes a setting and reports what `done` to the file comes to.
fn change(
    key: &str,
    text: &str,
    done: &str,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    let before = settings.current();
    let warnings = || {
        let mut lines = settings.warnings();
        lines.extend(warnings_of_names(&settings.current(), &directory));
        lines
    };
    let known = warnings();
    let removed = settings.set(key, text)?;
    let path = directory.config();
    let applies = RunningServer::apply(&directory, &before, &settings.current());
    context.note(format_args!("{key} {done} {}; {applies}.", path.display()))?;
    let option = directory.option(arguments.has("data-dir"));
    if let Some(removed) = removed {
        context.note(format_args!(
            "{removed} is removed: it was given for another address. Set the new one: \
             hearth config set{option} {} -",
            quoted(&removed)
        ))?;
    }
    for warning in warnings() {
        if !known.contains(&warning) {
            context.note(with_option(&warning, &option))?;
        }
    }
    applies.end()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::cli::tests::DataDirectoryUnderTest;
    use base::clock::Clock;
    use store::{Store, UserRole};

    #[test]
    fn names_that_nobody_has_are_warned_about_at_once() {
        let root = DataDirectoryUnderTest::default();
        let path = root.data_directory().database();
        let store = Store::open(&path, Clock::system()).unwrap();
        store.add_user("ada", UserRole::Admin, "-").unwrap();
        store.close();
        let config = r#"{"channels": [{"name": "hooks", "port": 8401, "type": "webhook", "accounts": {
            "door": {"incoming_path": "/door", "outgoing_url": "http://192.168.1.5/"}}}]}"#;
        fs::write(root.data_directory().config(), config).unwrap();
        let audience = "config set channels.hooks.accounts.door.audience";
        for (line, warning) in [
            (format!(r#"{audience} ["ada"]"#), None),
            (
                format!(r#"{audience} ["nobody"]"#),
                Some("names nobody, a user who does not exist"),
            ),
            // It is no news any more.
            ("config set max_tokens 100".to_owned(), None),
            (r#"config set people.Ada.tools ["recall"]"#.to_owned(), None),
            (
                r#"config set people.eve.tools ["recall"]"#.to_owned(),
                Some("people.eve is for a user who does not exist"),
            ),
        ] {
            let ran = root.run(&line, "");
            assert_eq!(ran.code, 0, "{line}: {}", ran.errors);
            let said = ran.errors.contains("does not exist");
            assert_eq!(said, warning.is_some(), "{line}: {}", ran.errors);
            assert!(ran.errors.contains(warning.unwrap_or_default()), "{line}");
        }
    }

    #[test]
    fn advice_names_the_entry_of_fallback_and_the_data_directory() {
        let root = DataDirectoryUnderTest::default();
        let config = r#"{"fallback": [{"provider": "cerebras", "model": "m",
            "base_url": "https://proxy.example/v1", "api_key": "sk-0123456789abcdef"}]}"#;
        fs::write(root.data_directory().config(), config).unwrap();
        let command = format!(
            "hearth config set --data-dir {} 'fallback[0].api_key' -\n",
            root.path().display()
        );
        for (line, times) in [
            // For the key that is removed, and for the one that is missing.
            ("config set fallback[0].base_url null", 2),
            ("config check", 1),
        ] {
            let ran = root.run(line, "");
            assert_eq!(ran.code, 0, "{line}: {}", ran.errors);
            let found = ran.errors.matches(&command).count();
            assert_eq!(found, times, "{line}: {}", ran.errors);
        }
        let config = r#"{"provider": "ollama", "base_url": "http://127.0.0.1:1"}"#;
        fs::write(root.data_directory().config(), config).unwrap();
        let doctor = root.run("doctor", "").output;
        assert!(doctor.contains("\"model\" is not set"), "{doctor}");
        assert!(!doctor.contains("hearth config set model"), "{doctor}");
    }
}
