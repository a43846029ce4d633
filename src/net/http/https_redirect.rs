//! Answers plain HTTP on a port that speaks TLS.

use base::error::Error;

use super::handler::{Admitted, Handler};
use super::message::{Head, Response};
use crate::client_handler::HandlerFactory;

/// The error for a client that does not speak TLS.
pub fn speaks_tls() -> Error {
    Error::invalid_request("this port speaks TLS; use https:// (or wss://)")
}

/// Redirects plain HTTP to https.
pub struct HttpsRedirect;

impl Handler for HttpsRedirect {
    fn admit(&self, head: &Head) -> Result<Admitted<'_>, Response> {
        // Only GET and HEAD are redirected. A redirected POST would succeed, and nobody would
        // notice that its body crossed the network in the clear.
        let is_get = matches!(head.method.as_str(), "GET" | "HEAD");
        let (true, Some(host)) = (is_get, head.header("host")) else {
            return Err(Response::error(&speaks_tls()));
        };
        let query = head.query.as_deref();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let location = format!("https://{host}{}{query}", head.path);
        let mut response = Response::error(&speaks_tls());
        response.status = 308;
        response.add("Location", location);
        // If TLS is turned off later, the address must work again.
        response.add("Cache-Control", "no-store");
        Err(response)
    }

    fn admit_upgrade(&self, _: &Head) -> Result<Option<HandlerFactory>, Response> {
        Err(Response::error(&speaks_tls()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;
    use base::testing::rows;

    #[test]
    fn only_a_get_is_sent_on_and_to_where_it_asked_for() {
        let table = "
            GET  | pi.local:5000 | /a%20b | c=d&e | 308 | https://pi.local:5000/a%20b?c=d&e
            GET  | [::1]:5000    | /      | -     | 308 | https://[::1]:5000/
            GET  | -             | /      | -     | 400 | -
            POST | pi.local      | /auth  | -     | 400 | -
        ";
        for [method, host, path, query, status, location] in rows(table) {
            let given = |cell| Some(cell).filter(|cell| *cell != "-");
            let (host, query, location) = (given(host), given(query), given(location));
            let head = Head {
                method: method.into(),
                path: path.into(),
                query: query.map(str::to_owned),
                headers: host
                    .map(|host| ("host".to_owned(), host.to_owned()))
                    .into_iter()
                    .collect(),
                peer: Peer {
                    address: "192.0.2.1".parse().unwrap(),
                    secure: false,
                    relay: None,
                    is_local: false,
                },
            };
            let response = HttpsRedirect.admit(&head).err().unwrap();
            assert_eq!(response.status.to_string(), status, "{method} {host:?}");
            let found = response
                .headers
                .iter()
                .find(|(name, _)| *name == "Location")
                .map(|(_, value)| value.as_ref());
            assert_eq!(found, location);
            assert!(String::from_utf8_lossy(&response.body).contains("speaks TLS"));
        }
    }
}
