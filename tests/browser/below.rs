//! The page below a path, behind a proxy that strips it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::chromium::{Chromium, Page};
use super::elsewhere::until_signed_in;
use super::push::subscribing;
use super::{say, until_last_reply};
use support::home::{Home, PASSWORD};
use support::http::{exchange, get, post};
use support::model::Model;
use support::push::Browser;
use support::receiver::Receiver;
use support::served::Served;

/// Passes on what is below `/hearth/`, and strips that: one request for each connection.
fn proxy(target: SocketAddr) -> Served {
    Served::start(move |socket| drop(pass_on(socket, target)))
}

fn pass_on(mut near: TcpStream, target: SocketAddr) -> io::Result<()> {
    let mut reader = BufReader::new(near.try_clone()?);
    let (mut head, mut is_upgrade) = (String::new(), false);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        let name = line.split(':').next().unwrap_or_default();
        is_upgrade |= name.eq_ignore_ascii_case("upgrade");
        if !name.eq_ignore_ascii_case("connection") {
            head.push_str(&line);
        }
        line.clear();
    }
    let (begin, is_below) = match head.split_once(" /hearth/") {
        Some((method, rest)) => (format!("{method} /{rest}"), !method.contains(' ')),
        None => (String::new(), false),
    };
    if !is_below {
        return near.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
    let connection = if is_upgrade { "Upgrade" } else { "close" };
    let mut far = TcpStream::connect(target)?;
    write!(
        far,
        "{begin}Connection: {connection}\r\nX-Forwarded-Prefix: /hearth\r\n\r\n"
    )?;
    let mut back = far.try_clone()?;
    let answers = thread::spawn(move || {
        let _ = io::copy(&mut back, &mut near);
        let _ = near.shutdown(Shutdown::Both);
    });
    let _ = io::copy(&mut reader, &mut far);
    let _ = far.shutdown(Shutdown::Both);
    let _ = answers.join();
    Ok(())
}

/// A home that programs may use.
pub fn house(model: &Model, push: &Receiver) -> Home {
    Home::start(model.config_with(json!({
        "openai_api": { "enabled": true },
        "trusted_proxies": ["127.0.0.1"],
        "notifications": { "push_hosts": [push.address.to_string()] },
    })))
}

/// What holds of the page, the interfaces and the WebSocket at `http://PROXY/hearth/`.
pub fn drive(home: &Home, proxy: SocketAddr, push: &Receiver) {
    let origin = format!("http://{proxy}");
    let base = format!("{origin}/hearth/");
    assert_eq!(get(proxy, "/hearth/health").json()["status"], "ok");
    let first = exchange(proxy, "GET", "/hearth/", &[], b"");
    assert_eq!(first.header("x-frame-options"), Some("DENY"));
    let policy = first.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");

    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&base);
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    until_signed_in(&mut page);
    say(&mut page, "hello");
    until_last_reply(&mut page, "from below");
    page.reload();
    until_last_reply(&mut page, "from below");
    let module = |page: &mut Page, name: &str, call: &str| {
        page.evaluate(&format!(
            "import(new URL('{name}', document.querySelector('script').src)).then((it) => {call})"
        ))
    };
    let known = module(&mut page, "link.js", "it.pageAddress()");
    assert_eq!(known, base, "of links for other people");
    let elsewhere = "it.serverURL('ws', it.serverEndpoint('https://home.example/hearth/')).href";
    let socket = module(&mut page, "session.js", elsewhere);
    assert_eq!(
        socket, "https://home.example/hearth/ws",
        "of an exported page"
    );
    let claude = json!(include_str!("../data/imports/claude.json"));
    let imported = module(
        &mut page,
        "exporting.js",
        &format!("it.upload({claude}, () => {{}})"),
    );
    assert!(imported.as_str().unwrap().starts_with("Imported "));
    let manifest = page.evaluate(
        "fetch(document.querySelector('[rel=manifest]').href).then(async (it) => { const { start_url, scope } = await it.json(); return [start_url, scope].map((one) => new URL(one, it.url).href); })",
    );
    assert_eq!(manifest, json!([base, base]));

    page.allow(&origin, &["notifications"]);
    let endpoint = format!("http://{}/push/below", push.address);
    subscribing(&mut page, &Browser::new().subscription(&endpoint));
    page.evaluate("location.hash = '#/account'");
    page.click("[name=push]");
    page.until("document.body.innerText.includes('This browser is notified.')");
    let scopes = page.evaluate(
        "navigator.serviceWorker.getRegistrations().then((all) => all.map((one) => one.scope))",
    );
    assert_eq!(scopes, json!([format!("{base}assets/")]));

    page.open(&format!("{base}help"));
    page.click(".handbook a[href='#/help/relay']");
    page.until("document.querySelector('.page h2:not([hidden])')?.textContent === 'Relay'");
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
    let socket = format!("ws://{proxy}/hearth/ws");
    assert!(page.requests.contains(&socket), "{:?}", page.requests);
    for url in page.requests.iter().filter(|url| !url.starts_with("data:")) {
        assert!(url.starts_with(&base) || *url == socket, "{url}");
    }
    interfaces(home, proxy);
}

/// Those for programs, as they come to them below the path.
fn interfaces(home: &Home, proxy: SocketAddr) {
    let authorization = format!("Bearer {}", home.tokens.user);
    let headers = [("authorization", authorization.as_str())];
    let said = json!([{ "role": "user", "content": "hello" }]);
    let body = json!({ "model": "hearth", "messages": said });
    let answer = post(proxy, "/hearth/v1/chat/completions", &headers, &body);
    let text: Value = answer.json()["choices"][0]["message"]["content"].take();
    assert_eq!(text, "from below");
    let path = "/hearth/attachments";
    let named = [headers[0], ("content-type", "text/plain")];
    let stored = exchange(proxy, "POST", path, &named, b"flour");
    // As a browser resolves it against the address that it asked.
    let location = stored.header("location").unwrap();
    let file = format!("/hearth/{location}");
    assert_eq!(exchange(proxy, "GET", &file, &headers, b"").body, b"flour");
    let machine = json!({ "machine_name": "kitchen", "public_key": STANDARD.encode([7; 32]) });
    let registered = post(proxy, "/hearth/ws/register", &headers[..1], &machine).json();
    let relay_url = registered["data"]["relay_url"].as_str().unwrap();
    let socket = format!("ws://{proxy}/hearth/ws?machine_id=");
    assert!(relay_url.starts_with(&socket), "{relay_url}");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn below_a_path_everything_stays_below_it() {
    let push = Receiver::answering(|_, _| "201 Created".to_owned());
    let model = Model::saying("from below");
    let home = house(&model, &push);
    let proxy = proxy(home.address());
    drive(&home, proxy.address, &push);
}
