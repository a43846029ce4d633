//! Twelve states of the page at two widths and in two languages, as files to look at:
//! target/browser/state-NAME-WIDTH.png, and state-de-NAME-WIDTH.png.
//! Nothing stands out at the side, everything has a name, and axe-core finds nothing.

use serde_json::json;

use super::axe::{axe_core, examine};
use super::chromium::{Chromium, Page};
use super::languages::word;
use super::looks::check_names;
use super::pages::go;
use super::visit::{fill_the_day, go_on, new_home, visit_first};
use super::{address, check_hosts, say, sign_in, until_last_reply};
use support::home::Home;
use support::model::{Act, Model};

const STORY: &str = "Once upon a time there was a hearth in a small house by the sea, and whoever came home sat down beside it.";
const REPLY: &str = include_str!("rendering.md");

fn state(page: &mut Page, axe: Option<&str>, name: &str) {
    check_names(page, name);
    let unloaded = page.evaluate("document.querySelector('.page > .failure')");
    assert!(unloaded.is_null(), "{name} is not there");
    if let Some(axe) = axe {
        examine(page, axe, name);
    }
    page.scheme("light");
    for width in [390, 1280] {
        page.size(width, if width == 390 { 844 } else { 800 });
        page.until(&format!("innerWidth === {width}"));
        page.until("!document.querySelector('.side') || getComputedStyle(document.querySelector('.side')).visibility === (innerWidth > 600 ? 'visible' : 'hidden')");
        let over = page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert!(over.as_i64().unwrap() <= 0, "{name} at {width}: {over}");
        let cut = page.evaluate("[...document.querySelectorAll('.pages a, .badge, button, h1, h2')].filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).textOverflow !== 'ellipsis').map((one) => one.outerHTML)");
        assert_eq!(cut, json!([]), "{name} at {width}");
        page.screenshot(&format!("state-{name}-{width}"));
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn twelve_states_are_seen_at_two_widths() {
    show_states("en", |page, name| state(page, axe_core(), name));
}

/// Longer words must fit, too. What the checker looks at is the same.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn twelve_states_are_seen_in_german() {
    show_states("de", |page, name| state(page, None, &format!("de-{name}")));
}

fn show_states(language: &str, state: impl Fn(&mut Page, &str)) {
    let browser = Chromium::start_with(&[&format!("--accept-lang={language}")]);
    let mut page = browser.page();
    let word = |key| word(language, key);
    page.call("Accessibility.enable", json!({}));
    // The checker is a script of no server.
    page.call("Page.setBypassCSP", json!({ "enabled": true }));

    let new = new_home();
    page.open(&address(&new));
    page.until("document.querySelector('.sign-in form')");
    state(&mut page, "01-sign-in");
    visit_first(&mut page, &new);
    state(&mut page, "02-first-step");
    go_on(
        &mut page,
        &word("page.guide.skip"),
        &word("page.guide.model_title"),
    );
    let looking = word("page.guide.looking");
    page.until(&format!(
        "!document.querySelector('.place-of-model').textContent.includes('{looking}')"
    ));
    state(&mut page, "03-model-step");

    let model = Model::start(|request, number| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str() {
            _ if last["role"] == "tool" => Act::say("It is done."),
            Some(text) if text.contains("run") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            Some(text) if text.contains("slowly") => Act::Pause(STORY.into()),
            Some(text) if text.contains("fail") => Act::error(401, "", &number.to_string()),
            _ => Act::say(REPLY),
        }
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tools": { "run_command": { "enabled": true } },
    })));
    fill_the_day(&home);
    sign_in(&mut page, &home);
    page.until("document.querySelectorAll('.today > li').length === 3");
    page.evaluate("document.querySelector('.told')?.remove()");
    state(&mut page, "04-home");
    say(&mut page, "tell me of the week");
    page.until("document.querySelector('[role=log] .assistant .footnotes')");
    state(&mut page, "05-chat");
    say(&mut page, "run it");
    page.until("document.querySelector('.approval')");
    state(&mut page, "06-approval");
    page.click(".approval .primary");
    until_last_reply(&mut page, "It is done.");
    say(&mut page, "and fail");
    page.until("document.querySelector('.failure')");
    state(&mut page, "07-failure");
    say(&mut page, "tell me slowly");
    page.until("document.querySelector('.live .text')?.textContent.startsWith('Once')");
    state(&mut page, "08-writing");
    page.press("Escape", 0);
    for (number, name) in [
        (9, "lists"),
        (10, "reminders"),
        (11, "people"),
        (12, "account"),
    ] {
        go(&mut page, name);
        page.until("!document.querySelector('.page > p.quiet:only-child')");
        state(&mut page, &format!("{number:02}-{name}"));
    }
    check_hosts(&page, &[new.address(), home.address()]);
}
