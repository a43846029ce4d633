//! Chat turns against a model that costs nothing: what is left is ours.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::{Home, Server};
use crate::http::Http;
use crate::load::{self, one_by_one};
use crate::machine;
use crate::model::{Model, Pace, Request};
use crate::statistics::{Latencies, median};
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;

const RUNS: usize = 3;
const LATENCY_RUNS: usize = 5;
/// Turns of one client, one after the other, in one run.
const TURNS: usize = 200;
/// Turns of one conversation, so that most turns have a past.
const TURNS_PER_CONVERSATION: usize = 10;
/// Turns of a long conversation: each has a message and a reply.
const LONG: usize = 200;
/// The last turns of a long conversation, which are measured.
const LAST: usize = 20;
/// How much more one of them may cost than the first turn of a conversation.
const MOST_GROWTH: f64 = 1.3;
const TIME: Duration = Duration::from_secs(3);
/// What the slow model takes.
const SLOW: Duration = Duration::from_secs(3);

pub fn measure(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    latency(&model, &home, &server, table);
    growth(table);
    for (clients, goal) in [(16, 1_000.0), (64, 2_000.0)] {
        throughput(&home, &server, clients, goal, table);
    }
    side_by_side(table);
}

/// A person who chats in one conversation after another.
struct Person {
    websocket: WebSocket,
    conversation: Option<String>,
}

impl Person {
    fn new(server: &Server, home: &Home) -> Person {
        let websocket = WebSocket::signed_in(server.address, &home.token);
        Person {
            websocket,
            conversation: None,
        }
    }

    fn chat(&mut self, number: usize) {
        self.chat_on(number.is_multiple_of(TURNS_PER_CONVERSATION));
    }

    fn chat_on(&mut self, is_new: bool) {
        let mut request = json!({ "type": "chat", "message": "What is the weather like?" });
        if is_new {
            self.conversation = None;
        }
        if let Some(conversation) = &self.conversation {
            request["conversation_id"] = json!(conversation);
        }
        let data = self.websocket.ask_data(&request.to_string());
        assert_eq!(data["response"], "Hello there.");
        let conversation = data["conversation_id"].as_str().unwrap();
        self.conversation
            .get_or_insert_with(|| conversation.to_owned());
    }
}

fn latency(model: &Model, home: &Home, server: &Server, table: &mut Table) {
    let mut person = Person::new(server, home);
    person.chat(0);
    let request = model.first_request().bytes();
    let mut bare = Http::connect(model.address()).unwrap();
    let (mut turns, mut calls, mut commits) = (vec![], vec![], vec![]);
    for _ in 0..LATENCY_RUNS {
        commits.push(machine::commits());
        turns.push(one_by_one(TURNS, |number| person.chat(number)));
        calls.push(one_by_one(TURNS, |_| {
            bare.exchange(&request).unwrap();
        }));
    }
    let call = median(calls.iter().map(Latencies::p50));
    let [commit, slow_commit] =
        [Latencies::p50, Latencies::p99].map(|part| median(commits.iter().map(part)));
    let how = format!("median of {LATENCY_RUNS} runs of {TURNS}; floor: one commit");
    table.add(
        Figure::new("the bare model call, p50", call, "ms")
            .how("what the model's own side takes: not ours"),
    );
    table.add(
        Figure::new(
            "our share of a turn, p50",
            median(turns.iter().map(Latencies::p50)) - call,
            "ms",
        )
        .floor(commit)
        .rival("5; 9*")
        .at_most(commit + 1.0)
        .how(format!("{how}; * not durable")),
    );
    table.add(
        Figure::new(
            "our share of a turn, p99",
            median(turns.iter().map(Latencies::p99)) - call,
            "ms",
        )
        .floor(slow_commit)
        .at_most(10.0)
        .how(how),
    );
}

/// What a turn costs when its conversation has 400 messages, and all of them are shown.
fn growth(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let home = Home::with_model(model.address(), json!({ "context_tokens": 200_000 }));
    let server = home.start();
    let mut bare = Http::connect(model.address()).unwrap();
    let mut call = |request: &Request| {
        let request = request.bytes();
        let calls = one_by_one(LAST, |_| {
            bare.exchange(&request).unwrap();
        });
        calls.p50()
    };
    let (mut first, mut last) = (vec![], vec![]);
    for _ in 0..LATENCY_RUNS {
        let mut person = Person::new(&server, &home);
        let firsts = one_by_one(LAST, |_| person.chat(0));
        let mut turn = 0;
        let mut next = |person: &mut Person| {
            person.chat_on(turn == 0);
            turn += 1;
        };
        one_by_one(LONG - LAST, |_| next(&mut person));
        let lasts = one_by_one(LAST, |_| next(&mut person));
        first.push(firsts.p50() - call(model.first_request()));
        last.push(lasts.p50() - call(&model.longest_request()));
    }
    let (first, last) = (median(first), median(last));
    table.add(
        Figure::new("our share of a turn at message 400, p50", last, "ms")
            .floor(first)
            .at_most(first * MOST_GROWTH)
            .how(format!(
                "median of {LATENCY_RUNS} conversations; floor: at their first message"
            )),
    );
}

fn throughput(home: &Home, server: &Server, clients: usize, goal: f64, table: &mut Table) {
    let (mut rates, mut cpu, mut commits) = (vec![], vec![], vec![]);
    for _ in 0..RUNS {
        commits.push(machine::commits().per_second());
        let before = server.cpu_seconds();
        let load = load::run(clients, TIME, |_| Person::new(server, home), Person::chat);
        cpu.push((server.cpu_seconds() - before) / load.count as f64 * 1e6);
        rates.push(load.per_second);
    }
    table.add(
        Figure::new(
            format!("finished turns, {clients} clients"),
            median(rates),
            "/s",
        )
        .floor(median(commits))
        .rival("106; 244")
        .at_least(goal)
        .how(format!(
            "median of {RUNS} runs of {} s; floor: commits one by one",
            TIME.as_secs()
        )),
    );
    table.add(Figure::new(
        "  processor time of the server for each",
        median(cpu),
        "us",
    ));
}

/// Turns of different people must not wait for each other's models.
fn side_by_side(table: &mut Table) {
    let model = Model::start(Pace::After(SLOW));
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    let mut people: Vec<_> = (0..4).map(|_| Person::new(&server, &home)).collect();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for person in &mut people {
            scope.spawn(|| person.chat(0));
        }
    });
    table.add(
        Figure::new(
            "four turns at once, a model of 3 s",
            began.elapsed().as_secs_f64(),
            "s",
        )
        .floor(SLOW.as_secs_f64())
        .at_most(SLOW.as_secs_f64() + 0.3)
        .how("1 run"),
    );
}
