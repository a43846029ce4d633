//! The first visit of a new household, what is at home on every day, and what is chosen there.

use serde_json::json;

use super::attachments::{READY, helpers};
use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::forms::press;
use super::pages::{go, look};
use super::{address, check, say, sign_in, until_last_reply};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::time::Duration;
use support::calendar_server::{CalendarServer, calendar};
use support::home::{Home, PASSWORD, write_config};
use support::model::{Act, Model};

/// Most requests of whoever signs in for the first time and comes home.
const MOST_FILES: usize = 20;

/// Chooses an option of a select.
fn choose(page: &mut Page, select: &str, value: &str) {
    let (select, value) = (json!(select), json!(value));
    page.evaluate(&format!(
        "(() => {{ const select = document.querySelector({select}); select.value = {value}; select.dispatchEvent(new Event('change')); }})()"
    ));
}

/// What the day brings the admin: a reminder, a list, an unread reply, and what is often asked.
pub fn fill_the_day(home: &Home) {
    let mut admin = home.admin();
    admin.ask(json!({ "type": "update_list", "list": "Shopping", "add": ["milk", "tea"] }));
    admin.ask(json!({ "type": "subscribe", "events": ["reminder.told"] }));
    admin.ask(json!({ "type": "create_schedule", "say": "Water the plants", "at": "+5m" }));
    home.server().advance_clock(Duration::from_secs(360));
    let told = admin.event("reminder.told");
    admin.ask(json!({ "type": "mark_read", "conversation_id": told["conversation_id"] }));
    for _ in 0..2 {
        admin.ask(json!({ "type": "chat", "message": "What is for dinner?" }));
    }
    let told =
        json!({ "type": "chat", "message": "The choir is on Friday", "audience": "household" });
    home.websocket(&home.tokens.user).ask(told);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_day_is_above_the_composer() {
    let model = Model::saying("fine");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    // Of a new household there is nothing to say, and no more is loaded for it.
    page.until("!document.querySelector('.composer textarea').disabled");
    assert_eq!(
        page.evaluate("document.querySelectorAll('.welcome button').length"),
        0
    );
    assert!(!page.requests.iter().any(|url| url.ends_with("/home.js")));
    // The icon of a tab is asked for once more where the first answer was late.
    let files = page.requests.iter().filter(|url| url.starts_with("http"));
    let files: BTreeSet<&String> = files.collect();
    assert!(files.len() <= MOST_FILES, "{}: {files:?}", files.len());

    fill_the_day(&home);
    page.until("document.querySelectorAll('.today > li').length === 3");
    let said = page.evaluate("document.querySelector('.today').innerText");
    for part in [
        "Water the plants",
        "Due",
        "The choir is on Friday",
        "Shopping",
        "2 open items",
    ] {
        assert!(said.as_str().unwrap().contains(part), "{part}: {said}");
    }
    page.until("document.querySelector('.suggestions')?.textContent === 'What is for dinner?'");
    page.evaluate("document.querySelector('.told')?.remove()");
    look(&mut page, "home");
    // Done is done, here as on the page of reminders.
    page.evaluate("[...document.querySelectorAll('.today button')].find((one) => one.textContent === 'Done').click()");
    page.until("!document.querySelector('.today').textContent.includes('Water the plants')");
    page.evaluate("[...document.querySelectorAll('.today a')].find((one) => one.textContent.startsWith('Shopping')).click()");
    page.until(
        "document.querySelector('[data-list=Shopping]')?.getAttribute('aria-pressed') === 'true'",
    );
    page.evaluate("location.hash = '#/'");
    page.click(".suggestions button");
    until_last_reply(&mut page, "fine");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn events_and_questions_are_of_the_day_and_three_suggestions_at_most() {
    let server = CalendarServer::start();
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str() {
            Some(text) if text.contains("run it") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            _ => Act::say("fine"),
        }
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tools": { "run_command": { "enabled": true } },
    })));
    let day = home.clock.now().to_string()[..10].replace('-', "");
    let event = format!(
        "BEGIN:VEVENT\r\nUID:a\r\nDTSTART;VALUE=DATE:{day}\r\nSUMMARY:Choir practice\r\nEND:VEVENT\r\n"
    );
    server.file("/choir.ics", "1", &calendar(&event));
    let mut admin = home.admin();
    let url = server.url("/choir.ics");
    admin.ask(json!({ "type": "add_calendar", "name": "Choir", "url": url }));
    support::eventually("the event is known", || {
        let today = admin.ask(json!({ "type": "today" }));
        (!today["events"].as_array().unwrap().is_empty()).then_some(())
    });
    for question in ["Any post?", "What is for dinner?", "Is it cold?", "Bins?"] {
        for _ in 0..2 {
            admin.ask(json!({ "type": "chat", "message": question }));
        }
    }
    admin.send(&json!({ "type": "chat", "message": "run it" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    let rows = "[...document.querySelectorAll('.today > li')].map((one) => one.innerText)";
    page.until(&format!(
        "{rows}.some((one) => one.includes('Choir practice') && one.includes('All day'))"
    ));
    page.until(&format!(
        "{rows}.some((one) => one.includes('Waits for you'))"
    ));
    page.until("document.querySelectorAll('.suggestions button').length === 3");
    page.evaluate("[...document.querySelectorAll('.today a')].find((one) => one.textContent.includes('Waits for you')).click()");
    page.until("document.querySelector('.approval')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_model_is_chosen_in_the_composer_by_whoever_may() {
    let model = Model::saying("fine");
    let home = Home::start(model.config_with(json!({
        "models": ["larger"],
    })));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "user");
    let shown = "document.querySelector('.models:not([hidden])')?.value";
    page.until(&format!("{shown} === 'scripted'"));
    choose(&mut page, ".models", "larger");
    page.until("document.querySelector('.top .model').textContent === 'larger'");
    look(&mut page, "models");
    say(&mut page, "hello");
    until_last_reply(&mut page, "fine");
    // The conversation keeps it, also after a reload.
    page.reload();
    page.until(&format!("{shown} === 'larger'"));
    say(&mut page, "again");
    page.until("document.querySelectorAll('[role=log] .assistant').length === 2");
    choose(&mut page, ".models", "scripted");
    page.until("document.querySelector('.top .model').textContent === 'scripted'");
    say(&mut page, "and now?");
    page.until("document.querySelectorAll('[role=log] .assistant').length === 3");
    let asked = model.requests();
    let asked: Vec<&str> = asked
        .iter()
        .map(|one| one["model"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["larger", "larger", "scripted"]);
    check(&page, &home);

    // Who is limited is offered none.
    let limits =
        json!({ "type": "set_limits", "name": "user", "limits": { "instructions": "Be kind." } });
    home.admin().ask(limits);
    page.reload();
    page.until("document.querySelector('.composer textarea:enabled')");
    assert_eq!(
        page.evaluate("document.querySelector('.models').hidden"),
        true
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_theme_is_chosen_and_kept() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.scheme("light");
    sign_in(&mut page, &home);
    let is_dark = "getComputedStyle(document.body).backgroundColor === 'rgb(25, 21, 19)' && getComputedStyle(document.documentElement).colorScheme === 'dark' && matchMedia([...document.querySelectorAll('meta[name=theme-color]')].at(-1).media).matches";
    assert_eq!(page.evaluate(is_dark), false);
    go(&mut page, "account");
    choose(&mut page, "[aria-label=Theme]", "dark");
    page.until(is_dark);
    page.reload();
    page.until(&format!(
        "document.querySelector('[aria-label=Theme]') && {is_dark}"
    ));
    choose(&mut page, "[aria-label=Theme]", "light");
    page.scheme("dark");
    page.until(&format!("!({is_dark})"));
    choose(&mut page, "[aria-label=Theme]", "system");
    page.until("getComputedStyle(document.body).backgroundColor === 'rgb(25, 21, 19)'");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_pdf_shows_the_text_that_the_assistant_reads() {
    if let Some(obstacle) = agent::tools::pdf_obstacle() {
        return base::testing::skipped(obstacle);
    }
    let model = Model::saying("62 euros");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    helpers(&mut page);
    let pdf = STANDARD.encode(support::pdf::letter("Your bill is 62 EUR"));
    page.evaluate(&format!(
        "drop(new File([Uint8Array.from(atob('{pdf}'), (letter) => letter.charCodeAt(0))], 'bill.pdf', {{ type: 'application/pdf' }}))"
    ));
    page.until(READY);
    say(&mut page, "How much?");
    until_last_reply(&mut page, "62 euros");
    page.click("[role=log] .file[aria-label^='Show bill.pdf']");
    page.until(
        "document.querySelector('.viewer pre')?.textContent === '[page 1]\\nYour bill is 62 EUR'",
    );
    page.until("document.querySelector('.viewer [aria-label=Download]')");
    page.screenshot("pdf");
    page.press("Escape", 0);
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_picture_of_a_tool_is_seen_in_the_reply() {
    let model = Model::acting(vec![
        Act::call("mcp_camera_look", json!({})),
        Act::say("A hearth."),
    ]);
    let mut home = Home::start(model.config());
    home.stop();
    let script = include_str!("../data/mcp_camera.sh");
    let picture = include_bytes!("../../src/hearth/web/page/icon.png");
    let path = home.folder.path().join("camera.sh");
    let script = script.replace("iVBORw0KGgoAAAANSUhEUg==", &STANDARD.encode(picture));
    std::fs::write(&path, script).unwrap();
    let notes = home.folder.path().join("notes");
    let servers =
        json!({ "camera": { "command": "sh", "args": [path], "env": { "STUB_NOTES": notes } } });
    write_config(
        home.folder.path(),
        model.config_with(json!({ "mcp_servers": servers })),
    );
    home.restart();
    let mut admin = home.admin();
    support::eventually("the camera is there", || {
        let listed = admin.ask(json!({ "type": "list_tools" })).to_string();
        listed.contains("mcp_camera_look").then_some(())
    });
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "what do you see?");
    until_last_reply(&mut page, "A hearth.");
    // As large as it is, not cut to a small square.
    let shown = "document.querySelector('[role=log] .assistant .thumbnail img')";
    page.until(&format!(
        "{shown}?.naturalWidth > 0 && {shown}.width === {shown}.naturalWidth"
    ));
    page.screenshot("tool-picture");
    check(&page, &home);
}

/// The steps after the first one: the button that leads there from the one before without doing it,
/// the heading, and the places of a model to choose.
pub const STEPS: [(&str, &str, &[&str]); 4] = [
    ("Skip", "Which model answers?", &["network", "account"]),
    ("Skip", "Who else lives here?", &[]),
    ("Skip", "Where do backups go?", &[]),
    ("Next", "Hearth on your phone", &[]),
];

/// A household in which nobody but an admin has signed in.
pub fn new_home() -> Home {
    let home = Home::offline();
    let mut admin = home.admin();
    for name in ["user", "viewer"] {
        admin.ask(json!({ "type": "remove_user", "name": name }));
    }
    home
}

/// Signs the admin in for the first time.
pub fn visit_first(page: &mut Page, home: &Home) {
    page.open(&address(home));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until("document.querySelector('.guide h2')");
}

/// Goes on from a step of the guide to the one with this heading.
pub fn go_on(page: &mut Page, label: &str, heading: &str) {
    page.evaluate(&format!(
        "[...document.querySelectorAll('.guide > .end button')].find((one) => one.textContent === '{label}').click()"
    ));
    page.until(&format!(
        "document.querySelector('.guide h2')?.textContent === '{heading}' && document.activeElement.matches('h2')"
    ));
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_first_visit_goes_through_the_first_steps() {
    let model = Model::saying("fine");
    model.says_of_itself(200, r#"{"object":"list","data":[{"id":"scripted"}]}"#);
    let home = new_home();
    let browser = Chromium::start();
    let mut page = browser.page();
    visit_first(&mut page, &home);
    look(&mut page, "guide-name");
    page.fill(".guide input", "Oma Trude");
    go_on(&mut page, "Next", "Which model answers?");
    page.until("document.querySelector('.place-of-model').textContent && !document.querySelector('.place-of-model').textContent.includes('Looking')");
    look(&mut page, "guide-model");
    page.click("[name=where][value=network]");
    let config = model.config();
    let url = config["base_url"].as_str().unwrap();
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    page.fill(".place-of-model input", host);
    page.press("Enter", 0);
    page.until(&format!(
        "document.querySelector('.found-server h3')?.textContent === 'The model server at {url}'"
    ));
    page.click(".taking .primary");
    page.until("document.querySelector('.taking .good')");
    page.until("document.querySelector('.card > .good').textContent === 'Connected: scripted'");
    look(&mut page, "guide-model-found");
    let config = home.admin().ask(json!({ "type": "get_config" }));
    assert_eq!(
        (&config["model"], &config["base_url"]),
        (&json!("scripted"), &json!(url))
    );
    page.click("[name=where][value=account]");
    page.until("document.querySelector('.place-of-model select')");
    look(&mut page, "guide-account");

    go_on(&mut page, "Next", "Who else lives here?");
    page.fill(".guide input[type=text]", "grace");
    page.click(".guide form [type=submit]");
    page.until("document.querySelector('dialog[open] svg path')");
    page.click("dialog [type=submit]");
    page.until("document.querySelector('.guide').textContent.includes('Oma Trude, grace')");
    look(&mut page, "guide-family");
    go_on(&mut page, "Skip", "Where do backups go?");
    let folder = home.folder.path().join("backups");
    page.until(&format!(
        "document.querySelector('.guide code').textContent === {}",
        json!(folder)
    ));
    look(&mut page, "guide-backups");
    go_on(&mut page, "Next", "Hearth on your phone");
    page.click(".guide .card button");
    page.until("document.querySelector('dialog[open] svg path')");
    page.press("Escape", 0);
    page.until("!document.querySelector('dialog')");
    look(&mut page, "guide-phones");
    page.evaluate("[...document.querySelectorAll('.guide button')].find((one) => one.textContent === 'Done').click()");
    page.until("document.querySelector('.welcome h2')?.textContent.endsWith('Oma Trude')");
    say(&mut page, "hello");
    until_last_reply(&mut page, "fine");

    // It does not come again by itself, and is found again.
    super::sign_out(&mut page);
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until("document.querySelector('.welcome') && !document.querySelector('.composer textarea').disabled");
    go(&mut page, "manage");
    page.click(".page .rows a[href='#/guide']");
    page.until("document.querySelector('.guide h2')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn going_on_takes_what_was_filled_in_and_a_greeting_in_a_terminal_is_no_step() {
    let model = Model::saying("fine");
    model.says_of_itself(200, r#"{"object":"list","data":[{"id":"scripted"}]}"#);
    let home = new_home();
    home.admin()
        .ask(json!({ "type": "chat", "message": "hello" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    visit_first(&mut page, &home);
    go_on(&mut page, "Next", "Which model answers?");
    page.click("[name=where][value=network]");
    let config = model.config();
    let url = config["base_url"].as_str().unwrap();
    page.fill(".place-of-model input", url);
    page.press("Enter", 0);
    page.until("document.querySelector('.taking')");
    go_on(&mut page, "Next", "Who else lives here?");
    let config = home.admin().ask(json!({ "type": "get_config" }));
    assert_eq!(config["model"], "scripted");
    page.fill(".guide input[type=text]", "grace");
    press(&mut page, "Next");
    page.until("document.querySelector('dialog[open] svg path')");
    // The link ends tomorrow, at the same time of day.
    let until = "(({ textContent, title }) => textContent === title)(document.querySelector('dialog time'))";
    assert_eq!(page.evaluate(until), true);
    page.click("dialog [type=submit]");
    page.until(
        "document.querySelector('.guide').textContent.includes('Here already: admin, grace')",
    );
    go_on(&mut page, "Next", "Where do backups go?");
    // Nothing there is filled in, so nothing is skipped.
    let buttons =
        "[...document.querySelectorAll('.guide > .end button')].map((one) => one.textContent)";
    assert_eq!(page.evaluate(buttons), json!(["Back", "Next"]));
    check(&page, &home);
}
