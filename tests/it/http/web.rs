//! The web front end: what is served, how it may be kept, and what it may do.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use flate2::bufread::GzDecoder;
use hearth::handbook::TOPICS;
use serde_json::json;

use support::home::{Home, TemporaryDirectory};
use support::http::get;
use support::program::finish;
use support::socket::exchange;

/// Most bytes on the wire of what signing in and chatting may load.
const BUDGET: usize = 90_000;
/// Most bytes of the whole page with the words of one language, but for the handbook.
const WHOLE_BUDGET: usize = 138_000;
/// Most bytes of the handbook and its script, before compression. A browser loads them
/// page by page, when somebody reads them; what this bounds is their part of the program.
const HANDBOOK_BUDGET: usize = 292 * 1024;
/// What is loaded by whoever switches it on or opens it.
const LATER: [&str; 31] = [
    "account.js",
    "calendars.js",
    "catalogue.js",
    "choosing.js",
    "errors.js",
    "forms.js",
    "guide.js",
    "home.js",
    "lists.js",
    "manage.js",
    "memories.js",
    "offered.js",
    "people.js",
    "person.js",
    "push.js",
    "remedy.js",
    "remembering.js",
    "reminders.js",
    "scheduling.js",
    "senders.js",
    "settings.js",
    "sharing.js",
    "status.js",
    "theme.js",
    "told.js",
    "trying.js",
    "upkeep.js",
    "voice.js",
    "webhooks.js",
    "words.en.more.json",
    "worker.js",
];
/// What browsers say they accept.
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";

/// The addresses of the page's own files, from the page and from the modules.
fn addresses(address: SocketAddr) -> BTreeSet<String> {
    let page = get(address, "/").body;
    let mut found: BTreeSet<String> = page
        .split('"')
        .filter(|part| part.starts_with("assets/"))
        .map(|part| format!("/{part}"))
        .collect();
    let folder = found.iter().next().unwrap();
    let folder = folder[..=folder.rfind('/').unwrap()].to_owned();
    let mut unread: Vec<String> = found.iter().cloned().collect();
    while let Some(path) = unread.pop() {
        if !path.ends_with(".js") {
            continue;
        }
        for module in get(address, &path).body.split('"') {
            if let Some(name) = module
                .strip_prefix("./")
                .filter(|name| name.ends_with(".js"))
                && found.insert(format!("{folder}{name}"))
            {
                unread.push(format!("{folder}{name}"));
            }
        }
    }
    for page in [
        "settings",
        "tools",
        "lists",
        "memories",
        "reminders",
        "calendars",
        "upkeep",
        "account",
        "people",
        "webhooks",
        "status",
        "manage",
        "guide",
        "help",
    ] {
        found.insert(format!("{folder}{page}.js"));
    }
    for name in ["help.css", "words.en.json", "words.en.more.json"] {
        found.insert(format!("{folder}{name}"));
    }
    found
}

fn response_to(address: SocketAddr, method: &str, path: &str, more: &str) -> Vec<u8> {
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
    exchange(address, request.as_bytes())
}

fn head_of(address: SocketAddr, method: &str, path: &str, more: &str) -> String {
    String::from_utf8_lossy(&response_to(address, method, path, more)).into_owned()
}

/// The value of a header that must be there.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or_else(|| panic!("no {name} in {head}"))
}

#[test]
fn every_file_has_its_type_and_the_strict_policy() {
    let home = Home::offline();
    let files = addresses(home.address());
    assert!(files.len() >= 20, "{files:?}");
    let mut paths: Vec<&str> = files.iter().map(String::as_str).collect();
    paths.push("/");
    for path in paths {
        let head = head_of(home.address(), "HEAD", path, "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        assert!(head.ends_with("\r\n\r\n"), "{path}: HEAD has a body");
        let ending = path.rsplit('.').next().unwrap();
        let media_type = match ending {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "json" => "application/json",
            "webmanifest" => "application/manifest+json",
            _ => "text/html; charset=utf-8",
        };
        for expected in [
            format!("Content-Type: {media_type}\r\n"),
            "X-Content-Type-Options: nosniff\r\n".to_owned(),
            "Referrer-Policy: no-referrer\r\n".to_owned(),
        ] {
            assert!(head.contains(&expected), "{path}: {expected}{head}");
        }
        let policy = header(&head, "Content-Security-Policy");
        for directive in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self' wss: ws://127.0.0.1:* ws://localhost:*",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.split("; ").any(|one| one == directive), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

#[test]
fn a_browser_that_has_a_file_is_not_sent_it_again() {
    let home = Home::offline();
    let files = addresses(home.address());
    let style = files.iter().find(|path| path.ends_with(".css")).unwrap();
    for (path, cache, more) in [
        ("/", "no-cache", ""),
        ("/", "no-cache", BROWSER),
        (style.as_str(), "public, max-age=31536000, immutable", ""),
        (
            style.as_str(),
            "public, max-age=31536000, immutable",
            BROWSER,
        ),
    ] {
        let head = head_of(home.address(), "GET", path, more);
        assert_eq!(header(&head, "Cache-Control"), cache, "{head}");
        let tag = header(&head, "ETag");
        let again = head_of(
            home.address(),
            "GET",
            path,
            &format!("{more}If-None-Match: {tag}\r\n"),
        );
        assert!(again.starts_with("HTTP/1.1 304 "), "{again}");
        assert!(again.contains(&format!("ETag: {tag}\r\n")), "{again}");
        assert_eq!(again.contains("Vary: "), path != "/", "{again}");
        assert!(again.ends_with("\r\n\r\n"), "a 304 has no body");
        let other = format!("{more}If-None-Match: \"x\"\r\n");
        let other = head_of(home.address(), "GET", path, &other);
        assert!(other.starts_with("HTTP/1.1 200 "), "{other}");
    }
}

#[test]
fn a_file_is_compressed_for_those_who_accept_it() {
    let home = Home::offline();
    for path in addresses(home.address()) {
        let [plain, gzip] = ["", BROWSER].map(|more| {
            let response = response_to(home.address(), "GET", &path, more);
            let end = response.windows(4).position(|four| four == b"\r\n\r\n");
            let (head, body) = response.split_at(end.unwrap() + 4);
            let head = String::from_utf8(head.to_vec()).unwrap();
            assert_eq!(header(&head, "Vary"), "Accept-Encoding", "{path}");
            assert_eq!(header(&head, "Content-Length"), body.len().to_string());
            (head, body.to_vec())
        });
        assert!(!plain.0.contains("Content-Encoding"), "{path}: {}", plain.0);
        assert_eq!(header(&gzip.0, "Content-Encoding"), "gzip", "{path}");
        let mut unpacked = Vec::new();
        GzDecoder::new(&gzip.1[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert!(unpacked == plain.1, "{path} differs");
        // RFC 9110 section 8.8.3.3: each encoding has a tag of its own.
        assert_ne!(header(&plain.0, "ETag"), header(&gzip.0, "ETag"), "{path}");
    }
}

#[test]
fn the_handbook_is_served_beside_the_page() {
    let home = Home::offline();
    assert_eq!(
        get(home.address(), "/help").body,
        get(home.address(), "/").body
    );
    let files = addresses(home.address());
    let folder = files.iter().next().unwrap();
    let folder = &folder[..=folder.rfind('/').unwrap()];
    let mut bytes = 0;
    for name in std::iter::once("index").chain(TOPICS.iter().map(|topic| topic.name)) {
        let path = format!("{folder}handbook/{name}.md");
        let head = head_of(home.address(), "HEAD", &path, "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        assert!(
            head.contains("Content-Type: text/markdown; charset=utf-8\r\n"),
            "{head}"
        );
        assert!(
            head.contains("Cache-Control: public, max-age=31536000, immutable\r\n"),
            "{head}"
        );
        let served = get(home.address(), &path).body;
        let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hearth/handbook");
        let written = fs::read_to_string(written.join(format!("{name}.md"))).unwrap();
        assert_eq!(served, written, "{name}");
        bytes += served.len();
    }
    for name in ["help.css", "help.js"] {
        bytes += get(home.address(), &format!("{folder}{name}")).body.len();
    }
    println!("{bytes} bytes of handbook");
    assert!(bytes <= HANDBOOK_BUDGET, "{bytes} bytes");
}

/// A browser that is told something asks for it again and again, under one path.
#[test]
fn the_worker_is_the_same_one_in_every_version() {
    let home = Home::offline();
    let path = "/assets/worker.js";
    let head = head_of(home.address(), "GET", path, "");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(header(&head, "Cache-Control"), "no-cache");
    let media_type = header(&head, "Content-Type");
    assert_eq!(media_type, "text/javascript; charset=utf-8");
    let policy = header(&head, "Content-Security-Policy");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    let folder = TemporaryDirectory::new();
    let page = folder.path().join("page");
    let mut export = Command::new(env!("CARGO_BIN_EXE_hearth"));
    let exported = finish(export.args(["web", "export"]).arg(&page));
    assert!(exported.status.success());
    let written = fs::read_to_string(page.join(&path[1..])).unwrap();
    assert_eq!(written, get(home.address(), path).body);
}

#[test]
fn a_file_of_another_version_is_not_found() {
    let home = Home::offline();
    for path in [
        "/assets/app.js",
        "/assets/0000000000000000/app.js",
        "/assets/",
        "/assets/../config.json",
    ] {
        assert_eq!(get(home.address(), path).status, 404, "{path}");
    }
}

#[test]
fn the_page_is_small_and_asks_nobody_else() {
    let home = Home::offline();
    let page = get(home.address(), "/").body;
    let (mut bytes, mut whole) = (page.len(), page.len());
    for forbidden in [
        "<style", "style=", "<script>", " onclick", "http:", "https:",
    ] {
        assert!(!page.contains(forbidden), "the page holds {forbidden}");
    }
    for path in addresses(home.address()) {
        let head = head_of(home.address(), "HEAD", &path, BROWSER);
        let length = header(&head, "Content-Length");
        let is_later = LATER.iter().any(|name| path.ends_with(&format!("/{name}")));
        let length = length.parse::<usize>().unwrap();
        // What is of the handbook is counted with it.
        if !path.contains("/help.") {
            whole += length;
            bytes += if is_later { 0 } else { length };
        }
        if path.ends_with(".png") {
            continue;
        }
        let body = get(home.address(), &path).body;
        for (place, _) in body.match_indices("://") {
            let from = body[..place]
                .rfind(['"', '\'', '`', ' ', '(', '<'])
                .unwrap_or(0);
            let address =
                &body[from + 1..body[place..].find(['"', '\'', ' ', ',', '<']).unwrap() + place];
            // Shown to people, a namespace, or made of what somebody typed.
            let is_known = [
                "http://127.0.0.1:",
                "http://localhost",
                "http://www.w3.org/2000/svg",
                "http://www.w3.org/1998/Math/MathML",
            ]
            .iter()
            .any(|known| address.starts_with(known))
                || address.contains("?:\\/\\/");
            let host = &address[address.find("://").unwrap() + 3..];
            let is_known = is_known || host.is_empty() || host.starts_with("${");
            assert!(is_known, "{path} names {address}");
        }
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "@import",
            "url(",
        ] {
            assert!(!body.contains(forbidden), "{path} holds {forbidden}");
        }
    }
    println!("{bytes} of {whole} bytes");
    assert!(bytes <= BUDGET, "{bytes} bytes, and the budget is {BUDGET}");
    assert!(
        whole <= WHOLE_BUDGET,
        "{whole} bytes in all, and the budget is {WHOLE_BUDGET}"
    );
    // Before anybody has signed in: what the sign-in form needs, and no more.
    let first = page.matches("\"assets/").count() + 1 + 2;
    assert!(first <= 10, "{first} requests");
}

#[test]
fn an_export_holds_every_file_and_writes_over_nothing() {
    let home = Home::offline();
    let folder = TemporaryDirectory::new();
    let page = folder.path().join("some/page");
    let export = |more: &[&str]| {
        let output = finish(
            Command::new(env!("CARGO_BIN_EXE_hearth"))
                .args(["web", "export"])
                .arg(&page)
                .args(more),
        );
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(export(&[]), (Some(0), String::new()));
    for path in addresses(home.address()) {
        if path.ends_with(".png") {
            assert!(page.join(&path[1..]).exists());
            continue;
        }
        let served = get(home.address(), &path);
        let written = fs::read(page.join(&path[1..])).unwrap_or_else(|_| panic!("{path}"));
        assert_eq!(written, served.body.as_bytes(), "{path}");
        let handbook = path.rsplit_once('/').unwrap().0[1..].to_owned() + "/handbook";
        for topic in TOPICS {
            let written = page.join(&handbook).join(format!("{}.md", topic.name));
            assert_eq!(fs::read_to_string(written).unwrap(), topic.markdown());
        }
    }
    let index = fs::read_to_string(page.join("index.html")).unwrap();
    assert!(!index.contains("\"/"), "it works below any path");
    let policy = index.find("Content-Security-Policy").unwrap();
    assert!(policy < index.find("<link").unwrap());

    fs::write(page.join("index.html"), "mine").unwrap();
    let (code, said) = export(&[]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("is not empty") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(page.join("index.html")).unwrap(), "mine");
    assert_eq!(export(&["--force"]).0, Some(0));
    assert_eq!(fs::read_to_string(page.join("index.html")).unwrap(), index);
}

#[test]
fn under_a_name_it_does_not_know_the_page_says_what_to_set() {
    let home = Home::start(json!({ "allowed_hosts": ["home.example"] }));
    let page = |host: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        String::from_utf8(exchange(home.address(), request.as_bytes())).unwrap()
    };
    for known in [
        "home.example",
        "raspberrypi",
        "pi.fritz.box:5000",
        "127.0.0.1",
    ] {
        assert!(page(known).contains("/app.js"), "{known}");
    }
    let unknown = page("pi.example.org:5000");
    assert!(unknown.starts_with("HTTP/1.1 200"), "{unknown}");
    let command = r#"hearth config set allowed_hosts '["home.example","pi.example.org"]'"#;
    assert!(unknown.contains(command), "{unknown}");
    assert!(!unknown.contains("app.js") && unknown.contains("default-src 'none'"));
    assert!(!page("<script>x</script>.org").contains("<script"));
}
