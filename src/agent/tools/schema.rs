//! The part of JSON Schema that tools need: checking a model's arguments, and
//! naming types for people. Own code: libraries cost 0.1 to 2.3 MB and 10 to 98
//! crates, and do not tell a model how to do better.

use serde_json::{Map, Value};

use super::definition::Arguments;
use super::output::shorten;
use crate::model::ToolSpec;
use base::error::json_problem;
use base::nearest::nearest;

/// Most problems that one answer names.
const MAX_PROBLEMS: usize = 5;
/// Most characters of an example.
const EXAMPLE_CHARS: usize = 400;
/// Most characters of the names of all tools.
const NAMES_CHARS: usize = 1_000;

/// Parses the arguments a model wrote and checks them against the tool's
/// schema: required members, simple types and `enum`, also in nested objects and
/// arrays. An empty text is an empty object, since models omit the arguments of a
/// tool without parameters. Anything else in a schema (`$ref`, `pattern`, ...) is
/// left to the tool.
///
/// Where the schema allows neither, a null for an optional member counts as
/// absent, a whole number written as `3.0` as an integer, and a text as an array of texts,
/// which models write in quotes or, if it is one, without brackets.
///
/// # Errors
/// At most five problems, in a sentence that tells the model how to do better, and an
/// example.
pub fn check_arguments(spec: &ToolSpec, arguments: &str) -> Result<Arguments, String> {
    let mut members = Map::new();
    let mut problems = Vec::new();
    match serde_json::from_str(arguments) {
        _ if arguments.trim().is_empty() => {}
        Ok(Value::Object(given)) => members = given,
        Ok(other) => problems.push(format!(
            "the arguments must be a JSON object, not {}",
            kind(&other)
        )),
        Err(error) => {
            let problem = json_problem(&error);
            problems.push(format!("the arguments are not valid JSON: {problem}"));
        }
    }
    if problems.is_empty() {
        check_members("", &spec.parameters, &mut members, &mut problems);
    }
    if problems.is_empty() {
        return Ok(members);
    }
    problems.truncate(MAX_PROBLEMS);
    let example = Value::Object(example_of_members(&spec.parameters, members));
    let example = shorten(&example.to_string(), EXAMPLE_CHARS).into_owned();
    Err(format!("{}. For example: {example}", problems.join("; ")))
}

/// Whether a tool with these parameters opens the address that it is called with: a
/// declaration that it only reads says nothing about where the address leads.
pub fn takes_address(parameters: &Value) -> bool {
    let mut members = parameters["properties"].as_object().into_iter().flatten();
    members.any(|(name, schema)| {
        schema["format"] == "uri"
            || ["url", "urls", "uri", "uris"].contains(&name.to_lowercase().as_str())
    })
}

/// Arguments that fit the schema of an object, of those given as far as they do.
fn example_of_members(schema: &Value, given: Map<String, Value>) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(Value::as_str).map(str::to_owned);
    let mut given: Vec<(String, Value)> = given.into_iter().collect();
    let missing = required.filter(|name| given.iter().all(|(given, _)| given != name));
    let missing: Vec<String> = missing.collect();
    given.extend(missing.into_iter().map(|name| (name, Value::Null)));
    let known = properties(schema);
    let fitting = given.into_iter().filter_map(|(name, mut value)| {
        let property = known?.get(&name)?;
        let mut problems = Vec::new();
        check_value("", property, &mut value, &mut problems);
        let fits = problems.is_empty() && !value.is_null();
        Some((name, if fits { value } else { example(property) }))
    });
    fitting.collect()
}

/// A value that fits a schema, as far as it is simple.
fn example(schema: &Value) -> Value {
    let listed = schema["enum"].get(0).or(schema["examples"].get(0));
    if let Some(value) = listed.or(schema.get("default")) {
        return value.clone();
    }
    match types(schema).first() {
        Some(&"integer" | &"number") => schema.get("minimum").cloned().unwrap_or(1.into()),
        Some(&"boolean") => true.into(),
        Some(&"array") => vec![example(&schema["items"])].into(),
        Some(&"object") => example_of_members(schema, Map::new()).into(),
        Some(&"null") => Value::Null,
        _ => "...".into(),
    }
}

/// What to say of a tool that is not among those offered: the nearest of them, and how it
/// is called.
pub fn unknown_tool(name: &str, offered: &[ToolSpec]) -> String {
    let names = || offered.iter().map(|tool| tool.name.as_str());
    let is_part = |known: &&str| name.contains(known) || known.contains(name);
    let near = nearest(name, names()).or_else(|| names().find(is_part));
    let shown = shorten(name, 64);
    match offered.iter().find(|tool| Some(&*tool.name) == near) {
        Some(near) => {
            let arguments = example_of_members(&near.parameters, Map::new());
            format!(
                "there is no tool named {shown:?}. The nearest is {:?}, for example with {}",
                near.name,
                Value::Object(arguments)
            )
        }
        None => {
            let names: Vec<&str> = names().collect();
            let names = shorten(&names.join(", "), NAMES_CHARS).into_owned();
            format!("there is no tool named {shown:?}, only {names}")
        }
    }
}

/// `name -> type name`, as `list_tools` shows a schema (contract section 2).
/// Alternatives are joined by `|`; a type that is not specified is `any`.
pub fn parameter_types(schema: &Value) -> Map<String, Value> {
    properties(schema)
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.clone(), Value::String(type_name(property))))
        .collect()
}

/// The schemas of an object schema's members.
pub(super) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn type_name(schema: &Value) -> String {
    let types = types(schema);
    if !types.is_empty() {
        return types.join("|");
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    let alternatives = alternatives.and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<String> = Vec::new();
    for name in alternatives.map(type_name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() && names.iter().all(|name| name != "any") {
        return names.join("|");
    }
    match schema["enum"].as_array() {
        Some(values) if !values.is_empty() && values.iter().all(Value::is_string) => "string",
        _ => "any",
    }
    .to_owned()
}

/// The type names that a schema allows; none means any.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Checks the members of an object, whose path within the arguments ends with
/// a dot unless it is empty.
fn check_members(
    path: &str,
    schema: &Value,
    members: &mut Map<String, Value>,
    problems: &mut Vec<String>,
) {
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let empty = Map::new();
    let known = properties(schema).unwrap_or(&empty);
    members.retain(|name, value| {
        let takes_null = |property| has_allowed_type(property, value) && is_listed(property, value);
        !value.is_null()
            || required.contains(&name.as_str())
            || known.get(name).is_none_or(takes_null)
    });
    for name in required {
        let property = known.get(name);
        // Some say required of what they have a default for.
        let has_default = property.is_some_and(|property| property.get("default").is_some());
        if !members.contains_key(name) && !has_default {
            let expected = property.and_then(expected);
            let expected = expected.map(|expected| format!(" and must be {expected}"));
            let unknown = members.keys().filter(|given| !known.contains_key(*given));
            let mistyped = nearest(name, unknown.map(String::as_str));
            let mistyped = mistyped.map(|given| format!(", not {given:?}"));
            problems.push(format!(
                "the argument \"{path}{name}\" is required{}{}",
                expected.unwrap_or_default(),
                mistyped.unwrap_or_default()
            ));
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (name, value) in members.iter_mut() {
        match known.get(name) {
            Some(property) => check_value(&format!("{path}{name}"), property, value, problems),
            None if closed => {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                problems.push(match names.is_empty() {
                    true => format!("there is no argument \"{path}{name}\": none is taken"),
                    false => format!(
                        "there is no argument \"{path}{name}\", only {}",
                        names.join(", ")
                    ),
                });
            }
            None => {}
        }
    }
}

fn check_value(path: &str, schema: &Value, value: &mut Value, problems: &mut Vec<String>) {
    let takes_texts = schema["type"] == "array" && schema["items"]["type"] == "string";
    if let (Value::String(text), true) = (&value, takes_texts) {
        let items = serde_json::from_str(text).ok();
        *value = items.map_or_else(|| Value::Array(vec![value.take()]), Value::Array);
    }
    let typed = has_allowed_type(schema, value);
    if !typed || !is_listed(schema, value) {
        let expected = expected(schema).unwrap_or_else(|| "something else".to_owned());
        let found = match value {
            _ if !typed => kind(value).to_owned(),
            other => shorten(&other.to_string(), 60).into_owned(),
        };
        problems.push(format!(
            "the argument \"{path}\" must be {expected}, not {found}"
        ));
        return;
    }
    match value {
        Value::Object(members) => check_members(&format!("{path}."), schema, members, problems),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    check_value(&format!("{path}[{index}]"), item_schema, item, problems);
                }
            }
        }
        Value::Number(number) if number.is_f64() && types(schema).contains(&"integer") => {
            if let Some(whole) = number.as_f64().and_then(whole) {
                *value = Value::from(whole);
            }
        }
        _ => {}
    }
}

/// The integer that a floating-point number represents exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().and_then(whole).is_some(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // The model cannot satisfy a type that JSON Schema does not have.
        _ => true,
    }
}

fn has_allowed_type(schema: &Value, value: &Value) -> bool {
    let types = types(schema);
    types.is_empty() || types.iter().any(|name| has_type(value, name))
}

/// Whether a value is in the `enum` of a schema, if it has one.
fn is_listed(schema: &Value, value: &Value) -> bool {
    let listed = schema["enum"].as_array();
    listed.is_none_or(|values| values.contains(value))
}

/// What a schema expects, in words; None when that is not simple.
fn expected(schema: &Value) -> Option<String> {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return Some(format!("one of {}", shorten(&values.join(", "), 300)));
    }
    let names: Vec<&str> = types(schema)
        .into_iter()
        .map(|name| match name {
            "string" => "a string",
            "number" => "a number",
            "integer" => "an integer",
            "boolean" => "a boolean",
            "array" => "an array",
            "object" => "an object",
            other => other,
        })
        .collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

/// What a value is called in an error message.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
