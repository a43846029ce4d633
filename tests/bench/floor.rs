//! The bare servers that ours is compared with, each in a process of its own:
//! this program, started with another argument.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use support::process;

/// Begins the argument that names what to serve.
pub const ROLE: &str = "--floor=";
/// Sends back what it reads, with a blocking thread and 4 KiB for each connection.
pub const ECHO: &str = "echo";
/// Answers every request with a fixed response, read with `httparse` by a
/// blocking thread for each connection.
pub const HEALTH: &str = "health";

/// Joins each two connections that come one after the other, and copies between
/// them with a blocking thread each way.
pub const SPLICE: &str = "splice";

const STACK: usize = 64 * 1024;

/// Serves until standard input ends, which it does with our parent.
pub fn serve(role: &str) -> ExitCode {
    if role == SPLICE {
        return splice();
    }
    let answer: fn(TcpStream) = match role {
        ECHO => echo,
        HEALTH => health,
        _ => return ExitCode::from(2),
    };
    process::raise_descriptor_limit();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn(move || answer(socket)).unwrap();
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

fn splice() -> ExitCode {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let (Ok((one, _)), Ok((other, _))) = (listener.accept(), listener.accept()) {
            let back = (other.try_clone().unwrap(), one.try_clone().unwrap());
            for (from, to) in [(one, other), back] {
                let thread = std::thread::Builder::new().stack_size(STACK);
                thread.spawn(move || copy(from, to)).unwrap();
            }
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
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

fn echo(mut socket: TcpStream) {
    socket.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = socket.read(&mut buffer) {
        if socket.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

fn health(mut socket: TcpStream) {
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
        Content-Length: 35\r\n\r\n{\"status\":\"ok\",\"uptime_seconds\":100}";
    socket.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 4096];
    let mut filled = 0;
    loop {
        match socket.read(&mut buffer[filled..]) {
            Ok(read @ 1..) => filled += read,
            _ => return,
        }
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
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .parse()
            .expect("the floor says where it listens");
        Floor {
            child,
            address,
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
