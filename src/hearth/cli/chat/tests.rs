//! The client as a whole, against real sockets.

mod transcripts;

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::*;
use crate::cli::tests::{DataDirectoryUnderTest, run_with};

#[test]
fn input_is_cut_into_lines() {
    let (mut writer, mut reader) = UnixStream::pair().unwrap();
    let mut lines = LineBuffer::default();
    writer.write_all(b"one\ntw").unwrap();
    lines.fill(&mut reader).unwrap();
    assert_eq!(lines.next(), Some(Some("one".to_owned())));
    assert_eq!(lines.next(), None);
    writer.write_all(b"o\nrest").unwrap();
    drop(writer);
    lines.fill(&mut reader).unwrap();
    assert_eq!(lines.next(), Some(Some("two".to_owned())));
    assert_eq!(lines.next(), None);
    lines.fill(&mut reader).unwrap();
    assert_eq!(lines.next(), Some(Some("rest".to_owned())));
    assert_eq!(lines.next(), Some(None));
}

/// Runs a whole command line with `input` on standard input.
fn client(words: &[&str], input: &str) -> (u8, String, String) {
    let ran = run_with(words, input, &[("HEARTH_TOKEN", "t")]);
    (ran.code, ran.output, ran.errors)
}

/// A server that echoes every chat message in capitals, for one connection.
fn echo(listener: TcpListener) -> thread::JoinHandle<Vec<Value>> {
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut socket = tungstenite::accept(stream).unwrap();
        let mut heard = Vec::new();
        while let Ok(message) = socket.read() {
            let Ok(text) = message.to_text().map(str::to_owned) else {
                break;
            };
            let Ok(request) = serde_json::from_str::<Value>(&text) else {
                break;
            };
            let data = match request["type"].as_str() {
                Some("chat") => json!({
                    "response": request["message"].as_str().unwrap().to_uppercase(),
                    "conversation_id": "conv_1",
                }),
                _ => json!({"role": "user"}),
            };
            let response = json!({"status": "ok", "id": request["id"], "data": data});
            socket.send(response.to_string().into()).unwrap();
            heard.push(request);
        }
        heard
    })
}

#[test]
fn a_question_and_a_pipe_are_answered_over_a_real_socket() {
    for (words, input, output, messages) in [
        (
            vec!["what", "now"],
            "ignored\n",
            "WHAT NOW\n",
            vec!["what now"],
        ),
        (vec![], "one\n\ntwo", "ONE\nTWO\n", vec!["one", "two"]),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/ws", listener.local_addr().unwrap());
        let server = echo(listener);
        let words = [vec!["chat", "--url", url.as_str()], words].concat();
        let (code, out, err) = client(&words, input);
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (0, output, ""),
            "{words:?}"
        );
        let heard = server.join().unwrap();
        assert_eq!(heard[0]["token"], "t");
        let chats: Vec<&Value> = heard
            .iter()
            .filter(|request| request["type"] == "chat")
            .map(|request| &request["message"])
            .collect();
        assert_eq!(chats, messages);
    }
}

#[test]
fn a_server_that_is_not_there_is_named_with_a_remedy() {
    // A port that was just free; nobody listens on it now.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("ws://{address}/ws");
    let (code, out, err) = client(&["chat", "--url", &url, "hi"], "");
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (
            1,
            "",
            &*format!("hearth: no server answers at {address}: start it with `hearth serve`\n")
        )
    );
    let root = DataDirectoryUnderTest::default();
    let directory = root.path().to_str().unwrap();
    let (code, _, err) = client(&["chat", "--data-dir", directory, "hi"], "");
    assert_eq!(code, 1);
    assert!(
        err.contains("hearth serve") && err.contains(directory),
        "{err}"
    );
}

#[test]
fn a_server_that_hangs_up_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/ws", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut socket = tungstenite::accept(stream).unwrap();
        socket.read().unwrap();
    });
    let (code, _, err) = client(&["chat", "--url", &url, "hi"], "");
    server.join().unwrap();
    assert_eq!(code, 1);
    assert!(
        err.starts_with("hearth: the connection to the server ended"),
        "{err}"
    );
}
