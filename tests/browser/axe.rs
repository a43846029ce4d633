//! Every screen under axe-core, the usual checker of accessibility. It is no part of the
//! project and comes from npm: where it cannot be installed, its checks are skipped.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::json;

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::pages::go;
use super::visit::{STEPS, go_on, new_home, visit_first};
use super::{LAST_REPLY, address, say, sign_in};
use support::home::{Home, PASSWORD};
use support::model::{Act, Model};
use support::peers::AXE;

const REPLY: &str = include_str!("rendering.md");

/// The checker, if it is there or can be installed.
pub fn axe_core() -> Option<&'static str> {
    static CHECKER: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let script = AXE.installed()?.join("node_modules/axe-core/axe.min.js");
        Some(fs::read_to_string(script).unwrap())
    };
    CHECKER.get_or_init(read).as_deref()
}

/// Nothing that axe-core finds, by day and by night, under a finger and on a large screen.
pub fn examine(page: &mut Page, axe: &str, place: &str) {
    println!("{place}");
    page.evaluate(&format!("{axe}; 0"));
    for (width, height) in [(390, 844), (1280, 800)] {
        let touch = json!({ "enabled": width < 600 });
        page.call("Emulation.setTouchEmulationEnabled", touch);
        for scheme in ["light", "dark"] {
            page.size(width, height);
            page.scheme(scheme);
            page.until(&format!("innerWidth === {width}"));
            let found = page.evaluate(
                "Promise.all(document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity).map((one) => one.finished.catch(() => {}))).then(() => axe.run()).then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.html.slice(0, 150)} ${node.failureSummary}`).join(' | ')}`))",
            );
            assert_eq!(found, json!([]), "{place}, {width}, {scheme}");
        }
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn axe_finds_nothing_on_any_screen() {
    let Some(axe) = axe_core() else { return };
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match (last["role"] == "tool", last["content"].as_str()) {
            (false, Some(text)) if text.contains("run") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            _ => Act::say(REPLY),
        }
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["tools"] = json!({ "run_command": { "enabled": true } });
    let home = Home::start(config);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "create_schedule", "prompt": "water", "at": "2030-12-24T18:00" }));
    admin.ask(json!({ "type": "update_list", "list": "shopping", "add": ["milk"] }));
    let browser = Chromium::start();
    let mut page = browser.page();
    // The checker is a script of no server.
    page.call("Page.setBypassCSP", json!({ "enabled": true }));
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    examine(&mut page, axe, "sign in");
    sign_in(&mut page, &home);
    examine(&mut page, axe, "welcome");
    page.click(".foot .menu-place > button");
    examine(&mut page, axe, "one's own menu");
    page.press("Escape", 0);
    say(&mut page, "tell me of the week");
    page.until("document.querySelector('[role=log] .assistant .footnotes')");
    page.until("document.querySelectorAll('[role=log] math').length === 4");
    examine(&mut page, axe, "chat");
    say(&mut page, "run it");
    page.until("document.querySelector('.approval')");
    examine(&mut page, axe, "approval");
    for name in super::pages::PAGES {
        go(&mut page, name);
        page.until("!document.querySelector('.page').textContent.includes('Loading')");
        examine(&mut page, axe, name);
    }
    go(&mut page, "people");
    page.click("[aria-label='Name and limits of user']");
    page.until("document.querySelector('dialog .persons')");
    examine(&mut page, axe, "limits");
    for (name, button) in [
        ("calendars", "Add a calendar"),
        ("memories", "Add a memory"),
        ("reminders", "New reminder or routine"),
    ] {
        page.evaluate("document.querySelector('dialog').close()");
        go(&mut page, name);
        super::forms::press(&mut page, button);
        page.until("document.querySelector('dialog form')");
        examine(&mut page, axe, button);
    }
}

/// The pages of those who are no admins.
const MEMBERS: [&str; 8] = [
    "lists",
    "reminders",
    "memories",
    "calendars",
    "tools",
    "status",
    "account",
    "help",
];

/// What others than admins see of each page is another page.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn axe_finds_nothing_for_a_person_a_child_and_a_guest() {
    let Some(axe) = axe_core() else { return };
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str() {
            _ if last["role"] == "tool" => Act::say("It is done."),
            Some(text) if text.contains("run") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            Some(text) if text.contains("fail") => Act::error(401, "", "no such key"),
            Some(text) if text.contains("think") => Act::say("<think>Perhaps.</think>Indeed."),
            _ => Act::say(REPLY),
        }
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tools": { "run_command": { "enabled": true } },
        "people": { "user": { "monthly_tokens": 1_000_000 } },
    })));
    let mut admin = home.admin();
    admin.ask(json!({ "type": "add_user", "name": "kid", "password": PASSWORD, "child": true }));
    admin.ask(json!({ "type": "update_list", "list": "shopping", "add": ["milk"] }));
    for name in ["user", "kid"] {
        let mut one = home.websocket(&home.token(name, &json!({})));
        one.ask(
            json!({ "type": "create_schedule", "say": "Feed the cat", "at": "2030-12-24T18:00" }),
        );
        one.ask(json!({ "type": "add_memory", "content": "Likes plums.", "audience": "private" }));
    }
    let browser = Chromium::start();
    for (name, pages) in [
        ("user", &MEMBERS[..]),
        ("kid", &MEMBERS),
        ("viewer", &["account", "lists"]),
    ] {
        let mut page = browser.page();
        page.call("Page.setBypassCSP", json!({ "enabled": true }));
        sign_in_as(&mut page, &home, name);
        page.until("document.querySelector('.welcome')");
        let look =
            |page: &mut Page, place: &str| examine(page, axe, &format!("{place} for {name}"));
        look(&mut page, "welcome");
        page.click(".foot .menu-place > button");
        look(&mut page, "one's own menu");
        page.press("Escape", 0);
        if name != "viewer" {
            say(&mut page, "tell me of the week");
            page.until("document.querySelector('[role=log] .assistant .footnotes')");
            say(&mut page, "think of it");
            page.click(".messages .assistant summary");
            look(&mut page, "thoughts and a reply");
            say(&mut page, "run it");
            page.until(&format!(
                "document.querySelector('.approval, .live .tools') || {LAST_REPLY}.textContent === 'It is done.'"
            ));
            look(&mut page, "a question");
            page.press("Escape", 0);
            page.until("document.querySelector('.send').getAttribute('aria-label') !== 'Stop'");
            say(&mut page, "and fail");
            page.until("document.querySelector('.failure')");
            look(&mut page, "a failure");
        }
        for place in pages {
            go(&mut page, place);
            look(&mut page, place);
        }
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn axe_finds_nothing_on_the_first_steps() {
    let Some(axe) = axe_core() else { return };
    let home = new_home();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.call("Page.setBypassCSP", json!({ "enabled": true }));
    visit_first(&mut page, &home);
    examine(&mut page, axe, "first step");
    for (button, heading, places) in STEPS {
        go_on(&mut page, button, heading);
        examine(&mut page, axe, heading);
        for place in places {
            page.click(&format!("[name=where][value={place}]"));
            page.until(
                "!document.querySelector('.place-of-model').textContent.includes('Looking')",
            );
            examine(&mut page, axe, place);
        }
    }
    page.click(".guide .card button");
    page.until("document.querySelector('dialog[open] svg path')");
    examine(&mut page, axe, "the address as a code");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn axe_finds_nothing_in_what_opens_and_goes_again() {
    let Some(axe) = axe_core() else { return };
    let model = Model::saying("fine");
    let mut home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    page.call("Page.setBypassCSP", json!({ "enabled": true }));
    page.open(&format!("{}help", address(&home)));
    page.until("document.querySelector('.handbook a')");
    examine(&mut page, axe, "help before signing in");
    let mut admin = home.admin();
    let url = address(&home);
    let invited = admin.ask(json!({ "type": "invite_user", "name": "grace", "url": url }));
    page.open(invited["link"].as_str().unwrap());
    page.until("document.querySelector('[autocomplete=new-password]')");
    examine(&mut page, axe, "invitation");
    page.open("about:blank");
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    super::until_last_reply(&mut page, "fine");
    page.click(".top button.audience");
    page.until("document.querySelector('dialog [name=audience]')");
    examine(&mut page, axe, "who sees a conversation");
    page.evaluate("document.querySelector('dialog').close()");
    page.click(".top .menu-place > button");
    examine(&mut page, axe, "menu of a conversation");
    page.press("Escape", 0);
    page.fill(".search input", "hello");
    page.until("document.querySelector('.found a')");
    examine(&mut page, axe, "search");
    page.size(390, 844);
    page.click(".open-side");
    page.until("document.querySelector('.side.shown')");
    examine(&mut page, axe, "menu on a phone");
    admin.ask(json!({ "type": "create_schedule", "say": "Water the plants", "at": "+5m" }));
    home.server().advance_clock(Duration::from_secs(360));
    page.until("document.querySelector('.told')");
    examine(&mut page, axe, "a reminder");
    home.stop();
    page.until("!document.querySelector('.banner').hidden");
    examine(&mut page, axe, "disconnected");
}
