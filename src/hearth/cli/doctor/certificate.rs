//! Whether the certificates are usable, and for how long.

use super::diagnosis::{Diagnosis, Installation, Level};
use base::clock::Clock;
use config::{Settings, Tls};
use net::tls::{fingerprint, inspect, load_certificates};

/// How long before its expiry to warn.
const SOON: u64 = 14 * DAY;
const DAY: u64 = 24 * 60 * 60;

/// Checks the server's certificate and tls.ca_file, where configured.
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
            vec![
                "correct tls.ca_file: until then https fails and the server does not start"
                    .to_owned(),
            ],
        ));
    }
    found
}

fn server(installation: &Installation<'_>, tls: &Tls) -> Diagnosis {
    let remedy = || {
        vec![format!(
            "renew it; if it is self-signed: hearth tls self-signed --force{}",
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
            "the certificate is not an X.509 certificate".to_owned(),
            Vec::new(),
        );
    };
    let until = inspected.until;
    match until.since(Clock::system().now()).as_secs() {
        0 => problem(format!("the certificate expired at {until}"), remedy()),
        left if left < SOON => Diagnosis {
            check: "tls",
            level: Level::Warning,
            text: format!("the certificate expires in {} days, at {until}", left / DAY),
            advice: remedy(),
        },
        _ => Diagnosis {
            check: "tls",
            level: Level::Ok,
            text: format!(
                "the certificate is valid until {until}; SHA-256\n{}",
                fingerprint(&certificates[0])
            ),
            advice: Vec::new(),
        },
    }
}

/// Whether the server can start with it.
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
    Err("\"tls.cert\" is set, but this program was built without TLS".to_owned())
}

fn problem(text: String, advice: Vec<String>) -> Diagnosis {
    Diagnosis {
        check: "tls",
        level: Level::Problem,
        text,
        advice,
    }
}
