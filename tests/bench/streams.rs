//! Streamed replies: how soon the first piece comes, and whether many listeners slow a turn
//! down; and tools that run side by side.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use support::model::{Act, Model};
use support::served::{Served, read_request};

use crate::clients::{WebSocket, connect, one_by_one, post};
use crate::home::{Home, Server};
use crate::table::{Figure, Latencies, Table, median};

const RUNS: usize = 3;
const TURNS: usize = 100;
const LISTENERS: usize = 100;
/// Pieces of the long reply, as a quick model would send them.
const PIECES: usize = 1_000;
/// Pieces that come together, and the pause after them.
const BURST: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);
/// What each of four tools takes.
const TOOL: f64 = 0.3;

pub fn streams(table: &mut Table) {
    first_piece(table);
    listeners(table);
    tools(table);
}

/// A model that streams so many pieces.
fn stream_model(pieces: usize) -> Served {
    Served::start(move |socket| {
        // Its end is that the server under measurement has gone.
        let _ = stream(socket, pieces);
    })
}

fn stream(socket: TcpStream, pieces: usize) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket);
    read_request(&mut reader)?;
    let socket = reader.get_mut();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()?;
    let piece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n";
    for sent in (0..pieces).step_by(BURST) {
        let burst = piece.repeat(BURST.min(pieces - sent));
        socket.write_all(burst.as_bytes()).ok()?;
        thread::sleep(PAUSE);
    }
    let end = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let end = format!("{end}\n\ndata: [DONE]\n\n");
    socket.write_all(end.as_bytes()).ok()
}

fn first_piece(table: &mut Table) {
    let model = stream_model(1);
    let home = Home::with_model(model.address, json!({}));
    let server = home.start();
    let mut person = server.client();
    let mut ours = || {
        let began = Instant::now();
        person.tell(r#"{"type":"chat","message":"What is the weather like?","stream":true}"#);
        while !person.next().contains("chat.delta") {}
        let first = began.elapsed();
        while !person.next().starts_with(r#"{"status""#) {}
        first
    };
    let bare = || {
        one_by_one(TURNS, |_| {
            let mut socket = connect(model.address).unwrap();
            socket.write_all(&post("/chat/completions", "{}")).unwrap();
            let (mut received, mut buffer) = (Vec::<u8>::new(), [0; 4096]);
            while !received.windows(4).any(|window| window == b"word") {
                let count = socket.read(&mut buffer).unwrap();
                assert!(count > 0, "the model ended its stream");
                received.extend(&buffer[..count]);
            }
        })
    };
    ours();
    let beyond = (0..RUNS).map(|_| {
        let ours = Latencies::new((0..TURNS).map(|_| ours()).collect());
        ours.p50() - bare().p50()
    });
    let name = "first piece beyond the bare stream, p50";
    table.add(Figure::new(name, median(beyond), "ms").at_most(1.0));
}

fn listeners(table: &mut Table) {
    let model = stream_model(PIECES);
    let home = Home::with_model(model.address, json!({}));
    let server = home.start();
    let reply = |others| median((0..RUNS).map(|_| long_reply(&server, others)));
    let alone = reply(0);
    table.add(Figure::new("1,000 pieces to one listener", alone, "s"));
    let figure = Figure::new("1,000 pieces to 101 listeners", reply(LISTENERS), "s");
    table.add(figure.floor(alone, "one listener").at_most(alone * 1.1));
}

/// Seconds from a question to the moment when the last listener has all of a long reply,
/// while so many others listen.
fn long_reply(server: &Server, others: usize) -> f64 {
    let connect = |_| {
        let mut listener = server.client();
        listener.ask(r#"{"type":"subscribe","events":["chat.delta","chat.done"]}"#);
        listener
    };
    let listeners: Vec<WebSocket> = (0..others).map(connect).collect();
    let mut person = server.client();
    thread::scope(|scope| {
        let listen_to = |listener| scope.spawn(move || listen(listener, "chat.done"));
        let threads: Vec<_> = listeners.into_iter().map(listen_to).collect();
        let began = Instant::now();
        person.tell(r#"{"type":"chat","message":"Tell a story.","stream":true}"#);
        let own = listen(person, r#"{"status":"ok""#);
        let ends = threads.into_iter().map(|thread| thread.join().unwrap());
        (ends.fold(own, Instant::max) - began).as_secs_f64()
    })
}

/// Reads one long reply, all of it; returns when the message came that holds `end`.
fn listen(mut websocket: WebSocket, end: &str) -> Instant {
    let mut pieces = 0;
    loop {
        let message = websocket.next();
        if message.contains("chat.delta") {
            // The server may send several pieces as one.
            pieces += message.matches("word").count();
        } else if message.contains(end) {
            assert_eq!(pieces, PIECES, "pieces were lost");
            return Instant::now();
        }
    }
}

fn tools(table: &mut Table) {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        if messages.last().unwrap()["role"] == "tool" {
            return Act::say("Done.");
        }
        // The same call over and over would be taken for a loop.
        let call = |number| ("wait".to_owned(), json!({ "number": number }));
        Act::Call((0..4).map(call).collect())
    });
    let home = Home::with_model(
        model.address,
        json!({
            "tool_permissions": { "wait": "allow" },
            "tools": { "custom": [{
                "name": "wait", "description": "Waits.", "parameters": { "number": "integer" },
                "read_only": true, "command": ["sleep", TOOL.to_string()],
            }] },
        }),
    );
    let server = home.start();
    let mut person = server.client();
    let turns = (0..RUNS).map(|_| {
        let began = Instant::now();
        let data = person.ask_data(r#"{"type":"chat","message":"Wait."}"#);
        assert_eq!(data["response"], "Done.");
        began.elapsed().as_secs_f64()
    });
    let took = median(turns);
    // Tools that were refused would take no time at all.
    assert!(took >= TOOL, "the tools did not run");
    let figure = Figure::new("a turn with four tools of 0.3 s each", took, "s");
    table.add(figure.floor(TOOL, "one of them").at_most(TOOL + 0.15));
}
