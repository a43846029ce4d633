//! GET /health: whether the server works. Monitors ask often.

use super::extension::Context;
use base::error::Result;
use net::http::{Answer, Response};

/// 200 with `{"status":"ok","uptime_seconds":N}` (contract section 4.2), and
/// 503 with status `error` while the database cannot be written.
///
/// # Errors
/// None.
pub fn respond(context: &Context<'_>) -> Result<Answer> {
    let service = context.service;
    let response = report(service.store.is_writable(), service.uptime().as_secs());
    Ok(Answer::Now(response))
}

fn report(writable: bool, uptime_seconds: u64) -> Response {
    let (http_status, word) = if writable {
        (200, "ok")
    } else {
        (503, "error")
    };
    let text = format!(r#"{{"status":"{word}","uptime_seconds":{uptime_seconds}}}"#);
    let mut response = Response::json(http_status, text);
    if !writable {
        response.add("Retry-After", "10");
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_has_the_two_fields_of_the_contract() {
        for (writable, seconds, status, text) in [
            (true, 7, 200, r#"{"status":"ok","uptime_seconds":7}"#),
            (false, 0, 503, r#"{"status":"error","uptime_seconds":0}"#),
            (
                false,
                u64::MAX,
                503,
                r#"{"status":"error","uptime_seconds":18446744073709551615}"#,
            ),
        ] {
            let response = report(writable, seconds);
            assert_eq!(response.status, status);
            assert_eq!(response.body, text.as_bytes());
            assert!(text.len() <= 64);
        }
    }
}
