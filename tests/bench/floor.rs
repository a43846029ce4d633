//! What Hearth is compared with: bare servers, each in a process of its own (this program,
//! started with another argument), and the disk.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use support::process;

use crate::home::directory_on_disk;
use crate::table::Latencies;

/// Begins the argument that names what to serve.
pub const ROLE: &str = "--floor=";
/// Sends back what it reads.
pub const ECHO: &str = "echo";
/// Answers every request with a fixed response.
pub const HEALTH: &str = "health";
/// Joins each two connections that come one after the other.
#[cfg(feature = "relay")]
pub const SPLICE: &str = "splice";

/// How long the disk is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Serves with a blocking thread for each connection until standard input ends, which it does
/// with our parent.
pub fn serve(role: &str) -> ExitCode {
    process::raise_descriptor_limit();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    println!("{}", listener.local_addr().unwrap());
    let role = role.to_owned();
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            let clone = |socket: &TcpStream| socket.try_clone().unwrap();
            match &*role {
                HEALTH => spawn(move || answer(socket)),
                ECHO => spawn(move || copy(clone(&socket), socket)),
                _ => {
                    let (other, _) = listener.accept().unwrap();
                    let back = (clone(&other), clone(&socket));
                    spawn(move || copy(socket, other));
                    spawn(move || copy(back.0, back.1));
                }
            }
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 * 1024);
    thread.spawn(work).unwrap();
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    to.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

fn answer(mut socket: TcpStream) {
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
        Content-Length: 35\r\n\r\n{\"status\":\"ok\",\"uptime_seconds\":100}";
    socket.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 4096];
    let mut filled = 0;
    while let Ok(read @ 1..) = socket.read(&mut buffer[filled..]) {
        filled += read;
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&buffer[..filled]) {
            Ok(httparse::Status::Complete(head)) => {
                buffer.copy_within(head..filled, 0);
                filled -= head;
            }
            Ok(httparse::Status::Partial) => continue,
            Err(_) => return,
        }
        if socket.write_all(RESPONSE).is_err() {
            return;
        }
    }
}

/// One of them, running.
pub struct Floor {
    child: Child,
    pub address: SocketAddr,
    /// From starting the process to its listening.
    pub started_in: Duration,
}

impl Floor {
    pub fn start(role: &str) -> Floor {
        let began = Instant::now();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(format!("{ROLE}{role}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        Floor {
            child,
            address: line.trim().parse().unwrap(),
            started_in: began.elapsed(),
        }
    }

    pub fn resident_kib(&self) -> f64 {
        process::status(self.child.id(), "VmRSS").expect("the floor runs") as f64
    }

    pub fn private_kib(&self) -> f64 {
        process::private_kib(self.child.id()).expect("the floor runs") as f64
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One SQLite commit after another (WAL, `synchronous = FULL`), as now: what a shared disk
/// takes changes from minute to minute, so that each run of ours has its own floor.
pub fn commits() -> Latencies {
    let folder = directory_on_disk();
    let connection = Connection::open(folder.path().join("commit.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE row (id INTEGER PRIMARY KEY, content TEXT NOT NULL);",
        )
        .unwrap();
    let sql = "INSERT INTO row (content) VALUES (?)";
    let mut insert = connection.prepare(sql).unwrap();
    let content = "x".repeat(200);
    let (end, mut durations) = (Instant::now() + LOOK, Vec::new());
    while Instant::now() < end {
        let began = Instant::now();
        insert.execute([&content]).unwrap();
        durations.push(began.elapsed());
    }
    Latencies::new(durations)
}
