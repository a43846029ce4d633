//! What programs send to Hearth. Their own tests (`make test-peers`) hold it against the table
//! tests/data/programs/NAME.json, and `make test` sends what is in the tables.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::served::read_request;
use super::tap::Tap;
use super::{peers, programs};

/// Stands between a program and Hearth, and keeps what the program sends.
pub struct Recorder {
    name: String,
    tap: Tap,
}

impl Recorder {
    /// `name` is that of the table.
    pub fn before(name: &str, hearth: SocketAddr) -> Recorder {
        Recorder {
            name: name.to_owned(),
            tap: Tap::before(hearth),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.tap.address
    }

    /// Holds what was sent against the table, and leaves it in target/peers.
    ///
    /// # Panics
    /// When the program sent what no exchange of the table has: another path, or another
    /// member of a body. Then the table is out of date.
    pub fn check(&self) {
        let mut sent = Vec::new();
        for bytes in self.tap.sent() {
            let mut reader = &bytes[..];
            while let Some((head, body)) = read_request(&mut reader) {
                // The others have tests of their own.
                let mut places = [" /v1/", " /api/", " /hooks/", " /events?"].iter();
                let is_kept = places.any(|place| head.contains(place));
                sent.extend(is_kept.then(|| request(&head, &body)));
            }
        }
        let file = peers::place().join(format!("{}.sent.json", self.name));
        fs::write(&file, json!(sent).to_string()).unwrap();
        let known: BTreeSet<String> = exchanges(&self.name).iter().flat_map(members).collect();
        let sent: BTreeSet<String> = sent.iter().flat_map(members).collect();
        let new: Vec<_> = sent.difference(&known).collect();
        let (name, file) = (&self.name, file.display());
        assert!(new.is_empty(), "{name} sends {new:?}; see {file}");
        programs::worked();
    }
}

/// A request as the tables have it.
fn request(head: &str, body: &[u8]) -> Value {
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let send = first.trim_end_matches(" HTTP/1.1");
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers: Map<String, Value> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), json!(value)))
        .collect();
    let body = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(_) => json!(String::from_utf8_lossy(body)),
    };
    json!({ "send": send, "headers": headers, "body": body })
}

/// The line of a request, with each member of its body.
fn members(request: &Value) -> Vec<String> {
    let send = request["send"].as_str().unwrap();
    let members = request["body"].as_object().into_iter().flatten();
    let members = members.map(|(name, _)| format!("{send}: {name}"));
    members.chain([send.to_owned()]).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/programs")
}

/// The names of all tables.
pub fn tables() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort_unstable();
    names
}

/// The exchanges of a table; none while there is no such table.
pub fn exchanges(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(format!("{name}.json")));
    text.map_or_else(|_| Vec::new(), |text| serde_json::from_str(&text).unwrap())
}
