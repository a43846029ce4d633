//! The web front end: a page of plain HTML, CSS and JavaScript modules, embedded in
//! the binary. The build script only compresses the files of `page/`.
//!
//! The path of the assets includes their version, so that browsers cache them
//! permanently and never mix two versions.
//!
//! - [`Web::new`] computes the version of the assets.
//! - [`Web::page`](Pages::page) answers a request for the page or an asset.
//! - [`Web::exported`] gives the files for another web server.

use std::borrow::Cow;

use crate::handbook;
use crate::http::Pages;
use base::error::Error;
use base::gzip::unpack;
use base::secret::{hex, sha256};
use net::http::{Head, Response};

/// One file of the page.
#[derive(Clone, Copy)]
struct Asset {
    name: &'static str,
    media_type: &'static str,
    /// The file, compressed (RFC 1952).
    gzip: &'static [u8],
}

impl Asset {
    /// The uncompressed file.
    fn plain(&self) -> Vec<u8> {
        unpack(self.gzip)
    }
}

/// Everything but the page itself.
static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Every file but the page itself: the assets, and the handbook that help.js shows.
fn files() -> impl Iterator<Item = Asset> {
    let handbook = std::iter::once(&handbook::INDEX).chain(handbook::TOPICS);
    let handbook = handbook.map(|topic| Asset {
        name: topic.path,
        media_type: "text/markdown; charset=utf-8",
        gzip: topic.gzip,
    });
    ASSETS.iter().copied().chain(handbook)
}

/// The page, with a placeholder for the version of the assets.
const INDEX: &str = include_str!("page/index.html");
const VERSION_MARK: &str = "{version}";

/// What shows notifications while no page is open. Its path has no version, so that it
/// stays the same worker to the browser.
const WORKER: &str = "worker.js";

/// The JSON Schema of the protocol, for programs.
const SCHEMA: &str = "/help/protocol.json";

/// The policy of the page (Content Security Policy Level 3): it loads only its own
/// files, without inline scripts or styles, and connects to `$connect`.
macro_rules! policy {
    ($connect:literal) => {
        concat!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; ",
            "connect-src 'self' ",
            $connect,
            "; manifest-src 'self'; base-uri 'none'; form-action 'none'",
        )
    };
}

/// The served page connects to its own server and to any relay, because the address
/// of a relay is not known in advance. That costs little: secrets are safe because
/// only the page's own scripts run; others could leak them by navigation anyway.
/// `ws:` is only for a relay on the same machine.
const POLICY: &str = concat!(
    policy!("wss: ws://127.0.0.1:* ws://localhost:*"),
    "; frame-ancestors 'none'",
);
/// An exported page connects to any server, even over plain http at home. A meta
/// element cannot set `frame-ancestors`.
const EXPORTED_POLICY: &str = policy!("https: wss: http: ws:");

/// Revalidated each time; 304 if unchanged.
const REVALIDATE: &str = "no-cache";
/// A path with a version never changes its content (RFC 8246).
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// The front end, ready to be served.
pub struct Web {
    index: String,
    version: String,
}

impl Web {
    /// Prepares the page. The version of the assets is a hash of their content.
    pub fn new() -> Web {
        let mut digests = Vec::new();
        for asset in files() {
            digests.extend_from_slice(&sha256(asset.gzip));
        }
        let version = hex(&sha256(&digests)[..8]);
        let index = INDEX.replace(VERSION_MARK, &version);
        Web { index, version }
    }

    /// The page as files for any web server, uncompressed. Its sign-in form asks for the address of the server.
    pub fn exported(&self) -> Vec<(String, Vec<u8>)> {
        let policy = format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{EXPORTED_POLICY}\">\n<title>"
        );
        let index = self.index.replacen("<title>", &policy, 1);
        let mut files = vec![("index.html".to_owned(), index.into_bytes())];
        files.extend(self::files().map(|asset| {
            let path = format!("assets/{}/{}", self.version, asset.name);
            (path, asset.plain())
        }));
        let worker = ASSETS.iter().filter(|asset| asset.name == WORKER);
        files.extend(worker.map(|asset| (format!("assets/{WORKER}"), asset.plain())));
        files
    }

    /// The asset of a path, and how long it may be kept.
    fn asset(&self, path: &str) -> Option<(Asset, &'static str)> {
        let (cache, name) = match path.strip_prefix("/assets/")? {
            WORKER => (REVALIDATE, WORKER),
            path => (
                IMMUTABLE,
                path.strip_prefix(&self.version)?.strip_prefix('/')?,
            ),
        };
        let found = files().find(|asset| asset.name == name);
        found.map(|asset| (asset, cache))
    }
}

impl Default for Web {
    fn default() -> Web {
        Web::new()
    }
}

impl Pages for Web {
    fn page(&self, head: &Head) -> Response {
        if matches!(head.path.as_str(), "/" | "/help") {
            let body = Cow::Owned(self.index.clone().into_bytes());
            return respond(head, "text/html; charset=utf-8", REVALIDATE, body);
        }
        if head.path == SCHEMA {
            let body = Cow::Owned(unpack(handbook::PROTOCOL_SCHEMA));
            return respond(head, "application/schema+json", REVALIDATE, body);
        }
        let Some((asset, cache)) = self.asset(&head.path) else {
            return Response::error(&Error::not_found(
                "this file does not exist; the page may have been updated, so reload it",
            ));
        };
        let accepted = head.headers.iter();
        let accepted = accepted.filter(|(name, _)| name == "accept-encoding");
        let is_compressed = accepts_gzip(accepted.map(|(_, value)| value.as_str()));
        let body = if is_compressed {
            Cow::Borrowed(asset.gzip)
        } else {
            Cow::Owned(asset.plain())
        };
        let mut response = respond(head, asset.media_type, cache, body);
        let mut add = |name, value| response.add(name, value);
        add("Vary", "Accept-Encoding");
        if is_compressed {
            add("Content-Encoding", "gzip");
        }
        response
    }
}

/// A response with this body, or 304 if the client has it. The tag is a hash of the
/// body, so that each encoding of a file has its own.
fn respond(
    head: &Head,
    media_type: &'static str,
    cache: &'static str,
    body: Cow<'static, [u8]>,
) -> Response {
    let tag = format!("\"{}\"", hex(&sha256(&body)[..16]));
    let headers = [
        ("Content-Type", media_type),
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cache-Control", cache),
    ];
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name, Cow::Borrowed(value)))
        .into();
    let is_known = head
        .header("if-none-match")
        .is_some_and(|known| matches(known, &tag));
    headers.push(("ETag", Cow::Owned(tag)));
    Response {
        status: if is_known { 304 } else { 200 },
        headers,
        body: if is_known { Cow::Borrowed(b"") } else { body },
    }
}

/// Whether a client with these `Accept-Encoding` fields accepts gzip (RFC 9110
/// section 12.5.3). Without such a field it does not: small clients may be unable to
/// decode it.
fn accepts_gzip<'a>(fields: impl Iterator<Item = &'a str>) -> bool {
    let mut others = false;
    for listed in fields.flat_map(|field| field.split(',')) {
        let listed = listed.to_ascii_lowercase();
        let (coding, weight) = listed.split_once(';').unwrap_or((&listed, ""));
        let is_refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|value| value.bytes().all(|digit| matches!(digit, b'0' | b'.')));
        match coding.trim() {
            "gzip" | "x-gzip" => return !is_refused,
            "*" => others = !is_refused,
            _ => {}
        }
    }
    others
}

/// Whether `If-None-Match` includes this tag (RFC 9110 section 13.1.2).
fn matches(known: &str, tag: &str) -> bool {
    known
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::PRESETS;

    #[test]
    fn a_tag_is_found_in_a_list() {
        for (known, found) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(matches(known, "\"a\""), found, "{known}");
        }
    }

    #[test]
    fn a_file_comes_out_as_it_went_in() {
        let web = Web::new();
        for (name, source) in [
            ("app.js", &include_bytes!("page/app.js")[..]),
            ("style.css", include_bytes!("page/style.css")),
            ("icon.png", include_bytes!("page/icon.png")),
        ] {
            let path = format!("/assets/{}/{name}", web.version);
            assert_eq!(web.asset(&path).unwrap().0.plain(), source, "{name}");
        }
        assert!(web.asset("/assets/0/app.js").is_none());
    }

    #[test]
    fn the_settings_page_offers_every_provider() {
        let page = include_str!("page/settings.js");
        for preset in PRESETS {
            let entry = format!("[\"{}\", ", preset.name);
            assert!(page.contains(&entry), "{} is missing", preset.name);
        }
    }

    #[test]
    fn gzip_is_sent_to_those_who_accept_it() {
        for (fields, accepted) in [
            (&[][..], false),
            (&[""], false),
            (&["gzip"], true),
            (&["gzip, deflate, br, zstd"], true),
            (&["br;q=1.0, GZIP ; q=0.5"], true),
            (&["x-gzip"], true),
            (&["gzip;q=0.001"], true),
            (&["gzip;q=0"], false),
            (&["gzip; Q=0.000"], false),
            (&["*"], true),
            (&["*;q=0"], false),
            (&["gzip, *;q=0"], true),
            (&["*, gzip;q=0"], false),
            (&["identity"], false),
            (&["gzipped"], false),
            (&["br", "gzip"], true),
        ] {
            let found = accepts_gzip(fields.iter().copied());
            assert_eq!(found, accepted, "{fields:?}");
        }
    }
}
