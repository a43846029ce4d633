//! What a relay adds, costs and carries.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use base::ids::MachineId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::relay::{ClientNumber, Frame, FrameKind};
use relay::identity::Identity;
use relay::noise::{Initiator, Purpose, Secured};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use support::home::TemporaryDirectory;
use support::program::Program;
use support::relay_peers::{Arrival, Line, Machine, TOKEN};
use support::{eventually, process};

use crate::clients::{connect, one_by_one};
use crate::floor::{self, Floor};
use crate::home::Home;
use crate::table::{Figure, Table, median, number};

const RUNS: usize = 5;
const TRIPS: usize = 2_000;
const PING: &str = r#"{"type":"ping"}"#;
/// Links that are held at once, where there are descriptors for so many: the relay needs two
/// sockets and two wakers for a link with one client.
const LINKS: usize = 5_000;
const DESCRIPTORS_EACH: u64 = 4;
const OTHER_DESCRIPTORS: u64 = 200;
const PAIRS: usize = 64;
/// Threads for each end: the clients and machines are not what is measured.
const THREADS: usize = 4;
/// Bytes of a message, and messages under way of each pair, each way.
const BYTES: usize = 64;
const BATCH: usize = 16;
const TIME: Duration = Duration::from_secs(3);
/// Bytes before a small frame's payload, from a server and from a client.
const SERVER_HEAD: usize = 2;
const LINK_HEAD: usize = 5;

pub fn relay(table: &mut Table) {
    latency(table);
    memory(table);
    throughput(table);
}

/// The relay in a process of its own; ended when dropped.
struct Relay {
    program: Program,
    /// Where its log is.
    _folder: TemporaryDirectory,
}

impl Relay {
    fn start() -> Relay {
        let folder = TemporaryDirectory::new();
        let options = "relay --bind 127.0.0.1 --port 0 --messages-per-second 1000000 \
             --connections-per-address 1000000";
        let options: Vec<&str> = options.split_whitespace().collect();
        let environment = [("AUTH_TOKEN", TOKEN), ("HEARTH_LOG", "warn")];
        Relay {
            program: Program::start_in(folder.path(), &options, &environment),
            _folder: folder,
        }
    }

    fn address(&self) -> SocketAddr {
        self.program.address
    }

    fn resident_kib(&self) -> f64 {
        process::status(self.program.id(), "VmRSS").expect("the relay runs") as f64
    }
}

/// A command and its answer between a client and a server, through the relay and straight.
fn latency(table: &mut Table) {
    let relay = Relay::start();
    let home = Home::new(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "far", "type": "websocket", "auth_token": TOKEN,
          "url": format!("ws://{}/ws", relay.address()) },
    ] }));
    let key = Identity::load_or_make(home.folder())
        .unwrap()
        .key
        .public_key();
    let server = home.start();
    let mut near = server.client();
    eventually("the link", || {
        let info = near.ask_data(r#"{"type":"server_info"}"#);
        (info["relays"][0]["state"] == "linked").then_some(())
    });
    let mut plain = Client::new(&relay, &key.machine_id());
    let mut hidden = Client::new(&relay, &key.machine_id());
    let (initiator, first) = Initiator::begin(Purpose::Client, &key).unwrap();
    let request = json!({ "type": "secure", "noise": STANDARD.encode(first) });
    let answer: Value = serde_json::from_str(&hidden.ask(&request.to_string())).unwrap();
    let noise = STANDARD.decode(answer["data"]["noise"].as_str().unwrap());
    hidden.secured = Some(initiator.finish(&noise.unwrap()).unwrap());
    let mut trips = [vec![], vec![], vec![]];
    for client in [&mut plain, &mut hidden] {
        client.ask(&format!(r#"{{"type":"auth","token":"{}"}}"#, home.token));
    }
    for _ in 0..RUNS {
        let straight = one_by_one(TRIPS, |_| drop(near.ask(PING)));
        let plain = one_by_one(TRIPS, |_| drop(plain.ask(PING)));
        let hidden = one_by_one(TRIPS, |_| drop(hidden.ask(PING)));
        for (trips, of_run) in trips.iter_mut().zip([straight, plain, hidden]) {
            trips.push(of_run.p50());
        }
    }
    let [straight, plain, hidden] = trips.map(median);
    let figure = Figure::new("added to a round trip, p50", plain - straight, "ms");
    table.add(figure.floor(straight, "the direct one").at_most(0.3));
    let figure = Figure::new("added to an encrypted one, p50", hidden - straight, "ms");
    table.add(figure.floor(straight, "the direct one").at_most(0.5));
}

/// A client of a server behind a relay, whom the relay may not be able to read.
struct Client {
    line: Line,
    secured: Option<Secured>,
}

impl Client {
    fn new(relay: &Relay, machine: &MachineId) -> Client {
        Client {
            line: Line::client(relay.address(), machine),
            secured: None,
        }
    }

    /// Sends a request and returns its response, which must be a success.
    fn ask(&mut self, request: &str) -> String {
        let line = &mut self.line;
        match &mut self.secured {
            Some(secured) => secured
                .seal(request, &mut |sealed| line.send_binary(&sealed))
                .unwrap(),
            None => line.send(request),
        }
        let response = loop {
            match (line.next(), &mut self.secured) {
                (Arrival::Text(text), None) => break text,
                (Arrival::Binary(sealed), Some(secured)) => {
                    if let Some(text) = secured.open(&sealed).unwrap() {
                        break text;
                    }
                }
                (other, _) => panic!("{other:?}"),
            }
        };
        assert!(response.contains(r#""status":"ok""#), "{response}");
        response
    }
}

/// A socket whose frames are so small and regular that counting bytes is enough: what it
/// sends at a time, and the bytes that come back.
struct End {
    socket: TcpStream,
    out: Vec<u8>,
    back: usize,
}

impl End {
    fn send(&mut self) -> bool {
        self.socket.write_all(&self.out).is_ok()
    }

    fn receive(&mut self, buffer: &mut Vec<u8>) -> bool {
        buffer.resize(self.back, 0);
        self.socket.read_exact(buffer).is_ok()
    }
}

/// A client and its machine, which have met.
fn pair(relay: &Relay) -> (End, End) {
    let mut machine = Machine::link(relay.address());
    let mut client = Line::client(relay.address(), &machine.id);
    client.send("hello");
    let number = ClientNumber(machine.meet("hello"));
    let message = "x".repeat(BYTES);
    let passed = Frame::new(number, FrameKind::Text(&message)).encode();
    let client = End {
        socket: client.0.get_ref().try_clone().unwrap(),
        out: masked(0x81, message.as_bytes()).repeat(BATCH),
        back: BATCH * (SERVER_HEAD + BYTES),
    };
    let machine = End {
        socket: machine.line.0.get_ref().try_clone().unwrap(),
        out: masked(0x82, &passed).repeat(BATCH),
        back: BATCH * (SERVER_HEAD + LINK_HEAD + BYTES),
    };
    (client, machine)
}

/// A small frame as a client sends it, masked with zeros (RFC 6455 section 5.3).
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126, "a small frame");
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

/// Links with one client each that have met and then say nothing.
fn memory(table: &mut Table) {
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let room = descriptors.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_EACH;
    let count = LINKS.min(usize::try_from(room).unwrap_or(usize::MAX));
    let relay = Relay::start();
    let _first = pair(&relay);
    let before = relay.resident_kib();
    let mut held: Vec<(End, End)> = (0..count).map(|_| pair(&relay)).collect();
    std::thread::sleep(Duration::from_secs(1));
    let each = (relay.resident_kib() - before) / count as f64;
    // They are still there.
    let (client, machine) = held.last_mut().unwrap();
    assert!(client.send() && machine.receive(&mut Vec::new()));
    let name = format!("memory of each of {} links", number(count as f64));
    table.add(Figure::new(name, each, "KiB").at_most(78.0));
}

/// Pairs that ask and answer as fast as they can, through the relay and through a process
/// that copies between their sockets.
fn throughput(table: &mut Table) {
    let relay = Relay::start();
    let ours = carry((0..PAIRS).map(|_| pair(&relay)).collect());
    drop(relay);
    let splice = Floor::start(floor::SPLICE);
    let end = || End {
        socket: connect(splice.address).unwrap(),
        out: vec![b'x'; BATCH * BYTES],
        back: BATCH * BYTES,
    };
    let bare = carry((0..PAIRS).map(|_| (end(), end())).collect());
    let figure = Figure::new("messages, 64 pairs", ours, "/s").at_least(50_000.0);
    table.add(figure.floor(bare, "a bare splice"));
}

/// Messages per second, both ways together.
fn carry(pairs: Vec<(End, End)>) -> f64 {
    let (mut clients, mut machines): (Vec<End>, Vec<End>) = pairs.into_iter().unzip();
    let stop = |end: &End| end.socket.try_clone().unwrap();
    let stops: Vec<TcpStream> = machines.iter().map(stop).collect();
    let ready = Barrier::new(THREADS);
    let each = PAIRS / THREADS;
    std::thread::scope(|scope| {
        for share in machines.chunks_mut(each) {
            scope.spawn(move || {
                let mut buffer = Vec::new();
                // They are shut down when all is over.
                while share
                    .iter_mut()
                    .all(|end| end.receive(&mut buffer) && end.send())
                {}
            });
        }
        let asking = clients.chunks_mut(each).map(|share| {
            let ready = &ready;
            scope.spawn(move || {
                let (mut buffer, mut rounds) = (Vec::new(), 0);
                ready.wait();
                let began = Instant::now();
                while began.elapsed() < TIME {
                    assert!(share.iter_mut().all(End::send));
                    assert!(share.iter_mut().all(|end| end.receive(&mut buffer)));
                    rounds += 1;
                }
                (2 * BATCH * share.len() * rounds) as f64 / began.elapsed().as_secs_f64()
            })
        });
        let asking: Vec<_> = asking.collect();
        let rates = asking.into_iter().map(|thread| thread.join().unwrap());
        let rate = rates.sum();
        for socket in &stops {
            let _ = socket.shutdown(Shutdown::Both);
        }
        rate
    })
}
