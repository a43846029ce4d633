//! Approvals on the page: nothing hides in them, and several take little room.

use base::visible::lines;
use serde_json::{Value, json};

use super::chromium::Chromium;
use super::pages::look;
use super::{address, check, say, sign_in, until_last_reply};
use support::home::Home;
use support::http::post;
use support::model::{Act, Model};
use support::receiver::Receiver;

const CASES: &str = include_str!("../data/visible.json");

/// Evaluates to the result of `visible` for each text of an array.
fn shown(page: &mut super::Page, texts: &Value) -> Value {
    page.evaluate(&format!(
        "(async () => {{
            const script = document.querySelector('script[type=module]').src;
            const {{ visible }} = await import(new URL('approvals.js', script));
            return {texts}.map((parts) => visible(parts.map((part) => typeof part === 'string' ? part : part[0].repeat(part[1])).join('')));
        }})()"
    ))
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_page_shows_what_hides_as_the_server_does() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let texts: Value = cases.iter().map(|case| case["text"].clone()).collect();
    let found = shown(&mut page, &texts);
    for (case, found) in cases.iter().zip(found.as_array().unwrap()) {
        let expected: String = case["shown"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| match part.as_str() {
                Some(text) => text.to_owned(),
                None => part[0]
                    .as_str()
                    .unwrap()
                    .repeat(part[1].as_u64().unwrap() as usize),
            })
            .collect();
        assert_eq!(found, &expected, "{case}");
    }
    // Every character: the page hides and shows the same ones.
    let found = page.evaluate(
        "(async () => {
            const script = document.querySelector('script[type=module]').src;
            const { visible } = await import(new URL('approvals.js', script));
            const marked = [];
            for (let code = 0; code <= 0x10FFFF; code += 1) {
                const text = `a${String.fromCodePoint(code)}b`;
                const isSurrogate = code >= 0xD800 && code <= 0xDFFF;
                if (!isSurrogate && visible(text) !== text) marked.push([marked.at(-1)?.[1] === code - 1 ? marked.pop()[0] : code, code]);
            }
            return marked;
        })()",
    );
    let mut expected: Vec<[u32; 2]> = Vec::new();
    for letter in char::MIN..=char::MAX {
        let text = format!("a{letter}b");
        if lines(&text) == text {
            continue;
        }
        let code = u32::from(letter);
        match expected.last_mut() {
            Some([_, last]) if *last + 1 == code => *last = code,
            _ => expected.push([code, code]),
        }
    }
    assert_eq!(found, json!(expected));
    check(&page, &home);
}

/// A server whose model runs this command whenever somebody says something.
fn running(command: String) -> (Model, Home) {
    let receiver = Receiver::start();
    let model = Model::start(move |request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("done"),
            false => Act::call("run_command", json!({ "command": command })),
        }
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["tools"] = json!({ "run_command": { "enabled": true } });
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "door": {
            "incoming_path": "/hooks/door", "outgoing_url": receiver.url(),
            "tools": ["run_command"],
        } } },
    ]);
    let home = Home::start(config);
    (model, home)
}

const ALLOW: &str = "[...document.querySelectorAll('.approval .primary')]";

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_call_is_allowed_once_its_end_was_shown() {
    let (_model, home) = running(format!(
        "ls\u{202E}{}{}\nrm -rf ~",
        "\n".repeat(1_300),
        "echo so it goes on and on\n".repeat(300)
    ));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "go");
    page.until("document.querySelector('.approval .call')?.textContent.includes('‹↵ ×1299›')");
    page.until("document.querySelector('.approval').innerText.includes('Read to the end')");
    assert_eq!(page.evaluate(&format!("{ALLOW}[0].disabled")), true);
    look(&mut page, "approval-long");
    // The end of a part of the text is not the end.
    let to_end = "document.querySelector('.call').scrollTop = 1e6";
    page.evaluate(to_end);
    page.until("document.querySelector('.call').scrollTop > 100");
    assert_eq!(page.evaluate(&format!("{ALLOW}[0].disabled")), true);
    page.click(".approval .unfold");
    page.until("!document.querySelector('.approval .unfold')");
    page.evaluate("document.querySelector('.call').scrollTop = 0");
    let text = page.evaluate("document.querySelector('.call dd').textContent");
    let text = text.as_str().unwrap();
    assert!(text.starts_with("ls‹U+202E›\n‹↵ ×1299›\necho"), "{text}");
    assert!(text.ends_with("rm -rf ~"), "{text}");
    assert_eq!(page.evaluate(&format!("{ALLOW}[0].disabled")), true);
    page.evaluate(to_end);
    page.until(&format!("!{ALLOW}[0].disabled"));
    page.click(".approval .danger");
    page.until("!document.querySelector('.approval')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn approvals_are_where_the_call_is_and_counted_elsewhere() {
    let (_model, home) = running("ls -l".to_owned());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    for number in 0..3 {
        let body =
            json!({ "message": "go", "conversation_id": format!("{number}"), "user_id": "bell" });
        assert_eq!(post(home.address(), "/hooks/door", &[], &body).status, 202);
        page.until(&format!(
            "document.querySelector('.waiting span').textContent === '{}' && !document.querySelector('.waiting').hidden",
            number + 1
        ));
    }
    assert_eq!(
        page.evaluate("document.querySelector('.approval')"),
        Value::Null
    );
    page.until("[...document.querySelectorAll('.list a > .small')].every((one) => one.textContent === 'asks you')");
    look(&mut page, "approvals");
    page.click(".waiting");
    page.until(&format!("{ALLOW}.length === 1 && !{ALLOW}[0].disabled"));
    assert_eq!(
        page.evaluate("document.querySelector('.live .message .approval') !== null"),
        true
    );
    let text = page.evaluate("document.querySelector('.approval[open]').innerText");
    for expected in ["webhook door", "ls -l", "This time only."] {
        assert!(
            text.as_str().unwrap().contains(expected),
            "{expected}: {text}"
        );
    }
    assert_eq!(
        page.evaluate("document.querySelector('.waiting').getAttribute('aria-label')"),
        "2 approvals wait for you"
    );
    look(&mut page, "approvals-open");
    page.click(".approval .primary");
    page.until("!document.querySelector('.approval')");
    until_last_reply(&mut page, "done");

    // It is there again after a reload, which forgets the calls.
    page.click(".waiting");
    page.until(&format!("{ALLOW}.length === 1 && !{ALLOW}[0].disabled"));
    page.reload();
    page.until(&format!("{ALLOW}.length === 1 && !{ALLOW}[0].disabled"));
    page.click(".approval .danger");
    until_last_reply(&mut page, "done");
    check(&page, &home);
}

/// The default: conversations are private, and tools ask admins.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_admin_answers_what_a_private_conversation_asks() {
    let (_model, home) = running("ls -l".to_owned());
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "chat", "message": "my secret", "audience": "private" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    page.until("document.querySelector('.waiting span').textContent === '1'");
    page.click(".waiting");
    page.until("document.querySelector('.note')?.textContent === 'You cannot see this conversation, only what it asks you.'");
    page.until(&format!("{ALLOW}.length === 1 && !{ALLOW}[0].disabled"));
    let text = page.evaluate("document.querySelector('main').innerText");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("ls -l") && !text.contains("my secret"),
        "{text}"
    );
    look(&mut page, "approval-unseen");
    page.click(".approval .primary");
    page.until("!document.querySelector('.approval')");
    assert_eq!(user.response()["status"], "ok");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_call_says_whether_it_waits_was_denied_failed_or_is_done() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        match (
            last["role"] == "tool",
            last["content"].as_str().unwrap_or_default(),
        ) {
            (true, _) => Act::Stall("never".into()),
            (false, text) if text.contains("fail") => {
                Act::call("run_command", json!({ "command": "exit 3" }))
            }
            _ => Act::call("run_command", json!({ "command": "true" })),
        }
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["tools"] = json!({ "run_command": { "enabled": true } });
    let home = Home::start(config);
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    let state = "[...document.querySelectorAll('.tools summary .quiet')].at(-1)?.textContent";
    for (text, answer, expected) in [
        ("go", ".approval .danger", "denied"),
        ("fail", ".approval .primary", "failed"),
        ("go again", ".approval .primary", "done"),
    ] {
        page.click(".new");
        page.until("document.querySelector('.welcome')");
        say(&mut page, text);
        page.until(&format!("{state} === 'waiting for approval'"));
        page.until("document.querySelector('.approval summary')?.textContent.includes('The assistant wants to run the command: ')");
        page.click(answer);
        page.until(&format!("{state} === '{expected}'"));
        page.screenshot(&format!("call-{expected}"));
        page.evaluate("document.querySelector('.composer textarea').focus()");
        page.press("Escape", 0);
        page.until("document.querySelector('.live')?.textContent.includes('Stopped.')");
    }
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_late_reply_names_its_question() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match (last["role"] == "tool", last["content"].as_str()) {
            (true, _) => Act::say("It is switched."),
            (false, Some(text)) if text.contains("switch") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            _ => Act::say("At once."),
        }
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["tools"] = json!({ "run_command": { "enabled": true } });
    let home = Home::start(config);
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "switch the light");
    page.until("document.querySelector('.approval .primary')");
    say(&mut page, "and the time?");
    until_last_reply(&mut page, "At once.");
    page.evaluate("document.querySelector('.approval').open = true");
    page.click(".approval .primary");
    until_last_reply(&mut page, "It is switched.");
    for _ in 0..2 {
        page.until("document.querySelectorAll('.question').length === 1");
        let line = page.evaluate("document.querySelector('.question').textContent");
        assert_eq!(line, "In reply to “switch the light”");
        assert_eq!(
            page.evaluate("document.querySelector('.question').parentElement.querySelector('.text').textContent"),
            "It is switched."
        );
        look(&mut page, "late-reply");
        page.click(".question a");
        page.until("document.querySelector('.sought .text')?.textContent === 'switch the light'");
        page.reload();
        until_last_reply(&mut page, "It is switched.");
    }
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_question_fits_on_half_a_phone() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("done"),
            false => {
                let content = "Monday: soup\nTuesday: rice\nWednesday: fish\n".repeat(4);
                Act::call(
                    "write_file",
                    json!({ "path": "menu.txt", "content": content }),
                )
            }
        }
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    let home = Home::start(config);
    let browser = Chromium::start();
    let mut page = browser.page();
    page.size(390, 844);
    sign_in(&mut page, &home);
    say(&mut page, "go");
    page.until("document.querySelector('.approval strong')?.textContent === 'The assistant wants to write menu.txt'");
    let height =
        page.evaluate("document.querySelector('.approval').getBoundingClientRect().height");
    assert!(height.as_f64().unwrap() <= 422.0, "{height}");
    look(&mut page, "approval-menu");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_older_home_is_offered_reminders_and_lists_that_ask_nobody() {
    let at = json!({ "action": "create", "at": "in 2 hours", "say": "Tea" });
    let model = Model::start(move |request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("set"),
            false => Act::call("schedule", at.clone()),
        }
    });
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "tea");
    page.until("document.querySelector('.approval')?.innerText.includes('reminders to oneself')");
    look(&mut page, "approval-telling");
    page.click(".approval p button");
    page.until("!document.querySelector('.approval').innerText.includes('reminders to oneself')");
    let config = home.admin().ask(json!({ "type": "get_config" }));
    let allowed = json!({ "schedule": "allow_own", "lists": "allow" });
    assert_eq!(config["tool_permissions"], allowed);
    page.until(&format!("!{ALLOW}[0].disabled"));
    page.click(".approval .primary");
    until_last_reply(&mut page, "set");
    // The next one asks nobody.
    say(&mut page, "tea again");
    page.until("document.querySelectorAll('.message.assistant').length === 2");
    until_last_reply(&mut page, "set");
    check(&page, &home);
}
