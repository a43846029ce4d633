//! `hearth config`: the configuration file, changed by the service as everything else.

mod edit;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::{DataDirectory, with_option};
use super::door::{Configuration, Door, settings};
use super::{password, table};
use crate::handbook::CONFIG_SCHEMA;
use crate::server;
use base::gzip::unpack;
use config::quoted;

pub const COMMAND: Command = Command::new(
    "\
config: Check, read and change the configuration
The configuration is the file config.json in the data directory.",
)
.members(&[
    Command::new("check: Report every error in the configuration")
        .ask_with(Configuration::Mended, check),
    Command::new(
        "\
get [KEY]: Print one setting, or all that may be shown
KEY may be dotted, as in tool_permissions.current_time. Secrets are not printed.
--json",
    )
    .ask_with(Configuration::Mended, get),
    Command::new(
        "\
set KEY VALUE: Change one setting
KEY may be dotted, such as limits.turn_seconds. VALUE is JSON, or else plain text. null restores
the default. `-` reads the value from standard input, which keeps a secret out of the shell's
history. A running server applies it from the next turn.",
    )
    .ask_with(Configuration::Mended, set),
    Command::new(
        "\
unset KEY: Restore the default of one setting
KEY may be dotted. A running server applies it from the next turn.",
    )
    .ask_with(Configuration::Mended, unset),
    Command::new(
        "\
edit: Change the configuration in an editor
Opens a copy in $VISUAL, $EDITOR or vi, checks it, and asks again if something is wrong. What is
not saved stays as a draft, which the next `hearth config edit` opens.",
    )
    .ask_with(Configuration::Mended, edit::edit),
    Command::new("path: Print the path of the configuration file\n--data-dir").run(path),
    Command::new("keys: Explain every setting\n--json").run(keys),
    Command::new(
        "\
schema: Print the JSON Schema of the configuration
With it, an editor completes and explains settings while you write.",
    )
    .run(schema),
]);

/// `hearth config check`
fn check(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let data = door.ask(&json!({ "type": "check_config" }))?;
    let problems: Vec<&str> = texts(&data["problems"]).collect();
    if !problems.is_empty() {
        return Err(CliError::failed(problems.join("\n")));
    }
    let has_server = door.server()?.is_some();
    let directory = door.directory()?;
    // What only the environment of a server has, the server has judged.
    let config = settings(directory, Configuration::Needed)?.current();
    server::check_certificates(&config).map_err(CliError::failed)?;
    if !has_server {
        server::check_relay(&config).map_err(CliError::failed)?;
    }
    let option = directory.option(arguments.has("data-dir"));
    for warning in texts(&data["warnings"]) {
        context.note(with_option(warning, &option))?;
    }
    context.print(format_args!("{} is valid.", directory.config().display()))
}

/// `hearth config get [KEY]`
fn get(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    if let Some(key) = arguments.operand(0) {
        return match get_value(door, key)? {
            Value::String(text) if !arguments.has("json") => context.print(text),
            value => table::print_json(context, &value),
        };
    }
    let settings = door.ask(&json!({ "type": "get_config" }))?;
    if arguments.has("json") {
        return table::print_json(context, &settings);
    }
    for (name, value) in settings.as_object().into_iter().flatten() {
        writeln!(context.output, "{name} = {value}")?;
    }
    Ok(())
}

/// `hearth config schema`
fn schema(_: &Arguments, context: &mut CliContext) -> CliResult {
    Ok(context.output.write_all(&unpack(CONFIG_SCHEMA))?)
}

/// `hearth config set KEY VALUE`
fn set(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let (key, given) = (arguments.required(0), arguments.required(1));
    let text = match given {
        "-" => {
            let secret = password::read_secret(context, &format!("{key}: "))?;
            secret.expose().to_owned()
        }
        given => given.to_owned(),
    };
    let mut ask = |value: Value| set_value(door, key, value);
    let changed = match serde_json::from_str::<Value>(&text) {
        Err(_) => ask(text.into())?,
        Ok(value @ (Value::String(_) | Value::Null)) => ask(value)?,
        // An API key may consist of digits: what is wrong as a number is tried as the text
        // that it may have been meant as.
        Ok(value) => ask(value).or_else(|error| ask(text.into()).map_err(|_| error))?,
    };
    let done = format!("{key} saved in {}", door.directory()?.config().display());
    report(door, &done, &changed, arguments, context)
}

/// `hearth config unset KEY`
fn unset(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let key = arguments.required(0);
    let changed = set_value(door, key, Value::Null)?;
    let done = format!(
        "{key} removed from {}",
        door.directory()?.config().display()
    );
    report(door, &done, &changed, arguments, context)
}

/// Returns one value of the configuration.
pub fn get_value(door: &mut Door, path: &str) -> Result<Value, CliError> {
    let mut data = door.ask(&json!({ "type": "get_config", "path": path }))?;
    Ok(data["value"].take())
}

/// Sets one value of the configuration.
pub fn set_value(door: &mut Door, path: &str, value: Value) -> Result<Value, CliError> {
    door.ask(&json!({ "type": "set_config", "path": path, "value": value }))
}

/// The path of a channel in the configuration.
pub fn channel_path(name: &str) -> String {
    // As a JSON string, in which dots do not separate.
    format!("channels.{}", Value::from(name))
}

/// Says when a change of the configuration applies: a part of a sentence.
pub fn applies(door: &mut Door, changed: &Value) -> Result<String, CliError> {
    let server = door.server()?.map(|server| server.process());
    let has_problems = texts(&changed["problems"]).next().is_some();
    Ok(match server {
        _ if has_problems => "applies once nothing is wrong with the file".to_owned(),
        None => "applies from the next start".to_owned(),
        Some(process) if changed["needs_restart"] == true => {
            format!("restart the server (process {process}) to apply it")
        }
        Some(process) => format!("the server (process {process}) reloaded it"),
    })
}

/// Says what a change of the configuration comes to: what was `done`, when it applies, and what
/// else it brings with it.
pub fn report(
    door: &mut Door,
    done: &str,
    changed: &Value,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let applies = applies(door, changed)?;
    context.note(format_args!("{done}; {applies}."))?;
    let option = door.directory()?.option(arguments.has("data-dir"));
    if let Some(removed) = changed["removed_key"].as_str() {
        context.note(format_args!(
            "{removed} is removed: it was given for another address. Set the new one: \
             hearth config set{option} {} -",
            quoted(removed)
        ))?;
    }
    for warning in texts(&changed["warnings"]) {
        context.note(with_option(warning, &option))?;
    }
    let problems: Vec<&str> = texts(&changed["problems"]).collect();
    if problems.is_empty() {
        return Ok(());
    }
    let problems = problems.join("\n");
    context.note(format_args!("This is wrong with it still:\n{problems}"))
}

/// The texts of a list.
pub fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
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
        return table::print_json(context, &json!(settings));
    }
    for setting in settings {
        let while_running = if setting.writable {
            "; clients may set it"
        } else {
            ""
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

    use crate::cli::tests::{DataDirectoryUnderTest, run_with};
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

    #[test]
    fn a_broken_file_is_read_and_mended() {
        let root = DataDirectoryUnderTest::default();
        let path = root.data_directory().config();
        fs::write(
            &path,
            r#"{"modell": "m", "workers": 0, "api_key": "${NOT_HERE}"}"#,
        )
        .unwrap();
        for (line, code, says) in [
            ("config check", 1, "unknown key \"modell\""),
            ("config get workers", 0, "0"),
            ("config get", 0, "modell = \"m\""),
            ("config set session_days 0", 1, "session_days"),
            ("config unset modell", 0, "applies once nothing is wrong"),
            ("config set workers 3", 0, "applies from the next start"),
            // Digits that are no number here.
            ("config set model 4711", 0, "saved in"),
            ("config get model", 0, "4711"),
            // No server would start here.
            (
                "config check",
                1,
                "the environment variable NOT_HERE, which is not set",
            ),
            ("config unset api_key", 0, "applies from the next start"),
            ("config check", 0, "is valid"),
            (
                "config set api_key ${NOT_HERE}",
                0,
                "applies from the next start",
            ),
        ] {
            let ran = root.run(line, "");
            assert_eq!(ran.code, code, "{line}: {}", ran.errors);
            let said = format!("{}{}", ran.output, ran.errors);
            assert!(said.contains(says), "{line}: {said}");
        }
        let file = fs::read_to_string(&path).unwrap();
        assert!(
            file.contains("${NOT_HERE}") && file.contains("\"workers\": 3"),
            "{file}"
        );
        fs::write(&path, "nonsense").unwrap();
        for line in [
            "config set workers 3",
            "config get",
            "config get workers",
            "config get modell",
        ] {
            let ran = root.run(line, "");
            assert_eq!((ran.code, ran.output.as_str()), (1, ""), "{line}");
            for part in ["config.json line 1", "not valid JSON", "hearth config edit"] {
                assert!(ran.errors.contains(part), "{line}: {}", ran.errors);
            }
        }
        let ran = root.run("config check", "");
        assert!(
            ran.code == 1 && ran.errors.contains("line 1"),
            "{}",
            ran.errors
        );
    }

    #[test]
    fn an_edited_copy_is_checked_and_a_refused_one_kept() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let draft = directory.path().join(super::edit::DRAFT);
        let new = directory.path().join("new");
        fs::write(directory.config(), "nonsense").unwrap();
        let path = root.path().to_str().unwrap();
        let edit = |text: &str| {
            fs::write(&new, text).unwrap();
            let editor = format!("cp '{}'", new.display());
            run_with(
                &["config", "edit", "--data-dir", path],
                "",
                &[("EDITOR", &editor)],
            )
        };
        let refused = edit(r#"{"workers": 0, "temperature": 9}"#);
        assert_eq!(refused.code, 1);
        let mut lines = refused
            .errors
            .lines()
            .filter(|line| line.contains("must be"));
        assert!(
            lines.next().is_some() && lines.next().is_some(),
            "{}",
            refused.errors
        );
        for part in ["\"workers\" must be", "config.draft.json"] {
            assert!(refused.errors.contains(part), "{}", refused.errors);
        }
        assert_eq!(fs::read_to_string(directory.config()).unwrap(), "nonsense");
        assert!(draft.exists());
        let text = "{\n  \"workers\": 2\n}\n";
        let saved = edit(text);
        assert_eq!(saved.code, 0, "{}", saved.errors);
        assert!(
            saved.errors.contains("draft of an earlier edit"),
            "{}",
            saved.errors
        );
        assert!(
            saved.errors.contains("applies from the next start"),
            "{}",
            saved.errors
        );
        assert_eq!(fs::read_to_string(directory.config()).unwrap(), text);
        assert!(!draft.exists());
        let same = edit(text);
        assert!(
            same.code == 0 && same.errors.contains("Nothing was changed"),
            "{}",
            same.errors
        );
    }

    #[test]
    fn an_edit_never_undoes_what_somebody_else_has_changed_meanwhile() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let config = directory.config();
        fs::write(&config, "{\n  \"workers\": 2\n}\n").unwrap();
        let path = root.path().to_str().unwrap();
        let edit = |editor: &str| {
            let line = ["config", "edit", "--data-dir", path];
            run_with(&line, "", &[("EDITOR", editor)])
        };
        let others = r#"{"workers": 7}"#;
        let both = directory.path().join("editor");
        let script = format!(
            "echo '{{\"workers\": 3}}' > \"$1\"; echo '{others}' > '{}'",
            config.display()
        );
        fs::write(&both, script).unwrap();
        let refused = edit(&format!("sh '{}'", both.display()));
        assert_eq!(refused.code, 1, "{}", refused.errors);
        for part in ["changed the file meanwhile", "config.draft.1.json"] {
            assert!(refused.errors.contains(part), "{}", refused.errors);
        }
        // A draft that was kept for another reason before the file changed.
        assert_eq!(edit("echo '{\"workers\": 0}' >").code, 1);
        assert!(directory.path().join(super::edit::DRAFT).exists());
        let others = "{\"workers\": 8}\n";
        fs::write(&config, others).unwrap();
        let fresh = edit("true");
        for part in ["config.draft.2.json", "Nothing was changed"] {
            assert!(fresh.errors.contains(part), "{}", fresh.errors);
        }
        assert_eq!(fs::read_to_string(&config).unwrap(), others);
        let gone = edit("rm");
        assert_eq!(gone.code, 1);
        assert!(
            gone.errors.contains("the editor left no"),
            "{}",
            gone.errors
        );
    }
}
