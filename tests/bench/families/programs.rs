//! Programs that speak OpenAI's interface: what that costs beyond the WebSocket's commands,
//! and what their own tools cost.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::streams::{SHORT, stream_model};
use crate::home::{Home, Server};
use crate::http::{Http, connect};
use crate::load::{self, one_by_one};
use crate::model::{Model, Pace};
use crate::statistics::{Latencies, median};
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;
use support::process;
use support::served::{Served, ok};

const RUNS: usize = 5;
const TURNS: usize = 100;
const CLIENTS: usize = 64;
/// Many short runs by turns, so that both interfaces see the same machine: its speed may
/// change from second to second.
const LOADS: usize = 15;
const TIME: Duration = Duration::from_secs(1);
/// Turns of one conversation, so that most have a past.
const TURNS_PER_CONVERSATION: usize = 10;
const PATH: &str = "/v1/chat/completions";

pub fn measure(table: &mut Table) {
    first_piece(table);
    throughput(table);
    own_tools(table);
}

fn home(model: SocketAddr) -> Home {
    Home::with_model(model, json!({ "openai_api": { "enabled": true } }))
}

fn post(home: &Home, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        home.token,
        body.len()
    )
    .into_bytes()
}

fn first_piece(table: &mut Table) {
    let model = stream_model(&SHORT);
    let home = home(model.address);
    let server = home.start();
    let mut person = WebSocket::signed_in(server.address, &home.token);
    let mut by_websocket = || {
        let began = Instant::now();
        person.tell(r#"{"type":"chat","message":"What is the weather like?","stream":true}"#);
        while !person.next().contains("chat.delta") {}
        let first = began.elapsed();
        while !person.next().starts_with(r#"{"status""#) {}
        first
    };
    let request = post(
        &home,
        &json!({
            "model": "hearth", "stream": true,
            "messages": [{ "role": "user", "content": "What is the weather like?" }],
        }),
    );
    let mut socket = connect(server.address).unwrap();
    let mut by_http = || streamed(&mut socket, &request);
    by_websocket();
    by_http();
    let (mut websocket, mut http) = (vec![], vec![]);
    for _ in 0..RUNS {
        websocket.push(Latencies::new((0..TURNS).map(|_| by_websocket()).collect()));
        http.push(Latencies::new((0..TURNS).map(|_| by_http()).collect()));
    }
    let [websocket, http] = [websocket, http].map(|runs| median(runs.iter().map(Latencies::p50)));
    table.add(
        Figure::new(
            "first piece beyond the WebSocket's, p50",
            http - websocket,
            "ms",
        )
        .at_most(1.0)
        .how(format!(
            "median of {RUNS} runs of {TURNS}; by WebSocket {websocket:.3} ms"
        )),
    );
}

/// The time to the first piece of a streamed reply, of which all is read.
fn streamed(socket: &mut TcpStream, request: &[u8]) -> Duration {
    let began = Instant::now();
    socket.write_all(request).unwrap();
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    let mut first = None;
    // The chunk of no bytes, which ends the body.
    while !received.ends_with(b"\r\n0\r\n\r\n") {
        let count = socket.read(&mut buffer).unwrap();
        assert!(count > 0, "the server ended its stream");
        received.extend(&buffer[..count]);
        let has_text = || received.windows(4).any(|window| window == b"word");
        if first.is_none() && has_text() {
            first = Some(began.elapsed());
        }
    }
    first.expect("a piece of text")
}

/// A client that goes on with its conversation over one of the interfaces. It writes and reads
/// with as little work as it can: it shares the processors with the server.
struct Client {
    number: usize,
    websocket: WebSocket,
    conversation: String,
    http: Http,
    /// What the conversation has, as programs send it.
    messages: String,
    request: String,
}

/// What stands before the id in the answer to `chat`.
const CONVERSATION: &str = "\"conversation_id\":\"";
const SAYS_HELLO: &str = "\"Hello there.\"";

impl Client {
    fn new(home: &Home, server: &Server, number: usize) -> Client {
        Client {
            number,
            websocket: WebSocket::signed_in(server.address, &home.token),
            conversation: String::new(),
            http: Http::connect(server.address).unwrap(),
            messages: String::new(),
            request: String::new(),
        }
    }

    /// What is said in a turn of this number: conversations that say the same would be one.
    fn says(&self, turn: usize) -> String {
        format!("What is the weather like in {} of {turn}?", self.number)
    }

    fn by_websocket(&mut self, turn: usize) {
        if turn.is_multiple_of(TURNS_PER_CONVERSATION) {
            self.conversation.clear();
        }
        let says = self.says(turn);
        let request = match &*self.conversation {
            "" => format!("{{\"type\":\"chat\",\"message\":\"{says}\"}}"),
            id => format!("{{\"type\":\"chat\",\"message\":\"{says}\",{CONVERSATION}{id}\"}}"),
        };
        let answer = self.websocket.ask(&request);
        assert!(answer.contains(SAYS_HELLO), "{answer}");
        let (_, id) = answer.split_once(CONVERSATION).expect("a conversation");
        let (id, _) = id.split_once('"').expect("its id");
        id.clone_into(&mut self.conversation);
    }

    fn by_http(&mut self, home: &Home, turn: usize) {
        let says = self.says(turn);
        if turn.is_multiple_of(TURNS_PER_CONVERSATION) {
            self.messages.clear();
        } else {
            self.messages.push(',');
        }
        let messages = &mut self.messages;
        write!(messages, "{{\"role\":\"user\",\"content\":\"{says}\"}}").unwrap();
        let request = &mut self.request;
        request.clear();
        write!(
            request,
            "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n\
             {{\"model\":\"hearth\",\"messages\":[{messages}]}}",
            home.token,
            "{\"model\":\"hearth\",\"messages\":[]}".len() + messages.len(),
        )
        .unwrap();
        let (status, body) = self.http.exchange(request.as_bytes()).unwrap();
        let body = std::str::from_utf8(body).unwrap();
        assert!(status == 200 && body.contains(SAYS_HELLO), "{body}");
        write!(
            messages,
            ",{{\"role\":\"assistant\",\"content\":{SAYS_HELLO}}}"
        )
        .unwrap();
    }
}

fn throughput(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = home(model.address());
    let server = home.start();
    let (mut websocket, mut http) = (vec![], vec![]);
    let measure = |kept: &mut Vec<Measured>, ask: &(dyn Fn(&mut Client, usize) + Sync)| {
        let new = |number| Client::new(&home, &server, number);
        let (before, own) = (
            server.cpu_seconds(),
            process::cpu_seconds(std::process::id()),
        );
        let load = load::run(CLIENTS, TIME, new, ask);
        let each = |seconds: f64| seconds / load.count as f64 * 1e6;
        kept.push(Measured {
            per_second: load.per_second,
            server: each(server.cpu_seconds() - before),
            client: each(process::cpu_seconds(std::process::id()) - own),
        });
    };
    for _ in 0..LOADS {
        measure(&mut websocket, &Client::by_websocket);
        measure(&mut http, &|client, turn| client.by_http(&home, turn));
    }
    let of = |runs: &[Measured], part: fn(&Measured) -> f64| median(runs.iter().map(part));
    let floor = of(&websocket, |run| run.per_second);
    table.add(
        Figure::new(
            format!("finished turns, {CLIENTS} programs"),
            of(&http, |run| run.per_second),
            "/s",
        )
        .floor(floor)
        .at_least(floor * 0.9)
        .how(format!(
            "median of {LOADS} runs of {} s; floor: as many WebSocket clients",
            TIME.as_secs()
        )),
    );
    for (name, part) in [
        (
            "  processor time of the server for each",
            (|run| run.server) as fn(&Measured) -> f64,
        ),
        ("  of the clients and the model for each", |run| run.client),
    ] {
        let floor = of(&websocket, part);
        table.add(Figure::new(name, of(&http, part), "us").floor(floor));
    }
}

/// One run of [`throughput`].
struct Measured {
    per_second: f64,
    /// Microseconds of a processor for each turn.
    server: f64,
    client: f64,
}

/// A turn in which the model calls a tool of the program, beyond a turn without one and the
/// model's own time.
fn own_tools(table: &mut Table) {
    let reply = |message: Value| {
        let body = json!({ "choices": [{ "index": 0, "message": message }] });
        Arc::<[u8]>::from(ok("application/json", &body.to_string()).into_bytes())
    };
    let call = json!({
        "id": "call_1", "type": "function", "function": { "name": "light", "arguments": "{}" },
    });
    let calling = reply(json!({ "role": "assistant", "content": "", "tool_calls": [call] }));
    let done = reply(json!({ "role": "assistant", "content": "Done." }));
    let model = Served::answering(move |_, body| {
        let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
        let calls = has(br#""tools""#) && has(b"light") && !has(br#""role":"tool""#);
        Some(Arc::clone(if calls { &calling } else { &done }))
    });
    let home = home(model.address);
    let server = home.start();
    let mut http = Http::connect(server.address).unwrap();
    let mut ask = |body: &Value| -> Value {
        let (status, answer) = http.exchange(&post(&home, body)).unwrap();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(answer));
        serde_json::from_slice(answer).unwrap()
    };
    let user = json!({ "role": "user", "content": "Turn the light on." });
    let plain = json!({ "model": "hearth", "messages": [user] });
    let tool = json!({ "type": "function", "function": {
        "name": "light", "parameters": { "type": "object", "properties": {} },
    } });
    let with_tool = json!({ "model": "hearth", "messages": [user], "tools": [tool] });
    let mut bare = Http::connect(model.address).unwrap();
    let small = crate::http::post("/chat/completions", "{}");
    let (mut plains, mut called, mut bares) = (vec![], vec![], vec![]);
    for _ in 0..RUNS {
        bares.push(one_by_one(TURNS, |_| {
            bare.exchange(&small).unwrap();
        }));
        plains.push(one_by_one(TURNS, |_| {
            assert_eq!(ask(&plain)["choices"][0]["message"]["content"], "Done.");
        }));
        called.push(one_by_one(TURNS, |_| {
            let calls = ask(&with_tool)["choices"][0]["message"].clone();
            let id = &calls["tool_calls"][0]["id"];
            let result = json!({ "role": "tool", "tool_call_id": id, "content": "on" });
            let mut body = with_tool.clone();
            body["messages"] = json!([user, calls, result]);
            assert_eq!(ask(&body)["choices"][0]["message"]["content"], "Done.");
        }));
    }
    let [bare, plain, called] =
        [bares, plains, called].map(|runs| median(runs.iter().map(Latencies::p50)));
    table.add(
        Figure::new(
            "a program's own tool call, p50",
            called - plain - bare,
            "ms",
        )
        .at_most(1.0)
        .how(format!(
            "median of {RUNS} runs of {TURNS}; beyond a turn of {plain:.3} ms and a call of \
                 the model of {bare:.3} ms"
        )),
    );
}
