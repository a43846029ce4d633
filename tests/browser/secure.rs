//! The page over TLS, as a household with a certificate of its own has it.

use base::secret::Secret;
use net::tls::Acceptor;
use relay::server::{Options, RelayServer, Token};
use serde_json::json;

use super::chromium::Chromium;
use super::elsewhere::{sign_in_through, until_signed_in};
use super::relay::TOKEN;
use super::{check, check_hosts, say};
use support::home::{Home, PASSWORD};
use support::tls::Identity;

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
    let acceptor = Acceptor::open(&identity.certificate, &identity.key).unwrap();
    let options = Options::new(Token::new(Secret::new(TOKEN)).unwrap());
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = RelayServer::start_secure(acceptor, options, socket).unwrap();
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
