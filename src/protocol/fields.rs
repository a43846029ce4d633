//! Reads the members of a JSON object one by one, so that every error names
//! the member, what it must be and what it was.

use serde_json::{Map, Value, json};

use crate::schema::{Description, sentence};
use base::error::{Error, Result, json_problem};

/// The members of one request or body.
///
/// A reader also says what it asks for: where `Fields::describe` calls it, nothing is
/// read, and each member that it takes becomes a property of the schema.
#[derive(Debug, Default)]
pub struct Fields {
    members: Map<String, Value>,
    description: Option<Description>,
}

/// A value's JSON type, for error messages.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Fields {
    /// Parses a text that must be one JSON object. Nesting is limited to 128
    /// levels by the parser.
    ///
    /// # Errors
    /// `invalid_request` with what is wrong, the line and the column.
    pub fn parse(text: &str) -> Result<Fields> {
        Fields::parse_as("the message", text)
    }

    /// The same, where the text is called `subject` in errors.
    ///
    /// # Errors
    /// As [`Fields::parse`].
    pub fn parse_as(subject: &str, text: &str) -> Result<Fields> {
        match serde_json::from_str(text) {
            Ok(value) => Fields::of_value(subject, value),
            Err(error) => Err(Error::invalid_request(format!(
                "{subject} is not valid JSON: {}",
                json_problem(&error)
            ))),
        }
    }

    fn of(members: Map<String, Value>) -> Fields {
        Fields {
            members,
            description: None,
        }
    }

    /// The fields of a value, which must be an object.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn of_value(subject: &str, value: Value) -> Result<Fields> {
        match value {
            Value::Object(members) => Ok(Fields::of(members)),
            other => Err(Error::invalid_request(format!(
                "{subject} must be a JSON object, not {}",
                json_type(&other)
            ))),
        }
    }

    /// Adds what a reader of the member `name` asks for to the schema.
    pub(crate) fn describe(
        &mut self,
        name: &str,
        documentation: &str,
        read: impl FnOnce(&mut Fields),
    ) {
        self.description.get_or_insert_default();
        read(self);
        if let Some(schema) = self.property(name) {
            schema["description"] = json!(sentence(documentation));
        }
    }

    /// The schema of all members that were described.
    pub(crate) fn into_schema(self) -> Value {
        json!(self.description.unwrap_or_default())
    }

    fn property(&mut self, name: &str) -> Option<&mut Value> {
        self.description.as_mut()?.properties.get_mut(name)
    }

    /// Sets a keyword in the schema of a member.
    pub(crate) fn restrict(&mut self, name: &str, keyword: &str, value: Value) {
        if let Some(schema) = self.property(name) {
            schema[keyword] = value;
        }
    }

    /// The member as it is, if it is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// Takes a member out, whose schema this is; absent and null are the same.
    pub(crate) fn take(&mut self, name: &str, schema: impl FnOnce() -> Value) -> Option<Value> {
        if let Some(description) = &mut self.description {
            description.properties.insert(name.to_owned(), schema());
        }
        self.members.remove(name).filter(|value| !value.is_null())
    }

    /// The error of a member that is absent.
    fn missing(&mut self, name: &str, expected: &str) -> Error {
        if let Some(description) = &mut self.description {
            description.required.push(name.to_owned());
        }
        Error::invalid_request(format!("\"{name}\" is required and must be {expected}"))
    }

    /// A string that must be there.
    ///
    /// # Errors
    /// `invalid_request` when it is absent or something else.
    pub fn string(&mut self, name: &str) -> Result<String> {
        self.optional_string(name)?
            .ok_or_else(|| self.missing(name, "a string"))
    }

    /// A string that may be absent.
    ///
    /// # Errors
    /// `invalid_request` when it is something else.
    pub fn optional_string(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name, || json!({ "type": "string" })) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(mistyped(name, "a string", &other)),
        }
    }

    /// A boolean that may be absent.
    ///
    /// # Errors
    /// `invalid_request` when it is something else.
    pub fn optional_bool(&mut self, name: &str) -> Result<Option<bool>> {
        match self.take(name, || json!({ "type": "boolean" })) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(mistyped(name, "a boolean", &other)),
        }
    }

    /// A whole number in `range` that may be absent.
    ///
    /// # Errors
    /// `invalid_request` when it is something else or out of range.
    pub fn optional_integer(
        &mut self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let expected = || match *range.end() {
            u64::MAX => format!("an integer of at least {}", range.start()),
            end => format!("an integer from {} to {end}", range.start()),
        };
        let schema = || {
            let mut schema = json!({ "type": "integer", "minimum": range.start() });
            if *range.end() != u64::MAX {
                schema["maximum"] = json!(range.end());
            }
            schema
        };
        match self.take(name, schema) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|number| range.contains(number)) {
                Some(number) => Ok(Some(number)),
                None if value.is_number() => Err(Error::invalid_request(format!(
                    "\"{name}\" must be {}, not {value}",
                    expected()
                ))),
                None => Err(mistyped(name, &expected(), &value)),
            },
        }
    }

    /// A whole number in `range` that must be there.
    ///
    /// # Errors
    /// `invalid_request` when it is absent, something else or out of range.
    pub fn integer(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        self.optional_integer(name, range)?
            .ok_or_else(|| self.missing(name, "an integer"))
    }

    /// An object that must be there.
    ///
    /// # Errors
    /// `invalid_request` when it is absent or something else.
    pub fn object(&mut self, name: &str) -> Result<Map<String, Value>> {
        match self.take(name, || json!({ "type": "object" })) {
            None => Err(self.missing(name, "an object")),
            Some(Value::Object(members)) => Ok(members),
            Some(other) => Err(mistyped(name, "an object", &other)),
        }
    }

    /// A list of objects that may be absent.
    ///
    /// # Errors
    /// `invalid_request` when it is something else.
    pub fn optional_objects(&mut self, name: &str) -> Result<Option<Vec<Fields>>> {
        self.optional_items(name, "object", |item| match item {
            Value::Object(members) => Ok(Fields::of(members)),
            other => Err(other),
        })
    }

    /// A list of strings that may be absent.
    ///
    /// # Errors
    /// `invalid_request` when it is something else.
    pub fn optional_strings(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        self.optional_items(name, "string", |item| match item {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    /// A list of values of one JSON type that may be absent; `read` gives back an item of
    /// another type.
    fn optional_items<T>(
        &mut self,
        name: &str,
        item: &str,
        read: fn(Value) -> std::result::Result<T, Value>,
    ) -> Result<Option<Vec<T>>> {
        let wrong = |found| mistyped(name, &format!("an array of {item}s"), &found);
        let schema = || json!({ "type": "array", "items": { "type": item } });
        match self.take(name, schema) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                let items = items.into_iter().map(|item| read(item).map_err(wrong));
                items.collect::<Result<_>>().map(Some)
            }
            Some(other) => Err(wrong(other)),
        }
    }
}

fn mistyped(name: &str, expected: &str, found: &Value) -> Error {
    Error::invalid_request(format!(
        "\"{name}\" must be {expected}, not {}",
        json_type(found)
    ))
}
