//! Tools that are not good.

use super::problems::check_says;
use super::*;

#[test]
fn the_built_in_tools_that_reach_out_are_strict() {
    for (tools, says) in [
        (
            r#"{"web_fetch":true}"#,
            "\"tools.web_fetch\" must be an object",
        ),
        (
            r#"{"web_fetch":{"enabled":"on"}}"#,
            "\"tools.web_fetch.enabled\" must be true or false",
        ),
        (
            r#"{"web_fetch":{"allow":"nas.lan"}}"#,
            "\"tools.web_fetch.allow\" must be an array",
        ),
        (
            r#"{"web_fetch":{"allow":["nas.lan","192.168.1"]}}"#,
            "\"tools.web_fetch.allow[1]\" must be a host name in lower case",
        ),
        (
            r#"{"web_fetch":{"allow":["http://nas.lan"]}}"#,
            "or an address pattern",
        ),
        (
            r#"{"web_fetch":{"max_bytes":1}}"#,
            "must be an integer from 1024",
        ),
        (
            r#"{"files":{"directory":"notes"}}"#,
            "\"tools.files.directory\" must be an absolute path",
        ),
        (
            r#"{"run_command":{"timeout_seconds":0}}"#,
            "must be an integer from 1 to 3600",
        ),
        (r#"{"run_comand":{}}"#, "(did you mean \"run_command\"?)"),
    ] {
        check_says(&format!(r#"{{"tools":{tools}}}"#), says);
    }
    let tools = &config(
        r#"{"tools":{"web_fetch":{"allow":["10.0.0.0/8","nas.lan"]},"files":{"directory":"/srv/notes"}}}"#,
    )
    .tools;
    let allow = &tools.web_fetch.allow;
    for (host, address, allowed) in [
        ("x.example", "10.1.2.3", true),
        ("x.example", "192.168.1.1", false),
        ("NAS.lan.", "192.168.1.1", true),
        ("other.nas.lan", "192.168.1.1", false),
    ] {
        assert_eq!(
            allow.allows(host, address.parse().unwrap()),
            allowed,
            "{host} {address}"
        );
    }
    assert_eq!(
        tools.files.directory.as_deref(),
        Some(Path::new("/srv/notes"))
    );
    assert!(tools.web_fetch.enabled && tools.files.enabled && !tools.run_command.enabled);
    let shown = serde_json::to_value(&tools.web_fetch).unwrap();
    assert_eq!(shown["allow"], serde_json::json!(["10.0.0.0/8", "nas.lan"]));
}

#[test]
fn custom_tools_are_strict() {
    for (members, says) in [
        (
            r#""description":"d","command":["x"]"#,
            "\"tools.custom[0].name\" is required",
        ),
        (
            r#""name":"a b","description":"d","command":["x"]"#,
            "\"tools.custom[0].name\" must be a tool name",
        ),
        (
            r#""name":"recall","description":"d","command":["x"]"#,
            "is \"recall\", a built-in tool",
        ),
        (
            r#""name":"t","command":["x"]"#,
            "\"tools.custom[0].description\" is required",
        ),
        (
            r#""name":"t","description":"d""#,
            "must have either \"command\" or \"http\"; it has neither",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"http":{"url":"http://a/"}"#,
            "it has both",
        ),
        (
            r#""name":"t","description":"d","command":[]"#,
            "\"tools.custom[0].command\" must have from 1 to 1000 items, not 0",
        ),
        (
            r#""name":"t","description":"d","command":[""]"#,
            "\"tools.custom[0].command[0]\" must be a program",
        ),
        (
            r#""name":"t","description":"d","command":"ls""#,
            "\"tools.custom[0].command\" must be an array",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"directory":"bin""#,
            "must be an absolute path",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"env":{"1A":"x"}"#,
            "is not the name of an environment variable",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"http://a/"},"env":{}"#,
            "\"tools.custom[0].env\" needs \"command\"",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"https://{host}/"},"parameters":{"host":"string"}"#,
            "whose host holds no {name}",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"file:///etc/passwd"}"#,
            "must be a URL that begins with https:// or http://",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"http://a/{cty}"},"parameters":{"city":"string"}"#,
            "has {cty}, but \"parameters\" has no \"cty\" (did you mean \"city\"?)",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"http://a/","body":{"x":["{y}"]}}"#,
            "\"tools.custom[0].http.body.x[0]\" has {y}",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"http://a/","method":"get"}"#,
            "(did you mean",
        ),
        (
            r#""name":"t","description":"d","http":{"url":"http://a/","headers":{"a b":"x"}}"#,
            "is not the name of a header",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"parameters":{"a":"text"}"#,
            "must be one of string, integer, number, boolean, array, object, or a JSON Schema, not \"text\"",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"parameters":{"a":5}"#,
            "must be a type name or a JSON Schema, not 5",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"parameters":{"type":"object","required":["a"]}"#,
            "must be an array of names that \"properties\" has",
        ),
        (
            r#""name":"t","description":"d","command":["x"],"timeout_seconds":0"#,
            "must be an integer from 1 to 3600, not 0",
        ),
    ] {
        check_says(
            &format!(r#"{{"tools":{{"custom":[{{{members}}}]}}}}"#),
            says,
        );
    }
    check_says(
        r#"{"tools":{"custom":[{"name":"t","description":"d","command":["x"]},{"name":"t","description":"d","command":["y"]}]}}"#,
        "\"tools.custom[1].name\" is \"t\", and so is item 0",
    );
}
