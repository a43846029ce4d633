//! How soon the server answers, and what it takes when nobody asks.

use std::fs::File;
use std::time::Duration;

use crate::floor::{self, Floor};
use crate::home::Home;
#[cfg(feature = "web")]
use crate::http::Http;
use crate::statistics::{median, milliseconds};
use crate::table::{Figure, Table};
use support::program::binary;

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

    // The pages of a program that was just linked count as dirty until they are on
    // the disk.
    File::open(binary()).unwrap().sync_all().unwrap();
    let wait = || std::thread::sleep(Duration::from_secs(1));
    let (mut dirty, mut resident) = (vec![], vec![]);
    for _ in 0..IDLE_RUNS {
        let server = home.start();
        wait();
        dirty.extend(server.private_kib().map(|kib| kib / 1024.0));
        resident.push(server.resident_kib() / 1024.0);
    }
    let bare = Floor::start(floor::HEALTH);
    wait();
    if dirty.is_empty() {
        println!("skipped: only root may see the private memory of Hearth");
    } else {
        table.add(
            Figure::new("private dirty memory, idle", median(dirty), "MiB")
                .floor(bare.private_kib() / 1024.0)
                .at_most(1.2)
                .how(format!("median of {IDLE_RUNS}, 1 s after the start")),
        );
    }
    table.add(
        Figure::new("resident memory, idle", median(resident), "MiB")
            .floor(bare.resident_kib() / 1024.0)
            .rival("2.4*; 30; 96")
            .how("the rest is what the system can take back; * without TLS and web"),
    );

    let size = std::fs::metadata(binary()).unwrap().len() as f64 / (1024.0 * 1024.0);
    table.add(
        Figure::new("program file, stripped", size, "MiB")
            .rival("2.9; 39")
            .at_most(7.0),
    );
    #[cfg(feature = "web")]
    page(table, &home);
}

/// The whole page as a browser loads it: without the handbook, which it loads
/// when a person opens it.
#[cfg(feature = "web")]
fn page(table: &mut Table, home: &Home) {
    let server = home.start();
    let mut http = Http::connect(server.address).unwrap();
    let mut files = hearth::web::Web::new().exported();
    files.retain(|(name, _)| !name.contains("/handbook/") && !name.contains("/help."));
    let mut bytes = 0;
    for (name, _) in &files {
        let path = name.strip_suffix("index.html").unwrap_or(name);
        let request =
            format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
        let (status, body) = http.exchange(request.as_bytes()).unwrap();
        assert_eq!(status, 200, "{path}");
        bytes += body.len();
    }
    table.add(
        Figure::new("page on the wire", bytes as f64 / 1000.0, "KB")
            .at_most(90.0)
            .how(format!("the bodies of all {} files", files.len())),
    );
}
