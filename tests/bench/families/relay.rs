//! What a relay adds, costs and carries.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::floor::{self, Floor};
use crate::http::connect;
use crate::load::one_by_one;
use crate::relay::{Batch, Pair, Relay};
use crate::secured::{Client, Machine};
use crate::statistics::median;
use crate::table::{Figure, Table, number};
use crate::websocket::WebSocket;

const RUNS: usize = 5;
const TRIPS: usize = 2_000;
/// Bytes of a message: a short command or a piece of a reply.
const BYTES: usize = 64;

/// Clients of one machine that stay: as many as may, with one to spare.
const RELAYED: usize = 63;
const PING: &str = r#"{"type":"ping"}"#;

/// Links that are held at once, where there are descriptors for so many.
const LINKS: usize = 5_000;
/// Descriptors of the relay for a link with one client: two sockets, two wakers.
const DESCRIPTORS_EACH: u64 = 4;
const OTHER_DESCRIPTORS: u64 = 200;

const PAIRS: usize = 64;
/// Messages under way of each pair, each way.
const BATCH: usize = 16;
/// Threads for each end: the clients and machines are not what is measured.
const THREADS: usize = 4;
const TIME: Duration = Duration::from_secs(3);

pub fn measure(table: &mut Table) {
    latency(table);
    encrypted(table);
    memory(table);
    throughput(table);
}

/// One message there and one back, through the relay and straight to an echo.
fn latency(table: &mut Table) {
    let relay = Relay::start();
    let mut pair = relay.pair();
    let (ask, answer) = pair.batches(1, BYTES);
    let mut machine = pair.machine.try_clone().unwrap();
    // Ends with the relay.
    let echo = std::thread::spawn(move || {
        let mut buffer = vec![0; answer.back];
        while machine.read_exact(&mut buffer).is_ok() {
            answer.send(&mut machine);
        }
    });
    let floor = Floor::start(floor::ECHO);
    let mut direct = connect(floor.address).unwrap();
    let straight = Batch {
        back: ask.out.len(),
        ..ask.clone()
    };
    let mut buffer = Vec::new();
    let mut trips = |batch: &Batch, socket: &mut TcpStream| {
        one_by_one(TRIPS, |_| {
            batch.send(socket);
            batch.receive(socket, &mut buffer);
        })
        .p50()
    };
    trips(&ask, &mut pair.client);
    let (mut through, mut past) = (vec![], vec![]);
    for _ in 0..RUNS {
        through.push(trips(&ask, &mut pair.client));
        past.push(trips(&straight, &mut direct));
    }
    let past = median(past);
    let added = median(through) - past;
    drop(relay);
    echo.join().unwrap();
    table.add(
        Figure::new("round trip added by the relay, p50", added, "ms")
            .floor(past)
            .at_most(0.3)
            .how(format!(
                "median of {RUNS} runs of {TRIPS}; floor: the direct round trip"
            )),
    );
}

/// A command and its answer between an encrypted client and a machine of ours,
/// through the relay and straight; and what such clients cost the machine.
fn encrypted(table: &mut Table) {
    let relay = Relay::start();
    let machine = Machine::behind(&relay);
    let mut far = Client::open(&relay, &machine);
    let mut near = WebSocket::signed_in(machine.server.address, &machine.home.token);
    let (mut through, mut past) = (vec![], vec![]);
    for _ in 0..RUNS {
        let trips = one_by_one(TRIPS, |_| {
            far.ask(PING);
        });
        through.push(trips.p50());
        let trips = one_by_one(TRIPS, |_| {
            near.ask(PING);
        });
        past.push(trips.p50());
    }
    let past = median(past);
    table.add(
        Figure::new(
            "round trip added by the relay, encrypted, p50",
            median(through) - past,
            "ms",
        )
        .floor(past)
        .at_most(0.5)
        .how(format!(
            "median of {RUNS} runs of {TRIPS} pings of a real machine; floor: straight and plain"
        )),
    );

    let before = machine.server.resident_kib();
    let mut held: Vec<Client> = (1..RELAYED)
        .map(|_| Client::open(&relay, &machine))
        .collect();
    let each = (machine.server.resident_kib() - before) / held.len() as f64;
    held.last_mut().unwrap().ask(PING);
    table.add(
        Figure::new("memory of the machine for a relayed client", each, "KiB").how(format!(
            "resident; {} encrypted clients that have signed in",
            held.len()
        )),
    );
}

/// Links with one client each that have met and then say nothing. The two ends
/// are bare sockets of this process, so that the relay's process needs most
/// descriptors: they decide how many there are.
fn memory(table: &mut Table) {
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let room = descriptors.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_EACH;
    let count = LINKS.min(usize::try_from(room).unwrap_or(usize::MAX));
    let relay = Relay::start();
    let first = relay.pair();
    let before = relay.resident_kib();
    let held: Vec<Pair> = (0..count).map(|_| relay.pair()).collect();
    std::thread::sleep(Duration::from_secs(1));
    let each = (relay.resident_kib() - before) / count as f64;
    // They are still there.
    exchange(held.last().unwrap());
    drop((first, held));
    table.add(
        Figure::new(
            format!(
                "memory of each of {} links and clients",
                number(count as f64)
            ),
            each,
            "KiB",
        )
        .at_most(80.0 * 1000.0 / 1024.0)
        .how("resident memory of the relay; goal: 80 KB"),
    );
}

fn exchange(pair: &Pair) {
    let (mut client, mut machine) = (&pair.client, &pair.machine);
    let (ask, answer) = pair.batches(1, BYTES);
    let mut buffer = Vec::new();
    ask.send(&mut client);
    answer.receive(&mut machine, &mut buffer);
    answer.send(&mut machine);
    ask.receive(&mut client, &mut buffer);
}

/// Pairs that ask and answer as fast as they can, through the relay and through
/// a process that copies between their sockets.
fn throughput(table: &mut Table) {
    let relay = Relay::start();
    let pairs: Vec<_> = (0..PAIRS)
        .map(|_| {
            let pair = relay.pair();
            let (ask, answer) = pair.batches(BATCH, BYTES);
            ((pair.client, ask), (pair.machine, answer))
        })
        .collect();
    let ours = carry(pairs);
    drop(relay);

    let splice = Floor::start(floor::SPLICE);
    let batch = Batch {
        out: vec![b'x'; BATCH * BYTES],
        back: BATCH * BYTES,
    };
    let pairs: Vec<_> = (0..PAIRS)
        .map(|_| {
            // It joins each two that come one after the other.
            let one = connect(splice.address).unwrap();
            let other = connect(splice.address).unwrap();
            ((one, batch.clone()), (other, batch.clone()))
        })
        .collect();
    let bare = carry(pairs);
    table.add(
        Figure::new("messages through one relay, 64 pairs", ours, "/s")
            .floor(bare)
            .at_least(50_000.0)
            .how(format!(
                "{BYTES} bytes, {BATCH} under way of each pair, both ways counted; floor: a bare splice"
            )),
    );
}

type End = (TcpStream, Batch);

/// Messages per second, both ways together.
fn carry(pairs: Vec<(End, End)>) -> f64 {
    let (clients, machines): (Vec<End>, Vec<End>) = pairs.into_iter().unzip();
    let stops: Vec<TcpStream> = machines
        .iter()
        .map(|(socket, _)| socket.try_clone().unwrap())
        .collect();
    let ready = Barrier::new(THREADS);
    let rates: Vec<f64> = std::thread::scope(|scope| {
        for mut share in shares(machines) {
            scope.spawn(move || answer(&mut share));
        }
        let asking: Vec<_> = shares(clients)
            .into_iter()
            .map(|mut share| {
                let ready = &ready;
                scope.spawn(move || ask(&mut share, ready))
            })
            .collect();
        let rates = asking
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        for socket in &stops {
            let _ = socket.shutdown(Shutdown::Both);
        }
        rates
    });
    rates.iter().sum()
}

fn shares(mut ends: Vec<End>) -> Vec<Vec<End>> {
    let each = ends.len() / THREADS;
    (0..THREADS)
        .map(|_| ends.split_off(ends.len() - each))
        .collect()
}

fn ask(share: &mut [End], ready: &Barrier) -> f64 {
    let mut buffer = Vec::new();
    ready.wait();
    let began = Instant::now();
    let mut rounds = 0;
    while began.elapsed() < TIME {
        for (socket, batch) in share.iter_mut() {
            batch.send(socket);
        }
        for (socket, batch) in share.iter_mut() {
            batch.receive(socket, &mut buffer);
        }
        rounds += 1;
    }
    (2 * BATCH * share.len() * rounds) as f64 / began.elapsed().as_secs_f64()
}

fn answer(share: &mut [End]) {
    let mut buffer = Vec::new();
    loop {
        for (socket, batch) in share.iter_mut() {
            buffer.resize(batch.back, 0);
            // It is shut down when all is over.
            if socket.read_exact(&mut buffer).is_err() || socket.write_all(&batch.out).is_err() {
                return;
            }
        }
    }
}
