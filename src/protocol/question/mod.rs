//! What a tool asks a person while it runs: a message, and a form of flat fields, as in
//! `elicitation/create` of the Model Context Protocol (revisions 2025-06-18 and 2025-11-25).
//! It says what of JSON Schema a form may have; [`Question::view`] writes it in one way.

mod answer;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

/// Most fields of one form, and options of one field.
const MOST_FIELDS: usize = 32;
const MOST_OPTIONS: usize = 100;
/// Longest message, in characters.
const MESSAGE_CHARACTERS: usize = 4_000;
/// Longest name, title and description of a field, in characters.
const NAME_CHARACTERS: usize = 100;
const TITLE_CHARACTERS: usize = 200;
const DESCRIPTION_CHARACTERS: usize = 1_000;
/// Longest text of an answer, in characters, where the field has no limit of its own.
const TEXT_CHARACTERS: usize = 8_000;

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The MCP server that asks, as the configuration names it.
    pub server: String,
    /// Its words.
    pub message: String,
    /// What is asked for; nothing where a yes is enough.
    pub fields: Vec<Field>,
}

/// One field of the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// What to call it, and what it is for.
    pub title: Option<String>,
    /// Explains it.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub is_required: bool,
    /// What it holds at first.
    pub default: Option<Value>,
    /// What it takes.
    pub kind: FieldKind,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Text of so many characters.
    Text {
        /// What it must look like.
        format: Option<Format>,
        /// Fewest characters.
        least: usize,
        /// Most characters.
        most: usize,
    },
    /// A number.
    Number {
        /// Whether it has no fraction.
        is_whole: bool,
        /// The smallest.
        least: Option<f64>,
        /// The largest.
        most: Option<f64>,
    },
    /// Yes or no.
    Boolean,
    /// One of these.
    Choice(Vec<Choice>),
    /// So many of these.
    Choices {
        /// All that there are.
        options: Vec<Choice>,
        /// Fewest.
        least: usize,
        /// Most.
        most: usize,
    },
}

/// What a text must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An address for mail.
    Email,
    /// An address with a scheme.
    Uri,
    /// `2026-07-28`.
    Date,
    /// `2026-07-28T12:00:00Z`.
    DateTime,
}

/// One option of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// In the answer.
    pub value: String,
    /// For a person.
    pub title: String,
}

impl Format {
    const ALL: [(&str, Format); 4] = [
        ("email", Format::Email),
        ("uri", Format::Uri),
        ("date", Format::Date),
        ("date-time", Format::DateTime),
    ];

    /// Its name in a schema.
    pub fn as_str(self) -> &'static str {
        let found = Format::ALL.iter().find(|(_, format)| *format == self);
        found.map_or("", |(name, _)| name)
    }

    fn of(name: &str) -> Option<Format> {
        let found = Format::ALL.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

impl Field {
    /// What a person calls it.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

impl Question {
    /// Reads the parameters of a server's request.
    ///
    /// # Errors
    /// Why it cannot be asked, in words for the server.
    pub fn read(server: &str, params: &Value) -> Result<Question, String> {
        let message = params.get("message").and_then(Value::as_str);
        let message = message.ok_or("\"message\" is missing")?.trim();
        if message.is_empty() || message.chars().count() > MESSAGE_CHARACTERS {
            return Err(format!(
                "\"message\" must have 1 to {MESSAGE_CHARACTERS} characters"
            ));
        }
        let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = match schema.get("type").and_then(Value::as_str) {
            Some("object") => properties,
            _ => return Err("\"requestedSchema\" must be of the type \"object\"".to_owned()),
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &String| {
            let mut names = required.into_iter().flatten();
            names.any(|one| one.as_str() == Some(name))
        };
        let properties = properties.into_iter().flatten();
        if properties.clone().count() > MOST_FIELDS {
            return Err(format!("more than {MOST_FIELDS} fields are asked for"));
        }
        let fields = properties
            .map(|(name, schema)| {
                field(name, schema, is_required(name)).map_err(|why| {
                    let name: String = name.chars().take(NAME_CHARACTERS).collect();
                    format!("the field {name:?} cannot be asked for: {why}")
                })
            })
            .collect::<Result<Vec<Field>, String>>()?;
        Ok(Question {
            server: server.to_owned(),
            message: message.to_owned(),
            fields,
        })
    }

    /// Reads what [`Question::view`] wrote.
    pub fn of_view(view: &Value) -> Option<Question> {
        Question::read(view.get("server")?.as_str()?, view).ok()
    }

    /// The question as clients see it: `server`, `message` and `requestedSchema`.
    pub fn view(&self) -> Value {
        let properties = self
            .fields
            .iter()
            .map(|field| (field.name.clone(), field.schema()));
        let required = self.fields.iter().filter(|field| field.is_required);
        let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
        json!({
            "server": self.server,
            "message": self.message,
            "requestedSchema": {
                "type": "object",
                "properties": properties.collect::<Map<String, Value>>(),
                "required": required,
            },
        })
    }
}

impl Field {
    fn schema(&self) -> Value {
        let options = |options: &[Choice]| -> Value {
            let option = |one: &Choice| json!({"const": one.value, "title": one.title});
            options.iter().map(option).collect()
        };
        let mut schema = match &self.kind {
            FieldKind::Text {
                format,
                least,
                most,
            } => {
                let mut schema = json!({"type": "string", "minLength": least, "maxLength": most});
                if let Some(format) = format {
                    schema["format"] = json!(format.as_str());
                }
                schema
            }
            FieldKind::Number {
                is_whole,
                least,
                most,
            } => {
                let name = if *is_whole { "integer" } else { "number" };
                let mut schema = json!({"type": name});
                for (name, limit) in [("minimum", least), ("maximum", most)] {
                    if let Some(limit) = limit {
                        schema[name] = answer::number(*limit);
                    }
                }
                schema
            }
            FieldKind::Boolean => json!({"type": "boolean"}),
            FieldKind::Choice(all) => json!({"type": "string", "oneOf": options(all)}),
            FieldKind::Choices {
                options: all,
                least,
                most,
            } => json!({
                "type": "array", "minItems": least, "maxItems": most,
                "items": {"anyOf": options(all)},
            }),
        };
        let more = [
            ("title", self.title.clone().map(Value::from)),
            ("description", self.description.clone().map(Value::from)),
            ("default", self.default.clone()),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                schema[name] = value;
            }
        }
        schema
    }
}

fn field(name: &str, schema: &Value, is_required: bool) -> Result<Field, String> {
    within(name, NAME_CHARACTERS, "its name")?;
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let text = |of: &str| {
        let text = schema.get(of).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let (title, description) = (text("title"), text("description"));
    within(
        title.as_deref().unwrap_or_default(),
        TITLE_CHARACTERS,
        "its title",
    )?;
    let described = description.as_deref().unwrap_or_default();
    within(described, DESCRIPTION_CHARACTERS, "its description")?;
    let mut field = Field {
        name: name.to_owned(),
        title,
        description,
        is_required,
        default: None,
        kind: kind(present(schema))?,
    };
    // One that could not be sent is none.
    let default = schema.get("default").filter(|default| !default.is_null());
    field.default = default.and_then(|default| field.check(default).ok());
    Ok(field)
}

/// The schema of a value that may be absent, as some servers write it: `anyOf` with `null`.
fn present(schema: &Value) -> &Value {
    let is_present = |one: &&Value| one.get("type").is_some_and(|kind| kind != "null");
    let any = schema.get("anyOf").and_then(Value::as_array);
    match (schema.get("type"), any) {
        (None, Some(any)) => any.iter().find(is_present).unwrap_or(schema),
        _ => schema,
    }
}

fn kind(schema: &Value) -> Result<FieldKind, String> {
    let count = |name: &str| {
        let count = schema.get(name).and_then(Value::as_u64)?;
        usize::try_from(count).ok()
    };
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let name = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().find(|name| *name != "null"),
        name => name,
    };
    let kind = match name.and_then(Value::as_str) {
        Some("string") => match options(schema)? {
            Some(options) => FieldKind::Choice(options),
            None => FieldKind::Text {
                format: schema
                    .get("format")
                    .and_then(Value::as_str)
                    .and_then(Format::of),
                least: count("minLength").unwrap_or(0),
                most: count("maxLength").map_or(TEXT_CHARACTERS, |most| most.min(TEXT_CHARACTERS)),
            },
        },
        Some(name @ ("number" | "integer")) => FieldKind::Number {
            is_whole: name == "integer",
            least: limit("minimum"),
            most: limit("maximum"),
        },
        Some("boolean") => FieldKind::Boolean,
        Some("array") => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let options = options(items)?.ok_or("only a list of options may be an array")?;
            FieldKind::Choices {
                least: count("minItems").unwrap_or(0),
                most: count("maxItems").map_or(options.len(), |most| most.min(options.len())),
                options,
            }
        }
        _ => return Err("it is neither text, a number, yes or no, nor a choice".to_owned()),
    };
    let (least, most) = match &kind {
        FieldKind::Text { least, most, .. } | FieldKind::Choices { least, most, .. } => {
            (*least as f64, *most as f64)
        }
        FieldKind::Number {
            is_whole,
            least,
            most,
        } => {
            let (least, most) = (least.unwrap_or(f64::MIN), most.unwrap_or(f64::MAX));
            match is_whole {
                true => (least.ceil(), most.floor()),
                false => (least, most),
            }
        }
        _ => return Ok(kind),
    };
    match least <= most {
        true => Ok(kind),
        false => Err("its limits leave nothing".to_owned()),
    }
}

/// The options of a schema: `enum`, with `enumNames` or without, `const`, or `oneOf` and
/// `anyOf` of constants. None if it has none.
fn options(schema: &Value) -> Result<Option<Vec<Choice>>, String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    let options: Option<Vec<Choice>> = if let Some(values) = list("enum") {
        let names = list("enumNames");
        let name = |at: usize| names.and_then(|names| text(names.get(at)?));
        let option = |(at, value): (usize, &Value)| {
            let value = text(value)?;
            Some(Choice {
                title: name(at).unwrap_or_else(|| value.clone()),
                value,
            })
        };
        values.iter().enumerate().map(option).collect()
    } else if let Some(all) = list("oneOf").or_else(|| list("anyOf")) {
        let option = |one: &Value| {
            let value = text(one.get("const")?)?;
            let title = one.get("title").and_then(text);
            Some(Choice {
                title: title.unwrap_or_else(|| value.clone()),
                value,
            })
        };
        all.iter().map(option).collect()
    } else if let Some(value) = schema.get("const") {
        text(value).map(|value| {
            vec![Choice {
                title: value.clone(),
                value,
            }]
        })
    } else {
        return Ok(None);
    };
    let options = options.ok_or("its options are not all texts")?;
    if options.is_empty() || options.len() > MOST_OPTIONS {
        return Err(format!("it needs 1 to {MOST_OPTIONS} options"));
    }
    for (at, option) in options.iter().enumerate() {
        let is_same = |one: &Choice| one.value == option.value || one.title == option.title;
        if options[..at].iter().any(is_same) {
            return Err("two of its options are the same".to_owned());
        }
        within(&option.value, TITLE_CHARACTERS, "an option")?;
        within(&option.title, TITLE_CHARACTERS, "an option")?;
    }
    Ok(Some(options))
}

fn within(text: &str, most: usize, what: &str) -> Result<(), String> {
    match text.chars().count() <= most {
        true => Ok(()),
        false => Err(format!("{what} is longer than {most} characters")),
    }
}
