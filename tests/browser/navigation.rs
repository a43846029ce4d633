//! Getting around: by keyboard with one stop a list, by touch, and by date.

use serde_json::json;

use super::chromium::{Chromium, Page};
use super::pages::look;
use super::{check, say, sign_in, until_last_reply};
use support::home::Home;
use support::model::{Act, Model};

const FOCUSED: &str =
    "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent";

/// How often Tab is pressed until the focus is in `to`.
fn tabs_to(page: &mut Page, to: &str) -> u32 {
    for count in 1..40 {
        page.press("Tab", 0);
        if page.evaluate(&format!("document.activeElement.matches({})", json!(to))) == true {
            return count;
        }
    }
    panic!("never at {to}");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_list_is_one_stop_and_arrow_keys_go_through_it() {
    let model = Model::saying("fine");
    let home = Home::start(model.config());
    let mut admin = home.admin();
    for number in 0..12 {
        admin.ask(json!({ "type": "chat", "message": format!("conversation {number}") }));
    }
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.until("document.querySelectorAll('.list a').length === 12");
    assert_eq!(
        page.evaluate("[...document.querySelectorAll('.list ul')].map((one) => one.getAttribute('aria-label'))"),
        json!(["Today"])
    );
    let height = page.evaluate("document.querySelector('.list li').offsetHeight");
    assert!(height.as_f64().unwrap() <= 36.0, "one line: {height}");
    look(&mut page, "conversations");
    page.size(1280, 800);

    // The skip link is first, and leads to the composer.
    page.evaluate("document.querySelector('button, a, input').focus()");
    assert_eq!(page.evaluate(FOCUSED), "Skip to the content");
    page.screenshot("skip");
    page.press("Enter", 0);
    assert_eq!(page.evaluate(FOCUSED), "Message");
    page.evaluate("document.querySelector('.search input').focus()");
    assert_eq!(tabs_to(&mut page, ".list a"), 1);
    for (key, expected) in [
        ("ArrowDown", "conversation 10"),
        ("End", "Show archived"),
        ("ArrowUp", "conversation 0"),
        ("ArrowUp", "conversation 1"),
    ] {
        page.press(key, 0);
        let title = page.evaluate("(document.activeElement.querySelector('.title') ?? document.activeElement).textContent");
        assert_eq!(title, expected);
    }
    page.press("ArrowRight", 0);
    assert_eq!(page.evaluate(FOCUSED), "Rename conversation 1");
    page.press("ArrowRight", 0);
    assert_eq!(page.evaluate(FOCUSED), "Delete conversation 1");
    assert_eq!(
        tabs_to(&mut page, ".pages a"),
        1,
        "one stop for all conversations"
    );
    page.press("ArrowRight", 0);
    assert_eq!(page.evaluate(FOCUSED), "Lists");
    assert_eq!(
        tabs_to(&mut page, ".foot .menu-place button"),
        1,
        "one stop for all pages"
    );

    // Messages: one stop, and what can be done with each beside it.
    for text in ["one", "two"] {
        say(&mut page, text);
        page.until(&format!(
            "[...document.querySelectorAll('[role=log] .text')].at(-2)?.textContent === '{text}'"
        ));
        until_last_reply(&mut page, "fine");
    }
    let stops = page.evaluate("[...document.querySelectorAll('[role=log] li, [role=log] button')].filter((one) => one.tabIndex === 0).length");
    assert_eq!(stops, 1);
    page.evaluate("document.querySelector('[role=log] li[tabindex=\"0\"]').focus()");
    page.press("Home", 0);
    assert_eq!(
        page.evaluate("document.activeElement.querySelector('.text').textContent"),
        "one"
    );
    page.press("ArrowRight", 0);
    page.press("ArrowRight", 0);
    assert_eq!(page.evaluate(FOCUSED), "Quote");
    page.press("Enter", 0);
    assert_eq!(
        page.evaluate("document.querySelector('.composer textarea').value"),
        "> one\n\n"
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_list_on_a_page_is_one_stop_too() {
    let home = Home::start(json!({ "permission_mode": "allow" }));
    let mut admin = home.admin();
    for text in ["the bins go out on Monday", "the tea is green"] {
        admin.ask(json!({ "type": "create_schedule", "prompt": text, "at": "2030-12-24T18:00" }));
        admin.ask(json!({ "type": "update_list", "list": text, "add": ["milk", "bread"] }));
    }
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    for (count, text) in [(1, "the bins go out on Monday"), (2, "the tea is green")] {
        say(&mut page, &format!("remember that {text}"));
        page.until(&format!(
            "document.querySelectorAll('[role=log] .assistant').length === {count} && !document.querySelector('.live li')"
        ));
    }
    let stops = "[...document.querySelectorAll('.page .rows, .page [role=group]')].filter((one) => one.children.length > 1).map((list) => [...list.querySelectorAll('*')].filter((one) => one.tabIndex === 0 && one.checkVisibility()).length)";
    for name in [
        "tools",
        "lists",
        "memories",
        "reminders",
        "people",
        "account",
    ] {
        super::pages::go(&mut page, name);
        page.until(&format!("{stops}.length > 0"));
        let counts = page.evaluate(stops);
        let counts = counts.as_array().unwrap();
        assert!(counts.iter().all(|count| *count == 1), "{name}: {counts:?}");
    }

    // Sideways to what a row has; a choice keeps its own keys.
    super::pages::go(&mut page, "tools");
    page.evaluate("document.querySelector('.page a').focus()");
    assert_eq!(tabs_to(&mut page, ".rows li"), 1);
    page.press("ArrowDown", 0);
    let second = "document.querySelectorAll('.rows li')[1]";
    page.until(&format!("document.activeElement === {second}"));
    page.press("ArrowRight", 0);
    page.until(&format!(
        "document.activeElement === {second}.querySelector('select')"
    ));
    page.press("Tab", 8);
    page.until(&format!("document.activeElement === {second}"));

    // What is deleted leaves the list with one stop.
    super::pages::go(&mut page, "memories");
    page.evaluate("document.querySelectorAll('.rows li')[1].focus()");
    // Past what changes it.
    page.press("ArrowRight", 0);
    page.press("ArrowRight", 0);
    page.press("Enter", 0);
    page.until("document.querySelector('dialog')");
    page.click("dialog button[type=submit]");
    page.until("document.querySelectorAll('.rows li').length === 1");
    page.until("document.querySelector('.rows li').tabIndex === 0");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_conversation_is_renamed_and_deleted_from_its_menu() {
    let model = Model::saying("fine");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    until_last_reply(&mut page, "fine");
    // The model in sight.
    page.until("document.querySelector('.top .model').textContent === 'scripted'");
    page.until("document.querySelector('.top .menu-place button')");
    page.evaluate("document.querySelector('.top .menu-place button').focus()");
    page.press("Enter", 0);
    page.until("document.activeElement.textContent === 'Rename'");
    // What others change meanwhile does not close it.
    let mut admin = home.admin();
    let listed = admin.ask(json!({ "type": "list_conversations" }));
    let id = &listed["conversations"][0]["id"];
    admin.ask(json!({ "type": "update_conversation", "conversation_id": id, "pinned": true }));
    admin
        .ask(json!({ "type": "rename_conversation", "conversation_id": id, "title": "Meanwhile" }));
    page.until("document.querySelector('.top h1').textContent === 'Meanwhile'");
    assert_eq!(page.evaluate(FOCUSED), "Rename");
    page.size(390, 844);
    page.screenshot("menu-conversation");
    page.press("ArrowUp", 0);
    assert_eq!(page.evaluate(FOCUSED), "Delete");
    page.press("Escape", 0);
    assert_eq!(
        page.evaluate("document.querySelector('.top .menu').hidden"),
        true
    );
    page.press("Enter", 0);
    page.until("document.activeElement.textContent === 'Rename'");
    page.press("Enter", 0);
    page.fill("dialog input", "Greetings");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('.top h1').textContent === 'Greetings'");
    page.until("document.querySelector('.top .menu').textContent.includes('Unpin')");
    page.evaluate("[...document.querySelectorAll('.top .menu button')].find((one) => one.textContent === 'Delete').click()");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('.welcome')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_finger_hits_every_control() {
    let model = Model::acting(vec![Act::say("fine, and `code`")]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    page.call(
        "Emulation.setTouchEmulationEnabled",
        json!({ "enabled": true }),
    );
    page.size(390, 844);
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    page.click(".send");
    page.until("document.querySelector('[role=log] .assistant .deeds')");
    assert_eq!(
        page.evaluate("matchMedia('(pointer: coarse)').matches"),
        true
    );
    let small = "[...document.querySelectorAll('.frame button, .frame a, .frame select, .frame summary, .frame input:not([type=checkbox], [type=radio], [type=range])')].filter((one) => !one.closest('.text, p') && one.checkVisibility({ visibilityProperty: true })).map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && (box.height < 43.5 || box.width < 43.5)).map(([one, box]) => `${one.outerHTML.slice(0, 120)} ${box.width}x${box.height}`)";
    assert_eq!(page.evaluate(small), json!([]), "chat");
    page.screenshot("touch");
    page.click(".open-side");
    page.until("document.querySelector('.side.shown')");
    assert_eq!(page.evaluate(small), json!([]), "menu");
    page.screenshot("touch-menu");
    page.click(".close-side");
    for name in super::pages::PAGES {
        super::pages::go(&mut page, name);
        assert_eq!(page.evaluate(small), json!([]), "{name}");
    }
    // A new conversation without the menu.
    page.click(".anew");
    page.until("document.querySelector('.welcome')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_failed_turn_is_not_said_to_be_writing() {
    let model = Model::acting(vec![Act::error(401, "", "no such key")]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    page.until("document.querySelector('.failure')");
    page.until("document.querySelector('.list a') && !document.querySelector('.list').textContent.includes('writing')");
    check(&page, &home);
}
