//! Reading a page must not carry out what the model was shown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use support::eventually;
use support::home::Home;
use support::model::{Act, Model};
use support::served::Served;

/// What a page that orders it would like to hear.
const SECRET: &str = "4711";

#[test]
fn an_address_that_the_model_has_said_before_is_asked_for_although_a_search_finds_it() {
    let url = format!("http://127.0.0.1:9/?code={SECRET}");
    let model = {
        let url = url.clone();
        Model::start(move |_, number| match number {
            0 => Act::say(&format!("Plums: {url}")),
            1 => Act::call("search_conversations", json!({ "query": "plums" })),
            2 => Act::call("web_fetch", json!({ "url": url })),
            _ => Act::say("Done."),
        })
    };
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tool_permissions": { "web_fetch": "allow", "search_conversations": "allow" },
        "tools": { "web_fetch": { "allow": ["127.0.0.1"] } },
    })));
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let mut user = home.websocket(&home.tokens.user);
    let put = json!({ "type": "put_attachment", "name": "plums.txt", "bytes": 13 });
    let file = user.ask(put)["attachment_id"].clone();
    user.ask(json!({
        "type": "put_attachment_part", "attachment_id": file, "offset": 0,
        // "From outside."
        "data": "RnJvbSBvdXRzaWRlLg==",
    }));
    user.chat("hello");
    user.send(&json!({ "type": "chat", "message": "What about plums?", "attachments": [file] }));
    let question = admin.event("approval.requested");
    assert_eq!(question["arguments"]["url"], url.as_str(), "{question}");
    admin.ask(json!({ "type": "deny", "approval_id": question["approval_id"] }));
    assert_eq!(user.response()["data"]["response"], "Done.");
}

/// A server of pages that notes the paths that it was asked for. Each page links to more
/// of the same server, under its other name.
fn pages(links: usize) -> (Served, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&asked);
    let served = Served::answering(move |head, _| {
        let path = head.split_whitespace().nth(1).unwrap_or_default();
        noted.lock().unwrap().push(path.to_owned());
        let head = head.to_lowercase();
        let host = head.split("host: ").nth(1)?.lines().next()?;
        let port = host.rsplit(':').next()?;
        let links: String = (0..links)
            .map(|number| format!("http://localhost:{port}/{number}\n"))
            .collect();
        let page = format!("Plums. More of them:\n{links}");
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{page}",
            page.len()
        );
        Some(answer.into_bytes().into())
    });
    (served, asked)
}

fn home(model: &Model) -> Home {
    Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tool_permissions": { "web_fetch": "allow", "remember": "allow" },
        "tools": { "web_fetch": { "allow": ["127.0.0.1", "localhost"] } },
    })))
}

fn fetch(url: &str) -> Act {
    Act::call("web_fetch", json!({ "url": url }))
}

#[test]
fn an_address_that_the_model_makes_up_is_asked_for_each_time() {
    let (served, asked) = pages(1);
    let port = served.address.port();
    let written = format!("http://127.0.0.1:{port}/plums");
    let made_up = [
        format!("http://127.0.0.1:{port}/plums?code={SECRET}"),
        format!("http://localhost:{port}/0?code={SECRET}"),
        format!("http://localhost:{port}/{SECRET}"),
        format!("http://{SECRET}.localhost:{port}/"),
        format!("http://localhost:{SECRET}/0"),
    ];
    let model = {
        let (written, made_up) = (written.clone(), made_up.clone());
        Model::start(move |_, number| match number {
            0 => Act::call(
                "remember",
                json!({ "content": format!("the code is {SECRET}") }),
            ),
            1 => Act::say("Noted."),
            // What the person wrote, with another end, and what the page links to.
            2 => fetch(&written),
            3 => fetch(&format!("http://localhost:{port}/0")),
            _ => made_up
                .get(number - 4)
                .map_or(Act::say("Done."), |url| fetch(url)),
        })
    };
    let home = home(&model);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let mut user = home.websocket(&home.tokens.user);
    user.chat(&format!("the code is {SECRET}"));
    let message = format!("What does {written} say about plums?");
    user.send(&json!({ "type": "chat", "message": message }));
    for (number, url) in made_up.iter().enumerate() {
        let question = admin.event("approval.requested");
        assert_eq!(question["arguments"]["url"], url.as_str(), "{question}");
        let id = &question["approval_id"];
        // A wider answer covers none of the others.
        admin.ask(match number {
            0 => json!({ "type": "approve", "approval_id": id, "remember": "conversation" }),
            1 => json!({ "type": "approve", "approval_id": id, "remember": "always" }),
            _ => json!({ "type": "deny", "approval_id": id }),
        });
    }
    assert_eq!(user.response()["data"]["response"], "Done.");
    let allowed = ["/plums", "/0", "/plums?code=4711", "/0?code=4711"];
    assert_eq!(*asked.lock().unwrap(), allowed);
}

#[test]
fn which_addresses_are_read_says_no_more_than_a_turn_may_choose() {
    // What spells something out with the links of a page: many of them, or two in turn.
    for letters in [60, 2] {
        let (served, asked) = pages(letters);
        let port = served.address.port();
        let first = format!("http://127.0.0.1:{port}/plums");
        let model = {
            let first = first.clone();
            Model::start(move |_, number| match number {
                0 => fetch(&first),
                1 => {
                    let url = |one| format!("http://localhost:{port}/{}", one % letters);
                    let call = |one| ("web_fetch".to_owned(), json!({ "url": url(one) }));
                    Act::Call((0..60).map(call).collect())
                }
                _ => Act::say("Done."),
            })
        };
        let home = home(&model);
        let mut admin = home.admin();
        admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
        let mut user = home.websocket(&home.tokens.user);
        user.send(&json!({ "type": "chat", "message": format!("What is on {first}?") }));
        let questions = (0..41).map(|_| admin.event("approval.requested"));
        for question in questions.collect::<Vec<Value>>() {
            admin.ask(json!({ "type": "deny", "approval_id": question["approval_id"] }));
        }
        assert_eq!(user.response()["data"]["response"], "Done.");
        assert_eq!(asked.lock().unwrap().len(), 20, "{letters} letters");
    }
}

#[test]
fn an_address_in_a_prompt_that_the_model_wrote_is_asked_for_in_its_runs() {
    let (served, asked) = pages(0);
    let url = format!("http://{}/?code={SECRET}", served.address);
    let model = {
        let url = url.clone();
        Model::start(move |request, _| {
            let last = request["messages"].as_array().unwrap().last().unwrap();
            let text = last["content"].to_string();
            match () {
                () if last["role"] == "tool" => Act::say("Done."),
                () if text.contains("This was set up earlier") => {
                    Act::call("web_fetch", json!({ "url": url }))
                }
                () => Act::call(
                    "schedule",
                    json!({ "action": "create", "prompt": format!("Read {url}"), "at": "+1h" }),
                ),
            }
        })
    };
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tool_permissions": { "web_fetch": "allow", "schedule": "allow" },
        "tools": { "web_fetch": { "allow": ["127.0.0.1"] } },
    })));
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    user.chat("Look at the news later");
    home.server().advance_clock(Duration::from_secs(3_660));
    let question = admin.event("approval.requested");
    assert_eq!(question["arguments"]["url"], url.as_str(), "{question}");
    admin.ask(json!({ "type": "deny", "approval_id": question["approval_id"] }));
    assert!(asked.lock().unwrap().is_empty());
    // A person's own prompt gives the model its address.
    let own = json!({ "type": "create_schedule", "prompt": format!("Read {url}"), "at": "+1h" });
    user.ask(own);
    home.server().advance_clock(Duration::from_secs(3_660));
    eventually("the page is read", || {
        (asked.lock().unwrap().len() == 1).then_some(())
    });
}
