//! One POST to another system, and its outcome.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::schedule::{self, Outcome};
use base::clock::Timestamp;
use base::error::without_numbers;
use base::language::Said;
use base::sync::lock;
use config::Config;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, HttpClient};
use net::tls::Trust;

/// For resolving the name, and again for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// For reading an answer's body. That only lets the connection be used again, so it
/// must not hold a worker for long.
const DRAIN: Duration = Duration::from_secs(2);
/// Most bytes of an answer's body that are read before the connection is given up.
const DRAIN_BYTES: usize = 64 * 1024;
/// Idle connections are closed before most servers close them (5 s), so that nothing is
/// sent into a closing connection.
const IDLE: Duration = Duration::from_secs(4);

/// Posts over kept connections. Shared by all workers.
pub struct Poster {
    client: HttpClient,
}

/// What is posted, and where.
pub struct Request {
    /// The setting that holds the URL, for errors.
    pub setting: &'static str,
    /// Where it goes.
    pub url: String,
    /// The content type.
    pub media_type: String,
    /// Beside it.
    pub headers: Vec<(&'static str, String)>,
    /// What is posted.
    pub body: Vec<u8>,
}

impl Poster {
    /// A poster without connections. Proxies named in the environment are not
    /// used: everything goes where the configuration says, over https only to
    /// servers that `trust` accepts.
    pub fn new(trust: Trust) -> Poster {
        Poster {
            client: HttpClient::without_proxy()
                .trusting(trust)
                .connecting_within(CONNECT)
                .keeping_idle(IDLE),
        }
    }

    /// Makes one attempt. It ends after `limit`: from looking the name up to the head of
    /// the answer.
    pub fn post(&self, post: &Request, limit: Duration, now: Timestamp) -> Outcome {
        let headers = post
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<_> = [("content-type", &*post.media_type)]
            .into_iter()
            .chain(headers)
            .collect();
        let is_control = |byte: u8| byte.is_ascii_control();
        if headers
            .iter()
            .any(|(_, value)| value.bytes().any(is_control))
        {
            return Outcome::Unanswered(Said::of("delivery.header", &[]));
        }
        let request = ClientRequest {
            method: "POST",
            url: &post.url,
            headers: &headers,
            body: Some(&post.body),
            deadline: Instant::now() + limit,
            cancel: &Cancel::default(),
        };
        let outcome = self.client.exchange(&request, |response| {
            let retry_after = response.header("retry-after");
            let retry_after = retry_after.and_then(|value| schedule::retry_after(value, now));
            let retry_after = match (response.status(), retry_after) {
                // Telegram says it in the body.
                (429, None) => {
                    let body = response.read_all(DRAIN_BYTES).unwrap_or_default();
                    let answer = serde_json::from_slice(&body).unwrap_or_default();
                    schedule::seconds_to_wait(&answer).map(Duration::from_secs)
                }
                (_, said) => said,
            };
            let outcome = Outcome::Answered {
                status: response.status(),
                retry_after,
            };
            // The status is the answer; a body that fails or goes on for too
            // long only costs the connection.
            response.discard(DRAIN, DRAIN_BYTES);
            Ok(outcome)
        });
        outcome.unwrap_or_else(|error| Outcome::Unanswered(reason(&error, post.setting, limit)))
    }
}

/// The poster in use: replaced when the configuration's trust changes.
pub struct CurrentPoster(Mutex<(Trust, Arc<Poster>)>);

impl Default for CurrentPoster {
    fn default() -> CurrentPoster {
        let poster = Poster::new(Trust::default());
        CurrentPoster(Mutex::new((Trust::default(), Arc::new(poster))))
    }
}

impl CurrentPoster {
    /// The poster with this configuration's trust.
    pub fn of(&self, config: &Config) -> Arc<Poster> {
        let trust = Trust::new(config.tls.ca_file.as_deref());
        let mut kept = lock(&self.0);
        if kept.0 != trust {
            *kept = (trust.clone(), Arc::new(Poster::new(trust)));
        }
        Arc::clone(&kept.1)
    }
}

/// Why there was no answer, in words. The URL is left out: its query may hold
/// a credential.
pub fn reason(error: &ClientError, setting: &str, limit: Duration) -> Said {
    let because = |why: Said| Said::of("delivery.no_answer", &[]).with("why", why);
    match error {
        ClientError::TimedOut => Said::of(
            "delivery.late",
            &[("seconds", &limit.as_secs().to_string())],
        ),
        ClientError::Address(_) => Said::of("delivery.address", &[("setting", setting)]),
        ClientError::Unreachable(why) | ClientError::Refused(why) => because(why.clone()),
        ClientError::Untrusted(why)
        | ClientError::NotHttp(why)
        | ClientError::Interrupted { reason: why, .. } => because(without_numbers(why).into()),
        other => because(other.said()),
    }
}
