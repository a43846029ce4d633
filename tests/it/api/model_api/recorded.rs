//! What programs really sent (tests/data/programs), sent again.

use serde_json::{Value, json};

use super::home_with;
use crate::api::library_peers;
use support::http::exchange;
use support::recorded::{exchanges, tables};
use support::voice::VoiceServer;

#[test]
fn programs_are_answered_as_they_ask() {
    let heard = VoiceServer::hearing("Is the door shut?");
    for name in tables() {
        let model = library_peers::model();
        let home = home_with(
            &model,
            json!({
                "openai_api": { "enabled": true, "users": { "ada@example.org": "user" } },
                "voice": { "transcription": { "url": heard.url(), "model": "small" } },
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
            let answer = exchange(home.address(), method, path, &headers, body.as_bytes());
            let text = String::from_utf8_lossy(&answer.body);
            let status = one["status"].as_u64().unwrap_or(200);
            assert_eq!(u64::from(answer.status), status, "{name}: {one}: {text}");
            for says in one["says"].as_array().unwrap() {
                let says = says.as_str().unwrap();
                assert!(text.contains(says), "{name}: {one}: no {says} in {text}");
            }
        }
    }
}
