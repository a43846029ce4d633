//! Looks host names up, with a limit.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use base::sync::spawn;

/// Most addresses of one name that are tried.
const ADDRESSES: usize = 16;

/// The addresses of a host, at least one. An IP address needs no lookup.
///
/// The system's lookup cannot be interrupted. It runs in its own thread,
/// which is abandoned when the time is up. It ends with the system's own timeout
/// and touches nothing but its end of the channel.
///
/// # Errors
/// `TimedOut` after `limit`; `WouldBlock` when no thread can be started; else
/// what the system said.
pub fn look_up(host: &str, port: u16, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let name = (host.to_owned(), port);
    spawn(
        thread::Builder::new()
            .name("resolve".to_owned())
            .stack_size(256 * 1024),
        move || {
            let found = name.to_socket_addrs();
            // The caller may have given up.
            let _ = sender.send(found.map(|found| found.take(ADDRESSES).collect::<Vec<_>>()));
        },
    )?;
    match receiver.recv_timeout(limit) {
        Ok(Ok(found)) if found.is_empty() => Err(io::Error::other("it has no address")),
        Ok(found) => found,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "nothing was found in time",
        )),
    }
}
