//! `mcp_servers`, as other clients write it.

use serde_json::json;

use super::problems::check_says;
use super::*;
use base::testing::rows;

#[test]
fn entries_of_other_clients_are_understood() {
    let config = config(
        r#"{"mcp_servers": {
            "//": "copied",
            "time": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}},
            "home assistant": {"type": "http", "url": "https://ha.lan/api/mcp", "headers": {"Authorization": "${API_KEY}"}, "timeout_seconds": 5},
            "off": {"command": "x", "cwd": "/srv", "disabled": true}
        }}"#,
    );
    let [time, home, off] = config.mcp_servers.as_slice() else {
        panic!("{:?}", config.mcp_servers);
    };
    let McpWay::Stdio {
        command,
        args,
        environment,
        directory,
        sandbox,
    } = &time.way
    else {
        panic!("{time:?}");
    };
    assert_eq!((command.as_str(), args.len()), ("uvx", 1));
    assert_eq!(environment["TZ"].expose(), "UTC");
    assert_eq!(
        (directory, sandbox, time.timeout_seconds, time.disabled),
        (&None, &false, 60, false)
    );
    assert_eq!(home.tool_prefix(), "home_assistant");
    assert_eq!(home.timeout_seconds, 5);
    let McpWay::Http { url, headers, .. } = &home.way else {
        panic!("{home:?}");
    };
    assert_eq!(url, "https://ha.lan/api/mcp");
    assert_ne!(headers[0].1.expose(), "${API_KEY}");
    assert!(off.disabled);
    let shown = config.readable();
    assert_eq!(
        shown["mcp_servers"],
        json!({
            "time": {"command": "uvx", "disabled": false, "timeout_seconds": 60, "trusted": false,
                "household": false, "read_only": false, "sandbox": false},
            "home assistant": {"url": "https://ha.lan/***", "disabled": false, "timeout_seconds": 5, "trusted": false,
                "household": false, "read_only": false},
            "off": {"command": "x", "disabled": true, "timeout_seconds": 60, "trusted": false,
                "household": false, "read_only": false, "sandbox": false},
        })
    );
}

#[test]
fn what_cannot_be_started_is_refused() {
    let table = r#"
        "a":{}                                      | must have either "command" or "url"; it has neither
        "a":{"command":"x","url":"http://a/"}       | it has both
        "a":{"command":"x","headers":{"A":"b"}}     | "mcp_servers.a.headers" needs "url"
        "a":{"url":"http://a/","args":["x"]}        | "mcp_servers.a.args" needs "command"
        "a":{"url":"http://a/","sandbox":true}      | "mcp_servers.a.sandbox" needs "command"
        "a":{"url":"http://a/","type":"stdio"}      | "mcp_servers.a.type" needs "command"
        "a":{"url":"http://a/","type":"ws"}         | must be "stdio", "http", "streamable-http"
        "a":{"command":"x","cwd":"here"}            | must be an absolute path
        "a":{"comand":"x"}                          | did you mean "command"?
        "a":{"command":"x","timeout_seconds":0, "trusted": false}     | must be an integer from 1 to 3600
        "a.b":{"command":"x"},"a b":{"command":"y"} | is too similar to "a.b"
        "a":{"command":"x","read_only":"all"}       | must be an array of names
        "a":{"command":"x","read_only":[1]}         | must be a string of 1 to 256
        "a":"x"                                     | must be an object with command
    "#;
    for [members, says] in rows(table) {
        check_says(&format!(r#"{{"mcp_servers":{{{members}}}}}"#), says);
    }
    check_says(r#"{"mcpServers":{}}"#, "did you mean \"mcp_servers\"?");
}

#[test]
fn permissions_of_other_clients_are_not_taken_over() {
    let directory = Directory::default();
    let path = directory.write(
        "config.json",
        r#"{"mcp_servers":{"a":{"command":"x","autoApprove":["everything"]}}}"#,
    );
    let warnings = Settings::open(&path, environment).warnings();
    assert!(
        warnings
            .iter()
            .any(|line| line.contains("\"mcp_servers.a.autoApprove\" is ignored")),
        "{warnings:?}"
    );
}
