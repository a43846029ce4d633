//! The listening sockets that a configuration asks for.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use super::StartError;
use config::{AddressPatterns, Channel, Config};

/// One bound port.
pub struct Port {
    pub socket: TcpListener,
    /// Where it is bound: the port that the system chose, if it was to choose.
    pub address: SocketAddr,
    /// The port that the configuration names.
    pub configured: u16,
    /// What changes it.
    pub setting: &'static str,
    pub allow_from: AddressPatterns,
    pub serves_webhooks_only: bool,
}

/// What changes the port of the first tcp channel, of the others, and of the
/// webhooks.
const FIRST: &str = "--port, or with \"port\" of the tcp channel in config.json";
const OTHER: &str = "\"port\" of that tcp channel in config.json";
const WEBHOOKS: &str = "\"port\" of the webhook channel in config.json";

/// Binds [`Config::ports`].
///
/// # Errors
/// A port cannot be bound.
pub fn bind(
    config: &Config,
    address: Option<IpAddr>,
    mut port_option: Option<u16>,
) -> Result<Vec<Port>, StartError> {
    let mut ports = Vec::new();
    let mut setting = FIRST;
    for channel in &config.channels {
        if let Channel::Tcp(channel) = channel {
            let number = port_option.take().unwrap_or(channel.port);
            let bind = address.or(channel.bind);
            let (socket, address) = bind_one(bind, number, setting)?;
            ports.push(Port {
                socket,
                address,
                configured: channel.port,
                setting,
                allow_from: channel.allow_from.clone(),
                serves_webhooks_only: false,
            });
            setting = OTHER;
        }
    }
    for channel in &config.channels {
        if let Channel::Webhook(channel) = channel
            && let Some(number) = channel.port
        {
            let (socket, address) = bind_one(address, number, WEBHOOKS)?;
            ports.push(Port {
                socket,
                address,
                configured: number,
                setting: WEBHOOKS,
                // Its accounts' secrets guard it: the point of a port of its
                // own is to be reached from outside.
                allow_from: AddressPatterns::all(),
                serves_webhooks_only: true,
            });
        }
    }
    Ok(ports)
}

fn bind_one(
    bind: Option<IpAddr>,
    port: u16,
    setting: &'static str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = match bind {
        Some(address) => listen(address, port),
        // All addresses: IPv6 takes IPv4 in, but a machine may have no IPv6.
        None => listen(Ipv6Addr::UNSPECIFIED.into(), port).or_else(|error| match error.1.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => listen(Ipv4Addr::UNSPECIFIED.into(), port),
        }),
    };
    bound.map_err(|(address, source)| StartError::listen(address, setting, &source))
}

fn listen(
    address: IpAddr,
    port: u16,
) -> Result<(TcpListener, SocketAddr), (SocketAddr, io::Error)> {
    let asked = SocketAddr::new(address, port);
    let bound = || -> io::Result<(TcpListener, SocketAddr)> {
        let socket = TcpListener::bind(asked)?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    };
    bound().map_err(|error| (asked, error))
}
