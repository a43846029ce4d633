//! Webhooks: how fast they are safely on disk, and how fast replies go out.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::Home;
use crate::http::{Http, post};
use crate::load;
use crate::machine;
use crate::model::{Model, Pace};
use crate::receiver::Receiver;
use crate::statistics::{Latencies, median};
use crate::table::{Figure, Table};

const CLIENTS: usize = 64;
const RUNS: usize = 3;
const TIME: Duration = Duration::from_secs(2);
/// Requests per second that we want to accept, and how much better than one
/// commit for each that is to be.
const ACCEPTS: f64 = 5_000.0;
const GAIN: f64 = 10.0;
/// Longest that the last callback may take after the last request.
const LAST_CALLBACK: Duration = Duration::from_secs(30);
const MESSAGE: &str = r#"{"message":"The washing machine is done.","user_id":"laundry"}"#;

/// Callbacks per second that we want to send.
const CALLBACKS: f64 = 1_000.0;
/// Milliseconds that 99 of 100 accepted requests may take at [`ACCEPTS`].
const ACCEPT_TIME: f64 = 25.0;

pub fn measure(table: &mut Table) {
    accepts(table);
    accepts_in_time(table);
    callbacks(table);
}

fn home(model: SocketAddr, receiver: &Receiver, workers: usize) -> Home {
    Home::with_model(
        model,
        json!({
            "workers": workers,
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "webhook", "type": "webhook", "accounts": {
                    "bench": { "incoming_path": "/bench", "outgoing_url": receiver.url() },
                } },
            ],
        }),
    )
}

fn send(address: SocketAddr, time: Duration, interval: Duration) -> load::Load {
    let request = post("/bench", MESSAGE);
    load::paced(
        CLIENTS,
        time,
        interval,
        |_| Http::connect(address).unwrap(),
        |http, _| {
            let (status, body) = http.exchange(&request).unwrap();
            assert_eq!(status, 202, "{}", String::from_utf8_lossy(body));
        },
    )
}

/// One worker, held by a model that never answers: what is left is accepting.
fn accepts(table: &mut Table) {
    let model = Model::start(Pace::Never);
    let receiver = Receiver::start();
    let (mut loads, mut cpu, mut commits) = (vec![], vec![], vec![]);
    for _ in 0..RUNS {
        commits.push(machine::commits());
        let home = home(model.address(), &receiver, 1);
        let server = home.start();
        let before = server.cpu_seconds();
        let load = send(server.address, TIME, Duration::ZERO);
        cpu.push((server.cpu_seconds() - before) / load.count as f64 * 1e6);
        loads.push(load);
    }
    let rate = median(loads.iter().map(|load| load.per_second));
    let one_by_one = median(commits.iter().map(Latencies::per_second));
    let how = format!(
        "median of {RUNS} runs of {} s, each request on disk",
        TIME.as_secs()
    );
    table.add(
        Figure::new(format!("accepted, {CLIENTS} clients"), rate, "/s")
            .floor(one_by_one)
            .at_least(ACCEPTS)
            .how(format!("{how}; floor: commits one by one")),
    );
    let gain = Figure::new(
        "  the same, by commits one by one",
        rate / one_by_one,
        "times",
    );
    table.add(match one_by_one * GAIN < ACCEPTS {
        true => gain.at_least(GAIN),
        false => gain.how("a goal only on a disk that is slow to sync; this one is not"),
    });
    for (name, part) in [
        ("  p50", Latencies::p50 as fn(&Latencies) -> f64),
        ("  p99", Latencies::p99),
    ] {
        let ours = median(loads.iter().map(|load| part(&load.latencies)));
        let bare = median(commits.iter().map(part));
        table.add(Figure::new(name, ours, "ms").floor(bare));
    }
    table.add(Figure::new(
        "  processor time of the server for each",
        median(cpu),
        "us",
    ));
}

/// The time to accept a message at a load that is not the most.
fn accepts_in_time(table: &mut Table) {
    let model = Model::start(Pace::Never);
    let receiver = Receiver::start();
    let interval = Duration::from_secs_f64(CLIENTS as f64 / ACCEPTS);
    let loads: Vec<load::Load> = (0..RUNS)
        .map(|_| {
            let home = home(model.address(), &receiver, 1);
            let server = home.start();
            send(server.address, TIME, interval)
        })
        .collect();
    let rate = median(loads.iter().map(|load| load.per_second));
    table.add(
        Figure::new(
            "time to accept at 5,000/s, p99",
            median(loads.iter().map(|load| load.latencies.p99())),
            "ms",
        )
        .at_most(ACCEPT_TIME)
        .how(format!("median of {RUNS} runs; {rate:.0}/s were sent")),
    );
}

/// From the first request to the last callback, all there is between included.
fn callbacks(table: &mut Table) {
    let model = Model::start(Pace::AtOnce);
    let mut rates = vec![];
    for _ in 0..RUNS {
        let receiver = Receiver::start();
        let home = home(model.address(), &receiver, 16);
        let server = home.start();
        let began = Instant::now();
        let sent = send(server.address, TIME / 2, Duration::ZERO).count;
        let ended = receiver.wait_for(sent, LAST_CALLBACK);
        rates.push(sent as f64 / (ended - began).as_secs_f64());
    }
    table.add(
        Figure::new("callbacks, from request to callback", median(rates), "/s")
            .floor(bare_callbacks())
            .at_least(CALLBACKS)
            .how(format!(
                "median of {RUNS} runs; floor: 16 clients call the receiver"
            )),
    );
}

fn bare_callbacks() -> f64 {
    let receiver = Receiver::start();
    let request = post(
        "/callback",
        r#"{"message":"Hello there.","conversation_id":"c"}"#,
    );
    let load = load::run(
        16,
        Duration::from_secs(1),
        |_| Http::connect(receiver.address()).unwrap(),
        |http, _| {
            http.exchange(&request).unwrap();
        },
    );
    load.per_second
}
