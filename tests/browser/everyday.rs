//! What holds every day, for everybody: pages on a cold load, replies that go on, hits of the
//! search in sight, errors that say what to do.

use std::time::Instant;

use serde_json::{Value, json};

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::looks::check_names;
use super::pages::{PAGES, go, look};
use super::{QUIET_MOMENT, address, check, long_conversation, say, sign_in, until_last_reply};
use support::home::{Home, PASSWORD};
use support::model::{Act, Model};

/// Opens an address as a bookmark does.
fn open_cold(page: &mut Page, home: &Home, number: usize, hash: &str) {
    page.open(&format!("{}?{number}#/{hash}", address(home)));
    page.until(&format!("location.search === '?{number}'"));
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn every_page_opens_on_a_cold_load_for_every_role() {
    let home = Home::offline();
    home.admin()
        .ask(json!({ "type": "add_user", "name": "kid", "password": PASSWORD, "child": true }));
    for name in ["admin", "user", "kid", "viewer"] {
        let browser = Chromium::start();
        let mut page = browser.page();
        sign_in_as(&mut page, &home, name);
        for (number, opened) in PAGES.iter().enumerate() {
            // As another tab has it that does not know the role.
            page.evaluate("sessionStorage.removeItem('hearth.role')");
            open_cold(&mut page, &home, number, opened);
            page.until(&format!("document.querySelector('.place')?.dataset.page === '{opened}' && !document.querySelector('.page').textContent.includes('Loading')"));
            let text = page.evaluate("document.querySelector('.page').textContent");
            let text = text.as_str().unwrap();
            let is_for_admins = [
                "guide", "manage", "settings", "people", "webhooks", "upkeep",
            ]
            .contains(opened);
            let is_open = match name {
                "admin" => true,
                "viewer" => ["reminders", "account", "help"].contains(opened),
                _ => !is_for_admins,
            };
            assert_eq!(
                text == "Only admins can open this page. Ask admin.",
                !is_open,
                "{opened} for {name}: {text}"
            );
            let problem = page.evaluate("document.querySelector('.page > .failure')");
            assert!(problem.is_null(), "{opened} for {name}: {text}");
        }
        check(&page, &home);
    }
}

/// Keeps the sockets of a page, so that a test can end them.
const SOCKETS: &str = "window.sockets = []; window.WebSocket = class extends WebSocket { constructor(...all) { super(...all); sockets.push(this); } };";

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_reply_goes_on_after_a_reload_and_on_a_second_device() {
    let model = Model::acting(vec![Act::Pause(
        "the first half of a long reply, and the other half of it".into(),
    )]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": SOCKETS }),
    );
    sign_in(&mut page, &home);
    say(&mut page, "tell me");
    let half = "document.querySelector('.live .text')?.textContent.startsWith('the first half')";
    page.until(half);
    page.reload();
    page.until(half);
    // A phone that slept has lost its connection.
    page.until("sockets.length === 1 && sockets[0].readyState === 1");
    page.evaluate("sockets[0].close()");
    page.until("sockets.length === 2 && sockets[1].readyState === 1");
    page.until(half);
    let mut other = browser.page();
    sign_in(&mut other, &home);
    other.until("document.querySelector('.list a')");
    other.click(".list a");
    other.until(half);
    model.release();
    let whole = "the first half of a long reply, and the other half of it";
    for seen in [&mut page, &mut other] {
        until_last_reply(seen, whole);
        check(seen, &home);
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_found_message_is_in_sight_and_marked_at_once() {
    let mut home = Home::offline();
    home.stop();
    long_conversation(&home.folder, 2_500);
    home.restart();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    for (width, height) in [(1280, 800), (390, 844)] {
        page.size(width, height);
        let begun = Instant::now();
        let mut numbers = vec![3, 1200, 2497];
        while let Some(number) = numbers.pop() {
            page.evaluate("location.hash = '#/'");
            page.until("document.querySelector('.welcome')");
            if width < 600 {
                page.click(".open-side");
            }
            page.fill(".search input", &format!("\"question {number}\""));
            let link = format!(
                "[...document.querySelectorAll('.found a')].find((one) => one.querySelector('.snippet').textContent === 'question {number}')"
            );
            page.until(&link);
            let took = page.evaluate(&format!(
                "new Promise((resolve) => {{ const begun = performance.now(); {link}.click(); const look = () => {{ const row = document.querySelector('.sought'); const box = row?.getBoundingClientRect(); const edge = row?.closest('.scroller').getBoundingClientRect(); if (row && box.top >= edge.top && box.bottom <= edge.bottom) resolve(performance.now() - begun); else if (performance.now() - begun > 20000) resolve(-1); else requestAnimationFrame(look); }}; look(); }})"
            ));
            println!("question {number} at {width}: {took} ms");
            // The machine may be busy with other things: it gets time for a quiet moment.
            let took = took.as_f64().unwrap();
            assert!(took >= 0.0, "{number} is never in sight");
            if took >= 1000.0 {
                assert!(begun.elapsed() < QUIET_MOMENT, "{number}: {took} ms");
                numbers.push(number);
            }
            // It stays there while the rows around it get their heights.
            page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 0))))");
            let middle = page.evaluate("(() => { const box = document.querySelector('.sought').getBoundingClientRect(); const edge = document.querySelector('.scroller').getBoundingClientRect(); return box.top >= edge.top && box.bottom <= edge.bottom && document.querySelector('.sought .text').textContent; })()");
            assert_eq!(middle, format!("question {number}"));
        }
        page.screenshot(&format!("found-{width}"));
    }
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn five_thousand_messages_are_read_with_few_of_them_in_the_document() {
    let mut home = Home::offline();
    home.stop();
    let conversation = long_conversation(&home.folder, 2_500);
    home.restart();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.evaluate(&format!("location.hash = '#/c/{conversation}'"));
    until_last_reply(&mut page, "answer 2499 with some text");
    let begun = Instant::now();
    // Up to the first message, and down again, with the most nodes on the way.
    let read = |direction: i32, end: &str| {
        format!(
            "new Promise((resolve) => {{ let most = 0; const begun = performance.now(); const step = () => {{ const scroller = document.querySelector('.scroller'); scroller.scrollTop += {direction} * 1e6; most = Math.max(most, document.querySelectorAll('*').length); const texts = [...document.querySelectorAll('[role=log] .text')]; if ({end}) resolve(most); else if (performance.now() - begun > 25000) resolve(-most); else setTimeout(step, 20); }}; step(); }})"
        )
    };
    let up = read(-1, "texts[0].textContent === 'question 0'");
    let down = read(
        1,
        "texts.at(-1).textContent === 'answer 2499 with some text'",
    );
    for way in [up, down] {
        let mut most = -1;
        while most < 0 {
            most = page.evaluate(&way).as_i64().unwrap();
            assert!(most.abs() < 20_000, "{most} nodes");
            assert!(begun.elapsed().as_secs() < 240, "{most}");
        }
        println!("{most} nodes after {:?}", begun.elapsed());
    }
    let ordered = page.evaluate("(() => { const ids = [...document.querySelectorAll('[role=log] .message')].map((one) => one.dataset.id); return ids.length >= 50 && ids.every((id, place) => place === 0 || ids[place - 1] < id) })()");
    assert_eq!(ordered, true);
    // What is said at the beginning leads to the end.
    page.evaluate("document.querySelector('.scroller').scrollTop = 0");
    say(&mut page, "hello");
    page.until("[...document.querySelectorAll('[role=log] .person .text')].at(-1)?.textContent === 'hello'");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn titles_that_are_not_loaded_are_found() {
    let home = Home::offline();
    let mut admin = home.admin();
    for number in 0..60 {
        let chat = admin.ask(json!({ "type": "chat", "message": format!("**thing** {number}") }));
        if number == 0 {
            admin.ask(json!({
                "type": "rename_conversation", "conversation_id": chat["conversation_id"],
                "title": "Holidays in Lapland",
            }));
        }
    }
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.until("document.querySelectorAll('.list a').length === 50");
    page.fill(".search input", "lapland");
    page.until("document.querySelector('[aria-label=Conversations] ul[aria-label=Conversations]')?.textContent.includes('Holidays in Lapland')");
    page.click(".list a");
    page.until("document.querySelector('.top h1').textContent === 'Holidays in Lapland'");
    page.fill(".search input", "thing 17");
    page.until(
        "[...document.querySelectorAll('.snippet')].some((one) => one.textContent === 'thing 17')",
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn under_a_finger_everything_has_a_name_and_a_triangle() {
    let model = Model::saying("fine");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    page.call("Accessibility.enable", json!({}));
    page.call(
        "Emulation.setTouchEmulationEnabled",
        json!({ "enabled": true }),
    );
    page.size(390, 844);
    let flat = "[...document.querySelectorAll('summary')].filter((one) => { const style = getComputedStyle(one); return !(style.display === 'list-item' && style.listStyleType !== 'none') && getComputedStyle(one, '::after').content === 'none'; }).map((one) => one.outerHTML)";
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    assert_eq!(page.evaluate(flat), json!([]));
    page.screenshot("touch-sign-in");
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    page.click(".send");
    until_last_reply(&mut page, "fine");
    check_names(&mut page, "chat");
    assert_eq!(page.evaluate(flat), json!([]));
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn each_paragraph_has_the_direction_of_its_own_words() {
    let model = Model::saying("مرحبا بالعالم\n\nhello world\n\n- שלום\n- עולם");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "مرحبا");
    page.until("document.querySelector('[role=log] .assistant .text ul')");
    let directions = page.evaluate("['.person .text', '.assistant p:nth-of-type(1)', '.assistant p:nth-of-type(2)', '.assistant ul'].map((one) => getComputedStyle(document.querySelector(`[role=log] ${one}`)).direction)");
    assert_eq!(directions, json!(["rtl", "rtl", "ltr", "rtl"]));
    page.fill(".composer textarea", "שלום");
    assert_eq!(
        page.evaluate("[document.querySelector('.composer textarea'), document.querySelector('.top h1'), document.querySelector('.list .title')].map((one) => getComputedStyle(one).direction)"),
        json!(["rtl", "rtl", "rtl"])
    );
    page.screenshot("directions");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_refused_file_does_not_stop_the_message() {
    let model = Model::saying("fine");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "user");
    page.until("document.querySelector('.composer textarea:enabled')");
    let drop = |target: &str| {
        format!(
            "(() => {{ const data = new DataTransfer(); data.items.add(new File([new Uint8Array(62914560)], 'film.mp4')); const events = ['dragover', 'drop'].map((name) => new DragEvent(name, {{ bubbles: true, cancelable: true, dataTransfer: data }})); return events.map((event) => !document.querySelector('{target}').dispatchEvent(event)); }})()"
        )
    };
    // Beside the conversation it does not replace the page.
    assert_eq!(page.evaluate(&drop(".side")), json!([true, true]));
    page.evaluate(&drop(".chat"));
    page.until(
        "document.querySelector('.pending .problem')?.textContent === '63 MB; at most 21 MB'",
    );
    assert_eq!(
        page.evaluate("document.querySelector('.send').disabled"),
        true
    );
    say(&mut page, "without the film");
    until_last_reply(&mut page, "fine");
    page.until("!document.querySelector('.pending li')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn members_have_few_ways_and_admins_manage_beside_them() {
    let home = Home::offline();
    let browser = Chromium::start();
    for (name, expected, manages) in [
        ("admin", "Chats,Lists,Reminders,Memories", true),
        ("user", "Chats,Lists,Reminders,Memories", false),
        ("viewer", "Chats,Reminders", false),
    ] {
        let mut page = browser.page();
        page.size(390, 844);
        sign_in_as(&mut page, &home, name);
        page.until(&format!("[...document.querySelectorAll('.pages a')].map((one) => one.textContent).join() === '{expected}'"));
        assert_eq!(
            page.evaluate("document.querySelector('.foot a')?.textContent === 'Manage'"),
            manages
        );
        page.click(".open-side");
        page.until("document.querySelector('.side.shown')");
        page.click(".foot .menu-place > button");
        page.until("document.activeElement.textContent === 'Account'");
        let small = page.evaluate("[...document.querySelectorAll('.side *')].filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && Number.parseFloat(getComputedStyle(one).fontSize) < 12).map((one) => one.outerHTML)");
        assert_eq!(small, json!([]), "{name}");
        page.screenshot(&format!("menu-{name}"));
        // It is asked once, and Cancel stays.
        page.click(".foot [role=menuitem]:last-child");
        page.until("document.querySelector('dialog h2')?.textContent === 'Sign out?'");
        page.click("dialog .plain");
        page.until("!document.querySelector('dialog')");
        page.until("document.querySelector('.frame')");
        if manages {
            go(&mut page, "manage");
            page.until("document.querySelectorAll('.page .rows a').length === 7");
            go(&mut page, "people");
            page.until("document.querySelector('.foot [aria-current]')?.textContent === 'Manage'");
            look(&mut page, "manage");
        }
        check(&page, &home);
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn trying_again_keeps_the_files() {
    let model = Model::acting(vec![Act::error(400, "", "no"), Act::say("two eggs")]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.evaluate("(() => { const data = new DataTransfer(); data.items.add(new File(['two eggs'], 'pancakes.txt', { type: 'text/plain' })); document.querySelector('.chat').dispatchEvent(new DragEvent('dragover', { bubbles: true, cancelable: true, dataTransfer: data })); document.querySelector('.chat').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data })); })()");
    page.until("document.querySelector('.pending progress')?.hidden && !document.querySelector('.send').disabled");
    say(&mut page, "how many?");
    page.until("document.querySelector('.failure button')?.textContent === 'Try again'");
    page.click(".failure button");
    until_last_reply(&mut page, "two eggs");
    // In the question itself, not only in what was said before it.
    let asked = model.requests().pop().unwrap();
    let question = asked["messages"].as_array().unwrap().last().unwrap();
    assert!(question.to_string().contains("pancakes.txt"), "{asked}");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_page_that_comes_late_does_not_take_the_place_of_the_next() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    // The status takes its time.
    page.evaluate("(() => { const send = WebSocket.prototype.send; window.held = []; window.heard = 0; WebSocket.prototype.send = function (text) { if (text.includes('server_info')) { held.push(() => send.call(this, text)); this.addEventListener('message', () => { heard += 1; }); } else send.call(this, text); }; })()");
    page.evaluate("location.hash = '#/status'");
    page.until("window.held.length === 1");
    page.evaluate("location.hash = '#/'");
    page.until("document.querySelector('.welcome')");
    page.evaluate("window.shown = document.querySelector('.chat'); window.moves = 0; window.heard = 0; new MutationObserver(() => { moves += 1; }).observe(document.querySelector('.place'), { childList: true }); held[0](); 0");
    page.until("window.heard > 0");
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 0))");
    assert_eq!(page.evaluate("window.moves"), 0);
    page.evaluate("location.hash = '#/lists'");
    page.until("document.querySelector('.place').dataset.page === 'lists'");
    page.evaluate("location.hash = '#/'");
    page.until("document.querySelector('.place').dataset.page === 'chat'");
    page.until("document.querySelector('.chat') && !document.querySelector('.page')");
    assert_eq!(page.evaluate("window.shown.isConnected"), false);
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_removed_item_can_be_taken_back() {
    keep_a_list(&mut Chromium::start().page());
}

/// A list that is ticked, and of which an item is taken back; it stays so after a reload.
pub fn keep_a_list(page: &mut Page) {
    let home = Home::offline();
    let mut admin = home.admin();
    admin.ask(json!({ "type": "update_list", "list": "shopping", "add": ["milk"] }));
    sign_in(page, &home);
    go(page, "lists");
    page.fill("[aria-label='Add an item']", "tea");
    page.press("Enter", 0);
    page.until("document.querySelectorAll('.page .rows > li').length === 2");
    page.click("[aria-label='Remove: milk']");
    page.until("document.querySelectorAll('.page .rows > li').length === 1");
    page.until("document.querySelector('.toast')?.textContent === 'Removed: milkUndo'");
    page.click(".toast button");
    let items = "[...document.querySelectorAll('.page .rows > li')].map((one) => one.textContent).sort().join()";
    page.until(&format!("{items} === 'milk,tea'"));
    page.click(".page .rows input");
    page.until("document.querySelectorAll('.page .rows > .done').length === 1");
    page.reload();
    page.until(&format!(
        "{items} === 'milk,tea' && document.querySelectorAll('.page .rows > .done').length === 1"
    ));
    let kept = admin.ask(json!({ "type": "get_list", "list": "shopping" }));
    assert_eq!(kept["items"].as_array().unwrap().len(), 2);
    check(page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_unknown_address_is_a_page_that_leads_back() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&format!("{}nowhere", address(&home)));
    page.until("document.querySelector('h1')?.textContent === 'There is nothing at this address'");
    page.errors.clear();
    page.evaluate("document.querySelector('a').click()");
    page.until("document.querySelector('.sign-in form')");
    // A program reads the error as before.
    let answer = support::http::get(home.address(), "/nowhere");
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (404, &json!("not_found"))
    );
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_person_is_one_card_with_role_and_usage() {
    let model = Model::saying("fine");
    let home = Home::start(model.config_with(
        json!({ "people": { "user": { "monthly_tokens": 500_000, "approves": ["remember"] } } }),
    ));
    home.websocket(&home.tokens.user)
        .ask(json!({ "type": "chat", "message": "hello" }));
    let mut admin = home.admin();
    let url = address(&home);
    admin.ask(json!({ "type": "invite_user", "name": "grace", "url": url }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "people");
    let of = |name: &str| {
        format!(
            "[...document.querySelectorAll('.card:first-child .rows > li')].filter((one) => one.querySelector('strong').textContent === '{name}')"
        )
    };
    assert_eq!(page.evaluate(&format!("{}.length", of("grace"))), 1);
    page.until(&format!(
        "{}[0].textContent.includes('link works until')",
        of("grace")
    ));
    page.until(&format!("{}[0].textContent.includes('of 500,000 tokens') && {}[0].querySelector('progress').max === 500000", of("user"), of("user")));
    look(&mut page, "people-cards");
    page.evaluate("(() => { const select = document.querySelector('[aria-label=\"Role of grace\"]'); select.value = 'viewer'; select.dispatchEvent(new Event('change')); })()");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('[aria-label=\"Role of grace\"]')?.value === 'viewer' && !document.querySelector('dialog')");
    support::eventually("the role is changed", || {
        let users = admin.ask(json!({ "type": "list_users" }))["users"].clone();
        let is_guest = |one: &Value| one["name"] == "grace" && one["role"] == "viewer";
        users.as_array().unwrap().iter().any(is_guest).then_some(())
    });
    // Limits are changed one by one: what else the configuration says of somebody stays.
    page.click("[aria-label='Name and limits of user']");
    page.fill("dialog [type=number]", "600000");
    page.fill("dialog textarea", "Answers for a nine year old.");
    page.click("dialog button[type=submit]");
    page.until(&format!("{}[0].textContent.includes('of 600,000 tokens') && {}[0].textContent.includes('instructions of their own')", of("user"), of("user")));
    let config = admin.ask(json!({ "type": "get_config" }));
    let limits = &config["people"]["user"];
    assert_eq!(
        (&limits["monthly_tokens"], &limits["approves"]),
        (&json!(600_000), &json!(["remember"])),
        "{limits}"
    );
    // A note is above a dialog.
    page.click("[aria-label='Remove user']");
    page.until("document.querySelector('dialog')");
    page.evaluate("import([...document.scripts].find((one) => one.src).src.replace('app.js', 'dom.js')).then(({ toast }) => toast('Look'))");
    page.until("document.querySelector('.toast')?.matches(':popover-open')");
    check(&page, &home);
}
