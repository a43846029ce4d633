//! `hearth config`: the configuration file, by the same code as the server's.

use std::fs;
use std::io::ErrorKind;

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::data_directory::DataDirectory;
use super::help::nearest;
use super::running_server::RunningServer;
use super::{Context, Failure, Outcome, password, table};
use crate::config::{self, Settings};

/// `hearth config check`
pub fn check(arguments: &Arguments, context: &mut Context) -> Outcome {
    let directory = DataDirectory::of(arguments, context)?;
    for warning in load(&directory)?.warnings() {
        writeln!(context.errors, "{warning}")?;
    }
    writeln!(context.output, "{} is good.", directory.config().display())?;
    Ok(())
}

/// `hearth config get [KEY]`
pub fn get(arguments: &Arguments, context: &mut Context) -> Outcome {
    let directory = DataDirectory::of(arguments, context)?;
    let readable = load(&directory)?.readable();
    let Some(key) = arguments.operand(0) else {
        if arguments.has("json") {
            return table::print_json(context, &Value::Object(readable));
        }
        for (name, value) in &readable {
            writeln!(context.output, "{name} = {value}")?;
        }
        return Ok(());
    };
    let value = look_up(&readable, key)?;
    match value {
        Value::String(text) if !arguments.has("json") => writeln!(context.output, "{text}")?,
        value => table::print_json(context, value)?,
    }
    Ok(())
}

/// `hearth config set KEY VALUE`
pub fn set(arguments: &Arguments, context: &mut Context) -> Outcome {
    let directory = DataDirectory::of(arguments, context)?;
    let settings = load(&directory)?;
    let (key, given) = (arguments.required(0), arguments.required(1));
    let text = match given {
        "-" => {
            let ask = context.input_is_terminal;
            let secret = password::read_secret(context, &format!("{key}: "), ask)?;
            secret.expose().to_owned()
        }
        given => given.to_owned(),
    };
    let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_str()));
    let is_text = value.is_string();
    let change =
        |value| nest(&directory, key, value).and_then(|change| Ok(settings.update(&change)?));
    match change(value) {
        Ok(_) => {}
        // A number or a word like `true` may have been meant as a text: an API
        // key of digits alone. The first error says more than the second.
        Err(failure) if is_text || change(Value::from(text)).is_err() => return Err(failure),
        Err(_) => {}
    }
    let path = directory.config();
    let told = RunningServer::notify(&directory);
    writeln!(context.errors, "Set {key} in {}; {told}.", path.display())?;
    Ok(())
}

/// `hearth config path`
pub fn path(arguments: &Arguments, context: &mut Context) -> Outcome {
    let directory = DataDirectory::of(arguments, context)?;
    writeln!(context.output, "{}", directory.config().display())?;
    Ok(())
}

/// `hearth config keys`
pub fn keys(arguments: &Arguments, context: &mut Context) -> Outcome {
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
        writeln!(
            context.output,
            "{}\n    {}\n    It is {}. Default: {}{while_running}.\n",
            setting.key, setting.documentation, setting.expects, setting.default
        )?;
    }
    Ok(())
}

pub(super) fn load(directory: &DataDirectory) -> Result<Settings, Failure> {
    let path = directory.config();
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::failed(format!(
            "there is no configuration {}; `hearth serve` writes one at its first start",
            path.display()
        ))),
        _ => Settings::load(&path).map_err(Failure::failed),
    }
}

/// The value at a dotted key.
fn look_up<'a>(readable: &'a Map<String, Value>, key: &str) -> Result<&'a Value, Failure> {
    let mut members = readable;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        let Some(value) = members.get(part) else {
            let near = nearest(part, members.keys().map(String::as_str));
            let hint = near
                .map(|near| format!("; did you mean {near:?}?"))
                .unwrap_or_default();
            return Err(Failure::failed(format!(
                "there is no setting {key:?}{hint}"
            )));
        };
        match value {
            _ if parts.peek().is_none() => return Ok(value),
            Value::Object(inner) => members = inner,
            _ => break,
        }
    }
    Err(Failure::failed(format!("there is no setting {key:?}")))
}

/// The change of one top-level field that sets a dotted key: its object as the
/// file has it (so that `${NAME}` stays), with one member replaced.
fn nest(directory: &DataDirectory, key: &str, value: Value) -> Result<Map<String, Value>, Failure> {
    let (field, rest) = match key.split_once('.') {
        None => return Ok(Map::from_iter([(key.to_owned(), value)])),
        Some(parts) => parts,
    };
    let path = directory.config();
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::failed(format!("{} cannot be read: {error}", path.display())))?;
    let file: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::failed(format!("{} is not valid JSON: {error}", path.display()))
    })?;
    let mut whole = match file.get(field) {
        Some(Value::Object(members)) => Value::Object(members.clone()),
        _ => Value::Object(Map::new()),
    };
    let mut place = &mut whole;
    for part in rest.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[part];
    }
    *place = value;
    Ok(Map::from_iter([(field.to_owned(), whole)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::TemporaryDirectory;

    #[test]
    fn a_dotted_key_is_looked_up() {
        let readable = json!({"model": "m", "tool_permissions": {"clock": "allow"}});
        let readable = readable.as_object().unwrap();
        for (key, value) in [
            ("model", Some(json!("m"))),
            ("tool_permissions.clock", Some(json!("allow"))),
            ("modle", None),
            ("model.name", None),
            ("tool_permissions.nothing", None),
            ("", None),
        ] {
            assert_eq!(look_up(readable, key).ok(), value.as_ref(), "{key}");
        }
        let Err(Failure::Failed(message)) = look_up(readable, "modle") else {
            panic!("there is no modle");
        };
        assert!(message.contains("did you mean \"model\"?"), "{message}");
    }

    #[test]
    fn a_dotted_key_changes_one_member_of_the_file() {
        let root = TemporaryDirectory::new();
        let directory = root.data_directory();
        fs::write(
            directory.config(),
            r#"{"api_key": "${KEY}", "tool_permissions": {"a": "ask", "b": "deny"}}"#,
        )
        .unwrap();
        for (key, change) in [
            ("model", json!({"model": "new"})),
            (
                "tool_permissions.b",
                json!({"tool_permissions": {"a": "ask", "b": "new"}}),
            ),
            ("api_key.x.y", json!({"api_key": {"x": {"y": "new"}}})),
        ] {
            let nested = nest(&directory, key, json!("new")).unwrap();
            assert_eq!(Value::Object(nested), change, "{key}");
        }
    }
}
