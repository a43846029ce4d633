//! The web front end: a page of plain HTML, CSS and JavaScript modules, held in
//! the binary. There is no build step: what stands in `page/` is what is sent,
//! but for comments and white space.
//!
//! The assets' path names their version, so that a browser may keep them for
//! good, asks for none again on the next visit, and never mixes two versions.

mod lean;

use std::borrow::Cow;
use std::fmt::Write;

use crate::http::Pages;
use base::error::Error;
use base::secret::sha256;
use lean::Language;
use net::exchange::{Head, Response};

/// One file of the page.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal: $media_type:expr, $how:ident;)*) => {
        [$(Asset {
            name: $name,
            media_type: $media_type,
            bytes: embedded!($how, include_bytes!(concat!("page/", $name))),
        }),*]
    };
}

macro_rules! embedded {
    (as_it_is, $source:expr) => {
        $source
    };
    ($how:ident, $source:expr) => {{
        const SOURCE: &[u8] = $source;
        const LEAN: [u8; lean::length(SOURCE, Language::$how)] = lean::lean(SOURCE, Language::$how);
        &LEAN
    }};
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Everything but the page itself.
const ASSETS: [Asset; 22] = assets! {
    "style.css": "text/css; charset=utf-8", Style;
    "app.js": SCRIPT, Script;
    "approvals.js": SCRIPT, Script;
    "chat.js": SCRIPT, Script;
    "connection.js": SCRIPT, Script;
    "conversations.js": SCRIPT, Script;
    "dom.js": SCRIPT, Script;
    "household.js": SCRIPT, Script;
    "markdown.js": SCRIPT, Script;
    "memories.js": SCRIPT, Script;
    "noise.js": SCRIPT, Script;
    "people.js": SCRIPT, Script;
    "relay.js": SCRIPT, Script;
    "reminders.js": SCRIPT, Script;
    "session.js": SCRIPT, Script;
    "settings.js": SCRIPT, Script;
    "status.js": SCRIPT, Script;
    "tools.js": SCRIPT, Script;
    "webhooks.js": SCRIPT, Script;
    "icon.svg": "image/svg+xml", as_it_is;
    "icon.png": "image/png", as_it_is;
    "manifest.webmanifest": "application/manifest+json", Script;
};

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
    /// Of the page, quoted as in a header.
    index_tag: String,
    version: String,
}

impl Web {
    /// Prepares the page: its assets' version is made of their content.
    pub fn new() -> Web {
        let mut digests = Vec::with_capacity(ASSETS.len() * 32);
        for asset in &ASSETS {
            digests.extend_from_slice(&sha256(asset.bytes));
        }
        let version = hex(&sha256(&digests)[..8]);
        let index = INDEX.replace(VERSION_MARK, &version);
        Web {
            index_tag: tag_of(index.as_bytes()),
            index,
            version,
        }
    }

    /// The page as files for any web server: paths below a folder, and what
    /// they hold. The page then asks for the address of the server.
    pub fn exported(&self) -> Vec<(String, Cow<'static, [u8]>)> {
        let policy = format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{EXPORTED_POLICY}\">\n<title>"
        );
        let index = self
            .index
            .replace("\"/assets/", "\"assets/")
            .replacen("<title>", &policy, 1);
        let mut files = vec![("index.html".to_owned(), Cow::Owned(index.into_bytes()))];
        files.extend(ASSETS.iter().map(|asset| {
            let path = format!("assets/{}/{}", self.version, asset.name);
            (path, Cow::Borrowed(asset.bytes))
        }));
        files
    }

    fn asset(&self, path: &str) -> Option<&'static Asset> {
        let (version, name) = path.strip_prefix("/assets/")?.split_once('/')?;
        ASSETS
            .iter()
            .find(|asset| version == self.version && asset.name == name)
    }
}

impl Default for Web {
    fn default() -> Web {
        Web::new()
    }
}

impl Pages for Web {
    fn page(&self, head: &Head) -> Response {
        if head.path == "/" {
            let body = Cow::Owned(self.index.clone().into_bytes());
            let media_type = "text/html; charset=utf-8";
            return respond(head, &self.index_tag, media_type, ASK_AGAIN, body);
        }
        match self.asset(&head.path) {
            Some(asset) => respond(
                head,
                &tag_of(asset.bytes),
                asset.media_type,
                FOR_GOOD,
                Cow::Borrowed(asset.bytes),
            ),
            None => Response::error(&Error::not_found(
                "there is no such file; the page may be of another version: reload it",
            )),
        }
    }
}

fn respond(
    head: &Head,
    tag: &str,
    media_type: &'static str,
    cache: &'static str,
    body: Cow<'static, [u8]>,
) -> Response {
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
    headers.push(("ETag", Cow::Owned(tag.to_owned())));
    let is_known = head
        .header("if-none-match")
        .is_some_and(|known| matches(known, tag));
    Response {
        status: if is_known { 304 } else { 200 },
        headers,
        body: if is_known { Cow::Borrowed(b"") } else { body },
    }
}

/// Whether `If-None-Match` names this tag (RFC 9110 section 13.1.2).
fn matches(known: &str, tag: &str) -> bool {
    known
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn tag_of(bytes: &[u8]) -> String {
    format!("\"{}\"", hex(&sha256(bytes)[..16]))
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
    fn the_settings_page_offers_every_provider() {
        let page = include_str!("page/settings.js");
        for preset in PRESETS {
            let entry = format!("[\"{}\", ", preset.name);
            assert!(page.contains(&entry), "{} is missing", preset.name);
        }
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hearth/web/page");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "index.html")
            .collect();
        files.sort();
        let mut served: Vec<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        served.sort_unstable();
        assert_eq!(files, served);
    }
}
