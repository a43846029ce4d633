//! Files that messages carry: dropped, pasted and chosen, sent, shown and looked at.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::chromium::{Chromium, Page};
use super::elsewhere::{sign_in_through, until_signed_in};
use super::pages::look;
use super::relayed::{linked, machine_id, start, url};
use super::{address, check, check_hosts, sign_in, until_last_reply};
use support::home::Home;
use support::model::{Act, Model};

const HELPERS: &str = include_str!("attachments.js");
pub const READY: &str = "document.querySelector('.pending li') && [...document.querySelectorAll('.pending progress')].every((one) => one.hidden) && !document.querySelector('.send').disabled";

/// The attachments of the latest message that has any.
fn sent(home: &Home) -> Vec<Value> {
    let mut admin = home.admin();
    let conversations = admin.ask(json!({ "type": "list_conversations" }));
    let id = &conversations["conversations"][0]["id"];
    let messages = admin.ask(json!({ "type": "get_messages", "conversation_id": id }));
    let messages = messages["messages"].as_array().unwrap();
    let found = messages
        .iter()
        .rev()
        .find_map(|one| one["attachments"].as_array());
    found.unwrap().clone()
}

fn content(home: &Home, attachment: &Value) -> String {
    let id = &attachment["attachment_id"];
    let part = json!({ "type": "get_attachment", "attachment_id": id });
    home.admin().ask(part)["data"].as_str().unwrap().to_owned()
}

pub fn helpers(page: &mut Page) {
    page.evaluate(&format!("{HELPERS}; 0"));
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn pictures_and_files_are_sent_small_and_without_their_place() {
    attach(&mut Chromium::start().page());
}

/// Files that are dropped, pasted and chosen.
pub fn attach(page: &mut Page) {
    let model = Model::acting(vec![Act::say("a fine roof"), Act::say("read")]);
    let home = Home::start(model.config());
    sign_in(page, &home);
    helpers(page);
    page.evaluate("photograph('roof.jpg', 3000, 1500).then((file) => drop(file))");
    assert_eq!(page.evaluate("wasDropping"), true);
    page.evaluate("paste(new File(['<b>Flour</b>, eggs\\n'.repeat(30)], 'pancakes.txt', { type: 'text/plain' }))");
    page.until("document.querySelectorAll('.pending li').length === 2");
    page.until(READY);
    assert_eq!(
        page.evaluate("document.querySelectorAll('.pending canvas').length"),
        1
    );
    look(page, "attaching");
    page.fill(".composer textarea", "What of this roof?");
    page.press("Enter", 0);
    until_last_reply(page, "a fine roof");
    page.until("document.querySelector('[role=log] .person .thumbnail img')?.naturalWidth > 0");
    assert_eq!(
        page.evaluate("document.querySelector('[role=log] .person .text').textContent"),
        "What of this roof?"
    );

    let files = sent(&home);
    assert_eq!(
        (&files[0]["name"], &files[0]["type"]),
        (&json!("roof.jpg"), &json!("image/jpeg"))
    );
    assert_eq!(
        (&files[1]["name"], &files[1]["type"]),
        (&json!("pancakes.txt"), &json!("text/plain"))
    );
    let picture = content(&home, &files[0]);
    let bytes = STANDARD.decode(&picture).unwrap();
    let has = |sought: &[u8]| bytes.windows(sought.len()).any(|one| one == sought);
    assert!(
        !has(b"48.2082") && !has(b"Exif"),
        "the place is still in it"
    );
    // Turned as it was held, and scaled down.
    assert_eq!(
        page.evaluate(&format!("measured('image/jpeg', '{picture}')")),
        json!([1024, 2048])
    );

    // It is there after a reload, is looked at, and goes on to the text by keyboard.
    page.reload();
    page.until("document.querySelector('[role=log] .person .thumbnail img')?.naturalWidth > 0");
    look(page, "attached");
    // The files of a message are one stop of the Tab key.
    let files = "document.querySelectorAll('[role=log] .files button')";
    assert_eq!(
        page.evaluate(&format!("[...{files}].map((one) => one.tabIndex)")),
        json!([0, -1])
    );
    page.evaluate(&format!("{files}[0].focus()"));
    page.press("ArrowRight", 0);
    assert_eq!(
        page.evaluate(&format!("document.activeElement === {files}[1]")),
        true
    );
    page.click(".thumbnail");
    page.until("document.querySelector('.viewer .view img')?.naturalHeight === 2048");
    for (size, width, height) in [("phone", 390, 844), ("desktop", 1280, 800)] {
        page.size(width, height);
        page.screenshot(&format!("viewer-{size}"));
    }
    page.press("ArrowRight", 0);
    page.until(
        "document.querySelector('.viewer pre')?.textContent.startsWith('<b>Flour</b>, eggs')",
    );
    page.press("Escape", 0);
    page.until("!document.querySelector('.viewer')");

    // A picture alone is a message, too; one that cannot be opened is not sent.
    helpers(page);
    page.evaluate("choose(0, new File(['no picture'], 'broken.jpg', { type: 'image/jpeg' }))");
    page.until("document.querySelector('.pending .problem')?.textContent.includes('cannot open')");
    assert_eq!(
        page.evaluate("document.querySelector('.send').disabled"),
        true
    );
    page.click("[aria-label='Remove broken.jpg']");
    // Nor one that is too large, which another try does not change.
    page.size(390, 844);
    page.evaluate(
        "choose(0, new File([new Uint8Array(22000000)], 'film.bin', { type: 'video/mp4' }))",
    );
    page.until(
        "document.querySelector('.pending .problem')?.textContent === '22 MB; at most 21 MB'",
    );
    assert_eq!(
        page.evaluate("[...document.querySelectorAll('.pending li button')].filter((one) => one.checkVisibility()).map((one) => one.getAttribute('aria-label'))"),
        json!(["Remove film.bin"])
    );
    page.screenshot("too-large");
    page.click("[aria-label='Remove film.bin']");
    page.size(1280, 800);
    page.evaluate("photograph('second.jpg', 60, 40).then((file) => choose(1, file))");
    page.until(READY);
    page.click(".send");
    until_last_reply(page, "read");
    assert_eq!(sent(&home)[0]["name"], "second.jpg");
    check(page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn files_go_through_the_relay() {
    let model = Model::acting(vec![Act::say("got it")]);
    let relay = start(0, |_| {});
    let home = linked(model.config(), &relay);
    let machine = machine_id(&home);
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    sign_in_through(&mut page, &url(&relay), &machine);
    until_signed_in(&mut page);
    helpers(&mut page);
    page.until("!document.querySelector('.composer textarea').disabled");
    page.evaluate(
        "drop(new File(['0123456789'.repeat(100000)], 'digits.txt', { type: 'text/plain' }))",
    );
    page.until(READY);
    page.click(".send");
    until_last_reply(&mut page, "got it");
    assert_eq!(sent(&home)[0]["bytes"], 1_000_000);
    // And back.
    page.reload();
    until_signed_in(&mut page);
    page.click("[role=log] .file");
    page.until(
        "document.querySelector('.viewer pre')?.textContent === '0123456789'.repeat(100000)",
    );
    check_hosts(&page, &[home.address(), relay.local_addr()]);
    relay.stop();
}
