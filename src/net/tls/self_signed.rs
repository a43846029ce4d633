//! Makes a certificate that is signed with its own key: for a server in a home,
//! which no public authority can vouch for.

use std::io;
use std::time::Duration;

use super::issue::{Issued, issue, of_server};
use base::clock::Timestamp;

/// Longest time that a certificate is made for. Apple's systems take none for
/// longer, even if its owner trusts it (support.apple.com/103769).
pub const MOST_DAYS: u64 = 825;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes an ECDSA P-256 certificate for these DNS names and addresses, good for
/// `days` days from `now` on. It is a server's and no authority's.
///
/// # Errors
/// There are no names, or the system gives no random numbers.
pub fn make(names: &[String], days: u64, now: Timestamp) -> io::Result<Issued> {
    let Some(first) = names.first() else {
        return Err(io::Error::other("a certificate needs at least one name"));
    };
    let days = u32::try_from(days).unwrap_or(u32::MAX);
    let until = now.plus(DAY.saturating_mul(days));
    issue(first, &of_server(names), now, until, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::inspect;
    use base::testing::rows;

    #[test]
    fn a_certificate_says_what_it_was_made_for() {
        let names: Vec<String> = ["pi.local", "localhost", "192.0.2.7", "2001:db8::7"]
            .map(str::to_owned)
            .to_vec();
        let table = "
            2026-11-21 | 2026-11-20T23:00:00.000Z | 2026-12-01T00:00:00.000Z
            2049-12-30 | 2049-12-29T23:00:00.000Z | 2050-01-09T00:00:00.000Z
        ";
        for [now, from, until] in rows(table) {
            let date: jiff::civil::Date = now.parse().unwrap();
            let moment = date.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
            let now = Timestamp::from_millis(moment.as_millisecond());
            let made = make(&names, 10, now).unwrap();
            let found = inspect(&made.der).unwrap();
            assert_eq!(found.names, names);
            assert_eq!(found.from.to_string(), from);
            assert_eq!(found.until.to_string(), until);
        }
        assert!(make(&[], 10, Timestamp::from_millis(0)).is_err());
    }
}
