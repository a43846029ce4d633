//! Chat turns against a model that costs nothing: what is left is ours.

use std::thread;
use std::time::Duration;

use serde_json::json;
use support::prompt_cache::{Rules, play};
use support::prompt_size::hello;

use crate::clients::{Http, WebSocket, load, one_by_one};
use crate::floor::commits;
use crate::home::{Home, Server};
use crate::model::{Model, SAYS};
use crate::table::{Figure, Table, median};

const RUNS: usize = 5;
/// Turns of one client, one after the other, in one run.
const TURNS: usize = 200;
/// Turns of one conversation, so that most turns have a past.
const TURNS_PER_CONVERSATION: usize = 10;
/// The first and the last turns of a long conversation, which are measured.
const ENDS: usize = 20;
const TIME: Duration = Duration::from_secs(3);
/// Messages, each with its answer, whose bytes on the disk are counted.
const WRITTEN: usize = 1_000;
const IDLE: Duration = Duration::from_secs(30);
/// Turns of a conversation whose requests providers cache.
const CACHED: usize = 1_500;

/// What a model has to read before a person's first word.
pub fn request(table: &mut Table) {
    let largest = hello().into_iter().max_by_key(|sent| sent.bytes).unwrap();
    let name = format!("for \"hello\", {}", largest.how);
    table.add(Figure::new(name, largest.bytes as f64 / 1000.0, "KB").at_most(4.7));
}

/// How much of a long conversation's input providers read from their cache.
pub fn cache(table: &mut Table) {
    for rules in Rules::ALL {
        let name = format!("input read from the cache, {rules:?}'s rules");
        let share = play(rules, CACHED);
        let figure = Figure::new(name, share.percent(), "%").at_least(97.0);
        table.add(figure.floor(share.most_percent(), "what was sent before at all"));
    }
}

/// A person who chats in one conversation after another.
struct Person {
    websocket: WebSocket,
    conversation: Option<String>,
}

impl Person {
    fn new(server: &Server) -> Person {
        Person {
            websocket: server.client(),
            conversation: None,
        }
    }

    fn search(&mut self, query: &str) {
        let request = json!({ "type": "search_messages", "query": query });
        self.websocket.ask_data(&request.to_string());
    }

    fn chat(&mut self, number: usize) {
        self.chat_on(number.is_multiple_of(TURNS_PER_CONVERSATION));
    }

    fn chat_on(&mut self, is_new: bool) {
        let mut request = json!({ "type": "chat", "message": "What is the weather like?" });
        if let Some(conversation) = self.conversation.take_if(|_| !is_new) {
            request["conversation_id"] = json!(conversation);
        }
        let data = self.websocket.ask_data(&request.to_string());
        assert_eq!(data["response"], SAYS);
        self.conversation = data["conversation_id"].as_str().map(str::to_owned);
    }
}

pub fn turns(table: &mut Table) {
    let model = Model::instant();
    let home = Home::with_model(model.address(), json!({ "context_tokens": 200_000 }));
    let server = home.start();
    let mut bare = Http::connect(model.address()).unwrap();
    // What the model's own side takes of the last turn.
    let mut call = |count| {
        let request = model.last_request();
        one_by_one(count, |_| {
            bare.exchange(&request).unwrap();
        })
        .p50()
    };
    let mut person = Person::new(&server);
    person.chat(0);
    let (mut p50, mut p99, mut bare_p50, mut bare_p99) = (vec![], vec![], vec![], vec![]);
    for _ in 0..RUNS {
        let commits = commits();
        bare_p50.push(commits.p50());
        bare_p99.push(commits.p99());
        let turns = one_by_one(TURNS, |number| person.chat(number));
        let call = call(TURNS);
        p50.push(turns.p50() - call);
        p99.push(turns.p99() - call);
    }
    let floor = median(bare_p50);
    let figure = Figure::new("our share of a turn, p50", median(p50), "ms");
    table.add(figure.floor(floor, "one commit").at_most(floor + 1.0));
    let figure = Figure::new("our share of a turn, p99", median(p99), "ms");
    table.add(figure.floor(median(bare_p99), "one commit").at_most(10.0));

    // When its conversation has 400 messages, and all of them are shown.
    let (mut first, mut last) = (vec![], vec![]);
    for _ in 0..RUNS {
        let firsts = one_by_one(ENDS, |_| person.chat(0));
        first.push(firsts.p50() - call(ENDS));
        one_by_one(TURNS - ENDS, |_| person.chat_on(false));
        let lasts = one_by_one(ENDS, |_| person.chat_on(false));
        last.push(lasts.p50() - call(ENDS));
    }
    let first = median(first);
    let figure = Figure::new("our share at message 400, p50", median(last), "ms");
    let figure = figure.floor(first, "at the first message");
    table.add(figure.at_most(first * 1.2));

    for (clients, goal) in [(16, 1_000.0), (64, 2_000.0)] {
        let (mut rates, mut processor, mut bare) = (vec![], vec![], vec![]);
        for _ in 0..RUNS {
            bare.push(commits().per_second());
            let before = server.processor_us();
            let connect = || Person::new(&server);
            let load = load(clients, TIME, Duration::ZERO, connect, Person::chat);
            processor.push((server.processor_us() - before) / load.count as f64);
            rates.push(load.per_second);
        }
        let name = format!("finished turns, {clients} clients");
        let figure = Figure::new(name, median(rates), "/s").at_least(goal);
        table.add(figure.floor(median(bare), "commits one by one"));
        let name = "  processor time for each";
        table.add(Figure::new(name, median(processor), "us"));
    }
}

/// What is written to the disk: an SD card bears only so much of it.
pub fn wear(table: &mut Table) {
    let model = Model::instant();
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    let Some(mut before) = server.written_bytes() else {
        println!("  skipped: only root may see what Hearth writes, and the kernel must count it");
        return;
    };
    let mut written = || {
        let now = server.written_bytes().expect("it was known before");
        now - std::mem::replace(&mut before, now)
    };
    for clients in [1, 16] {
        thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut person = Person::new(&server);
                    (0..WRITTEN.div_ceil(clients)).for_each(|number| person.chat(number));
                });
            }
        });
        // The index of what was said is written when somebody searches, or after a while.
        Person::new(&server).search("hello");
        let name = format!("for 1,000 messages and answers, {clients} at once");
        table.add(Figure::new(name, written() / 1_048_576.0, "MiB"));
    }
    thread::sleep(IDLE);
    table.add(Figure::new("in 30 s of idling", written() / 1024.0, "KiB").at_most(0.0));
}
