//! Templates of custom HTTP tools: `{name}` is replaced by the argument of that
//! name. Braces around anything but a parameter are kept, so that templates may
//! contain JSON. Inserted text is not expanded again.

use base::url::percent_encode;
use serde_json::{Map, Value};

/// The values for the templates of one run.
pub(super) struct Values<'a> {
    /// The parameters that the tool declares. A template is the owner's: an argument
    /// that they did not declare must not replace what happens to be in braces.
    pub(super) parameters: Option<&'a Map<String, Value>>,
    /// The arguments that this run got.
    pub(super) arguments: &'a Map<String, Value>,
}

impl<'a> Values<'a> {
    fn is_parameter(&self, name: &str) -> bool {
        self.parameters
            .is_some_and(|known| known.contains_key(name))
    }

    /// Replaces every `{name}` by its argument passed through `encode`: a
    /// string as it is, anything else as JSON, an absent one as nothing.
    pub(super) fn expand(&self, template: &str, encode: fn(&str) -> String) -> String {
        let mut text = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            text.push_str(&rest[..open]);
            rest = &rest[open..];
            let name = rest[1..].split_once('}').map(|(name, _)| name);
            if let Some(name) = name.filter(|name| self.is_parameter(name)) {
                match self.arguments.get(name) {
                    None => {}
                    Some(Value::String(value)) => text.push_str(&encode(value)),
                    Some(value) => text.push_str(&encode(&value.to_string())),
                }
                rest = &rest[name.len() + 2..];
            } else {
                text.push('{');
                rest = &rest[1..];
            }
        }
        text.push_str(rest);
        text
    }

    /// Expands all strings of a JSON value. A string that is wholly `{name}`
    /// becomes the argument with its type; when that is absent, a member of an
    /// object is left out and anything else is null.
    pub(super) fn expand_json(&self, template: &Value) -> Value {
        self.expand_present(template).unwrap_or(Value::Null)
    }

    fn expand_present(&self, template: &Value) -> Option<Value> {
        Some(match template {
            Value::String(text) => match self.whole(text) {
                Some(name) => self.arguments.get(name)?.clone(),
                None => Value::String(self.expand(text, str::to_owned)),
            },
            Value::Array(items) => items.iter().map(|item| self.expand_json(item)).collect(),
            Value::Object(members) => members
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), self.expand_present(value)?)))
                .collect(),
            other => other.clone(),
        })
    }

    /// The parameter that a template wholly consists of.
    fn whole<'t>(&self, template: &'t str) -> Option<&'t str> {
        template
            .strip_prefix('{')?
            .strip_suffix('}')
            .filter(|name| self.is_parameter(name))
    }
}

/// Percent-encodes all but the unreserved characters (RFC 3986 section 2.3),
/// so that a value cannot change the structure of a URL.
pub(super) fn encode(value: &str) -> String {
    percent_encode(value, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_values<T>(test: impl FnOnce(&Values<'_>) -> T) -> T {
        let parameters = json!({"room": {}, "level": {}, "list": {}, "absent": {}});
        let arguments = json!({"room": "a b/{level}", "level": 7, "list": [1, "x"], "more": "!"});
        test(&Values {
            parameters: parameters.as_object(),
            arguments: arguments.as_object().unwrap(),
        })
    }

    #[test]
    fn placeholders_of_a_text_are_replaced_once() {
        with_values(|values| {
            for (template, plain, encoded) in [
                ("", "", ""),
                ("{room}", "a b/{level}", "a%20b%2F%7Blevel%7D"),
                ("x{level}y{level}", "x7y7", "x7y7"),
                ("{list}", r#"[1,"x"]"#, "%5B1%2C%22x%22%5D"),
                ("<{absent}>", "<>", "<>"),
                ("{unknown}", "{unknown}", "{unknown}"),
                ("{more}", "{more}", "{more}"),
                (r#"{"a":{level}}"#, r#"{"a":7}"#, r#"{"a":7}"#),
                ("{{level}}", "{7}", "{7}"),
                ("{level", "{level", "{level"),
                ("ü{level}", "ü7", "ü7"),
            ] {
                assert_eq!(values.expand(template, str::to_owned), plain, "{template}");
                assert_eq!(values.expand(template, encode), encoded, "{template}");
            }
        });
    }

    #[test]
    fn placeholders_of_a_json_value_keep_their_type() {
        with_values(|values| {
            for (template, expanded) in [
                (json!("{level}"), json!(7)),
                (json!("{level}%"), json!("7%")),
                (json!("{absent}"), Value::Null),
                (json!("{more}"), json!("{more}")),
                (json!(["{absent}", "{list}"]), json!([null, [1, "x"]])),
                (
                    json!({"a": "{level}", "b": "{absent}", "c": {"d": "{room}"}, "e": 1}),
                    json!({"a": 7, "c": {"d": "a b/{level}"}, "e": 1}),
                ),
                (json!({"{level}": "x"}), json!({"{level}": "x"})),
            ] {
                assert_eq!(values.expand_json(&template), expanded, "{template}");
            }
        });
    }

    #[test]
    fn encoding_leaves_no_character_with_a_meaning_in_urls() {
        for (value, encoded) in [
            ("az-AZ_0.9~", "az-AZ_0.9~"),
            ("/?#&=%+:@", "%2F%3F%23%26%3D%25%2B%3A%40"),
            ("ü\r\n", "%C3%BC%0D%0A"),
        ] {
            assert_eq!(encode(value), encoded);
        }
    }
}
