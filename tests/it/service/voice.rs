//! Speech, passed on to a scripted server in OpenAI's form.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use support::home::Home;
use support::voice::{VoiceServer, response, tone};

fn config(server: &VoiceServer) -> Value {
    json!({ "voice": {
        "transcription": {
            "url": server.url(), "api_key": "sk-hears", "model": "whisper-small", "language": "nb",
        },
        "speech": {
            "url": format!("http://{}/speech/v1/audio/speech", server.address),
            "api_key": "sk-speaks", "voice": "bella",
        },
    } })
}

/// "hello" in base64.
const HELLO: &str = "aGVsbG8=";

fn check_head(head: &str, request: &str, key: &str) {
    assert!(
        head.starts_with(&format!("{request} HTTP/1.1\r\n")),
        "{head}"
    );
    let authorization = format!("authorization: bearer {key}");
    assert!(head.to_lowercase().contains(&authorization), "{head}");
}

#[test]
fn what_is_said_comes_back_as_text_and_text_as_speech() {
    let server = VoiceServer::hearing("What is for dinner?");
    let home = Home::start(config(&server));
    let mut user = home.websocket(&home.tokens.user);
    let heard = user.ask(json!({
        "type": "transcribe", "audio": HELLO, "media_type": "audio/webm;codecs=opus",
    }));
    assert_eq!(heard, json!({ "text": "What is for dinner?" }));
    let asked = server.asked().remove(0);
    check_head(&asked.head, "POST /v1/audio/transcriptions", "sk-hears");
    let (_, boundary) = asked.head.split_once("boundary=").unwrap();
    let boundary = boundary.lines().next().unwrap();
    let form = String::from_utf8(asked.body).unwrap();
    let parts: Vec<&str> = form.split(&format!("--{boundary}")).collect();
    assert_eq!((parts[0], parts[5]), ("", "--\r\n"));
    for (part, name, value) in [
        (parts[1], "name=\"model\"", "whisper-small"),
        (parts[2], "name=\"response_format\"", "json"),
        (parts[3], "name=\"language\"", "nb"),
        (
            parts[4],
            "name=\"file\"; filename=\"speech.webm\"\r\nContent-Type: audio/webm",
            "hello",
        ),
    ] {
        assert_eq!(
            part,
            format!("\r\nContent-Disposition: form-data; {name}\r\n\r\n{value}\r\n")
        );
    }

    let spoken = user.ask(json!({ "type": "speak", "text": "Fish, at six." }));
    assert_eq!(spoken["media_type"], "audio/wav");
    let audio = protocol::attachment::decode(spoken["audio"].as_str().unwrap()).unwrap();
    assert_eq!(audio, tone());
    let asked = server.asked().remove(1);
    check_head(&asked.head, "POST /speech/v1/audio/speech", "sk-speaks");
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(
        body,
        json!({ "model": "tts-1", "voice": "bella", "input": "Fish, at six.", "response_format": "mp3" })
    );
    // What runs it is for admins; the keys are for nobody.
    let config = json!({ "type": "get_config" });
    assert_eq!(
        user.ask(config.clone())["voice"],
        json!({ "transcription": true, "speech": true })
    );
    let voice = home.admin().ask(config)["voice"].clone();
    assert_eq!(voice["speech"]["voice"], "bella");
    assert_eq!(voice["speech"]["api_key_set"], true);
    assert!(!voice.to_string().contains("sk-"), "{voice}");
}

#[test]
fn what_cannot_be_passed_on_is_refused() {
    let server = VoiceServer::answering(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        match body {
            _ if body.contains("busy") => {
                response("503 Busy", "text/plain", b"key sk-speaks-loudly")
            }
            _ if body.contains("often") => response("429 Often", "text/plain", b"wait"),
            _ if body.contains("long") => response("200 OK", "audio/mpeg", &vec![0; 600_000]),
            _ => response("200 OK", "application/json", b"{}"),
        }
    });
    let home = Home::start(config(&server));
    let mut user = home.websocket(&home.tokens.user);
    let large = "A".repeat(800_000);
    for (asked, code, says) in [
        (
            json!({ "type": "transcribe", "audio": HELLO, "media_type": "video/mp4" }),
            "invalid_request",
            "audio/webm",
        ),
        (
            json!({ "type": "transcribe", "audio": "", "media_type": "audio/webm" }),
            "invalid_request",
            "empty",
        ),
        (
            json!({ "type": "transcribe", "audio": large, "media_type": "audio/webm" }),
            "invalid_request",
            "524288",
        ),
        (
            json!({ "type": "transcribe", "audio": HELLO, "media_type": "audio/ogg" }),
            "server_error",
            "transcription server",
        ),
        (
            json!({ "type": "speak", "text": " " }),
            "invalid_request",
            "empty",
        ),
        (
            json!({ "type": "speak", "text": "x".repeat(2_001) }),
            "invalid_request",
            "2000",
        ),
        (
            json!({ "type": "speak", "text": "busy" }),
            "server_error",
            "status 503",
        ),
        (
            json!({ "type": "speak", "text": "often" }),
            "rate_limited",
            "status 429: wait",
        ),
        (
            json!({ "type": "speak", "text": "long" }),
            "server_error",
            "larger answer",
        ),
    ] {
        user.send(&asked);
        let answer = user.response();
        assert_eq!(answer["code"], code, "{answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(says), "{error}");
        assert!(!error.contains("sk-speaks"), "{error}");
    }
    // Off until it is configured.
    let home = Home::offline();
    let mut user = home.websocket(&home.tokens.user);
    for (asked, says) in [
        (
            json!({ "type": "transcribe", "audio": HELLO, "media_type": "audio/ogg" }),
            "voice.transcription",
        ),
        (json!({ "type": "speak", "text": "x" }), "voice.speech"),
    ] {
        user.send(&asked);
        let answer = user.response();
        assert!(answer["error"].as_str().unwrap().contains(says), "{answer}");
    }
    let config = user.ask(json!({ "type": "get_config" }));
    assert_eq!(
        config["voice"],
        json!({ "transcription": false, "speech": false })
    );
}

#[test]
fn a_slow_server_holds_up_neither_the_connection_nor_the_end() {
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    let server = VoiceServer::answering(move |_| {
        let _ = receiver
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(120));
        response("200 OK", "application/json", b"{}")
    });
    let mut home = Home::start(config(&server));
    let mut user = home.websocket(&home.tokens.user);
    for id in 0..4 {
        user.send(&json!({ "id": id, "type": "speak", "text": "x" }));
    }
    user.send(&json!({ "id": "fifth", "type": "speak", "text": "x" }));
    let answer = user.response();
    assert_eq!(
        (&answer["id"], &answer["code"]),
        (&json!("fifth"), &json!("server_error"))
    );
    user.send(&json!({ "id": "ping", "type": "ping" }));
    assert_eq!(user.response()["id"], "ping");
    // It stops at once, while they still wait.
    home.stop();
    drop(sender);
}
