//! Files that are not good, and what is said of them.

use super::*;

/// Checks the whole text of the problems of a file.
fn check(text: &str, expected: &[&str]) {
    let problems = match read(text) {
        Ok(_) => panic!("this must not load: {text}"),
        Err(problems) => problems.to_string(),
    };
    assert_eq!(problems.lines().collect::<Vec<_>>(), expected, "{text}");
}

/// Checks that one problem of a file says this.
pub(super) fn check_says(text: &str, says: &str) {
    let problems = match read(text) {
        Ok(_) => panic!("this must not load: {text}"),
        Err(problems) => problems.to_string(),
    };
    assert!(problems.contains(says), "{text}\n{problems}\nlacks {says}");
}

#[test]
fn all_problems_come_at_once_with_their_lines() {
    check(
        r#"{
  "provider": "opena1",
  "temperature": 3,
  "permision_mode": "ask",
  "workers": "many",
  "limits": {
    "turn_second": 5,
    "tool_rounds": 0
  },
  "channels": [
    {"type": "tcp", "port": 70000, "allow_from": [
      "192.168.1.*",
      "192.168.*"
    ]},
    {"type": "websocket"}
  ]
}"#,
        &[
            "config.json line 2: \"provider\" must be one of offline, openai, anthropic, ollama, openai-compatible, openrouter, groq, mistral, deepseek, gemini, xai, together, fireworks, cerebras, lmstudio, llamacpp, vllm, litellm, not \"opena1\" (did you mean \"openai\"?)",
            "config.json line 3: \"temperature\" must be a number from 0 to 2, not 3",
            "config.json line 4: unknown key \"permision_mode\" (did you mean \"permission_mode\"?)",
            "config.json line 5: \"workers\" must be an integer from 1 to 256, not \"many\"",
            "config.json line 7: unknown key \"turn_second\" in \"limits\" (did you mean \"turn_seconds\"?)",
            "config.json line 8: \"limits.tool_rounds\" must be an integer from 1 to 1000, not 0",
            "config.json line 11: \"channels[0].port\" must be an integer from 0 to 65535, not 70000",
            "config.json line 13: \"channels[0].allow_from[1]\": \"192.168.*\" is not an address pattern; it must be <a>.<b>.<c>.*, one IPv4 or IPv6 address, a network such as 10.0.0.0/8 or fd00::/8, or *",
            "config.json line 15: \"channels[1].url\" is required: a URL that begins with wss:// or ws://",
        ],
    );
}

#[test]
fn what_is_not_json_has_line_and_column() {
    for (text, expected) in [
        (
            "",
            "config.json line 1, column 0: this is not valid JSON: EOF while parsing a value",
        ),
        (
            "{\n  \"a\": 1,\n}",
            "config.json line 3, column 1: this is not valid JSON: trailing comma",
        ),
        ("[]", "config.json: the file must be one JSON object"),
        (
            "{\"model\":\"m\",\n\"model\":\"n\"}",
            "config.json line 2: \"model\" stands here a second time; each key may stand once",
        ),
    ] {
        check(text, &[expected]);
    }
}

#[test]
fn top_level_settings_are_strict() {
    for (text, says) in [
        (
            r#"{"model":7}"#,
            "\"model\" must be a string of 1 to 200 characters, not 7",
        ),
        (
            r#"{"model":" "}"#,
            "\"model\" must be a string of 1 to 200 characters, not \" \"",
        ),
        (
            r#"{"temperature":"hot"}"#,
            "\"temperature\" must be a number from 0 to 2, not \"hot\"",
        ),
        (
            r#"{"temperature":-0.1}"#,
            "\"temperature\" must be a number from 0 to 2, not -0.1",
        ),
        (
            r#"{"max_tokens":1.5}"#,
            "\"max_tokens\" must be an integer from 1 to 10000000, not 1.5",
        ),
        (
            r#"{"permission_mode":"always"}"#,
            "\"permission_mode\" must be \"ask\", \"allow\" or \"deny\", not \"always\"",
        ),
        (
            r#"{"tool_permissions":{"recall":"yes"}}"#,
            "\"tool_permissions.recall\" must be \"ask\"",
        ),
        (
            r#"{"tool_permissions":{"a b":"ask"}}"#,
            "\"a b\" in \"tool_permissions\" is not a tool name",
        ),
        (
            r#"{"tool_permissions":[]}"#,
            "\"tool_permissions\" must be an object from",
        ),
        (
            r#"{"base_url":"localhost:11434"}"#,
            "\"base_url\" must be a URL that begins with https:// or http://",
        ),
        (r#"{"base_url":"ftp://a/"}"#, "not \"ftp://a/\""),
        (r#"{"base_url":"https://***@a/"}"#, "\"base_url\" is masked"),
        (
            r#"{"provider":"openai-compatible"}"#,
            "\"base_url\" is required by provider \"openai-compatible\"",
        ),
        (
            r#"{"provider":"openai-compatible","base_url":null,"workers":0}"#,
            "\"base_url\" is required by provider",
        ),
        (
            r#"{"allowed_origins":["https://a.example/"]}"#,
            "\"allowed_origins[0]\" must be an origin",
        ),
        (
            r#"{"allowed_origins":["*"]}"#,
            "\"allowed_origins[0]\" must be an origin",
        ),
        (
            r#"{"allowed_hosts":["a.example:5000"]}"#,
            "\"allowed_hosts[0]\" must be a host name",
        ),
        (
            r#"{"trusted_proxies":["proxy"]}"#,
            "\"proxy\" is not an address pattern",
        ),
        (
            r#"{"trusted_proxies":"10.0.0.1"}"#,
            "\"trusted_proxies\" must be an array of address patterns",
        ),
        (
            r#"{"session_days":0}"#,
            "\"session_days\" must be an integer from 1 to 3650, not 0",
        ),
        (
            r#"{"limits":{"ping_seconds":30,"dead_seconds":30}}"#,
            "\"limits.dead_seconds\" must be more than \"limits.ping_seconds\" (30), not 30",
        ),
        (
            r#"{"limits":[]}"#,
            "\"limits\" must be an object, not an array",
        ),
        (
            r#"{"tools":{"costum":[]}}"#,
            "unknown key \"costum\" in \"tools\" (did you mean \"custom\"?)",
        ),
        (r#"{"zzz":1}"#, "unknown key \"zzz\""),
    ] {
        check_says(text, says);
    }
}

#[test]
fn the_environment_is_named_but_never_shown() {
    for (text, says) in [
        (
            r#"{"api_key":"${NO_SUCH}"}"#,
            "\"api_key\" names the environment variable NO_SUCH, which is not set",
        ),
        (r#"{"api_key":"${EMPTY}"}"#, "\"api_key\" must not be empty"),
        (
            r#"{"workers":"${WORD}"}"#,
            "\"workers\" must be an integer from 1 to 256, not what the environment variable WORD holds",
        ),
        (
            r#"{"provider":"${WORD}"}"#,
            "not what the environment variable WORD holds",
        ),
        (
            r#"{"api_key":12345}"#,
            "\"api_key\" must be a string, or \"${NAME}\" to read it from the environment",
        ),
    ] {
        check_says(text, says);
        let problems = read(text).err().unwrap();
        let shown = format!("{problems} {problems:?}");
        assert!(
            !shown.contains("private-word") && !shown.contains("12345"),
            "{shown}"
        );
    }
}

/// A file with one webhook account of these members.
fn account(members: &str) -> String {
    format!(r#"{{"channels":{{"webhook":{{"accounts":{{"ci":{{{members}}}}}}}}}}}"#)
}

#[test]
fn webhook_accounts_are_strict() {
    for path in [
        "",
        "ci",
        "/",
        "/ws",
        "/ws/",
        "/auth",
        "/health",
        "/register",
        "/ws/register",
        "/assets",
        "/assets/x",
        "/a?b",
        "/a#b",
        "/a b",
        "/ä",
        "/a/../ws",
        "/a/./b",
    ] {
        check_says(
            &account(&format!(
                r#""incoming_path":"{path}","outgoing_url":"http://a/""#
            )),
            "\"channels.webhook.accounts.ci.incoming_path\" must be a URL path that begins with /",
        );
    }
    for (members, says) in [
        (
            r#""incoming_path":"/a""#,
            "\"channels.webhook.accounts.ci.outgoing_url\" is required: a URL",
        ),
        (
            r#""outgoing_url":"http://a/""#,
            "\"channels.webhook.accounts.ci.incoming_path\" is required",
        ),
        (
            r#""incoming_path":"/a","outgoing_url":"ws://a/""#,
            "must be a URL that begins with https:// or http://",
        ),
        (
            r#""incoming_path":"/a","outgoing_url":"http://a/","secret":"""#,
            "\"channels.webhook.accounts.ci.secret\" must not be empty",
        ),
        (
            r#""incoming_path":"/a","outgoing_url":"http://a/","name":"x""#,
            "must be \"ci\", the key of the account",
        ),
        (
            r#""incoming_path":"/a","outgoing_url":"http://a/","secrets":"x""#,
            "(did you mean \"secret\"?)",
        ),
    ] {
        check_says(&account(members), says);
    }
}

#[test]
fn channels_do_not_collide() {
    for (channels, says) in [
        (
            r#"[{"type":"tcp"},{"type":"tcp","port":5000}]"#,
            "\"channels[1].port\" is 5000, and so is \"channels[0].port\"",
        ),
        (
            r#"[{"type":"tcp","bind":"127.0.0.1"},{"type":"tcp","bind":"0.0.0.0"}]"#,
            "\"channels[1].port\" is 5000, and so is",
        ),
        (
            r#"[{"type":"tcp"},{"type":"webhook","port":5000,"accounts":{}}]"#,
            "\"channels[1].port\" is 5000, and so is",
        ),
        (
            r#"{"webhook":{"port":5000,"accounts":{}}}"#,
            "\"channels.webhook.port\" is 5000, which the default tcp channel uses",
        ),
        (
            r#"[{"type":"tcp","name":"a"},{"type":"tcp","port":1,"name":"a"}]"#,
            "\"channels[1].name\" is \"a\", and so is the name of \"channels[0]\"",
        ),
        (
            r#"[{"type":"webhook","accounts":{}}]"#,
            "\"channels[0]\" has no \"port\", and there is no tcp channel",
        ),
        (
            r#"{"webhook":{"accounts":{"a":{"incoming_path":"/x","outgoing_url":"http://a/"},"b":{"incoming_path":"/x","outgoing_url":"http://b/"}}}}"#,
            "\"channels.webhook.accounts.b.incoming_path\" is \"/x\", and so is \"channels.webhook.accounts.a.incoming_path\"",
        ),
        (
            r#"[{"name":"x"}]"#,
            "\"channels[0].type\" is required: \"tcp\", \"websocket\" or \"webhook\"",
        ),
        (r#"{"x":{"port":1}}"#, "\"channels.x.type\" is required"),
        (r#"[{"type":"tpc"}]"#, "(did you mean \"tcp\"?)"),
        (
            r#"[{"type":"tcp","url":"wss://a/"}]"#,
            "unknown key \"url\" in \"channels[0]\" (known there: name, port, bind, allow_from, type)",
        ),
        (
            r#"[{"type":"tcp","bind":"eth0"}]"#,
            "\"channels[0].bind\" must be an IPv4 or IPv6 address",
        ),
        (
            r#"["tcp"]"#,
            "\"channels[0]\" must be an object, not \"tcp\"",
        ),
        (
            r#"5000"#,
            "\"channels\" must be an array of channels, or an object of them by name, not 5000",
        ),
        (
            r#"{"webhook":{}}"#,
            "\"channels.webhook.accounts\" is required",
        ),
    ] {
        check_says(&format!(r#"{{"channels":{channels}}}"#), says);
    }
    config(r#"{"channels":[{"type":"tcp","port":0},{"type":"tcp","port":0}]}"#);
    config(
        r#"{"channels":[{"type":"tcp","bind":"127.0.0.1"},{"type":"tcp","bind":"192.168.1.2"}]}"#,
    );
}

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

#[test]
fn files_that_cannot_be_read_say_why() {
    let directory = Directory::new();
    for (name, bytes, says) in [
        (
            "absent",
            None,
            "absent: the file cannot be read: No such file",
        ),
        (
            "latin",
            Some(b"{\n\"model\":\"\xe4\"}".to_vec()),
            "latin line 2: the file must be UTF-8 text",
        ),
        (
            "huge",
            Some(vec![b' '; 1024 * 1024 + 1]),
            "huge: the file is larger than 1048576 bytes",
        ),
    ] {
        let path = directory.0.join(name);
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).unwrap();
        }
        let problems = Settings::load(&path).err().unwrap().to_string();
        assert!(problems.contains(says), "{problems}");
    }
}

#[test]
fn deep_nesting_is_a_problem_and_not_a_crash() {
    let text = format!("{{\"_\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    check_says(&text, "recursion limit exceeded");
}

#[test]
fn what_an_owner_may_not_intend_is_a_warning() {
    for (text, says) in [
        (
            r#"{"provider":"openai","model":"m"}"#,
            "line 1: \"api_key\" is not set",
        ),
        (
            r#"{"provider":"openai","api_key":"k"}"#,
            "\"model\" is not set",
        ),
        (
            r#"{"api_key":"k"}"#,
            "\"api_key\" is not used, because \"provider\" is \"offline\"",
        ),
        (
            r#"{"provider":"openai-compatible","model":"m","base_url":"http://a.example/","api_key":"k"}"#,
            "unencrypted",
        ),
        (
            r#"{"channels":[]}"#,
            "\"channels\" is empty: nobody can connect",
        ),
        (
            r#"{"channels":[{"type":"tcp","allow_from":[]}]}"#,
            "\"channels[0].allow_from\" is empty",
        ),
        (
            r#"{"channels":[{"type":"websocket","url":"ws://relay.example/ws"}]}"#,
            "not encrypted",
        ),
        (
            r#"{"channels":[{"type":"websocket","url":"wss://relay.example/ws","auth_token":"x"}]}"#,
            "fewer than 32 characters",
        ),
        (
            r#"{"tool_permissions":{"recal":"allow"}}"#,
            "there is no tool \"recal\" (did you mean \"recall\"?)",
        ),
        (r#"{"system_prompt":"a ${B}"}"#, "taken literally"),
        (r#"{"//":1,"//":2}"#, "saving keeps only the last"),
        (
            &account(r#""incoming_path":"/a","outgoing_url":"http://a/","secret":"short""#),
            "ci.secret\" has 5 characters",
        ),
        (
            &account(
                r#""incoming_path":"/a","outgoing_url":"http://a.example/","secret":"0123456789abcdef""#,
            ),
            "carries the secret unencrypted",
        ),
    ] {
        let warnings = read(text).unwrap().warnings().join("\n");
        assert!(warnings.contains(says), "{text}\n{warnings}");
    }
}
