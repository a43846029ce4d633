//! The handle: changes on disk.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::thread;

use serde_json::{Map, Value, json};

use super::*;
use base::error::Code;
use base::testing::rows;

pub const FILE: &str = r#"{
  "//": "our home",
  "workers": 4,
  "provider": "openai",
  "api_key": "${API_KEY}",
  "model": "old",
  "_kept": {"b": 1, "a": [2, 1.50]},
  "channels": {
    "webhook": {
      "accounts": {
        "ci": {
          "incoming_path": "/ci",
          "outgoing_url": "https://hooks.example/services/T0/private-path",
          "secret": "an-inline-secret-1234"
        }
      }
    },
    "away": {"type": "websocket", "url": "wss://me:pw@relay.example/ws?token=tk", "auth_token": "${HOOK_SECRET}"}
  },
  "base_url": "https://user:pass@proxy.example/v1?key=kk",
  "tools": {"custom": [{"name": "t", "description": "d", "command": ["x"], "env": {"TOKEN": "inline-env"}}]}
}
"#;

fn load(path: &Path) -> Settings {
    Settings::from_text(path, &fs::read_to_string(path).unwrap(), environment).unwrap()
}

fn changes(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn keys(text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap();
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn an_update_persists_and_keeps_everything_else() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let settings = load(&path);
    let before = settings.current();
    let updated = settings
        .update(&changes(
            json!({"temperature": 0.5, "model": "new", "permission_mode": "allow"}),
        ))
        .unwrap();
    assert_eq!(updated, ["temperature", "model", "permission_mode"]);
    assert_eq!(before.model, "old");
    assert_eq!(settings.current().model, "new");
    assert_eq!(load(&path).current().temperature, Some(0.5));

    let text = fs::read_to_string(&path).unwrap();
    let mut expected = keys(FILE);
    expected.extend(["temperature", "permission_mode"].map(str::to_owned));
    assert_eq!(keys(&text), expected);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["api_key"], "${API_KEY}");
    assert_eq!(value["_kept"], json!({"b": 1, "a": [2, 1.5]}));
    assert!(text.ends_with("}\n"));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(directory.names(), ["config.json"]);

    settings
        .update(&changes(json!({"temperature": null})))
        .unwrap();
    assert_eq!(settings.current().temperature, None);
    assert!(!keys(&fs::read_to_string(&path).unwrap()).contains(&"temperature".to_owned()));
}

#[test]
fn a_refused_update_changes_nothing_and_names_everything() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let settings = load(&path);
    let table = r#"
        {"model": "x", "temperature": 9} | "temperature" must be a number from 0 to 2, not 9
        {"modle": "x", "workers": 3, "max_tokens": 0} | there is no setting "modle" (did you mean "model"?); "workers" can only be changed in the configuration file; "max_tokens" must be an integer
        {"channels": []} | "channels" can only be changed in the configuration file
        {"_note": 1} | there is no setting "_note"
        {"provider": "openai-compatible", "base_url": null} | "base_url" is required by provider
        {"system_prompt": "${WORD}"} | "system_prompt" can be read from the environment only by the configuration file itself
        {"tool_permissions": {"t": "maybe"}} | "tool_permissions.t" must be "ask", "allow", "deny" or "allow_own"
        {"api_key": 5} | "api_key" must be a string
        {"base_url": "http://a/LONG"} | at most 1048576 are read
    "#;
    for [change, says] in rows(table) {
        let change = change.replace("LONG", &"x".repeat(1024 * 1024));
        let change: Value = change.parse().unwrap();
        let says: Vec<&str> = says.split("; ").collect();
        let error = settings.update(&changes(change.clone())).unwrap_err();
        assert_eq!(error.code(), Code::InvalidRequest, "{change}");
        for says in &says {
            assert!(error.message().contains(says), "{change}: {error}");
        }
        let named = error.message().split("; ").count();
        assert_eq!(named, says.len(), "{change}: {error}");
        assert!(!error.message().contains("config.json"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), FILE, "{change}");
        assert_eq!(settings.current().model, "old");
    }
    assert_eq!(settings.update(&Map::new()).unwrap(), Vec::<String>::new());
    assert_eq!(fs::read_to_string(&path).unwrap(), FILE);
}

#[test]
fn edits_by_hand_are_kept_and_their_mistakes_not_overwritten() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let settings = load(&path);
    fs::write(&path, FILE.replace("\"workers\": 4", "\"workers\": 5")).unwrap();
    settings.update(&changes(json!({"model": "new"}))).unwrap();
    assert_eq!(settings.current().workers, 5);
    assert_eq!(load(&path).current().workers, 5);

    fs::write(&path, "{ oops").unwrap();
    let error = settings
        .update(&changes(json!({"model": "newer"})))
        .unwrap_err();
    assert_eq!(error.code(), Code::ServerError);
    assert!(!error.message().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ oops");
    assert_eq!(settings.current().model, "new");

    fs::remove_file(&path).unwrap();
    settings
        .update(&changes(json!({"model": "newest"})))
        .unwrap();
    assert_eq!(load(&path).current().model, "newest");
    assert_eq!(load(&path).current().workers, 5);
}

#[test]
fn a_reload_tells_what_changed_and_refuses_mistakes() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let settings = load(&path);
    assert_eq!(settings.reload().unwrap(), Vec::<String>::new());
    let edited = FILE
        .replace("\"workers\": 4", "\"workers\": 5, \"session_days\": 1")
        .replace("our home", "your home");
    fs::write(&path, &edited).unwrap();
    assert_eq!(settings.reload().unwrap(), ["workers", "session_days"]);
    assert_eq!(settings.current().workers, 5);
    fs::write(&path, edited.replace("\"workers\": 5", "\"workers\": 0")).unwrap();
    assert!(
        settings
            .reload()
            .unwrap_err()
            .to_string()
            .contains("line 3: \"workers\"")
    );
    assert_eq!(settings.current().workers, 5);
}

#[test]
fn concurrent_updates_all_arrive() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    // Two handles are two processes: the file's lock serialises them.
    let handles = [Arc::new(load(&path)), Arc::new(load(&path))];
    thread::scope(|scope| {
        for number in 0..8 {
            let settings = Arc::clone(&handles[number % 2]);
            scope.spawn(move || {
                for round in 0..5 {
                    let tool = format!("tool_{number}_{round}");
                    settings
                        .permit_tool_to(Grantee::Person("ada"), &tool, Permission::Deny)
                        .unwrap();
                }
            });
        }
    });
    let found = load(&path).current();
    assert_eq!(found.person("ada").unwrap().tool_permissions.len(), 40);
    assert_eq!(directory.names(), ["config.json"]);
}

#[test]
fn a_link_is_written_through() {
    let directory = Directory::default();
    let target = directory.write("real.json", FILE);
    let link = directory.0.join("config.json");
    symlink(&target, &link).unwrap();
    load(&link)
        .update(&changes(json!({"model": "new"})))
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(load(&target).current().model, "new");
}

#[test]
fn a_directory_that_cannot_be_written_is_the_server_s_fault() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let settings = load(&path);
    // A directory in the place of the temporary file stops root, too.
    fs::create_dir(directory.0.join("config.json.new")).unwrap();
    let error = settings
        .update(&changes(json!({"model": "new"})))
        .unwrap_err();
    assert_eq!(error.code(), Code::ServerError);
    let said = error.message();
    assert!(
        said.starts_with("the configuration could not be saved: Is a directory (reference "),
        "{said}"
    );
    assert_eq!(settings.current().model, "old");
    assert_eq!(fs::read_to_string(&path).unwrap(), FILE);
}

#[test]
fn secrets_that_others_can_read_are_warned_about() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let warns = |mode: u32| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        load(&path).warnings().join("\n").contains("chmod 600")
    };
    assert!(warns(0o644));
    assert!(!warns(0o600));
    fs::write(
        &path,
        r#"{"provider":"openai","model":"m","api_key":"${API_KEY}"}"#,
    )
    .unwrap();
    assert!(!warns(0o644));
}

#[test]
fn keys_are_set_only_when_the_file_stays_good() {
    let directory = Directory::default();
    let path = directory.write("config.json", FILE);
    let settings = load(&path);
    let table = r#"
        limits.turn_seconds                 | 60                                                  | 60
        model                               | gpt                                                 | "gpt"
        api_key                             | "1234567890"                                        | "1234567890"
        api_key                             | ${API_KEY}                                          | "${API_KEY}"
        channels.webhook.accounts.ci.secret | ${HOOK_SECRET}                                      | "${HOOK_SECRET}"
        channels.webhook.accounts.new       | {"incoming_path":"/new","outgoing_url":"http://a/"} | {"incoming_path": "/new", "outgoing_url": "http://a/"}
        limits                              | null                                                | null
    "#;
    for [key, value, stands] in rows(table) {
        let stands: Value = stands.parse().unwrap();
        settings.set(key, given(value)).unwrap();
        let file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let found = key.split('.').try_fold(&file, |here, step| here.get(step));
        assert_eq!(found.cloned().unwrap_or_default(), stands, "{key}");
    }
    assert_eq!(settings.current().model, "gpt");
    let before = fs::read_to_string(&path).unwrap();
    let table = r#"
        workers | 0          | "workers" must be an integer from 1 to 256, not 0
        wokers  | 1          | unknown key "wokers" (did you mean "workers"?)
        model.x | 1          | there is no place for "model.x"
        api_key | ${NO_SUCH} | NO_SUCH, which is not set
        api_key | ***        | "api_key" is masked; give the real secret in its place
        fallback | [{"provider": "groq", "model": "m", "api_key": "***"}] | "fallback[0].api_key" is masked
    "#;
    for [key, value, says] in rows(table) {
        let error = settings.set(key, given(value)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidRequest);
        assert!(error.message().contains(says), "{key}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}

/// What a change of the address does with the key, by `update_config` and by
/// `hearth config set`.
#[test]
fn a_key_stays_with_the_address_that_it_was_given_for() {
    let table = r#"
        {"provider": "openai"} | base_url | "https://evil.example/v1" | removed
        {"provider": "openai"} | base_url | "http://api.openai.com/v1" | removed
        {"provider": "openai"} | base_url | "https://api.openai.com:8443/v1" | removed
        {"provider": "openai"} | base_url | "https://API.openai.com:443/v2" | kept
        {"provider": "openai"} | provider | "groq" | removed
        {"provider": "openai"} | provider | "offline" | removed
        {"provider": "openai"} | model | "m" | kept
        {"provider": "openai", "base_url": "https://proxy.example/v1"} | base_url | null | removed
        {"provider": "openai", "base_url": "https://proxy.example/v1"} | provider | "groq" | kept
        {"provider": "openai", "base_url": "${PROXY}"} | base_url | "https://evil.example/" | removed
        {"provider": "offline"} | provider | "openai" | kept
        {} | base_url | "https://new.example/" | kept
    "#;
    for [start, key, value, outcome] in rows(table) {
        for api_key in ["sk-0123456789abcdef", "${API_KEY}"] {
            let mut file: Value = start.parse().unwrap();
            file["api_key"] = json!(api_key);
            file["fallback"] = json!([file]);
            file["fallback"][0]["model"] = json!("m");
            let is_entry = file.get("provider").is_some();
            if !is_entry {
                file.as_object_mut().unwrap().remove("fallback");
            }
            let directory = Directory::default();
            let path = directory.write("config.json", &file.to_string());
            let load = || load(&path);
            let holds = |place: &str| {
                let text = fs::read_to_string(&path).unwrap();
                let file: Value = serde_json::from_str(&text).unwrap();
                file.pointer(place).is_some()
            };
            let is_kept = outcome == "kept";
            let change = json!({ key: value.parse::<Value>().unwrap() });

            let mut names = vec![key];
            names.extend((!is_kept).then_some("api_key"));
            let settings = load();
            assert_eq!(
                settings.update(&changes(change.clone())).unwrap(),
                names,
                "{start} {change}"
            );
            assert_eq!(holds("/api_key"), is_kept, "{start} {change}");
            assert_eq!(settings.current().api_key.is_some(), is_kept);
            if is_entry {
                let path = format!("fallback[0].{key}");
                let removed = settings.set(&path, given(value)).unwrap().made;
                let path = (!is_kept).then_some("fallback[0].api_key");
                assert_eq!(removed.as_deref(), path, "{start} {change}");
                assert_eq!(holds("/fallback/0/api_key"), is_kept, "{start} {change}");
            }

            directory.write("config.json", &file.to_string());
            let removed = load().set(key, given(value)).unwrap().made;
            assert_eq!(removed.is_none(), is_kept, "{start} {change}");
            assert_eq!(holds("/api_key"), is_kept, "{start} {change}");

            // A key that comes with the address is for it.
            directory.write("config.json", &file.to_string());
            let mut both = changes(change);
            both.insert("api_key".to_owned(), json!("sk-new"));
            assert_eq!(load().update(&both).unwrap(), [key, "api_key"]);
            assert_eq!(
                load().current().api_key.as_ref().unwrap().expose(),
                "sk-new"
            );
        }
    }
}

/// A form of the page sends back all of its fields, as they were shown.
#[test]
fn what_comes_back_as_it_was_shown_stays_as_it_is() {
    let table = r#"
        base_url | "https://me:pw@models.lan/v1?key=kk" | "https://***@models.lan/v1?***" | kept
        base_url | "${PROXY}" | "https://proxy.example/v1" | kept
        base_url | "https://me:pw@models.lan/v1" | "https://models.lan/v1" | written
        base_url | "https://me:pw@models.lan/v1" | "https://***@models.lan/v2" | masked
        base_url | "https://me:pw@models.lan/v1" | "https://***@evil.example/v1" | masked
        base_url | "https://models.lan/v1?key=kk" | "https://evil.example/v1?***" | masked
        voice.speech.url | "https://me:pw@speech.lan/v1" | "https://***@speech.lan/v1" | kept
        voice.speech | {"url": "https://me:pw@speech.lan/v1"} | {"url": "https://***@speech.lan/v1", "voice": "bella"} | merged
    "#;
    for [key, stands, sent, outcome] in rows(table) {
        let directory = Directory::default();
        let path = directory.write("config.json", r#"{"provider": "openai"}"#);
        let settings = load(&path);
        settings.set(key, given(stands)).unwrap();
        settings.set("api_key", json!("sk-0")).unwrap();
        let updated = settings.update(&changes(json!({ key: given(sent) })));
        let found = settings.get(key).unwrap();
        let file = fs::read_to_string(&path).unwrap();
        match outcome {
            "kept" => assert!(updated.is_ok() && file.contains(stands), "{sent}: {file}"),
            "written" => assert_eq!(found, given(sent)),
            "merged" => assert!(
                found["voice"] == "bella" && file.contains("https://me:pw@speech.lan/v1"),
                "{sent}: {file}"
            ),
            _ => assert!(
                updated.unwrap_err().message().contains("is masked") && file.contains(stands),
                "{sent}: {file}"
            ),
        }
        assert!(file.contains("sk-0"), "{sent}: {file}");
    }
}

/// Where a variable is not set, secrets are shown as a mask alone.
#[test]
fn a_mask_does_not_take_its_secret_to_another_address() {
    let directory = Directory::default();
    let entry = json!({
        "provider": "openai-compatible", "model": "m",
        "base_url": "https://models.lan/v1", "api_key": "sk-0",
    });
    let mut file = entry.clone();
    file["fallback"] = json!([entry]);
    file["channels"] = json!({ "telegram": { "type": "telegram", "bot_token": "${MISSING}" } });
    let path = directory.write("config.json", &file.to_string());
    let settings = Settings::open(&path, environment);
    assert_eq!(settings.readable()["api_key"], "***");
    let mut moved = settings.readable()["fallback"].clone();
    moved[0]["base_url"] = json!("https://evil.example/v1");
    for change in [
        json!({ "base_url": "https://evil.example/v1", "api_key": "***" }),
        json!({ "fallback": moved }),
    ] {
        let refused = settings.update(&changes(change)).unwrap_err();
        assert!(refused.message().contains("is masked"), "{refused}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("evil"), "{text}");
    }
}

#[test]
fn a_file_with_problems_is_mended_step_by_step() {
    let directory = Directory::default();
    let file = r#"{"modell": "m", "workers": 0, "provider": "openai-compatible", "api_key": "sk-0123456789abcdef"}"#;
    let path = directory.write("config.json", file);
    let settings = Settings::open(&path, environment);
    assert_eq!(settings.get("modell").unwrap(), json!("m"));
    assert_eq!(settings.readable()["api_key"], json!("***"));
    assert_eq!(settings.current().provider, "offline", "the default");
    let (problems, _) = settings.check();
    assert_eq!(problems.len(), 3, "{problems:?}");
    let error = settings.update(&changes(json!({"model": "x"})));
    assert!(error.unwrap_err().message().contains("is not valid"));
    let error = settings.set("session_days", json!(0)).unwrap_err();
    let said = error.message();
    assert!(
        said.contains("session_days") && !said.contains("workers"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), file);

    let edit = settings.set("modell", Value::Null).unwrap();
    assert_eq!(edit.problems.len(), 2, "{:?}", edit.problems);
    let edit = settings.set("workers", json!(2)).unwrap();
    assert!(edit.problems[0].contains("base_url"), "{:?}", edit.problems);
    assert_eq!(settings.current().workers, 16, "not in force");
    let edit = settings
        .set("base_url", json!("http://127.0.0.1:1/v1"))
        .unwrap();
    assert!(edit.problems.is_empty(), "{:?}", edit.problems);
    assert_eq!(settings.current().workers, 2);

    let text = fs::read_to_string(&path).unwrap();
    let other = "{\n\t\"workers\": 3\n}\n";
    assert!(
        settings
            .replace(other, "{}")
            .unwrap_err()
            .message()
            .contains("somebody else")
    );
    assert!(
        settings
            .replace("{", &text)
            .unwrap_err()
            .message()
            .contains("line 1")
    );
    settings.replace(other, &text).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        other,
        "as it was written"
    );
    assert_eq!(settings.current().workers, 3);

    directory.write("config.json", "nonsense");
    let broken = Settings::open(&path, environment);
    let error = broken.set("workers", json!(2)).unwrap_err();
    assert!(error.message().contains("config edit"), "{error}");
    broken.replace(other, "nonsense").unwrap();
}

#[test]
fn accounts_and_channels_are_added_in_every_form_of_the_file() {
    let account = json!({"incoming_path": "/ci", "outgoing_url": "http://127.0.0.1:1/"});
    let table = r#"
        {} | channels.webhook.accounts.ci | /channels/relay
        {"channels": [{"name": "lan", "type": "tcp"}]} | channels[1].accounts.ci | /channels/2
        {"channels": [{"type": "webhook", "accounts": {}}, {"type": "tcp"}]} | channels[0].accounts.ci | /channels/2
        {"channels": {"hooks": {"type": "webhook", "accounts": {}}}} | channels.hooks.accounts.ci | /channels/relay
    "#;
    for [file, path, relay] in rows(table) {
        let directory = Directory::default();
        let settings = load(&directory.write("config.json", file));
        settings.add_account("ci", account.clone()).unwrap();
        assert_eq!(settings.account_path("ci").as_deref(), Some(path), "{file}");
        assert_eq!(settings.account_path("other"), None);
        settings.set(path, Value::Null).unwrap();
        assert_eq!(settings.account_path("ci"), None);
        let channel = json!({"type": "websocket", "url": "wss://relay.example/ws"});
        settings.set("channels.relay", channel).unwrap();
        let written = fs::read_to_string(settings.path()).unwrap();
        let written: Value = serde_json::from_str(&written).unwrap();
        assert!(written.pointer(relay).is_some(), "{file}: {written}");
        assert_eq!(settings.current().relays().next().unwrap().name, "relay");
        settings.set("channels.relay", Value::Null).unwrap();
        assert_eq!(settings.current().relays().count(), 0, "{file}");
    }
}

#[test]
fn what_the_environment_lacks_has_its_default_and_is_named_where_it_is_used() {
    let directory = Directory::default();
    let text = r#"{
        "provider": "openai-compatible", "base_url": "${AWAY}", "model": "m", "workers": "${AWAY}",
        "api_key": "${AWAY}", "max_tokens": 500,
        "fallback": [{"provider": "${AWAY}", "model": "a"}, {"provider": "ollama", "model": "b"}],
        "people": {"Ada": {"notifications": {"ntfy": {"topic": "t", "token": "${AWAY}"}}}},
        "channels": [
            {"type": "tcp", "port": "${AWAY}"},
            {"type": "webhook", "accounts": {
                "kept": {"incoming_path": "/a", "outgoing_url": "http://127.0.0.1:1/", "secret": "${AWAY}"},
                "lost": {"incoming_path": "/b", "outgoing_url": "${AWAY}"}
            }}
        ],
        "tls": {"cert": "${AWAY}", "key": "key.pem"},
        "backup": {"directory": "${AWAY}"}
    }"#;
    let path = directory.write("config.json", text);
    let settings = Settings::open(&path, environment);
    assert!(settings.problems().is_empty(), "{:?}", settings.problems());
    let config = settings.current();
    assert_eq!((config.provider.as_str(), config.workers), ("offline", 16));
    assert_eq!(config.max_tokens, Some(500));
    let fallback: Vec<&str> = config
        .fallback
        .iter()
        .map(|one| one.model.as_str())
        .collect();
    assert_eq!(fallback, ["b"]);
    let accounts: Vec<&str> = config
        .webhook_accounts()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(accounts, ["kept"]);
    assert!(config.webhook_account("kept").unwrap().secret.is_some());
    assert_eq!(config.ports(), [(None, DEFAULT_PORT)]);
    assert_eq!(config.tls.identity(), None);
    for key in ["max_tokens", "limits", "tls.ca_file", "mcp_servers"] {
        settings.check_is_set(key).unwrap();
        settings.check_is_whole(key).unwrap();
    }
    for (key, line) in [
        ("workers", 2),
        ("people.Ada.notifications.ntfy", 5),
        ("channels[1].accounts.kept", 9),
        ("channels[1].accounts.lost.incoming_path", 10),
        ("tls", 13),
        ("backup.directory", 14),
    ] {
        let error = settings.check_is_set(key).unwrap_err();
        let place = format!("config.json line {line}: ");
        assert!(error.message().contains(&place), "{key}: {error}");
        assert!(error.message().contains("variable AWAY"), "{key}: {error}");
    }
    settings.check_person_is_set("ada").unwrap_err();
    settings.check_person_is_set("bob").unwrap();
    settings.check_is_whole("people").unwrap();
    let lost = settings.check_is_whole("channels").unwrap_err();
    assert!(lost.message().contains("line 10"), "{lost}");
    assert!(!lost.message().contains("line 9"), "{lost}");

    // What is changed keeps the variables, and only what is wrong besides is reported.
    assert!(
        settings
            .set("max_tokens", json!("${AWAY}"))
            .unwrap()
            .problems
            .is_empty()
    );
    assert_eq!(settings.get("workers").unwrap(), "${AWAY}");
    let said = settings.set("workers", json!(0)).unwrap_err();
    assert!(!said.message().contains("AWAY"), "{said}");
    assert_eq!(settings.check().0.len(), 11);
    let wrong = directory.write("wrong.json", r#"{"workers": "${AWAY}", "modell": "m"}"#);
    let problems = Settings::open(&wrong, environment).problems().to_string();
    assert!(
        problems.contains("modell") && !problems.contains("AWAY"),
        "{problems}"
    );
}

#[test]
fn a_server_of_speech_keeps_its_key_to_itself() {
    let directory = Directory::default();
    let speech = json!({ "url": "http://pi.lan/v1", "api_key": "sk-speaks" });
    let file = json!({ "voice": { "speech": speech } });
    let path = directory.write("config.json", &file.to_string());
    let settings = load(&path);
    let key = || {
        let config = settings.current();
        let speech = config.voice.speech.as_ref().unwrap();
        speech.api_key.as_ref().map(|key| key.expose().to_owned())
    };
    let update = |change: Value| settings.update(&changes(change)).unwrap();
    update(json!({ "voice.speech.voice": "bella", "voice.speech.url": "http://pi.lan/other" }));
    assert_eq!(key().as_deref(), Some("sk-speaks"));
    let moved = json!({ "voice.speech.url": "http://evil.example/v1" });
    assert_eq!(update(moved), ["voice.speech.url", "voice.speech.api_key"]);
    assert_eq!(key(), None);
    update(json!({ "voice.speech.url": "http://a/", "voice.speech.api_key": "sk-new" }));
    assert_eq!(key().as_deref(), Some("sk-new"));
    update(json!({ "voice.speech": null }));
    assert!(settings.current().voice.speech.is_none());
    let whole = json!({ "voice": { "speech": { "url": "http://a/" } } });
    settings.update(&changes(whole)).unwrap_err();
}
