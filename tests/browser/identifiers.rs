//! Nothing on the page is for programs: no ids, no cron, no JSON, no names of tools or settings.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::pages::{PAGES, go};
use super::say;
use support::calendar_server::{CalendarServer, calendar};
use support::client::Client;
use support::eventually;
use support::home::{Home, PASSWORD};
use support::http::post;
use support::mcp_http::{Kind, McpServer};
use support::model::{Act, Model};
use support::receiver::Receiver;

/// What people see, hear or are offered, outside code, "Details" and what they write themselves.
/// What is folded counts, too.
const FOUND: &str = r#"(() => {
    const kinds = {
        uuid: /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/i,
        ulid: /\b[0-9A-HJKMNP-TV-Z]{26}\b/,
        name: /\b[a-z]+(?:_[a-z0-9]+)+\b/i,
        cron: /(?:^|\s)(?:[\d*][\d*,\/-]*\s+){3}(?:[\d*][\d*,\/-]*|[A-Za-z]{3})\s+(?:[\d*][\d*,\/-]*|[A-Za-z]{3})(?=\s|$)/,
        braces: /[{}]/,
        stamp: /\d{4}-\d\d-\d\dT\d\d:\d\d/,
    };
    for (const one of document.querySelectorAll("details:not(.raw)")) one.open = true;
    const texts = [];
    const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (all.nextNode()) {
        const place = all.currentNode.parentElement;
        const isSeen = place.closest("select") ?? place.checkVisibility();
        if (isSeen && !place.closest("pre, code, textarea, .raw, script, noscript")) texts.push(all.currentNode.textContent);
    }
    for (const one of document.querySelectorAll("[aria-label], [placeholder]")) {
        if (one.checkVisibility()) texts.push(one.getAttribute("aria-label") ?? "", one.placeholder ?? "");
    }
    return texts.flatMap((text) => Object.keys(kinds).filter((kind) => kinds[kind].test(text)).map((kind) => `${kind}: ${text}`));
})()"#;

/// A home in which something of each kind is there.
struct Full {
    home: Home,
    _model: Model,
    _receiver: Receiver,
    _calendars: CalendarServer,
    _server: McpServer,
}

impl Full {
    fn start() -> Full {
        let model = Model::start(|request, _| {
            let last = request["messages"].as_array().unwrap().last().unwrap();
            match (last["role"] == "tool", last["content"].as_str()) {
                (false, Some(text)) if text.contains("echo") => {
                    Act::call("mcp_web_echo", json!({ "text": "hello" }))
                }
                _ => Act::say("Fine."),
            }
        });
        let receiver = Receiver::answering(|_, _| "410 Gone".to_owned());
        let server = McpServer::start(Kind::Stateless);
        let calendars = CalendarServer::start();
        let headers = json!({ "Authorization": "Bearer open sesame" });
        let home = Home::start(model.config_with(json!({
            "permission_mode": "ask",
            "mcp_servers": { "web": { "url": server.url(), "headers": headers } },
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "hooks", "type": "webhook", "accounts": {
                    "door": { "incoming_path": "/hooks/door", "outgoing_url": receiver.url() },
                    "signal": { "incoming_path": "/hooks/signal", "outgoing_url": receiver.url(),
                                "secret": "a secret of the bridge" },
                } },
            ],
        })));
        fill(&home, &calendars);
        Full {
            home,
            _model: model,
            _receiver: receiver,
            _calendars: calendars,
            _server: server,
        }
    }
}

/// Lines of the server's log.
const LOG: &str = "\
2026-11-27T15:20:55.997Z  WARN turn_06zwvq7mmvq4d: failed after 12 ms: the model did not answer
2026-11-27T15:20:56.997Z ERROR calendar cal_06zwvq7mmvq4e: it cannot be read
";

fn fill(home: &Home, calendars: &CalendarServer) {
    fs::write(home.folder.path().join("hearth.log"), LOG).unwrap();
    let mut admin = home.admin();
    admin.ask(json!({ "type": "add_user", "name": "kid", "password": PASSWORD, "child": true }));
    let url = super::address(home);
    admin.ask(json!({ "type": "invite_user", "name": "guest", "role": "viewer", "url": url }));
    admin.ask(json!({ "type": "update_list", "list": "Shopping", "add": ["milk"] }));
    let tomorrow = home.clock.now().plus(Duration::from_secs(86_400));
    let day = tomorrow.to_string()[..10].replace('-', "");
    let event = format!(
        "BEGIN:VEVENT\r\nUID:0b6f3a52-9f0e-4c3b-8f0e-2f6d1f2a3b4c\r\nDTSTART;VALUE=DATE:{day}\r\nSUMMARY:Bins\r\nEND:VEVENT\r\n"
    );
    calendars.file("/bins.ics", "1", &calendar(&event));
    for (name, path) in [("Bins", "/bins.ics"), ("School", "/nothing.ics")] {
        admin.ask(json!({
            "type": "add_calendar", "name": name, "url": calendars.url(path), "audience": "household",
        }));
    }
    eventually("the server's tools are there", || {
        let tools = admin.ask(json!({ "type": "list_tools" }))["tools"].take();
        let mut tools = tools.as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == "mcp_web_echo").map(drop)
    });
    for name in ["admin", "user", "kid"] {
        let mut person = Client::websocket(home.address());
        person.ask(json!({ "type": "auth", "username": name, "password": PASSWORD }));
        for schedule in [
            json!({ "say": "Water the plants", "at": "2031-03-15T12:00" }),
            json!({ "prompt": "Look at the weather", "cron": "30 7 * * 1-5" }),
            json!({ "prompt": "Say what is new", "on": "list Shopping" }),
        ] {
            let mut create = schedule;
            create["type"] = json!("create_schedule");
            person.ask(create);
        }
        person.ask(json!({ "type": "add_memory", "content": "The choir is on Friday." }));
        let code = person.ask(json!({ "type": "link_sender", "account": "signal" }));
        let headers = [("x-service-secret", "a secret of the bridge")];
        let body = json!({ "message": format!("/link {}", code["code"].as_str().unwrap()),
                           "user_id": format!("+49 30 {name}") });
        assert_eq!(
            post(home.address(), "/hooks/signal", &headers, &body).status,
            202
        );
        person.send(&json!({ "type": "chat", "message": format!("echo of {name}") }));
    }
    let body = json!({ "message": "Somebody is at the door", "user_id": "bell" });
    assert_eq!(post(home.address(), "/hooks/door", &[], &body).status, 202);
    for (list, field, value, least) in [
        ("deliveries", "state", "dead", 1),
        ("approvals", "tool", "mcp_web_echo", 2),
        ("calendars", "state", "failing", 1),
    ] {
        eventually(&format!("{list}: {value}"), || {
            let listed = admin.ask(json!({ "type": format!("list_{list}") }));
            let listed = listed[list].as_array().unwrap().iter();
            let count = listed.filter(|one| one[field] == value).count();
            (count >= least).then_some(())
        });
    }
}

fn sweep(language: &str) {
    let full = Full::start();
    let home = &full.home;
    let browser = Chromium::start_with(&[&format!("--accept-lang={language}")]);
    let mut found = Vec::new();
    for name in ["admin", "user", "kid", "viewer"] {
        let mut page = browser.page();
        sign_in_as(&mut page, home, name);
        page.until("document.querySelector('.composer textarea')");
        let mut look = |page: &mut Page, place: &str| {
            let texts = page.evaluate(FOUND);
            let texts = texts.as_array().unwrap().iter();
            found.extend(texts.map(|text| format!("{name}, {place}: {text}")));
        };
        page.until("document.querySelector('.today > li') || document.querySelector('.welcome')");
        look(&mut page, "home");
        if name != "viewer" {
            page.until("document.querySelector('.today > li')");
            look(&mut page, "today");
            page.click(".list a");
            page.until("document.querySelector('[role=log] .message')");
            look(&mut page, "conversation");
        }
        // A child has no tools of servers, and a guest asks for nothing.
        if ["admin", "user"].contains(&name) {
            page.evaluate("[...document.querySelectorAll('.list a')].find((one) => one.textContent.includes('echo')).click()");
            page.until("document.querySelector('.approval, .thinking')");
            look(&mut page, "approval");
            page.evaluate("location.hash = '#/'");
            page.until("document.querySelector('.welcome')");
            say(&mut page, "another echo");
            page.until("document.querySelector('.approval, .thinking') && document.querySelector('.tools li')");
            look(&mut page, "call");
        }
        if name == "admin" {
            page.click(".approval .danger");
            page.until("!document.querySelector('.approval') && document.querySelector('[role=log] .assistant .text')");
            look(&mut page, "refused call");
        }
        for opened in PAGES {
            go(&mut page, opened);
            page.until("document.querySelector('.page')?.children.length > 0 && !document.querySelector('.page > p.quiet:only-child')");
            look(&mut page, opened);
        }
    }
    assert!(found.is_empty(), "{language}: {found:#?}");
    // What is looked for would be found.
    let mut page = browser.page();
    page.open("about:blank");
    let planted = [
        "uuid: for 0b6f3a52-9f0e-4c3b-8f0e-2f6d1f2a3b4c",
        "ulid: of 01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "name: in conv_06zwvq7mmvq4c",
        "name: by mcp_web_echo",
        "cron: at 30 7 * * 1-5",
        "braces: as {1}",
        "stamp: on 2031-03-15T12:00:00Z",
    ];
    for line in planted {
        let (_, text) = line.split_once(": ").unwrap();
        page.evaluate(&format!("document.body.replaceChildren({})", json!(text)));
        assert_eq!(page.evaluate(FOUND), json!([line]));
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn nothing_for_programs_is_seen_in_english() {
    sweep("en");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn nothing_for_programs_is_seen_in_german() {
    sweep("de");
}
