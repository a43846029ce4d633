//! Webhook accounts of the configuration, and where the server receives their
//! messages.

use std::net::SocketAddr;

use crate::cli::context::CliError;
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::{RunningServer, reachable_here};
use config::{Channel, Config, DEFAULT_PORT, WebhookAccount};

/// The account of this name.
///
/// # Errors
///
/// There is none; names those that exist.
pub fn find<'a>(config: &'a Config, name: &str) -> Result<&'a WebhookAccount, CliError> {
    config.webhook_account(name).ok_or_else(|| {
        let known: Vec<&str> = config
            .webhook_accounts()
            .map(|account| account.name.as_str())
            .collect();
        let known = match known.as_slice() {
            [] => "there are none; `hearth webhook add` adds one".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        CliError::failed(format!("there is no webhook account {name:?}; {known}"))
    })
}

/// The base of an account's URL, `http://HOST:PORT`: from the running server, else
/// from the configuration. `shown` says how the address of the server is written.
pub fn base_url(
    directory: &DataDirectory,
    config: &Config,
    name: &str,
    shown: fn(SocketAddr) -> SocketAddr,
) -> String {
    let running = RunningServer::find(directory);
    let url = running.and_then(|server| {
        let address = own_address(&server, config, name)?;
        Some(format!("{}://{}", server.scheme(), shown(address)))
    });
    let port = match url {
        Some(url) => return url,
        None => config.channels.iter().find_map(|channel| match channel {
            Channel::Tcp(tcp) => Some(tcp.port),
            _ => None,
        }),
    };
    let scheme = match config.tls.identity() {
        Some(_) => "https",
        None => "http",
    };
    format!(
        "{scheme}://127.0.0.1:{}",
        own_port(config, name).or(port).unwrap_or(DEFAULT_PORT)
    )
}

/// Where this machine reaches the running server with messages for this account.
pub fn server_address(server: &RunningServer, config: &Config, name: &str) -> Option<SocketAddr> {
    own_address(server, config, name).map(reachable_here)
}

fn own_address(server: &RunningServer, config: &Config, name: &str) -> Option<SocketAddr> {
    // A port for webhooks only comes last.
    let address = match own_port(config, name) {
        Some(_) => server.addresses.last(),
        None => server.addresses.first(),
    };
    address.copied()
}

/// The webhook-only port of the account's channel, if it has one.
fn own_port(config: &Config, name: &str) -> Option<u16> {
    config.channels.iter().find_map(|channel| match channel {
        Channel::Webhook(webhook) if webhook.accounts.iter().any(|one| one.name == name) => {
            webhook.port
        }
        _ => None,
    })
}
