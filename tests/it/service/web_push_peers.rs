//! What is posted to push services, read by libraries from PyPI that nobody here wrote:
//! `make test-peers`. Without Python or a network they say so and are skipped.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory};
use support::model::Model;
use support::peers;
use support::receiver::Receiver;

#[test]
#[ignore = "installs http_ece and py-vapid from PyPI: make test-peers"]
fn http_ece_decrypts_each_message_and_py_vapid_knows_the_server() {
    let Some(programs) = peers::WEB_PUSH.installed() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    let script = |arguments: &[&str]| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/web_push.py");
        let (what, rest) = arguments.split_first().unwrap();
        let mut command = Command::new(programs.join("python"));
        command.arg(source).arg(what).arg(folder.path()).args(rest);
        peers::script(&mut command)
    };
    let keys: Value = serde_json::from_str(&script(&["keys"])).unwrap();
    // Of many lengths, and beyond the longest that is sent.
    let replies = ["Ok", "Søppel! 🗑", &"The bins! ".repeat(80)].map(str::to_owned);
    let said = replies.clone();
    let model =
        Model::start(move |_, number| support::model::Act::Say(said[number.min(2)].clone()));
    let service = Receiver::answering(|_, _| "201 Created".to_owned());
    let home = Home::start(model.config_with(json!({
        "notifications": { "push_hosts": [service.address.to_string()] },
    })));
    let mut user = home.websocket(&home.tokens.user);
    let endpoint = format!("http://{}/push", service.address);
    let subscription = json!({ "endpoint": endpoint, "keys": keys });
    user.ask(json!({ "type": "push_subscribe", "subscription": subscription }));
    for (number, reply) in replies.iter().enumerate() {
        user.ask(json!({ "type": "create_schedule", "prompt": "Remind me", "at": "+1h" }));
        home.server().advance_clock(Duration::from_secs(3_600));
        let request = service.wait_for(number + 1).remove(number);
        fs::write(folder.path().join("message"), &request.raw).unwrap();
        let header = request.header("authorization").unwrap();
        let text: Value = serde_json::from_str(&script(&["read", header])).unwrap();
        let shown = text["body"].as_str().unwrap();
        assert!(reply.starts_with(shown.trim_end_matches('…')), "{shown}");
        assert_eq!(shown.ends_with('…'), number == 2, "{shown}");
    }
}
