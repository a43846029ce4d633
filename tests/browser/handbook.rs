//! The handbook in the browser: inside the page, and at /help without signing in.

use serde_json::json;

use super::chromium::{Chromium, Page};
use super::looks::check_names;
use super::pages::{go, look};
use super::{address, check, sign_in};
use support::home::Home;

const FIELD: &str = "[aria-label='Search the handbook']";

fn until_title(page: &mut Page, title: &str) {
    page.until(&format!(
        "document.querySelector('.page h2:not([hidden])')?.textContent === {}",
        json!(title)
    ));
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_handbook_is_read_and_searched_without_signing_in() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&format!("{}help", address(&home)));
    until_title(&mut page, "Hearth handbook");
    page.call("Accessibility.enable", json!({}));
    check_names(&mut page, "handbook");

    // A link of the index, and one from page to page.
    page.click(".handbook a[href='#/help/relay']");
    until_title(&mut page, "Relay");
    page.click(".handbook a[href='#/help/browser/the-page-from-elsewhere']");
    until_title(&mut page, "Browser and terminal");
    page.until("document.activeElement.id === 'help-the-page-from-elsewhere'");

    // By keyboard: search, open the first result, and be where the words are.
    page.fill(FIELD, "wears out SD");
    page.until("document.querySelectorAll('.page .rows > li').length === 1");
    assert_eq!(
        page.evaluate("document.querySelector('.page .rows mark').textContent"),
        "wears"
    );
    page.screenshot("handbook-results");
    page.press("Enter", 0);
    until_title(&mut page, "Operating");
    page.until("document.activeElement.id === 'help-on-a-raspberry-pi'");
    page.until("[...document.querySelectorAll('.handbook p')].some((one) => one.textContent.includes('wears out SD') && one.getBoundingClientRect().top < innerHeight)");

    page.fill(FIELD, "<b>nothing</b> has this");
    page.until(
        "document.querySelector('.page [role=status]').textContent.startsWith('Nothing was found')",
    );

    page.open(&format!("{}help#/help/nonsense", address(&home)));
    until_title(&mut page, "There is no such topic.");
    page.open(&format!("{}help#/help/configuration/tools", address(&home)));
    until_title(&mut page, "Configuration");
    page.until("document.activeElement.id === 'help-tools'");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn every_page_of_the_handbook_shows_its_text_and_leads_on() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "help");
    until_title(&mut page, "Hearth handbook");
    look(&mut page, "handbook");
    for topic in hearth::handbook::TOPICS {
        page.evaluate(&format!("location.hash = '#/help/{}'", topic.name));
        let markdown = topic.markdown();
        let title = markdown.lines().next().unwrap();
        until_title(&mut page, &title[2..]);
        let text = page.evaluate("document.querySelector('.handbook').innerText");
        let text = text.as_str().unwrap();
        assert!(!text.contains("<!--"), "{}: {text}", topic.name);
        for markup in ["](", "\n## ", "\n- `", "|---"] {
            assert!(
                !text.contains(markup),
                "{}: {markup:?} in {text}",
                topic.name
            );
        }
        // Every link within the handbook leads to a page and a heading.
        let links = page.evaluate(
            "[...document.querySelectorAll('.handbook a[href^=\"#\"]')].map((one) => one.hash)",
        );
        for link in links.as_array().unwrap() {
            let mut parts = link.as_str().unwrap().split('/').skip(2);
            let name = parts.next().unwrap();
            let target = hearth::handbook::topic(name);
            assert!(target.is_some(), "{} links to {link}", topic.name);
        }
    }
    for (name, section) in [
        ("protocol", "commands"),
        ("configuration", "tools"),
        ("relay", ""),
    ] {
        page.evaluate(&format!("location.hash = '#/help/{name}/{section}'"));
        page.until(&format!(
            "document.querySelector('.page h2')?.textContent.toLowerCase() === '{name}'"
        ));
        look(&mut page, &format!("handbook-{name}"));
    }
    check(&page, &home);
}
