//! Files that are good, and what they mean.

use serde_json::json;

use super::*;

#[test]
fn the_contract_s_array_form_loads() {
    let config = config(
        r#"{"provider":"openai","api_key":"<API_KEY>","model":"m","temperature":0.7,
        "permission_mode":"ask","channels":[
            {"name":"lan","type":"tcp","port":5000,"allow_from":["192.168.1.*"]},
            {"name":"relay","type":"websocket","url":"wss://relay.example/ws","auth_token":"<AUTH_TOKEN>"}]}"#,
    );
    assert_eq!(
        (config.provider.as_str(), config.model.as_str()),
        ("openai", "m")
    );
    assert_eq!(config.temperature, Some(0.7));
    assert_eq!(config.permission_mode, Permission::Ask);
    let [Channel::Tcp(tcp), Channel::Relay(relay)] = config.channels.as_slice() else {
        panic!("{:?}", config.channels);
    };
    assert_eq!((tcp.name.as_str(), tcp.port, tcp.bind), ("lan", 5000, None));
    assert!(tcp.allow_from.allows("192.168.1.9".parse().unwrap()));
    assert!(!tcp.allow_from.allows("127.0.0.1".parse().unwrap()));
    assert_eq!(relay.url, "wss://relay.example/ws");
    assert_eq!(relay.auth_token.as_ref().unwrap().expose(), "<AUTH_TOKEN>");
}

#[test]
fn the_contract_s_object_form_loads_and_can_be_reached() {
    let config = config(
        r#"{"channels":{"webhook":{"accounts":{
            "ci":{"incoming_path":"/webhook/ci","outgoing_url":"https://ci.example/reply","secret":"s","model":"m"},
            "door":{"incoming_path":"/webhook/door","outgoing_url":"http://192.168.1.4:8080/reply"}}}}}"#,
    );
    assert_eq!(config.provider, OFFLINE);
    let [Channel::Webhook(webhook), Channel::Tcp(tcp)] = config.channels.as_slice() else {
        panic!("{:?}", config.channels);
    };
    assert_eq!(webhook.port, None);
    let [ci, door] = webhook.accounts.as_slice() else {
        panic!("{:?}", webhook.accounts);
    };
    assert_eq!(
        (ci.name.as_str(), ci.incoming_path.as_str()),
        ("ci", "/webhook/ci")
    );
    assert_eq!(ci.secret.as_ref().unwrap().expose(), "s");
    assert_eq!(ci.model.as_deref(), Some("m"));
    assert_eq!((door.name.as_str(), door.secret.is_none()), ("door", true));
    assert_eq!(tcp.port, 5000);
    assert_eq!(tcp.allow_from, AddressPatterns::private());
}

#[test]
fn channels_may_be_mixed_in_both_forms() {
    let array = config(
        r#"{"channels":[{"type":"tcp","port":0,"bind":"::1"},
            {"type":"webhook","port":8080,"accounts":{"a":{"incoming_path":"/a","outgoing_url":"http://a/"}}}]}"#,
    );
    let names = |config: &Config| -> Vec<(String, &'static str)> {
        let channels = config.channels.iter();
        channels
            .map(|one| (one.name().to_owned(), one.kind()))
            .collect()
    };
    assert_eq!(
        names(&array),
        [("tcp".to_owned(), "tcp"), ("webhook".to_owned(), "webhook")]
    );
    let object = config(
        r#"{"channels":{"//":"home","kitchen":{"type":"tcp","port":5001},"tcp":{},
            "away":{"type":"websocket","url":"wss://relay.example/ws"},
            "webhook":{"accounts":{}}}}"#,
    );
    assert_eq!(
        names(&object),
        [
            ("kitchen".to_owned(), "tcp"),
            ("tcp".to_owned(), "tcp"),
            ("away".to_owned(), "websocket"),
            ("webhook".to_owned(), "webhook")
        ]
    );
    for (channels, kinds) in [
        (r#"{"webhook":{"accounts":{}}}"#, &["webhook", "tcp"][..]),
        (r#"{"webhook":{"port":5001,"accounts":{}}}"#, &["webhook"]),
        (r#"{}"#, &["tcp"]),
    ] {
        let config = config(&format!(r#"{{"channels":{channels}}}"#));
        let opened = config.channels.iter().map(Channel::kind);
        assert_eq!(opened.collect::<Vec<_>>(), kinds, "{channels}");
    }
}

#[test]
fn an_empty_file_is_the_default_configuration() {
    let config = config("{}");
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    assert_eq!(config.limits, Limits::default());
    assert_eq!((config.workers, config.session_days), (16, 30));
    assert_eq!(config.provider, OFFLINE);
    let [Channel::Tcp(tcp)] = config.channels.as_slice() else {
        panic!("{:?}", config.channels);
    };
    assert_eq!((tcp.name.as_str(), tcp.port), ("lan", 5000));
    assert!(config.system_prompt.len() <= 600);
}

#[test]
fn limits_are_those_of_protocol_section_7() {
    let expected = Limits {
        connections: 1_024,
        connections_per_address: 64,
        unauthenticated_per_address: 16,
        head_bytes: 16 << 10,
        head_count: 64,
        head_seconds: 10,
        body_bytes: 1 << 20,
        webhook_body_bytes: 256 << 10,
        model_api_body_bytes: 8 << 20,
        auth_body_bytes: 4 << 10,
        body_seconds: 15,
        idle_seconds: 30,
        ping_seconds: 30,
        dead_seconds: 75,
        auth_seconds: 10,
        unauthenticated_message_bytes: 4 << 10,
        message_bytes: 1 << 20,
        outbox_bytes: 1 << 20,
        in_flight: 32,
        commands_per_second: 50,
        commands_burst: 100,
        waiting_turns: 1_000,
        waiting_turns_for_people: 200,
        waiting_turns_per_conversation: 16,
        schedules_per_person: 100,
        turn_seconds: 300,
        tool_rounds: 16,
        webhook_per_second: 20,
        webhook_burst: 100,
        webhook_waiting: 64,
        callback_seconds: 15,
        login_failures: 5,
        log_lines_per_address: 10,
        attachment_bytes: 20 << 20,
        attachments_total_bytes: 2 << 30,
        import_bytes: 2 << 30,
        attachment_seconds: 300,
        approval_seconds: 86_400,
    };
    assert_eq!(Limits::default(), expected);
    let some = config(r#"{"limits":{"turn_seconds":5,"_why":"tests"}}"#);
    assert_eq!(
        some.limits,
        Limits {
            turn_seconds: 5,
            ..expected
        }
    );
}

#[test]
fn the_first_file_is_good_and_safe() {
    let settings = read(&first_run()).unwrap();
    assert_eq!(settings.warnings(), Vec::<String>::new());
    let config = settings.current();
    assert_eq!(config.provider, OFFLINE);
    assert_eq!(config.permission_mode, Permission::Ask);
    assert_eq!(config.tool_permissions["current_time"], Permission::Allow);
    assert_eq!(config.tool_permissions["forget"], Permission::Ask);
    let [Channel::Tcp(tcp)] = config.channels.as_slice() else {
        panic!("{:?}", config.channels);
    };
    assert_eq!(
        (tcp.port, &tcp.allow_from),
        (5000, &AddressPatterns::private())
    );

    let directory = Directory::default();
    let path = directory.0.join("config.json");
    assert!(write_first_run(&path).unwrap());
    assert!(!write_first_run(&path).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), first_run());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn values_come_from_the_environment() {
    let config = config(
        r#"{"provider":"openai","model":"m","api_key":"${API_KEY}","channels":[
            {"type":"tcp","port":"${PORT}"},
            {"type":"webhook","accounts":{"a":{"incoming_path":"/a","outgoing_url":"http://a/","secret":"${HOOK_SECRET}"}}}],
        "tools":{"custom":[{"name":"t","description":"d","command":["x","${WORD}"],"env":{"K":"${API_KEY}"}}]}}"#,
    );
    assert_eq!(
        config.api_key.as_ref().unwrap().expose(),
        "sk-0123456789abcdef"
    );
    let [Channel::Tcp(tcp), Channel::Webhook(webhook)] = config.channels.as_slice() else {
        panic!("{:?}", config.channels);
    };
    assert_eq!(tcp.port, 5001);
    let secret = webhook.accounts[0].secret.as_ref().unwrap();
    assert_eq!(secret.expose(), "a-secret-from-the-environment");
    let CustomRun::Command(command) = &config.tools.custom[0].run else {
        panic!("{:?}", config.tools.custom);
    };
    assert_eq!(command.argv[1], "private-word");
    assert_eq!(command.environment["K"].expose(), "sk-0123456789abcdef");
}

#[test]
fn custom_tools_have_a_schema_in_either_form() {
    let config = config(
        r#"{"tools":{"custom":[
        {"name":"light","description":"Switches a light","parameters":{"room":"string","level":"integer?","mode":{"type":"string","enum":["warm","cold"]}},"command":["/usr/bin/light","--json"],"directory":"/tmp","read_only":false},
        {"name":"weather","description":"Forecast","read_only":true,"timeout_seconds":5,"output_bytes":1000,
         "parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},
         "http":{"method":"POST","url":"https://weather.example/v1/{city}?q={}","headers":{"Authorization":"Bearer {city}"},"body":{"in":["{city}"]}}},
        {"name":"bare","description":"Nothing","command":["true"]}]}}"#,
    );
    let [light, weather, bare] = config.tools.custom.as_slice() else {
        panic!("{:?}", config.tools.custom);
    };
    assert_eq!(
        light.parameters,
        json!({"type":"object","properties":{"room":{"type":"string"},"level":{"type":"integer"},
            "mode":{"type":"string","enum":["warm","cold"]}},"required":["room","mode"]})
    );
    assert_eq!((light.timeout_seconds, light.output_bytes), (30, 1 << 20));
    assert!(!light.read_only && weather.read_only);
    assert_eq!((weather.timeout_seconds, weather.output_bytes), (5, 1000));
    assert_eq!(weather.parameters["required"], json!(["city"]));
    let CustomRun::Http(http) = &weather.run else {
        panic!("{:?}", weather.run);
    };
    assert_eq!(
        (http.method, http.url.as_str()),
        ("POST", "https://weather.example/v1/{city}?q={}")
    );
    assert_eq!(http.headers[0].1.expose(), "Bearer {city}");
    assert_eq!(http.body, Some(json!({"in": ["{city}"]})));
    assert_eq!(bare.parameters, json!({"type":"object","properties":{}}));
}

#[test]
fn a_mark_comments_and_nulls_do_no_harm() {
    let config = config(
        "\u{feff}{\r\n \"//\":1, \"_note\":{\"x\":[]}, \"$schema\":\"s\", \"api_key\":null, \"model\":\"m\"}",
    );
    assert_eq!(
        (config.model.as_str(), config.api_key.is_none()),
        ("m", true)
    );
}

#[test]
fn comments_may_stand_anywhere_but_variables_are_none() {
    let config = config(
        r#"{"tool_permissions":{"_why":"harmless","recall":"allow"},
            "limits":{"//":"small machine","in_flight":8},
            "channels":{"_off":{"type":"tcp"},"webhook":{"accounts":{"_old":{"x":1}}}},
            "tools":{"custom":[{"//":"lamp","name":"t","description":"d","command":["x"],
                "parameters":{"_":"none","on":"boolean"},"env":{"_JAVA_OPTIONS":"-Xmx64m","//":1}}]}}"#,
    );
    assert_eq!(config.tool_permissions.len(), 1);
    assert_eq!(config.channels.len(), 2);
    let tool = &config.tools.custom[0];
    assert_eq!(tool.parameters["required"], json!(["on"]));
    let CustomRun::Command(command) = &tool.run else {
        panic!("{tool:?}");
    };
    assert_eq!(
        command.environment.keys().collect::<Vec<_>>(),
        ["_JAVA_OPTIONS"]
    );
}

#[test]
fn what_may_be_absent_as_a_whole_requires_nothing() {
    let docs = documentation();
    for section in docs.iter().filter(|doc| doc.default != "required") {
        let start = format!("{}.", section.key);
        let is_inside = |key: &str| {
            key.strip_prefix(&start)
                .is_some_and(|key| !key.contains('.'))
        };
        let required = docs
            .iter()
            .find(|doc| doc.default == "required" && is_inside(&doc.key));
        // An optional section is absent rather than made of defaults.
        let is_made = section.default == "the defaults of its members" || section.default == "{}";
        assert!(!is_made || required.is_none(), "{section:?}: {required:?}");
    }
}

#[test]
fn every_setting_is_documented() {
    let docs = documentation();
    for doc in &docs {
        assert!(doc.documentation.ends_with('.'), "{doc:?}");
        assert!(
            !doc.expects.is_empty() && !doc.default.is_empty(),
            "{doc:?}"
        );
        assert_eq!(
            docs.iter().filter(|other| other.key == doc.key).count(),
            1,
            "{}",
            doc.key
        );
    }
    let row = |key: &str| docs.iter().find(|doc| doc.key == key).expect(key).clone();
    assert_eq!(
        row("limits.turn_seconds"),
        SettingDoc {
            key: "limits.turn_seconds".into(),
            expects: "an integer from 1 to 86400".into(),
            default: "300".into(),
            documentation:
                "Seconds that a turn may run, not counting the time it waits for approvals.".into(),
            writable: false,
        }
    );
    for key in [
        "channels[].type",
        "channels[tcp].allow_from",
        "channels[websocket].auth_token",
        "channels.webhook.accounts.NAME.secret",
        "tools.custom[].parameters",
        "tools.custom[].http.url",
    ] {
        row(key);
    }
    let writable: Vec<String> = docs
        .into_iter()
        .filter(|doc| doc.writable)
        .map(|doc| doc.key)
        .collect();
    assert_eq!(
        writable,
        [
            "provider",
            "model",
            "temperature",
            "api_key",
            "models",
            "titles",
            "side_model",
            "base_url",
            "assistant",
            "system_prompt",
            "max_tokens",
            "context_tokens",
            "first_token_seconds",
            "reasoning_effort",
            "keep_alive_minutes",
            "fallback",
            "budget",
            "prices",
            "permission_mode",
            "tool_permissions",
            "people",
            "notifications.push_contact",
            "privacy",
            "time_zone",
            "voice.transcription",
            "voice.transcription.url",
            "voice.transcription.api_key",
            "voice.transcription.model",
            "voice.transcription.language",
            "voice.speech",
            "voice.speech.url",
            "voice.speech.api_key",
            "voice.speech.model",
            "voice.speech.voice",
            "backup.keep",
            "backup.at",
            "retention"
        ]
    );
}
