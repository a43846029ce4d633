//! What happens to a turn while others begin or cease to see its conversation.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use super::events::{names, replayed, so_far};
use super::*;
use support::home::write_config;

/// The private memory.
const SECRET: &str = "4711";

#[test]
fn a_turn_tells_the_model_nothing_private_once_its_conversation_is_shared() {
    let (go, wait) = channel();
    let wait = Mutex::new(wait);
    let recall = || Act::call("recall", json!({ "query": "alarm" }));
    let model = Model::start(move |_, number| match number {
        0 => Act::call("remember", json!({ "content": "The alarm code is 4711." })),
        1 => Act::say("I will."),
        2 => recall(),
        // Shared while the model thinks.
        3 => {
            wait.lock().unwrap().recv_timeout(MAX_WAIT).unwrap();
            recall()
        }
        // What it called without knowing that is refused.
        4 => recall(),
        _ => Act::say("Done."),
    });
    let mut house = House::empty();
    house.home = Home::start(model.config());
    house.tokens = {
        let tokens = &house.home.tokens;
        let cleo = house.home.add_person("cleo", UserRole::User);
        [&tokens.admin, &tokens.user, &cleo, &tokens.viewer].map(Clone::clone)
    };
    let [mut user, mut owner] = [1, 1].map(|who| house.websocket(who));
    user.chat("Keep the code in mind.");
    owner.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    user.send(&json!({ "type": "chat", "message": "what is the alarm code?" }));
    let id = owner.event("message.created")["conversation_id"].clone();
    let requests = model.wait_for_requests(4);
    let shown = |request: &Value| request["messages"].to_string();
    assert!(shown(&requests[2]).contains(SECRET), "a memory that fits");
    let last = requests[3]["messages"].as_array().unwrap().last().unwrap();
    assert!(
        last.to_string().contains(SECRET),
        "what the tool found: {last}"
    );
    owner.ask(json!({
        "type": "share_conversation", "conversation_id": id, "audience": "household",
    }));
    go.send(()).unwrap();
    assert_eq!(user.response()["data"]["response"], "Done.");
    user.ask(json!({ "type": "chat", "message": "the alarm?", "conversation_id": id }));
    for (number, request) in model.requests()[4..].iter().enumerate() {
        let shown = shown(request);
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(shown.contains("shared with more people since"), "{shown}");
        assert!(
            shown.contains("more people see the conversation now"),
            "{shown}"
        );
        let has_looked_again = shown.contains("Nothing remembered fits");
        assert_eq!(has_looked_again, number > 0, "{shown}");
    }
    // The others hear what was said, and not what the tool had found before.
    let heard = replayed(&house, 2, 0);
    assert!(names(&heard).contains(&"chat.done"), "{heard:?}");
    let heard = json!(heard).to_string();
    assert!(!heard.contains(SECRET), "{heard}");
    let of_owner = json!(replayed(&house, 1, 0)).to_string();
    assert!(of_owner.contains(SECRET), "{of_owner}");
}

#[test]
fn a_turn_of_an_account_goes_on_for_its_new_readers() {
    let (model, receiver) = (
        Model::start(|_, _| Act::Stall("Ding.".to_owned())),
        Receiver::start(),
    );
    let account = |audience: Value| {
        json!([
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": { "door": {
                "incoming_path": "/door", "outgoing_url": receiver.url(), "audience": audience,
            } } },
        ])
    };
    let home = Home::start(model.config_with(json!({ "channels": account(json!("household")) })));
    let mut listeners = [&home.tokens.admin, &home.tokens.user].map(|token| {
        let mut client = home.websocket(token);
        client.ask(json!({ "type": "subscribe" }));
        client
    });
    let ring = json!({ "message": "ring", "conversation_id": "gate" });
    let turn = post(home.address(), "/door", &[], &ring).json()["data"]["turn_id"].clone();
    model.wait_for_requests(1);
    let changed = json!({ "channels": account(json!(["user"])) });
    write_config(home.folder.path(), model.config_with(changed));
    home.server().reload().unwrap();
    let of_turn = |client: &mut Client| {
        let mut heard = so_far(client);
        heard.retain(|event| event["turn_id"] == turn || event["event"] == "conversation.deleted");
        heard
    };
    let heard = of_turn(&mut listeners[0]);
    assert_eq!(names(&heard), ["message.created", "conversation.deleted"]);
    model.release();
    listeners[1].event("chat.done");
    assert_eq!(names(&of_turn(&mut listeners[0])), Vec::<&str>::new());
    // Another of its conversations.
    let ring = json!({ "message": "ring again", "conversation_id": "garden" });
    post(home.address(), "/door", &[("prefer", "wait=20")], &ring);
    listeners[1].event("chat.done");
    let heard = so_far(&mut listeners[0]);
    assert!(
        !json!(heard).to_string().contains("ring again"),
        "{heard:?}"
    );
}
