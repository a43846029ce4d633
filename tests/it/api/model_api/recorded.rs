//! What programs really sent (tests/data/programs), sent again.

use serde_json::{Value, json};

use super::home_with;
use crate::api::library_peers;
use crate::http::events::Reader;
use crate::webhook::format_peers::{self, PLAIN};
use support::eventually;
use support::http::exchange;
use support::recorded::{exchanges, tables};
use support::voice::VoiceServer;

#[test]
fn programs_are_answered_as_they_ask() {
    let heard = VoiceServer::hearing("Is the door shut?");
    let mut accounts = format_peers::accounts();
    for name in ["flow", "home"] {
        accounts[name] = json!({ "secret": PLAIN });
    }
    let channels = format_peers::channels(&heard.url(), accounts);
    for name in tables() {
        let model = library_peers::model();
        let home = home_with(
            &model,
            json!({
                "openai_api": { "enabled": true, "users": { "ada@example.org": "user" } },
                "voice": {
                    "transcription": { "url": heard.url(), "model": "small" },
                    "speech": { "url": heard.url(), "model": "small" },
                },
                "channels": channels,
            }),
        );
        let token = home.token("admin", &json!({ "speaks_for": ["user"] }));
        for one in exchanges(&name) {
            let send = one["send"].as_str().unwrap();
            let (method, path) = send.split_once(' ').unwrap();
            let headers = one["headers"].as_object().unwrap().iter();
            let headers: Vec<(&str, String)> = headers
                .map(|(name, value)| (&**name, value.as_str().unwrap().replace("TOKEN", &token)))
                .collect();
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (*name, &**value))
                .collect();
            let body = match &one["body"] {
                Value::String(text) => text.clone(),
                body => body.to_string(),
            };
            if path.starts_with("/events?") {
                // It would not end.
                let (_, first) = Reader::open(&home, &token, path, "").event();
                assert_eq!(first["type"], "subscribed", "{name}: {first}");
                continue;
            }
            let answer = exchange(home.address(), method, path, &headers, body.as_bytes());
            let text = String::from_utf8_lossy(&answer.body);
            let status = one["status"].as_u64().unwrap_or(200);
            assert_eq!(u64::from(answer.status), status, "{name}: {one}: {text}");
            for says in one["says"].as_array().unwrap() {
                let says = says.as_str().unwrap();
                assert!(text.contains(says), "{name}: {one}: no {says} in {text}");
            }
            // A webhook is answered before the model is asked.
            for words in one["asks"].as_array().into_iter().flatten() {
                let words = words.as_str().unwrap();
                eventually(words, || {
                    let mut asked = model.requests().into_iter();
                    let is_asked = asked.any(|request| request.to_string().contains(words));
                    is_asked.then_some(())
                });
            }
        }
    }
}
