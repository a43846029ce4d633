//! A conversation as a file and on paper, and its files as downloads.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::chromium::{Chromium, Page};
use super::{LAST_REPLY, check, long_conversation, say, sign_in, until_last_reply};
use support::MAX_WAIT;
use support::home::{Home, TemporaryDirectory};
use support::model::Model;

/// Saves what is downloaded in a folder, without asking.
fn download_to(page: &mut Page, folder: &Path) {
    page.call(
        "Page.setDownloadBehavior",
        json!({ "behavior": "allow", "downloadPath": folder }),
    );
}

/// The whole text of a file, once the browser has saved it.
fn saved(path: &Path) -> String {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        match fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(Instant::now() < deadline, "{} is missing", path.display()),
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

fn choose(page: &mut Page, entry: &str) {
    page.until("document.querySelector('.top .menu-place button')");
    page.evaluate(&format!("[...document.querySelectorAll('.top .menu button')].find((one) => one.textContent === '{entry}').click()"));
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_conversation_is_saved_and_printed_whole() {
    let mut home = Home::offline();
    home.stop();
    // More than a page of what is asked for at once.
    let conversation = long_conversation(&home.folder, 300);
    home.restart();
    let browser = Chromium::start();
    let mut page = browser.page();
    let folder = TemporaryDirectory::new();
    download_to(&mut page, folder.path());
    sign_in(&mut page, &home);
    page.evaluate(&format!("location.hash = '#/c/{conversation}'"));
    page.until(&format!(
        "{LAST_REPLY}?.textContent === 'answer 299 with some text'"
    ));
    choose(&mut page, "Export");
    let text = saved(&folder.path().join("question 0.md"));
    assert!(text.starts_with("# question 0\n\nconv_"), "{text}");
    assert!(text.contains("\n\n## admin, "), "{text}");
    let places = (0..300).flat_map(|number| {
        let answer = format!("\n\nanswer {number} with **some** `text`\n");
        [format!("\n\nquestion {number}\n"), answer].map(|part| {
            let mut found = text.match_indices(&part).map(|(place, _)| place);
            let place = found.next().unwrap_or_else(|| panic!("{part} is missing"));
            assert_eq!(found.next(), None, "{part} is there twice");
            place
        })
    });
    assert!(places.is_sorted(), "in order");

    // Paper has all of it, and nothing to press.
    page.evaluate("window.print = () => { window.printed = document.querySelectorAll('[role=log] .message').length; }");
    choose(&mut page, "Print");
    page.until("window.printed === 600");
    page.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    let shown = "[...document.querySelectorAll('button, textarea, input, .side, .composer')].filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 120))";
    assert_eq!(page.evaluate(shown), json!([]));
    let height = page.evaluate("document.querySelector('.scroller').clientHeight === document.querySelector('.scroller').scrollHeight");
    assert_eq!(height, true, "nothing is cut off");
    page.call("Emulation.setEmulatedMedia", json!({ "media": "" }));
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_file_of_a_message_is_downloaded_as_it_was_sent() {
    let model = Model::saying("read");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    let folder = TemporaryDirectory::new();
    download_to(&mut page, folder.path());
    sign_in(&mut page, &home);
    let recipe = "Flour, eggs\n".repeat(30);
    page.evaluate(&format!(
        "(() => {{ const data = new DataTransfer(); data.items.add(new File([{}], 'pancakes.txt', {{ type: 'text/plain' }})); document.querySelector('.composer textarea').dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: data, bubbles: true, cancelable: true }})); }})()",
        json!(recipe)
    ));
    page.until(
        "document.querySelector('.pending li') && !document.querySelector('.send').disabled",
    );
    say(&mut page, "for Sunday");
    until_last_reply(&mut page, "read");
    page.until("document.querySelector('[role=log] .person .files button')");
    page.click("[role=log] .person .files button");
    page.until("document.querySelector('.viewer [aria-label=Download]')");
    page.click(".viewer [aria-label=Download]");
    assert_eq!(saved(&folder.path().join("pancakes.txt")), recipe);
    page.press("Escape", 0);

    // The export names it.
    choose(&mut page, "Export");
    let name = page.evaluate("document.querySelector('.top h1').textContent");
    let text = saved(&folder.path().join(format!("{}.md", name.as_str().unwrap())));
    assert!(
        text.contains("for Sunday\n\n- Attached: pancakes.txt (text/plain"),
        "{text}"
    );
    check(&page, &home);
}
