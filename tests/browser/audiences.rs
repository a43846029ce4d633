//! Who sees a conversation: shown, changed by its owner, and kept from others.

use serde_json::json;

use super::chromium::{Chromium, Page};
use super::pages::look;
use super::{address, check, say, sign_in, until_last_reply};
use support::home::{Home, PASSWORD};
use support::model::Model;

pub fn sign_in_as(page: &mut Page, home: &Home, name: &str) {
    page.open(&address(home));
    page.fill("[name=username]", name);
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until(&format!(
        "document.querySelector('.who-am-i strong')?.textContent === '{name}'"
    ));
}

/// Chooses in the dialog of the open conversation who sees it.
fn share(page: &mut Page, choice: &str) {
    page.click(".top button.audience");
    page.click(&format!("dialog [name=audience][value={choice}]"));
    page.click("dialog button[type=submit]");
}

const TITLES: &str =
    "[...document.querySelectorAll('.list .title')].map((one) => one.textContent).join()";

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_owner_decides_who_sees_a_conversation() {
    let model = Model::saying("so be it");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "a surprise party");
    until_last_reply(&mut page, "so be it");
    page.until("document.querySelector('.top .audience')?.getAttribute('aria-label')?.startsWith('Only you see this')");
    page.until("document.querySelector('.list .audience')?.title === 'Only you see this'");
    let other_browser = Chromium::start();
    let mut other = other_browser.page();
    sign_in_as(&mut other, &home, "user");
    other.until("document.querySelector('.list .empty')");

    page.click(".top button.audience");
    page.until("document.querySelector('dialog [value=private]')?.checked");
    look(&mut page, "share");
    page.click("dialog [name=audience][value=people]");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('dialog .problem').textContent.includes('at least one')");
    let offered =
        "[...document.querySelectorAll('dialog [name=person]')].map((one) => one.value).join()";
    page.until(&format!("{offered} === 'user,viewer'"));
    // On a phone, and on one whose keyboard is open, the buttons are in sight.
    for height in [844, 420] {
        page.size(390, height);
        page.until(&format!("innerHeight === {height}"));
        let ends = page.evaluate("(() => { const edge = document.querySelector('dialog').getBoundingClientRect(); document.querySelector('dialog').scrollTop = 0; return [...document.querySelectorAll('dialog .end button')].map((one) => one.getBoundingClientRect()).every((one) => one.top > edge.top && one.bottom < edge.bottom && edge.bottom <= innerHeight); })()");
        assert_eq!(ends, true, "at a height of {height}");
        page.screenshot(&format!("share-people-{height}"));
    }
    page.size(1280, 800);
    page.click("dialog [name=person][value=user]");
    page.click("dialog button[type=submit]");
    page.until("!document.querySelector('dialog')");
    page.until("document.querySelector('.list .audience')?.title === 'Only you and user see this'");

    other.until(&format!("{TITLES} === 'a surprise party'"));
    other.click(".list a");
    until_last_reply(&mut other, "so be it");
    assert!(
        other
            .evaluate("document.querySelector('.top button.audience')")
            .is_null()
    );
    look(&mut other, "shared");
    share(&mut page, "private");
    other.until("document.querySelector('.note')?.textContent.includes('cannot see this conversation any more')");
    other.until("!document.querySelector('.list .title')");
    other.until("document.querySelector('.composer textarea').disabled");
    check(&page, &home);
    check(&other, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_guest_sees_what_is_shared_and_nothing_else() {
    let model = Model::saying("so be it");
    let home = Home::start(model.config());
    let mut admin = home.admin();
    let chat = admin.ask(json!({ "type": "chat", "message": "the trip" }));
    admin.ask(json!({
        "type": "share_conversation", "conversation_id": chat["conversation_id"],
        "audience": ["viewer"],
    }));
    admin.ask(json!({ "type": "chat", "message": "the rest" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "viewer");
    page.until(&format!("{TITLES} === 'the trip'"));
    page.until("[...document.querySelectorAll('.pages a')].map((one) => one.textContent).join() === 'Chats,Reminders'");
    for hidden in [".search", ".new"] {
        assert_eq!(
            page.evaluate(&format!("document.querySelector('{hidden}').hidden")),
            true
        );
    }
    page.click(".list a");
    until_last_reply(&mut page, "so be it");
    page.until("document.querySelector('.composer').hidden");
    look(&mut page, "guest");
    check(&page, &home);
}
