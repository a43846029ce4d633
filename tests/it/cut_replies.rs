//! Replies that are not whole: everybody is told so.

use serde_json::{Value, json};

use support::home::Home;
use support::http::post;
use support::model::{Act, Model, whole};
use support::receiver::Receiver;

use crate::memory::{say, with_webhook};

fn cut(text: &str, reason: &str) -> Act {
    Act::Raw(whole(
        &json!({ "role": "assistant", "content": text }),
        reason,
    ))
}

#[test]
fn a_reply_that_was_cut_says_so_wherever_it_is_shown() {
    for (sent, reason, end) in [
        ("length", "length", "its limit on tokens"),
        ("content_filter", "content_filter", "content filter"),
    ] {
        let model = Model::acting(vec![cut("Once upon", sent), Act::say("a time.")]);
        let home = Home::start(model.config());
        let mut client = home.admin();
        client.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
        client.send(&json!({ "type": "chat", "message": "tell me a story", "id": 1 }));
        assert_eq!(client.event("chat.done")["finish_reason"], reason);
        let response = client.response()["data"].clone();
        assert_eq!(response["response"], "Once upon");
        assert_eq!(response["finish_reason"], reason);
        let conversation = response["conversation_id"].clone();
        let page = json!({ "type": "get_messages", "conversation_id": conversation });
        let messages = client.ask(page)["messages"].clone();
        assert_eq!(messages[1]["finish_reason"], reason);
        assert_eq!(messages[0].get("finish_reason"), None);
        let turn = client.ask(json!({ "type": "get_turn", "turn_id": response["turn_id"] }));
        assert_eq!(turn["finish_reason"], reason);
        // The model knows it, too, and goes on.
        let next = say(&mut client, &conversation, "go on");
        assert_eq!(next.get("finish_reason"), None, "{next}");
        let told = model.requests()[1]["messages"][2]["content"].to_string();
        assert!(
            told.starts_with("\"Once upon\\n\\n[This reply was cut off: "),
            "{told}"
        );
        assert!(told.contains(end), "{told}");
    }
}

#[test]
fn a_callback_says_that_the_reply_was_cut() {
    let (model, receiver) = (
        Model::acting(vec![cut("Once upon", "length")]),
        Receiver::start(),
    );
    let home = with_webhook(&model, &receiver, "allow");
    let body = json!({ "message": "a story", "conversation_id": "x" });
    assert_eq!(
        post(home.address(), "/webhook/door", &[], &body).status,
        202
    );
    let called = receiver.wait_for(1)[0].body.clone();
    assert_eq!(called["message"], "Once upon");
    assert_eq!(called["finish_reason"], "length");
}

/// A limit that thinking used up is no empty answer.
#[test]
fn a_reply_that_was_cut_before_its_first_word_is_an_error_that_says_why() {
    let model = Model::acting(vec![cut("", "length")]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "hello" }));
    let error: Value = client.response()["error"].clone();
    let text = error.as_str().unwrap();
    assert!(
        text.contains("limit on tokens") && text.contains("max_tokens"),
        "{text}"
    );
    assert_eq!(model.requests().len(), 1, "it is not asked again");
}
