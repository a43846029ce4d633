//! Pictures that tools of MCP servers answer with: who sees them, for how long, and what
//! the model is shown of them.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::service::attachments::PNG;
use support::client::Client;
use support::eventually;
use support::home::Home;
use support::model::{Act, Model};

struct Camera {
    home: Home,
    model: Model,
}

impl Camera {
    /// A household whose model looks out of the window, and then does this.
    fn start(then: Vec<Act>) -> Camera {
        let mut acts = vec![Act::call("mcp_camera_look", json!({}))];
        acts.extend(then);
        let model = Model::acting(acts);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_camera.sh");
        let mut home = Home::start(json!({}));
        home.stop();
        let notes = home.folder.path().join("notes");
        let servers = json!({
            "camera": { "command": "sh", "args": [script], "env": { "STUB_NOTES": notes } },
        });
        let config = model.config_with(json!({ "mcp_servers": servers }));
        support::home::write_config(home.folder.path(), config);
        home.restart();
        let camera = Camera { home, model };
        camera.wait_for_tool();
        camera
    }

    fn wait_for_tool(&self) {
        let mut client = self.home.admin();
        eventually("the camera is there", || {
            let listed = client.ask(json!({ "type": "list_tools" })).to_string();
            listed.contains("mcp_camera_look").then_some(())
        });
    }

    fn calls(&self) -> usize {
        let notes = fs::read_to_string(self.home.folder.path().join("notes"));
        notes.unwrap_or_default().lines().count()
    }
}

fn messages(client: &mut Client, conversation: &Value) -> Vec<Value> {
    let get = json!({ "type": "get_messages", "conversation_id": conversation });
    client.ask(get)["messages"].as_array().unwrap().clone()
}

#[test]
fn a_picture_of_a_tool_is_the_conversation_s() {
    let camera = Camera::start(vec![Act::say("A fox.")]);
    let mut owner = camera.home.websocket(&camera.home.tokens.user);
    let chat = json!({ "type": "chat", "message": "what is in the garden?" });
    let conversation = owner.ask(chat)["conversation_id"].clone();
    owner.ask(json!({ "type": "chat", "message": "and now?", "conversation_id": conversation }));

    // The model sees it, in this turn and the same way in the next one.
    let requests = camera.model.requests();
    let sent = requests[1]["messages"].as_array().unwrap();
    let result = sent[3]["content"].as_str().unwrap();
    let named = "The garden:\n[file 1: image/png, 16 bytes]";
    assert!(result.contains(named), "{result}");
    assert_eq!(sent[4]["role"], "user");
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    assert_eq!(sent[4]["content"][1]["image_url"]["url"], url);
    let later = requests[2]["messages"].as_array().unwrap();
    assert_eq!(later[..5], sent[..]);

    // The reply carries it.
    let all = messages(&mut owner, &conversation);
    let carried = &all[1]["attachments"];
    assert_eq!(carried.as_array().unwrap().len(), 1, "{all:?}");
    assert_eq!(carried[0]["type"], "image/png");
    assert_eq!(carried[0]["name"], "image.png");
    assert_eq!(all[3].get("attachments"), None);
    let read = json!({ "type": "get_attachment", "attachment_id": carried[0]["attachment_id"] });
    let data = owner.ask(read.clone())["data"].clone();
    assert_eq!(STANDARD.decode(data.as_str().unwrap()).unwrap(), PNG);

    // Who sees the conversation sees it, and nobody else.
    let mut admin = camera.home.admin();
    assert_eq!(admin.refused(read.clone()), "not_found");
    owner.ask(json!({
        "type": "share_conversation", "conversation_id": conversation, "audience": "household",
    }));
    assert_eq!(admin.ask(read.clone())["data"], data);
    owner.ask(json!({ "type": "delete_conversation", "conversation_id": conversation }));
    for client in [&mut owner, &mut admin] {
        assert_eq!(client.refused(read.clone()), "not_found");
    }
    let info = admin.ask(json!({ "type": "server_info" }));
    assert_eq!(info["attachment_bytes"].as_u64().unwrap_or(0), 0, "{info}");
}

/// The server ends while the model looks at the picture.
#[test]
fn a_picture_is_there_once_after_a_crash() {
    let mut camera = Camera::start(vec![Act::Stall("A fox.".to_owned()), Act::say("A fox.")]);
    let mut owner = camera.home.websocket(&camera.home.tokens.user);
    owner.send(&json!({ "type": "chat", "message": "what is in the garden?" }));
    camera.model.wait_for_requests(2);
    let list = json!({ "type": "list_conversations" });
    let mut watcher = camera.home.websocket(&camera.home.tokens.user);
    let conversation = watcher.ask(list)["conversations"][0]["id"].clone();
    camera.home.restart_at_once();
    let mut owner = camera.home.websocket(&camera.home.tokens.user);
    let all = eventually("the turn goes on", || {
        let all = messages(&mut owner, &conversation);
        (all.len() == 2).then_some(all)
    });
    assert_eq!(all[1]["content"], "A fox.");
    assert_eq!(
        all[1]["attachments"].as_array().unwrap().len(),
        1,
        "{all:?}"
    );
    assert_eq!(camera.calls(), 1);
    let requests = camera.model.requests();
    assert_eq!(requests[1]["messages"], requests[2]["messages"]);
}
