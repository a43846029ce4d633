//! GET /trust: how a device learns to trust the household's authority, and the certificate
//! of that. A device that does not yet has only plain http to ask.

use base::error::{Error, Result};
use base::language::{Words, accepted};
use base::url::{Authority, Host};
use net::http::{Answer, Head, Response};
use net::tls::{fingerprint, inspect, load_certificates};

use super::extension::Context;
use super::{origin, welcome};
use crate::qr;

/// The name of the certificate's file, which devices show.
const FILE: &str = "/trust/hearth-authority";
/// Pairs of digits of the fingerprint in a line: a phone is narrow.
const PAIRS: usize = 8;
/// Light modules around a QR code.
const QUIET: usize = 4;

/// What to do on each kind of device.
const DEVICES: [(&str, &[&str]); 5] = [
    (
        "trust.iphone",
        &["trust.iphone.1", "trust.iphone.2", "trust.iphone.3"],
    ),
    (
        "trust.android",
        &["trust.android.1", "trust.android.2", "trust.android.3"],
    ),
    ("trust.windows", &["trust.windows.1", "trust.windows.2"]),
    ("trust.mac", &["trust.mac.1", "trust.mac.2"]),
    ("trust.firefox", &["trust.firefox.1", "trust.firefox.2"]),
];

/// The page, or what it links to.
///
/// # Errors
/// `not_found` without an authority or at another path; `server_error` when it cannot be
/// read.
pub fn answer(context: &Context<'_>) -> Result<Answer> {
    let (head, config) = (&context.request.head, context.config);
    let path = config.tls.authority().ok_or_else(|| {
        Error::not_found("this home has no authority; `hearth tls household` makes one")
    })?;
    // It names the machine and its addresses, which a foreign page must not learn.
    let Ok(reached) = origin::check_host(head, &config.allowed_hosts) else {
        return Ok(Answer::Now(welcome::unknown_name(
            head,
            &config.allowed_hosts,
        )));
    };
    let unreadable = |problem| Error::server("the certificate cannot be read", problem);
    let certificates = load_certificates(&path).map_err(|error| unreadable(error.to_string()))?;
    let certificate = &certificates[0];
    let response = match head.path.strip_prefix(FILE) {
        None if head.path == "/trust" => {
            let found = inspect(certificate)
                .ok_or_else(|| unreadable(format!("{} is none", path.display())))?;
            let print = fingerprint(certificate);
            let name = found.common_name();
            let language = accepted(head.header("accept-language").unwrap_or_default());
            let words = Words::of(language);
            let shown = page(
                &reached,
                config.tls.is_only(),
                &name,
                &found.names,
                &print,
                words,
            );
            welcome::saying(&format!("<div lang=\"{language}\">\n{shown}</div>\n"))
        }
        Some(".crt") => file("application/x-x509-ca-cert", certificate.to_vec()),
        Some(".pem") => {
            let text = net::tls::pem("CERTIFICATE", certificate);
            file("application/x-pem-file", text.into_bytes())
        }
        _ => return Err(nothing(head)),
    };
    Ok(Answer::Now(response))
}

fn nothing(head: &Head) -> Error {
    Error::not_found(format!("there is nothing at {}", head.path))
}

fn file(media_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::empty(200);
    response.body = body.into();
    response.add("Content-Type", media_type);
    response.add("X-Content-Type-Options", "nosniff");
    response.add("Cache-Control", "no-cache");
    response
}

fn page(
    reached: &Authority,
    only: bool,
    name: &str,
    names: &[String],
    print: &str,
    words: Words,
) -> String {
    let list = words.list(names);
    let say = |key: &str| escaped(&words.say(key, &[("name", name), ("names", &list)]));
    let pairs: Vec<&str> = print.split(':').collect();
    let lines: Vec<String> = pairs.chunks(PAIRS).map(|line| line.join(":")).collect();
    let mut html = format!(
        "<h1>{}</h1>\n<p>{}</p>\n<section>\n<p>{}</p>\n<pre>{}</pre>\n\
         <p><a class=\"button\" href=\"{FILE}.crt\">{}</a></p>\n</section>\n",
        say("trust.title"),
        say("trust.about"),
        say("trust.compare"),
        lines.join("\n"),
        say("trust.download"),
    );
    for (device, steps) in DEVICES {
        html.push_str(&format!("<section>\n<h2>{}</h2>\n<ol>\n", say(device)));
        for step in steps {
            html.push_str(&format!("<li>{}</li>\n", say(step)));
        }
        html.push_str("</ol>\n</section>\n");
    }
    let address = elsewhere(reached, names);
    html.push_str(&format!(
        "<section>\n<h2>{}</h2>\n<p>{}</p>\n\
         <p><a href=\"https://{address}/\">https://{address}/</a></p>\n</section>\n",
        say("trust.then"),
        say("trust.then.open"),
    ));
    let scheme = if only { "https" } else { "http" };
    if let Ok(rows) = qr::rows(&format!("{scheme}://{address}/trust")) {
        let (title, others) = (say("trust.others"), say("trust.others.scan"));
        let picture = picture(&rows, &others);
        html.push_str(&format!(
            "<section>\n<h2>{title}</h2>\n<p>{others}</p>\n{picture}\n</section>\n"
        ));
    }
    html
}

/// How another device reaches this server under a name of its certificate: as this one did,
/// if that can be.
fn elsewhere(reached: &Authority, names: &[String]) -> Authority {
    let is_elsewhere = |name: &&String| {
        let address = name.parse().ok();
        !address.is_some_and(|address: std::net::IpAddr| address.is_loopback())
            && *name != "localhost"
    };
    let mut others = names.iter().filter(is_elsewhere);
    let host = reached.host.to_string();
    let name = match others.clone().any(|name| *name == host) {
        true => None,
        false => others.next().and_then(|name| Host::parse(name)),
    };
    Authority {
        host: name.unwrap_or_else(|| reached.host.clone()),
        port: reached.port,
    }
}

/// A QR code as a picture, dark on light whatever the page's colours are.
fn picture(rows: &[String], label: &str) -> String {
    let side = rows.len() + 2 * QUIET;
    let mut path = String::new();
    for (y, row) in rows.iter().enumerate() {
        for (x, _) in row.match_indices('1') {
            path.push_str(&format!("M{} {}h1v1h-1z", x + QUIET, y + QUIET));
        }
    }
    format!(
        "<svg role=\"img\" aria-label=\"{label}\" width=\"240\" viewBox=\"0 0 {side} {side}\">\
         <path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\"{path}\"/></svg>"
    )
}

fn escaped(text: &str) -> String {
    let marks = [
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("\"", "&quot;"),
    ];
    marks.iter().fold(text.to_owned(), |text, (mark, entity)| {
        text.replace(mark, entity)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn another_device_is_sent_to_a_name_of_the_certificate() {
        let names = [
            "pi.local",
            "localhost",
            "127.0.0.1",
            "192.168.1.7",
            "fd00::7",
        ];
        let names = names.map(str::to_owned);
        let table = "
            pi.local:5000     | pi.local:5000
            PI.local.:5000    | pi.local:5000
            192.168.1.7       | 192.168.1.7
            [fd00::7]:5000    | [fd00::7]:5000
            localhost:5000    | pi.local:5000
            127.0.0.1:5000    | pi.local:5000
            192.168.1.8:5000  | pi.local:5000
        ";
        for [reached, sent] in rows(table) {
            let reached = Authority::parse(reached).unwrap();
            assert_eq!(elsewhere(&reached, &names).to_string(), sent);
        }
    }

    #[test]
    fn what_a_certificate_says_is_text() {
        let reached = Authority::parse("pi.local").unwrap();
        let name = "<b>\"&".to_owned();
        let names = std::slice::from_ref(&name);
        let shown = page(&reached, false, &name, names, "AB:CD", Words::of("de"));
        assert!(shown.contains("Zertifikat herunterladen"), "{shown}");
        let shown = page(&reached, false, &name, names, "AB:CD", Words::ENGLISH);
        assert!(!shown.contains("<b>") && shown.contains("&lt;b&gt;&quot;&amp;"));
    }
}
