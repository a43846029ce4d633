//! A wire with a listener: passes everything on and keeps what went by, as
//! whoever sits at a relay could.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// What went by, one entry for each direction of each connection.
type Kept = Arc<Mutex<Vec<Vec<u8>>>>;

/// Passes connections on to one address, until it is dropped.
pub struct Tap {
    pub address: SocketAddr,
    kept: Kept,
    listener: Arc<TcpListener>,
    thread: Option<JoinHandle<()>>,
}

impl Tap {
    pub fn before(target: SocketAddr) -> Tap {
        let listener = Arc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let (address, kept) = (listener.local_addr().unwrap(), Kept::default());
        let (accepting, keep) = (Arc::clone(&listener), Arc::clone(&kept));
        let thread = thread::spawn(move || {
            let mut open = Vec::new();
            while let Ok((socket, _)) = accepting.accept() {
                // The target may be starting again.
                if let Ok(far) = TcpStream::connect(target) {
                    open.push(join(socket, far, &keep));
                }
            }
            for (sockets, threads) in open {
                for socket in sockets {
                    let _ = socket.shutdown(Shutdown::Both);
                }
                for thread in threads {
                    thread.join().unwrap();
                }
            }
        });
        Tap {
            address,
            kept,
            listener,
            thread: Some(thread),
        }
    }

    /// What was sent on each connection so far.
    pub fn sent(&self) -> Vec<Vec<u8>> {
        let kept = self.kept.lock().unwrap();
        kept.iter().step_by(2).cloned().collect()
    }

    /// What was said so far: the bytes as they were, and what WebSockets carried
    /// without their masks.
    pub fn seen(&self) -> String {
        let mut seen = String::new();
        for bytes in self.kept.lock().unwrap().iter() {
            seen.push_str(&String::from_utf8_lossy(bytes));
            seen.push_str(&String::from_utf8_lossy(&unmasked(bytes)));
        }
        seen
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Ends the wait for the next connection.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Joined = ([TcpStream; 2], [JoinHandle<()>; 2]);

fn join(near: TcpStream, far: TcpStream, kept: &Kept) -> Joined {
    for socket in [&near, &far] {
        socket.set_nodelay(true).unwrap();
    }
    let threads = [copy(&near, &far, kept), copy(&far, &near, kept)];
    ([near, far], threads)
}

/// Ends with either socket.
fn copy(from: &TcpStream, to: &TcpStream, kept: &Kept) -> JoinHandle<()> {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let place = {
        let mut kept = kept.lock().unwrap();
        kept.push(Vec::new());
        kept.len() - 1
    };
    let kept = Arc::clone(kept);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            kept.lock().unwrap()[place].extend_from_slice(&buffer[..count]);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    })
}

/// The payloads of a WebSocket's frames (RFC 6455 section 5.2), after the head
/// that opened it; nothing for what is no WebSocket.
fn unmasked(bytes: &[u8]) -> Vec<u8> {
    let is_upgrade = bytes.starts_with(b"GET /ws") || bytes.starts_with(b"HTTP/1.1 101");
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let (true, Some(head)) = (is_upgrade, head) else {
        return Vec::new();
    };
    let mut payloads = Vec::new();
    let mut rest = &bytes[head + 4..];
    // The last frame may be cut.
    while let Some((payload, after)) = frame(rest) {
        payloads.extend(payload);
        rest = after;
    }
    payloads
}

fn frame(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(2)?;
    let (length, rest) = match head[1] & 0x7f {
        126 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        127 => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            (u64::from_be_bytes(*length) as usize, rest)
        }
        length => (usize::from(length), rest),
    };
    let (mask, rest) = match head[1] & 0x80 {
        0 => ([0; 4], rest),
        _ => {
            let (mask, rest) = rest.split_first_chunk::<4>()?;
            (*mask, rest)
        }
    };
    let (payload, rest) = rest.split_at_checked(length)?;
    let masks = mask.iter().cycle();
    let payload = payload.iter().zip(masks).map(|(byte, mask)| byte ^ mask);
    Some((payload.collect(), rest))
}
