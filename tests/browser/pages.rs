//! The pages beside the chat, and what happens while one looks at them.

use serde_json::json;

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::files::Files;
use super::forms::press;
use super::{check, say, sign_in, until_last_reply};
use support::home::{Home, PASSWORD, TemporaryDirectory};
use support::http::post;
use support::mcp_http::McpServer;
use support::model::{Act, Model, streamed};

/// All pages that an admin has.
pub const PAGES: [&str; 14] = [
    "guide",
    "manage",
    "settings",
    "tools",
    "lists",
    "memories",
    "reminders",
    "calendars",
    "account",
    "people",
    "webhooks",
    "upkeep",
    "status",
    "help",
];

/// Goes to a page and waits until it is there.
pub fn go(page: &mut Page, name: &str) {
    page.evaluate(&format!("location.hash = '#/{name}'"));
    page.until(&format!(
        "document.querySelector('.place').dataset.page === '{name}' \
         && document.querySelector('.page') && !document.querySelector('.page').textContent.includes('Loading')"
    ));
}

/// How a page looks on a phone and on a large screen, by day and by night, and
/// that nothing of it stands out at the side.
pub fn look(page: &mut Page, name: &str) {
    for (size, width, height) in [("phone", 390, 844), ("desktop", 1280, 800)] {
        for scheme in ["light", "dark"] {
            page.size(width, height);
            page.scheme(scheme);
            page.until(&format!("innerWidth === {width}"));
            // The menu slides away, and the colours are those of the scheme.
            page.until("['hidden', 'visible'][Number(innerWidth > 600)] === getComputedStyle(document.querySelector('.side')).visibility");
            let over = page.evaluate(
                "[...document.querySelectorAll('.main *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('pre, .table, .unseen')).map((one) => one.outerHTML.slice(0, 200))",
            );
            assert_eq!(over, json!([]), "{name} on a {size}");
            page.screenshot(&format!("{name}-{size}-{scheme}"));
        }
    }
    page.scheme("light");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn settings_are_saved() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.evaluate("location.hash = '#/settings'");
    page.fill("[name=system_prompt]", "Be a cat.");
    page.click("[name=permission_mode][value=deny]");
    page.click(".save button");
    page.until("document.querySelector('.save .good')");
    page.screenshot("settings");
    // Who sees new conversations: nobody else, until an admin says otherwise.
    let chat = json!({ "type": "chat", "message": "hello" });
    let audience = |home: &Home| {
        let mut user = home.websocket(&home.tokens.user);
        user.ask(chat.clone());
        user.ask(json!({ "type": "list_conversations" }))["conversations"][0]["audience"].clone()
    };
    page.until("document.querySelector('[name=conversations][value=private]').checked");
    assert_eq!(audience(&home), "private");
    page.click("[name=conversations][value=household]");
    page.click(".save button");
    page.until("!document.querySelector('.save button').disabled");
    page.until("document.querySelector('.save .good')");
    assert_eq!(audience(&home), "household");
    let config = home.admin().ask(json!({ "type": "get_config" }));
    assert_eq!(
        (&config["system_prompt"], &config["permission_mode"]),
        (&json!("Be a cat."), &json!("deny"))
    );
    for name in ["tools", "memories", "webhooks"] {
        go(&mut page, name);
        look(&mut page, name);
    }
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn people_and_tokens_come_and_go() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.evaluate("location.hash = '#/people'");
    let rows = |card: usize, text: &str| {
        format!(
            "[...document.querySelectorAll('.page .card')][{card}]?.querySelector('.rows').textContent.includes('{text}')"
        )
    };
    page.until(&rows(0, "viewer"));
    look(&mut page, "people");
    assert_eq!(
        page.evaluate("document.querySelectorAll('.card:first-child form').length"),
        1
    );
    let add = |page: &mut Page| {
        page.fill(".card:first-child form input[type=text]", "grace");
        page.fill(
            ".card:first-child form input[type=password]",
            "correct horse",
        );
        page.click(".card:first-child form button[type=submit]");
    };
    add(&mut page);
    page.until(&rows(0, "grace"));
    page.until("document.querySelector('.card:first-child form input[type=text]').value === ''");
    let body = json!({ "username": "grace", "password": "correct horse" });
    assert_eq!(post(home.address(), "/auth", &[], &body).status, 200);
    // What the server says is shown as a sentence.
    add(&mut page);
    page.until(
        "document.querySelector('.toast')?.textContent === 'There is already a user \"grace\".'",
    );
    page.click("[aria-label='Remove grace']");
    page.click("dialog button[type=submit]");
    page.until(&format!("!({})", rows(0, "grace")));

    page.fill(".card:last-child input[type=text]", "display");
    page.click(".card:last-child button[type=submit]");
    page.until(&rows(1, "display"));
    let token = page.evaluate("document.querySelector('.card:last-child code').textContent");
    let mut display = home.websocket(token.as_str().unwrap());
    page.click("[aria-label='Revoke display']");
    page.click("dialog button[type=submit]");
    page.until(&format!("!({})", rows(1, "display")));
    assert_eq!(display.next(), Err(support::client::End::Code(1008)));
    // What goes with a person is said before.
    home.websocket(&home.tokens.user)
        .ask(json!({ "type": "add_memory", "content": "the bins go out on Monday" }));
    page.click("[aria-label='Remove user']");
    page.until(
        "document.querySelector('dialog p')?.textContent === 'Deleted for good: Memories (1) and Tokens (1).'",
    );
    page.click("dialog .plain");
    page.until("!document.querySelector('dialog')");
    // The last admin stays, and the page says so.
    page.click("[aria-label='Remove admin']");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('.toast')?.textContent.includes('last admin')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_stopped_reply_is_no_error_also_after_a_reload() {
    let model = Model::acting(vec![Act::Stall("never".into()), Act::say("and on")]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "think for an hour");
    model.wait_for_requests(1);
    page.until("document.querySelector('.send').getAttribute('aria-label') === 'Stop'");
    page.click(".send");
    let stopped = "document.querySelector('.live .state')?.textContent === 'Stopped.Try again'";
    page.until(stopped);
    page.reload();
    page.until(stopped);
    assert!(
        page.evaluate("document.querySelector('.failure')")
            .is_null()
    );
    look(&mut page, "stopped");
    say(&mut page, "go on");
    until_last_reply(&mut page, "and on");
    page.until("!document.querySelector('.live li')");
    check(&page, &home);
}

/// What was said before the stop is in the conversation, in its place.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_was_said_before_a_stop_stays() {
    let whole = "One, two, three, four, five, six, seven, eight, nine, ten, eleven.";
    let model = Model::acting(vec![Act::Pause(whole.into()), Act::say("and on")]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "count");
    page.until("document.querySelector('.live .text')?.textContent.includes('two')");
    page.press("Escape", 0);
    let kept = "[...document.querySelectorAll('.message.assistant')]
        .filter((row) => row.textContent.includes('two')).length === 1
        && document.querySelector('.cut')?.textContent.includes('not finished')";
    page.until(kept);
    model.release();
    page.reload();
    page.until(kept);
    say(&mut page, "go on");
    until_last_reply(&mut page, "and on");
    page.until("[...document.querySelectorAll('.message')].length === 4");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_reply_that_was_cut_can_be_continued() {
    let model = Model::start(|_, number| match number {
        0 => Act::Raw(streamed(
            &json!({ "role": "assistant", "content": "Once upon a time" }),
            "length",
        )),
        _ => Act::say("there was a hearth."),
    });
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "tell me a story");
    page.until("document.querySelector('.cut')?.textContent.includes('reached its limit')");
    page.reload();
    page.until("document.querySelector('.cut button')?.textContent === 'Continue'");
    look(&mut page, "cut");
    page.click(".cut button");
    until_last_reply(&mut page, "there was a hearth.");
    let told = model.requests()[1]["messages"].to_string();
    assert!(
        told.contains("[This reply was cut off: the model reached its limit"),
        "{told}"
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_others_rename_and_delete_changes_at_once() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    page.until("location.hash.startsWith('#/c/') && document.title === 'hello · Hearth'");
    let id = page.evaluate("location.hash.slice(4)");
    let mut other = home.admin();
    other
        .ask(json!({ "type": "rename_conversation", "conversation_id": id, "title": "Greetings" }));
    page.until("document.querySelector('.top h1').textContent === 'Greetings'");
    page.until("document.querySelector('.list .title').textContent === 'Greetings'");
    other.ask(json!({ "type": "delete_conversation", "conversation_id": id }));
    page.until("document.querySelector('.note')?.textContent === 'This conversation was deleted.'");
    page.until("!document.querySelector('.list .title')");
    page.until("document.querySelector('.composer textarea').disabled");
    look(&mut page, "deleted");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn reminders_are_paused_and_deleted() {
    let home = Home::offline();
    let mut admin = home.admin();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "reminders");
    page.until("document.querySelector('.rows').textContent === 'Nothing is scheduled.'");
    for (prompt, when) in [
        (
            "Say that the bins go out tonight",
            json!({ "at": "2030-12-24T18:00" }),
        ),
        (
            "Tell the weather of today and what to wear for it",
            json!({ "cron": "30 7 * * mon-fri" }),
        ),
    ] {
        let mut request = json!({ "type": "create_schedule", "prompt": prompt });
        for (name, value) in when.as_object().unwrap() {
            request[name] = value.clone();
        }
        admin.ask(request);
    }
    go(&mut page, "tools");
    go(&mut page, "reminders");
    page.until("document.querySelectorAll('.rows > li').length === 2");
    page.click("[aria-label='Pause: Say that the bins go out tonight']");
    page.until("document.querySelector('.rows').textContent.includes('Paused')");
    look(&mut page, "reminders");
    let schedules = admin.ask(json!({ "type": "list_schedules" }))["schedules"].clone();
    let is_paused = |prompt: &str| {
        let schedules = schedules.as_array().unwrap();
        let found = schedules.iter().find(|one| one["prompt"] == prompt);
        found.unwrap()["paused"] == true
    };
    assert!(is_paused("Say that the bins go out tonight"));
    assert!(!is_paused(
        "Tell the weather of today and what to wear for it"
    ));
    page.click("[aria-label='Resume: Say that the bins go out tonight']");
    page.until("!document.querySelector('.rows').textContent.includes('Paused')");
    page.click("[aria-label='Delete: Say that the bins go out tonight']");
    page.click("dialog button[type=submit]");
    page.until("document.querySelectorAll('.rows > li').length === 1");
    let left = admin.ask(json!({ "type": "list_schedules" }))["schedules"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1);
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_connection_is_tested_and_the_models_are_listed() {
    // A provider that lists its models.
    let folder = TemporaryDirectory::new();
    std::fs::create_dir(folder.path().join("v1")).unwrap();
    let list = json!({ "data": [{ "id": "small" }, { "id": "large" }] });
    std::fs::write(folder.path().join("v1/models"), list.to_string()).unwrap();
    let files = Files::serve(folder.path().to_owned());
    let url = format!("http://{}/hearth/v1", files.address);
    let home = Home::start(json!({
        "provider": "openai-compatible", "base_url": url, "model": "small",
    }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "settings");
    let test = "[...document.querySelectorAll('.card button')].find((one) => one.textContent === 'Test the connection')";
    page.evaluate(&format!("{test}.click()"));
    page.until(
        "document.querySelector('.card .good')?.textContent.includes('has the model \"small\"')",
    );
    assert_eq!(
        page.evaluate("[...document.querySelectorAll('label:not([hidden]) select option')].map((one) => one.value).filter((one) => ['small', 'large'].includes(one))"),
        json!(["small", "large"])
    );
    page.click(".persons [value=large]");
    look(&mut page, "settings-tested");
    press(&mut page, "Save the choice");
    let models = || home.admin().ask(json!({ "type": "get_config" }))["models"].clone();
    support::eventually("they may be chosen", || {
        (models() == json!(["large"])).then_some(())
    });
    // Nobody listens there: it is said so, and nothing is saved by the test.
    let away = format!("http://127.0.0.1:{}/v1", support::program::free_port());
    page.fill("[type=url]", &away);
    page.until("!document.querySelector('.card .good')?.textContent");
    page.evaluate(&format!("{test}.click()"));
    page.until("document.querySelector('.card .problem')?.textContent.includes('127.0.0.1')");
    let address = home.admin().ask(json!({ "type": "get_config" }))["base_url"].clone();
    assert_ne!(address, json!(away));
    // Saving says so, too.
    page.click(".save button");
    page.until("document.querySelector('.save .good')");
    page.until("document.querySelector('.card .problem')?.textContent.includes('127.0.0.1')");
    // What was said before is not said of something else.
    page.fill("[type=url]", "http://127.0.0.1:1/v1");
    page.until("!document.querySelector('.save .good')?.textContent && !document.querySelector('.card .problem')?.textContent");
    // Another provider has its own address, and the first of its models until one is chosen.
    let choose = |page: &mut Page, name: &str| {
        page.evaluate(&format!("(() => {{ const select = document.querySelector('.page select'); select.value = '{name}'; select.dispatchEvent(new Event('change')); }})()"));
    };
    choose(&mut page, "ollama");
    page.until("document.querySelector('[type=url]').value === '' && document.querySelector('[type=url]').placeholder === 'http://127.0.0.1:11434'");
    choose(&mut page, "openai-compatible");
    page.until(&format!(
        "document.querySelector('[type=url]').value === {}",
        json!(away)
    ));
    check(&page, &home);
}

/// What only the owner of the machine may do is a line to type, which is copied whole, also
/// over plain http, where browsers have no clipboard for pages.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_lines_for_the_owner_are_copied_as_they_are_to_be_typed() {
    let home = Home::offline();
    let browser = Chromium::start();
    for host in ["127.0.0.1", "hearth.lan"] {
        let mut page = browser.page();
        let origin = format!("http://{host}:{}", home.address().port());
        let clipboard = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        if host == "127.0.0.1" {
            page.allow(&origin, &clipboard);
        }
        page.call(
            "Emulation.setFocusEmulationEnabled",
            json!({ "enabled": true }),
        );
        page.open(&origin);
        page.fill("[name=username]", "admin");
        page.fill("[name=password]", PASSWORD);
        page.click("button[type=submit]");
        page.until("document.querySelector('.welcome')");
        assert_eq!(
            page.evaluate("isSecureContext && !!navigator.clipboard"),
            host == "127.0.0.1"
        );
        page.evaluate("document.addEventListener('copy', () => { window.copied = document.getSelection().toString() || document.activeElement.value; })");
        let copied = |page: &mut Page, place: &str| {
            page.evaluate("window.copied = null");
            let button = format!("document.querySelectorAll('{place} .copy')");
            let shown = page.evaluate(&format!(
                "{button}[0].closest('.code').querySelector('pre').textContent"
            ));
            // Browsers copy for a hand alone.
            let at = page.evaluate(&format!(
                "(() => {{ {button}[0].scrollIntoView({{ block: 'center' }}); const {{ x, y, width, height }} = {button}[0].getBoundingClientRect(); return [x + width / 2, y + height / 2]; }})()"
            ));
            for kind in ["mousePressed", "mouseReleased"] {
                page.call("Input.dispatchMouseEvent", json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 }));
            }
            page.until(&format!("{button}[0].textContent !== 'Copy'"));
            let label = page.evaluate(&format!("{button}[0].textContent"));
            assert_eq!(label, "Copied", "at {host}");
            let read = match host {
                "127.0.0.1" => "navigator.clipboard.readText()",
                _ => "window.copied",
            };
            assert_eq!(page.evaluate(read), shown, "at {host}");
            shown.as_str().unwrap().to_owned()
        };
        go(&mut page, "tools");
        assert_eq!(copied(&mut page, ".page"), "hearth skill add ./skill");
        go(&mut page, "upkeep");
        // Two lines, one below the other.
        page.evaluate("document.querySelector('.page .code').remove()");
        assert_eq!(
            copied(&mut page, ".page"),
            "hearth backup --new-key backup.key\nhearth config set backup.encrypt_to age1…"
        );
        let is_wrong = |error: &&String| !error.contains("Cross-Origin-Opener-Policy");
        assert_eq!(page.errors.iter().find(is_wrong), None);
    }
}

/// Where the tools do not fit into a small window, the page says which are found on demand.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_tools_that_are_left_out_of_a_small_window_are_marked() {
    let server = McpServer::with_tools((0..45).map(|number| format!("kitchen_job_{number}")));
    let model = Model::saying("fine");
    let headers = json!({ "Authorization": "Bearer open sesame" });
    let home = Home::start(model.config_with(json!({
        "context_tokens": 8192,
        "mcp_servers": { "web": { "url": server.url(), "headers": headers } },
    })));
    let mut admin = home.admin();
    let mut left_out = || {
        let tools = admin.ask(json!({ "type": "list_tools" }))["tools"].take();
        let tools = tools.as_array().unwrap().iter();
        let left_out = tools.filter(|tool| tool["is_left_out"] == true);
        let left_out = left_out.map(|tool| tool["name"].as_str().unwrap().to_owned());
        left_out.collect::<Vec<String>>()
    };
    support::eventually("the server's tools are there", || {
        (!left_out().is_empty()).then_some(())
    });
    let notice = "[...document.querySelectorAll('.page > p.quiet')].some((one) => one.textContent.startsWith('Together they take too much of the model’s context window.'))";
    let browser = Chromium::start();
    for name in ["admin", "user"] {
        let mut page = browser.page();
        sign_in_as(&mut page, &home, name);
        page.until("document.querySelector('.welcome')");
        go(&mut page, "tools");
        page.until(notice);
        let marked = page.evaluate("[...document.querySelectorAll('.page .rows > li')].filter((one) => [...one.querySelectorAll('.badge')].some((badge) => badge.textContent === 'found on demand')).map((one) => one.querySelector('strong').title)");
        assert_eq!(marked, json!(left_out()), "{name}");
        if name == "admin" {
            look(&mut page, "tools-left-out");
        }
        check(&page, &home);
    }
    // With room for all, nothing is said.
    admin.ask(json!({ "type": "update_config", "config": { "context_tokens": 200_000 } }));
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "tools");
    assert_eq!(page.evaluate(notice), false);
    assert!(
        !page
            .evaluate("document.querySelector('.page').textContent")
            .to_string()
            .contains("found on demand")
    );
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn lists_are_kept_by_mouse_and_keyboard_and_change_live() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "lists");
    page.until("document.querySelector('.page').textContent.includes('There are no lists yet')");
    page.click(".page .primary");
    page.fill("dialog input", "shopping");
    page.click("dialog button[type=submit]");
    page.until("document.activeElement?.getAttribute('aria-label') === 'Add an item'");
    let shown = "[...document.querySelectorAll('.page .rows > li')].map((row) => row.textContent + (row.querySelector('input').checked ? ' x' : '')).join()";
    for item in ["milk", "green tea"] {
        page.fill(".page form input", item);
        page.press("Enter", 0);
        page.until(&format!("({shown}).endsWith('{item}')"));
    }
    // Somebody else adds and ticks off.
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({
        "type": "update_list", "list": "shopping", "add": ["<b>bread</b>"], "check": ["milk"],
    }));
    page.until(&format!("({shown}) === 'milk x,green tea,<b>bread</b>'"));
    // With the keyboard alone, which stays where it was.
    page.evaluate("document.querySelectorAll('.page .rows input')[1].focus()");
    page.press(" ", 0);
    page.until(&format!("({shown}) === 'milk x,green tea x,<b>bread</b>'"));
    let list = json!({ "type": "get_list", "list": "shopping" });
    support::eventually("it is ticked off for all", || {
        (user.ask(list.clone())["items"][1]["checked"] == true).then_some(())
    });
    let focused = "document.activeElement === document.querySelectorAll('.page .rows input')[1]";
    assert_eq!(page.evaluate(focused), true);
    user.ask(json!({ "type": "update_list", "list": "to-do", "add": ["call the bank"] }));
    page.until("document.querySelectorAll('.page [aria-label=Lists] button').length === 2");
    look(&mut page, "lists");
    page.click("[aria-label='Remove: green tea']");
    page.until(&format!("({shown}) === 'milk x,<b>bread</b>'"));
    page.evaluate("[...document.querySelectorAll('.page button')].find((one) => one.textContent === 'Remove ticked').click()");
    page.until(&format!("({shown}) === '<b>bread</b>'"));
    page.click("[data-list='to-do']");
    page.until(&format!("({shown}) === 'call the bank'"));
    user.ask(json!({ "type": "delete_list", "list": "to-do" }));
    page.until(&format!("({shown}) === '<b>bread</b>'"));
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_admin_sees_what_was_used_by_whom_and_what_it_cost() {
    let model = Model::start(|_, _| {
        let usage = json!({ "prompt_tokens": 1_000, "completion_tokens": 100,
                            "prompt_tokens_details": { "cached_tokens": 400 } });
        Act::counted("Hello.", &usage)
    });
    let prices = json!({ "m": { "input": 2, "cached": 0.5, "output": 10 } });
    let home = Home::start(model.config_with(json!({ "model": "m", "prices": prices })));
    home.admin().chat("hello");
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "status");
    let cells = "[...document.querySelectorAll('.page td')].slice(1).map((one) => one.textContent)";
    let shown = page.evaluate(cells);
    let row = json!(["admin", "reply", "m", "1,000", "400", "100", "0.0024"]);
    assert_eq!(shown, row);
    // The month is in words, in one line on a phone too.
    page.size(390, 844);
    page.until("innerWidth === 390");
    let month = page.evaluate(
        "(() => { const cell = document.querySelector('.page td'); const range = document.createRange(); range.selectNodeContents(cell); return [cell.textContent === new Intl.DateTimeFormat(navigator.language, { month: 'short', year: 'numeric' }).format(), range.getClientRects().length]; })()",
    );
    assert_eq!(month, json!([true, 1]));
    look(&mut page, "usage");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_status_shows_relays_and_backups() {
    let relay = super::relayed::start(0, |_| {});
    // Nobody listens there.
    let away = support::program::free_port();
    let home = Home::start(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        super::relayed::channel("near", relay.local_addr().port()),
        super::relayed::channel("far", away),
    ] }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    super::relayed::machine_id(&home);
    support::eventually("the other link waits", || {
        let info = home.admin().ask(json!({ "type": "server_info" }));
        info["relays"][1]["last_error"].is_string().then_some(())
    });
    go(&mut page, "status");
    let text = page.evaluate("document.querySelector('.page').innerText");
    let text = text.as_str().unwrap();
    for expected in [
        "linked",
        "0 connections through it",
        &away.to_string(),
        "Nightly backups",
        "The first will be made tonight",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    page.evaluate("document.querySelector('.page').scrollTop = 1e6");
    look(&mut page, "status");
    check(&page, &home);
    home.server();
    relay.stop();
}
