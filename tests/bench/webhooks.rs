//! The gate: the cheapest request there is, and webhooks, which are on disk before they are
//! answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use support::eventually;
use support::served::{Served, ok};

use crate::clients::{Http, Load, get, load, post};
use crate::floor::{self, Floor, commits};
use crate::home::Home;
use crate::model::Model;
use crate::table::{Figure, Latencies, Table, median};

const RUNS: usize = 3;
const TIME: Duration = Duration::from_secs(2);
const HEALTH_CLIENTS: usize = 32;
const CLIENTS: usize = 64;
/// Requests per second that are to be accepted.
const ACCEPTS: f64 = 5_000.0;
const MESSAGE: &str = r#"{"message":"The washing machine is done.","user_id":"laundry"}"#;

/// Sends the same request from many clients.
fn send(address: SocketAddr, clients: usize, interval: Duration, request: &[u8]) -> Load {
    let connect = || Http::connect(address).unwrap();
    load(clients, TIME, interval, connect, |http, _| {
        let (status, body) = http.exchange(request).unwrap();
        assert!(
            matches!(status, 200 | 202),
            "{}",
            String::from_utf8_lossy(body)
        );
    })
}

pub fn health(table: &mut Table) {
    let home = Home::new(json!({}));
    let (server, floor) = (home.start(), Floor::start(floor::HEALTH));
    let (mut ours, mut bare) = (vec![], vec![]);
    // By turns, so that what else the machine does meets both.
    for _ in 0..RUNS {
        let ask = |address| send(address, HEALTH_CLIENTS, Duration::ZERO, &get("/health"));
        ours.push(ask(server.address).per_second);
        bare.push(ask(floor.address).per_second);
    }
    let figure = Figure::new("GET /health, 32 clients", median(ours), "/s");
    table.add(
        figure
            .floor(median(bare), "a bare server")
            .at_least(100_000.0),
    );
}

fn home(model: &Model, receiver: &Served, workers: usize) -> Home {
    let url = format!("http://{}/callback", receiver.address);
    Home::with_model(
        model.address(),
        json!({
            "workers": workers,
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "webhook", "type": "webhook", "accounts": {
                    "bench": { "incoming_path": "/bench", "outgoing_url": url },
                } },
            ],
        }),
    )
}

/// A receiver of callbacks that takes each at once and counts them.
fn receiver() -> (Served, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let taken: Arc<[u8]> = ok("application/json", "{}").into_bytes().into();
    let served = Served::answering(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(Arc::clone(&taken))
    });
    (served, count)
}

pub fn webhooks(table: &mut Table) {
    // One worker, held by a model that never answers: what is left is accepting.
    let request = post("/bench", MESSAGE);
    let accept = |interval| {
        let (model, (receiver, _)) = (Model::stalled(), receiver());
        let home = home(&model, &receiver, 1);
        send(home.start().address, CLIENTS, interval, &request)
    };
    let (mut loads, mut bare) = (vec![], vec![]);
    for _ in 0..RUNS {
        bare.push(commits());
        loads.push(accept(Duration::ZERO));
    }
    let rate = median(loads.iter().map(|load| load.per_second));
    let floor = median(bare.iter().map(Latencies::per_second));
    let figure = Figure::new("accepted, 64 clients", rate, "/s").at_least(ACCEPTS);
    table.add(figure.floor(floor, "commits one by one"));
    let p99 = median(loads.iter().map(|load| load.latencies.p99()));
    table.add(Figure::new("  p99", p99, "ms"));
    let interval = Duration::from_secs_f64(CLIENTS as f64 / ACCEPTS);
    let paced = (0..RUNS).map(|_| accept(interval).latencies.p99());
    table.add(Figure::new("accepted at 5,000/s, p99", median(paced), "ms").at_most(25.0));

    // From the first request to the last callback, all there is between included.
    let model = Model::instant();
    let rates = (0..RUNS).map(|_| {
        let (receiver, came) = receiver();
        let home = home(&model, &receiver, 16);
        let server = home.start();
        let began = Instant::now();
        let sent = send(server.address, CLIENTS, Duration::ZERO, &request).count;
        eventually("the last callback", || {
            (came.load(Ordering::SeqCst) >= sent).then_some(())
        });
        sent as f64 / began.elapsed().as_secs_f64()
    });
    let figure = Figure::new("answered, to the callback", median(rates), "/s").at_least(1_000.0);
    let (receiver, _) = receiver();
    let bare = send(receiver.address, 16, Duration::ZERO, &request).per_second;
    table.add(figure.floor(bare, "16 clients call the receiver"));
}
