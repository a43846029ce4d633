use serde_json::json;

use super::*;
use base::testing::rows;

fn check(schema: &Value, arguments: &str) -> Result<Value, String> {
    let spec = ToolSpec {
        name: "test".to_owned(),
        description: String::new(),
        parameters: schema.clone().into(),
    };
    check_arguments(&spec, arguments).map(Value::Object)
}

fn light() -> Value {
    json!({
        "type": "object",
        "properties": {
            "room": {"type": "string"},
            "level": {"type": "integer"},
            "warmth": {"type": "number"},
            "on": {"type": "boolean"},
            "colour": {"enum": ["red", "blue"]},
            "until": {"type": ["string", "null"]},
            "scenes": {"type": "array", "items": {"type": "string"}},
            "fade": {
                "type": "object",
                "properties": {"seconds": {"type": "number"}},
                "required": ["seconds"],
            },
            "anything": {},
            "speed": {"type": "integer", "default": 3},
        },
        // Some say required of what has a default.
        "required": ["room", "speed"],
    })
}

#[test]
fn what_fits_the_schema_passes() {
    for arguments in [
        json!({"room": "a"}),
        json!({"room": "a", "extra": [1]}),
        json!({"room": "", "level": 3}),
        json!({"room": "a", "warmth": 3}),
        json!({"room": "a", "warmth": 3.5}),
        json!({"room": "a", "on": false}),
        json!({"room": "a", "colour": "red"}),
        json!({"room": "a", "until": null}),
        json!({"room": "a", "until": "x"}),
        json!({"room": "a", "scenes": []}),
        json!({"room": "a", "scenes": ["x"]}),
        json!({"room": "a", "fade": {"seconds": 1}}),
        json!({"room": "a", "anything": null}),
    ] {
        let text = format!(" {arguments} ");
        assert_eq!(check(&light(), &text), Ok(arguments));
    }
    for (arguments, taken) in [
        (
            r#"{"room":"a","level":3.0}"#,
            json!({"room": "a", "level": 3}),
        ),
        (r#"{"room":"a","on":null}"#, json!({"room": "a"})),
        (
            r#"{"room":"a","scenes":"dusk, [dawn]"}"#,
            json!({"room": "a", "scenes": ["dusk, [dawn]"]}),
        ),
        (
            r#"{"room":"a","scenes":"[\"dusk\", \"dawn\"]"}"#,
            json!({"room": "a", "scenes": ["dusk", "dawn"]}),
        ),
        (r#"{"room":"a","colour":null}"#, json!({"room": "a"})),
    ] {
        assert_eq!(check(&light(), arguments), Ok(taken), "{arguments}");
    }
}

#[test]
fn what_does_not_fit_is_explained() {
    let table = r#"
                                      | the argument "room" is required and must be a string
        {}                            | the argument "room" is required and must be a string
        []                            | the arguments must be a JSON object, not an array
        null                          | the arguments must be a JSON object, not null
        {"room":null}                 | the argument "room" must be a string, not null
        {"room":7}                    | the argument "room" must be a string, not a number
        {"room":"a","level":1.5}      | the argument "level" must be an integer, not a number with a fraction
        {"room":"a","level":"1"}      | the argument "level" must be an integer, not a string
        {"room":"a","on":"yes"}       | the argument "on" must be a boolean, not a string
        {"room":"a","colour":"green"} | the argument "colour" must be one of "red", "blue", not "green"
        {"room":"a","until":1}        | the argument "until" must be a string or null, not a number
        {"room":"a","scenes":["x",1]} | the argument "scenes[1]" must be a string, not a number
        {"room":"a","fade":{}}        | the argument "fade.seconds" is required and must be a number
        {"room":"a","scenes":"[1]"}   | the argument "scenes[0]" must be a string, not a number
        {"rom":"a"}                   | the argument "room" is required and must be a string, not "rom"
        {"level":true,"on":[]}        | the argument "room" is required and must be a string; the argument "level" must be an integer, not a boolean; the argument "on" must be a boolean, not an array
    "#;
    for [arguments, problem] in rows(table) {
        let why = check(&light(), arguments).unwrap_err();
        let (found, example) = why.split_once(". For example: ").unwrap();
        assert_eq!(found, problem, "{arguments}");
        // What is shown is taken.
        assert!(check(&light(), example).is_ok(), "{example}");
    }
    let broken = check(&light(), r#"{"room": "a"#).unwrap_err();
    assert!(
        broken.starts_with("the arguments are not valid JSON: "),
        "{broken}"
    );
}

#[test]
fn an_example_keeps_what_fits() {
    let why = check(
        &light(),
        r#"{"level":"1","on":true,"colour":"green","x":1}"#,
    )
    .unwrap_err();
    let (_, example) = why.split_once(". For example: ").unwrap();
    let example: Value = serde_json::from_str(example).unwrap();
    let expected = json!({"level": 1, "on": true, "colour": "red", "room": "...", "speed": 3});
    assert_eq!(example, expected);
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest() {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: light().into(),
    };
    let offered = [tool("schedule"), tool("web_fetch"), tool("get_time")];
    for (name, near) in [
        (
            "shedule",
            "\"schedule\", for example with {\"room\":\"...\",\"speed\":3}",
        ),
        ("functions.web_fetch", "The nearest is \"web_fetch\""),
        ("mcp__time__get_time", "The nearest is \"get_time\""),
        ("paint", ", only schedule, web_fetch, get_time"),
    ] {
        let why = unknown_tool(name, &offered);
        assert!(why.contains(near), "{why}");
    }
}

#[test]
fn unknown_members_pass_unless_the_schema_is_closed() {
    let open = json!({"type": "object", "properties": {"a": {}}});
    assert!(check(&open, r#"{"b":1}"#).is_ok());
    let closed = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    assert_eq!(
        check(&closed, r#"{"b":1}"#).unwrap_err(),
        r#"there is no argument "b", only a. For example: {}"#
    );
    let none = json!({"type": "object", "additionalProperties": false});
    assert_eq!(check(&none, ""), Ok(json!({})));
    assert!(check(&none, r#"{"b":1}"#).is_err());
}

#[test]
fn a_schema_that_says_nothing_refuses_nothing() {
    for schema in [
        json!({}),
        json!(true),
        json!({"properties": 1, "required": "x"}),
    ] {
        assert!(check(&schema, r#"{"a":null}"#).is_ok(), "{schema}");
    }
}

#[test]
fn types_are_named_for_people() {
    let schema = json!({"properties": {
        "a": {"type": "string"},
        "b": {"type": ["string", "null"]},
        "c": {},
        "d": {"enum": ["x", "y"]},
        "e": {"enum": ["x", 1]},
        "f": true,
        "g": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
        "h": {"oneOf": [{"enum": ["x"]}, {"type": "string"}]},
        "i": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/A"}]},
        "j": {"anyOf": []},
    }});
    assert_eq!(
        Value::Object(parameter_types(&schema)),
        json!({
            "a": "string", "b": "string|null", "c": "any",
            "d": "string", "e": "any", "f": "any",
            "g": "string|null", "h": "string", "i": "any", "j": "any",
        })
    );
    assert!(parameter_types(&json!({})).is_empty());
}
