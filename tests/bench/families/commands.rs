//! The way of a command to the service and back.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::floor::{self, Floor};
use crate::home::{Home, unlimited};
use crate::load::one_by_one;
use crate::statistics::median;
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;

const RUNS: usize = 3;
const ROUND_TRIPS: usize = 5_000;
const REQUEST: &str = r#"{"type":"ping"}"#;

pub fn measure(table: &mut Table) {
    let home = Home::new(json!({ "limits": unlimited() }));
    let server = home.start();
    let floor = Floor::start(floor::ECHO);
    let mut websocket = WebSocket::signed_in(server.address, &home.token);
    let mut echo = TcpStream::connect(floor.address).unwrap();
    echo.set_nodelay(true).unwrap();
    let (mut ours, mut bare) = (vec![], vec![]);
    for _ in 0..RUNS {
        ours.push(one_by_one(ROUND_TRIPS, |_| {
            websocket.ask(REQUEST);
        }));
        bare.push(one_by_one(ROUND_TRIPS, |_| {
            echo.write_all(REQUEST.as_bytes()).unwrap();
            echo.read_exact(&mut [0; REQUEST.len()]).unwrap();
        }));
    }
    for (name, share) in [("p50", 0.50), ("p99", 0.99)] {
        let of = |runs: &[crate::statistics::Latencies]| {
            median(runs.iter().map(|run| run.percentile(share) * 1000.0))
        };
        table.add(
            Figure::new(format!("round trip of ping, {name}"), of(&ours), "us")
                .floor(of(&bare))
                .how(format!("median of {RUNS} runs of {ROUND_TRIPS}")),
        );
    }
}
