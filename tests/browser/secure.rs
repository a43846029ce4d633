//! The page over TLS, as a household with a certificate of its own has it.

use base::secret::Secret;
use net::tls::Acceptor;
use relay::server::{Options, RelayServer, Token};
use serde_json::json;

use super::axe::{axe_core, examine};
use super::chromium::{Chromium, Page};
use super::elsewhere::{sign_in_through, until_signed_in};
use super::pages::go;
use super::relay::TOKEN;
use super::{check, check_hosts, say};
use support::home::{Home, PASSWORD};
use support::tls::{Identity, household};

/// The machine's id once its link stands, asked by hand: the tests' own clients
/// do not speak TLS.
const ONCE_LINKED: &str = r#"new Promise((resolve) => {
    const socket = new WebSocket(`wss://${location.host}/ws`);
    const ask = (message) => socket.send(JSON.stringify(message));
    socket.onopen = () => ask({ type: "auth", token: sessionStorage.getItem("hearth.token") });
    socket.onmessage = ({ data: text }) => {
        const { data } = JSON.parse(text);
        if (data.relays?.[0].state !== "linked") return void setTimeout(ask, 20, { type: "server_info" });
        resolve(data.machine_id);
        socket.close();
    };
})"#;

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn over_https_the_page_chats_at_home_and_through_a_relay() {
    let identity = Identity::new();
    let mut options = Options::new(Token::new(Secret::new(TOKEN)).unwrap());
    options.acceptor = Some(Acceptor::open(&identity.certificate, &identity.key).unwrap());
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = RelayServer::start(options, socket).unwrap();
    let mut config = identity.config();
    config["tls"]["ca_file"] = json!(identity.certificate);
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "away", "type": "websocket", "auth_token": TOKEN, "encryption": "required",
          "url": format!("wss://localhost:{}/ws", relay.local_addr().port()) },
    ]);
    let home = Home::start(config);
    let browser = Chromium::start_with(&["--ignore-certificate-errors"]);
    let mut page = browser.page();
    page.open(&format!("https://{}/", home.address()));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    until_signed_in(&mut page);
    assert_eq!(page.evaluate("isSecureContext"), true);
    say(&mut page, "hello");
    page.until("document.querySelector('[role=log] .assistant .text')");
    let socket = format!("wss://{}/ws", home.address());
    assert!(page.requests.contains(&socket), "{:?}", page.requests);
    check(&page, &home);

    let machine = page.evaluate(ONCE_LINKED);
    let mut page = browser.page();
    page.open(&format!("https://{}/", home.address()));
    let port = relay.local_addr().port();
    sign_in_through(
        &mut page,
        &format!("localhost:{port}"),
        machine.as_str().unwrap(),
    );
    until_signed_in(&mut page);
    let socket = format!(
        "wss://localhost:{port}/ws?machine_id={}",
        machine.as_str().unwrap()
    );
    assert!(page.requests.contains(&socket), "{:?}", page.requests);
    page.until("document.querySelector('.list .title')?.textContent === 'hello'");
    page.requests.retain(|url| url != &socket);
    check_hosts(&page, &[home.address()]);
    relay.stop();
}

/// What browsers keep from pages that they do not trust: notifications while the page is
/// closed, the microphone, and being installed.
const WITHHELD: &str = "[isSecureContext, !!globalThis.PushManager && !!navigator.serviceWorker, !!navigator.mediaDevices, !!navigator.serviceWorker && !!document.querySelector('link[rel=manifest]')]";

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_browser_that_trusts_the_authority_of_the_home_withholds_nothing() {
    let mut home = Home::offline();
    household(&mut home, false);
    let authority = home.folder.path().join("authority.pem");
    let print = net::tls::fingerprint(&net::tls::load_certificates(&authority).unwrap()[0]);
    let port = home.address().port();

    // A phone that has just come: plain http, and what is missing there is said.
    let browser = Chromium::start();
    let mut page = browser.page();
    page.size(390, 844);
    let trust = format!("http://hearth.lan:{port}/trust");
    page.open(&trust);
    page.until("document.querySelectorAll('h2').length === 7");
    // It looks as the signed-in page does, under its own policy.
    for (scheme, ground) in [("light", [250, 246, 241]), ("dark", [25, 21, 19])] {
        page.scheme(scheme);
        let [red, green, blue] = ground;
        page.until(&format!(
            "getComputedStyle(document.body).backgroundColor === 'rgb({red}, {green}, {blue})'"
        ));
        for width in [390, 1280] {
            page.size(width, 844);
            page.until(&format!("innerWidth === {width}"));
            page.screenshot(&format!("trust-{width}-{scheme}"));
        }
    }
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    page.size(390, 844);
    // The checker is a script of no server.
    page.call("Page.setBypassCSP", json!({ "enabled": true }));
    page.reload();
    let shown = page.evaluate("document.querySelector('pre').textContent.replace(/\\n/g, ':')");
    assert_eq!(shown, print);
    assert_eq!(
        page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        true
    );
    if let Some(axe) = axe_core() {
        examine(&mut page, axe, "trust");
        page.size(390, 844);
    }
    page.open(&format!("http://hearth.lan:{port}/"));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    until_signed_in(&mut page);
    assert_eq!(page.evaluate(WITHHELD), json!([false, false, false, false]));
    let card =
        "[...document.querySelectorAll('.page .card')].find((card) => card.querySelector('code'))";
    go(&mut page, "account");
    page.until(card);
    let text = page.evaluate(&format!("{card}.innerText"));
    let text = text.as_str().unwrap();
    assert!(
        text.contains(&print) && text.contains("over plain http"),
        "{text}"
    );
    let link = page.evaluate(&format!("{card}.querySelector('a').href"));
    assert_eq!(link, trust);
    page.screenshot("trust-account");
    let refused = |page: &mut Page, host: &str| {
        let url = format!("https://{host}:{port}/health");
        page.call("Page.navigate", json!({ "url": url }))["errorText"].clone()
    };
    assert_eq!(
        refused(&mut page, "127.0.0.1"),
        "net::ERR_CERT_AUTHORITY_INVALID"
    );

    let browser = Chromium::trusting(&authority);
    let mut page = browser.page();
    page.open(&format!("https://127.0.0.1:{port}/"));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    until_signed_in(&mut page);
    assert_eq!(page.evaluate(WITHHELD), json!([true, true, true, true]));
    let socket = format!("wss://127.0.0.1:{port}/ws");
    assert!(page.requests.contains(&socket), "{:?}", page.requests);
    go(&mut page, "account");
    page.until(card);
    let text = page.evaluate(&format!("{card}.innerText"));
    let text = text.as_str().unwrap();
    assert!(
        text.contains(&print) && !text.contains("over plain http"),
        "{text}"
    );
    check(&page, &home);
    // A name that the authority may not vouch for stays refused.
    assert_eq!(refused(&mut page, "127.0.0.1"), json!(null));
    assert_eq!(
        refused(&mut page, "hearth.lan"),
        "net::ERR_CERT_COMMON_NAME_INVALID"
    );
}
