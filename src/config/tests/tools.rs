//! Tools that are not good.

use super::problems::check_says;
use super::*;
use base::testing::rows;

#[test]
fn the_built_in_tools_that_reach_out_are_strict() {
    let table = r#"
        {"web_fetch":true}                              | "tools.web_fetch" must be an object
        {"web_fetch":{"enabled":"on"}}                  | "tools.web_fetch.enabled" must be true or false
        {"web_fetch":{"allow":"nas.lan"}}               | "tools.web_fetch.allow" must be an array
        {"web_fetch":{"allow":["nas.lan","192.168.1"]}} | "tools.web_fetch.allow[1]" must be a host name in lower case
        {"web_fetch":{"allow":["http://nas.lan"]}}      | or an address pattern
        {"web_fetch":{"max_bytes":1}}                   | must be an integer from 1024
        {"files":{"directory":"notes"}}                 | "tools.files.directory" must be an absolute path
        {"run_command":{"timeout_seconds":0}}           | must be an integer from 1 to 3600
        {"run_comand":{}}                               | (did you mean "run_command"?)
    "#;
    for [tools, says] in rows(table) {
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
    let table = r#"
        "description":"d","command":["x"]                            | "tools.custom[0].name" is required
        "name":"a b","description":"d","command":["x"]               | "tools.custom[0].name" must be a tool name
        "name":"recall","description":"d","command":["x"]            | is "recall", a built-in tool
        "name":"t","command":["x"]                                   | "tools.custom[0].description" is required
        "name":"t","description":"d"                                 | must have either "command" or "http"; it has neither
        "name":"t","description":"d","command":["x"],"http":{"url":"http://a/"} | it has both
        "name":"t","description":"d","command":[]                    | "tools.custom[0].command" must have from 1 to 1000 items, not 0
        "name":"t","description":"d","command":[""]                  | "tools.custom[0].command[0]" must be a program
        "name":"t","description":"d","command":"ls"                  | "tools.custom[0].command" must be an array
        "name":"t","description":"d","command":["x"],"directory":"bin" | must be an absolute path
        "name":"t","description":"d","command":["x"],"env":{"1A":"x"} | is not the name of an environment variable
        "name":"t","description":"d","http":{"url":"http://a/"},"env":{} | "tools.custom[0].env" needs "command"
        "name":"t","description":"d","http":{"url":"http://a/"},"sandbox":false | "tools.custom[0].sandbox" needs "command"
        "name":"t","description":"d","command":["x"],"sandbox":"no" | "tools.custom[0].sandbox" must be true or false
        "name":"t","description":"d","http":{"url":"https://{host}/"},"parameters":{"host":"string"} | whose host holds no {name}
        "name":"t","description":"d","http":{"url":"file:///etc/passwd"} | must be a URL that begins with https:// or http://
        "name":"t","description":"d","http":{"url":"http://a/{cty}"},"parameters":{"city":"string"} | has {cty}, but "parameters" has no "cty" (did you mean "city"?)
        "name":"t","description":"d","http":{"url":"http://a/","body":{"x":["{y}"]}} | "tools.custom[0].http.body.x[0]" has {y}
        "name":"t","description":"d","http":{"url":"http://a/","method":"get"} | (did you mean
        "name":"t","description":"d","http":{"url":"http://a/","headers":{"a b":"x"}} | is not the name of a header
        "name":"t","description":"d","command":["x"],"parameters":{"a":"text"} | must be one of string, integer, number, boolean, array, object, or a JSON Schema, not "text"
        "name":"t","description":"d","command":["x"],"parameters":{"a":5} | must be a type name or a JSON Schema, not 5
        "name":"t","description":"d","command":["x"],"parameters":{"type":"object","required":["a"]} | must be an array of names that "properties" has
        "name":"t","description":"d","command":["x"],"timeout_seconds":0 | must be an integer from 1 to 3600, not 0
    "#;
    for [members, says] in rows(table) {
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
