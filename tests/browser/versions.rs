//! Messages one can work with: written anew, answered again, deleted; and conversations
//! that are pinned, put away, and have a model of their own.

use serde_json::{Value, json};

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::pages::{go, look};
use super::{check, say, sign_in, until_last_reply};
use support::home::Home;
use support::model::{Act, Model};

const TEXTS: &str =
    "[...document.querySelectorAll('[role=log] .text')].map((one) => one.textContent).join()";

fn menu(page: &mut Page, label: &str) {
    page.until("document.querySelector('.top .menu-place')");
    page.evaluate(&format!("[...document.querySelectorAll('.top .menu button')].find((one) => one.textContent === '{label}').click()"));
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn messages_are_written_anew_answered_again_and_deleted() {
    let model = Model::start(|request, number| {
        Act::Say(format!("{} {number}", request["model"].as_str().unwrap()))
    });
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "how war is it");
    page.until("document.querySelectorAll('[role=log] .assistant').length === 1");
    page.fill(".composer textarea", "a draft");
    page.click("[aria-label='Edit and send again']");
    assert_eq!(
        page.evaluate("document.querySelector('.composer textarea').value"),
        "how war is it"
    );
    page.screenshot("editing");
    page.press("Escape", 0);
    assert_eq!(
        page.evaluate("document.querySelector('.editing').hidden"),
        true
    );
    let field = "document.querySelector('.composer textarea').value";
    assert_eq!(page.evaluate(field), "a draft");
    page.click("[aria-label='Edit and send again']");
    page.fill(".composer textarea", "how warm is it");
    page.press("Enter", 0);
    page.until("document.querySelector('.versions')?.textContent === '2 of 2'");
    page.until(&format!("({TEXTS}).startsWith('how warm is it,scripted ')"));
    look(&mut page, "versions");

    // Another reply, of another model.
    page.click("[aria-label='Answer with another model']");
    page.fill("dialog input", "larger");
    page.click("dialog button[type=submit]");
    page.until(&format!("({TEXTS}).startsWith('how warm is it,larger ')"));
    page.until("document.querySelector('.versions')?.textContent === '3 of 3'");

    // Whoever reads the conversation can read these, too.
    page.click(".top button.audience");
    page.until("document.querySelector('dialog p.quiet:not([hidden])')?.textContent.startsWith('It has earlier versions')");
    page.press("Escape", 0);
    page.until("!document.querySelector('dialog')");

    // What is not shown is in the export.
    page.evaluate(
        "URL.createObjectURL = (blob) => { window.exported = blob.text(); return 'data:,'; }",
    );
    menu(&mut page, "Export");
    page.until("window.exported");
    let text = page.evaluate("window.exported");
    let text = text.as_str().unwrap();
    let (shown, hidden) = text.split_once("# Versions that are not shown").unwrap();
    assert!(shown.contains("larger "), "{text}");
    assert!(
        hidden.contains("how war is it") && hidden.contains("scripted "),
        "{text}"
    );

    // The first is still there.
    page.click("[aria-label='Earlier version']");
    page.until("document.querySelector('.versions')?.textContent === '2 of 3'");
    page.click("[aria-label='Earlier version']");
    page.until(&format!("({TEXTS}).startsWith('how war is it,scripted 0')"));
    assert_eq!(
        page.evaluate("document.querySelector(\"[aria-label='Earlier version']\").disabled"),
        true
    );

    say(&mut page, "thanks");
    page.until("document.querySelectorAll('[role=log] .assistant').length === 2");
    page.evaluate(
        "[...document.querySelectorAll('[aria-label=\"Delete message\"]')].at(-1).click()",
    );
    page.click("dialog button[type=submit]");
    page.until(&format!("({TEXTS}) === 'how war is it,scripted 0'"));
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn conversations_are_pinned_put_away_and_have_their_model() {
    let model = Model::start(|request, _| Act::say(request["model"].as_str().unwrap()));
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "first");
    until_last_reply(&mut page, "scripted");
    menu(&mut page, "Model");
    page.fill("dialog input", "larger");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('.top .model').textContent === 'larger'");
    say(&mut page, "second");
    until_last_reply(&mut page, "larger");
    menu(&mut page, "Pin");
    page.until("document.querySelector('.list ul').getAttribute('aria-label') === 'Pinned'");
    menu(&mut page, "Archive");
    page.until("document.querySelector('.list .badge')?.textContent === 'archived'");
    page.click(".new");
    page.until("!document.querySelector('.list a')");
    say(&mut page, "another");
    page.until("document.querySelectorAll('.list a').length === 1");
    page.click(".put-away");
    page.until("document.querySelectorAll('.list a').length === 2");
    // Unread is what arrived while somebody was elsewhere, also after a reload.
    let id =
        home.admin().ask(json!({ "type": "list_conversations" }))["conversations"][0]["id"].clone();
    page.evaluate("location.hash = '#/help'");
    page.until("document.querySelector('.handbook')");
    home.admin()
        .ask(json!({ "type": "chat", "message": "news", "conversation_id": id }));
    page.until("document.querySelector('.list .unread')");
    page.reload();
    page.until("document.querySelector('.list .unread')");
    page.click(".list .unread a");
    page.until("!document.querySelector('.list .unread')");
    page.evaluate("location.hash = '#/help'");
    page.until("document.querySelector('.handbook')");
    page.reload();
    page.until("document.querySelector('.list a')");
    assert_eq!(
        page.evaluate("document.querySelectorAll('.list .unread').length"),
        0
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn people_choose_among_the_models_that_the_settings_offer() {
    let model = Model::start(|request, _| Act::say(request["model"].as_str().unwrap()));
    let mut config = model.config();
    config["models"] = json!(["larger", "smaller"]);
    let home = Home::start(config);
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "user");
    page.until("document.querySelector('.composer textarea:enabled')");
    say(&mut page, "first");
    until_last_reply(&mut page, "scripted");
    let offered = "[...document.querySelectorAll('dialog option')].map((one) => one.value).join()";
    page.click("[aria-label='Answer with another model']");
    page.until(&format!("{offered} === 'scripted,larger,smaller'"));
    page.evaluate("document.querySelector('dialog select').value = 'smaller'");
    page.click("dialog button[type=submit]");
    until_last_reply(&mut page, "smaller");
    menu(&mut page, "Model");
    page.until(&format!("{offered} === ',larger,smaller'"));
    page.evaluate("document.querySelector('dialog select').value = 'larger'");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('.top .model').textContent === 'larger'");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_the_list_does_not_have_keeps_its_header() {
    let home = Home::offline();
    let mut admin = home.admin();
    let ids: Vec<Value> = (0..53)
        .map(|number| {
            let chat = json!({ "type": "chat", "message": format!("number {number}") });
            admin.ask(chat)["conversation_id"].clone()
        })
        .collect();
    admin.ask(
        json!({ "type": "share_conversation", "conversation_id": ids[0], "audience": "household" }),
    );
    admin.ask(
        json!({ "type": "update_conversation", "conversation_id": ids[52], "archived": true }),
    );
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    let title = "document.querySelector('.top h1').textContent";
    for (id, number, icon, deed) in [
        (&ids[0], 0, "Household", "Archive"),
        (&ids[52], 52, "Private", "Unarchive"),
    ] {
        page.evaluate(&format!("location.hash = '#/c/' + {id}"));
        for _ in 0..2 {
            page.until(&format!("{title} === 'number {number}'"));
            page.until(&format!(
                "document.querySelector('.top .audience').textContent === '{icon}'"
            ));
            page.until(
                "document.querySelector('[role=log] .assistant [aria-label=\"Delete message\"]')",
            );
            page.reload();
        }
        menu(&mut page, deed);
        page.until("document.querySelector('.top .menu-place')");
    }
    // The list still goes on where it ended.
    page.click(".new");
    page.until("document.querySelectorAll('.list a').length >= 50");
    page.evaluate("document.querySelector('.list-scroll').scrollTop = 1e6");
    page.until("document.querySelectorAll('.list a').length === 52");
    page.until("[...document.querySelectorAll('.list .title')].some((one) => one.textContent === 'number 52')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_is_being_written_stays_for_its_writer_alone() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.fill(".composer textarea", "a draft");
    let files = "new DataTransfer()";
    page.evaluate(&format!("(() => {{ const files = {files}; files.items.add(new File(['x'], 'note.txt')); document.querySelector('.composer [type=file]').files = files.files; document.querySelector('.composer [type=file]').dispatchEvent(new Event('change')); }})()"));
    page.until("document.querySelector('.pending .name')?.textContent === 'note.txt'");
    go(&mut page, "lists");
    page.click(".new");
    let field = "document.querySelector('.composer textarea').value";
    page.until(&format!("{field} === 'a draft'"));
    page.until("document.querySelector('.pending .name')?.textContent === 'note.txt'");
    super::sign_out(&mut page);
    sign_in_as(&mut page, &home, "user");
    page.until("document.querySelector('.composer textarea:enabled')");
    assert_eq!(page.evaluate(field), "");
    assert_eq!(
        page.evaluate("document.querySelector('.pending')"),
        Value::Null
    );
    check(&page, &home);
}
