//! Whether the certificates are usable, and for how long.

#[cfg(feature = "tls")]
use std::fs;
#[cfg(feature = "tls")]
use std::os::unix::fs::MetadataExt;

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::table::time;
#[cfg(feature = "tls")]
use crate::cli::tls::names;
use crate::server::check_certificates;
use base::clock::Clock;
#[cfg(feature = "tls")]
use config::{AUTHORITY_KEY, Config, HOUSEHOLD_KEY};
use config::{Settings, Tls};
#[cfg(feature = "tls")]
use net::tls::household;
use net::tls::{fingerprint, inspect, load_certificates};

/// How long before its expiry to warn.
const SOON: u64 = 14 * DAY;
/// The same for the authority, which takes its time.
#[cfg(feature = "tls")]
const AUTHORITY_SOON: u64 = 60 * DAY;
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
    let found = own.into_iter();
    #[cfg(feature = "tls")]
    let found = found.chain(authority(installation, &config));
    found.collect()
}

/// Checks the household's authority: its files, how long it is good, and whether it may vouch
/// for the names that people type.
#[cfg(feature = "tls")]
fn authority(installation: &Installation<'_>, config: &Config) -> Vec<Diagnosis> {
    if !config.tls.household {
        return Vec::new();
    }
    let folder = installation.directory.path();
    let replace = format!(
        "hearth tls household --force{}; every device must then trust the new authority",
        installation.option
    );
    let mut found = Vec::new();
    for name in [AUTHORITY_KEY, HOUSEHOLD_KEY] {
        let path = folder.join(name);
        if fs::metadata(&path).is_ok_and(|file| file.mode() & 0o077 != 0) {
            let path = path.display();
            let text = format!("{path} can be read by other users of this machine");
            let advice = format!("chmod 600 {path}");
            found.push(Diagnosis::problem(text).advise(advice));
        }
    }
    let authority = match household::check(folder) {
        Ok(authority) => authority,
        Err(error) => {
            let text = format!("the server cannot renew its certificate: {error}");
            let advice = format!("put the file back, or: {replace}");
            found.push(Diagnosis::warning(text).advise(advice));
            return found;
        }
    };
    let left = authority.until.since(Clock::system().now()).as_secs();
    if left < AUTHORITY_SOON {
        let until = time(authority.until);
        let text = format!(
            "the household's authority ends in {} days, at {until}",
            left / DAY
        );
        found.push(Diagnosis::warning(text).advise(&replace));
    }
    let allowed = config.allowed_hosts.iter().cloned();
    let mut missing: Vec<String> = names::usual().into_iter().chain(allowed).collect();
    missing.retain(|name| names::is_of_home(name) && !authority.names.contains(name));
    names::deduplicate(&mut missing);
    if !missing.is_empty() {
        let text = format!("the certificate is not for {}", missing.join(", "));
        let keep = "open the server by another name, and have the router give it the address \
                    that it had";
        let advice = format!("or: {replace}");
        found.push(Diagnosis::warning(text).advise(keep).advise(advice));
    }
    found
}

fn server(installation: &Installation<'_>, tls: &Tls) -> Diagnosis {
    let option = &installation.option;
    let remedy = match tls.household {
        true => "restart the server, which renews it".to_owned(),
        false => format!("renew it; if it is self-signed: hearth tls self-signed --force{option}"),
    };
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
