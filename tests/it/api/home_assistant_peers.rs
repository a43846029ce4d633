//! Home Assistant, with Hearth as its model and as its assistant. It is installed by this
//! test, which so runs only when asked for: `make test-peers`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use support::eventually;
use support::home::{Home, TemporaryDirectory};
use support::http::exchange;
use support::model::{Act, Model};
use support::peers::{self, Running, call, free_address};
use support::recorded::Recorder;
use support::voice::VoiceServer;

const SECRET: &str = "a-secret-of-at-least-32-characters";
/// Where a server of models or tools is set up, and what there is of one.
const ENTRIES: &str = "/api/config/config_entries/flow";
const PARTS: &str = "/api/config/config_entries/subentries/flow";
/// The assistants by Ollama's interface.
const HEARTH: &str = "conversation.voice";
const BUTLER: &str = "conversation.butler";

/// A running Home Assistant with its first user.
struct HomeAssistant {
    address: SocketAddr,
    token: String,
    _running: Running,
    _folder: TemporaryDirectory,
}

impl HomeAssistant {
    fn start(programs: &Path, address: SocketAddr, hearth: SocketAddr) -> HomeAssistant {
        let folder = TemporaryDirectory::new();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers");
        let configuration = fs::read_to_string(data.join("home_assistant.yaml")).unwrap();
        let configuration = configuration
            .replace("PORT", &address.port().to_string())
            .replace("HEARTH", &hearth.to_string())
            .replace("SECRET", SECRET);
        fs::write(folder.path().join("configuration.yaml"), configuration).unwrap();
        let running = Running::start(
            "home-assistant",
            Command::new(programs.join("hass"))
                .arg("--config")
                .arg(folder.path())
                // What it would install is there.
                .arg("--skip-pip")
                .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
                .env("HOME", folder.path()),
            address,
            "/api/onboarding",
        );
        let mut home_assistant = HomeAssistant {
            address,
            token: String::new(),
            _running: running,
            _folder: folder,
        };
        home_assistant.sign_up();
        home_assistant
    }

    fn sign_up(&mut self) {
        let client = format!("http://{}/", self.address);
        let user = self.post(
            "/api/onboarding/users",
            json!({
                "client_id": client, "name": "Ada", "username": "ada",
                "password": "correct horse battery", "language": "en",
            }),
        );
        let code = user["auth_code"].as_str().unwrap();
        let form = format!("grant_type=authorization_code&code={code}&client_id={client}");
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let answer = exchange(
            self.address,
            "POST",
            "/auth/token",
            &headers,
            form.as_bytes(),
        );
        self.token = answer.json()["access_token"].as_str().unwrap().to_owned();
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Value {
        call(self.address, &self.token, method, path, body)
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, &body.to_string())
    }

    /// Opens the form that sets something up.
    fn form(&self, path: &str, handler: Value) -> Value {
        let form = self.post(path, json!({ "handler": handler }));
        assert_eq!(form["type"], "form", "{form}");
        form
    }

    /// Sends what was entered into a form; returns what was made.
    fn send(&self, path: &str, form: &Value, entered: Value) -> Value {
        let path = format!("{path}/{}", form["flow_id"].as_str().unwrap());
        let made = self.post(&path, entered);
        assert_eq!(made["type"], "create_entry", "{made}");
        made
    }

    fn set_up(&self, path: &str, handler: Value, entered: Value) -> Value {
        self.send(path, &self.form(path, handler), entered)
    }

    fn state(&self, entity: &str) -> Option<Value> {
        let states = self.call("GET", "/api/states", "");
        let mut states = states.as_array().unwrap().iter();
        let found = states.find(|state| state["entity_id"] == entity)?;
        Some(found["state"].clone())
    }

    fn wait_for(&self, entity: &str) {
        eventually(entity, || {
            self.state(entity).filter(|state| state != "unavailable")
        });
    }

    /// Says something to an assistant; returns its answer.
    fn say(&self, agent: &str, text: &str, conversation: &Value) -> Value {
        let mut body = json!({ "text": text, "language": "en", "agent_id": agent });
        if !conversation.is_null() {
            body["conversation_id"] = conversation.clone();
        }
        self.post("/api/conversation/process", body)
    }
}

fn speech(answer: &Value) -> &str {
    answer["response"]["speech"]["plain"]["speech"]
        .as_str()
        .unwrap()
}

/// Turns lights on with the tools of Home Assistant, and off with those of its MCP server;
/// where Home Assistant has tools of Hearth, uses those.
fn model() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let light = json!({ "name": "Kitchen Light", "domain": ["light"] });
        // Home Assistant puts a name before its own: intent__HassTurnOn.
        let call = |end: &str, arguments| {
            let tools = request["tools"].as_array().unwrap().iter();
            let mut names = tools.filter_map(|tool| tool["function"]["name"].as_str());
            Act::call(names.find(|name| name.ends_with(end)).unwrap(), arguments)
        };
        if last["role"] == "tool" {
            Act::say(if text.contains("success") {
                "Done."
            } else {
                text
            })
        } else if text.contains("remember") {
            Act::call("remember", json!({ "content": "Milo is a cat." }))
        } else if text.contains("milk") {
            let milk = json!({ "action": "add", "list": "shopping", "items": ["milk"] });
            call("lists", milk)
        } else if text.contains("note this") {
            call("remember", json!({ "content": "Milo eats at seven." }))
        } else if text.contains("what do you know") {
            call("recall", json!({ "query": "Milo" }))
        } else if text.contains("light on") {
            call("HassTurnOn", light)
        } else if text.contains("light off") {
            call("HassTurnOff", light)
        } else if request["response_format"].is_object() {
            Act::say(r#"{"name": "Milo", "age": 3}"#)
        } else {
            let users = messages.iter().filter(|one| one["role"] == "user").count();
            Act::say(&format!("You have said {users} things."))
        }
    })
}

/// One test: it starts for half a minute, and has one home.
#[test]
#[ignore = "installs homeassistant from PyPI: make test-peers"]
fn home_assistant_talks_and_listens() {
    let Some(programs) = peers::HOME_ASSISTANT.installed() else {
        return;
    };
    let (model, address) = (model(), free_address());
    let heard = VoiceServer::hearing("Is the door shut?");
    let mut home = Home::start(model.config_with(json!({
        "openai_api": { "enabled": true },
        "voice": { "transcription": { "url": heard.url(), "model": "small" } },
        "mcp_api": { "enabled": true },
        "context_tokens": 32_768,
        "tool_permissions": { "remember": "ask" },
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": { "home": {
                "incoming_path": "/hooks/home", "secret": SECRET,
                "outgoing_url": format!("http://{address}/api/webhook/hearth_reply"),
            } } },
        ],
    })));
    let recorder = Recorder::before("home-assistant", home.address());
    let hearth = recorder.address();
    let home_assistant = HomeAssistant::start(&programs, address, hearth);
    let ollama = assist(&home_assistant, &home, hearth);
    tools(&home_assistant, &home, hearth, &ollama);
    openai(&home_assistant, &home, hearth, &heard);
    webhook(&home_assistant);
    recorder.check();
    mcp(&home_assistant, &model, &mut home);
}

fn settings(name: &str, model: &str) -> Value {
    json!({ "name": name, "model": model, "num_ctx": 8192, "max_history": 20,
        "keep_alive": -1, "think": false })
}

/// As its conversation agent and for its AI tasks, by the integration `ollama`; returns its
/// entry.
fn assist(home_assistant: &HomeAssistant, home: &Home, hearth: SocketAddr) -> Value {
    let url = format!("http://{hearth}");
    let form = home_assistant.form(ENTRIES, json!("ollama"));
    let wrong = format!("{ENTRIES}/{}", form["flow_id"].as_str().unwrap());
    let refused = home_assistant.post(&wrong, json!({ "url": url, "api_key": "wrong" }));
    assert_eq!(refused["errors"]["base"], "invalid_auth", "{refused}");
    let entered = json!({ "url": url, "api_key": home.tokens.user });
    let made = home_assistant.send(ENTRIES, &form, entered);
    let entry = made["result"]["entry_id"].clone();
    let mut conversation = settings("Voice", "hearth:latest");
    conversation["llm_hass_api"] = json!(["assist"]);
    conversation["prompt"] = json!("You are the voice of the house.");
    home_assistant.set_up(PARTS, json!([entry, "conversation"]), conversation);
    home_assistant.wait_for(HEARTH);
    let task = settings("Voice task", "hearth:latest");
    home_assistant.set_up(PARTS, json!([entry, "ai_task_data"]), task);
    home_assistant.wait_for("ai_task.voice_task");
    home_assistant.wait_for(HEARTH);

    talk(home_assistant, HEARTH);
    let mut user = home.websocket(&home.tokens.user);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    let listed = listed["conversations"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["message_count"], 6, "{listed:?}");

    // Who waits for an answer by voice gets one at once.
    let asked = home_assistant.say(HEARTH, "remember the cat", &Value::Null);
    assert!(
        speech(&asked).starts_with("Waiting for permission"),
        "{asked}"
    );

    let text = json!({ "selector": { "text": {} }, "required": true });
    let number = json!({ "selector": { "number": {} } });
    let answer = home_assistant.post(
        "/api/services/ai_task/generate_data?return_response",
        json!({
            "task_name": "cat", "entity_id": "ai_task.voice_task", "instructions": "Which cat?",
            "structure": { "name": text, "age": number },
        }),
    );
    let data = &answer["service_response"]["data"];
    assert_eq!(data, &json!({ "name": "Milo", "age": 3 }), "{answer}");
    entry
}

/// As its conversation agent by the integrations `litellm` and `llama_cpp`, and as what hears it.
fn openai(home_assistant: &HomeAssistant, home: &Home, hearth: SocketAddr, heard: &VoiceServer) {
    let url = format!("http://{hearth}");
    let entered = json!({ "url": url, "api_key": home.tokens.user });
    let made = home_assistant.set_up(ENTRIES, json!("litellm"), entered);
    let entry = made["result"]["entry_id"].clone();
    let agent = json!({ "model": "hearth", "llm_hass_api": ["assist"] });
    home_assistant.set_up(PARTS, json!([entry, "conversation"]), agent);
    talk(home_assistant, "conversation.hearth");

    let form = home_assistant.form(ENTRIES, json!("llama_cpp"));
    let path = format!("{ENTRIES}/{}", form["flow_id"].as_str().unwrap());
    let entered = json!({ "base_url": format!("{url}/v1"), "api_key": home.tokens.user });
    let models = home_assistant.post(&path, entered);
    assert_eq!(models["step_id"], "model", "{models}");
    let chosen = json!({ "chat_model": "hearth" });
    home_assistant.send(ENTRIES, &models, chosen);
    talk(home_assistant, "conversation.hearth_2");

    let hears = json!({ "model": "whisper-1", "custom_prompt_keywords": false });
    home_assistant.set_up(PARTS, json!([entry, "stt"]), hears);
    home_assistant.wait_for("stt.whisper_1");
    let authorization = format!("Bearer {}", home_assistant.token);
    let headers = [
        ("authorization", authorization.as_str()),
        (
            "x-speech-content",
            "format=wav; codec=pcm; sample_rate=16000; bit_rate=16; channel=1; language=en-US",
        ),
    ];
    let (address, path) = (home_assistant.address, "/api/stt/stt.whisper_1");
    let answer = exchange(address, "POST", path, &headers, &[0; 3_200]).json();
    let expected = json!({ "text": "Is the door shut?", "result": "success" });
    assert_eq!(answer, expected);
    assert_eq!(heard.asked().len(), 1);
}

/// Three things said to an assistant are one conversation, with a tool of Home Assistant.
fn talk(home_assistant: &HomeAssistant, agent: &str) {
    home_assistant.wait_for(agent);
    let first = home_assistant.say(agent, "hello", &Value::Null);
    assert_eq!(speech(&first), "You have said 1 things.", "{first}");
    let conversation = &first["conversation_id"];
    let switch = json!({ "entity_id": "input_boolean.kitchen" });
    home_assistant.post("/api/services/input_boolean/turn_off", switch);
    let second = home_assistant.say(agent, "light on please", conversation);
    assert_eq!(speech(&second), "Done.", "{second}");
    assert_eq!(home_assistant.state("light.kitchen_light").unwrap(), "on");
    let third = home_assistant.say(agent, "thank you", conversation);
    assert_eq!(speech(&third), "You have said 3 things.", "{third}");
}

/// As a server of tools, by the integration `mcp`: for an assistant that has no others of
/// Hearth.
fn tools(home_assistant: &HomeAssistant, home: &Home, hearth: SocketAddr, ollama: &Value) {
    let url = format!("http://hearth:{}@{hearth}/mcp", home.tokens.user);
    let made = home_assistant.set_up(ENTRIES, json!("mcp"), json!({ "url": url }));
    assert_eq!(made["title"], "hearth", "{made}");
    let entry = &made["result"];
    assert_eq!(entry["state"], "loaded", "{entry}");
    let tools = format!("mcp-{}", entry["entry_id"].as_str().unwrap());

    let form = home_assistant.form(PARTS, json!([ollama, "conversation"]));
    let fields = form["data_schema"].as_array().unwrap();
    let field = fields.iter().find(|one| one["name"] == "llm_hass_api");
    let offered = &field.unwrap()["selector"]["select"]["options"];
    let named = json!({ "label": "hearth", "value": tools });
    assert!(offered.as_array().unwrap().contains(&named), "{offered}");
    let mut butler = settings("Butler", "hearth-plain:latest");
    butler["llm_hass_api"] = json!(["assist", tools]);
    home_assistant.send(PARTS, &form, butler);
    home_assistant.wait_for(BUTLER);

    let added = home_assistant.say(BUTLER, "milk on the list", &Value::Null);
    assert!(speech(&added).contains("shopping"), "{added}");
    let mut user = home.websocket(&home.tokens.user);
    let list = user.ask(json!({ "type": "get_list", "list": "shopping" }));
    assert_eq!(list["items"][0]["text"], "milk", "{list}");
    home_assistant.say(BUTLER, "note this", &Value::Null);
    let memories = user.ask(json!({ "type": "list_memories" }));
    let memory = &memories["memories"][0]["content"];
    assert_eq!(memory, "Milo eats at seven.", "{memories}");
    let recalled = home_assistant.say(BUTLER, "what do you know", &Value::Null);
    assert!(speech(&recalled).contains("eats at seven"), "{recalled}");
}

/// By `rest_command`, and an automation that takes the reply.
fn webhook(home_assistant: &HomeAssistant) {
    let message = json!({ "message": "The \"door\" is open." });
    home_assistant.post("/api/services/rest_command/hearth", message);
    eventually("the reply", || {
        let reply = home_assistant.state("input_text.reply")?;
        (reply == "You have said 1 things.").then_some(())
    });
}

/// By the MCP server of Home Assistant.
fn mcp(home_assistant: &HomeAssistant, model: &Model, home: &mut Home) {
    let form = json!({ "llm_hass_api": ["assist"] });
    home_assistant.set_up(ENTRIES, json!("mcp_server"), form);
    let authorization = format!("Bearer {}", home_assistant.token);
    let config = model.config_with(json!({ "mcp_servers": { "home": {
        "url": format!("http://{}/api/mcp", home_assistant.address),
        "headers": { "Authorization": authorization },
    } } }));
    support::home::write_config(home.folder.path(), config);
    home.restart();
    let mut admin = home.admin();
    eventually("its tools", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        (info["mcp_servers"][0]["state"] == "ready").then_some(())
    });
    let reply = admin.chat("light off please");
    assert_eq!(reply["response"], "Done.", "{reply}");
    assert_eq!(home_assistant.state("light.kitchen_light").unwrap(), "off");
}
