//! A household of three on phones, without a terminal: the admin's first visit with a model
//! server that is found, two invitations, a child's limits, a list and a reminder.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::chromium::{Chromium, Page};
use super::forms::{press, send, write};
use super::invitations::{choose_password, take_link, until_signed_in};
use super::visit::{go_on, new_home, visit_first};
use super::{check, until_last_reply};
use support::home::Home;
use support::served::{Served, ok};

const REPLY: &str = "Good to have you here.";
/// What nobody who lives here should have to know.
const UNKNOWN_WORDS: [&str; 9] = [
    "API",
    "JSON",
    "cron",
    "webhook",
    "token",
    "hearth ",
    "127.0.0.1",
    "undefined",
    "null",
];

/// An Ollama server with one model, which says the same to everybody.
fn ollama() -> Served {
    Served::answering(|head, _| {
        let words = head.split(' ').nth(1).unwrap();
        let answer = match words {
            "/api/version" => json!({ "version": "0.12.6" }),
            "/api/tags" => json!({ "models": [{ "name": "gemma3:latest" }] }),
            "/api/show" => json!({ "model_info": { "gemma3.context_length": 32_768 } }),
            "/api/chat" => json!({
                "message": { "role": "assistant", "content": REPLY }, "done": true,
                "done_reason": "stop", "prompt_eval_count": 900, "eval_count": 6,
            }),
            _ => {
                return Some(Arc::from(
                    &b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..],
                ));
            }
        };
        let text = ok("application/x-ndjson", &format!("{answer}\n"));
        Some(text.into_bytes().into())
    })
}

/// A phone of its own.
fn phone(browser: &Chromium) -> Page {
    let mut page = browser.page();
    page.size(390, 844);
    let touch = json!({ "enabled": true });
    page.call("Emulation.setTouchEmulationEnabled", touch);
    page
}

/// Nothing stands out at the side.
fn fits(page: &mut Page, place: &str) {
    let over = page.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert_eq!(over, json!(0), "{place}");
    page.screenshot(&format!("household-{place}"));
}

/// The same, and every word is one that people know.
fn is_plain(page: &mut Page, place: &str) {
    fits(page, place);
    let said = page.evaluate("document.body.innerText");
    for word in UNKNOWN_WORDS {
        assert!(
            !said.as_str().unwrap().contains(word),
            "{place}, {word}: {said}"
        );
    }
}

/// Follows a link of the menu, as a thumb does.
fn follow(page: &mut Page, label: &str) {
    page.click(".open-side");
    tap(page, label);
    page.until("!document.querySelector('.side.shown')");
}

/// Taps a link, a row or a button that begins so.
fn tap(page: &mut Page, label: &str) {
    let found = format!(
        "[...document.querySelectorAll('a, button')].find((one) => one.checkVisibility() && one.textContent.startsWith({}))",
        json!(label)
    );
    page.until(&found);
    page.evaluate(&format!("{found}.click()"));
}

/// Writes a message, and waits for its reply.
fn chat(page: &mut Page, text: &str) {
    page.fill(".composer textarea", text);
    page.click(".send");
    until_last_reply(page, REPLY);
}

/// Invites somebody in the first steps; the link.
fn invite(page: &mut Page, name: &str, display_name: &str) -> String {
    write(page, "Name for signing in", name);
    write(page, "What people call them", display_name);
    press(page, "Invite");
    page.until("document.querySelector('dialog[open] svg path')");
    // Where nobody else can open the address, that is said before they try.
    page.until(
        "document.querySelector('dialog .problem')?.textContent.includes('this machine alone')",
    );
    fits(page, &format!("link-of-{name}"));
    take_link(page)
}

/// Opens an invitation and chooses a password.
fn join(page: &mut Page, home: &Home, link: &str, name: &str) {
    page.open(link);
    page.until(&format!(
        "document.querySelector('h1')?.textContent === 'Welcome, {name}'"
    ));
    is_plain(page, &format!("join-{name}"));
    choose_password(page, "correct horse", "correct horse");
    until_signed_in(page, name);
    page.until("document.querySelector('.welcome')");
    is_plain(page, &format!("welcome-{name}"));
    chat(page, "Hello, it is me");
    is_plain(page, &format!("chat-{name}"));
    check(page, home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_household_of_three_needs_no_terminal() {
    let ollama = ollama();
    let home = new_home();
    let browser = Chromium::start();
    let mut admin = phone(&browser);
    let page = &mut admin;

    visit_first(page, &home);
    is_plain(page, "name");
    page.fill(".guide input", "Mia");
    go_on(page, "Next", "Which model answers?");
    page.click("[name=where][value=network]");
    page.fill(".place-of-model input", &ollama.address.to_string());
    press(page, "Look there");
    page.until(&format!(
        "document.querySelector('.found-server h3')?.textContent === 'Ollama at http://{}'",
        ollama.address
    ));
    press(page, "Test and use it");
    page.until("document.querySelector('.taking .good')");
    fits(page, "model");
    go_on(page, "Next", "Who else lives here?");
    let link_of_ben = invite(page, "ben", "Ben");
    page.click(".guide [type=checkbox]");
    is_plain(page, "family");
    let link_of_lea = invite(page, "lea", "Lea");
    page.until(
        "document.querySelector('.guide').textContent.includes('Here already: Mia, Ben, Lea')",
    );
    go_on(page, "Next", "Where do backups go?");
    fits(page, "backups");
    go_on(page, "Next", "Hearth on your phone");
    is_plain(page, "phones");
    press(page, "Done");
    page.until("document.querySelector('.welcome h2')?.textContent.endsWith('Mia')");
    is_plain(page, "home");
    chat(page, "Hello");
    is_plain(page, "chat-Mia");

    let mut ben = phone(&browser);
    join(&mut ben, &home, &link_of_ben, "Ben");
    let mut lea = phone(&browser);
    join(&mut lea, &home, &link_of_lea, "Lea");
    // Ben is called otherwise by those who live with him.
    ben.click(".open-side");
    ben.click(".foot .menu-place > button");
    tap(&mut ben, "Account");
    write(&mut ben, "Name", "Papa");
    press(&mut ben, "Save");
    until_signed_in(&mut ben, "Papa");

    // What a child may do is in the words of its row.
    follow(page, "Manage");
    tap(page, "People");
    page.until("document.querySelector('.rows').textContent.includes('Papa')");
    fits(page, "people");
    page.click("[aria-label='Name and limits of lea']");
    write(page, "Tokens a month", "200000");
    write(page, "Instructions", "Answer for a nine year old.");
    page.until("document.querySelector('dialog').textContent.includes('parts of words')");
    fits(page, "limits");
    send(page);
    page.until("[...document.querySelectorAll('.rows > li')].some((one) => one.textContent.includes('Lea') && one.textContent.includes('of 200,000 tokens'))");

    // A list that everybody has.
    follow(page, "Lists");
    is_plain(page, "no-lists");
    press(page, "New list");
    page.until("document.querySelector('dialog').textContent.includes('Everybody in the household sees the list')");
    page.fill("dialog input", "Shopping");
    press(page, "Make list");
    page.until("document.activeElement.matches('[aria-label=\"Add an item\"]')");
    page.fill("[aria-label='Add an item']", "Milk");
    press(page, "Add");
    page.until("document.querySelector('.rows').textContent.includes('Milk')");
    for (other, name) in [(&mut ben, "Papa"), (&mut lea, "Lea")] {
        follow(other, "Lists");
        other.until("document.querySelector('.rows')?.textContent.includes('Milk')");
        is_plain(other, &format!("list-{name}"));
    }
    lea.click(".rows [type=checkbox]");
    page.until("document.querySelector('.rows [type=checkbox]').checked");

    // A reminder for the child comes to the child.
    follow(page, "Reminders");
    is_plain(page, "no-reminders");
    press(page, "New reminder or routine");
    write(page, "Text", "Feed the cat");
    write(page, "When?", "at");
    write(page, "Time", "in 20 minutes");
    page.click("dialog [name=person][value=admin]");
    page.click("dialog [name=person][value=lea]");
    is_plain(page, "reminder");
    send(page);
    page.until("document.querySelector('.toast')?.textContent.startsWith('Set for Lea: ')");
    follow(&mut lea, "Reminders");
    lea.until("document.querySelector('.page .rows').textContent.includes('Feed the cat')");
    is_plain(&mut lea, "reminders-Lea");
    home.server().advance_clock(Duration::from_secs(1_300));
    lea.until("document.querySelector('.told')?.textContent.includes('Feed the cat')");
    is_plain(&mut lea, "told-Lea");
    assert_eq!(ben.evaluate("document.querySelector('.told')"), Value::Null);
    for page in [&admin, &ben, &lea] {
        check(page, &home);
    }
}
