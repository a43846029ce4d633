//! Streamed replies: how soon the first piece comes, and whether many listeners
//! slow a turn down; and tools that run side by side.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::{Home, Server};
use crate::http::Http;
use crate::load::one_by_one;
use crate::model::{Model, Pace};
use crate::served::{Served, ok};
use crate::statistics::{Latencies, median};
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;

const RUNS: usize = 5;
const TURNS: usize = 200;
/// Pieces of the long reply, sent in bursts with pauses as a quick model would.
const PIECES: usize = 1_000;
const BURST: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);
const LISTENERS: usize = 100;
/// What each of four tools takes.
const TOOL: Duration = Duration::from_millis(300);

pub fn measure(table: &mut Table) {
    first_piece(table);
    listeners(table);
    tools(table);
}

fn first_piece(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    let mut person = WebSocket::signed_in(server.address, &home.token);
    let request = r#"{"type":"chat","message":"What is the weather like?","stream":true}"#;
    let turn = |person: &mut WebSocket| {
        let began = Instant::now();
        person.tell(request);
        while !person.next().contains("chat.delta") {}
        let first = began.elapsed();
        while !person.next().starts_with(r#"{"status""#) {}
        first
    };
    turn(&mut person);
    let streamed = model.first_request().bytes();
    let mut bare = Http::connect(model.address()).unwrap();
    let (mut ours, mut calls) = (vec![], vec![]);
    for _ in 0..RUNS {
        let firsts = (0..TURNS).map(|_| turn(&mut person)).collect();
        ours.push(Latencies::new(firsts));
        calls.push(one_by_one(TURNS, |_| {
            bare.exchange(&streamed).unwrap();
        }));
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

fn listeners(table: &mut Table) {
    let home = Home::with_model(paced_model(), json!({}));
    let server = home.start();
    let alone = long_reply(&home, &server, 0);
    let crowded = long_reply(&home, &server, LISTENERS);
    table.add(Figure::new("1,000 pieces to one listener", alone, "s").how("median of 3 turns"));
    table.add(
        Figure::new("1,000 pieces to 100 more listeners", crowded, "s")
            .floor(alone)
            .at_most(alone * 1.1)
            .how("median of 3 turns; floor: one listener"),
    );
}

/// Seconds of a turn with a long reply, while so many others listen.
fn long_reply(home: &Home, server: &Server, others: usize) -> f64 {
    let seconds = std::thread::scope(|scope| {
        for _ in 0..others {
            let mut listener = WebSocket::signed_in(server.address, &home.token);
            listener.ask(r#"{"type":"subscribe","events":["chat.delta","chat.done"]}"#);
            scope.spawn(move || {
                let mut turns = 0;
                while turns < 3 {
                    turns += usize::from(listener.next().contains("chat.done"));
                }
            });
        }
        let mut person = WebSocket::signed_in(server.address, &home.token);
        let turn = |_| {
            let began = Instant::now();
            person.tell(r#"{"type":"chat","message":"Tell a story.","stream":true}"#);
            let mut pieces = 0;
            loop {
                let message = person.next();
                pieces += usize::from(message.contains("chat.delta"));
                if message.starts_with(r#"{"status":"ok""#) {
                    assert!(pieces > PIECES / 2, "{pieces} pieces");
                    return began.elapsed().as_secs_f64();
                }
            }
        };
        (0..3).map(turn).collect::<Vec<f64>>()
    });
    median(seconds)
}

/// A model that streams [`PIECES`] pieces to every request.
fn paced_model() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the process; nothing comes once its server is gone.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            std::thread::spawn(move || stream(socket.unwrap()));
        }
    });
    address
}

fn stream(socket: TcpStream) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket);
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head).ok()? > 2 {
        let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let socket = reader.get_mut();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()?;
    let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"word "}}]}"#;
    let burst = format!("{piece}\n\n").repeat(BURST);
    for _ in 0..PIECES / BURST {
        socket.write_all(burst.as_bytes()).ok()?;
        std::thread::sleep(PAUSE);
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
                "function": { "name": "wait", "arguments": "{}" },
            })
        })
        .collect();
    let reply = |message| {
        let body = json!({ "choices": [{ "index": 0, "message": message }] });
        ok("application/json", &body.to_string())
    };
    let calling = reply(json!({ "role": "assistant", "content": "", "tool_calls": calls }));
    let done = reply(json!({ "role": "assistant", "content": "Done." }));
    let model = Served::start(Arc::new(move |_, body| {
        let has_results = body.windows(13).any(|window| window == br#""role":"tool""#);
        Some(Arc::clone(if has_results { &done } else { &calling }))
    }));
    let home = Home::with_model(
        model.address,
        json!({
            "tool_permissions": { "wait": "allow" },
            "tools": { "custom": [{
                "name": "wait", "description": "Waits.", "parameters": {}, "read_only": true,
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
