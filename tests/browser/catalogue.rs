//! Adding a tool of the catalogue, and showing the address to another device.

use std::path::Path;

use serde_json::json;

use super::audiences::sign_in_as;
use super::chromium::Chromium;
use super::pages::{go, look};
use super::{address, check, sign_in};
use support::eventually;
use support::home::{Home, TemporaryDirectory};
use support::program::{printed, run};
use support::served::Served;

/// The owner installs one in the terminal; the open page shows it at once, and admins remove it.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_skill_is_seen_by_members_and_removed_by_admins() {
    let home = Home::offline();
    let skill = home.folder.path().join("tea");
    std::fs::create_dir(&skill).unwrap();
    let manifest = "---\nname: tea\ndescription: How to brew tea\n---\nSlowly.\n";
    std::fs::write(skill.join("SKILL.md"), manifest).unwrap();
    let browser = Chromium::start();
    let (mut page, mut other) = (browser.page(), browser.page());
    sign_in(&mut page, &home);
    sign_in_as(&mut other, &home, "user");
    for page in [&mut page, &mut other] {
        go(page, "tools");
    }
    let added = run(
        home.folder.path(),
        &["skill", "add", skill.to_str().unwrap()],
    );
    assert!(added.status.success(), "{}", printed(&added));
    let shown = "[...document.querySelectorAll('.page .rows > li')].some((one) => one.textContent.includes('How to brew tea'))";
    page.until(shown);
    go(&mut other, "lists");
    go(&mut other, "tools");
    other.until(shown);
    let removes = "[...document.querySelectorAll('.page .rows > li')].find((one) => one.textContent.includes('How to brew tea')).querySelector('button')";
    assert!(other.evaluate(removes).is_null());
    look(&mut page, "skills");
    page.evaluate(&format!("{removes}.click()"));
    page.click("dialog [type=submit]");
    page.until(&format!("!document.querySelector('dialog') && !({shown})"));
    let skills = home.admin().ask(json!({ "type": "list_skills" }));
    assert_eq!(skills["skills"], json!([]));
    check(&page, &home);
    check(&other, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_tool_is_added_tried_and_removed() {
    let notes = TemporaryDirectory::new();
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_stub.sh");
    let home = Home::start(json!({ "mcp_servers": { "stub": {
        "command": "sh", "args": [stub], "env": { "STUB_NOTES": notes.path().join("notes") },
    } } }));
    let searching = Served::answering(|head, _| {
        let found = json!({"results": [{"title": "A page", "url": "https://example.org/", "content": "Words."}]});
        let (status, text) = match head.starts_with("GET /search?q=weather&format=json ") {
            true => ("200 OK", found.to_string()),
            false => ("403 Forbidden", String::new()),
        };
        let length = text.len();
        let whole = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{text}");
        Some(whole.into_bytes().into())
    });
    let browser = Chromium::start();
    let mut page = browser.page();
    let page = &mut page;
    sign_in(page, &home);
    let mut admin = home.admin();
    eventually("the tools of the stub", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        (info["mcp_servers"][0]["state"] == "ready").then_some(())
    });
    page.evaluate("location.hash = '#/tools'");
    page.until("document.body.innerText.includes('Its server says that it only reads.')");
    let press = |label: &str| {
        format!(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === '{label}')"
        )
    };
    page.until(&press("Add a tool"));
    page.evaluate(&format!("{}.click()", press("Add a tool")));
    page.until("document.querySelector('select[aria-label=Tool]')");
    page.evaluate("{ const which = document.querySelector('select[aria-label=Tool]'); which.value = 'searxng'; which.dispatchEvent(new Event('change')); }");
    page.until(&press("Try and add"));
    page.fill(
        "form input[type=text]",
        &format!("http://{}/wrong", searching.address),
    );
    page.evaluate(&format!("{}.click()", press("Try and add")));
    page.until("document.querySelector('form .problem')?.textContent.includes('403')");
    page.fill(
        "form input[type=text]",
        &format!("http://{}", searching.address),
    );
    page.screenshot("catalogue");
    page.evaluate(&format!("{}.click()", press("Try and add")));
    page.until(
        "document.querySelector('.toast')?.textContent.includes('web_search runs without asking')",
    );
    let row =
        "[...document.querySelectorAll('li strong')].some((one) => one.title === 'web_search')";
    page.until(row);
    page.evaluate("document.querySelector('[aria-label=\"Remove: Web search\"]').click()");
    page.until("document.querySelector('dialog[open] .danger')");
    page.evaluate("document.querySelector('dialog[open] .danger').click()");
    page.until(&format!("!{row}"));

    page.evaluate("location.hash = '#/account'");
    page.until(&press("Show the code"));
    page.evaluate(&format!("{}.click()", press("Show the code")));
    page.until("document.querySelector('dialog[open] svg path')");
    let shown = page.evaluate("document.querySelector('dialog[open] code').textContent");
    assert_eq!(shown, address(&home));
    page.screenshot("address");
}
