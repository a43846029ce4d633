//! The page away from home: through a relay, over plain http, from a link, and
//! served by somebody else.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::chromium::{Chromium, Page};
use super::files::Files;
use super::relay::{Lie, Relay, TOKEN};
use super::relayed;
use super::{address, check, check_hosts, say, until_last_reply};
use support::client::Client;
use support::home::{Home, PASSWORD, TemporaryDirectory};
use support::model::{Act, Model};

const PROBLEM: &str = "document.querySelector('.sign-in #problem')?.textContent";

/// Fills in the form and sends it.
pub fn sign_in_through(page: &mut Page, relay: &str, machine: &str) {
    page.until("document.querySelector('.sign-in form')");
    page.evaluate("document.querySelector('.away').open = true");
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.fill("[name=relay]", relay);
    page.fill("[name=machine]", machine);
    page.fill("[name=relay_token]", TOKEN);
    page.click("button[type=submit]");
}

pub fn until_signed_in(page: &mut Page) {
    page.until("document.querySelector('.who-am-i strong')?.textContent === 'admin'");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_page_and_the_vectors_agree() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/noise");
    for file in ["cacophony.json", "snow.json", "hearth.json"] {
        let vector = fs::read_to_string(folder.join(file)).unwrap();
        let player = include_str!("vectors.js").trim_end();
        let played = page.evaluate(&format!("{player}({vector})"));
        println!("{file}: {played} messages");
        assert!(played.as_u64().unwrap() >= 2, "{file}: {played}");
    }
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_relay_that_listens_learns_nothing() {
    let model = Model::start(|_, number| match number {
        0 => Act::Pause("the secret reply of the household, and the rest of it".into()),
        _ => Act::say("another"),
    });
    let home = Home::start(model.config());
    let relay = Relay::start(home.address(), Lie::None);
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    page.evaluate("document.querySelector('.away').open = true");
    page.screenshot("relay-sign-in");
    page.size(390, 844);
    page.scheme("dark");
    page.screenshot("relay-sign-in-phone");
    page.size(1280, 800);
    page.scheme("light");

    // The address may carry the machine's id.
    let pasted = format!("{}/ws?machine_id={}", relay.url(), relay.machine_id);
    sign_in_through(&mut page, &pasted, "");
    until_signed_in(&mut page);
    say(&mut page, "a question that is nobody else's affair");
    page.until("document.querySelector('.live .text')?.textContent.startsWith('the secret')");
    model.release();
    until_last_reply(
        &mut page,
        "the secret reply of the household, and the rest of it",
    );
    page.screenshot("relay-chat");

    // A longer text than one message carries.
    say(&mut page, &"long ".repeat(30_000));
    until_last_reply(&mut page, "another");

    let token = page.evaluate("sessionStorage.getItem('hearth.token')");
    page.reload();
    until_signed_in(&mut page);
    for secret in [
        PASSWORD,
        "nobody else's affair",
        "secret reply",
        token.as_str().unwrap(),
    ] {
        assert!(!relay.has_seen(secret), "the relay has seen {secret:?}");
    }
    assert!(
        relay.has_seen("machine_key"),
        "the relay has seen nothing at all"
    );

    super::sign_out(&mut page);
    page.until("document.querySelector('.sign-in form')");
    let refused =
        Client::websocket(home.address()).refused(json!({ "type": "auth", "token": token }));
    assert_eq!(refused, "invalid_token");
    let kept = page.evaluate(
        "[document.querySelector('[name=relay]').value, document.querySelector('[name=machine]').value, document.querySelector('[name=relay_token]').value]",
    );
    assert_eq!(
        kept,
        json!([format!("{}/ws", relay.url()), relay.machine_id, ""])
    );
    check_hosts(&page, &[home.address(), relay.address]);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn who_is_not_the_machine_gets_no_password() {
    let home = Home::offline();
    let browser = Chromium::start();
    let other = "abcdefghijklmnopqrstuvwxyz234567";
    for (lie, machine, message) in [
        (Lie::OtherKey, None, "answered for a different machine"),
        (
            Lie::OtherMachine,
            None,
            "could not prove that it is your machine",
        ),
        (Lie::None, Some(other), "not connected to this relay"),
        (
            Lie::OtherKey,
            Some(other),
            "answered for a different machine",
        ),
        (Lie::None, Some("short"), "32 letters and digits"),
    ] {
        let relay = Relay::start(home.address(), lie);
        let mut page = browser.page();
        page.open(&address(&home));
        sign_in_through(
            &mut page,
            &relay.url(),
            machine.unwrap_or(&relay.machine_id),
        );
        page.until(&format!("{PROBLEM}?.includes('{message}')"));
        page.screenshot("relay-refused");
        assert!(!relay.has_seen(PASSWORD));
        check_hosts(&page, &[home.address(), relay.address]);
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_relay_that_is_away_or_refuses_is_named() {
    let relay = relayed::start(0, |_| {});
    let home = relayed::linked(json!({}), &relay);
    let machine = relayed::machine_id(&home);
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    sign_in_through(&mut page, &relayed::url(&relay), &machine);
    until_signed_in(&mut page);
    super::sign_out(&mut page);
    page.fill("[name=relay_token]", "another-token");
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until(&format!(
        "{PROBLEM}?.includes('Check its address and the token')"
    ));
    page.fill("[name=relay]", "ws://relay.example");
    page.click("button[type=submit]");
    page.until(&format!("{PROBLEM}?.includes('must begin with wss://')"));
    assert!(
        !page
            .requests
            .iter()
            .any(|url| url.contains("relay.example"))
    );
    // A wrong password is told as such, and not by the relay.
    sign_in_through(&mut page, &relayed::url(&relay), &machine);
    until_signed_in(&mut page);
    super::sign_out(&mut page);
    page.fill("[name=password]", "wrong");
    page.fill("[name=username]", "admin");
    page.fill("[name=relay_token]", TOKEN);
    page.click("button[type=submit]");
    page.until(&format!("{PROBLEM}?.includes('Wrong name or password')"));
    relay.stop();
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_flipped_bit_ends_the_connection() {
    let model = Model::saying("unharmed");
    let home = Home::start(model.config());
    let relay = Relay::start(home.address(), Lie::None);
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    sign_in_through(&mut page, &relay.url(), &relay.machine_id);
    until_signed_in(&mut page);
    // Kept from coming back at once, so that the message can be seen.
    page.evaluate("window.shown = []; new MutationObserver(() => { const text = document.querySelector('.banner').textContent; if (!shown.includes(text)) shown.push(text); }).observe(document.querySelector('.banner'), { childList: true })");
    let before = relay.clients();
    relay.flip_a_bit();
    say(&mut page, "hello");
    page.until("shown.some((text) => text.includes('The relay altered data from your machine'))");
    // It comes back by itself, and the message ran once.
    until_last_reply(&mut page, "unharmed");
    assert!(relay.clients() > before);
    assert_eq!(model.requests().len(), 1);
    check_hosts(&page, &[home.address(), relay.address]);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn over_plain_http_the_page_says_why_it_cannot() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&format!("http://hearth.lan:{}/", home.address().port()));
    page.until("document.querySelector('.sign-in form')");
    assert_eq!(page.evaluate("isSecureContext"), false);
    page.evaluate("document.querySelector('.away').open = true");
    page.until("document.querySelector('button[type=submit]').disabled");
    let shown = page.evaluate("document.querySelector('.away').innerText");
    assert!(
        shown
            .as_str()
            .unwrap()
            .contains("browsers disable on plain http pages"),
        "{shown}"
    );
    assert!(
        page.evaluate("document.querySelector('[name=relay]')")
            .is_null()
    );
    page.screenshot("relay-plain-http");
    // Without the relay it works as ever.
    page.evaluate("document.querySelector('.away').open = false");
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    until_signed_in(&mut page);
    // Chromium tells that it ignores one of the headers over plain http.
    page.errors
        .retain(|error| !error.contains("Cross-Origin-Opener-Policy"));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_link_asks_and_never_connects() {
    let home = Home::offline();
    let relay = relayed::start(0, |_| {});
    let machine = "abcdefghijklmnopqrstuvwxyz234567";
    let browser = Chromium::start();
    let link = format!(
        "{}#relay={}&machine={machine}",
        address(&home),
        relayed::url(&relay)
    );
    let mut page = browser.page();
    page.open(&link);
    page.until("document.querySelector('dialog[open]')");
    let question = page.evaluate("document.querySelector('dialog').innerText");
    assert!(
        question
            .as_str()
            .unwrap()
            .contains(&relay.local_addr().to_string()),
        "{question}"
    );
    assert!(
        page.evaluate("document.querySelector('.sign-in')")
            .is_null()
    );
    page.screenshot("relay-link");
    page.click("dialog button[type=submit]");
    page.until(&format!(
        "document.querySelector('[name=machine]')?.value === '{machine}'"
    ));
    assert_eq!(page.evaluate("location.hash"), "");
    assert_eq!(page.evaluate("localStorage.length"), 0);
    check(&page, &home);

    let mut page = browser.page();
    page.open(&link);
    page.click("dialog .plain");
    page.until("document.querySelector('.sign-in form')");
    assert_eq!(page.evaluate("document.querySelector('.away').open"), false);
    assert_eq!(
        page.evaluate("document.querySelector('[name=relay]').value"),
        ""
    );
    check(&page, &home);
    relay.stop();
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_exported_page_works_through_a_relay_and_directly() {
    let folder = TemporaryDirectory::new();
    let export = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_hearth"))
            .args(["web", "export"])
            .arg(folder.path())
            .args(more)
            .output()
            .unwrap()
    };
    assert!(export(&[]).status.success());
    assert_eq!(export(&[]).status.code(), Some(1), "it is not empty now");
    assert!(export(&["--force"]).status.success());

    let files = Files::serve(folder.path().to_owned());
    let model = Model::saying("from home");
    let mut config: Value = model.config();
    config["allowed_origins"] = json!([format!("http://{}", files.address)]);
    let relay = relayed::start(0, |_| {});
    let home = relayed::linked(config, &relay);
    let machine = relayed::machine_id(&home);
    let browser = Chromium::start();

    let mut page = browser.page();
    page.open(&files.page());
    page.until("document.querySelector('.sign-in form')");
    page.screenshot("exported");
    sign_in_through(&mut page, &relayed::url(&relay), &machine);
    until_signed_in(&mut page);
    say(&mut page, "hello");
    until_last_reply(&mut page, "from home");
    check_hosts(&page, &[files.address, relay.local_addr()]);

    let mut page = browser.page();
    page.open(&files.page());
    page.fill("[name=address]", &home.address().to_string());
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", "wrong");
    page.click("button[type=submit]");
    page.until(&format!("{PROBLEM}?.includes('Wrong name or password')"));
    page.errors.clear();
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    until_signed_in(&mut page);
    say(&mut page, "hello again");
    until_last_reply(&mut page, "from home");
    super::sign_out(&mut page);
    page.until("document.querySelector('.sign-in form')");
    let kept = page.evaluate("document.querySelector('[name=address]').value");
    assert_eq!(kept, format!("http://{}", home.address()));
    check_hosts(&page, &[files.address, home.address()]);

    // Where the origin is not permitted, the page says which setting is missing.
    let strict = Home::offline();
    page.fill("[name=address]", &strict.address().to_string());
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until(&format!("{PROBLEM}?.includes('allowed_origins')"));
    relay.stop();
}
