//! HAProxy with the configuration of examples/, and real relays behind it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::eventually;
use support::home::TemporaryDirectory;
use support::http::get;
use support::program::{Program, free_port, is_there};
use support::relay_peers::TOKEN;

/// Where distributions put it; /usr/sbin is not in everybody's PATH.
const PLACES: [&str; 2] = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"];

/// How HAProxy is started here; says that the test is skipped where it is not
/// installed.
pub fn installed() -> Option<&'static str> {
    PLACES
        .into_iter()
        .find(|place| Path::new(place).exists())
        .or_else(|| is_there("haproxy").then_some("haproxy"))
}

/// A relay's own process, which may be lost and come again at the same address.
pub struct Relay {
    pub address: SocketAddr,
    folder: TemporaryDirectory,
    program: Option<Program>,
}

impl Relay {
    fn new() -> Relay {
        let mut relay = Relay {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())),
            folder: TemporaryDirectory::new(),
            program: None,
        };
        relay.start();
        relay
    }

    /// Starts it, at its own address.
    pub fn start(&mut self) {
        let port = self.address.port().to_string();
        let arguments = [
            "relay",
            "--bind",
            "127.0.0.1",
            "--port",
            &port,
            "--trusted-proxy",
            "127.0.0.1",
            // All machines of the test have one address.
            "--connections-per-address",
            "2000",
        ];
        let environment = [("AUTH_TOKEN", TOKEN)];
        let program = Program::start_in(self.folder.path(), &arguments, &environment);
        self.program = Some(program);
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.program.as_ref().expect("it runs").id()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.take().kill();
    }

    /// The running program, for the caller to end.
    pub fn take(&mut self) -> Program {
        self.program.take().expect("it runs")
    }
}

/// HAProxy before two relays; killed when dropped.
pub struct Balancer {
    pub address: SocketAddr,
    pub relays: [Relay; 2],
    child: Child,
    log: PathBuf,
    _folder: TemporaryDirectory,
}

impl Balancer {
    pub fn start(haproxy: &str) -> Balancer {
        let relays = [Relay::new(), Relay::new()];
        let folder = TemporaryDirectory::new();
        let log = folder.path().join("haproxy.txt");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let output = File::create(&log).unwrap();
        let child = Command::new(haproxy)
            .args(["-db", "-f"])
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/examples/relay/haproxy.cfg"
            ))
            .env("RELAY_ADDRESS", address.ip().to_string())
            .env("RELAY_PORT", address.port().to_string())
            .env("RELAY_1", relays[0].address.to_string())
            .env("RELAY_2", relays[1].address.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut balancer = Balancer {
            address,
            relays,
            child,
            log,
            _folder: folder,
        };
        balancer.wait_until_it_listens();
        balancer
    }

    fn wait_until_it_listens(&mut self) {
        eventually("HAProxy listens", || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "HAProxy has ended: {}", self.log());
            std::net::TcpStream::connect(self.address).ok()
        });
        assert_eq!(get(self.address, "/health").status, 200, "{}", self.log());
    }

    /// What HAProxy has said.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until HAProxy has said that the first relay is `UP` or `DOWN`.
    pub fn wait_for_relay_1(&self, state: &str) {
        let said = format!("Server relays/relay1 is {state}");
        eventually(&said, || self.log().contains(&said).then_some(()));
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
