//! A conversation as a file and on paper, and its files as downloads.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::forms::press;
use super::pages::{go, look};
use super::{LAST_REPLY, check, long_conversation, say, sign_in, until_last_reply};
use support::MAX_WAIT;
use support::client::Client;
use support::home::{Home, TemporaryDirectory};
use support::model::Model;
use support::program::{printed, run};

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

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_guest_saves_what_is_theirs() {
    let home = Home::offline();
    // Who becomes a guest keeps what is theirs, and no more.
    home.websocket(&home.tokens.user).chat("The boiler hums");
    let mut admin = home.admin();
    admin.chat("The roof leaks");
    admin.ask(json!({ "type": "set_role", "name": "user", "role": "viewer" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    let folder = TemporaryDirectory::new();
    download_to(&mut page, folder.path());
    sign_in_as(&mut page, &home, "user");
    go(&mut page, "account");
    look(&mut page, "account-guest");
    let offered = page.evaluate(
        "[...document.querySelectorAll('.page .card > h2')].map((one) => one.textContent)",
    );
    // Nothing that only those need who may write.
    let for_guests = json!([
        "Name",
        "Theme",
        "Language",
        "Password",
        "Another device",
        "Signed in",
        "Your data",
        "Delete account"
    ]);
    assert_eq!(offered, for_guests);
    let imports = "[...document.querySelectorAll('.page button')].some((one) => one.textContent === 'Import')";
    assert_eq!(page.evaluate(imports), false);
    press(&mut page, "Export");
    let text = saved(&folder.path().join("hearth-user.jsonl"));
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    assert_eq!(lines[0]["type"], "hearth_export");
    assert!(text.contains("The boiler hums") && !text.contains("The roof leaks"));
    check(&page, &home);
}

/// The buttons by which a backup is saved, and links to files.
const DOWNLOADS: &str = "document.querySelectorAll('.page [aria-label=\"Download this backup\"], .page a[download], .page a[href*=backup]').length";

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_backup_leaves_encrypted_alone_and_opens_with_its_key() {
    let home = Home::start(json!({ "backup": { "at": "00:00" } }));
    let mut admin = home.admin();
    admin.chat("The boiler hums");
    let browser = Chromium::start();
    let mut page = browser.page();
    let folder = TemporaryDirectory::new();
    download_to(&mut page, folder.path());
    sign_in(&mut page, &home);
    go(&mut page, "upkeep");
    let rows = "[...document.querySelectorAll('.page .rows > li')].map((one) => one.textContent)";
    press(&mut page, "Back up now");
    page.until(&format!("{rows}.some((one) => one.includes('.db'))"));
    // One that is not encrypted stays where it is.
    assert_eq!(page.evaluate(DOWNLOADS), 0);
    let names = |admin: &mut Client| {
        let known = admin.ask(json!({ "type": "list_backups" }))["backups"].clone();
        let names = known.as_array().unwrap().iter();
        let names = names.map(|one| one["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    let plain = names(&mut admin).remove(0);
    let take = |name: &str| json!({ "type": "download_backup", "name": name, "part": 0 });
    assert_eq!(admin.refused(take(&plain)), "not_found");

    let secrets = TemporaryDirectory::new();
    let key = secrets.path().join("backup.key").display().to_string();
    let hearth = |folder: &Path, arguments: &[&str]| {
        let output = run(folder, arguments);
        assert!(output.status.success(), "{}", printed(&output));
        printed(&output)
    };
    let said = hearth(home.folder.path(), &["backup", "--new-key", &key]);
    let mut words = said.split_whitespace();
    let public = words.find(|word| word.starts_with("age1")).unwrap();
    let set = ["config", "set", "backup.encrypt_to", public];
    hearth(home.folder.path(), &set);
    press(&mut page, "Back up now");
    page.until(&format!("{DOWNLOADS} === 1"));
    page.screenshot("backup-encrypted");
    let names = names(&mut admin);
    let encrypted = names.iter().find(|name| name.ends_with(".age")).unwrap();
    for name in names.iter().filter(|name| *name != encrypted) {
        assert_eq!(admin.refused(take(name)), "not_found", "{name}");
    }
    let mut user = home.websocket(&home.tokens.user);
    assert_eq!(user.refused(take(encrypted)), "unauthorized");

    page.click("[aria-label='Download this backup']");
    let file = folder.path().join(encrypted);
    let bytes = support::eventually("the backup is saved", || {
        fs::read(&file).ok().filter(|bytes| !bytes.is_empty())
    });
    assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
    let file = file.display().to_string();
    let elsewhere = TemporaryDirectory::new();
    let without = run(elsewhere.path(), &["restore", &file]);
    assert!(!without.status.success(), "{}", printed(&without));
    hearth(elsewhere.path(), &["restore", "--identity", &key, &file]);
    let held = hearth(elsewhere.path(), &["export", "--all"]);
    assert!(held.contains("The boiler hums"), "{held}");
    check(&page, &home);
}
