//! A validator of JSON Schema (draft 2020-12), for the keywords that Hearth's schemas use.

use std::sync::LazyLock;

use serde_json::Value;

/// The schema of what goes over the wire.
pub static PROTOCOL: LazyLock<Schema> = LazyLock::new(|| Schema {
    document: protocol::json_schema(),
    is_strict: true,
});

/// A schema, and whether objects may have only the properties that it lists.
pub struct Schema {
    pub document: Value,
    pub is_strict: bool,
}

impl Schema {
    /// What is wrong with a request, which may say of a field that it has none.
    pub fn request(&self, command: &str, request: &Value) -> Vec<String> {
        let schema = &self.document["commands"][command]["request"];
        let mut request = request.clone();
        if let Some(members) = request.as_object_mut() {
            members.retain(|_, member| !member.is_null());
        }
        self.problems(command, schema, &request)
    }

    /// What is wrong with the body of a webhook callback.
    pub fn callback(&self, body: &Value) -> Vec<String> {
        let kind = if body["status"] == "error" {
            "failure"
        } else {
            "callback"
        };
        self.problems(kind, &self.document["webhook"][kind], body)
    }

    /// What is wrong with the data of a command's response.
    pub fn response(&self, command: &str, data: &Value) -> Vec<String> {
        let schema = &self.document["commands"][command]["response"];
        self.problems(command, schema, data)
    }

    /// What is wrong with an event.
    pub fn event(&self, event: &Value) -> Vec<String> {
        let name = event["event"].as_str().unwrap_or_default();
        match &self.document["events"][name] {
            Value::Null => vec![format!("there is no event {event}")],
            schema => self.problems(name, schema, event),
        }
    }

    /// What is wrong with a value at `path`.
    pub fn problems(&self, path: &str, schema: &Value, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(path, schema, value, &mut problems);
        problems
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        self.problems("", schema, value).is_empty()
    }

    fn check(&self, path: &str, schema: &Value, value: &Value, problems: &mut Vec<String>) {
        let Some(keywords) = schema.as_object() else {
            return problems.extend((schema == false).then(|| format!("{path} is not known")));
        };
        let members = || value.as_object().into_iter().flatten();
        for (keyword, wanted) in keywords {
            let number = wanted.as_f64().unwrap_or_default();
            let length = || value.as_str().map(|text| text.chars().count() as f64);
            let is_right = match keyword.as_str() {
                "$ref" => {
                    let to = wanted.as_str().unwrap().trim_start_matches('#');
                    let referred = self.document.pointer(to);
                    let referred = referred.unwrap_or_else(|| panic!("{wanted} leads nowhere"));
                    self.check(path, referred, value, problems);
                    true
                }
                "type" => match wanted {
                    Value::Array(types) => types.iter().any(|one| has_type(value, one)),
                    one => has_type(value, one),
                },
                "const" => value == wanted,
                "enum" => wanted.as_array().unwrap().contains(value),
                "anyOf" => {
                    let mut ways = wanted.as_array().unwrap().iter();
                    ways.any(|way| self.fits(way, value))
                }
                "minimum" => value.as_f64().is_none_or(|value| value >= number),
                "maximum" => value.as_f64().is_none_or(|value| value <= number),
                "minLength" => length().is_none_or(|length| length >= number),
                "maxLength" => length().is_none_or(|length| length <= number),
                "minItems" => value
                    .as_array()
                    .is_none_or(|all| all.len() as f64 >= number),
                "maxItems" => value
                    .as_array()
                    .is_none_or(|all| all.len() as f64 <= number),
                "required" => {
                    let mut names = wanted.as_array().unwrap().iter();
                    let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                    !value.is_object() || names.all(has)
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(&format!("{path}[{index}]"), wanted, item, problems);
                    }
                    true
                }
                "properties" => {
                    for (name, member) in members() {
                        let inner = format!("{path}.{name}");
                        let others = keywords.get("additionalProperties");
                        match (wanted.get(name), others) {
                            (Some(schema), _) | (None, Some(schema)) if !is_comment(name) => {
                                self.check(&inner, schema, member, problems);
                            }
                            (None, None) if self.is_strict => {
                                problems.push(format!("{inner} is not in the schema"));
                            }
                            _ => {}
                        }
                    }
                    true
                }
                "additionalProperties" if !keywords.contains_key("properties") => {
                    for (name, member) in members().filter(|(name, _)| !is_comment(name)) {
                        self.check(&format!("{path}.{name}"), wanted, member, problems);
                    }
                    true
                }
                // Only beginnings are used.
                "pattern" => {
                    let start = wanted.as_str().unwrap().replace(['^', '\\'], "");
                    value.as_str().is_none_or(|text| text.starts_with(&start))
                }
                "$schema"
                | "$defs"
                | "title"
                | "description"
                | "default"
                | "format"
                | "additionalProperties"
                | "patternProperties" => true,
                other => panic!("the validator does not know {other:?}"),
            };
            if !is_right {
                problems.push(format!("{path}: {value} does not fit {keyword} {wanted}"));
            }
        }
    }
}

/// Whether a key of the configuration is a comment, which `patternProperties` allows.
fn is_comment(name: &str) -> bool {
    name.starts_with(['_', '$']) || name == "//"
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}
