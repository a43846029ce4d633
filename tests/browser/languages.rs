//! The page in other languages: nothing on it stays English, and nothing is cut off on a phone.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::chromium::{Chromium, Page};
use super::pages::{PAGES, go};
use super::{address, say, sign_in, until_last_reply};
use support::home::{Home, PASSWORD};
use support::model::{Act, Model};

/// A phone's width and height.
const PHONE: (u32, u32) = (390, 844);
/// What people are called here.
const SHARED: [&str; 3] = ["admin", "user", "viewer"];

/// The texts of the page in a language by their keys, without those that have fields.
fn texts(language: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/base/language");
    let text = fs::read_to_string(path.join(format!("{language}.tsv"))).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let of_page = lines.filter(|(_, text)| !text.contains('{') && text.len() > 3);
    let owned = of_page.map(|(key, text)| (key.to_owned(), text.to_owned()));
    owned.collect()
}

/// The text of a key in a language.
pub fn word(language: &str, key: &str) -> String {
    let all = texts(language);
    let found = all.into_iter().find(|(known, _)| known == key);
    found.unwrap_or_else(|| panic!("{language} has no {key}")).1
}

/// English texts that are said otherwise in a language.
fn untranslated(language: &str) -> BTreeSet<String> {
    let own: BTreeSet<String> = texts(language).into_iter().map(|(_, text)| text).collect();
    // A kind of thing never stands alone, and one of them is what a tool is called.
    let of_page = |(key, _): &(String, String)| !key.starts_with("thing.");
    let english = texts("en").into_iter().filter(of_page);
    let english = english.map(|(_, text)| text);
    let english = english.filter(|text| !own.contains(text) && !SHARED.contains(&text.as_str()));
    english.collect()
}

/// Whether the page says nothing in English, and whether all of it fits.
fn look(page: &mut Page, english: &BTreeSet<String>, place: &str, language: &str) {
    page.size(PHONE.0, PHONE.1);
    page.until(&format!("innerWidth === {}", PHONE.0));
    let found = page.evaluate(
        "(() => { const said = new Set(); const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
         while (all.nextNode()) if (!all.currentNode.parentElement.closest('noscript, .handbook, [lang=en]')) said.add(all.currentNode.textContent.trim());
         for (const one of document.querySelectorAll('[aria-label], [title], [placeholder]')) for (const name of ['aria-label', 'title', 'placeholder']) said.add(one.getAttribute(name));
         return [...said]; })()",
    );
    let said = found
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one.as_str());
    let left: Vec<&str> = said.filter(|text| english.contains(*text)).collect();
    assert!(left.is_empty(), "{language}, {place}: {left:?}");
    let wide = page.evaluate(
        "[...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(one).visibility !== 'hidden' && !one.closest('pre, .table, .side, .unseen, [hidden]')).map((one) => one.outerHTML.slice(0, 120)).slice(0, 3)",
    );
    assert_eq!(wide, json!([]), "{language}, {place} is too wide");
    let cut = page.evaluate(
        "[...document.querySelectorAll('button, .badge, h1, h2, label')].filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).overflow !== 'visible' && getComputedStyle(one).textOverflow !== 'ellipsis').map((one) => one.outerHTML.slice(0, 120)).slice(0, 3)",
    );
    assert_eq!(cut, json!([]), "{language}, {place} is cut off");
    assert_eq!(
        page.evaluate("document.documentElement.lang"),
        language,
        "{place}"
    );
    page.screenshot(&format!("{language}-{place}"));
}

fn tour(language: &str, greeting: &str, run: &str) {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match (last["role"] == "tool", last["content"].as_str()) {
            (false, Some(text)) if text.contains("run") => {
                Act::call("run_command", json!({ "command": "true" }))
            }
            _ => Act::say("Ja."),
        }
    });
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["tools"] = json!({ "run_command": { "enabled": true } });
    let home = Home::start(config);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "create_schedule", "prompt": "water", "cron": "30 7 * * 1" }));
    admin.ask(json!({ "type": "update_list", "list": "shopping", "add": ["milk"] }));
    let english = untranslated(language);
    assert!(english.len() > 300, "{}", english.len());
    let browser = Chromium::start_with(&[&format!("--accept-lang={language}")]);
    let mut page = browser.page();
    let look = |page: &mut Page, place: &str| look(page, &english, place, language);
    page.open(&address(&home));
    page.until("document.querySelector('.sign-in form')");
    look(&mut page, "sign-in");
    sign_in(&mut page, &home);
    page.until(&format!(
        "document.querySelector('.welcome h2')?.textContent.includes({greeting:?})"
    ));
    look(&mut page, "welcome");
    say(&mut page, "run it");
    page.until(&format!(
        "document.querySelector('.approval strong')?.textContent.startsWith({run:?})"
    ));
    look(&mut page, "approval");
    page.click(".approval .danger");
    page.until("document.querySelector('[role=log] .assistant .text')");
    look(&mut page, "chat");
    for name in PAGES {
        go(&mut page, name);
        page.until("document.querySelector('.page')?.children.length > 0 && !document.querySelector('.page > p.quiet:only-child')");
        look(&mut page, name);
    }
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn german_is_whole_on_a_phone() {
    tour("de", ", admin", "Der Assistent möchte");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn french_is_whole_on_a_phone() {
    tour("fr", ", admin", "L’assistant veut");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn spanish_is_whole_on_a_phone() {
    tour("es", ", admin", "El asistente quiere");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn italian_is_whole_on_a_phone() {
    tour("it", ", admin", "L’assistente vuole");
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn dutch_is_whole_on_a_phone() {
    tour("nl", ", admin", "De assistent wil");
}

/// Dates, numbers and plurals, too, are those of whoever reads.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn what_others_ask_is_in_the_language_of_its_reader() {
    let command = format!("echo {}", "1".repeat(4_229));
    let model =
        Model::start(move |_, _| Act::call("run_command", json!({ "command": command.as_str() })));
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tools": { "run_command": { "enabled": true } },
    })));
    let browser = Chromium::start_with(&["--accept-lang=de"]);
    let mut page = browser.page();
    sign_in(&mut page, &home);
    // The one who asks reads Spanish.
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "set_language", "language": "es" }));
    for (list, items) in [("Markt", json!(["Milch"])), ("Garten", json!(["a", "b"]))] {
        let add = json!({ "type": "update_list", "list": list, "add": items });
        home.admin().ask(add);
    }
    let bins = json!({ "type": "create_schedule", "say": "Tonnen", "cron": "30 7 * * 1", "people": ["admin"] });
    user.ask(bins);
    let tea = json!({ "type": "create_schedule", "say": "Tee", "at": "2031-03-15T12:00" });
    home.admin().ask(tea);
    user.send(&json!({ "type": "chat", "message": "go", "audience": "household" }));
    let says = |page: &mut Page, place: &str, text: &str| {
        page.until(&format!("[...document.querySelectorAll({place:?})].some((one) => one.textContent.includes({text:?}))"));
    };
    says(&mut page, ".today", "1 offener Eintrag");
    says(&mut page, ".today", "2 offene Einträge");
    page.click(".waiting:not([hidden])");
    says(&mut page, ".approval summary", "Der Assistent möchte");
    says(&mut page, ".approval", "user fragt");
    says(&mut page, ".approval .choices", "Einmal erlauben");
    says(&mut page, ".unfold", "1.234 weitere Zeichen zeigen");
    go(&mut page, "reminders");
    says(&mut page, ".rows", "Von user: Tonnen");
    says(&mut page, ".rows", "jeden Montag um 7:30");
    says(&mut page, ".rows", "Nächstes Mal: 15.03.2031");
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}

/// What goes wrong is said in the language of the page, and without ids.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn errors_are_german() {
    let model = Model::saying("Ja.");
    let mut config = model.config();
    config["budget"] = json!({ "monthly_tokens": 1 });
    let home = Home::start(config);
    let browser = Chromium::start_with(&["--accept-lang=de"]);
    let mut page = browser.page();
    sign_in(&mut page, &home);
    say(&mut page, "eins");
    until_last_reply(&mut page, "Ja.");
    say(&mut page, "zwei");
    page.until("document.body.innerText.includes('Das Budget dieses Monats ist aufgebraucht')");
    let said = page.evaluate(
        "import(new URL('session.js', document.querySelector('script[src]').src)).then(({ sentence }) => sentence('there is no conversation conv_0000000000001'))",
    );
    assert_eq!(said, "There is no conversation.");
    // Also what the server says of a setting.
    go(&mut page, "settings");
    page.fill("[type=url]", "ftp://nas");
    page.click(".save button");
    page.until("document.body.innerText.includes('wird eine URL mit https:// oder http:// am Anfang erwartet')");
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}

/// A person chooses on the page Account, and has it on any device.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_language_is_chosen_on_the_page_account() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "account");
    let choose = |page: &mut Page, label: &str, language: &str| {
        page.reloaded(|page| drop(page.evaluate(&format!(
            "{{ const chosen = document.querySelector('select[aria-label={label}]'); chosen.value = '{language}'; chosen.dispatchEvent(new Event('change')); }}"
        ))));
    };
    choose(&mut page, "Language", "it");
    page.until("document.querySelector('select[aria-label=Lingua]')?.value === 'it'");
    assert_eq!(page.evaluate("document.documentElement.lang"), "it");
    // On another device it is loaded once more, when it is known who signs in.
    let elsewhere = Chromium::start();
    let mut other = elsewhere.page();
    other.open(&address(&home));
    other.fill("[name=username]", "admin");
    other.fill("[name=password]", PASSWORD);
    other.reloaded(|page| page.click("button[type=submit]"));
    other.until("document.documentElement.lang === 'it' && document.querySelector('.welcome')");
    choose(&mut page, "Lingua", "");
    page.until("document.querySelector('select[aria-label=Language]')");
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}
