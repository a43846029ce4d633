//! Links by which people choose a password, and what a person does with their own account.

use serde_json::{Value, json};

use super::chromium::{Chromium, Page};
use super::pages::{go, look};
use super::{address, check, say, sign_in, until_last_reply};
use support::home::Home;
use support::http::post;
use support::model::Model;

const PROBLEM: &str = "document.querySelector('.problem').textContent";

/// The link in the open dialog, which is then closed.
pub fn take_link(page: &mut Page) -> String {
    page.until("document.querySelector('dialog[open] svg path') && document.querySelector('dialog code').textContent.includes('#invite=')");
    let link = page.evaluate("document.querySelector('dialog code').textContent");
    page.click("dialog button[type=submit]");
    page.until("!document.querySelector('dialog')");
    link.as_str().unwrap().to_owned()
}

pub fn choose_password(page: &mut Page, password: &str, again: &str) {
    page.fill("[aria-label='Password']", password);
    page.fill("[aria-label='Password, once more']", again);
    page.press("Enter", 0);
}

pub fn until_signed_in(page: &mut Page, name: &str) {
    page.until(&format!(
        "document.querySelector('.who-am-i strong')?.textContent === '{name}'"
    ));
}

/// Fills in a form of a page by its heading, and sends it.
fn send_form(page: &mut Page, heading: &str, values: &[&str]) {
    page.until(&format!(
        "window.filled = [...document.querySelectorAll('.card')].find((one) => one.querySelector('h2').textContent === '{heading}')?.querySelector('form')"
    ));
    page.evaluate(&format!(
        "{}.forEach((value, place) => {{ filled.querySelectorAll('input')[place].value = value }}); filled.querySelector('[type=submit]').click()",
        json!(values)
    ));
}

fn status_of(home: &Home, name: &str, password: &str) -> u16 {
    let body = json!({ "username": name, "password": password });
    post(home.address(), "/auth", &[], &body).status
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_invited_person_chooses_a_password_and_keeps_an_account() {
    let model = Model::saying("so be it");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "people");
    let invite = ".card:first-child form";
    page.fill(&format!("{invite} input[type=text]"), "grace");
    page.click(&format!("{invite} button"));
    page.until("document.querySelector('dialog[open] svg')");
    look(&mut page, "link");
    assert_eq!(
        page.evaluate("document.querySelector('dialog').getBoundingClientRect().bottom - document.querySelector('dialog button[type=submit]').getBoundingClientRect().bottom > 10"),
        true,
        "the button is in the dialog"
    );
    let link = take_link(&mut page);
    assert!(link.starts_with(&address(&home)), "{link}");
    page.until("document.querySelector('.page').textContent.includes('link works until')");
    look(&mut page, "invited");
    page.evaluate("document.querySelector('.page').scrollTop = 500");
    page.screenshot("invited-below");

    let other_browser = Chromium::start();
    let mut other = other_browser.page();
    other.open(&link);
    other.until("document.querySelector('h1')?.textContent === 'Welcome, grace'");
    assert_eq!(
        other.evaluate("location.hash"),
        "",
        "the link is not kept in the history"
    );
    for (size, width) in [("phone", 390), ("desktop", 1280)] {
        other.size(width, 844);
        other.screenshot(&format!("join-{size}"));
    }
    choose_password(&mut other, "correct horse", "another horse");
    other.until(&format!("{PROBLEM}.includes('do not match')"));
    choose_password(&mut other, "correct horse", "correct horse");
    until_signed_in(&mut other, "grace");
    page.until("!document.querySelector('dialog')");

    say(&mut other, "a surprise");
    until_last_reply(&mut other, "so be it");
    go(&mut other, "account");
    look(&mut other, "account");
    other.evaluate("document.querySelector('.page').scrollTop = 9999");
    other.screenshot("account-below");
    other.evaluate(
        "const made = URL.createObjectURL; \
         URL.createObjectURL = (file) => { file.text().then((text) => { window.saved = text; }); return made.call(URL, file); }; \
         [...document.querySelectorAll('.card button')].find((one) => one.textContent === 'Export').click()",
    );
    other.until("window.saved?.includes('hearth_export') && saved.includes('a surprise') && saved.includes('so be it')");

    // The password of nobody else: refused, and the account stays.
    send_form(&mut other, "Password", &["wrong horse", "a new horse"]);
    other.until("document.querySelector('.toast')?.textContent.includes('not your password')");
    send_form(&mut other, "Password", &["correct horse", "a new horse"]);
    other.until("document.querySelector('.toast')?.textContent.includes('is changed')");
    assert_eq!(status_of(&home, "grace", "correct horse"), 401);
    assert_eq!(status_of(&home, "grace", "a new horse"), 200);

    let sign_out = "[...document.querySelectorAll('.card button')].find((one) => one.textContent === 'Sign out everywhere').click()";
    other.evaluate(sign_out);
    other.click("dialog button[type=submit]");
    other.until("document.querySelector('.sign-in form')");
    other.until(&format!("{PROBLEM}.includes('You were signed out')"));
    assert!(
        other
            .evaluate("document.querySelector('.toast')?.textContent ?? null")
            .as_str()
            .is_none_or(|toast| !toast.contains("lost"))
    );
    check(&other, &home);

    // A link works once, and the page says so.
    other.open("about:blank");
    other.open(&link);
    other.until("document.querySelector('[name=username]')");
    other.until(&format!("{PROBLEM}.includes('link')"));
    other.screenshot("join-used");
    other.errors.clear();

    // The admin makes a link for a new password.
    go(&mut page, "status");
    go(&mut page, "people");
    page.click("[aria-label='New password for grace']");
    page.click("dialog button[type=submit]");
    let link = take_link(&mut page);
    other.open("about:blank");
    other.open(&link);
    other.until("document.querySelector('h1')?.textContent === 'A new password'");
    choose_password(&mut other, "a third horse", "a third horse");
    until_signed_in(&mut other, "grace");

    // Who deletes the account types the name, so that nobody does it by accident.
    go(&mut other, "account");
    for name in ["admin", "grace"] {
        send_form(&mut other, "Delete account", &["a third horse"]);
        other.fill("dialog input", name);
        other.click("dialog button[type=submit]");
        if name == "admin" {
            other.until("document.querySelector('.toast')?.textContent.includes('Nothing was')");
        }
    }
    other.until("document.querySelector('.sign-in form')");
    assert_eq!(status_of(&home, "grace", "a third horse"), 401);
    let users = home.admin().ask(json!({ "type": "list_users" }))["users"].clone();
    let is_grace = |user: &Value| user["name"] == "grace";
    assert!(!users.as_array().unwrap().iter().any(is_grace));
    check(&page, &home);
    check(&other, &home);
}
