//! Two relays behind a real HAProxy with the configuration of examples/: what
//! is left of them serves everybody, and nothing acknowledged is lost. A binary
//! of its own, since 50 servers at once would disturb the times of other tests.

#![cfg(feature = "relay")]

mod balancer;
mod person;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::ids::MachineId;
use protocol::relay::FrameKind;
use relay::noise::PrivateKey;
use serde_json::{Value, json};

use balancer::Balancer;
use person::Person;
use support::eventually;
use support::home::Home;
use support::process::raise_descriptor_limit;
use support::program::send_signal;
use support::relay_peers::{Arrival, Got, Line, Machine, TOKEN, ping};

const MACHINES: usize = 50;
const CLIENTS_EACH: usize = 4;
/// After a relay is lost, everybody is served again so soon.
const SERVED_AGAIN: Duration = Duration::from_secs(60);
/// The longest that everything may take.
const MAX_WAIT: Duration = Duration::from_secs(150);
/// Between two messages of one client.
const PAUSE: Duration = Duration::from_millis(500);
/// Clients are threads with little to do.
const STACK_BYTES: usize = 512 * 1024;

/// What the people are told and tell.
#[derive(Default)]
struct Signals {
    /// How often a relay was lost or came back.
    epoch: AtomicUsize,
    /// People who were answered in each epoch.
    served: [AtomicUsize; 3],
    is_over: AtomicBool,
}

#[test]
fn a_lost_relay_costs_nobody_an_acknowledged_message() {
    let Some(haproxy) = balancer::installed() else {
        return;
    };
    raise_descriptor_limit();
    let mut balancer = Balancer::start(haproxy);
    let address = balancer.address;
    let began = Instant::now();
    let homes = homes(address);
    let machines: Vec<MachineId> = homes.iter().map(linked_machine).collect();
    println!("{MACHINES} machines linked after {:?}", began.elapsed());

    let signals = Signals::default();
    let deadline = Instant::now() + MAX_WAIT;
    let people = thread::scope(|scope| {
        let signals = &signals;
        let people: Vec<_> = (0..MACHINES * CLIENTS_EACH)
            .map(|number| {
                let place = number / CLIENTS_EACH;
                let (machine, token) = (&machines[place], &homes[place].tokens.user);
                let person = Person::new(number, address, machine, token);
                thread::Builder::new()
                    .name(format!("person-{number}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || live(person, signals, deadline))
                    .unwrap()
            })
            .collect();
        served(signals, 0, deadline);
        println!("everybody was served after {:?}", began.elapsed());

        balancer.relays[0].kill();
        let lost = Instant::now();
        signals.epoch.store(1, Ordering::SeqCst);
        served(signals, 1, deadline);
        let took = lost.elapsed();
        println!("everybody was served again {took:?} after one of two relays was killed");
        assert!(took < SERVED_AGAIN, "{took:?}");

        balancer.relays[0].start();
        balancer.wait_for_relay_1("UP");
        signals.epoch.store(2, Ordering::SeqCst);
        served(signals, 2, deadline);
        signals.is_over.store(true, Ordering::SeqCst);
        people
            .into_iter()
            .map(|person| person.join().unwrap())
            .collect::<Vec<_>>()
    });
    let messages: usize = people.iter().map(|person| person.acknowledged.len()).sum();
    let lines: usize = people.iter().map(|person| person.lines).sum();
    println!(
        "{messages} messages over {lines} connections in {:?}",
        began.elapsed()
    );
    // Each opens a line, and another one for the last epoch; about half of them
    // lose one in between.
    assert!(lines > 2 * people.len() + people.len() / 10, "{lines}");
    drop(homes);
}

/// Machines that link to what is at `address`, started a few at a time.
fn homes(address: SocketAddr) -> Vec<Home> {
    const AT_ONCE: usize = 5;
    let config = json!({
        "workers": 2,
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "far", "type": "websocket", "auth_token": TOKEN,
              "url": format!("ws://{address}/ws") },
        ],
    });
    thread::scope(|scope| {
        let some = || {
            let homes = (0..MACHINES / AT_ONCE).map(|_| Home::start(config.clone()));
            homes.collect::<Vec<Home>>()
        };
        let starting: Vec<_> = (0..AT_ONCE)
            .map(|number| {
                let name = format!("homes-{number}");
                let thread = thread::Builder::new().name(name);
                thread.spawn_scoped(scope, some).unwrap()
            })
            .collect();
        let homes = starting.into_iter().flat_map(|homes| homes.join().unwrap());
        homes.collect()
    })
}

/// The machine's name, once it is linked.
fn linked_machine(home: &Home) -> MachineId {
    let mut admin = home.admin();
    eventually("linked", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        let is_linked = info["relays"][0]["state"] == "linked";
        is_linked.then(|| info["machine_id"].as_str().unwrap().parse().unwrap())
    })
}

/// Chats until it is over, and then looks whether all of it is there.
fn live(mut person: Person, signals: &Signals, deadline: Instant) -> Person {
    for (epoch, served) in signals.served.iter().enumerate() {
        if epoch == 2 {
            // Whoever comes now must still find the machine.
            person.leave();
        }
        let mut is_told = false;
        while !is_told || signals.epoch.load(Ordering::SeqCst) == epoch {
            person.chat(deadline);
            if !std::mem::replace(&mut is_told, true) {
                served.fetch_add(1, Ordering::SeqCst);
            }
            if signals.is_over.load(Ordering::SeqCst) {
                break;
            }
            thread::park_timeout(PAUSE);
        }
    }
    check(&mut person, deadline);
    person.leave();
    person
}

/// Everything that was acknowledged is there exactly once, and nothing else is.
fn check(person: &mut Person, deadline: Instant) {
    let messages = person.messages(deadline);
    let count = messages.len();
    let mut by_id: HashMap<String, Value> = messages
        .into_iter()
        .map(|message| (message["id"].as_str().unwrap().to_owned(), message))
        .collect();
    assert_eq!(by_id.len(), count, "no id comes twice");
    for acknowledged in &person.acknowledged {
        let reply = by_id.remove(&acknowledged.message_id);
        let reply = reply.unwrap_or_else(|| panic!("lost: {acknowledged:?}"));
        assert_eq!(reply["content"], acknowledged.response);
    }
    let mut said: Vec<&str> = by_id
        .values()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let mut expected: Vec<&str> = person
        .acknowledged
        .iter()
        .map(|acknowledged| acknowledged.said.as_str())
        .collect();
    said.sort_unstable();
    expected.sort_unstable();
    assert_eq!(said, expected, "person {}", person.number);
}

/// Waits until everybody was served in this epoch.
fn served(signals: &Signals, epoch: usize, deadline: Instant) {
    while signals.served[epoch].load(Ordering::SeqCst) < MACHINES * CLIENTS_EACH {
        let served = &signals.served[epoch];
        assert!(Instant::now() < deadline, "only {served:?} were served");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// A machine of few words, and its key to come back with.
struct Small {
    key: PrivateKey,
    machine: Machine,
}

/// So many new machines, linked.
fn small_machines(address: SocketAddr, count: usize) -> Vec<Small> {
    (0..count)
        .map(|_| {
            let key = PrivateKey::generate();
            let machine = Machine::link_with(address, &key);
            Small { key, machine }
        })
        .collect()
}

/// Which of these machines are linked to the relay at this address itself.
fn linked_at(relay: SocketAddr, machines: &[Small]) -> HashSet<MachineId> {
    let ids = machines.iter().map(|small| small.machine.id.clone());
    ids.filter(|id| {
        let mut client = Line::client(relay, id);
        client.send(&json!({ "type": "machine_key" }).to_string());
        matches!(client.next(), Arrival::Text(text) if text.contains("public_key"))
    })
    .collect()
}

/// Has a client reach each of the machines through HAProxy.
fn meet_all(address: SocketAddr, machines: &mut [Small]) {
    for small in machines {
        let machine = &mut small.machine;
        let mut client = Line::client(address, &machine.id);
        client.send(&ping());
        let number = machine.meet(&ping());
        machine.send(number, FrameKind::Text("here"));
        assert_eq!(client.next(), Arrival::Text("here".to_owned()));
        drop(client);
        assert_eq!(machine.next(), (number, Got::Close(1000)));
    }
}

#[test]
fn machines_that_moved_stay_and_new_ones_spread() {
    let Some(haproxy) = balancer::installed() else {
        return;
    };
    let mut balancer = Balancer::start(haproxy);
    let address = balancer.address;
    let [first, second] = [0, 1].map(|place| balancer.relays[place].address);
    let mut moved = small_machines(address, 24);
    let on_first = linked_at(first, &moved);
    let on_second = linked_at(second, &moved);
    assert_eq!(on_first.len() + on_second.len(), moved.len());
    assert!(!on_first.is_empty() && !on_second.is_empty());
    meet_all(address, &mut moved);

    // On SIGTERM the port is closed first and the machines are told then: who
    // dials again at once is led to the other relay, before any check has failed.
    let stopping = balancer.relays[0].take();
    let stop = thread::spawn(move || stopping.signal("TERM"));
    for small in &mut moved {
        if on_first.contains(&small.machine.id) {
            assert_eq!(small.machine.line.close_code(), 1001);
            small.machine = Machine::link_with(address, &small.key);
        }
    }
    assert_eq!(stop.join().unwrap(), Some(0));
    assert_eq!(linked_at(second, &moved).len(), moved.len());
    meet_all(address, &mut moved);
    balancer.wait_for_relay_1("DOWN");

    // When it comes back, who has moved is found where its link is.
    balancer.relays[0].start();
    balancer.wait_for_relay_1("UP");
    meet_all(address, &mut moved);
    assert_eq!(linked_at(second, &moved).len(), moved.len());
    // Others go to both again.
    let mut new = small_machines(address, 24);
    let (on_first, on_second) = (linked_at(first, &new), linked_at(second, &new));
    assert_eq!(on_first.len() + on_second.len(), new.len());
    assert!(!on_first.is_empty() && !on_second.is_empty());
    meet_all(address, &mut new);
}

#[test]
fn a_relay_that_hangs_is_left() {
    let Some(haproxy) = balancer::installed() else {
        return;
    };
    let balancer = Balancer::start(haproxy);
    let address = balancer.address;
    let [first, second] = [0, 1].map(|place| balancer.relays[place].address);
    let mut machines = small_machines(address, 12);
    let on_first = linked_at(first, &machines);
    assert!(!on_first.is_empty());

    // Its sockets stay open, and nothing comes out of them.
    send_signal(balancer.relays[0].id(), "STOP");
    for small in &mut machines {
        if on_first.contains(&small.machine.id) {
            assert_eq!(small.machine.line.next(), Arrival::Cut);
            small.machine = Machine::link_with(address, &small.key);
        }
    }
    assert_eq!(linked_at(second, &machines).len(), machines.len());
    send_signal(balancer.relays[0].id(), "CONT");
    balancer.wait_for_relay_1("UP");
    meet_all(address, &mut machines);
}
