//! Connects with a deadline; another thread can interrupt it.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, connect as begin_connect, socket, sockopt};

use base::url::Url;

use super::error::DialError;
use crate::resolve::look_up;
use crate::wait::{Interest, time_left, wait};

/// Longest time for looking a name up.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Connects to the first of the host's addresses that answers.
pub(super) fn connect(
    url: &Url,
    deadline: Instant,
    begun: &dyn Fn(&Arc<TcpStream>),
) -> Result<Arc<TcpStream>, DialError> {
    let host = url.authority.host.to_string();
    let limit = time_left(deadline).min(LOOK_UP);
    let candidates = look_up(&host, url.port(), limit).map_err(|error| {
        DialError::Other(format!("the name {host} cannot be resolved: {error}"))
    })?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let count = candidates.len();
    for (place, candidate) in candidates.into_iter().enumerate() {
        // An address that never answers must leave time for the others.
        let share = time_left(deadline) / u32::try_from(count - place).unwrap_or(1);
        match connect_to(candidate, Instant::now() + share, begun) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(DialError::unreachable(url, last))
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
