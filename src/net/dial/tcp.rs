//! Connects with a deadline, in a way that another thread can end.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, connect as begin_connect, socket, sockopt};

use super::address::Address;
use super::error::DialError;
use crate::wait::{Interest, time_left, wait};
use base::threads;

/// The longest that looking a name up may take.
const LOOK_UP: Duration = Duration::from_secs(5);
/// Addresses of one name that are tried.
const ADDRESSES: usize = 8;

/// Connects to the first of the host's addresses that answers.
pub(super) fn connect(
    address: &Address,
    deadline: Instant,
    begun: &dyn Fn(&Arc<TcpStream>),
) -> Result<Arc<TcpStream>, DialError> {
    let candidates = look_up(address, deadline)?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let count = candidates.len();
    for (place, candidate) in candidates.into_iter().enumerate() {
        // One address that swallows everything must leave time for the others.
        let share = time_left(deadline) / u32::try_from(count - place).unwrap_or(1);
        match connect_to(candidate, Instant::now() + share, begun) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(DialError::Unreachable {
        address: address.to_string(),
        source: last,
    })
}

fn connect_to(
    candidate: SocketAddr,
    deadline: Instant,
    begun: &dyn Fn(&Arc<TcpStream>),
) -> io::Result<Arc<TcpStream>> {
    let family = match candidate {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let descriptor = socket(family, SocketType::STREAM, None)?;
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    let stream = Arc::new(TcpStream::from(descriptor));
    stream.set_nonblocking(true)?;
    begun(&stream);
    match begin_connect(&*stream, &candidate) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            let woken = wait(stream.as_fd(), Interest::Write, None, Some(deadline))?;
            if !woken.ready {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sockopt::socket_error(&*stream)??;
        }
        Err(error) => return Err(error.into()),
    }
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The host's addresses. The system's own look-up knows no deadline, so it has
/// a thread that nobody waits for longer than that.
fn look_up(address: &Address, deadline: Instant) -> Result<Vec<SocketAddr>, DialError> {
    if let Ok(ip) = address.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, address.port)]);
    }
    let unknown = |reason: String| DialError::Unknown {
        host: address.host.clone(),
        reason,
    };
    let (sender, receiver) = mpsc::sync_channel(1);
    let name = (address.host.clone(), address.port);
    threads::spawn(
        thread::Builder::new().name("look-up".to_owned()),
        move || {
            let found = name.to_socket_addrs();
            // Whoever asked may have given up.
            let _ = sender.send(found.map(|found| found.take(ADDRESSES).collect::<Vec<_>>()));
        },
    )
    .map_err(|error| unknown(error.to_string()))?;
    match receiver.recv_timeout(time_left(deadline).min(LOOK_UP)) {
        Ok(Ok(found)) if found.is_empty() => Err(unknown("it has no address".to_owned())),
        Ok(found) => found.map_err(|error| unknown(error.to_string())),
        Err(_) => Err(unknown("nothing was found in time".to_owned())),
    }
}
