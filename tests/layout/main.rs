//! Which functions a start runs and which ordinary work runs (`make layout`),
//! counted by callgrind: the lists by which src/build lays out the program.

#![cfg(feature = "tls")]

// The shared support serves more than this uses.
#[allow(dead_code)]
#[path = "../it/support/mod.rs"]
mod support;

mod functions;
mod record;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use functions::Functions;
use record::Recording;
use serde_json::json;
use support::client::Client;
use support::home::{Folder, make_people, write_config};
use support::http::{get, post};
use support::model::{Act, Model};
use support::program::Program;
use support::tls::{Identity, serve};

#[test]
#[ignore = "writes lists that are committed; needs valgrind and a program with names"]
fn write_the_lists() {
    let program = std::env::var("HEARTH").expect("HEARTH names a program with names");
    let functions = Functions::of(Path::new(&program));

    let folder = Folder::new();
    let model = Model::acting(vec![
        Act::call("remember", json!({ "text": "The bins go out on Mondays." })),
        Act::call("recall", json!({ "query": "bins" })),
        Act::say("Noted."),
    ]);
    let receiver = Identity::new();
    let callbacks = serve(&receiver, "application/json", "{}".to_owned());
    let mut config = model.config();
    config["tls"] = json!({ "ca_file": receiver.certificate });
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "ci": {
            "incoming_path": "/webhook/ci",
            "outgoing_url": format!("https://localhost:{}/", callbacks.port()),
        } } },
    ]);
    write_config(folder.path(), config);
    let token = make_people(folder.path()).admin;

    let (first, mut start) = starts_of_a_newcomer(&program);
    // Of somebody who has models and webhooks, after a power cut.
    Program::serve(folder.path()).kill();
    let mut recording = Recording::start(&program, &folder);
    let address = recording.address();
    start.extend(run_by_health(&mut recording));

    assert_eq!(get(address, "/").status, 200);
    for mut client in [Client::websocket(address), Client::lines(address)] {
        client.authenticate(&token);
        client.ask(json!({ "type": "subscribe" }));
        client.chat("When do the bins go out?");
        let listed = client.ask(json!({ "type": "list_conversations" }));
        let conversation = listed["conversations"][0]["id"].clone();
        client.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
        client.ask(json!({ "type": "get_config" }));
        client.ask(json!({ "type": "server_info" }));
    }
    let posted = post(address, "/webhook/ci", &[], &json!({ "message": "hello" }));
    assert_eq!(posted.status, 202, "{posted:?}");
    let mut client = Client::websocket(address);
    client.authenticate(&token);
    support::eventually("a callback", || {
        let listed = client.ask(json!({ "type": "list_deliveries" }));
        (listed["deliveries"][0]["state"] == "delivered").then_some(())
    });
    drop(client);
    let mut work = recording.end();
    work.extend(first);

    let start = functions.list(&start, &BTreeSet::new());
    let work = functions.list(&work, &start);
    assert!(start.len() > 500, "only {} functions", start.len());
    assert!(work.len() > 500, "only {} functions", work.len());
    write("start", "What every start runs", &start);
    write("work", "What ordinary work runs, but no start", &work);
}

/// What runs with nothing configured: at the first start, which makes the house,
/// and at every other.
fn starts_of_a_newcomer(program: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let folder = Folder::new();
    let first = Recording::start(program, &folder).end();
    let mut recording = Recording::start(program, &folder);
    let start = run_by_health(&mut recording);
    (first, start)
}

/// What ran until it answered, and had nothing more to do.
fn run_by_health(recording: &mut Recording) -> BTreeSet<String> {
    assert_eq!(get(recording.address(), "/health").status, 200);
    recording.so_far()
}

fn write(name: &str, what: &str, list: &BTreeSet<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/build/{name}.txt"));
    let mut text = format!("# {what}; written by `make layout`.\n");
    for function in list {
        text.push_str(function);
        text.push('\n');
    }
    println!("{}: {} names", path.display(), list.len());
    fs::write(path, text).unwrap();
}
