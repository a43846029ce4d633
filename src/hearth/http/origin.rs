//! Which web pages may use the server (protocol section 3).
//!
//! A request with an `Origin` comes from a browser, on behalf of any page that is
//! open in it. Two things are checked. First the page's origin, so that a foreign
//! page cannot use a server that only its visitor can reach. Second the host name
//! by which it reached us: an attacker's own name may resolve to a home address
//! (DNS rebinding), so that their page's origin and our host are the same. A page that
//! reads from what it takes for its own host sends no `Origin`: what is answered
//! without a credential needs [`check_host`] in any case.

use base::error::{Error, Result};
use base::url::{Authority, Host, Url};
use config::Config;
use net::http::{Head, Response};

/// Endings of names that no attacker owns: RFC 6762, those of home routers (FRITZ!Box has a
/// zone of its own), RFC 8375, the one that ICANN keeps for private use, and the names of
/// machines in a Tailscale network.
const HOME_ENDINGS: [&str; 8] = [
    ".local",
    ".lan",
    ".home",
    ".home.arpa",
    ".internal",
    ".localdomain",
    ".fritz.box",
    ".ts.net",
];
/// Most characters of a header that an error message repeats.
const SHOWN: usize = 200;

/// An origin as RFC 6454 section 6.2 writes it, with its port.
fn parse(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    url.authority.port = url.authority.port.or_else(|| default_port(&url.scheme));
    (url.user.is_none() && url.path.is_empty() && url.query.is_none()).then_some(url)
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// Checks `Origin` and `Host` of a request. Without `Origin` neither counts.
///
/// # Errors
/// `unauthorized`, naming the setting that would permit it.
pub fn check(head: &Head, allowed_origins: &[String], allowed_hosts: &[String]) -> Result<()> {
    let mut origins = head.headers.iter().filter(|(name, _)| name == "origin");
    let Some((_, text)) = origins.next() else {
        return Ok(());
    };
    if origins.next().is_some() {
        return Err(Error::unauthorized("a request has one Origin header"));
    }
    let reached = check_host(head, allowed_hosts)?;
    let permitted = parse(text)
        .is_some_and(|origin| is_own(&origin, &reached) || is_listed(&origin, allowed_origins));
    if permitted {
        Ok(())
    } else {
        Err(Error::unauthorized(format!(
            "pages of {:?} may not use this server; to permit them, add their origin to \"allowed_origins\"",
            shorten(text)
        )))
    }
}

/// Checks the `Host` of a request: by which name the server was reached.
///
/// # Errors
/// `unauthorized`, naming the setting that would permit it.
pub fn check_host(head: &Head, allowed_hosts: &[String]) -> Result<Authority> {
    let sent_host = head.header("host").unwrap_or_default();
    Authority::parse(sent_host)
        .filter(|authority| is_allowed_host(&authority.host, allowed_hosts))
        .ok_or_else(|| {
            Error::unauthorized(format!(
                "browsers may not reach this server as {:?}; use its address, or add the name to \"allowed_hosts\"",
                shorten(sent_host)
            ))
        })
}

/// The request's origin when it is one of `allowed_origins`: a page from
/// elsewhere that may read the response (the Fetch standard's CORS protocol).
pub fn listed<'a>(head: &'a Head, allowed_origins: &[String]) -> Option<&'a str> {
    let text = head.header("origin")?;
    parse(text)
        .filter(|origin| is_listed(origin, allowed_origins))
        .map(|_| text)
}

/// Lets a listed page from elsewhere read the response. The router does so itself, except
/// for a deferred response.
pub fn share(head: &Head, config: &Config, response: &mut Response) {
    if head.header("origin").is_none() {
        return;
    }
    response.add("Vary", "Origin");
    if let Some(origin) = listed(head, &config.allowed_origins) {
        response.add("Access-Control-Allow-Origin", origin.to_owned());
        response.add(
            "Access-Control-Expose-Headers",
            "Retry-After, X-Should-Retry, X-Hearth-Ignored, X-Hearth-Turn, X-Request-Id",
        );
    }
}

/// Ignores the scheme: behind a proxy that ends TLS we do not see it, and only we
/// serve http on our host and port.
fn is_own(origin: &Url, reached: &Authority) -> bool {
    let port = reached.port.or_else(|| default_port(&origin.scheme));
    matches!(origin.scheme.as_str(), "http" | "https")
        && origin.authority.host == reached.host
        && origin.authority.port == port
}

fn is_listed(origin: &Url, allowed_origins: &[String]) -> bool {
    allowed_origins
        .iter()
        .any(|allowed| parse(allowed.strip_suffix('/').unwrap_or(allowed)).as_ref() == Some(origin))
}

fn is_allowed_host(host: &Host, allowed_hosts: &[String]) -> bool {
    let name = match host {
        Host::Address(_) => return true,
        Host::Name(name) => name,
    };
    // A name without a dot is of this network: nobody can register one.
    !name.contains('.')
        || is_own_name(name)
        || HOME_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || allowed_hosts
            .iter()
            .any(|allowed| Authority::parse(allowed).is_some_and(|allowed| allowed.host == *host))
}

/// Whether it is what this machine calls itself.
fn is_own_name(name: &str) -> bool {
    let own = rustix::system::uname();
    own.nodename()
        .to_str()
        .is_ok_and(|own| own.eq_ignore_ascii_case(name))
}

fn shorten(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;
    use net::testing::head;

    fn permitted(host: &str, origin: &str) -> bool {
        let origins = ["https://App.example/".to_owned(), "app://hearth".to_owned()];
        let hosts = ["Home.example".to_owned()];
        let head = head("GET", "/ws", &[("host", host), ("origin", origin)]);
        check(&head, &origins, &hosts).is_ok()
    }

    #[test]
    fn pages_are_checked_by_origin_and_host() {
        let good = "
            192.168.1.5:5000    | http://192.168.1.5:5000
            [fd00::1]:5000      | http://[fd00::1]:5000
            [FD00::1]:5000      | http://[fd00:0::1]:5000
            localhost:5000      | http://localhost:5000
            localhost           | https://localhost
            hearth.local:5000   | http://hearth.local:5000
            HEARTH.Local.:5000  | http://hearth.local:5000
            hearth.lan:80       | http://hearth.lan
            hearth.lan          | http://hearth.lan:80
            pi.home.arpa:443    | https://pi.home.arpa
            home.example        | https://home.example
            raspberrypi:5000    | http://raspberrypi:5000
            pi.fritz.box:5000   | http://pi.fritz.box:5000
            pi.home:5000        | http://pi.home:5000
            pi.internal         | https://pi.internal
            pi.tail1234.ts.net  | https://pi.tail1234.ts.net
            HOME.example.:8443  | https://home.example:8443
            localhost:5000      | http://localhost.:5000
            192.168.1.5:5000    | https://app.example
            192.168.1.5:5000    | https://app.example:443
            192.168.1.5:5000    | app://hearth
        ";
        for [host, origin] in rows(good) {
            assert!(permitted(host, origin), "{host:?} {origin:?}");
        }
        // The last ones are DNS rebinding: origin and host agree, but the name is nobody's
        // we know.
        let bad = "
            192.168.1.5:5000          | http://app.example
            192.168.1.5:5000          | https://app.example:8443
            192.168.1.5:5000          | https://app.example.evil.example
            192.168.1.5:5000          | https://sub.app.example
            192.168.1.5:5000          | https://evil.example
            192.168.1.5:5000          | http://192.168.1.5
            192.168.1.5:5000          | http://192.168.1.5:5001
            192.168.1.5:5000          | ftp://192.168.1.5:5000
            192.168.1.5:5000          | null
            192.168.1.5:5000          | 192.168.1.5:5000
            localhost:5000            | http://127.0.0.1:5000
                                      | http://192.168.1.5:5000
            evil.example:5000         | http://evil.example:5000
            evil.example:5000         | https://app.example
            evillocal.example         | http://evillocal.example
            fritz.box                 | http://fritz.box
            evil.box                  | http://evil.box
            evil.localhost.example    | http://evil.localhost.example
            home.example.evil.example | http://home.example.evil.example
            0x7f.1                    | http://0x7f.1
            127.1                     | http://127.1
        ";
        for [host, origin] in rows(bad) {
            assert!(!permitted(host, origin), "{host:?} {origin:?}");
        }
        assert!(!permitted("192.168.1.5:5000", ""));
    }

    #[test]
    fn without_an_origin_any_host_will_do() {
        for host in ["evil.example", ""] {
            assert!(check(&head("POST", "/hook", &[("host", host)]), &[], &[]).is_ok());
        }
    }

    #[test]
    fn two_origins_or_no_host_are_refused() {
        let own = ("origin", "http://localhost");
        for headers in [&[("host", "localhost"), own, own][..], &[own][..]] {
            let error = check(&head("GET", "/ws", headers), &[], &[]).unwrap_err();
            assert_eq!(error.status(), 403);
        }
    }

    #[test]
    fn only_listed_origins_may_read_from_elsewhere() {
        let origins = ["https://app.example".to_owned()];
        for (origin, expected) in [
            ("https://app.example", Some("https://app.example")),
            ("http://localhost", None),
            ("null", None),
        ] {
            let head = head("GET", "/", &[("host", "localhost"), ("origin", origin)]);
            assert_eq!(listed(&head, &origins), expected);
        }
    }
}
