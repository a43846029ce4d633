//! Looks names up, with a limit, and remembers the answer for a while.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Error, Timeout};

use crate::capacity::is_out_of_descriptors;
use crate::resolve::look_up;
use base::sync::lock;

/// How long an answer is valid. It ends with its agent, too, and an agent
/// ends with its first failure, so a server that moved is found at once.
const REMEMBERED: Duration = Duration::from_secs(60);
/// The server's name and that of a proxy.
const NAMES: usize = 2;

/// Says why an address that was found under a host name must not be dialled.
pub type AddressCheck = Arc<dyn Fn(&str, IpAddr) -> Result<(), String> + Send + Sync>;

/// The resolver of one agent. ureq asks it before every request, even when a
/// connection is kept, and its own would start a thread each time. It dials
/// only what it gets here, so a name that resolves differently the second time
/// cannot get round the address check.
#[derive(Default)]
pub struct CachingResolver {
    known: Mutex<Vec<Known>>,
    address_check: Option<AddressCheck>,
}

/// None of the addresses passed the address check.
#[derive(Debug)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

#[derive(Debug)]
struct Known {
    name: String,
    port: u16,
    addresses: Vec<SocketAddr>,
    since: Instant,
}

impl Resolver for CachingResolver {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let mut resolved = self.empty();
        let mut refused = None;
        for address in self.look_up(host, port, timeout)? {
            match self.check(host, address.ip()) {
                Ok(()) => resolved.push(address),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if resolved.is_empty() => Err(error),
            _ => Ok(resolved),
        }
    }
}

impl fmt::Debug for CachingResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachingResolver").finish_non_exhaustive()
    }
}

impl CachingResolver {
    /// A resolver that gives no address which `address_check` refuses.
    pub fn checking(address_check: Option<AddressCheck>) -> CachingResolver {
        CachingResolver {
            known: Mutex::default(),
            address_check,
        }
    }

    fn check(&self, host: &str, address: IpAddr) -> Result<(), Error> {
        match &self.address_check {
            Some(address_check) => address_check(host, address)
                .map_err(|reason| Error::Other(Box::new(Refused(reason)))),
            None => Ok(()),
        }
    }

    fn look_up(
        &self,
        name: &str,
        port: u16,
        timeout: NextTimeout,
    ) -> Result<Vec<SocketAddr>, Error> {
        let mut known = lock(&self.known);
        known.retain(|known| known.since.elapsed() < REMEMBERED);
        if let Some(known) = known
            .iter()
            .find(|known| known.name == name && known.port == port)
        {
            return Ok(known.addresses.clone());
        }
        drop(known);
        let addresses = look_up_within(name, port, timeout)?;
        let mut known = lock(&self.known);
        if known.len() >= NAMES {
            known.remove(0);
        }
        known.push(Known {
            name: name.to_owned(),
            port,
            addresses: addresses.clone(),
            since: Instant::now(),
        });
        Ok(addresses)
    }
}

fn look_up_within(name: &str, port: u16, timeout: NextTimeout) -> Result<Vec<SocketAddr>, Error> {
    look_up(name, port, *timeout.after).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => Error::Timeout(match timeout.reason {
            Timeout::Global => Timeout::Global,
            _ => Timeout::Resolve,
        }),
        ErrorKind::WouldBlock => Error::Io(error),
        _ if is_out_of_descriptors(&error) => Error::Io(error),
        _ => Error::HostNotFound,
    })
}
