//! Open WebUI, with Hearth as its models: over its own HTTP interface, and its page in
//! Chromium. It is installed by this test, which so runs only when asked for:
//! `make test-peers`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use store::UserRole;

use super::chromium::{Chromium, Page};
use support::eventually;
use support::home::{Home, TemporaryDirectory};
use support::http::exchange;
use support::model::{Act, Model};
use support::peers::{self, Running, call, free_address};
use support::recorded::Recorder;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The kinds of connection, by the model that each has of Hearth.
const MODELS: [&str; 2] = ["hearth", "hearth:latest"];

/// A running Open WebUI with its first user, who is Hearth's admin by her address.
struct OpenWebUi {
    address: SocketAddr,
    token: String,
    _running: Running,
    folder: TemporaryDirectory,
}

impl OpenWebUi {
    /// With Hearth behind both kinds of connection. It says who asks if it `names` them.
    fn start(programs: &Path, hearth: SocketAddr, key: &str, names: bool) -> OpenWebUi {
        let (folder, address) = (TemporaryDirectory::new(), free_address());
        let running = Running::start(
            "open-webui",
            Command::new(programs.join("open-webui"))
                .args(["serve", "--host", "127.0.0.1", "--port"])
                .arg(address.port().to_string())
                .env("HOME", folder.path())
                .env("DATA_DIR", folder.path())
                .env("WEBUI_SECRET_KEY", "only here")
                .env("OFFLINE_MODE", "true")
                .env("HF_HUB_OFFLINE", "1")
                .env("ENABLE_VERSION_UPDATE_CHECK", "false")
                .env("ANONYMIZED_TELEMETRY", "false")
                .env("OLLAMA_BASE_URLS", format!("http://{hearth}"))
                .env("DEFAULT_MODELS", "hearth")
                .env("ENABLE_FORWARD_USER_INFO_HEADERS", names.to_string())
                .env("BYPASS_MODEL_ACCESS_CONTROL", "true")
                // Files are given to the model whole, as it has nothing to search them with.
                .env("BYPASS_EMBEDDING_AND_RETRIEVAL", "true")
                .env("RAG_EMBEDDING_ENGINE", "openai"),
            address,
            "/health",
        );
        let mut open_webui = OpenWebUi {
            address,
            token: String::new(),
            _running: running,
            folder,
        };
        let user = open_webui.post(
            "/api/v1/auths/signup",
            json!({
                "name": "Ada", "email": "ada@example.org",
                "password": "correct horse battery", "profile_image_url": "",
            }),
        );
        open_webui.token = user["token"].as_str().unwrap().to_owned();
        open_webui.post(
            "/openai/config/update",
            json!({
                "ENABLE_OPENAI_API": true,
                "OPENAI_API_BASE_URLS": [format!("http://{hearth}/v1")],
                "OPENAI_API_KEYS": [key],
                "OPENAI_API_CONFIGS": { "0": { "enable": true } },
            }),
        );
        open_webui.post(
            "/ollama/config/update",
            json!({
                "ENABLE_OLLAMA_API": true,
                "OLLAMA_BASE_URLS": [format!("http://{hearth}")],
                "OLLAMA_API_CONFIGS": { "0": { "enable": true, "key": key } },
            }),
        );
        open_webui
    }

    /// Adds a user; returns their token.
    fn add(&self, name: &str) -> String {
        let user = self.post(
            "/api/v1/auths/add",
            json!({
                "name": name, "email": format!("{name}@example.org"),
                "password": "correct horse battery", "role": "user",
            }),
        );
        user["token"].as_str().unwrap().to_owned()
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Value {
        call(self.address, &self.token, method, path, body)
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, &body.to_string())
    }

    /// Its page in a browser, signed in.
    fn page(&self, browser: &Chromium) -> Page {
        let mut page = browser.page();
        let address = format!("http://{}", self.address);
        page.open(&format!("{address}/auth"));
        page.until("location.pathname === '/auth' && document.readyState === 'complete'");
        page.evaluate(&format!("localStorage.token = {}", json!(self.token)));
        page.open(&address);
        page.until("document.querySelector('#chat-input')");
        // What it shows after an update.
        page.press("Escape", 0);
        page
    }
}

/// Says something in its page.
fn say(page: &mut Page, text: &str) {
    let composer = "document.querySelector('#chat-input')";
    page.until(composer);
    page.evaluate(&format!("{composer}.focus()"));
    page.call("Input.insertText", json!({ "text": text }));
    // A file that is still on its way holds it back.
    eventually("the message is sent", || {
        page.press("Enter", 0);
        let rest = page.evaluate(&format!("{composer}?.innerText.trim() ?? ''"));
        (rest == "").then_some(())
    });
}

fn until_shown(page: &mut Page, text: &str) {
    page.until(&format!(
        "document.body.innerText.includes({})",
        json!(text)
    ));
}

/// Adds a file to the next message, and waits until it is there.
fn attach(page: &mut Page, open_webui: &OpenWebUi, name: &str, bytes: &[u8]) {
    let path = open_webui.folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let input = page.call(
        "Runtime.evaluate",
        json!({ "expression": "document.querySelector('input[type=file][multiple]')" }),
    );
    let input = &input["result"]["objectId"];
    page.call(
        "DOM.setFileInputFiles",
        json!({ "files": [path], "objectId": input }),
    );
    eventually("the file", || {
        let files = open_webui.call("GET", "/api/v1/files/", "");
        let files = files.as_array().or(files["items"].as_array())?;
        files.iter().find(|file| file["filename"] == name)?;
        Some(())
    });
}

/// What is shown is stored a moment later: in so many conversations, and so many messages in
/// the newest of them.
fn until_stored(home: &Home, chats: usize, messages: usize) {
    let listed = eventually("the messages", || {
        let listed = conversations(home, &home.tokens.admin);
        (listed[0]["message_count"] == messages).then_some(listed)
    });
    assert_eq!(listed.len(), chats, "{listed:?}");
}

/// Counts what was said. What brings no tools is a task, for a title, tags or what to ask
/// next.
fn model() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let (role, last) = (
            &messages.last().unwrap()["role"],
            &messages.last().unwrap()["content"],
        );
        let last = last.to_string();
        let users = messages.iter().filter(|one| one["role"] == "user").count();
        let reply = format!("You have said {users} things.");
        if request["tools"].is_null() {
            let answer = json!({ "title": "A title", "tags": ["tag"], "queries": [],
                "follow_ups": ["and then?"] });
            Act::Say(answer.to_string())
        } else if role == "tool" {
            Act::say("I shall remember.")
        } else if last.contains("the cat is called") {
            Act::call("remember", json!({ "content": "The cat is called Milo." }))
        } else if last.contains("be slow") {
            Act::Pause("one two three four five six seven eight nine ten".to_owned())
        } else {
            Act::Say(reply)
        }
    })
}

fn conversations(home: &Home, token: &str) -> Vec<Value> {
    let mut client = home.websocket(token);
    let listed = client.ask(json!({ "type": "list_conversations" }));
    listed["conversations"].as_array().unwrap().clone()
}

/// One test: it starts for half a minute, and has one home.
#[test]
#[ignore = "installs open-webui from PyPI, and needs Chromium: make test-peers"]
fn open_webui_chats() {
    let Some(programs) = peers::OPEN_WEBUI.installed() else {
        return;
    };
    let model = model();
    let home = Home::start(model.config_with(json!({
        "openai_api": { "enabled": true, "users": {
            "ada@example.org": "admin", "grace@example.org": "user",
        } },
        // It brings 36 tools.
        "context_tokens": 32_768,
        "tool_permissions": { "remember": "ask" },
    })));
    let own = home.add_person("open-webui", UserRole::User);
    let key = home.token("open-webui", &json!({ "speaks_for": ["admin", "user"] }));
    let recorder = Recorder::before("open-webui", home.address());
    let open_webui = OpenWebUi::start(&programs, recorder.address(), &key, true);
    its_own_interface(&open_webui);
    its_users(&open_webui, &home);
    its_page(&open_webui, &home, &model);
    // Everything was said by the people whose addresses Open WebUI sends.
    assert_eq!(conversations(&home, &own), [] as [Value; 0]);
    recorder.check();
}

/// Without the setting by which it says who asks.
#[test]
#[ignore = "installs open-webui from PyPI, and needs Chromium: make test-peers"]
fn open_webui_chats_as_it_is_installed() {
    let Some(programs) = peers::OPEN_WEBUI.installed() else {
        return;
    };
    let model = model();
    let home = Home::start(model.config_with(json!({
        "openai_api": { "enabled": true }, "context_tokens": 32_768,
    })));
    let recorder = Recorder::before("open-webui", home.address());
    let key = &home.tokens.admin;
    let open_webui = OpenWebUi::start(&programs, recorder.address(), key, false);
    let browser = Chromium::start();
    talk(&mut open_webui.page(&browser), &open_webui, &home, &model);
    let listed = home.admin().ask(json!({ "type": "list_tokens" }));
    let mut tokens = listed["tokens"].as_array().unwrap().iter();
    let its = tokens.find(|token| token["user"] == "admin").unwrap();
    assert_eq!(its["names_nobody"], true, "{its}");
    recorder.check();
}

fn its_own_interface(open_webui: &OpenWebUi) {
    let models = open_webui.call("GET", "/api/models", "");
    let names: Vec<&str> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    for name in ["hearth", "hearth-plain", "hearth:latest"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

/// Each is a person of the household by their address; nobody else is answered.
fn its_users(open_webui: &OpenWebUi, home: &Home) {
    let [grace, eve] = ["grace", "eve"].map(|name| open_webui.add(name));
    let ask = |token: &str, model: &str| {
        let said = json!([{ "role": "user", "content": format!("hello, {model}") }]);
        let body = json!({ "model": model, "messages": said }).to_string();
        let authorization = format!("Bearer {token}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
        ];
        let path = "/api/chat/completions";
        let answer = exchange(open_webui.address, "POST", path, &headers, body.as_bytes());
        String::from_utf8(answer.body).unwrap()
    };
    for (number, model) in MODELS.iter().enumerate() {
        let answer = ask(&grace, model);
        assert!(answer.contains("You have said 1 things."), "{answer}");
        let listed = conversations(home, &home.tokens.user);
        assert_eq!(listed.len(), number + 1, "{listed:?}");
        let refused = ask(&eve, model);
        assert!(refused.contains("openai_api.users"), "{refused}");
    }
    assert_eq!(conversations(home, &home.tokens.admin), [] as [Value; 0]);
}

/// Three messages to each kind of connection, which are a conversation each.
fn talk(page: &mut Page, open_webui: &OpenWebUi, home: &Home, model: &Model) {
    for (chats, name) in MODELS.iter().rev().enumerate() {
        page.open(&format!("http://{}/?models={name}", open_webui.address));
        let before = model.requests().len();
        for (number, text) in ["hello", "and again", "and once more"].iter().enumerate() {
            say(page, text);
            until_shown(page, &format!("You have said {} things.", number + 1));
            until_shown(page, "and then?");
        }
        until_shown(page, "A title");
        // Titles, tags and what to ask next are tasks, for which the assistant has no tools.
        let tasks = |what: &str| {
            let requests = model.requests().into_iter().skip(before);
            let texts = requests.filter(|one| one["tools"].is_null());
            texts
                .map(|one| one["messages"].to_string())
                .filter(|text| text.contains("### Task:") && text.contains(what))
                .count()
        };
        for what in ["concise title", "broad tags", "useful messages"] {
            eventually(what, || (tasks(what) > 0).then_some(()));
        }
        until_stored(home, chats + 1, 6);
    }
}

fn its_page(open_webui: &OpenWebUi, home: &Home, model: &Model) {
    let browser = Chromium::start();
    let mut page = open_webui.page(&browser);
    talk(&mut page, open_webui, home, model);
    let count = |messages| until_stored(home, MODELS.len(), messages);

    say(&mut page, "be slow");
    until_shown(&mut page, "one two three");
    page.click("button[aria-label=Stop]");
    eventually("the turn's end", || {
        let info = home.admin().ask(json!({ "type": "server_info" }));
        (info["turns"]["running"] == 0).then_some(())
    });
    model.release();
    say(&mut page, "go on");
    until_shown(&mut page, "You have said 5 things.");
    count(10);

    // What needs permission says so, and goes on once there is an answer.
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    say(&mut page, "the cat is called Milo");
    let asked = admin.event("approval.requested");
    until_shown(&mut page, "Waiting for permission to use remember");
    admin.ask(json!({ "type": "approve", "approval_id": asked["approval_id"] }));
    until_shown(&mut page, "I shall remember.");
    count(12);

    attach(
        &mut page,
        open_webui,
        "note.txt",
        b"The bins go out on Monday.",
    );
    say(&mut page, "What does the note say?");
    until_shown(&mut page, "You have said 7 things.");
    let asked = |text: &str| {
        let requests = model.requests();
        let asked = requests.iter().rev().find(|one| one["tools"].is_array());
        let last = asked.unwrap()["messages"].as_array().unwrap().last();
        let last = last.unwrap().to_string();
        assert!(last.contains(text), "{last}");
    };
    asked("The bins go out on Monday.");
    let picture = protocol::attachment::decode(PNG).unwrap();
    attach(&mut page, open_webui, "dot.png", &picture);
    say(&mut page, "What is in the picture?");
    until_shown(&mut page, "You have said 8 things.");
    asked("data:image/png;base64,");
    count(16);
    page.screenshot("open-webui");
}
