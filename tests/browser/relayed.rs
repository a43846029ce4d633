//! The page through our own relay, to a machine that is linked to it.

use std::net::{Ipv4Addr, TcpListener};

use base::secret::Secret;
use relay::server::{Options, RelayServer, Token};
use serde_json::{Value, json};

use super::chromium::{Chromium, Page};
use super::elsewhere::{sign_in_through, until_signed_in};
use super::relay::TOKEN;
use super::{address, check_hosts, say, until_last_reply};
use support::eventually;
use support::home::Home;
use support::model::{Act, Model};

/// A relay on this port; 0 lets the system choose.
pub fn start(port: u16, change: impl FnOnce(&mut Options)) -> RelayServer {
    let mut options = Options::new(Token::new(Secret::new(TOKEN)).unwrap());
    change(&mut options);
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    RelayServer::start(options, socket).unwrap()
}

/// A channel that leads to the relay on this port.
pub fn channel(name: &str, port: u16) -> Value {
    json!({
        "name": name, "type": "websocket", "auth_token": TOKEN,
        "url": format!("ws://127.0.0.1:{port}/ws"), "encryption": "required",
    })
}

/// The id of a machine, once its first link stands.
pub fn machine_id(home: &Home) -> String {
    let mut admin = home.admin();
    eventually("the link", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        (info["relays"][0]["state"] == "linked")
            .then(|| info["machine_id"].as_str().unwrap().to_owned())
    })
}

/// A relay's address as a person types it.
pub fn url(relay: &RelayServer) -> String {
    format!("ws://{}", relay.local_addr())
}

/// A home with this configuration, linked to the relay.
pub fn linked(mut config: Value, relay: &RelayServer) -> Home {
    let lan = json!({ "name": "lan", "type": "tcp", "port": 0 });
    config["channels"] = json!([lan, channel("away", relay.local_addr().port())]);
    Home::start(config)
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_day_with_the_relay() {
    spend_a_day(&mut Chromium::start().page());
}

/// Everything through a relay, which goes away and comes back.
pub fn spend_a_day(page: &mut Page) {
    let model = Model::start(|_, number| match number {
        0 => Act::Pause("first half of the reply, and the rest of it".into()),
        1 => Act::call("forget", json!({ "memory_id": "mem_0000000000001" })),
        2 => Act::say("nothing was there"),
        _ => Act::say("still here"),
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    let relay = start(0, |_| {});
    let home = linked(config, &relay);
    let machine = machine_id(&home);
    let hosts = [home.address(), relay.local_addr()];

    page.open(&address(&home));
    sign_in_through(page, &url(&relay), &machine);
    until_signed_in(page);
    say(page, "tell me");
    page.until("document.querySelector('.live .text')?.textContent.startsWith('first half')");
    model.release();
    until_last_reply(page, "first half of the reply, and the rest of it");

    say(page, "forget it");
    page.until("document.querySelector('.approval')?.textContent.includes('mem_0000000000001')");
    page.click(".approval .primary");
    until_last_reply(page, "nothing was there");

    page.reload();
    until_signed_in(page);
    until_last_reply(page, "nothing was there");
    check_hosts(page, &hosts);

    // The relay goes away and comes back; what was said meanwhile arrives once.
    let port = relay.local_addr().port();
    relay.stop();
    page.until("!document.querySelector('.banner').hidden");
    say(page, "are you there");
    page.until("document.querySelector('.sending')");
    let relay = start(port, |_| {});
    until_last_reply(page, "still here");
    page.until("document.querySelector('.banner').hidden");
    assert_eq!(model.requests().len(), 4);
    relay.stop();
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_the_relay_itself_says_is_told_as_its_own_word() {
    // Enough to sign in, and soon too little.
    let relay = start(0, |options| options.rules.messages_per_second = 8);
    let home = linked(json!({}), &relay);
    let machine = machine_id(&home);
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    sign_in_through(&mut page, &url(&relay), &machine);
    until_signed_in(&mut page);
    page.until("document.querySelector('.welcome')");
    page.evaluate("location.hash = '#/status'");
    page.until("document.querySelector('.facts')");
    page.evaluate("window.shown = []; new MutationObserver(() => shown.push(document.querySelector('.banner').textContent)).observe(document.querySelector('.banner'), { childList: true })");
    page.evaluate("for (let count = 0; count < 8; count += 1) dispatchEvent(new HashChangeEvent('hashchange'))");
    page.until("shown.some((text) => text.includes('The relay reports: this relay accepts 8 messages a second'))");
    assert_eq!(
        page.evaluate(
            "shown.some((text) => text.includes('The relay altered data from your machine'))"
        ),
        false
    );
    // It has not signed anybody out, and the page comes back by itself.
    page.until("shown.length && document.querySelector('.banner').hidden");
    until_signed_in(&mut page);
    say_in_new(&mut page);
    check_hosts(&page, &[home.address(), relay.local_addr()]);
    relay.stop();
}

fn say_in_new(page: &mut Page) {
    page.click(".new");
    say(page, "hello");
    page.until("document.querySelector('[role=log] .assistant .text')");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_machine_that_is_away_is_told() {
    let relay = start(0, |_| {});
    let mut home = linked(json!({}), &relay);
    let machine = machine_id(&home);
    home.stop();
    // Whoever serves the page is somebody else.
    let other = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&other));
    sign_in_through(&mut page, &url(&relay), &machine);
    page.until("document.querySelector('.sign-in #problem')?.textContent.includes('not connected to this relay')");
    relay.stop();
}
