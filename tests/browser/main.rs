//! The web page in a real browser: `make test-browser`. Ignored otherwise,
//! because it needs Chromium.

#![cfg(all(feature = "web", feature = "relay"))]

mod approvals;
mod attachments;
mod audiences;
mod axe;
mod below;
mod catalogue;
mod chromium;
mod elsewhere;
mod errors;
mod everyday;
mod exporting;
mod files;
mod firefox;
mod forms;
mod handbook;
mod household;
mod identifiers;
mod invitations;
mod languages;
mod looks;
mod navigation;
mod open_webui_peers;
mod pages;
mod picture;
mod proxy_peers;
mod push;
mod relay;
mod relayed;
mod rendering;
#[cfg(feature = "tls")]
mod secure;
mod states;
mod versions;
mod visit;
mod voice;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::ids::ConversationId;
use chromium::{Chromium, Page};
use serde_json::{Value, json};
use store::{Audience, NewTurn, Store, Target, TurnEnd, Usage, Viewer};
use support::home::{Home, PASSWORD, TemporaryDirectory};
use support::http::post;
use support::model::{Act, Model};
use support::receiver::Receiver;

/// Replies that try to run a script or to reach another host.
const HOSTILE: &str = include_str!("hostile.md");
/// Most milliseconds from the address to a page that can be used.
const INTERACTIVE: f64 = 300.0;
/// How long a busy machine may take to load the page once without a disturbance.
const QUIET_MOMENT: Duration = Duration::from_secs(60);
const LAST_REPLY: &str = "[...document.querySelectorAll('[role=log] .assistant .text')].at(-1)";

fn address(home: &Home) -> String {
    format!("http://{}/", home.address())
}

fn sign_in(page: &mut Page, home: &Home) {
    page.open(&address(home));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until("document.querySelector('.who-am-i strong')?.textContent === 'admin'");
    page.until("document.querySelector('.welcome')");
}

/// Signs out by one's own menu, which asks once.
fn sign_out(page: &mut Page) {
    page.click(".foot .menu-place > button");
    page.click(".foot [role=menuitem]:last-child");
    page.click("dialog button[type=submit]");
    page.until("document.querySelector('.sign-in form')");
}

fn say(page: &mut Page, text: &str) {
    page.fill(".composer textarea", text);
    page.press("Enter", 0);
}

fn until_last_reply(page: &mut Page, text: &str) {
    page.until(&format!("{LAST_REPLY}?.textContent === {}", json!(text)));
}

/// Nothing went wrong, and nobody but our server was asked.
fn check(page: &Page, home: &Home) {
    check_hosts(page, &[home.address()]);
}

/// Nothing went wrong, and nobody else was asked.
fn check_hosts(page: &Page, hosts: &[SocketAddr]) {
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
    for url in &page.requests {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.split('/').next().and_then(|host| host.parse().ok());
        let is_ours = host.is_some_and(|host| hosts.contains(&host));
        assert!(
            is_ours || url.starts_with("about:") || url.starts_with("data:"),
            "{url}"
        );
    }
}

/// The wait for a busy model is shown for as long as it lasts.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_busy_model_is_said_until_it_is_asked_again() {
    let busy = || Act::error(429, "Retry-After: 2\r\n", "slow down");
    let model = Model::acting(vec![busy(), Act::Stall("Hi".to_owned())]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "hello");
    let says = "document.querySelector('p.thinking')?.textContent";
    page.until(&format!("{says} === 'The model is busy, next try in 2 s'"));
    model.wait_for_requests(2);
    page.until(&format!("{says} === 'Thinking'"));
    model.release();
    until_last_reply(&mut page, "Hi");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn signing_in_wrong_and_right_and_out() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    check(&page, &home);
    let files = page
        .requests
        .iter()
        .filter(|url| url.starts_with("http"))
        .count();
    assert!(files <= 10, "{:?}", page.requests);
    // The best of the loads, each without the browser's cache: the machine may be
    // busy with other things, so it gets time for a quiet moment.
    page.call("Network.setCacheDisabled", json!({ "cacheDisabled": true }));
    let loaded = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd";
    let mut best = f64::INFINITY;
    let deadline = Instant::now() + QUIET_MOMENT;
    for round in 0.. {
        if best <= INTERACTIVE || Instant::now() >= deadline {
            break;
        }
        let query = format!("?round={round}");
        page.open(&format!("{}{query}", address(&home)));
        page.until(&format!(
            "location.search === '{query}' && {loaded} > 0 && document.querySelector('.sign-in form')"
        ));
        best = best.min(page.evaluate(loaded).as_f64().unwrap());
    }
    println!("interactive after {best} ms with {files} requests");
    assert!(best <= INTERACTIVE, "{best} ms");
    page.screenshot("sign-in");
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", "wrong");
    page.press("Enter", 0);
    page.until("document.querySelector('.problem').textContent.includes('Wrong name or password')");
    page.errors.clear();
    sign_in(&mut page, &home);
    page.screenshot("welcome");
    // Who comes again, still signed in, asks for the page alone, and for what
    // this visit needs beside it.
    page.call(
        "Network.setCacheDisabled",
        json!({ "cacheDisabled": false }),
    );
    page.reload();
    page.until("document.querySelector('.welcome')");
    page.reload();
    page.until("document.querySelector('.welcome')");
    let sent = page.evaluate("performance.getEntriesByType('resource').filter((one) => one.transferSize > 0).map((one) => one.name)");
    assert_eq!(sent, json!([]), "everything else is in the browser's cache");
    let token = "(sessionStorage.getItem('hearth.token') ?? '')";
    let kept = page.evaluate(token);
    assert!(kept.as_str().unwrap().starts_with("hearth_"));
    assert!(
        page.evaluate("localStorage.getItem('hearth.token')")
            .is_null()
    );
    sign_out(&mut page);
    page.until("document.querySelector('.sign-in form')");
    assert_eq!(page.evaluate(token), "");
    let revoked = support::client::Client::websocket(home.address())
        .refused(json!({ "type": "auth", "token": kept }));
    assert_eq!(revoked, "invalid_token");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn replies_stream_and_can_be_stopped() {
    stream(&mut Chromium::start().page());
}

/// A reply as it comes.
fn stream(page: &mut Page) {
    let model = Model::start(|_, number| match number {
        0 => Act::Pause("first half of the reply, and **then** the rest".into()),
        _ => Act::Stall("never".into()),
    });
    let home = Home::start(model.config());
    sign_in(page, &home);
    say(page, "tell me");
    page.until("document.querySelector('.live .text')?.textContent.startsWith('first half')");
    page.screenshot("streaming");
    assert_eq!(
        page.evaluate("document.querySelector('.send').getAttribute('aria-label')"),
        "Stop"
    );
    model.release();
    until_last_reply(page, "first half of the reply, and then the rest");
    page.until("document.title === 'tell me · Hearth'");
    assert_eq!(
        page.evaluate("document.querySelectorAll('.messages .message').length"),
        2
    );
    assert_eq!(
        page.evaluate(&format!("{LAST_REPLY}.querySelector('strong').textContent")),
        "then"
    );
    check(page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn thoughts_are_folded_above_the_reply_while_and_after_it_is_written() {
    let thought = "Perhaps it is wet outside, or it soon will be.";
    let model = Model::acting(vec![Act::Pause(format!(
        "<think>{thought}</think>Take a coat."
    ))]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "coat?");
    let folded = "details:not([open]) > pre')?.textContent";
    page.until(&format!(
        "document.querySelector('.live {folded}.startsWith('Perhaps')"
    ));
    model.release();
    until_last_reply(&mut page, "Take a coat.");
    let after = format!("document.querySelector('.messages .assistant {folded} === '{thought}'");
    page.until(&after);
    page.click(".messages .assistant summary");
    page.until("document.querySelector('.messages .assistant details[open] > pre')");
    page.screenshot("thoughts");
    // They are for whoever waits: nothing of them is kept.
    page.reload();
    until_last_reply(&mut page, "Take a coat.");
    let kept = page.evaluate("document.querySelector('.messages details')");
    assert!(kept.is_null(), "{kept}");
    check(&page, &home);
}

/// Keeps the events from the page from `window.isSlow` on, until it has read a reply.
const SLOW_EVENTS: &str = "
    window.WebSocket = class extends WebSocket {
        set onmessage(handle) {
            const kept = [];
            super.onmessage = (message) => {
                const { type, data } = JSON.parse(message.data);
                if (window.isSlow && type === 'event') return void kept.push(message);
                handle(message);
                if (!data?.messages?.some(({ role }) => role === 'assistant')) return;
                window.isSlow = false;
                // The page adds what it has read first.
                setTimeout(() => kept.splice(0).forEach(handle));
            };
        }
    };";

/// The events of a turn may come when the page has read its reply already.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn thoughts_and_calls_stay_with_a_reply_that_is_read_before_its_events() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("<think>It may rain.</think>Take a coat."),
            false => Act::call("lists", json!({ "action": "show" })),
        }
    });
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    let script = json!({ "source": SLOW_EVENTS });
    page.call("Page.addScriptToEvaluateOnNewDocument", script);
    sign_in(&mut page, &home);
    page.evaluate("window.isSlow = true");
    say(&mut page, "coat?");
    until_last_reply(&mut page, "Take a coat.");
    let shown = "(() => { const tools = document.querySelector('[role=log] .assistant').querySelectorAll('.tools'); return tools.length === 2 && tools[0].querySelector('pre').textContent === 'It may rain.' && tools[1].querySelector('li').matches('.ok') && document.querySelectorAll('.messages .assistant').length === 1; })()";
    page.until(shown);
    // Another reply takes the place of this one, which is read once more.
    page.click("[aria-label='Answer again']");
    page.until("document.querySelector('.versions')?.textContent === '2 of 2'");
    page.until(shown);
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn escape_stops_a_reply() {
    let model = Model::acting(vec![Act::Stall("never".into())]);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "think for an hour");
    page.until("document.querySelector('.thinking')");
    model.wait_for_requests(1);
    page.press("Escape", 0);
    page.until("document.querySelector('.live')?.textContent.includes('Stopped.')");
    check(&page, &home);
}

fn webhook(home: &Home, message: &str) {
    let body = json!({ "message": message, "conversation_id": "front", "user_id": "bell" });
    assert_eq!(post(home.address(), "/hooks/door", &[], &body).status, 202);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn webhook_messages_and_their_questions_arrive_live() {
    answer_questions(&mut Chromium::start().page());
}

/// What a webhook brings, and what the assistant asks for it.
fn answer_questions(page: &mut Page) {
    let receiver = Receiver::start();
    let model = Model::start(|_, number| match number {
        1 | 3 => Act::call("forget", json!({ "memory_id": "mem_0000000000001" })),
        _ => Act::say("noted"),
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": { "incoming_path": "/hooks/door", "outgoing_url": receiver.url(), "tools": ["forget"] },
        } },
    ]);
    let home = Home::start(config);
    sign_in(page, &home);
    webhook(&home, "Somebody is at the door");
    page.until(
        "document.querySelector('.list .unread .title')?.textContent.includes('at the door')",
    );
    page.click(".list a");
    until_last_reply(page, "noted");
    webhook(&home, "Forget it");
    page.until("document.querySelector('.approval')?.textContent.includes('mem_0000000000001')");
    page.screenshot("approval");
    page.size(390, 844);
    page.scheme("dark");
    page.until("getComputedStyle(document.querySelector('.side')).visibility === 'hidden'");
    page.screenshot("approval-phone");
    page.click(".approval .primary");
    page.until("!document.querySelector('.approval')");
    page.until("document.querySelectorAll('[role=log] .assistant').length === 2");
    assert_eq!(receiver.wait_for(2).len(), 2);
    webhook(&home, "Forget that too");
    page.click(".approval .danger");
    page.until("document.querySelectorAll('[role=log] .assistant').length === 3");
    check(page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_restart_loses_nothing_and_doubles_nothing() {
    reconnect(&mut Chromium::start().page());
}

/// What is said while the server is away arrives once.
fn reconnect(page: &mut Page) {
    let model = Model::start(|request, _| {
        Act::Say(format!(
            "reply to {}",
            request["messages"].as_array().unwrap().last().unwrap()["content"]
                .as_str()
                .unwrap()
                .split_whitespace()
                .last()
                .unwrap()
        ))
    });
    let mut home = Home::start(model.config());
    let port = home.address().port();
    sign_in(page, &home);
    say(page, "one");
    until_last_reply(page, "reply to one");
    check(page, &home);
    home.stop();
    page.until("!document.querySelector('.banner').hidden");
    page.screenshot("disconnected");
    say(page, "two");
    page.until("document.querySelector('.sending')");
    home.start_on(port);
    until_last_reply(page, "reply to two");
    page.until("document.querySelector('.banner').hidden");
    let texts = page.evaluate(
        "[...document.querySelectorAll('.messages .text')].map((one) => one.textContent)",
    );
    assert_eq!(texts, json!(["one", "reply to one", "two", "reply to two"]));
    assert_eq!(model.requests().len(), 2);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_hostile_reply_runs_nothing_and_reaches_nobody() {
    let model = Model::saying(HOSTILE);
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, HOSTILE);
    page.until(&format!("{LAST_REPLY}?.textContent.includes('the end')"));
    page.evaluate("for (const link of document.querySelectorAll('.text a')) link.target = ''");
    assert!(page.evaluate("window.pwned ?? null").is_null());
    let elements = page.evaluate("[...new Set([...document.querySelectorAll('.messages .text *')].map((one) => one.localName))].sort()");
    let known = [
        "a",
        "blockquote",
        "br",
        "button",
        "code",
        "del",
        "div",
        "em",
        "h2",
        "hr",
        "li",
        "ol",
        "p",
        "path",
        "pre",
        "span",
        "strong",
        "svg",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    for element in elements.as_array().unwrap() {
        assert!(known.contains(&element.as_str().unwrap()), "{element}");
    }
    let schemes =
        page.evaluate("[...document.querySelectorAll('.text a')].map((one) => one.protocol)");
    for scheme in schemes.as_array().unwrap() {
        assert!(
            ["http:", "https:", "mailto:"].contains(&scheme.as_str().unwrap()),
            "{scheme}"
        );
    }
    let attributes = page.evaluate("[...document.querySelectorAll('.text *')].flatMap((one) => one.getAttributeNames()).filter((one) => one.startsWith('on') || one === 'style' || one === 'src')");
    assert_eq!(attributes, Value::Array(vec![]));
    page.screenshot("hostile");
    check(&page, &home);
}

/// A conversation of so many messages, written to the database directly.
fn long_conversation(folder: &TemporaryDirectory, turns: usize) -> ConversationId {
    let store = Store::open(&folder.path().join("hearth.db"), Clock::system()).unwrap();
    let mut target = Target::New;
    let mut conversation = None;
    for number in 0..turns {
        let begun = store
            .begin_turn_deferred(NewTurn {
                speaker: Some("admin".to_owned()),
                ..NewTurn::new(
                    Viewer::server(),
                    target,
                    Audience::Household,
                    "websocket",
                    format!("question {number}"),
                )
            })
            .unwrap();
        let store::Begun::New { turn, .. } = begun.uncommitted() else {
            panic!("not a repeat")
        };
        let reply = format!("answer {number} with **some** `text`");
        let end = TurnEnd::Done {
            reply,
            finish_reason: None,
        };
        store
            .finish_turn(turn.id, end, Usage::default(), "scripted", None, Vec::new())
            .unwrap();
        conversation = Some(turn.conversation_id);
        target = Target::Existing(turn.conversation_id);
    }
    store.close();
    conversation.unwrap()
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn ten_thousand_messages_scroll() {
    let mut home = Home::offline();
    home.stop();
    let conversation = long_conversation(&home.folder, 5_000);
    home.restart();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.evaluate(&format!("location.hash = '#/c/{conversation}'"));
    page.until(&format!(
        "{LAST_REPLY}?.textContent === 'answer 4999 with some text'"
    ));
    let rows = "document.querySelectorAll('[role=log] .message').length";
    assert_eq!(page.evaluate(rows), 50, "only the newest page is loaded");
    // How many were loaded, some of which are out of the document again.
    let loaded = "(10000 - 2 * Number(document.querySelector('[role=log] .text').textContent.split(' ')[1]))";
    page.evaluate(
        "window.longest = 0; new PerformanceObserver((list) => { for (const one of list.getEntries()) longest = Math.max(longest, one.duration); }).observe({ type: 'longtask' })",
    );
    let mut count = 50;
    while count < 1_000 {
        page.evaluate("document.querySelector('.scroller').scrollTop = 0");
        page.until(&format!("{loaded} > {count}"));
        count = page.evaluate(loaded).as_u64().unwrap();
    }
    assert!(page.evaluate(rows).as_u64().unwrap() <= 300);
    let ordered = page.evaluate("(() => { const ids = [...document.querySelectorAll('[role=log] .message')].map((one) => one.dataset.id); return ids.every((id, place) => place === 0 || ids[place - 1] < id) })()");
    assert_eq!(ordered, true);
    let longest = page.evaluate("longest");
    println!("the longest task took {longest} ms");
    // Ten times what it is on a busy machine: work that grows with what was loaded takes longer.
    assert!(longest.as_f64().unwrap() < 5_000.0, "{longest} ms");
    page.screenshot("long");
    check(&page, &home);
}
