//! Whether the certificates can be used, and for how long.

use super::diagnosis::{Diagnosis, Installation, Level};
use base::clock::Clock;
use config::{Settings, Tls};
use net::tls::{fingerprint, inspect, load_certificates};

/// How long before its end a certificate is warned about.
const SOON: u64 = 14 * DAY;
const DAY: u64 = 24 * 60 * 60;

/// Looks at the server's certificate and at the authorities of the house; says
/// nothing where neither is configured.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let mut found = Vec::new();
    if config.tls.identity().is_some() {
        found.push(server(installation, &config.tls));
    }
    if let Some(path) = &config.tls.ca_file
        && let Err(error) = load_certificates(path)
    {
        found.push(problem(
            error.to_string(),
            vec!["correct tls.ca_file: until then no https address is reached, nor does the server start".to_owned()],
        ));
    }
    found
}

fn server(installation: &Installation<'_>, tls: &Tls) -> Diagnosis {
    let remedy = || {
        vec![format!(
            "renew it; one of your own: hearth tls self-signed --force{}",
            installation.option
        )]
    };
    if let Err(error) = usable(tls) {
        return problem(error, vec!["correct \"tls\"".to_owned()]);
    }
    let leaf = tls.cert.as_deref().map(load_certificates);
    let Some(Ok(certificates)) = leaf else {
        return problem("the certificate cannot be read".to_owned(), Vec::new());
    };
    let Some(inspected) = inspect(&certificates[0]) else {
        return problem(
            "the certificate is no X.509 certificate".to_owned(),
            Vec::new(),
        );
    };
    let until = inspected.until;
    match until.since(Clock::system().now()).as_secs() {
        0 => problem(
            format!("The certificate ended to be good at {until}"),
            remedy(),
        ),
        left if left < SOON => Diagnosis {
            check: "tls",
            level: Level::Warning,
            text: format!(
                "The certificate is good for {} more days, until {until}",
                left / DAY
            ),
            advice: remedy(),
        },
        _ => Diagnosis {
            check: "tls",
            level: Level::Ok,
            text: format!(
                "The certificate is good until {until}; SHA-256\n{}",
                fingerprint(&certificates[0])
            ),
            advice: Vec::new(),
        },
    }
}

/// Whether the server could start with it.
#[cfg(feature = "tls")]
fn usable(tls: &Tls) -> Result<(), String> {
    let Some((certificate, key)) = tls.identity() else {
        return Ok(());
    };
    net::tls::Acceptor::open(certificate, key)
        .map(drop)
        .map_err(|error| error.to_string())
}

#[cfg(not(feature = "tls"))]
fn usable(_: &Tls) -> Result<(), String> {
    Err("\"tls.cert\" is set, but this hearth was built without TLS".to_owned())
}

fn problem(text: String, advice: Vec<String>) -> Diagnosis {
    Diagnosis {
        check: "tls",
        level: Level::Problem,
        text,
        advice,
    }
}
