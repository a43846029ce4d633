//! The server that keeps a calendar: its requests, each with a deadline and within bounds, and
//! to whom a password is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::tools::custom_http::cause;
use crate::tools::web_fetch::join;
use base::address::AddressScope;
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
    pub fn problem(&self) -> String {
        let place = host_only(&self.url);
        match self.status {
            401 if self.was_kept_back => format!(
                "it redirects to {place}, which gets no password: if that is right, give the \
                 address there"
            ),
            401 if self.has_password => {
                "the user name or the password is wrong (status 401)".to_owned()
            }
            401 => "its server wants a user name and a password (status 401)".to_owned(),
            403 => "access is refused (status 403)".to_owned(),
            404 | 410 => format!("there is nothing at its address (status {})", self.status),
            412 => "it was changed elsewhere in the meantime (status 412)".to_owned(),
            429 | 500.. => format!(
                "its server does not answer at present (status {})",
                self.status
            ),
            301..=308 => format!("it redirects again and again (status {})", self.status),
            status => format!("its server refuses the request (status {status})"),
        }
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
    ) -> Result<Remote<'a>, String> {
        let home = Url::parse(url).map_err(|_| "its address is not valid".to_owned())?;
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

    /// Where a reference from `base` leads.
    pub fn join(base: &str, reference: &str) -> String {
        join(base, reference)
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
    ) -> Result<Answer, String> {
        let mut url = url.to_owned();
        let mut gets_password = self.is_beside(&url);
        for redirects in 0.. {
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
                    format!("it is larger than {} MB", MOST_BYTES / (1024 * 1024))
                }
                error => format!("its server cannot be reached: {}", cause(&error)),
            })?;
            match target {
                Some(target) if redirects < MOST_REDIRECTS => {
                    let next = join(&url, &target);
                    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
                    gets_password &= origin(&next) == origin(&url);
                    url = next;
                }
                _ => return Ok(answer),
            }
        }
        Err("it redirects again and again".to_owned())
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
