//! Hand-made heads for tests.

use std::net::{IpAddr, Ipv4Addr};

use crate::http::message::Head;
use crate::peer::Peer;

/// A head from 192.0.2.1. Header names are given in lower case.
pub fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> Head {
    Head {
        method: method.to_owned(),
        path: path.to_owned(),
        query: None,
        headers: headers
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        peer: Peer {
            address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            secure: false,
            relay: None,
            is_local: false,
        },
    }
}
