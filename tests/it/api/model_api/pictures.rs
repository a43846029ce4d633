//! Pictures and files of programs that speak these interfaces.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::service::attachments::PNG;
use support::pdf::letter;

fn shown_pictures(request: &Value) -> usize {
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    request["messages"].to_string().matches(&url).count()
}

#[test]
fn the_model_sees_them_and_the_chat_goes_on() {
    let model = Model::saying("A cat.");
    let home = home(&model);
    let png = STANDARD.encode(PNG);
    let url = format!("data:image/png;base64,{png}");
    let file = json!({ "filename": "a.csv", "file_data": STANDARD.encode("a;b") });
    let mut messages = vec![json!({ "role": "user", "content": [
        { "type": "text", "text": "what is this?" },
        { "type": "image_url", "image_url": { "url": url } },
        { "type": "file", "file": file },
    ] })];
    for next in ["and now?", "and?"] {
        let reply = complete(&home, json!(messages));
        let text = reply["choices"][0]["message"]["content"].clone();
        messages.push(json!({ "role": "assistant", "content": text }));
        messages.push(json!({ "role": "user", "content": next }));
    }
    // A picture stays one of the first message: it is not stored again.
    for request in model.requests() {
        assert_eq!(shown_pictures(&request), 1);
        assert!(request.to_string().contains("a;b"), "{request}");
    }
    let listed = conversations(&home);
    assert_eq!(listed.len(), 1, "{listed:?}");
    let mut user = home.websocket(&home.tokens.user);
    let get = json!({ "type": "get_messages", "conversation_id": listed[0]["id"] });
    let first = user.ask(get)["messages"][0].clone();
    assert_eq!(first["content"], "what is this?\n[image]\n[file]");
    assert_eq!(first["attachments"].as_array().unwrap().len(), 2);
}

#[test]
fn ollama_s_pictures_too() {
    let model = Model::saying("A cat.");
    let home = home(&model);
    let images = json!([STANDARD.encode(PNG)]);
    let message = json!({ "role": "user", "content": "", "images": images });
    let chat = json!({ "model": "hearth", "messages": [message], "stream": false });
    assert_eq!(ask(&home, "/api/chat", chat).status, 200);
    let prompt = json!({ "model": "hearth", "prompt": "this?", "images": images, "stream": false });
    assert_eq!(ask(&home, "/api/generate", prompt).status, 200);
    let requests = model.requests();
    assert_eq!(
        requests.iter().map(shown_pictures).collect::<Vec<_>>(),
        [1, 1]
    );
    let shown = ask(&home, "/api/show", json!({ "model": "hearth" }));
    assert_eq!(
        shown.json()["capabilities"],
        json!(["completion", "tools", "vision"])
    );
}

/// What came before the last reply is only marked, whatever it is.
#[test]
fn the_plain_model_sees_those_of_the_newest_message() {
    let model = Model::saying("A cat.");
    let home = home(&model);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
    let png = image(&format!("data:image/png;base64,{}", STANDARD.encode(PNG)));
    let csv = json!({ "filename": "a.csv", "file_data": STANDARD.encode("a;b") });
    let csv = json!({ "type": "file", "file": csv });
    let shown = json!({ "role": "user", "content": [text("this?"), png, csv] });
    let reply = json!({ "role": "assistant", "content": "A cat." });
    let earlier = json!({ "role": "user", "content": [text("a"), png, image("https://x/")] });
    let now = json!({ "role": "user", "content": "and now?" });
    for (messages, count) in [
        (json!([shown]), 1),
        (json!([earlier, reply, now]), 0),
        (json!([earlier, reply, shown, now]), 1),
    ] {
        let plain = json!({ "model": "hearth-plain", "messages": messages, "stream": false });
        for path in [COMPLETIONS, "/api/chat"] {
            let answer = ask(&home, path, plain.clone());
            assert_eq!(answer.status, 200, "{answer:?}");
            let sent = model.requests().pop().unwrap();
            assert_eq!(shown_pictures(&sent), count, "{sent}");
            assert_eq!(sent.to_string().contains("a;b"), count > 0, "{sent}");
        }
        let first = model.requests().pop().unwrap()["messages"][0]["content"].clone();
        assert_eq!(
            first == "a\n[image]\n[image]",
            messages[0] == earlier,
            "{first}"
        );
    }
    let body = json!({ "model": "hearth", "messages": [earlier, reply, now] });
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", &*authorization), ("x-task", "title")];
    assert_eq!(
        post(home.address(), COMPLETIONS, &headers, &body).status,
        200
    );
    assert!(conversations(&home).is_empty());
    let unread = json!({ "model": "hearth-plain", "messages": [earlier] });
    let refused = ask(&home, COMPLETIONS, unread);
    assert!(refused.body.contains("must be a data: URL"), "{refused:?}");
}

#[test]
fn the_plain_model_that_takes_no_pdf_is_shown_its_text() {
    let model = Model::saying("In the shed.");
    let home = home(&model);
    let file = json!({ "filename": "letter.pdf", "file_data": STANDARD.encode(letter("The cat is in the shed")) });
    let content = json!([{ "type": "file", "file": file }]);
    let messages = json!([{ "role": "user", "content": content }]);
    let plain = json!({ "model": "hearth-plain", "messages": messages });
    assert_eq!(ask(&home, COMPLETIONS, plain).status, 200);
    let sent = model.requests().pop().unwrap().to_string();
    match agent::tools::pdf_obstacle() {
        None => assert!(sent.contains("The cat is in the shed"), "{sent}"),
        Some(obstacle) => println!("skipped: {obstacle}"),
    }
}

#[test]
fn a_picture_may_be_larger_than_other_bodies() {
    let model = Model::saying("Noise.");
    let home = home(&model);
    let large = [PNG, &vec![7; 2 * 1024 * 1024]].concat();
    let url = format!("data:image/png;base64,{}", STANDARD.encode(large));
    let part = json!({ "type": "image_url", "image_url": { "url": url } });
    complete(&home, json!([{ "role": "user", "content": [part] }]));
    assert!(model.requests()[0]["messages"].to_string().contains(&url));
}
