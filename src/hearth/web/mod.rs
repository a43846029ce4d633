//! The web front end: a page of plain HTML, CSS and JavaScript modules, held in
//! the binary. The build script compresses what is in `page/`, and changes nothing
//! else about it.
//!
//! The assets' path names their version, so that a browser may keep them for
//! good, asks for none again on the next visit, and never mixes two versions.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::handbook;
use crate::http::Pages;
use base::error::Error;
use base::secret::sha256;
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
    /// The file as it was before the build script compressed it.
    fn plain(&self) -> Vec<u8> {
        handbook::unpack(self.gzip)
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

/// The page, with a mark where the assets' version stands.
const INDEX: &str = include_str!("page/index.html");
const VERSION_MARK: &str = "{version}";

/// What the page may do, but for connecting (Content Security Policy Level 3):
/// load its own files. No script or style within HTML.
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

/// The served page talks to its own server, and through any relay that a person
/// names: nobody knows its address beforehand. That gives up little: what keeps
/// secrets in the page is that no script but its own runs, since a foreign one
/// could also carry them away by leading the browser to another page. `ws:` is
/// for a relay on the same machine alone.
const POLICY: &str = concat!(
    policy!("wss: ws://127.0.0.1:* ws://localhost:*"),
    "; frame-ancestors 'none'",
);
/// An exported page talks to whichever server a person names, also by plain
/// http at home. A meta element cannot say `frame-ancestors`.
const EXPORTED_POLICY: &str = policy!("https: wss: http: ws:");

/// Asked again each time; unchanged, it costs a 304.
const ASK_AGAIN: &str = "no-cache";
/// A path with a version always leads to the same bytes (RFC 8246).
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// The front end, ready to be sent.
pub struct Web {
    index: String,
    version: String,
}

impl Web {
    /// Prepares the page: its assets' version is made of their content.
    pub fn new() -> Web {
        let mut digests = Vec::new();
        for asset in files() {
            digests.extend_from_slice(&sha256(asset.gzip));
        }
        let version = hex(&sha256(&digests)[..8]);
        let index = INDEX.replace(VERSION_MARK, &version);
        Web { index, version }
    }

    /// The page as files for any web server: paths below a folder, and what
    /// they hold, uncompressed. The page then asks for the address of the server.
    pub fn exported(&self) -> Vec<(String, Vec<u8>)> {
        let policy = format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{EXPORTED_POLICY}\">\n<title>"
        );
        let index = self
            .index
            .replace("\"/assets/", "\"assets/")
            .replacen("<title>", &policy, 1);
        let mut files = vec![("index.html".to_owned(), index.into_bytes())];
        files.extend(self::files().map(|asset| {
            let path = format!("assets/{}/{}", self.version, asset.name);
            (path, asset.plain())
        }));
        files
    }

    fn asset(&self, path: &str) -> Option<Asset> {
        let (version, name) = path.strip_prefix("/assets/")?.split_once('/')?;
        files().find(|asset| version == self.version && asset.name == name)
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
            return respond(head, "text/html; charset=utf-8", ASK_AGAIN, body);
        }
        let Some(asset) = self.asset(&head.path) else {
            return Response::error(&Error::not_found(
                "there is no such file; the page may be of another version: reload it",
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
        let mut response = respond(head, asset.media_type, FOR_GOOD, body);
        let mut add = |name, value| response.headers.push((name, Cow::Borrowed(value)));
        add("Vary", "Accept-Encoding");
        if is_compressed {
            add("Content-Encoding", "gzip");
        }
        response
    }
}

/// A response with this body, or without any if the client has it already. The
/// tag is made of the body, so that each encoding of a file has its own.
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

/// Whether a client with these `Accept-Encoding` fields takes gzip (RFC 9110
/// section 12.5.3). One that sends no such field gets none: it may be a small
/// client that cannot decode it.
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

/// Whether `If-None-Match` names this tag (RFC 9110 section 13.1.2).
fn matches(known: &str, tag: &str) -> bool {
    known
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
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
            assert_eq!(web.asset(&path).unwrap().plain(), source, "{name}");
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
