//! Exchanges with services, written by hand after their documentation
//! (tests/data/providers): what the program must send, and what came back.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::anthropic::Anthropic;
use super::dialect::{Dialect, Options};
use super::endpoint::Endpoint;
use super::ollama::Ollama;
use super::openai::OpenAi;
use super::profile::Profile;
use super::remote::Remote;
use super::testing::{Ask, assistant, user};
use crate::model::Provider;
use config::{Api, Preset};
use net::http_client::test_server::{TestServer, json as answer};

/// One file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    /// What it proves, and where that comes from.
    #[serde(rename = "about")]
    _about: String,
    /// The value of the setting `provider`.
    provider: String,
    /// The host that the service is asked at; by default another than its own.
    #[serde(default)]
    host: String,
    model: String,
    effort: Option<String>,
    /// Asked for first, if it is there, and compared.
    window: Option<usize>,
    /// Whether the last request must be answered in words.
    #[serde(default)]
    last_in_words: bool,
    exchanges: Vec<Exchange>,
    /// The reason that the last reply is not whole.
    finish_reason: Option<String>,
}

/// One request and its answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    path: String,
    /// The values of the request at these places; `null` is nothing.
    #[serde(default)]
    sent: Map<String, Value>,
    status: u16,
    answer: Value,
}

#[test]
fn recorded_services_get_what_they_want() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/providers");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        play(name, serde_json::from_str(&text).expect(name));
    }
}

fn play(name: &str, recording: Recording) {
    let Recording {
        exchanges, model, ..
    } = recording;
    let answers = exchanges
        .iter()
        .map(|exchange| answer(exchange.status, &exchange.answer));
    let server = TestServer::new(answers.collect());
    let api = Preset::of(&recording.provider).expect(name).api;
    let (dialect, path): (Box<dyn Dialect>, _) = match api {
        Api::Anthropic => (Box::new(Anthropic), ""),
        Api::Ollama => (Box::new(Ollama), ""),
        _ => (Box::new(OpenAi), "/v1"),
    };
    let url = format!("http://{}{path}", server.address);
    let mut endpoint = Endpoint::new(name, &url, None);
    endpoint.host.clone_from(&recording.host);
    let service = Profile::of(&recording.provider, &recording.host);
    let efforts = ["none", "low", "medium", "high"];
    let effort = recording.effort.as_deref();
    let options = Options {
        reasoning_effort: efforts.into_iter().find(|known| Some(*known) == effort),
        ..Options::default()
    };
    let provider = Remote::new(endpoint, dialect, service, options);
    if let Some(window) = recording.window {
        assert_eq!(provider.window(&model), window, "{name}");
    }
    let model: &'static str = model.leak();
    let mut ask = Ask {
        model,
        ..Ask::hello(false)
    };
    let mut last = None;
    while server.heard().len() < exchanges.len() {
        ask.may_call = !recording.last_in_words || server.heard().len() + 1 < exchanges.len();
        let reply = ask.reply(&provider);
        last = reply.finish_reason;
        if reply.calls.is_empty() {
            let said = assistant(&reply.text, Vec::new(), reply.extra);
            ask.messages.extend([said, user("And now?")]);
        } else {
            ask.go_on(reply, "on", true);
        }
    }
    let last = last.map(|reason| reason.as_str().to_owned());
    assert_eq!(last, recording.finish_reason, "{name}");
    for (place, (heard, exchange)) in server.heard().iter().zip(&exchanges).enumerate() {
        let path = heard.head.split(' ').nth(1).unwrap();
        assert_eq!(path, exchange.path, "{name}, request {place}");
        for (pointer, expected) in &exchange.sent {
            let body = heard.json();
            let found = body.pointer(pointer).unwrap_or(&Value::Null);
            assert_eq!(
                found, expected,
                "{name}, request {place}, {pointer}: {body}"
            );
        }
    }
}
