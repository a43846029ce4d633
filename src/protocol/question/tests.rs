use base::testing::rows;

use super::*;

fn asked(fields: &str) -> Result<Question, String> {
    let schema = format!(r#"{{"type": "object", "properties": {fields}, "required": ["must"]}}"#);
    let schema: Value = schema.parse().unwrap();
    Question::read("home", &json!({"message": "m", "requestedSchema": schema}))
}

#[test]
fn a_form_is_written_in_one_way() {
    let table = r#"
        {"type": "string"}                                    | {"type":"string","minLength":0,"maxLength":8000}
        {"type": ["string", "null"], "maxLength": 99999}      | {"type":"string","minLength":0,"maxLength":8000}
        {"anyOf": [{"type": "null"}, {"type": "string"}], "title": " T "} | {"type":"string","minLength":0,"maxLength":8000,"title":"T"}
        {"type": "string", "format": "email", "minLength": 3, "maxLength": 9, "default": "a@b"} | {"type":"string","minLength":3,"maxLength":9,"format":"email","default":"a@b"}
        {"type": "string", "format": "hostname", "default": 7} | {"type":"string","minLength":0,"maxLength":8000}
        {"type": "number", "minimum": 0.5, "maximum": 100, "default": 200} | {"type":"number","minimum":0.5,"maximum":100}
        {"type": "integer", "default": 3.0, "description": "D"} | {"type":"integer","description":"D","default":3}
        {"type": "boolean", "default": false}                 | {"type":"boolean","default":false}
        {"type": "string", "enum": ["r", "g"], "enumNames": ["Red"], "default": "g"} | {"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"g"}],"default":"g"}
        {"type": "string", "oneOf": [{"const": "r", "title": "Red"}], "default": "b"} | {"type":"string","oneOf":[{"const":"r","title":"Red"}]}
        {"type": "string", "const": "r"}                      | {"type":"string","oneOf":[{"const":"r","title":"r"}]}
        {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}, "maxItems": 9, "default": ["g"]} | {"type":"array","minItems":0,"maxItems":2,"items":{"anyOf":[{"const":"r","title":"r"},{"const":"g","title":"g"}]},"default":["g"]}
        {"type": "object"}                                    | it is neither text, a number, yes or no, nor a choice
        {"$ref": "x"}                                         | it is neither text, a number, yes or no, nor a choice
        {"type": "array", "items": {"type": "string"}}        | only a list of options may be an array
        {"type": "string", "enum": [1, 2]}                    | its options are not all texts
        {"type": "string", "enum": []}                        | it needs 1 to 100 options
        {"type": "string", "minLength": 9, "maxLength": 3}    | its limits leave nothing
        {"type": "integer", "minimum": 9, "maximum": 3}       | its limits leave nothing
        {"type": "integer", "minimum": 1.2, "maximum": 1.8}   | its limits leave nothing
        {"type": "string", "enum": ["r", "g", "r"]}           | two of its options are the same
        {"type": "string", "enum": ["r", "g"], "enumNames": ["A", "A"]} | two of its options are the same
        {"type": "string", "title": "LONG"}                   | its title is longer than 200 characters
    "#;
    for [schema, expected] in rows(table) {
        let schema = schema.replace("LONG", &"x".repeat(201));
        let found = asked(&format!(r#"{{"a": {schema}}}"#));
        let found = match found {
            Ok(question) => {
                let view = question.view();
                assert_eq!(
                    Question::of_view(&view).as_ref(),
                    Some(&question),
                    "{schema}"
                );
                view["requestedSchema"]["properties"]["a"].to_string()
            }
            Err(why) => why.replace("the field \"a\" cannot be asked for: ", ""),
        };
        assert_eq!(found, expected, "{schema}");
    }
}

#[test]
fn a_request_has_bounds() {
    let schema = json!({"type": "object", "properties": {}});
    let many: Map<String, Value> = (0..=MOST_FIELDS)
        .map(|number| (number.to_string(), json!({"type": "boolean"})))
        .collect();
    for (params, why) in [
        (json!({}), "\"message\" is missing"),
        (
            json!({"message": " ", "requestedSchema": schema}),
            "1 to 4000 characters",
        ),
        (
            json!({"message": "x".repeat(4001), "requestedSchema": schema}),
            "1 to 4000 characters",
        ),
        (
            json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"": {"type": "boolean"}}}}),
            "it has no name",
        ),
        (json!({"message": "m"}), "must be of the type \"object\""),
        (
            json!({"message": "m", "requestedSchema": {"type": "string"}}),
            "must be of the type",
        ),
        (
            json!({"message": "m", "requestedSchema": {"type": "object", "properties": many}}),
            "more than 32 fields",
        ),
    ] {
        let found = Question::read("home", &params).unwrap_err();
        assert!(found.contains(why), "{found}");
    }
    let fields = json!({"x".repeat(60_000): {"type": "boolean"}});
    let long = json!({"message": "m", "requestedSchema": {"type": "object", "properties": fields}});
    let found = Question::read("home", &long).unwrap_err();
    assert!(found.len() < 250, "{}", found.len());
    let plain = Question::read("home", &json!({"message": "m", "requestedSchema": schema}));
    assert_eq!(plain.unwrap().check(&Map::new()), Ok(Map::new()));
}

#[test]
fn an_answer_is_what_was_asked_for() {
    let question = asked(
        r#"{
            "must": {"type": "string", "minLength": 1, "maxLength": 3},
            "note": {"type": "string", "maxLength": 3},
            "mail": {"type": "string", "format": "email", "title": "Your mail"},
            "page": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "time": {"type": "string", "format": "date-time"},
            "size": {"type": "number", "minimum": 0.5, "maximum": 2},
            "count": {"type": "integer"},
            "sure": {"type": "boolean"},
            "one": {"type": "string", "enum": ["r", "g"]},
            "some": {"type": "array", "items": {"enum": ["r", "g", "b"]}, "minItems": 1, "maxItems": 2}
        }"#,
    )
    .unwrap();
    let table = r#"
        {}                                      | "must" is missing
        {"must": null}                          | "must" is missing
        {"must": ""}                            | "must" must have 1 to 3 characters
        {"must": "äöüß"}                        | "must" must have 1 to 3 characters
        {"must": "ä", "note": "long"}           | "note" may have at most 3 characters
        {"must": 7}                             | "must" must be text
        {"must": "äöü", "x": 1}                 | the question has no field "x"
        {"must": "a", "mail": "a@b"}            | -
        {"must": "a", "mail": "a"}              | "Your mail" must be an e-mail address
        {"must": "a", "mail": "a@b@c"}          | "Your mail" must be an e-mail address
        {"must": "a", "mail": "a @b"}           | "Your mail" must be an e-mail address
        {"must": "a", "page": "https://a.b/c"}  | -
        {"must": "a", "page": "mailto:a@b"}     | -
        {"must": "a", "page": "a.b/c"}          | "page" must be an address such as https://example.org
        {"must": "a", "day": "2024-02-29"}      | -
        {"must": "a", "day": "2026-02-29"}      | "day" must be a date such as 2026-07-28
        {"must": "a", "day": "2026-13-01"}      | "day" must be a date such as 2026-07-28
        {"must": "a", "time": "2026-07-28T12:00:00Z"}           | -
        {"must": "a", "time": "2026-07-28t12:00:00.25+02:00"}   | -
        {"must": "a", "time": "2026-07-28T12:00"}               | "time" must be a time such as 2026-07-28T12:00:00Z
        {"must": "a", "time": "2026-07-28T25:00:00Z"}           | "time" must be a time such as 2026-07-28T12:00:00Z
        {"must": "a", "size": 0.5}              | -
        {"must": "a", "size": 0.25}             | "size" must be at least 0.5
        {"must": "a", "size": 3}                | "size" must be at most 2
        {"must": "a", "size": "1"}              | "size" must be a number
        {"must": "a", "count": -7}              | -
        {"must": "a", "count": 1.5}             | "count" must be a whole number
        {"must": "a", "sure": true}             | -
        {"must": "a", "sure": "yes"}            | "sure" must be true or false
        {"must": "a", "one": "g"}               | -
        {"must": "a", "one": "G"}               | "one" must be one of its options
        {"must": "a", "some": ["r", "b"]}       | -
        {"must": "a", "some": []}               | "some" needs 1 to 2 of its options
        {"must": "a", "some": ["r", "r"]}       | "some" must be among its options, each once
        {"must": "a", "some": ["x"]}            | "some" must be among its options, each once
        {"must": "a", "some": "r"}              | "some" must be a list
    "#;
    for [content, expected] in rows(table) {
        let content: Map<String, Value> = serde_json::from_str(content).unwrap();
        let found = question.check(&content);
        let expected = match expected {
            "-" => Ok(content),
            why => Err(why.to_owned()),
        };
        assert_eq!(found, expected);
    }
}
