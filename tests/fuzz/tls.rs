//! TLS from its first byte, broken in every way.

use std::sync::Arc;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::{Effort, Home, corpus, say};
use support::model::Model;
use support::tls::Identity;

/// Handshakes, and what is not TLS at all, to a port that speaks TLS.
pub fn tls_connections(effort: Effort) {
    let identity = Identity::new();
    let home = Home::start(Model::saying("Fine."), identity.config());
    let mut samples = corpus::connections(&home.token);
    let hello = hello(&identity);
    // The beginnings of TLS as often as everything else.
    samples.extend(std::iter::repeat_n(hello, samples.len()));
    let sent = home.attack(effort, 8, &samples, say);
    println!("{sent} broken connections with TLS");
}

/// What a client says first.
fn hello(identity: &Identity) -> Vec<u8> {
    let config = identity.trust().client_config().unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::clone(&config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}
