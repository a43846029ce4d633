//! What a running tool asks, as a form on the page.

use std::path::Path;

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::pages::look;
use super::{check, say, sign_in};
use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory};

/// A server of the Model Context Protocol that asks.
pub fn desk(notes: &TemporaryDirectory) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_asking.sh");
    json!({"desk": {
        "command": "sh", "args": [script], "trusted": true, "env": {"STUB_NOTES": notes.path().join("notes")},
    }})
}

pub fn wait_until_ready(client: &mut Client) {
    eventually("the server's tools are there", || {
        let info = client.ask(json!({"type": "server_info"}));
        (info["mcp_servers"][0]["state"] == "ready").then_some(())
    });
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_question_is_a_form_in_place() {
    let notes = TemporaryDirectory::new();
    let home = Home::start(json!({
        "permission_mode": "allow",
        "tool_permissions": {"web_fetch": "ask"},
        "mcp_servers": desk(&notes),
        "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
    }));
    wait_until_ready(&mut home.admin());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    let reply = super::LAST_REPLY;

    say(&mut page, "run mcp_desk_book");
    page.until("document.querySelector('.question-form select')");
    let text = page.evaluate("document.querySelector('.approval').innerText");
    let text = text.as_str().unwrap();
    for expected in [
        "desk asks you, through mcp_desk_book",
        "Which room?",
        "The tool mcp_desk_book asks. Do not enter passwords.",
        "mail (optional)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(
        page.evaluate("document.querySelector('.question-form select').value"),
        "r2"
    );
    look(&mut page, "question");

    // Something else happens meanwhile: what is filled in keeps the focus.
    let guests = ".question-form input[type=number]";
    page.fill(guests, "20");
    page.evaluate(&format!("document.querySelector('{guests}').focus()"));
    let mut other = home.admin();
    other
        .send(&json!({"type": "chat", "message": "run web_fetch {\"url\": \"http://a.example\"}"}));
    page.until("document.querySelector('.waiting:not([hidden]) span')?.textContent === '1'");
    let has_focus = format!("document.activeElement === document.querySelector('{guests}')");
    page.until(&has_focus);

    // What is wrong is named, and has the focus.
    page.click(".question-form [type=submit]");
    page.until(
        "document.querySelector('.question-form .problem').textContent.startsWith('“guests”:')",
    );
    page.until(&has_focus);
    page.fill(guests, "3");
    page.press("Enter", 0);
    page.until("!document.querySelector('.approval')");
    page.until(&format!(
        "{reply}?.textContent.includes(\"'content':{{'room':'r2','guests':3,'quiet':false}}\")"
    ));

    for (button, action) in [("Decline", "decline"), ("Cancel", "cancel")] {
        say(&mut page, "run mcp_desk_confirm");
        page.until("document.querySelector('.question-form')");
        page.evaluate(&format!(
            "[...document.querySelectorAll('.question-form button')].find((one) => one.textContent === '{button}').click()"
        ));
        page.until("!document.querySelector('.approval')");
        page.until(&format!(
            "{reply}?.textContent.includes(\"'action':'{action}'\")"
        ));
    }
    check(&page, &home);
}
