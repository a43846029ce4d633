//! What is written to the disk: an SD card bears only so much of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::home::{Home, Server};
use crate::model::{Model, Pace};
use crate::statistics::median;
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;

const RUNS: usize = 3;
/// Messages of one run, each with its answer.
const MESSAGES: usize = 1_000;
/// Messages of one conversation.
const MESSAGES_PER_CONVERSATION: usize = 10;
const IDLE: Duration = Duration::from_secs(30);
const MIB: f64 = 1024.0 * 1024.0;

pub fn measure(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    if server.written_bytes().is_none() {
        println!("skipped: only root may see what Hearth writes, and the kernel must count it");
        return;
    }
    let written_bytes = || server.written_bytes().expect("it was known before");
    for clients in [1, 16] {
        let written = median((0..RUNS).map(|_| {
            let before = written_bytes();
            chat(&server, &home, clients);
            (written_bytes() - before) / MIB
        }));
        let figure = Figure::new(
            format!("written for {MESSAGES} messages and answers, {clients} at a time"),
            written,
            "MiB",
        );
        table.add(figure.how(format!("median of {RUNS} runs; each answer durable")));
    }
    let before = written_bytes();
    thread::sleep(IDLE);
    table.add(
        Figure::new(
            format!("written in {} s of idling", IDLE.as_secs()),
            (written_bytes() - before) / 1024.0,
            "KiB",
        )
        .at_most(0.0)
        .how("1 run"),
    );
}

/// Has so many clients share the messages.
fn chat(server: &Server, home: &Home, clients: usize) {
    let left = AtomicUsize::new(MESSAGES);
    let take = || {
        let one_less = |left: usize| left.checked_sub(1);
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
            .is_ok()
    };
    let person = || {
        let mut websocket = WebSocket::signed_in(server.address, &home.token);
        let mut conversation = None;
        let mut asked = 0;
        while take() {
            let mut request = json!({ "type": "chat", "message": "What is the weather like?" });
            if let Some(id) = conversation.filter(|_| asked % MESSAGES_PER_CONVERSATION > 0) {
                request["conversation_id"] = id;
            }
            let mut data = websocket.ask_data(&request.to_string());
            conversation = Some(data["conversation_id"].take());
            asked += 1;
        }
    };
    thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(person);
        }
    });
}
