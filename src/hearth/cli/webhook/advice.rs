//! Advice for requests and callbacks that failed.

/// What to do when the server answers a message with this status.
pub fn on_refusal(status: u16, is_mapped: bool) -> &'static str {
    match status {
        400 | 422 if is_mapped => {
            "The account has a \"map\": give a real body of the other system with --body FILE."
        }
        403 => "This machine's address is not in allow_from of the tcp channel.",
        429 => "Wait a moment: the account has reached its limit (limits.webhook_per_second).",
        503 => "The server is overloaded or its disk is full; see its log.",
        _ => "See the server's log.",
    }
}

/// What to do about a callback that failed with this error.
pub fn on_callback(error: &str, outgoing_url: &str, seconds: u64) -> String {
    let url = shown(outgoing_url);
    let status = error
        .strip_prefix("the receiver answered ")
        .and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
    match status {
        Some(401 | 403) => {
            "The receiver rejects the secret: it must accept X-Service-Secret (or the \
             webhook-signature) with the account's secret."
                .to_owned()
        }
        Some(404 | 405) => {
            format!(
                "The receiver does not accept POST there: correct the path of outgoing_url ({url})."
            )
        }
        Some(410) => "The receiver no longer accepts callbacks at this address.".to_owned(),
        Some(300..=399) => format!(
            "Redirects are not followed: set outgoing_url to the address that {url} redirects to."
        ),
        Some(400 | 413 | 415 | 422) => {
            "The receiver does not understand the body; it is {\"message\", \"conversation_id\"}."
                .to_owned()
        }
        Some(_) => "The receiver failed; see its own log.".to_owned(),
        None if error.contains("refused") => {
            format!("Nothing listens at {url}: start the receiver, or correct outgoing_url.")
        }
        None if error.starts_with("no answer within") => format!(
            "The receiver must answer within {seconds} s: let it answer before it starts its work."
        ),
        None if error.contains("looked up") || error.contains("no address") => {
            format!("The host name in {url} cannot be resolved: correct it, or use an address.")
        }
        None if error.contains("no connection") || error.contains("unreachable") => {
            format!("{url} cannot be reached from here: check the address, cables and firewalls.")
        }
        None if outgoing_url.starts_with("https://") => format!(
            "Does {url} speak https, with a certificate that this machine trusts? Try it with \
             `curl -v`."
        ),
        None => format!("Does {url} speak http? Try it with `curl -v`."),
    }
}

/// A URL without its query, which may hold a credential.
fn shown(url: &str) -> &str {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    match url[..end].split_once('@') {
        Some((_, host)) => host,
        None => &url[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn every_failure_has_its_advice() {
        let url = "https://me:pw@h.example/r?key=k3y";
        let table = "
            the receiver answered 401                             | rejects the secret
            the receiver answered 404; given up after 10 attempts | correct the path
            the receiver answered 301                             | Redirects are not followed
            the receiver answered 500                             | its own log
            the receiver answered 410: it wants no more           | no longer accepts callbacks
            no answer: Connection refused (os error 111)          | Nothing listens at h.example/r
            no answer within 15 s                                 | within 15 s
            the receiver's name has no address                    | cannot be resolved
            no answer: no connection in time                      | cannot be reached
            no answer: invalid peer certificate                   | speak https
        ";
        for [error, says] in rows(table) {
            let advice = on_callback(error, url, 15);
            assert!(advice.contains(says), "{error}: {advice}");
            assert!(
                !advice.contains("k3y") && !advice.contains("pw"),
                "{advice}"
            );
        }
        for status in [400, 401, 403, 404, 429, 500, 503] {
            assert!(on_refusal(status, true).ends_with('.'));
        }
    }
}
