//! The README's picture: `target/browser/readme.png`, kept as examples/screenshot.png.

use serde_json::json;

use super::chromium::Chromium;
use super::{LAST_REPLY, check, say, sign_in};
use support::calendar_server::CalendarServer;
use support::eventually;
use support::home::Home;
use support::model::{Act, Model};

const DINNERS: &str = "Priya is vegetarian and Leo must not have peanuts, so:

| Evening | Dinner | At home |
| --- | --- | --- |
| Monday | Mushroom risotto | 4 |
| Tuesday | Pea curry, cashews in place of peanuts | 4 |
| Wednesday | Flatbread with lentils | 3, Tom is at choir |

Rice and lentils are there. *Mushrooms*, *peas* and *yoghurt* are now on the shopping list.";

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_picture_of_the_readme_is_taken() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let asked = |words: &str| messages.last().unwrap().to_string().contains(words);
        match () {
            () if asked("dinners") => Act::call(
                "lists",
                json!({ "action": "add", "list": "shopping", "items": ["Mushrooms", "Peas", "Yoghurt"] }),
            ),
            () if asked("Mushrooms") => Act::say(DINNERS),
            () if asked("on Thursday") => Act::call(
                "edit_events",
                json!({ "action": "add", "title": "Cello lesson", "start": "2026-12-03T17:00", "calendar": "Family" }),
            ),
            () => Act::say("It is."),
        }
    });
    let home = Home::start(model.config_with(json!({
        "model": "qwen3:14b",
        "permission_mode": "ask",
        "tool_permissions": { "lists": "allow" },
    })));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "set_display_name", "display_name": "Ada" }));
    let calendars = CalendarServer::start();
    admin.ask(json!({
        "type": "add_calendar", "name": "Family", "url": calendars.url("/"), "username": "ann",
        "password": "hidden-word", "audience": "household",
    }));
    eventually("the calendar is read", || {
        let listed = admin.ask(json!({ "type": "list_calendars" }));
        (listed["calendars"][0]["state"] == "ok").then_some(())
    });
    for (conversation, message) in [
        ("A cello lesson moved to Friday", "Is it moved?"),
        ("Cottage in Cornwall, 16 August", "Is it booked?"),
        ("When the bins go out", "Is it today?"),
    ] {
        let asked = admin.ask(json!({ "type": "chat", "message": message }));
        let id = asked["conversation_id"].clone();
        admin.ask(
            json!({ "type": "rename_conversation", "conversation_id": id, "title": conversation }),
        );
        admin.ask(json!({ "type": "mark_read", "conversation_id": id }));
    }
    page.reload();
    page.until("document.querySelector('.who-am-i strong')?.textContent === 'Ada'");
    page.size(1280, 960);
    page.scheme("light");
    say(
        &mut page,
        "Plan three dinners for us, and write down what we lack",
    );
    page.until(&format!("{LAST_REPLY}?.querySelector('table')"));
    say(
        &mut page,
        "Lovely. The cello lesson is on Thursday at five: write it down for us all",
    );
    page.until("document.querySelector('.approval')?.innerText.includes('Cello lesson')");
    page.evaluate("document.activeElement.blur()");
    page.screenshot("readme");
    check(&page, &home);
}
