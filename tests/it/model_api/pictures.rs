//! Pictures and files of programs that speak these interfaces.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::attachments::PNG;

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
