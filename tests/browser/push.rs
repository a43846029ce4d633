//! A browser that is told what waits: the switch, the worker, and where it is not allowed.
//! Chromium has no push service here, so its subscription is the test's own, and what the
//! server posts to it is handed to the worker as a push service would.

use support::MAX_WAIT;
use support::push::Browser;

use super::*;

/// A push manager that returns this subscription, as the browser's own would.
pub fn subscribing(page: &mut Page, subscription: &Value) {
    let script = format!(
        "(() => {{
            let current = null;
            const made = (key) => ({{ ...{subscription},
                options: {{ applicationServerKey: Uint8Array.from(atob(key.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0)).buffer }},
                toJSON: () => ({subscription}),
                unsubscribe: async () => {{ current = null; return true; }},
            }});
            PushManager.prototype.subscribe = async ({{ applicationServerKey: key, userVisibleOnly: shows }}) => {{
                if (!shows) throw new Error('it must show what it is told');
                return current = made(key);
            }};
            PushManager.prototype.getSubscription = async () => current;
        }})()"
    );
    page.evaluate(&script);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn the_worker_shows_what_the_server_tells_a_browser() {
    let service = Receiver::answering(|_, _| "201 Created".to_owned());
    let model = Model::saying("The **bins**!");
    let home = Home::start(model.config_with(json!({
        "notifications": { "push_hosts": [service.address.to_string()] },
    })));
    let browser = Chromium::start();
    let mut page = browser.page();
    let origin = address(&home).trim_end_matches('/').to_owned();
    page.call("ServiceWorker.enable", json!({}));
    sign_in(&mut page, &home);
    page.allow(&origin, &["notifications"]);
    let told = Browser::new();
    let endpoint = format!("http://{}/push/chromium", service.address);
    let subscription = told.subscription(&endpoint);
    subscribing(&mut page, &subscription);
    page.evaluate("location.hash = '#/account'");
    page.click("[name=push]");
    page.until("document.body.innerText.includes('This browser is notified.')");
    page.screenshot("push");
    let mut admin = home.admin();
    admin.ask(json!({ "type": "create_schedule", "prompt": "Remind me", "at": "+1h" }));
    home.server().advance_clock(Duration::from_secs(3_600));
    let request = service.wait_for(1).remove(0);
    let message = told.read(&request.raw);
    assert_eq!(message["body"], "The **bins**!");

    let registration = page.worker.clone().expect("a worker is installed");
    // Chromium now and then drops what is delivered like this, which no push service sees.
    // What comes again takes the place of the first, as its tag is the same.
    let deadline = Instant::now() + MAX_WAIT;
    let shown = loop {
        page.call(
            "ServiceWorker.deliverPushMessage",
            json!({ "origin": origin, "registrationId": registration, "data": message.to_string() }),
        );
        let shown = page.evaluate(
            "(async () => {
                const [worker] = await navigator.serviceWorker.getRegistrations();
                for (let tries = 0; tries < 40; tries += 1) {
                    const all = await worker.getNotifications();
                    if (all.length) return all.map(({ title, body, tag, data }) => ({ title, body, tag, data }));
                    await new Promise((resolve) => setTimeout(resolve, 50));
                }
                return [worker.active?.state, Notification.permission];
            })()",
        );
        if shown[0].is_object() {
            break shown;
        }
        assert!(Instant::now() < deadline, "{shown}");
    };
    assert_eq!(
        shown,
        json!([{ "title": "A reminder is due", "body": "The **bins**!", "tag": message["tag"], "data": { "conversation": message["conversation_id"] } }])
    );

    // What its worker says of a button, to a page that is open and to one that is opened.
    let mut told = |page: &mut Page, say: &str| {
        let made = admin.ask(json!({ "type": "create_schedule", "say": say, "at": "+1h" }));
        home.server().advance_clock(Duration::from_secs(3_600));
        page.until(&format!(
            "document.querySelector('.told')?.innerText.includes('{say}')"
        ));
        made["schedule_id"].as_str().unwrap().to_owned()
    };
    let id = told(&mut page, "Bread");
    page.evaluate(&format!(
        "navigator.serviceWorker.dispatchEvent(new MessageEvent('message', {{ data: {{ reminder: '{id}', action: 'done' }} }}))"
    ));
    page.until("!document.querySelector('.told')");
    let id = told(&mut page, "Milk");
    page.evaluate(&format!("location.hash = '#/reminders/done/{id}'"));
    page.until("!document.querySelector('.told') && location.hash === '#/reminders'");
    page.evaluate("location.hash = '#/account'");
    page.until("document.querySelector('[name=push]')");

    // It is switched off, and stays so.
    page.click("[name=push]");
    page.until("!document.querySelector('[name=push]').checked && !document.querySelector('[name=push]').disabled");
    assert!(
        page.evaluate("localStorage.getItem('hearth.push')")
            .is_null()
    );
    let user = home.server().store().user("admin").unwrap().unwrap();
    assert!(!home.server().store().is_told_by_push(user.id).unwrap());
    check(&page, &home);
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn where_a_browser_may_not_be_told_the_page_says_why() {
    let home = Home::offline();
    let browser = Chromium::start();
    let mut page = browser.page();
    // To the browser, not this machine: so not a secure context.
    let port = home.address().port();
    page.open(&format!("http://hearth.lan:{port}/"));
    page.fill("[name=username]", "admin");
    page.fill("[name=password]", PASSWORD);
    page.click("button[type=submit]");
    page.until("document.querySelector('.welcome')");
    page.evaluate("location.hash = '#/account'");
    page.until("document.body.innerText.includes('Browsers allow this only on pages over https')");
    page.until("document.querySelector('.page a[href=\"#/help/encryption\"]')");
    assert!(
        page.evaluate("document.querySelector('[name=push]')")
            .is_null()
    );
    page.screenshot("push-not-allowed");
    // What Chromium says of every page that is not secure.
    page.errors
        .retain(|error| !error.contains("Cross-Origin-Opener-Policy"));
    assert!(page.errors.is_empty(), "{:#?}", page.errors);
}
