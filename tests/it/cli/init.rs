//! `hearth init` in a terminal: what the real program asks, and what it writes then.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use support::eventually;
use support::home::TemporaryDirectory;
use support::model::Model;
use support::program::{binary, is_there};

/// The program in a terminal of its own, ended when dropped.
struct Terminal {
    child: Child,
    shown: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    /// How much of what was shown has been answered.
    answered: usize,
}

impl Terminal {
    fn init(folder: &Path, options: &str) -> Terminal {
        let mut child = Command::new("script")
            .args([
                "-qec",
                &format!("exec \"$HEARTH\" init {options}"),
                "/dev/null",
            ])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder)
            .env("HEARTH_DATA_DIR", folder)
            .env("HEARTH", binary())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = Arc::<Mutex<String>>::default();
        let (mut output, to) = (child.stdout.take().unwrap(), Arc::clone(&shown));
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                to.lock().unwrap().push_str(&text);
            }
        });
        Terminal {
            child,
            shown,
            reader: Some(reader),
            answered: 0,
        }
    }

    /// Types an answer once this is asked.
    fn answer(&mut self, question: &str, answer: &str) {
        let (shown, from) = (Arc::clone(&self.shown), self.answered);
        self.answered = eventually(question, || {
            let shown = shown.lock().unwrap();
            let at = shown[from..].find(question)?;
            Some(from + at + question.len())
        });
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{answer}").unwrap();
    }

    /// All that was shown, once the program has ended well.
    fn end(mut self) -> String {
        let status = eventually("the program ends", || self.child.try_wait().unwrap());
        self.reader.take().unwrap().join().unwrap();
        let shown = self.shown.lock().unwrap().clone();
        assert!(status.success(), "{shown}");
        shown
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Questions and what is typed then.
type Answers<'a> = &'a [(&'a str, &'a str)];

#[test]
fn a_person_in_a_terminal_says_where_the_model_is() {
    if !is_there("script") {
        return;
    }
    let model = Model::saying("fine");
    model.says_of_itself(200, r#"{"object":"list","data":[{"id":"scripted"}]}"#);
    let url = model.config()["base_url"].as_str().unwrap().to_owned();
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    let key = "sk-typed-by-hand";
    let cases: [(&str, &str, Answers<'_>, Value); 4] = [
        (
            "here",
            "",
            &[
                ("Which one?", "openai-compatible"),
                ("Address (http://HOST:PORT/v1)?", &url),
                ("Which model?", ""),
            ],
            json!(["openai-compatible", url, "scripted", null]),
        ),
        (
            "network",
            "",
            &[("Address of that machine", host), ("Which model?", "1")],
            json!(["openai-compatible", url, "scripted", null]),
        ),
        (
            "account",
            &format!("--base-url {url}"),
            &[
                ("Which one?", "openai"),
                ("The API key of OpenAI:", key),
                ("Which model?", ""),
            ],
            json!(["openai", url, "scripted", key]),
        ),
        ("later", "", &[], json!(["offline", null, "offline", null])),
    ];
    for (place, option, answers, expected) in cases {
        let folder = TemporaryDirectory::new();
        let mut terminal = Terminal::init(folder.path(), &format!("--generate {option}"));
        terminal.answer("Which one?", place);
        for (question, answer) in answers {
            terminal.answer(question, answer);
        }
        terminal.answer("Who may connect", "local");
        terminal.answer("Connect via a relay", "");
        let shown = terminal.end();
        assert!(shown.contains("Start the server: "), "{shown}");
        // A terminal shows what is typed; a key is typed unseen.
        assert!(
            shown.contains("local\r\n") && !shown.contains(key),
            "{shown}"
        );
        let text = fs::read_to_string(folder.path().join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let written = ["provider", "base_url", "model", "api_key"].map(|name| config[name].clone());
        assert_eq!(json!(written), expected, "{place}: {shown}");
        assert_eq!(config["channels"][0]["bind"], "127.0.0.1", "{place}");
    }
}
