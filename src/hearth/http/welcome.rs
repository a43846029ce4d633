//! GET /: a plain page that says what runs here and how to reach it.

use std::borrow::Cow;

use super::extension::Context;
use super::origin;
use base::error::{Error, Result};
use base::url::{Authority, Host};
use net::http::{Answer, Head, Response, checks};

/// Static: nothing of a request is repeated in it.
const PAGE: &str = include_str!("welcome.html");

/// Forbids everything but the page's one style, named by its hash
/// (Content Security Policy Level 3).
const POLICY: &str = concat!(
    "default-src 'none'; ",
    "style-src 'sha256-Nan2oTxg4Z4yXMBdGosGtN0rV/3vJcLMEVj6af9Oe+w='; ",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The web front end, or the plain page where there is none.
///
/// # Errors
/// `not_found`.
pub fn page(context: &Context<'_>) -> Result<Answer> {
    let (head, hosts) = (&context.request.head, &context.config.allowed_hosts);
    let is_first = head.path == "/";
    let response = match &context.extensions.pages {
        // The page could not load its scripts under a name that is not allowed.
        _ if is_first && origin::check_host(head, hosts).is_err() => unknown_name(head, hosts),
        Some(pages) => pages.page(head),
        None if is_first => respond(),
        None => return Err(Error::not_found("this Hearth has no web front end")),
    };
    Ok(Answer::Now(response))
}

/// GET /ws without an upgrade.
///
/// # Errors
/// None.
pub fn no_upgrade(_: &Context<'_>) -> Result<Answer> {
    Ok(Answer::Now(checks::upgrade_required()))
}

/// The page.
fn respond() -> Response {
    let headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
        ("Cache-Control", "no-cache"),
    ];
    Response {
        status: 200,
        headers: headers
            .map(|(name, value)| (name, Cow::Borrowed(value)))
            .into(),
        body: Cow::Borrowed(PAGE.as_bytes()),
    }
}

/// The page for a browser that came by a name that is not allowed: which setting allows it.
/// The only place where a page repeats a request, and only a name that is one.
pub fn unknown_name(head: &Head, allowed_hosts: &[String]) -> Response {
    let host = Authority::parse(head.header("host").unwrap_or_default()).map(|sent| sent.host);
    let name = match host {
        Some(Host::Name(name)) if name.bytes().all(is_plain) => name,
        _ => "NAME".to_owned(),
    };
    let mut names = allowed_hosts.to_vec();
    names.push(name.clone());
    let list = serde_json::json!(names).to_string();
    // Settings hold host names alone, which have no marks of HTML.
    let words = format!(
        "<h1>Hearth does not know the name {name}</h1>\n\
         <p>To keep other websites out, browsers reach Hearth only by names that it knows. \
         On the machine where Hearth runs, allow this one:</p>\n\
         <pre>hearth config set allowed_hosts '{list}'</pre>\n\
         <p>Then reload this page. Or open Hearth by the address of the machine, such as \
         http://192.168.1.20:5000, or by a name without a dot.</p>\n"
    );
    saying(&words)
}

/// The plain page with other words, which are HTML.
pub fn saying(words: &str) -> Response {
    let begin = PAGE.find("<h1>").unwrap_or_default();
    let end = PAGE.find("</main>").unwrap_or(PAGE.len());
    let body = format!("{}{words}{}", &PAGE[..begin], &PAGE[end..]);
    let mut response = respond();
    response.body = Cow::Owned(body.into_bytes());
    response
}

/// What a person reads at an address where there is nothing; a program gets `refusal`.
pub fn nothing_here(head: &Head, refusal: Response) -> Response {
    let accepts = head.header("accept").unwrap_or_default();
    if refusal.status != 404
        || !matches!(head.method.as_str(), "GET" | "HEAD")
        || !accepts.contains("text/html")
    {
        return refusal;
    }
    let words = "<h1>There is nothing at this address</h1>\n\
                 <p><a href=\"/\">Open Hearth</a></p>\n";
    Response {
        status: 404,
        ..saying(words)
    }
}

/// Whether a byte of a name may stand in a page as it is.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use base::secret::sha256;

    #[test]
    fn the_policy_permits_the_style_and_nothing_else() {
        let (_, rest) = PAGE.split_once("<style>").unwrap();
        let (style, rest) = rest.split_once("</style>").unwrap();
        let hash = STANDARD.encode(sha256(style.as_bytes()));
        assert!(
            POLICY.contains(&format!("style-src 'sha256-{hash}'")),
            "the hash is {hash}"
        );
        for forbidden in ["<style", "<script", "style=", "<img", "http:", "https:"] {
            assert!(!rest.contains(forbidden), "{forbidden}");
        }
    }
}
