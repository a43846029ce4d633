//! The cheapest request there is: what the gate itself can take.

use std::net::SocketAddr;
use std::time::Duration;

use crate::floor::{self, Floor};
use crate::home::{Home, unlimited};
use crate::http::{Http, get};
use crate::load;
use crate::statistics::median;
use crate::table::{Figure, Table};
use serde_json::json;

const CLIENTS: usize = 32;
const RUNS: usize = 3;
const TIME: Duration = Duration::from_secs(2);

pub fn measure(table: &mut Table) {
    let home = Home::new(json!({ "limits": unlimited() }));
    let server = home.start();
    let floor = Floor::start(floor::HEALTH);
    let (mut ours, mut bare, mut slow, mut cpu) = (vec![], vec![], vec![], vec![]);
    // In turns, so that what else the machine does meets both.
    for _ in 0..RUNS {
        let before = server.cpu_seconds();
        let load = ask(server.address);
        cpu.push((server.cpu_seconds() - before) / load.count as f64 * 1e6);
        ours.push(load.per_second);
        slow.push(load.latencies.p99());
        bare.push(ask(floor.address).per_second);
    }
    let how = format!("median of {RUNS} runs of {} s, keep-alive", TIME.as_secs());
    table.add(
        Figure::new(format!("answers, {CLIENTS} clients"), median(ours), "/s")
            .floor(median(bare))
            .rival("49,000")
            .at_least(100_000.0)
            .how(how),
    );
    table.add(Figure::new("  p99", median(slow), "ms"));
    table.add(Figure::new(
        "  processor time of the server for each",
        median(cpu),
        "us",
    ));
}

fn ask(address: SocketAddr) -> load::Load {
    let request = get("/health");
    load::run(
        CLIENTS,
        TIME,
        |_| Http::connect(address).unwrap(),
        |http, _| {
            let (status, _) = http.exchange(&request).unwrap();
            assert_eq!(status, 200);
        },
    )
}
