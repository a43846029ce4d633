//! The protocol as transcripts: every file under tests/data/transcripts is
//! played over WebSocket and over JSON lines, against the offline provider.
//!
//! `>>` sends a line as it is, with `$NAME` replaced; `<<` is the next message,
//! exactly, where `"$NAME"` binds a string on its first use and must equal it
//! later, `"*"` is anything, and an object with the member `"..."` may hold
//! more members. `<< closed` is the end of the connection. `reconnect` begins a
//! new connection.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use support::client::Client;
use support::home::Home;

struct Player {
    bound: HashMap<String, String>,
}

impl Player {
    fn fill(&self, text: &str) -> String {
        let mut names: Vec<&String> = self.bound.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("${name}"), &self.bound[name])
        })
    }

    /// Why `found` is not what was expected.
    fn compare(&mut self, expected: &Value, found: &Value, path: &str) -> Result<(), String> {
        match (expected, found) {
            (Value::String(any), _) if any == "*" => Ok(()),
            (Value::String(name), Value::String(text)) if name.starts_with('$') => {
                let bound = self
                    .bound
                    .entry(name[1..].to_owned())
                    .or_insert_with(|| text.clone());
                if bound == text {
                    Ok(())
                } else {
                    Err(format!("{path}: {text:?} is not {name} = {bound:?}"))
                }
            }
            (Value::Object(expected), Value::Object(found)) => {
                let is_open = expected.contains_key("...");
                for (key, value) in expected.iter().filter(|(key, _)| *key != "...") {
                    let found = found
                        .get(key)
                        .ok_or_else(|| format!("{path}.{key} is missing"))?;
                    self.compare(value, found, &format!("{path}.{key}"))?;
                }
                match found.keys().find(|key| !expected.contains_key(*key)) {
                    Some(key) if !is_open => Err(format!("{path}.{key} is not expected")),
                    _ => Ok(()),
                }
            }
            (Value::Array(expected), Value::Array(found)) => {
                if expected.len() != found.len() {
                    return Err(format!("{path}: {} items", found.len()));
                }
                let pairs = expected.iter().zip(found).enumerate();
                for (place, (expected, found)) in pairs {
                    self.compare(expected, found, &format!("{path}[{place}]"))?;
                }
                Ok(())
            }
            (expected, found) if expected == found => Ok(()),
            (expected, found) => Err(format!("{path}: {found} is not {expected}")),
        }
    }
}

fn play(name: &str, transcript: &str, connect: impl Fn(&Home) -> Client) {
    let home = Home::offline();
    let mut player = Player {
        bound: HashMap::new(),
    };
    for (name, token) in [
        ("ADMIN", &home.tokens.admin),
        ("USER", &home.tokens.user),
        ("VIEWER", &home.tokens.viewer),
    ] {
        player.bound.insert(name.to_owned(), token.clone());
    }
    let mut client = connect(&home);
    for (number, line) in transcript.lines().enumerate() {
        let place = format!("{name}:{}", number + 1);
        if let Some(text) = line.strip_prefix(">> ") {
            client.send_text(&player.fill(text));
        } else if line == "<< closed" {
            let end = client.next().expect_err(&place);
            assert!(
                matches!(client, Client::Lines(_)) || format!("{end:?}").contains("Code"),
                "{place}"
            );
        } else if let Some(text) = line.strip_prefix("<< ") {
            let expected: Value = serde_json::from_str(text).expect(&place);
            let found = client
                .next()
                .unwrap_or_else(|end| panic!("{place}: {end:?}"));
            if let Err(why) = player.compare(&expected, &found, "") {
                panic!("{place}: {why}\nin {found}");
            }
        } else if line == "reconnect" {
            client = connect(&home);
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "{place}: {line}");
        }
    }
}

#[test]
fn every_transcript_plays_on_both_transports() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/transcripts");
    let mut played = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let transcript = fs::read_to_string(&path).unwrap();
        play(&format!("{name} (websocket)"), &transcript, |home| {
            Client::websocket(home.address())
        });
        play(&format!("{name} (lines)"), &transcript, |home| {
            Client::lines(home.address())
        });
        played += 1;
    }
    assert!(played >= 5, "{played} transcripts were found");
}
