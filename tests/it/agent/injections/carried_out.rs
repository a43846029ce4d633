//! Reading a page must not carry out what the model was shown.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

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

#[test]
fn an_address_that_the_model_makes_up_is_asked_for_once_a_page_was_read() {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let served = {
        let asked = Arc::clone(&asked);
        Served::answering(move |head, _| {
            let word = |place| head.split_whitespace().nth(place).unwrap_or_default();
            asked.lock().unwrap().push(word(1).to_owned());
            let port = head.to_lowercase();
            let port = port
                .split("host: ")
                .nth(1)
                .and_then(|rest| rest.lines().next());
            let port = port.and_then(|host| host.rsplit(':').next()).unwrap();
            let page = format!("Plums. More of them: http://localhost:{port}/more");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{page}",
                page.len()
            );
            Some(answer.into_bytes().into())
        })
    };
    let port = served.address.port();
    let fetch = move |host: &str, path: &str| {
        Act::call(
            "web_fetch",
            json!({ "url": format!("http://{host}:{port}{path}") }),
        )
    };
    let model = Model::start(move |_, number| match number {
        0 => fetch("127.0.0.1", "/plums"),
        // What the page links to, and another page of the host that the person named.
        1 => fetch("localhost", "/more"),
        2 => fetch("127.0.0.1", "/less"),
        3 => fetch("localhost", &format!("/more?code={SECRET}")),
        _ => Act::say("Done."),
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tool_permissions": { "web_fetch": "allow" },
        "tools": { "web_fetch": { "allow": ["127.0.0.1", "localhost"] } },
    })));
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "chat", "message": "What does 127.0.0.1 say about plums?" }));
    let question = admin.event("approval.requested");
    let url = question["arguments"]["url"].as_str().unwrap();
    assert!(url.ends_with("/more?code=4711"), "{url}");
    assert_eq!(question["outside"], Value::Bool(true));
    assert_eq!(*asked.lock().unwrap(), ["/plums", "/more", "/less"]);
    admin.ask(json!({ "type": "deny", "approval_id": question["approval_id"] }));
    assert_eq!(user.response()["data"]["response"], "Done.");
    assert_eq!(asked.lock().unwrap().len(), 3);
}
