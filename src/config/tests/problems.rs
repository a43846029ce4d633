//! Files that are not good, and what is said of them.

use super::*;
use base::testing::rows;

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
            "config.json line 13: \"channels[0].allow_from[1]\" must be an address pattern (<a>.<b>.<c>.*, one address, a network such as 10.0.0.0/8 or fd00::/8, or *), not \"192.168.*\"",
            "config.json line 15: \"channels[1].url\" is required: a URL that begins with wss:// or ws://",
        ],
    );
}

#[test]
fn what_is_not_json_has_line_and_column() {
    let table = r#"
                                 | config.json line 1: the file ends too early: it must be one JSON object, at least {}
        {¶  "a": 1,¶}            | config.json line 3, column 1: this is not valid JSON: there is a comma too many
        []                       | config.json: the file must be one JSON object
        {"model":"m",¶"model":"n"} | config.json line 2: "model" appears here a second time; each key may appear only once
    "#;
    for [text, expected] in rows(table) {
        let text = &text.replace('¶', "\n");
        check(text, &[expected]);
    }
}

#[test]
fn top_level_settings_are_strict() {
    let table = r#"
        {"model":7}                                                  | "model" must be a string of 1 to 200 characters, not 7
        {"model":" "}                                                | "model" must be a string of 1 to 200 characters, not " "
        {"temperature":"hot"}                                        | "temperature" must be a number from 0 to 2, not "hot"
        {"temperature":-0.1}                                         | "temperature" must be a number from 0 to 2, not -0.1
        {"relay":{"auth_token":"short"}}                             | "relay.auth_token" has 5 characters, and must have 32 or more
        {"max_tokens":1.5}                                           | "max_tokens" must be an integer from 1 to 10000000, not 1.5
        {"permission_mode":"always"}                                 | "permission_mode" must be "ask", "allow" or "deny", not "always"
        {"tool_permissions":{"recall":"yes"}}                        | "tool_permissions.recall" must be "ask"
        {"tool_permissions":{"a b":"ask"}}                           | "a b" in "tool_permissions" is not a tool name
        {"tool_permissions":[]}                                      | "tool_permissions" must be an object from
        {"base_url":"localhost:11434"}                               | "base_url" must be a URL that begins with https:// or http://
        {"base_url":"ftp://a/"}                                      | not "ftp://a/"
        {"base_url":"https://***@a/"}                                | "base_url" is masked
        {"base_url":"https://a/?***"}                                | "base_url" is masked
        {"provider":"openai-compatible"}                             | "base_url" is required by provider "openai-compatible"
        {"provider":"openai-compatible","base_url":null,"workers":0} | "base_url" is required by provider
        {"allowed_origins":["https://a.example/"]}                   | "allowed_origins[0]" must be an origin
        {"allowed_origins":["*"]}                                    | "allowed_origins[0]" must be an origin
        {"allowed_hosts":["a.example:5000"]}                         | "allowed_hosts[0]" must be a host name
        {"trusted_proxies":["proxy"]}                                | "trusted_proxies[0]" must be an address pattern
        {"trusted_proxies":"10.0.0.1"}                               | "trusted_proxies" must be an array, each an address pattern
        {"session_days":0}                                           | "session_days" must be an integer from 1 to 3650, not 0
        {"limits":{"ping_seconds":30,"dead_seconds":30}}             | "limits.dead_seconds" must be more than "limits.ping_seconds" (30), not 30
        {"limits":[]}                                                | "limits" must be an object, not an array
        {"tools":{"costum":[]}}                                      | unknown key "costum" in "tools" (did you mean "custom"?)
        {"zzz":1}                                                    | unknown key "zzz"
    "#;
    for [text, says] in rows(table) {
        check_says(text, says);
    }
}

#[test]
fn the_environment_is_named_but_never_shown() {
    let table = r#"
        {"api_key":"${NO_SUCH}"} | "api_key" names the environment variable NO_SUCH, which is not set
        {"api_key":"${EMPTY}"}   | "api_key" must not be empty
        {"workers":"${WORD}"}    | "workers" must be an integer from 1 to 256, not what the environment variable WORD holds
        {"provider":"${WORD}"}   | not what the environment variable WORD holds
        {"api_key":12345}        | "api_key" must be a string, or "${NAME}" to read it from the environment
        {"api_key":"***"}        | "api_key" is masked; give the real secret in its place
    "#;
    for [text, says] in rows(table) {
        check_says(text, says);
        let problems = read(text).err().unwrap();
        let shown = format!("{problems} {problems:?}");
        assert!(
            !shown.contains("private-word") && !shown.contains("12345"),
            "{shown}"
        );
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let directory = Directory::default();
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
    check_says(&text, "nested more than 128 levels");
}

#[test]
fn what_an_owner_may_not_intend_is_a_warning() {
    let table = r#"
        {"provider":"openai","model":"m"}             | line 1: "api_key" is not set
        {"provider":"openai","api_key":"k"}           | "model" is not set
        {"api_key":"k"}                               | "api_key" is not used, because "provider" is "offline"
        {"provider":"anthropic","memory":{"embeddings":{"model":"m"}}} | "memory.embeddings" is not used, because provider "anthropic" has no embeddings
        {"provider":"openai-compatible","model":"m","base_url":"http://a.example/","api_key":"k"} | unencrypted
        {"channels":[{"type":"tcp","allow_from":[]}]} | "channels[0].allow_from" is empty
        {"channels":[{"type":"websocket","url":"ws://relay.example/ws"}]} | not encrypted
        {"channels":[{"type":"websocket","url":"wss://relay.example/ws","auth_token":"x"}]} | fewer than 32 characters
        {"tool_permissions":{"recal":"allow"}}        | there is no tool "recal" (did you mean "recall"?)
        {"system_prompt":"a ${B}"}                    | taken literally
        {"//":1,"//":2}                               | saving keeps only the last
        {"channels":{"webhook":{"accounts":{"ci":{"incoming_path":"/a","outgoing_url":"http://a/","secret":"short"}}}}} | ci.secret" has 5 characters
        {"channels":{"webhook":{"accounts":{"ci":{"incoming_path":"/a","outgoing_url":"http://a.example/","secret":"0123456789abcdef"}}}}} | sends the secret unencrypted
    "#;
    for [text, says] in rows(table) {
        let warnings = read(text).unwrap().warnings().join("\n");
        assert!(warnings.contains(says), "{text}\n{warnings}");
    }
}
