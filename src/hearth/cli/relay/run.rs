//! `hearth relay` alone: runs a relay until a signal stops it.

use std::io;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
#[cfg(feature = "tls")]
use std::path::Path;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::logging;
use crate::cli::serve::raise_descriptor_limit;
use base::secret::Secret;
use config::AddressPatterns;
use net::capacity;
#[cfg(feature = "tls")]
use net::tls::Acceptor;
use relay::server::{Options, RelayServer, Token};

/// The default port, the same as a server's.
const PORT: u16 = 5000;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Runs the relay until a signal stops it.
pub fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    if arguments.has("show-token") {
        return show_token(context);
    }
    let address = SocketAddr::new(
        arguments
            .value::<IpAddr>("bind", "an IP address")?
            .unwrap_or(Ipv6Addr::UNSPECIFIED.into()),
        arguments.port()?.unwrap_or(PORT),
    );
    let token = context
        .variable("AUTH_TOKEN")
        .map(Secret::new)
        .ok_or_else(|| {
            CliError::failed(
                "AUTH_TOKEN is not set in the environment; machines and clients must present it. \
                 `hearth relay --show-token` generates one",
            )
        })?;
    let mut options = options(arguments, Token::new(token)?)?;
    let logging = logging::start(
        context.variable("HEARTH_LOG").as_deref(),
        None,
        context.environment,
    )?;
    raise_descriptor_limit();
    let (affordable, limit) = capacity::connections();
    let rules = &mut options.rules;
    let shortage = match affordable < rules.limits.connections {
        true => format!(": {limit} leaves no room for more"),
        false => String::new(),
    };
    rules.limits.connections = rules.limits.connections.min(affordable);
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| CliError::failed(format!("signals cannot be handled: {error}")))?;

    log::info!(
        "up to {} machines with {} clients each, {} connections in all{shortage}",
        rules.machines,
        rules.clients_per_machine,
        rules.limits.connections,
    );
    let is_secure = secure(&mut options, arguments)?;
    let relay = bind(address, arguments.has("bind"))
        .and_then(|socket| RelayServer::start(options, socket))
        .map_err(|error| {
            CliError::failed(format!(
                "{address} is not available: {error}; choose another with --bind and --port"
            ))
        })?;
    let local = relay.local_addr();
    let scheme = if is_secure { "https" } else { "http" };
    let announcement = format!("hearth listening on {scheme}://{local}\n");
    logging.errors().write_all(announcement.as_bytes())?;
    if signals.forever().next().is_some() {
        log::info!("stopping: machines and clients will reconnect");
    }
    relay.stop();
    logging.finish();
    Ok(())
}

/// Takes the certificate of `--cert` and `--key`, if given. Returns whether it did.
#[cfg(feature = "tls")]
fn secure(options: &mut Options, arguments: &Arguments) -> Result<bool, CliError> {
    match (arguments.raw("cert"), arguments.raw("key")) {
        (Some(certificate), Some(key)) => {
            let acceptor = Acceptor::open(Path::new(certificate), Path::new(key))
                .map_err(|error| CliError::failed(format!("--cert and --key: {error}")))?;
            options.acceptor = Some(acceptor);
            Ok(true)
        }
        (None, None) => Ok(false),
        _ => Err(arguments.usage("--cert and --key must be used together")),
    }
}

#[cfg(not(feature = "tls"))]
fn secure(_: &mut Options, arguments: &Arguments) -> Result<bool, CliError> {
    match arguments.has("cert") || arguments.has("key") {
        true => Err(CliError::failed("this program was built without TLS")),
        false => Ok(false),
    }
}

fn options(arguments: &Arguments, token: Token) -> Result<Options, CliError> {
    let number = |name: &str, range, default: usize| -> Result<usize, CliError> {
        let given = arguments.number(name, range)?;
        Ok(given.map_or(default, |given| given as usize))
    };
    let mut options = Options::new(token);
    let rules = &mut options.rules;
    rules.machines = number("machines", 1..=1_000_000, rules.machines)?;
    rules.clients_per_machine =
        number("clients-per-machine", 1..=10_000, rules.clients_per_machine)?;
    let messages = rules.messages_per_second as usize;
    let messages = number("messages-per-second", 1..=1_000_000, messages)?;
    rules.messages_per_second = u32::try_from(messages).expect("the range is that of u32");
    let limits = &mut rules.limits;
    limits.message_bytes = number("message-bytes", 4 * KIB..=64 * MIB, limits.message_bytes)?;
    limits.outbox_bytes = number("outbox-bytes", 64 * KIB..=256 * MIB, limits.outbox_bytes)?;
    limits.connections = (rules.machines).saturating_mul(1 + rules.clients_per_machine);
    let most = limits.connections_per_address;
    limits.connections_per_address = number("connections-per-address", 1..=1_000_000, most)?;
    let patterns: Vec<&str> = arguments
        .text("trusted-proxy")?
        .map(|list| list.split(',').map(str::trim).collect())
        .unwrap_or_default();
    options.trusted_proxies = AddressPatterns::parse(&patterns)
        .map_err(|error| arguments.usage(format!("--trusted-proxy: {error}")))?;
    Ok(options)
}

/// Listens on all addresses unless one is given. IPv6 sockets accept IPv4 too, but
/// a machine may have no IPv6.
fn bind(address: SocketAddr, is_named: bool) -> io::Result<TcpListener> {
    TcpListener::bind(address).or_else(|error| match error.kind() {
        _ if is_named => Err(error),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())),
    })
}

fn show_token(context: &mut CliContext) -> CliResult {
    let token = Secret::random_token();
    let token = token.expose();
    writeln!(context.output, "{token}")?;
    context.note(format_args!("\nKeep it where only the relay can read it, and start the relay with it:\n\n  \
         AUTH_TOKEN={token} hearth relay\n\n\
         Each machine needs it in its configuration, as \"auth_token\" of a websocket channel, and\n\
         each person who connects through the relay needs it too. Whoever has it can use the\n\
         relay, but cannot read or change the messages of others."))
}
