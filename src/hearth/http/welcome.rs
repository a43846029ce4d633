//! GET /: a plain page that says what runs here and how to reach it.

use std::borrow::Cow;

use net::http::Response;

/// Static: nothing of a request is repeated in it.
const PAGE: &str = concat!(
    "<!doctype html>\n",
    "<html lang=\"en\">\n",
    "<head>\n",
    "<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width\">\n",
    "<meta name=\"color-scheme\" content=\"light dark\">\n",
    "<title>Hearth</title>\n",
    "<style>",
    "body{font:1.1rem/1.6 system-ui,sans-serif;max-width:38rem;margin:4rem auto;padding:0 1.5rem}",
    "</style>\n",
    "</head>\n",
    "<body>\n",
    "<main>\n",
    "<h1>Hearth</h1>\n",
    "<p>Hearth, the assistant of this home, is running.</p>\n",
    "<ul>\n",
    "<li>In a terminal: <code>hearth chat</code></li>\n",
    "<li>For programs: a WebSocket at <code>/ws</code>, or JSON lines over plain TCP, on this same port</li>\n",
    "<li>For a session token: <code>POST /auth</code></li>\n",
    "<li>For monitors: <a href=\"/health\">/health</a></li>\n",
    "</ul>\n",
    "</main>\n",
    "</body>\n",
    "</html>\n",
);

/// Forbids everything but the page's one style, named by its hash
/// (Content Security Policy Level 3).
const POLICY: &str = concat!(
    "default-src 'none'; ",
    "style-src 'sha256-s/IMJcG3IYQqhzQxrDCyflDvXrpU49JAANsz7hokZOo='; ",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// The page.
pub fn respond() -> Response {
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
