//! Name resolution for callbacks.

use std::net::{IpAddr, SocketAddr};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Takes addresses as they are and leaves names to ureq's own resolver, which
/// starts a thread per lookup to keep its deadline. Receivers at home are
/// usually named by address, and then no thread is needed.
#[derive(Debug, Default)]
pub struct AddressesFirst {
    names: DefaultResolver,
}

impl Resolver for AddressesFirst {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        match literal(uri) {
            Some(address) => {
                let mut resolved = self.empty();
                resolved.push(address);
                Ok(resolved)
            }
            None => self.names.resolve(uri, config, timeout),
        }
    }
}

/// The address that a URI names without a name.
fn literal(uri: &Uri) -> Option<SocketAddr> {
    let host = uri.host()?;
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    let address: IpAddr = bare.parse().ok()?;
    let port = match (uri.port_u16(), uri.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("http")) => 80,
        (None, Some("https")) => 443,
        (None, _) => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_lookup() {
        for (uri, address) in [
            ("http://192.0.2.1/x", Some("192.0.2.1:80")),
            ("https://192.0.2.1", Some("192.0.2.1:443")),
            ("http://192.0.2.1:8123/", Some("192.0.2.1:8123")),
            ("http://[2001:db8::1]:81/", Some("[2001:db8::1]:81")),
            ("http://localhost:81/", None),
            ("http://receiver.lan/", None),
        ] {
            assert_eq!(
                literal(&uri.parse().unwrap()),
                address.map(|address| address.parse().unwrap()),
                "{uri}"
            );
        }
    }
}
