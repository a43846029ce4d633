//! The server that keeps a calendar: its requests, each with a deadline and within bounds, and
//! to whom a password is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::tools::web_fetch::join;
use base::address::AddressScope;
use base::language::Said;
use base::secret::Secret;
use base::url::{Url, host_only};
use net::cancel::Cancel;
use net::http_client::{AddressCheck, ClientError, ClientRequest, HttpClient, is_own_network};
use net::tls::Trust;
use protocol::attachment::encode;

/// Most bytes of a calendar.
const MOST_BYTES: usize = 20 * 1024 * 1024;
/// Most redirects that are followed.
const MOST_REDIRECTS: usize = 5;
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(15);

/// How a server is reached.
#[derive(Clone, Copy)]
pub struct Reach<'a> {
    /// Whose certificates are accepted.
    pub trust: &'a Trust,
    /// When all requests must be over.
    pub deadline: Instant,
    /// Breaks them off.
    pub cancel: &'a Cancel,
}

/// A server, asked with the credentials of a calendar.
pub(super) struct Remote<'a> {
    client: HttpClient,
    authorization: Option<Secret>,
    home: Url,
    reach: Reach<'a>,
}

/// What came back.
pub(super) struct Answer {
    /// Where it was at last.
    pub url: String,
    pub status: u16,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub body: Vec<u8>,
    /// Whether there is a password, and whether it was kept back, as another server was asked at
    /// last.
    has_password: bool,
    was_kept_back: bool,
}

impl Answer {
    /// Why it is none that can be used, for a person.
    pub fn problem(&self) -> Said {
        let status = self.status.to_string();
        let key = match self.status {
            401 if self.was_kept_back => {
                return Said::of("calendar.kept_back", &[("place", &host_only(&self.url))]);
            }
            401 if self.has_password => "calendar.wrong_password",
            401 => "calendar.no_password",
            403 => "calendar.forbidden",
            404 | 410 => "calendar.nothing_there",
            429 | 500.. => "calendar.no_answer",
            301..=308 => "calendar.redirects",
            _ => "calendar.refuses",
        };
        Said::of(key, &[("status", &status)])
    }
}

impl<'a> Remote<'a> {
    /// The server of a calendar at an address that was checked. One in the home network is
    /// reached where `may_be_local`.
    pub fn new(
        url: &str,
        credentials: Option<(&str, &Secret)>,
        may_be_local: bool,
        reach: Reach<'a>,
    ) -> Result<Remote<'a>, Said> {
        let home = Url::parse(url).map_err(|_| Said::of("error.calendar_address", &[]))?;
        let own = may_be_local.then(|| home.authority.host.to_string());
        let authorization = credentials.map(|(name, password)| {
            let pair = format!("{name}:{}", password.expose());
            Secret::new(format!("Basic {}", encode(pair.as_bytes())))
        });
        let client = HttpClient::checking(guard(own)).trusting(reach.trust.clone());
        Ok(Remote {
            client,
            authorization,
            home,
            reach,
        })
    }

    /// Sends a request, and follows its redirects. The password goes to the server alone that
    /// the address names, and to those beside it where that one refers to them: not where a
    /// redirect leads.
    pub fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Answer, Said> {
        let mut url = url.to_owned();
        let mut gets_password = self.is_beside(&url);
        let mut redirects = 0;
        loop {
            let mut all = headers.to_vec();
            if let Some(authorization) = self.authorization.as_ref().filter(|_| gets_password) {
                all.push(("authorization", authorization.expose()));
            }
            let request = ClientRequest {
                method,
                url: &url,
                headers: &all,
                body,
                deadline: self.reach.deadline,
                cancel: self.reach.cancel,
            };
            let mut target = None;
            let answer = self
                .client
                .exchange_within(&request, Some(SILENCE), |answer| {
                    let header = |name: &str| answer.header(name).map(str::to_owned);
                    let status = answer.status();
                    let (etag, last_modified) = (header("etag"), header("last-modified"));
                    if matches!(status, 301 | 302 | 303 | 307 | 308) {
                        target = header("location");
                    }
                    let body = match status {
                        200..300 => answer.read_all(MOST_BYTES)?,
                        _ => Vec::new(),
                    };
                    Ok(Answer {
                        url: url.clone(),
                        status,
                        etag,
                        last_modified,
                        body,
                        has_password: self.authorization.is_some(),
                        was_kept_back: self.authorization.is_some() && !gets_password,
                    })
                });
            let answer = answer.map_err(|error: ClientError| match error {
                ClientError::TooLarge(_) => {
                    let most = (MOST_BYTES / (1024 * 1024)).to_string();
                    Said::of("calendar.too_large", &[("most", &most)])
                }
                error => Said::of("calendar.unreachable", &[]).with("why", error.said()),
            })?;
            match target {
                Some(target) if redirects < MOST_REDIRECTS => {
                    let next = join(&url, &target);
                    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
                    gets_password &= origin(&next) == origin(&url);
                    url = next;
                    redirects += 1;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// Whether an address is of the same server, or over TLS of one with another first label in
    /// its name: an account's calendars may be at `p01-caldav.example.com`.
    fn is_beside(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else {
            return false;
        };
        let domain = |url: &Url| {
            let host = url.authority.host.to_string();
            let (_, domain) = host.split_once('.')?;
            let is_name = host.parse::<std::net::IpAddr>().is_err() && domain.contains('.');
            is_name.then(|| domain.to_owned())
        };
        url.origin() == self.home.origin()
            || (url.is_secure() && self.home.is_secure() && url.port() == self.home.port())
                && domain(&url).is_some_and(|of_url| domain(&self.home) == Some(of_url))
    }
}

/// Allows the internet and, of the home network, the host of this name.
fn guard(own: Option<String>) -> AddressCheck {
    Arc::new(move |host, address| {
        let is_own = own
            .as_deref()
            .is_some_and(|own| own.eq_ignore_ascii_case(host));
        let is_public =
            AddressScope::of(address) == AddressScope::Public && !is_own_network(address);
        match is_own || is_public {
            true => Ok(()),
            false => Err(format!(
                "{host} is in the home network, and no admin has given this address"
            )),
        }
    })
}
