//! Headless Firefox, and the main way through the page in it. It is driven over WebDriver BiDi
//! (https://www.w3.org/TR/webdriver-bidi/), into which the few DevTools commands are
//! translated that a [`Page`] needs.

use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::chromium::{Page, TIMEOUT};
use base::testing::skipped;
use support::home::TemporaryDirectory;

/// A browser process with a profile of its own. It has one page.
struct Firefox {
    process: Child,
    address: String,
    _profile: TemporaryDirectory,
}

impl Firefox {
    /// None where it is not installed, which it says.
    fn start() -> Option<Firefox> {
        let profile = TemporaryDirectory::new();
        // It writes the port there.
        let file = profile.path().join("WebDriverBiDiServer.json");
        let start = |program: &str| {
            Command::new(program)
                .args(["--headless", "--no-remote", "--remote-debugging-port", "0"])
                .arg("--profile")
                .arg(profile.path())
                .arg("about:blank")
                .env("HOME", profile.path())
                .env("TMPDIR", profile.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        };
        let Ok(process) = start("firefox-esr").or_else(|_| start("firefox")) else {
            skipped("Firefox is not installed");
            return None;
        };
        let mut firefox = Firefox {
            process,
            address: String::new(),
            _profile: profile,
        };
        let deadline = Instant::now() + TIMEOUT;
        while firefox.address.is_empty() {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let there: Value = serde_json::from_str(&text).unwrap_or_default();
            if let (Some(host), Some(port)) = (there["ws_host"].as_str(), there["ws_port"].as_u64())
            {
                firefox.address = format!("{host}:{port}");
            }
            assert!(
                Instant::now() < deadline && firefox.process.try_wait().unwrap().is_none(),
                "Firefox did not start"
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Some(firefox)
    }

    fn page(&self) -> Page {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let address = format!("ws://{}/session", self.address);
        let (socket, _) = tungstenite::client(address, stream).unwrap();
        let mut page = Page::new(socket);
        let session = json!({ "capabilities": {} });
        page.send("session.new", session).unwrap();
        let tab = json!({ "type": "tab" });
        let tab = page.send("browsingContext.create", tab).unwrap();
        let tab = tab["context"].as_str().unwrap();
        let events = [
            "browsingContext.load",
            "log.entryAdded",
            "network.beforeRequestSent",
        ];
        page.send(
            "session.subscribe",
            json!({ "events": events, "contexts": [tab] }),
        )
        .unwrap();
        page.tab = Some(tab.to_owned());
        page.size(1280, 800);
        page
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a DevTools command in a tab of Firefox.
pub fn call(page: &mut Page, tab: &str, method: &str, params: &Value) -> Result<Value, Value> {
    match method {
        "Runtime.evaluate" => {
            let of = json!({
                "expression": params["expression"], "target": { "context": tab },
                "awaitPromise": true,
            });
            let evaluated = page.send("script.evaluate", of)?;
            Ok(match evaluated["type"].as_str() {
                Some("success") => json!({ "result": { "value": plain(&evaluated["result"]) } }),
                _ => json!({ "exceptionDetails": evaluated["exceptionDetails"] }),
            })
        }
        "Page.navigate" => {
            let of = json!({ "context": tab, "url": params["url"], "wait": "none" });
            page.send("browsingContext.navigate", of)
        }
        "Page.reload" => page.send(
            "browsingContext.reload",
            json!({ "context": tab, "wait": "none" }),
        ),
        "Page.captureScreenshot" => page.send(
            "browsingContext.captureScreenshot",
            json!({ "context": tab }),
        ),
        "Emulation.setDeviceMetricsOverride" => {
            let viewport = json!({ "width": params["width"], "height": params["height"] });
            page.send(
                "browsingContext.setViewport",
                json!({ "context": tab, "viewport": viewport }),
            )
        }
        // It has no word for it.
        "Emulation.setEmulatedMedia" => Ok(Value::Null),
        "Input.insertText" => {
            let text = params["text"].as_str().unwrap();
            let keys = text.chars().flat_map(|letter| {
                ["keyDown", "keyUp"]
                    .map(|kind| json!({ "type": kind, "value": letter.to_string() }))
            });
            type_keys(page, tab, keys.collect())
        }
        "Input.dispatchKeyEvent" => {
            // Their codes: https://www.w3.org/TR/webdriver/#keyboard-actions
            let key = match params["key"].as_str().unwrap() {
                "Enter" => "\u{e007}",
                "Escape" => "\u{e00c}",
                "ArrowLeft" => "\u{e012}",
                "ArrowRight" => "\u{e014}",
                key => key,
            };
            assert_eq!(params["modifiers"], 0, "{params}");
            type_keys(page, tab, json!([{ "type": params["type"], "value": key }]))
        }
        _ => panic!("Firefox is not asked for {method}"),
    }
}

fn type_keys(page: &mut Page, tab: &str, keys: Value) -> Result<Value, Value> {
    let keyboard = json!({ "type": "key", "id": "keyboard", "actions": keys });
    page.send(
        "input.performActions",
        json!({ "context": tab, "actions": [keyboard] }),
    )
}

/// A value of a script as JSON.
fn plain(value: &Value) -> Value {
    let of = &value["value"];
    match value["type"].as_str() {
        Some("string" | "number" | "boolean") => of.clone(),
        Some("array") => of
            .as_array()
            .map_or(Value::Null, |list| list.iter().map(plain).collect()),
        Some("object") => {
            let mut object = Map::new();
            for entry in of.as_array().into_iter().flatten() {
                object.insert(entry[0].as_str().unwrap().to_owned(), plain(&entry[1]));
            }
            Value::Object(object)
        }
        _ => Value::Null,
    }
}

/// Walks a part of the way, if there is a Firefox.
fn walk(way: fn(&mut Page)) {
    if let Some(firefox) = Firefox::start() {
        way(&mut firefox.page());
    }
}

#[test]
#[ignore = "needs Firefox: make test-browser"]
fn replies_stream_in_firefox() {
    walk(super::stream);
}

#[test]
#[ignore = "needs Firefox: make test-browser"]
fn questions_are_answered_in_firefox() {
    walk(super::answer_questions);
}

#[test]
#[ignore = "needs Firefox: make test-browser"]
fn files_are_attached_in_firefox() {
    walk(super::attachments::attach);
}

#[test]
#[ignore = "needs Firefox: make test-browser"]
fn a_restart_loses_nothing_in_firefox() {
    walk(super::reconnect);
}

#[test]
#[ignore = "needs Firefox: make test-browser"]
fn a_list_is_kept_in_firefox() {
    walk(super::everyday::keep_a_list);
}

#[test]
#[ignore = "needs Firefox: make test-browser"]
fn a_day_with_the_relay_in_firefox() {
    walk(super::relayed::spend_a_day);
}
