//! Devices of one IPv6 network, in a network of the test's own.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddrV6, TcpStream};
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::json;

use support::MAX_WAIT;
use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::program::{Program, finish, skipped};

/// The test that runs inside.
const INSIDE: &str = "http::own_network::inside_a_network_of_its_own";

#[test]
fn a_silent_device_does_not_take_the_places_of_others_in_its_network() {
    let unshared = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", program]);
        command
    };
    let probe = unshared("ip")
        .arg("link")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        return skipped("unshare or ip is missing, or no network may be made here");
    }
    let this = std::env::current_exe().unwrap();
    let output = finish(unshared(this.to_str().unwrap()).args([
        "--exact",
        INSIDE,
        "--ignored",
        "--nocapture",
    ]));
    let text = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{why}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "needs a network of its own"]
fn inside_a_network_of_its_own() {
    let ip = |arguments: &str| {
        let status = Command::new("ip").args(arguments.split(' ')).status();
        assert!(status.unwrap().success(), "ip {arguments}");
    };
    ip("link set lo up");
    let device = |number: u16| Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, number);
    for number in [1, 7, 8] {
        ip(&format!("address add {}/64 dev lo nodad", device(number)));
    }
    let folder = TemporaryDirectory::new();
    make_people(folder.path());
    let channel =
        json!({ "name": "lan", "type": "tcp", "port": 0, "allow_from": ["2001:db8::/32"] });
    let limits = json!({ "unauthenticated_per_address": 2 });
    write_config(
        folder.path(),
        json!({ "channels": [channel], "limits": limits }),
    );
    let program = Program::start(folder.path(), &["serve", "--bind", "::", "--port", "0"]);
    let server = SocketAddrV6::new(device(1), program.address.port(), 0, 0);
    let open = |number| {
        let socket = socket(AddressFamily::INET6, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddrV6::new(device(number), 0, 0, 0)).unwrap();
        connect(&socket, &server).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
        stream
    };
    let status = |mut stream: TcpStream| {
        let request = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let _silent = [open(7), open(7)];
    // Which of the three comes too late is up to their threads.
    eventually("its places are taken", || {
        (status(open(7)) == "503").then_some(())
    });
    assert_eq!(status(open(8)), "200");
}
