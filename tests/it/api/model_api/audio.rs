//! Speech, passed on to the servers of `voice`.

use serde_json::{Value, json};

use super::{ask, bearer, home, home_with};
use support::home::Home;
use support::http::{FileAnswer, exchange, get};
use support::model::Model;
use support::voice::{VoiceServer, tone};

const SPEECH: &str = "/v1/audio/speech";

fn speaking(model: &Model, server: &VoiceServer) -> Home {
    let server = |more: Value| {
        let mut one = json!({ "url": server.url() });
        one.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        one
    };
    let voice = json!({
        "transcription": server(json!({ "model": "small", "language": "nb" })),
        "speech": server(json!({ "voice": "bella" })),
    });
    home_with(model, json!({ "voice": voice }))
}

fn send(home: &Home, method: &str, path: &str, media_type: &str, body: &[u8]) -> FileAnswer {
    let authorization = bearer(&home.tokens.user);
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", media_type),
    ];
    exchange(home.address(), method, path, &headers, body)
}

/// A form as OpenAI's library sends it.
fn form(fields: &[(&str, &str)], file: Option<&[u8]>) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, value) in fields {
        let field =
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.extend_from_slice(field.as_bytes());
    }
    if let Some(file) = file {
        form.extend_from_slice(
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"my \xc3\xb6.mp3\"\r\n\
              Content-Type: audio/mpeg\r\n\r\n",
        );
        form.extend_from_slice(file);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--b--\r\n");
    form
}

fn transcribe(home: &Home, form: &[u8]) -> FileAnswer {
    let media_type = "multipart/form-data; boundary=b";
    send(home, "POST", "/v1/audio/transcriptions", media_type, form)
}

fn text_of(answer: &FileAnswer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

#[test]
fn a_recording_becomes_a_text() {
    let (model, server) = (
        Model::saying("hi"),
        VoiceServer::hearing("What is for dinner?"),
    );
    let home = speaking(&model, &server);
    let file = b"-b\r\n\x00\xff\r\n";
    for (fields, language, text) in [
        (
            &[("model", "whisper-1")][..],
            "nb",
            "{\"text\":\"What is for dinner?\"}",
        ),
        (
            &[
                ("model", "x"),
                ("language", "de"),
                ("response_format", "text"),
                ("prompt", "a"),
            ],
            "de",
            "What is for dinner?",
        ),
    ] {
        let answer = transcribe(&home, &form(fields, Some(file)));
        assert_eq!((answer.status, &*text_of(&answer)), (200, text));
        let named = (language == "de").then_some("prompt");
        assert_eq!(answer.header("x-hearth-ignored"), named);
        let asked = server.asked().pop().unwrap();
        let sent = String::from_utf8_lossy(&asked.body).into_owned();
        for part in [
            "name=\"model\"\r\n\r\nsmall\r\n".to_owned(),
            format!("name=\"language\"\r\n\r\n{language}\r\n"),
            "filename=\"speech.mp3\"\r\nContent-Type: audio/mpeg\r\n\r\n".to_owned(),
        ] {
            assert!(sent.contains(&part), "{part}: {sent}");
        }
        let has_file = asked.body.windows(file.len()).any(|part| part == file);
        assert!(has_file, "{sent}");
    }
    for (form, says) in [
        (form(&[("model", "x")], None), "must have a \\\"file\\\""),
        (form(&[], Some(b"")), "must have a \\\"file\\\""),
        (
            form(&[("response_format", "srt")], Some(b"x")),
            "json or text",
        ),
        (b"--c\r\n".to_vec(), "must be a form"),
        (b"--b\r\nno end".to_vec(), "must be a form"),
    ] {
        let answer = transcribe(&home, &form);
        let body = text_of(&answer);
        assert_eq!(answer.status, 400, "{body}");
        assert!(body.contains(says), "{says}: {body}");
    }
}

#[test]
fn a_text_becomes_speech_in_the_household_s_voice() {
    let (model, server) = (Model::saying("hi"), VoiceServer::hearing(""));
    let home = speaking(&model, &server);
    for (more, format) in [
        (json!({}), "mp3"),
        (json!({ "response_format": "wav" }), "wav"),
    ] {
        let mut body = json!({ "model": "tts-1", "voice": "alloy", "input": "Fish, at six." });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let sent = body.to_string();
        let answer = send(&home, "POST", SPEECH, "application/json", sent.as_bytes());
        assert_eq!((answer.status, &answer.body), (200, &tone()));
        assert_eq!(answer.header("content-type"), Some("audio/wav"));
        assert_eq!(answer.header("x-hearth-ignored"), Some("voice"));
        let asked: Value = serde_json::from_slice(&server.asked().pop().unwrap().body).unwrap();
        assert_eq!(
            asked,
            json!({ "model": "tts-1", "voice": "bella", "input": "Fish, at six.",
                "response_format": format })
        );
    }
    for (body, status, says) in [
        (json!({ "input": " " }), 400, "must not be empty"),
        (
            json!({ "input": "a", "response_format": "midi" }),
            400,
            "mp3",
        ),
        (json!({ "input": "x".repeat(20_000) }), 413, "20000 bytes"),
        (json!({}), 400, "input"),
    ] {
        let answer = ask(&home, SPEECH, body);
        assert_eq!(answer.status, status, "{answer:?}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn programs_find_speech_where_it_is_set() {
    let (model, server) = (Model::saying("hi"), VoiceServer::hearing(""));
    let without = home(&model);
    for (home, expected) in [(&speaking(&model, &server), 200), (&without, 404)] {
        for name in ["whisper-1", "tts-1"] {
            let path = format!("/v1/models/{name}");
            assert_eq!(send(home, "GET", &path, "", b"").status, expected, "{name}");
            let listed = text_of(&send(home, "GET", "/v1/models", "", b""));
            assert_eq!(listed.contains(name), expected == 200, "{listed}");
            // Neither answers messages.
            let body = json!({ "model": name, "messages": [{ "role": "user", "content": "hi" }] });
            assert_eq!(ask(home, super::COMPLETIONS, body).status, 404);
        }
    }
    let refused = ask(&without, SPEECH, json!({ "input": "hello" }));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("voice.speech"), "{refused:?}");
    let answer = transcribe(&without, &form(&[], Some(b"x")));
    let body = text_of(&answer);
    assert_eq!(answer.status, 400, "{body}");
    assert!(body.contains("voice.transcription"), "{body}");
    assert_eq!(get(without.address(), SPEECH).status, 405);
}
