//! How soon the server answers, and what it takes when nobody asks.

use std::time::Duration;

use crate::floor::{self, Floor};
use crate::home::{BINARY, Home};
use crate::statistics::{median, milliseconds};
use crate::table::{Figure, Table};

const STARTS: usize = 21;
const IDLE_RUNS: usize = 3;

pub fn measure(table: &mut Table) {
    let home = Home::fresh();
    let ours = median((0..STARTS).map(|_| milliseconds(home.start().started_in)));
    let bare = median((0..STARTS).map(|_| milliseconds(Floor::start(floor::HEALTH).started_in)));
    table.add(
        Figure::new("start to the first answer of /health", ours, "ms")
            .floor(bare)
            .rival("1.5; 20")
            .at_most(10.0)
            .how(format!("median of {STARTS}, existing data directory")),
    );

    let wait = || std::thread::sleep(Duration::from_secs(1));
    let (mut resident, mut own) = (vec![], vec![]);
    for _ in 0..IDLE_RUNS {
        let server = home.start();
        wait();
        resident.push(server.resident_kib() / 1024.0);
        own.push(server.own_kib() / 1024.0);
    }
    let bare = Floor::start(floor::HEALTH);
    wait();
    table.add(
        Figure::new("resident memory, idle", median(resident), "MiB")
            .floor(bare.resident_kib() / 1024.0)
            .rival("2.4*; 30; 96")
            .at_most(6.0)
            .how(format!(
                "median of {IDLE_RUNS}, 1 s after the start; * without TLS and web"
            )),
    );

    table.add(
        Figure::new("  of it its own", median(own), "MiB")
            .floor(bare.own_kib() / 1024.0)
            .how("the rest are pages of files, which the system takes back when it needs them"),
    );

    let size = std::fs::metadata(BINARY).unwrap().len() as f64 / (1024.0 * 1024.0);
    table.add(
        Figure::new("program file, stripped", size, "MiB")
            .rival("2.9; 39")
            .at_most(6.0),
    );
}
