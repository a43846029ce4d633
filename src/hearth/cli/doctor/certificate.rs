//! Whether the certificates are usable, and for how long.

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::table::time;
use crate::server::check_certificates;
use base::clock::Clock;
use config::{Settings, Tls};
use net::tls::{fingerprint, inspect, load_certificates};

/// How long before its expiry to warn.
const SOON: u64 = 14 * DAY;
const DAY: u64 = 24 * 60 * 60;

/// Checks the server's certificate and tls.ca_file, where configured.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    if let Err(error) = check_certificates(&config) {
        let advice = "correct \"tls\": until then https fails and the server does not start";
        return vec![Diagnosis::problem(error.to_string()).advise(advice)];
    }
    let has_own = config.tls.identity().is_some();
    let own = has_own.then(|| server(installation, &config.tls));
    own.into_iter().collect()
}

fn server(installation: &Installation<'_>, tls: &Tls) -> Diagnosis {
    let option = &installation.option;
    let remedy = format!("renew it; if it is self-signed: hearth tls self-signed --force{option}");
    let leaf = tls.cert.as_deref().map(load_certificates);
    let Some(Ok(certificates)) = leaf else {
        return Diagnosis::problem("the certificate cannot be read");
    };
    let Some(inspected) = inspect(&certificates[0]) else {
        return Diagnosis::problem("the certificate is not an X.509 certificate");
    };
    let until = time(inspected.until);
    match inspected.until.since(Clock::system().now()).as_secs() {
        0 => Diagnosis::problem(format!("the certificate expired at {until}")).advise(remedy),
        left if left < SOON => {
            let days = left / DAY;
            Diagnosis::warning(format!(
                "the certificate expires in {days} days, at {until}"
            ))
            .advise(remedy)
        }
        _ => Diagnosis::ok(format!(
            "the certificate is valid until {until}; SHA-256\n{}",
            fingerprint(&certificates[0])
        )),
    }
}
