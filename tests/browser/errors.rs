//! The errors that people meet: an admin gets a button that leads to where each is mended,
//! others the name of an admin to ask.

use serde_json::{Value, json};

use super::attachments::helpers;
use super::audiences::sign_in_as;
use super::axe::{axe_core, examine};
use super::chromium::{Chromium, Page};
use super::forms::{press, save, write};
use super::looks::check_names;
use super::pages::{go, look};
use super::{check, say, sign_in, until_last_reply};
use store::CommitGate;
use support::calendar_server::CalendarServer;
use support::eventually;
use support::home::{Home, PASSWORD};
use support::mcp_http::McpServer;
use support::model::{Act, Model};
use support::program::free_port;
use support::voice::{VoiceServer, response};

/// Where a turn fails, or the conversation cannot be read.
const FAILURE: &str = ".failure p, .note [role=alert]";

/// One kind of error in the chat.
struct Kind {
    name: &'static str,
    config: Value,
    /// How somebody meets it.
    meet: fn(&mut Page, &Home) -> Option<CommitGate>,
    /// Where it is said.
    note: &'static str,
    /// An admin's button, and the page that it opens; none where it copies a line.
    button: &'static str,
    page: Option<&'static str>,
    /// The end of what others read.
    ask: &'static str,
}

fn nowhere() -> String {
    format!("http://127.0.0.1:{}/v1", free_port())
}

fn speak(page: &mut Page, _: &Home) -> Option<CommitGate> {
    say(page, "hello");
    None
}

/// Somebody has used up what there is.
fn spend(page: &mut Page, home: &Home) -> Option<CommitGate> {
    let mut admin = home.admin();
    admin.send(&json!({ "type": "chat", "message": "hello" }));
    admin.response();
    speak(page, home)
}

fn listen(page: &mut Page, _: &Home) -> Option<CommitGate> {
    say(page, "hello");
    until_last_reply(page, "Hello.");
    page.click("[aria-label='Read aloud']");
    None
}

fn attach(page: &mut Page, _: &Home) -> Option<CommitGate> {
    helpers(page);
    page.evaluate("paste(new File(['eggs '.repeat(400)], 'pancakes.txt', { type: 'text/plain' }))");
    None
}

fn fill_the_disk(page: &mut Page, home: &Home) -> Option<CommitGate> {
    let gate = home.server().store().commit_gate(&["turns"]);
    gate.fail();
    say(page, "hello");
    Some(gate)
}

/// A model whose every reply takes 1,100 tokens.
fn a_model_that_counts() -> Model {
    let usage = json!({ "prompt_tokens": 1_000, "completion_tokens": 100 });
    Model::start(move |_, _| Act::counted("Hello.", &usage))
}

/// A household with a child.
fn household(config: Value) -> Home {
    let home = Home::start(config);
    home.admin()
        .ask(json!({ "type": "add_user", "name": "kid", "password": PASSWORD, "child": true }));
    home
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_admin_gets_a_button_and_others_the_name_of_whom_to_ask() {
    let works = a_model_that_counts();
    let refuses = Model::start(|_, _| Act::error(401, "", "no such key"));
    let mute = VoiceServer::answering(|_| response("500 No", "text/plain", b"no"));
    let kinds = [
        Kind {
            name: "no model",
            config: json!({}),
            meet: |_, _| None,
            note: ".welcome .card",
            button: "Choose a provider and a model",
            page: Some("settings"),
            ask: "admin can connect one in the settings.",
        },
        Kind {
            name: "a wrong key",
            config: refuses.config(),
            meet: speak,
            note: FAILURE,
            button: "Open the settings",
            page: Some("settings"),
            ask: "or ask admin.",
        },
        Kind {
            name: "no model server",
            config: json!({ "provider": "openai-compatible", "model": "m", "base_url": nowhere() }),
            meet: speak,
            note: FAILURE,
            button: "Open the settings",
            page: Some("settings"),
            ask: "or ask admin.",
        },
        Kind {
            name: "no budget",
            config: works.config_with(json!({ "budget": { "monthly_tokens": 1000 } })),
            meet: spend,
            note: FAILURE,
            button: "Open the settings",
            page: Some("settings"),
            ask: "Ask admin.",
        },
        Kind {
            name: "no speech",
            config: works.config_with(json!({ "voice": { "speech": { "url": mute.url() } } })),
            meet: listen,
            note: ".toast",
            button: "Open Household",
            page: Some("upkeep"),
            ask: "or ask admin.",
        },
        Kind {
            name: "no room for files",
            config: works.config_with(json!({ "limits": { "attachments_total_bytes": 1024 } })),
            meet: attach,
            note: ".pending .problem",
            button: "Copy the line to type",
            page: None,
            ask: "Ask admin.",
        },
        Kind {
            name: "a full disk",
            config: works.config(),
            meet: fill_the_disk,
            note: FAILURE,
            button: "Open Household",
            page: Some("upkeep"),
            ask: "sk admin.",
        },
    ];
    let axe = axe_core();
    let browser = Chromium::start();
    for kind in &kinds {
        let home = household(kind.config.clone());
        for name in ["admin", "user", "kid"] {
            println!("{} for {name}", kind.name);
            let mut page = browser.page();
            page.call("Accessibility.enable", json!({}));
            page.call("Page.setBypassCSP", json!({ "enabled": true }));
            page.size(390, 844);
            sign_in_as(&mut page, &home, name);
            page.until("document.querySelector('.composer textarea:enabled')");
            let gate = (kind.meet)(&mut page, &home);
            let note = format!("document.querySelector({})", json!(kind.note));
            page.until(&format!("{note}?.textContent"));
            let button = format!(
                "[...{note}.querySelectorAll('a.button, button')].find((one) => one.textContent === {})",
                json!(kind.button)
            );
            // A failed turn says the same to whoever comes back to it.
            if kind.note == FAILURE && gate.is_none() {
                let said = page.evaluate(&format!("{note}.textContent"));
                page.reload();
                page.until(&format!("{note}?.textContent"));
                // To an admin a server's own words are shown live alone.
                if name != "admin" {
                    assert_eq!(page.evaluate(&format!("{note}.textContent")), said);
                }
            }
            if name == "admin" {
                page.until(&button);
                check_names(&mut page, kind.name);
                // A note at the bottom goes by itself.
                if let Some(axe) = axe.as_ref().filter(|_| kind.note != ".toast") {
                    examine(&mut page, axe, kind.name);
                }
                page.evaluate(&format!("{button}.click()"));
                if let Some(opened) = kind.page {
                    page.until(&format!(
                        "document.querySelector('.place').dataset.page === '{opened}'"
                    ));
                }
            } else {
                page.until(&format!(
                    "{note}.textContent.trim().endsWith({})",
                    json!(kind.ask)
                ));
                assert_eq!(page.evaluate(&format!("!{button}")), true, "{name}");
            }
            let over = page.evaluate("document.documentElement.scrollWidth - innerWidth");
            assert!(
                over.as_i64().unwrap() <= 0,
                "{} for {name}: {over}",
                kind.name
            );
            check(&page, &home);
            drop(gate);
            eventually("the disk has room again", || {
                home.server().store().is_writable().then_some(())
            });
        }
    }
    // A guest meets none of them, and reads the name of an admin for the rest.
    let home = household(json!({}));
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "viewer");
    for name in ["settings", "tools", "upkeep"] {
        go(&mut page, name);
        page.until("document.querySelector('.page').textContent === 'Only admins can open this page. Ask admin.'");
    }
    check(&page, &home);
}

/// What does not answer is said on the page where it is mended, to those who can.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_lies_elsewhere_says_what_is_wrong_with_it() {
    let calendars = CalendarServer::start();
    calendars.refuse_password(true);
    let home = household(json!({
        "backup": { "keep": 0 },
        "mcp_servers": { "lamps": { "url": nowhere() } },
    }));
    let mut admin = home.admin();
    admin.ask(json!({
        "type": "add_calendar", "name": "Family", "url": calendars.url("/dav/"),
        "username": "ada", "password": "wrong", "audience": "household",
    }));
    eventually("the tool server is known to be away", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        info["mcp_servers"][0]["problem"].is_string().then_some(())
    });
    let browser = Chromium::start();
    for name in ["admin", "user", "kid"] {
        let mut page = browser.page();
        page.size(390, 844);
        sign_in_as(&mut page, &home, name);
        // A calendar with a wrong password: whoever added it changes it, others read whose it is.
        go(&mut page, "calendars");
        page.until("document.querySelector('.rows .problem')?.textContent");
        let row = page.evaluate("document.querySelector('.rows .problem').closest('li').textContent + String(Boolean(document.querySelector('[aria-label=\"Change Family\"]')))");
        let row = row.as_str().unwrap();
        let expected = if name == "admin" { "true" } else { "false" };
        assert!(row.ends_with(expected), "{name}: {row}");
        assert!(name == "admin" || row.contains("admin · "), "{name}: {row}");
        // A server of tools that is away.
        go(&mut page, "tools");
        let says = page.evaluate(
            "document.querySelector('.page .problem')?.closest('.card').textContent ?? ''",
        );
        let says = says.as_str().unwrap();
        assert_eq!(says.contains("lamps"), name == "admin", "{name}: {says}");
        check(&page, &home);
    }
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "upkeep");
    press(&mut page, "Back up now");
    page.until("document.querySelector('.toast button')?.textContent === 'Copy the line to type'");
    // The last errors lead there, too.
    let line = "2026-11-27T07:00:00.000Z WARN  mcp lamps: no connection\n";
    std::fs::write(home.folder.path().join("hearth.log"), line).unwrap();
    go(&mut page, "status");
    page.until("document.querySelector('.page').textContent.includes('What went wrong')");
    page.until("document.querySelector('.page .rows a[href=\"#/tools\"]')");
    look(&mut page, "status-errors");
    check(&page, &home);
}

/// A person's own limit is for an admin as well.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_person_without_tokens_left_asks_in_their_own_language() {
    let model = a_model_that_counts();
    let home = Home::start(model.config_with(json!({
        "people": { "user": { "monthly_tokens": 1000 } },
    })));
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "set_language", "language": "de" }));
    user.chat("hello");
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&super::address(&home));
    page.evaluate("localStorage.setItem('hearth.language', 'de')");
    sign_in_as(&mut page, &home, "user");
    page.until("document.querySelector('.composer textarea:enabled')");
    say(&mut page, "hello");
    let asks = "document.querySelector('.failure p')?.textContent.endsWith('Frage admin.')";
    page.until(asks);
    page.reload();
    page.until(asks);
    check(&page, &home);
}

/// A server of tools, and one of the catalogue's, that fail in a chat. What the server of a tool says is no line to copy.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_failed_tool_call_leads_to_where_it_is_mended() {
    let server = McpServer::with_tools(std::iter::empty());
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str() {
            Some(text) if last["role"] == "user" => {
                let call = text.split_whitespace().last().unwrap_or_default();
                let tool = match call {
                    "lamp" => call.to_owned(),
                    _ => format!("mcp_web_{call}"),
                };
                Act::call(&tool, json!({}))
            }
            _ => Act::say("That was it."),
        }
    });
    let headers = json!({ "Authorization": "Bearer open sesame" });
    let lamp = json!({
        "name": "lamp", "description": "The lamp.", "http": { "method": "GET", "url": nowhere() },
    });
    let home = Home::start(model.config_with(json!({
        "mcp_servers": { "web": { "url": server.url(), "headers": headers } },
        "tools": { "custom": [lamp] },
    })));
    let mut admin = home.admin();
    eventually("the server's tools are there", || {
        let listed = admin.ask(json!({ "type": "list_tools" })).to_string();
        listed.contains("mcp_web_broken").then_some(())
    });
    let browser = Chromium::start();
    for name in ["admin", "user"] {
        let mut page = browser.page();
        page.call("Accessibility.enable", json!({}));
        page.call("Page.setBypassCSP", json!({ "enabled": true }));
        page.size(390, 844);
        sign_in_as(&mut page, &home, name);
        page.until("document.querySelector('.composer textarea:enabled')");
        let calls = "[role=log] .tools > li";
        let ends = |text: &str| {
            format!(
                "[...document.querySelectorAll('{calls}')].at(-1).lastChild.textContent.trim() === {}",
                json!(text)
            )
        };
        let asks = if name == "admin" {
            "Open Tools"
        } else {
            "Ask admin."
        };
        for (call, count) in [("plain", 1), ("broken", 2), ("lamp", 3)] {
            say(&mut page, call);
            page.until(&format!(
                "document.querySelectorAll('{calls}').length === {count}"
            ));
            if call != "plain" {
                page.until(&ends(asks));
            }
        }
        let plain = page.evaluate(&format!(
            "document.querySelectorAll('{calls}')[0].children.length"
        ));
        assert_eq!(plain, 1, "what has not failed says nothing more");
        check_names(&mut page, "a failed call");
        if let Some(axe) = axe_core() {
            examine(&mut page, axe, "a failed call");
        }
        page.screenshot(&format!("failed-call-{name}"));
        if name == "admin" {
            press(&mut page, "Open Tools");
            page.until("document.querySelector('.place').dataset.page === 'tools'");
        } else {
            let buttons = page.evaluate(&format!(
                "document.querySelectorAll('{calls} button').length"
            ));
            assert_eq!(buttons, 0, "{name}");
        }
        check(&page, &home);
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_page_that_fails_to_load_is_tried_again() {
    let mut home = Home::offline();
    let port = home.address().port();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    // Its module does not come.
    page.call("Network.setBlockedURLs", json!({ "urls": ["*upkeep.js*"] }));
    page.evaluate("location.hash = '#/upkeep'");
    let again = "document.querySelector('.page > .failure button')?.textContent === 'Try again'";
    page.until(again);
    page.until("document.querySelector('.failure p').textContent.startsWith('Part of this page could not be loaded')");
    look(&mut page, "unloaded");
    page.call("Network.setBlockedURLs", json!({ "urls": [] }));
    page.reloaded(|page| page.click(".page > .failure button"));
    page.until("document.querySelector('.page')?.textContent.includes('Nightly backups') || document.querySelector('.page')?.textContent.includes('Back up now')");
    // Its first command does not: the server is away, and comes back.
    go(&mut page, "status");
    go(&mut page, "help");
    home.stop();
    page.until("!document.querySelector('.banner').hidden");
    page.evaluate("location.hash = '#/status'");
    page.until(again);
    page.click(".page > .failure button");
    page.until(again);
    home.start_on(port);
    page.until("document.querySelector('.page .facts')");
    page.errors.clear();
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_new_name_is_in_the_menu_at_once_on_every_device() {
    let home = Home::offline();
    for name in ["user", "viewer"] {
        let browser = Chromium::start();
        let mut phone = browser.page();
        sign_in_as(&mut phone, &home, name);
        let mut page = browser.page();
        sign_in_as(&mut page, &home, name);
        go(&mut page, "account");
        write(&mut page, "Name", &format!("Oma {name}"));
        save(&mut page, "Name");
        for device in [&mut page, &mut phone] {
            device.until(&format!(
                "document.querySelector('.who-am-i strong').textContent === 'Oma {name}'"
            ));
        }
        check(&page, &home);
        check(&phone, &home);
    }
}
