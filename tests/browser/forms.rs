//! What is done by form, without a terminal.

use std::time::Duration;

use serde_json::json;

use super::audiences::sign_in_as;
use super::chromium::{Chromium, Page};
use super::pages::{go, look};
use super::{check, sign_in};
use support::calendar_server::{CalendarServer, calendar};
use support::eventually;
use support::home::Home;
use support::model::Model;
use support::receiver::Receiver;
use support::voice::VoiceServer;

/// Presses the button with this text.
pub fn press(page: &mut Page, text: &str) {
    let button = format!(
        "[...document.querySelectorAll('button')].find((one) => one.checkVisibility() && one.textContent === {})",
        json!(text)
    );
    page.until(&format!("!{button}.disabled"));
    page.evaluate(&format!("{button}.click()"));
}

/// Presses the button that opens a form in a dialog.
fn begin(page: &mut Page, text: &str) {
    press(page, text);
    page.until("document.querySelector('dialog[open] form')");
}

/// Writes into the field of a form whose label begins so.
pub fn write(page: &mut Page, label: &str, text: &str) {
    let field = format!(
        "[...document.querySelectorAll('label')].filter((one) => one.checkVisibility()).findLast((one) => one.textContent.startsWith({}))?.querySelector('input, textarea, select')",
        json!(label)
    );
    page.until(&field);
    page.evaluate(&format!(
        "{{ const field = {field}; field.value = {}; for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {{ bubbles: true }})); }}",
        json!(text)
    ));
}

/// Clicks what opens a form in a dialog.
fn open(page: &mut Page, selector: &str) {
    page.click(selector);
    page.until("document.querySelector('dialog[open] form')");
}

/// Sends the form of the dialog, which closes.
pub fn send(page: &mut Page) {
    page.click("dialog [type=submit]");
    page.until("!document.querySelector('dialog')");
}

/// Saves the form whose text begins so.
pub fn save(page: &mut Page, text: &str) {
    page.evaluate(&format!(
        "[...document.querySelectorAll('.page form button')].find((one) => one.form.textContent.startsWith({})).click()",
        json!(text)
    ));
}

fn rows(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('.page .rows > li')].some((one) => one.textContent.includes({}))",
        json!(text)
    )
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn calendars_are_added_changed_and_removed() {
    let server = CalendarServer::start();
    let home = Home::offline();
    let tomorrow = home.clock.now().plus(Duration::from_secs(86_400));
    let day = tomorrow.to_string()[..10].replace('-', "");
    let event = format!(
        "BEGIN:VEVENT\r\nUID:a\r\nDTSTART;VALUE=DATE:{day}\r\nSUMMARY:Bins\r\nEND:VEVENT\r\n"
    );
    server.file("/bins.ics", "1", &calendar(&event));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "calendars");
    begin(&mut page, "Add a calendar");
    write(&mut page, "Name", "Bins");
    write(&mut page, "Address", &server.url("/nothing.ics"));
    page.click("dialog [value=people]");
    page.click("dialog [type=submit]");
    page.until(
        "document.querySelector('dialog .problem').textContent === 'Choose at least one person.'",
    );
    look(&mut page, "calendar-form");
    page.click("dialog .persons [value=user]");
    send(&mut page);
    // What is wrong with it stands beside it.
    page.until("document.querySelector('.rows .badge')?.textContent === 'not reachable'");
    page.until("document.querySelector('.rows .problem').textContent.includes('user name')");
    look(&mut page, "calendars");
    let mut admin = home.admin();
    let known = admin.ask(json!({ "type": "list_calendars" }))["calendars"][0].clone();
    assert_eq!(known["audience"], json!(["user"]));
    open(&mut page, "[aria-label='Change Bins']");
    write(&mut page, "Address", &server.url("/bins.ics"));
    write(&mut page, "Minutes between", "30");
    page.click("dialog [value=household]");
    send(&mut page);
    page.until(&format!("{} && {}", rows("up to date"), rows("1 event")));
    let known = admin.ask(json!({ "type": "list_calendars" }))["calendars"][0].clone();
    assert_eq!(
        (
            &known["audience"],
            &known["refresh_minutes"],
            &known["read_only"]
        ),
        (&json!("household"), &json!(30), &json!(false))
    );

    // Others see it, and change nothing; an address in the home network is for admins.
    let mut other = browser.page();
    sign_in_as(&mut other, &home, "user");
    go(&mut other, "calendars");
    other.until(&rows("Bins"));
    assert!(
        other
            .evaluate("document.querySelector('[aria-label=\"Change Bins\"]')")
            .is_null()
    );
    begin(&mut other, "Add a calendar");
    write(&mut other, "Name", "Mine");
    write(&mut other, "Address", &server.url("/bins.ics"));
    other.click("dialog [type=submit]");
    other.until("document.querySelector('dialog .problem').textContent === 'An address in the home network is given by admins alone. Ask admin.'");
    other.errors.clear();
    page.click("[aria-label='Remove Bins?']");
    page.click("dialog .danger");
    page.until(&format!("!{}", rows("up to date")));
    other.until(&format!("!{}", rows("up to date")));
    check(&page, &home);
    check(&other, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn senders_are_linked_with_a_code() {
    let receiver = Receiver::start();
    let home = Home::start(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "signal": { "incoming_path": "/hooks/signal", "outgoing_url": receiver.url(), "secret": "a secret of the bridge" },
            "door": { "incoming_path": "/hooks/door", "outgoing_url": receiver.url() },
        } },
    ] }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "user");
    go(&mut page, "account");
    // One without a secret has no senders.
    page.until("[...document.querySelectorAll('.card form option')].map((one) => one.value).join() === 'signal'");
    press(&mut page, "Make a code");
    page.until(
        "document.querySelector('.card [role=status] code')?.textContent.startsWith('/link ')",
    );
    let code = page.evaluate("document.querySelector('.card [role=status] code').textContent");
    let body = json!({ "message": code, "user_id": "+49 30 1" });
    let headers = [("x-service-secret", "a secret of the bridge")];
    let sent = support::http::post(home.address(), "/hooks/signal", &headers, &body);
    assert_eq!(sent.status, 202);
    go(&mut page, "help");
    go(&mut page, "account");
    page.until(&rows("+49 30 1"));
    look(&mut page, "account");
    page.click("[aria-label='Unlink: +49 30 1']");
    page.click("dialog .danger");
    page.until(&rows("No chat is linked."));
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn reminders_and_routines_are_set_by_form() {
    let model = Model::saying("[nothing to tell]");
    let home = Home::start(model.config());
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "user");
    go(&mut page, "reminders");
    begin(&mut page, "New reminder or routine");
    write(&mut page, "Text", "Cut the tree");
    page.until("document.querySelector('dialog').innerText.includes('By the household’s clock')");
    write(&mut page, "Day and time", "2030-12-24T18:00");
    send(&mut page);
    page.until(&rows("Dec 24, 2030, 6:00"));
    page.click("[aria-label='Delete: Cut the tree']");
    page.click("dialog .danger");
    page.until(&rows("Nothing is scheduled."));

    begin(&mut page, "New reminder or routine");
    write(&mut page, "Text", "Take out the bins");
    write(&mut page, "When?", "at");
    write(&mut page, "Time", "when I feel like it");
    page.click("dialog .persons [value=admin]");
    look(&mut page, "reminder-form");
    // What is wrong is said in the form, which stays.
    page.click("dialog [type=submit]");
    page.until("document.querySelector('dialog .problem').textContent.length > 10");
    write(&mut page, "Time", "tomorrow at 18:00");
    send(&mut page);
    page.until("document.querySelector('.toast').textContent.startsWith('Set for: ')");
    page.until(&rows("Take out the bins"));
    let mut admin = home.admin();
    let other = admin.ask(json!({ "type": "list_schedules" }));
    assert_eq!(other["schedules"][0]["say"], "From user: Take out the bins");

    begin(&mut page, "New reminder or routine");
    page.click("dialog [value=prompt]");
    write(&mut page, "Text", "Say if it will freeze");
    write(&mut page, "When?", "at");
    write(&mut page, "Time", "in 2 minutes");
    send(&mut page);
    page.until(&rows("Say if it will freeze"));
    let again = home.websocket(&home.tokens.user).ask(json!({
        "type": "create_schedule", "prompt": "Look at the list", "on": "list shopping",
    }));
    assert_eq!(again["on"], "list shopping");
    home.server().advance_clock(Duration::from_secs(180));
    home.websocket(&home.tokens.user)
        .ask(json!({ "type": "update_list", "list": "shopping", "add": ["tea"] }));
    page.until("document.querySelector('[aria-label=\"Latest runs of: Look at the list\"]')");
    page.until(&rows("nothing to tell"));
    page.click("[aria-label='Latest runs of: Look at the list']");
    page.until("document.querySelector('dialog .rows').textContent.startsWith('It stayed quiet: the assistant had nothing to tell.')");
    page.until("document.querySelector('dialog .rows').textContent.includes('tokens')");
    look(&mut page, "runs");
    press(&mut page, "Close");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn memories_are_written_changed_and_shared_by_ticking() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in_as(&mut page, &home, "user");
    go(&mut page, "memories");
    begin(&mut page, "Add a memory");
    write(&mut page, "What to remember", "Anna is allergic to nuts");
    look(&mut page, "memory-form");
    send(&mut page);
    page.until(&rows("allergic to nuts"));
    let listed =
        |home: &Home| home.admin().ask(json!({ "type": "list_memories" }))["memories"].clone();
    assert_eq!(listed(&home), json!([]));
    open(&mut page, "[aria-label='Change: Anna is allergic to nuts']");
    write(
        &mut page,
        "What to remember",
        "Anna is allergic to hazelnuts",
    );
    page.click("dialog [value=people]");
    page.click("dialog .persons [value=admin]");
    send(&mut page);
    page.until(&rows("hazelnuts"));
    page.until("document.querySelector('.rows .audience').title === 'Only you and admin see this'");
    assert_eq!(listed(&home)[0]["content"], "Anna is allergic to hazelnuts");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_own_account_shows_what_holds_now() {
    let home = Home::offline();
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "set_display_name", "display_name": "Oma Trude" }));
    user.ask(json!({ "type": "set_quiet_hours", "quiet_hours": "21:30-06:45" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    page.open(&super::address(&home));
    page.fill("[name=username]", "user");
    page.fill("[name=password]", support::home::PASSWORD);
    page.click("button[type=submit]");
    page.until("document.querySelector('.who-am-i strong')?.textContent === 'Oma Trude'");
    go(&mut page, "account");
    let shown = "[...document.querySelectorAll('.card input:is([type=time], [maxlength])')].map((one) => one.value)";
    assert_eq!(page.evaluate(shown), json!(["Oma Trude", "21:30", "06:45"]));
    // Of other chats nothing is said where there is none to link.
    let text = page.evaluate("document.querySelector('.page').textContent");
    assert!(!text.as_str().unwrap().contains("Linked chats"), "{text}");
    let morning = "import(performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/dom.js')).name).then(({ timeOfDay }) => timeOfDay('2026-11-22T06:05').textContent.normalize('NFKC'))";
    assert_eq!(page.evaluate(morning), "6:05 AM");
    write(&mut page, "From", "22:00");
    press(&mut page, "Set");
    page.until("document.querySelector('.toast')?.textContent.includes('22:00')");
    assert_eq!(page.evaluate(shown), json!(["Oma Trude", "22:00", "06:45"]));
    let account = user.ask(json!({ "type": "get_quiet_hours" }));
    assert_eq!(account["quiet_hours"], "22:00-06:45");
    // Files of one's own come in, and how far each is is shown.
    page.evaluate("window.progress = 0; new MutationObserver(() => { if (document.querySelector('progress')) progress += 1; }).observe(document.body, { childList: true, subtree: true })");
    let files = [
        include_str!("../data/imports/claude.json").to_owned(),
        include_str!("../data/imports/chatgpt.json").to_owned(),
        String::new(),
    ];
    for (number, file) in files.into_iter().enumerate() {
        // The last one is Hearth's own, of what came before.
        let own = number == 2;
        let file = match own {
            true => page.evaluate("fetch('export', { headers: { authorization: `Bearer ${sessionStorage.getItem('hearth.token')}` } }).then((answer) => answer.text())"),
            false => file.into(),
        };
        page.evaluate(&format!(
            "{{ progress = 0; const file = document.querySelector('input[type=file]'); const data = new DataTransfer(); data.items.add(new File([{}], 'conversations.json')); file.files = data.files; file.dispatchEvent(new Event('change')); }}",
            json!(file)
        ));
        page.until(&format!(
            "document.querySelector('.toast')?.textContent.startsWith('Imported ') && document.querySelector('.toast').textContent.includes('already') === {own}"
        ));
        page.until("progress > 0 && !document.querySelector('progress')");
        page.evaluate("document.querySelector('.toast')?.remove()");
    }
    page.until("document.querySelector('.list a')");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_admin_sets_a_name_limits_tools_and_the_phone_of_a_person() {
    let phone = Receiver::start();
    let home = Home::start(json!({ "time_zone": "UTC" }));
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "people");
    open(&mut page, "[aria-label='Name and limits of user']");
    write(&mut page, "What people call them", "Trude");
    write(&mut page, "Tokens a month", "5000");
    write(&mut page, "Permissions", "ask");
    page.evaluate("[...document.querySelectorAll('dialog label.check')].find((one) => one.textContent === 'All tools').firstChild.click()");
    page.until("!document.querySelector('dialog .persons').hidden");
    page.click("dialog .persons [value=schedule]");
    look(&mut page, "person-form");
    send(&mut page);
    page.until(&rows("Trude"));
    let limits = || {
        let users = home.admin().ask(json!({ "type": "list_users" }));
        let users = users["users"].as_array().unwrap().clone();
        users.into_iter().find(|one| one["name"] == "user").unwrap()["limits"].clone()
    };
    let known = limits();
    assert_eq!(
        (&known["monthly_tokens"], &known["permission_mode"]),
        (&json!(5000), &json!("ask"))
    );
    let tools = known["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("recall")) && !tools.contains(&json!("schedule")));
    // What was set is shown, and only what changes is written.
    open(&mut page, "[aria-label='Name and limits of user']");
    page.until("document.querySelector('dialog [type=number]').value === '5000'");
    write(&mut page, "Tokens a month", "");
    send(&mut page);
    eventually("the limit is gone", || {
        limits()["monthly_tokens"].is_null().then_some(())
    });
    assert_eq!(limits()["permission_mode"], "ask");

    open(
        &mut page,
        "[aria-label='How the phone of user is notified']",
    );
    write(&mut page, "Service", "ntfy");
    let url = phone.url();
    let server = url.split('/').take(3).collect::<Vec<_>>().join("/");
    write(&mut page, "Address of the server", &server);
    write(&mut page, "Topic", "trude-and-nobody-else");
    // Not now: what comes below is heard at once.
    let time = |hours: u64| {
        let later = home.clock.now().plus(Duration::from_secs(hours * 3_600));
        later.to_string()[11..16].to_owned()
    };
    let quiet = format!("{}-{}", time(2), time(5));
    write(&mut page, "Quiet hours", &quiet);
    send(&mut page);
    eventually("it is set", || {
        (limits()["notifications"]["ntfy"]["topic_set"] == true).then_some(())
    });
    open(
        &mut page,
        "[aria-label='How the phone of user is notified']",
    );
    press(&mut page, "Send a test");
    page.until("document.querySelector('dialog .good')?.textContent.startsWith('ntfy: ')");
    look(&mut page, "phone-form");
    // That somebody else has set it, and the test.
    assert_eq!(phone.wait_for(2).len(), 2);
    press(&mut page, "Cancel");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_admin_keeps_the_household_going() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "upkeep");
    page.until(&rows("There are no backups yet."));
    press(&mut page, "Back up now");
    page.until(
        "document.querySelector('.card [role=status]').textContent === 'The backup is made.'",
    );
    page.until(&rows("hearth-nightly-"));
    write(&mut page, "Days", "400");
    save(&mut page, "Days");
    page.until("document.querySelector('dialog h2')?.textContent === 'Delete what is older than 400 days?'");
    page.click("dialog .danger");
    let config = || home.admin().ask(json!({ "type": "get_config" }));
    eventually("it is kept so long", || {
        (config()["retention"]["conversations_days"] == 400).then_some(())
    });
    write(&mut page, "Time zone", "Europe/Lisbon");
    save(&mut page, "Time zone");
    eventually("the zone is another", || {
        (config()["time_zone"] == "Europe/Lisbon").then_some(())
    });
    write(&mut page, "How many are kept", "14");
    write(&mut page, "When they are made each night", "04:15");
    save(&mut page, "How many");
    eventually("backups are kept so", || {
        let backup = &config()["backup"];
        (backup["keep"] == 14 && backup["at"] == "04:15").then_some(())
    });
    write(&mut page, "Your e-mail address", "ada@example.org");
    save(&mut page, "Your e-mail");
    eventually("push services reach somebody", || {
        (config()["notifications"]["push_contact"] == "mailto:ada@example.org").then_some(())
    });
    // Speech into text and back, tried.
    let server = VoiceServer::hearing("This is how I sound.");
    for (summary, more, value) in [
        ("Speech into text", "Language", "nb"),
        ("Text into speech", "Voice", "bella"),
    ] {
        page.evaluate(&format!("[...document.querySelectorAll('.page details')].map((one) => {{ one.open = one.textContent.startsWith('{summary}'); }})"));
        write(&mut page, "Address of the server", &server.url());
        write(&mut page, more, value);
        write(&mut page, "API key", "sk-speaks");
        page.evaluate("document.querySelector('.page details[open] form button').click()");
        page.until(&format!("[...document.querySelectorAll('.page details[open]')].some((one) => one.textContent.startsWith('{summary}') && one.querySelector('[type=password]').placeholder.startsWith('A key is set'))"));
    }
    press(&mut page, "Hear it");
    page.until("[...document.querySelectorAll('.page [role=status]')].some((one) => one.textContent.endsWith('understood as: This is how I sound.'))");
    assert!(
        server
            .asked()
            .iter()
            .all(|one| one.head.contains("sk-speaks"))
    );
    let voice = config()["voice"].clone();
    assert_eq!(voice["speech"]["voice"], "bella");
    assert_eq!(voice["transcription"]["language"], "nb");
    look(&mut page, "upkeep");
    // The key is for this address, and goes with it.
    page.evaluate("[...document.querySelectorAll('.page details')].map((one) => { one.open = one.textContent.startsWith('Text into'); })");
    write(&mut page, "Address of the server", "http://127.0.0.1:9/v1");
    page.evaluate("document.querySelector('.page details[open] form button').click()");
    eventually("the key is gone", || {
        (config()["voice"]["speech"]["api_key_set"] == false).then_some(())
    });
    check(&page, &home);
}

/// Passwords in addresses are not shown, and stay although the form sends what it shows.
#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_address_with_a_password_outlasts_its_form() {
    let server = VoiceServer::hearing("Hello.");
    let model = Model::saying("fine");
    model.says_of_itself(200, r#"{"object":"list","data":[{"id":"scripted"}]}"#);
    let with_password = |url: &str| url.replacen("://", "://me:hidden-pw@", 1);
    let home = Home::start(model.config_with(json!({
        "base_url": with_password(model.config()["base_url"].as_str().unwrap()),
        "voice": {
            "transcription": { "url": format!("{}?key=hidden-key", server.url()) },
            "speech": { "url": with_password(&server.url()) },
        },
    })));
    let addresses = || {
        let text = std::fs::read_to_string(home.folder.path().join("config.json")).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        let voice = &file["voice"];
        [
            file["base_url"].clone(),
            voice["transcription"]["url"].clone(),
            voice["speech"]["url"].clone(),
        ]
    };
    let before = addresses();
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "upkeep");
    for (summary, more, value) in [
        ("Speech into text", "Language", "nb"),
        ("Text into speech", "Voice", "bella"),
    ] {
        page.evaluate(&format!("[...document.querySelectorAll('.page details')].map((one) => {{ one.open = one.textContent.startsWith('{summary}'); }})"));
        let shown = "document.querySelector('.page details[open] [type=url]').value";
        assert!(page.evaluate(shown).as_str().unwrap().contains("***"));
        write(&mut page, more, value);
        page.evaluate("document.querySelector('.page details[open] form button').click()");
        page.until("document.querySelector('.toast')?.textContent.includes('Saved')");
        page.evaluate("document.querySelector('.toast').remove()");
    }
    let voice = home.admin().ask(json!({ "type": "get_config" }))["voice"].clone();
    assert_eq!(voice["transcription"]["language"], "nb");
    assert_eq!(voice["speech"]["voice"], "bella");
    go(&mut page, "settings");
    // Another provider, and the present one again: the form has its address anew.
    for provider in ["offline", "openai-compatible"] {
        write(&mut page, "Provider", provider);
    }
    page.until("document.querySelector('.page .row [role=status].good')");
    write(&mut page, "Maximum reply length", "700");
    press(&mut page, "Save");
    page.until("document.querySelector('.save .good')?.textContent.startsWith('Saved')");
    assert_eq!(addresses(), before);
    let said = page.evaluate("[...document.querySelectorAll('input')].map((one) => one.value).join() + document.body.textContent");
    assert!(!said.as_str().unwrap().contains("hidden-"), "{said}");
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_webhook_account_is_tried_added_and_removed() {
    let receiver = Receiver::start();
    let model = Model::saying("It works.");
    let mut config = model.config();
    let nobody = format!("http://127.0.0.1:{}/", support::program::free_port());
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": { "incoming_path": "/hooks/door", "outgoing_url": receiver.url() },
            "gone": { "incoming_path": "/hooks/gone", "outgoing_url": nobody },
        } },
    ]);
    let home = Home::start(config);
    let browser = Chromium::start();
    let mut page = browser.page();
    sign_in(&mut page, &home);
    go(&mut page, "webhooks");
    page.click("[aria-label='Test door']");
    page.until(
        "document.querySelector('dialog .good')?.textContent === 'The reply was delivered.'",
    );
    assert_eq!(receiver.wait_for(1)[0].body["message"], "It works.");
    press(&mut page, "Close");
    page.click("[aria-label='Test gone']");
    page.until("document.querySelector('dialog .problem:not([role])')?.textContent.startsWith('The reply could not be delivered: ')");
    look(&mut page, "webhook-test");
    press(&mut page, "Close");
    begin(&mut page, "Add an account");
    write(&mut page, "Name", "bell");
    write(&mut page, "Address for the replies", &receiver.url());
    page.click("dialog [name=accept][value=get]");
    page.click("dialog [name=audience][value=people]");
    page.click("dialog [name=person][value=user]");
    look(&mut page, "webhook-form");
    page.click("dialog [type=submit]");
    page.until("document.querySelector('dialog h2')?.textContent === 'bell is added'");
    let shown = page
        .evaluate("[...document.querySelectorAll('dialog code')].map((one) => one.textContent)");
    let (url, secret) = (shown[0].as_str().unwrap(), shown[1].as_str().unwrap());
    assert_eq!(url, format!("http://{}/webhook/bell", home.address()));
    let headers = [("x-service-secret", secret)];
    let body = json!({ "message": "Somebody is there." });
    let sent = support::http::post(home.address(), "/webhook/bell", &headers, &body);
    assert_eq!(sent.status, 202);
    assert_eq!(receiver.wait_for(2)[1].body["message"], "It works.");
    press(&mut page, "Close");
    page.until("document.querySelector('[aria-label=\"Remove: bell\"]')");
    let accounts = home.admin().ask(json!({ "type": "list_webhook_accounts" }));
    let bell = &accounts["accounts"][2];
    assert_eq!(bell["audience"], json!(["admin", "user"]));
    assert_eq!(bell["accept"], json!(["json", "get"]));
    page.click("[aria-label='Remove: bell']");
    page.click("dialog .danger");
    page.until("!document.querySelector('[aria-label=\"Remove: bell\"]')");
    let sent = support::http::post(home.address(), "/webhook/bell", &headers, &body);
    assert_eq!(sent.status, 404);
    check(&page, &home);
}
