//! Streamed replies: how soon the first piece comes, and whether many listeners
//! slow a turn down; and tools that run side by side.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::{Home, Server};
use crate::http::post;
use crate::statistics::{Latencies, median};
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;
use support::served::{Served, ok, read_request};

const RUNS: usize = 5;
const TURNS: usize = 100;
/// The long reply, as a quick model would send it.
const LONG: Script = Script {
    bursts: 50,
    pieces: 20,
    pause: Duration::from_millis(20),
};
const PIECES: usize = LONG.bursts * LONG.pieces;
/// A reply whose first piece comes alone.
pub const SHORT: Script = Script {
    bursts: 2,
    pieces: 1,
    pause: Duration::from_millis(5),
};
const LISTENERS: usize = 100;
/// What each of four tools takes.
const TOOL: Duration = Duration::from_millis(300);

pub fn measure(table: &mut Table) {
    first_piece(table);
    listeners(table);
    tools(table);
}

fn first_piece(table: &mut Table) {
    let model = stream_model(&SHORT);
    let home = Home::with_model(model.address, json!({}));
    let server = home.start();
    let mut person = WebSocket::signed_in(server.address, &home.token);
    let request = r#"{"type":"chat","message":"What is the weather like?","stream":true}"#;
    let turn = |person: &mut WebSocket| {
        let began = Instant::now();
        person.tell(request);
        while !person.next().contains("chat.delta") {}
        let first = began.elapsed();
        while !person.next().starts_with(r#"{"status""#) {}
        assert!(
            began.elapsed() >= first + SHORT.pause,
            "the model does not pause"
        );
        first
    };
    turn(&mut person);
    let (mut ours, mut calls) = (vec![], vec![]);
    for _ in 0..RUNS {
        let firsts = (0..TURNS).map(|_| turn(&mut person)).collect();
        ours.push(Latencies::new(firsts));
        let bare = (0..TURNS)
            .map(|_| bare_first_piece(model.address))
            .collect();
        calls.push(Latencies::new(bare));
    }
    let call = median(calls.iter().map(Latencies::p50));
    table.add(
        Figure::new(
            "first piece beyond the bare stream, p50",
            median(ours.iter().map(Latencies::p50)) - call,
            "ms",
        )
        .at_most(1.0)
        .how(format!(
            "median of {RUNS} runs of {TURNS}; the bare stream takes {call:.3} ms"
        )),
    );
}

/// From the request to the first piece, without us.
fn bare_first_piece(model: SocketAddr) -> Duration {
    let began = Instant::now();
    let mut socket = TcpStream::connect(model).unwrap();
    socket.write_all(&post("/chat/completions", "{}")).unwrap();
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while !contains(&received, b"word") {
        let count = socket.read(&mut buffer).unwrap();
        assert!(count > 0, "the model ended its stream");
        received.extend(&buffer[..count]);
    }
    began.elapsed()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn listeners(table: &mut Table) {
    let model = stream_model(&LONG);
    let home = Home::with_model(model.address, json!({}));
    let server = home.start();
    let alone = long_reply(&home, &server, 0);
    let crowded = long_reply(&home, &server, LISTENERS);
    table.add(Figure::new("1,000 pieces to one listener", alone, "s").how("median of 3 turns"));
    table.add(
        Figure::new(
            "1,000 pieces to 100 more, to the last of them",
            crowded,
            "s",
        )
        .floor(alone)
        .how("median of 3 turns; every listener got every piece"),
    );
    table.add(
        Figure::new(
            "  the same, by one listener alone",
            crowded / alone,
            "times",
        )
        .at_most(1.1),
    );
}

/// Seconds from a question to the moment when the last listener has all of a
/// long reply, while so many others listen.
fn long_reply(home: &Home, server: &Server, others: usize) -> f64 {
    let everybody = Barrier::new(others + 1);
    let seconds = std::thread::scope(|scope| {
        let listeners: Vec<_> = (0..others)
            .map(|_| {
                let mut listener = WebSocket::signed_in(server.address, &home.token);
                listener.ask(r#"{"type":"subscribe","events":["chat.delta","chat.done"]}"#);
                let everybody = &everybody;
                scope.spawn(move || {
                    let turn = |_| {
                        everybody.wait();
                        listen(&mut listener, "chat.done")
                    };
                    (0..3).map(turn).collect::<Vec<Instant>>()
                })
            })
            .collect();
        let mut person = WebSocket::signed_in(server.address, &home.token);
        let turn = |_| {
            everybody.wait();
            let began = Instant::now();
            person.tell(r#"{"type":"chat","message":"Tell a story.","stream":true}"#);
            (began, listen(&mut person, r#"{"status":"ok""#))
        };
        let turns: Vec<(Instant, Instant)> = (0..3).map(turn).collect();
        let listened: Vec<Vec<Instant>> = listeners
            .into_iter()
            .map(|listener| listener.join().expect("a listener failed"))
            .collect();
        let took = |(number, (began, ended)): (usize, &(Instant, Instant))| {
            let last = listened.iter().map(|ends| ends[number]).max();
            (last.unwrap_or(*ended).max(*ended) - *began).as_secs_f64()
        };
        turns.iter().enumerate().map(took).collect::<Vec<f64>>()
    });
    median(seconds)
}

/// Reads one long reply, all of it; returns when the message came that holds
/// `end`.
fn listen(websocket: &mut WebSocket, end: &str) -> Instant {
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

/// What a model streams: bursts of pieces, with a pause after each.
pub struct Script {
    bursts: usize,
    pieces: usize,
    pause: Duration,
}

/// A model that streams `script` to every request.
pub fn stream_model(script: &'static Script) -> Served {
    Served::start(move |socket| {
        // Its end is that the server under measurement has gone.
        let _ = stream(socket, script);
    })
}

fn stream(socket: TcpStream, script: &Script) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket);
    read_request(&mut reader)?;
    let socket = reader.get_mut();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()?;
    let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"word "}}]}"#;
    let burst = format!("{piece}\n\n").repeat(script.pieces);
    for _ in 0..script.bursts {
        socket.write_all(burst.as_bytes()).ok()?;
        std::thread::sleep(script.pause);
    }
    let end = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    socket
        .write_all(format!("{end}\n\ndata: [DONE]\n\n").as_bytes())
        .ok()
}

fn tools(table: &mut Table) {
    let calls: Vec<_> = (0..4)
        .map(|number| {
            json!({
                "id": format!("call_{number}"), "type": "function",
                // The same call over and over would be taken for a loop.
                "function": { "name": "wait", "arguments": format!(r#"{{"number":{number}}}"#) },
            })
        })
        .collect();
    let reply = |message| {
        let body = json!({ "choices": [{ "index": 0, "message": message }] });
        Arc::<[u8]>::from(ok("application/json", &body.to_string()).into_bytes())
    };
    let calling = reply(json!({ "role": "assistant", "content": "", "tool_calls": calls }));
    let done = reply(json!({ "role": "assistant", "content": "Done." }));
    let model = Served::answering(move |_, body| {
        let has_results = body.windows(13).any(|window| window == br#""role":"tool""#);
        Some(Arc::clone(if has_results { &done } else { &calling }))
    });
    let home = Home::with_model(
        model.address,
        json!({
            "tool_permissions": { "wait": "allow" },
            "tools": { "custom": [{
                "name": "wait", "description": "Waits.", "parameters": { "number": "integer" }, "read_only": true,
                "command": ["sleep", TOOL.as_secs_f64().to_string()],
            }] },
        }),
    );
    let server = home.start();
    let mut person = WebSocket::signed_in(server.address, &home.token);
    let turns = (0..3).map(|_| {
        let began = Instant::now();
        let data = person.ask_data(r#"{"type":"chat","message":"Wait."}"#);
        assert_eq!(data["response"], "Done.");
        // Tools that were refused would take no time at all.
        assert!(began.elapsed() >= TOOL, "the tools did not run");
        began.elapsed().as_secs_f64()
    });
    table.add(
        Figure::new("a turn with four tools of 0.3 s each", median(turns), "s")
            .floor(TOOL.as_secs_f64())
            .at_most(TOOL.as_secs_f64() + 0.15)
            .how("median of 3; one after the other: 1.2 s"),
    );
}
