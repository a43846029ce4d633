//! Programs that people run beside Hearth: aider, LiteLLM's proxy and Node-RED. They are
//! installed by these tests, so they run only when asked for: `make test-peers`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::api::library_peers::{self, model};
use support::eventually;
use support::home::{Home, TemporaryDirectory};
use support::http::{exchange, post};
use support::model::Model;
use support::peers::{self, Running, free_address};
use support::recorded::Recorder;

#[test]
#[ignore = "installs litellm from PyPI: make test-peers"]
fn litellms_proxy_passes_requests_on() {
    let Some(programs) = peers::LITELLM.installed() else {
        return;
    };
    let model = model();
    let home = library_peers::home(&model);
    let recorder = Recorder::before("litellm-proxy", home.address());
    let (folder, address) = (TemporaryDirectory::new(), free_address());
    let entry = |name: &str, kind: &str, path: &str| {
        json!({ "model_name": name, "litellm_params": {
            "model": format!("{kind}/hearth"), "api_key": home.tokens.user,
            "api_base": format!("http://{}{path}", recorder.address()),
        } })
    };
    let config = json!({
        "model_list": [entry("home", "openai", "/v1"), entry("ollama", "ollama_chat", "")],
        "general_settings": { "master_key": "sk-1" },
    });
    let file = folder.path().join("config.yaml");
    // JSON is YAML, too.
    fs::write(&file, config.to_string()).unwrap();
    let _proxy = Running::start(
        "litellm-proxy",
        Command::new(programs.join("litellm"))
            .arg("--config")
            .arg(file)
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("HOME", folder.path()),
        address,
        "/health/liveliness",
    );
    let ask = |body: Value| {
        let headers = [("authorization", "Bearer sk-1")];
        let answer = post(address, "/v1/chat/completions", &headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    };
    let said = json!([{ "role": "user", "content": "hello" }]);
    for model in ["home", "ollama"] {
        let whole = ask(json!({ "model": model, "messages": said })).json();
        let text = &whole["choices"][0]["message"]["content"];
        assert_eq!(text, "You have said 1 things.", "{model}: {whole}");
        let streamed = ask(json!({ "model": model, "messages": said, "stream": true }));
        assert!(streamed.body.contains("things."), "{model}: {streamed:?}");
        assert!(streamed.body.contains("[DONE]"), "{model}: {streamed:?}");
    }
    recorder.check();
}

#[test]
#[ignore = "installs aider-chat from PyPI: make test-peers"]
fn aider_changes_a_file() {
    let Some(programs) = peers::AIDER.installed() else {
        return;
    };
    // What aider takes for a new version of the file.
    let model = Model::saying("calc.py\n```\ndef add(a, b):\n    return a + b\n```\n");
    let home = library_peers::home(&model);
    let recorder = Recorder::before("aider", home.address());
    let folder = TemporaryDirectory::new();
    let file = folder.path().join("calc.py");
    fs::write(&file, "def add(a, b):\n    return a - b\n").unwrap();
    let options = "--model openai/hearth-plain --edit-format whole --yes-always --no-git \
                   --no-pretty --no-show-model-warnings --no-check-update --analytics-disable";
    peers::script(
        Command::new(programs.join("aider"))
            .args(options.split_whitespace())
            .args(["--message", "repair add"])
            .arg("calc.py")
            .current_dir(folder.path())
            .env(
                "OPENAI_API_BASE",
                format!("http://{}/v1", recorder.address()),
            )
            .env("OPENAI_API_KEY", &home.tokens.user)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("HOME", folder.path()),
    );
    let changed = fs::read_to_string(file).unwrap();
    assert_eq!(changed, "def add(a, b):\n    return a + b\n");
    // The model alone: nothing of it is kept.
    let listed = home
        .websocket(&home.tokens.user)
        .ask(json!({ "type": "list_conversations" }));
    assert_eq!(listed["conversations"], json!([]));
    recorder.check();
}

/// Starts Node-RED with this flow, which listens at /last, too.
fn node_red(
    folder: &Path,
    address: SocketAddr,
    flow: &Value,
    environment: &[(&str, &str)],
) -> Option<Running> {
    let node_red = peers::NODE_RED.installed()?;
    fs::write(folder.join("flows.json"), flow.to_string()).unwrap();
    let settings = format!(
        "module.exports = {{ uiHost: '127.0.0.1', uiPort: {}, flowFile: 'flows.json',
             telemetry: {{ enabled: false }} }};",
        address.port()
    );
    fs::write(folder.join("settings.js"), settings).unwrap();
    let running = Running::start(
        "node-red",
        Command::new("node")
            .arg(node_red.join("node_modules/node-red/red.js"))
            .arg("--userDir")
            .arg(folder)
            .envs(environment.iter().copied())
            .env("HOME", folder),
        address,
        "/last",
    );
    // It listens before its flows do.
    eventually("the flow", || {
        let answer = exchange(address, "GET", "/last", &[], b"");
        (answer.status == 200).then_some(())
    });
    Some(running)
}

/// The handbook's flow for events, with what keeps the last one for /last.
#[test]
#[ignore = "installs node-red from npm: make test-peers"]
fn a_flow_of_node_red_hears_what_is_said() {
    let (folder, address) = (TemporaryDirectory::new(), free_address());
    let mut home = Home::start(json!({
        "limits": { "commands_per_second": 100_000, "commands_burst": 100_000 },
    }));
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let flow = fs::read_to_string(project.join("examples/node-red-events.json")).unwrap();
    let mut flow: Value = serde_json::from_str(&flow).unwrap();
    flow[1]["wires"][0]
        .as_array_mut()
        .unwrap()
        .push(json!("keep"));
    let more = json!([
        { "id": "keep", "type": "function", "z": "hearth-tab", "x": 1, "y": 1, "wires": [[]],
          "func": "flow.set('all', (flow.get('all') || '') + msg.payload.message.content + ' ');" },
        { "id": "last", "type": "http in", "z": "hearth-tab", "x": 1, "y": 1, "wires": [["show"]],
          "url": "/last", "method": "get" },
        { "id": "show", "type": "function", "z": "hearth-tab", "x": 1, "y": 1, "wires": [["answer"]],
          "func": "msg.payload = flow.get('all') || ''; return msg;", "outputs": 1 },
        { "id": "answer", "type": "http response", "z": "hearth-tab", "x": 1, "y": 1, "wires": [] },
    ]);
    flow.as_array_mut()
        .unwrap()
        .extend(more.as_array().unwrap().iter().cloned());
    let port = home.address().port();
    let recorder = Recorder::before("node-red", home.address());
    let url = format!("http://{}", recorder.address());
    let environment = [("HEARTH_URL", &*url), ("HEARTH_TOKEN", &*home.tokens.user)];
    let Some(_node_red) = node_red(folder.path(), address, &flow, &environment) else {
        return;
    };
    let hears = |home: &Home, text: &str| {
        let mut user = home.websocket(&home.tokens.user);
        eventually(text, || {
            // It may not be connected yet.
            user.chat(text);
            let all = exchange(address, "GET", "/last", &[], b"").body;
            String::from_utf8(all).unwrap().contains(text).then_some(())
        });
    };
    hears(&home, "what did I say");
    home.stop();
    home.start_on(port);
    hears(&home, "hello again");
    recorder.check();
}

/// A flow that posts what comes to /ring to the webhook, and keeps what comes to /reply for
/// /last.
fn flow(home: &str, secret: &str) -> Value {
    let node = |id: &str, kind: &str, next: &[&str], more: Value| {
        let mut node =
            json!({ "id": id, "type": kind, "z": "tab", "x": 1, "y": 1, "wires": [next] });
        for (key, value) in more.as_object().unwrap() {
            node[key] = value.clone();
        }
        node
    };
    let listen = |id: &str, method: &str, next: &str| {
        let more = json!({ "url": format!("/{id}"), "method": method });
        node(id, "http in", &[next], more)
    };
    let run = |id: &str, code: String, next: &str| {
        node(
            id,
            "function",
            &[next],
            json!({ "func": code, "outputs": 1 }),
        )
    };
    let prepare = format!(
        "msg.headers = {{ 'X-Service-Secret': '{secret}' }};
         msg.payload = {{ message: msg.payload.text, conversation_id: 'node-red' }};
         return msg;"
    );
    let keep = format!(
        "if (msg.req.headers['x-service-secret'] === '{secret}') flow.set('reply', msg.payload);
         msg.payload = ''; return msg;"
    );
    let last = "msg.payload = flow.get('reply') || {}; return msg;".to_owned();
    let request =
        json!({ "method": "POST", "ret": "obj", "url": format!("http://{home}/hooks/flow") });
    json!([
        { "id": "tab", "type": "tab", "label": "Hearth" },
        listen("ring", "post", "prepare"),
        run("prepare", prepare, "post"),
        node("post", "http request", &["answer"], request),
        listen("reply", "post", "keep"),
        run("keep", keep, "answer"),
        listen("last", "get", "show"),
        run("show", last, "answer"),
        node("answer", "http response", &[], json!({})),
    ])
}

#[test]
#[ignore = "installs node-red from npm: make test-peers"]
fn a_flow_of_node_red_asks_and_hears_the_reply() {
    let (folder, address) = (TemporaryDirectory::new(), free_address());
    let secret = "a-secret-of-at-least-32-characters";
    let model = Model::saying("The postman, I think.");
    let home = Home::start(model.config_with(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "flow": {
            "incoming_path": "/hooks/flow", "secret": secret,
            "outgoing_url": format!("http://{address}/reply"),
        } } },
    ] })));
    let recorder = Recorder::before("node-red", home.address());
    let flow = flow(&recorder.address().to_string(), secret);
    let Some(_node_red) = node_red(folder.path(), address, &flow, &[]) else {
        return;
    };
    let accepted = post(
        address,
        "/ring",
        &[],
        &json!({ "text": "Who is at the door?" }),
    );
    assert_eq!(accepted.json()["status"], "ok", "{accepted:?}");
    let reply = eventually("the callback", || {
        let last = exchange(address, "GET", "/last", &[], b"").json();
        last["message"].is_string().then_some(last)
    });
    assert_eq!(
        reply,
        json!({ "message": "The postman, I think.", "conversation_id": "node-red" })
    );
    recorder.check();
}
