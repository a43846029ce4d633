//! Machines that come and go at a relay, for minutes: what it used for them
//! comes back.

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use protocol::relay::FrameKind;
use relay::noise::PrivateKey;

use support::eventually;
use support::home::TemporaryDirectory;
use support::process::status;
use support::program::{Program, skipped};
use support::relay_peers::{Arrival, Got, Line, Machine, TOKEN, ping};

const MACHINES: usize = 200;
/// Threads that play the machines and their clients: no more than may be without
/// proof at once from one address.
const PLAYERS: usize = 8;
const TIME: Duration = Duration::from_secs(180);
/// Until it has used what it keeps for the next time.
const WARM_UP: usize = 3;
/// What may be left over, in KiB.
const LEFT_OVER: u64 = 2 * 1024;

/// What a process uses.
#[derive(Clone, Copy, Debug)]
struct Usage {
    resident_kib: u64,
    threads: u64,
    /// None for anybody but root.
    descriptors: Option<usize>,
}

impl Usage {
    fn of(process: u32) -> Usage {
        Usage {
            resident_kib: status(process, "VmRSS").unwrap(),
            threads: status(process, "Threads").unwrap(),
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))
                .ok()
                .map(Iterator::count),
        }
    }
}

#[test]
#[ignore = "long"]
fn a_relay_of_machines_that_come_and_go() {
    let folder = TemporaryDirectory::new();
    let arguments = [
        "relay",
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--connections-per-address",
        "10000",
    ];
    let environment = [("AUTH_TOKEN", TOKEN), ("HEARTH_LOG", "warn")];
    let program = Program::start_in(folder.path(), &arguments, &environment);
    let (address, process) = (program.address, program.id());
    let at_first = Usage::of(process);
    if at_first.descriptors.is_none() {
        skipped("only root may count the relay's descriptors");
    }
    let began = Instant::now();
    let mut most = at_first;
    let mut idle: Vec<Usage> = Vec::new();
    while idle.len() <= WARM_UP || began.elapsed() < TIME {
        let all = round(address);
        let used = Usage::of(process);
        if used.resident_kib > most.resident_kib {
            most = used;
        }
        drop(all);
        idle.push(eventually("everybody is gone", || {
            let used = Usage::of(process);
            let is_idle =
                used.threads <= at_first.threads && used.descriptors <= at_first.descriptors;
            is_idle.then_some(used)
        }));
    }
    let warm = idle[..WARM_UP].iter().map(|used| used.resident_kib).max();
    let warm = warm.expect("there were that many");
    let last = idle[idle.len() - 1];
    println!(
        "relay churn: {} rounds of {MACHINES} machines in {:.0} s; resident {} KiB at first, \
         {} KiB with all, {warm} KiB after the first rounds, {} KiB at the end",
        idle.len(),
        began.elapsed().as_secs_f64(),
        at_first.resident_kib,
        most.resident_kib,
        last.resident_kib,
    );
    assert!(
        last.resident_kib <= warm + LEFT_OVER,
        "{warm} KiB, {last:?}"
    );
    assert_eq!(program.signal("TERM"), Some(0));
}

/// Machines that are replaced, hang up, are cut, and come again; what is open
/// at the end of it.
fn round(address: SocketAddr) -> Vec<(Machine, Line)> {
    thread::scope(|scope| {
        let players: Vec<_> = (0..PLAYERS)
            .map(|number| {
                let player = move || -> Vec<(Machine, Line)> {
                    let machines = (0..MACHINES / PLAYERS).map(|_| come_and_go(address));
                    machines.collect()
                };
                let thread = thread::Builder::new().name(format!("player-{number}"));
                thread.spawn_scoped(scope, player).unwrap()
            })
            .collect();
        let all = players.into_iter().flat_map(|one| one.join().unwrap());
        all.collect()
    })
}

fn come_and_go(address: SocketAddr) -> (Machine, Line) {
    let key = PrivateKey::generate();
    let mut old = Machine::link_with(address, &key);
    let left = meet(address, &mut old);
    // A newer link takes the place of the old one, whose client is let go.
    let mut machine = Machine::link_with(address, &key);
    assert_eq!(old.line.close_code(), 1012);
    drop(left);
    let mut client = meet(address, &mut machine);
    client.0.close(None).unwrap();
    // Cut without a word.
    drop(meet(address, &mut machine));
    drop(machine);

    let mut machine = Machine::link_with(address, &key);
    let client = meet(address, &mut machine);
    (machine, client)
}

/// A client that has been answered.
fn meet(address: SocketAddr, machine: &mut Machine) -> Line {
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    let number = loop {
        // Those before may be reported gone first.
        let (number, got) = machine.next();
        if matches!(got, Got::Text(_)) {
            break number;
        }
    };
    machine.send(number, FrameKind::Text("here"));
    assert_eq!(client.next(), Arrival::Text("here".to_owned()));
    client
}
