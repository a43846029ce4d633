//! How soon the server answers, and what it takes when nobody asks.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use support::crowd::Crowd;
use support::program::binary;

use crate::clients::WebSocket;
#[cfg(feature = "web")]
use crate::clients::{Http, get};
use crate::floor::{self, Floor};
use crate::home::Home;
use crate::model::{Model, SAYS};
use crate::table::{Figure, Table, median, milliseconds};

const STARTS: usize = 40;
const CONNECTIONS: usize = 5_000;
const CROWD: Crowd = Crowd {
    clients: 500,
    messages: 6,
    sign_ins: 8,
};
const MINUTE: Duration = Duration::from_secs(60);

fn settle() {
    std::thread::sleep(Duration::from_secs(1));
}

pub fn start(table: &mut Table) {
    let home = Home::new(json!({}));
    home.start().stop();
    // By turns, so that what else the machine does meets both.
    let (mut ours, mut bare) = (vec![], vec![]);
    for _ in 0..STARTS {
        bare.push(milliseconds(Floor::start(floor::HEALTH).started_in));
        let server = home.start();
        ours.push(milliseconds(server.started_in));
        server.stop();
    }
    let figure = Figure::new("start to the first answer of /health", median(ours), "ms");
    table.add(figure.floor(median(bare), "a bare server").at_most(10.0));

    // The pages of a program that was just linked count as dirty until they are on the disk.
    File::open(binary()).unwrap().sync_all().unwrap();
    let (server, bare) = (home.start(), Floor::start(floor::HEALTH));
    settle();
    if let Some(kib) = server.private_kib() {
        let figure = Figure::new("private memory, idle", kib / 1024.0, "MiB").at_most(1.2);
        table.add(figure.floor(bare.private_kib() / 1024.0, "a bare server"));
    } else {
        println!("  skipped: only root may see the private memory of Hearth");
    }
    let resident = server.resident_kib() / 1024.0;
    let figure = Figure::new("resident memory, idle", resident, "MiB");
    table.add(figure.floor(bare.resident_kib() / 1024.0, "a bare server"));
    let size = std::fs::metadata(binary()).unwrap().len() as f64 / (1024.0 * 1024.0);
    table.add(Figure::new("program file", size, "MiB").at_most(9.0));

    // The whole page, which a browser loads part by part (a test has the limits of these): without
    // the handbook, which it loads when a person opens it.
    #[cfg(feature = "web")]
    {
        let mut http = Http::connect(server.address).unwrap();
        let mut files = hearth::web::Web::new().exported();
        files.retain(|(name, _)| !name.contains("/handbook/") && !name.contains("/help."));
        let size = |(name, _): &(_, _)| {
            let name: &String = name;
            let path = name.strip_suffix("index.html").unwrap_or(name);
            let (status, body) = http.exchange(&get(&format!("/{path}"))).unwrap();
            assert_eq!(status, 200, "{path}");
            body.len()
        };
        let bytes: usize = files.iter().map(size).sum();
        let name = "page on the wire, six languages";
        table.add(Figure::new(name, bytes as f64 / 1000.0, "KB"));
    }
}

/// Connections that have signed in and then say nothing.
pub fn connections(table: &mut Table) {
    let home = Home::new(json!({}));
    let server = home.start();
    // What the first connection brings with it is not the connections'.
    drop(server.client());
    let before = server.resident_kib();
    let held: Vec<WebSocket> = (0..CONNECTIONS).map(|_| server.client()).collect();
    settle();
    let ours = (server.resident_kib() - before) / CONNECTIONS as f64;
    drop(held);

    let floor = Floor::start(floor::ECHO);
    let before = floor.resident_kib();
    let connect = |_| {
        let mut socket = TcpStream::connect(floor.address).unwrap();
        socket.write_all(b"hello").unwrap();
        socket.read_exact(&mut [0; 5]).unwrap();
        socket
    };
    let held: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    settle();
    let bare = (floor.resident_kib() - before) / held.len() as f64;
    let figure = Figure::new("memory of each of 5,000 WebSockets", ours, "KiB");
    table.add(figure.floor(bare, "a thread and 4 KiB").at_most(28.0));
}

/// What stays of a busy hour.
pub fn memory(table: &mut Table) {
    let model = Model::instant();
    let home = Home::with_model(model.address(), json!({}));
    let server = home.start();
    CROWD.come(server.address, &home.token, SAYS, || ());
    std::thread::sleep(MINUTE);
    if let Some(kib) = server.private_kib() {
        let name = "private, a minute after 500 clients";
        table.add(Figure::new(name, kib / 1024.0, "MiB").at_most(10.0));
    }
    let resident = server.resident_kib() / 1024.0;
    table.add(Figure::new(
        "resident, a minute after 500 clients",
        resident,
        "MiB",
    ));
}
