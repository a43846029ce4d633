//! How much of what a person would ask of a web page a model is shown, and how much
//! that nobody would: on the pages of tests/data.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::table::{Figure, Table};
use crate::websocket::WebSocket;
use support::served::{Served, ok, page};

pub fn measure(table: &mut Table) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pages");
    let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
    let pages: Vec<Value> = serde_json::from_str(&expected).unwrap();
    let site = Served::answering(move |head, _| {
        let path = head.split(' ').nth(1)?.trim_start_matches('/').to_owned();
        let html = fs::read_to_string(folder.join(path)).ok()?;
        Some(page("text/html; charset=utf-8", &html).into_bytes().into())
    });
    let shown = Arc::new(Mutex::new(String::new()));
    let model = model(Arc::clone(&shown));
    let home = Home::with_model(
        model.address,
        json!({
            "permission_mode": "allow",
            "context_tokens": 200_000,
            "tools": { "web_fetch": { "allow": ["127.0.0.1"] } },
        }),
    );
    let server = home.start();
    for (half, name) in [("tuning", "tuned by"), ("held_out", "held out")] {
        let (mut facts, mut noise) = (Share::default(), Share::default());
        for page in pages.iter().filter(|page| page["half"] == half) {
            let url = format!("http://{}/{}", site.address, page["file"].as_str().unwrap());
            let chat = json!({ "type": "chat", "message": format!("Read {url}") });
            let mut person = WebSocket::signed_in(server.address, &home.token);
            assert_eq!(person.ask_data(&chat.to_string())["response"], "Done.");
            let shown = comparable(&shown.lock().unwrap());
            facts.count(&page["facts"], &shown);
            noise.count(&page["noise"], &shown);
        }
        table.add(
            Figure::new(format!("facts found, pages {name}"), facts.percent(), "%")
                .at_least(85.0)
                .how(facts.how()),
        );
        table.add(
            Figure::new(format!("noise shown, pages {name}"), noise.percent(), "%")
                .at_most(20.0)
                .how(noise.how()),
        );
    }
}

/// A model that reads the page whose address ends the message, and keeps what it is
/// shown of it.
fn model(shown: Arc<Mutex<String>>) -> Served {
    Served::answering(move |_, body| {
        let request: Value = serde_json::from_slice(body).ok()?;
        let last = request["messages"].as_array()?.last()?.clone();
        let content = last["content"].as_str()?;
        let message = if last["role"] == "tool" {
            content.clone_into(&mut *shown.lock().ok()?);
            json!({ "role": "assistant", "content": "Done." })
        } else {
            let url = content
                .split_whitespace()
                .find(|word| word.starts_with("http://"))?;
            let arguments = json!({ "url": url }).to_string();
            json!({ "role": "assistant", "content": "", "tool_calls": [{
                "id": "call_1", "type": "function",
                "function": { "name": "web_fetch", "arguments": arguments },
            }] })
        };
        let body = json!({ "choices": [{ "index": 0, "message": message }] });
        Some(
            ok("application/json", &body.to_string())
                .into_bytes()
                .into(),
        )
    })
}

/// How many of the wanted texts were there.
#[derive(Default)]
struct Share {
    found: usize,
    all: usize,
}

impl Share {
    fn count(&mut self, texts: &Value, shown: &str) {
        let texts = texts.as_array().unwrap();
        let has = |text: &&Value| shown.contains(&comparable(text.as_str().unwrap()));
        self.found += texts.iter().filter(has).count();
        self.all += texts.len();
    }

    fn percent(&self) -> f64 {
        100.0 * self.found as f64 / self.all as f64
    }

    fn how(&self) -> String {
        format!("{} of {}", self.found, self.all)
    }
}

/// In lower case, with white space collapsed.
fn comparable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}
