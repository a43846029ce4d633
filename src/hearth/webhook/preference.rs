//! `Prefer: wait=N` (RFC 7240): the caller prefers its reply in the response, not
//! by callback.

use std::time::Duration;

use net::http::Head;

/// Longest time that a request may wait for its answer.
const LONGEST: Duration = Duration::from_secs(120);

/// How long the caller is willing to wait, at most two minutes. A malformed
/// preference is ignored (RFC 7240 section 2).
pub fn wait(head: &Head) -> Option<Duration> {
    head.headers
        .iter()
        .filter(|(name, _)| name == "prefer")
        .flat_map(|(_, value)| value.split(','))
        .find_map(|preference| {
            let (name, value) = preference.split(';').next()?.split_once('=')?;
            let is_wait = name.trim().eq_ignore_ascii_case("wait");
            let seconds: u64 = value.trim().trim_matches('"').parse().ok()?;
            (is_wait && seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    #[test]
    fn the_first_good_wait_counts() {
        for (values, seconds) in [
            (&["wait=10"][..], Some(10)),
            (&["respond-async, Wait = 5"], Some(5)),
            (&["wait=\"7\"; x=1"], Some(7)),
            (&["return=minimal", "wait=3"], Some(3)),
            (&["wait=9999"], Some(120)),
            (&["wait=0"], None),
            (&["wait=-1"], None),
            (&["wait=soon"], None),
            (&["wait"], None),
            (&[""], None),
            (&[], None),
        ] {
            let headers: Vec<_> = values.iter().map(|value| ("prefer", *value)).collect();
            let head = head("POST", "/hook", &headers);
            assert_eq!(wait(&head), seconds.map(Duration::from_secs), "{values:?}");
        }
    }
}
