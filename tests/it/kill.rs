//! kill -9 under load: nothing that was acknowledged is lost, and every
//! accepted webhook is answered once the server is back.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::support::client::Client;
use super::support::eventually;
use super::support::home::{Folder, Tokens, make_people, write_config};
use super::support::model::{Act, Model};
use super::support::program::Program;
use super::support::receiver::Receiver;

/// Rounds of load and kill in the ordinary run of the tests.
const ROUNDS: u64 = 6;

struct Acknowledged {
    /// Replies that a WebSocket client was given: conversation, message, text.
    replies: Mutex<Vec<(Value, Value, String)>>,
    /// Webhook turns that were accepted.
    accepted: Mutex<HashSet<String>>,
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        Act::Say(format!("echo {}", last["content"].as_str().unwrap().len()))
    });
    let receiver = Receiver::start();
    let folder = Folder::new();
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "ci": { "incoming_path": "/webhook/ci", "outgoing_url": receiver.url() },
        } },
    ]);
    config["limits"] = json!({ "webhook_per_second": 100000, "webhook_burst": 100000 });
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let acknowledged = Arc::new(Acknowledged {
        replies: Mutex::default(),
        accepted: Mutex::default(),
    });

    for round in 0..ROUNDS {
        let program = Program::serve(folder.path());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn({
                    let (acknowledged, stop, tokens, program) =
                        (&acknowledged, &stop, &tokens, &program);
                    move || chat_until(program, tokens, acknowledged, stop, number)
                });
                scope.spawn({
                    let (acknowledged, stop, program) = (&acknowledged, &stop, &program);
                    move || post_until(program, acknowledged, stop, number)
                });
            }
            // A different moment each round.
            std::thread::park_timeout(Duration::from_millis(60 + 35 * round));
            super::support::program::send_signal(program.id(), "KILL");
            stop.store(true, Ordering::SeqCst);
        });
        program.kill();
    }

    let program = Program::serve(folder.path());
    check_replies(&program, &tokens, &acknowledged);
    check_callbacks(&program, &tokens, &acknowledged, &receiver);
}

fn chat_until(
    program: &Program,
    tokens: &Tokens,
    acknowledged: &Acknowledged,
    stop: &AtomicBool,
    number: usize,
) {
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    for count in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let text = "x".repeat(number * 100 + count % 90 + 1);
        let sent = client.try_send(&json!({ "type": "chat", "message": text }));
        let Some(Ok(response)) = sent.then(|| client.next()) else {
            return;
        };
        // Over 50 commands a second: refused, so nothing was acknowledged.
        if response["status"] == "ok" {
            let data = &response["data"];
            acknowledged.replies.lock().unwrap().push((
                data["conversation_id"].clone(),
                data["message_id"].clone(),
                data["response"].as_str().unwrap().to_owned(),
            ));
        }
    }
}

fn post_until(program: &Program, acknowledged: &Acknowledged, stop: &AtomicBool, number: usize) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(5)))
        .build()
        .into();
    let url = format!("http://{}/webhook/ci", program.address);
    while !stop.load(Ordering::SeqCst) {
        let body = json!({ "message": "hook", "conversation_id": format!("c{number}") });
        let answer = agent
            .post(&url)
            .header("content-type", "application/json")
            .send(body.to_string());
        let Ok(mut answer) = answer else { return };
        if answer.status() == 202
            && let Ok(text) = answer.body_mut().read_to_string()
            && let Ok(body) = serde_json::from_str::<Value>(&text)
        {
            let turn = body["data"]["turn_id"].as_str().unwrap().to_owned();
            acknowledged.accepted.lock().unwrap().insert(turn);
        }
    }
}

fn check_replies(program: &Program, tokens: &Tokens, acknowledged: &Acknowledged) {
    let replies = acknowledged.replies.lock().unwrap();
    assert!(replies.len() > 20, "only {} replies came", replies.len());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.viewer);
    for (conversation, message, text) in replies.iter() {
        let request = json!({ "type": "get_messages", "conversation_id": conversation });
        let found = loop {
            client.send(&request);
            let response = client.response();
            match response["code"].as_str() {
                Some("rate_limited") => std::thread::park_timeout(Duration::from_millis(50)),
                _ => break response["data"]["messages"].clone(),
            }
        };
        let found = found
            .as_array()
            .unwrap_or_else(|| panic!("{conversation} is lost"));
        let kept = found
            .iter()
            .any(|one| one["id"] == *message && one["content"] == *text);
        assert!(kept, "the reply {message} is lost");
    }
}

fn check_callbacks(
    program: &Program,
    tokens: &Tokens,
    acknowledged: &Acknowledged,
    receiver: &Receiver,
) {
    let accepted = acknowledged.accepted.lock().unwrap();
    assert!(
        accepted.len() > 20,
        "only {} webhooks were accepted",
        accepted.len()
    );
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    let mut unfinished: Vec<&String> = accepted.iter().collect();
    eventually("every accepted turn is done", || {
        unfinished.retain(|turn| {
            client.send(&json!({ "type": "get_turn", "turn_id": turn }));
            let response = client.response();
            match response["code"].as_str() {
                Some("rate_limited") => true,
                Some(code) => panic!("{turn}: {code}"),
                None => response["data"]["state"] != "done",
            }
        });
        unfinished.is_empty().then_some(())
    });
    let state = |client: &mut Client| {
        client.send(&json!({ "type": "server_info" }));
        client.response()["data"]["deliveries"].clone()
    };
    eventually("every callback is delivered", || {
        let left = state(&mut client);
        left.as_object()
            .is_some_and(|left| left.values().all(|count| *count == 0))
            .then_some(())
    });
    // Each delivery came at least once, and a repeat has the same body.
    let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
    for callback in receiver.callbacks() {
        let id = callback.header("webhook-id").unwrap().to_owned();
        let body = bodies.entry(id).or_insert_with(|| callback.raw.clone());
        assert_eq!(*body, callback.raw, "a repeat differs");
    }
    assert!(
        bodies.len() >= accepted.len(),
        "{} of {}",
        bodies.len(),
        accepted.len()
    );
}
