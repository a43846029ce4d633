//! What is changed: good input of every kind.

use std::fs;
use std::path::Path;

/// Whole connections, from their first byte.
pub fn connections(token: &str) -> Vec<Vec<u8>> {
    let body = r#"{"message":"hello","user_id":"u","conversation_id":"c"}"#;
    let mut samples: Vec<Vec<u8>> = [
        "GET /health HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nIf-None-Match: \"x\"\r\n\r\n"
            .to_owned(),
        "HEAD /assets/app.js HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(),
        format!(
            "POST /webhook/ci HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
             Idempotency-Key: k\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
        format!(
            "POST /webhook/ci HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        ),
        "DELETE /auth HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer nothing\r\n\r\n".to_owned(),
        "OPTIONS /auth HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\
         Access-Control-Request-Method: POST\r\n\r\n"
            .to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec();
    samples.extend(files(token));
    samples.extend(requests_of_other_programs(token));
    let commands = commands(token);
    samples.push(commands.join("\n").into_bytes());
    // One sample for each command, so that each is changed as often.
    for command in &commands[1..] {
        samples.push(format!("{}\n{command}\n", commands[0]).into_bytes());
    }
    let mut websocket = b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        .to_vec();
    for command in &commands {
        websocket.extend(frame(0x81, command.as_bytes()));
    }
    websocket.extend(frame(0x89, b"ping"));
    websocket.extend(frame(0x01, b"{\"type\":"));
    websocket.extend(frame(0x80, b"\"ping\"}"));
    websocket.extend(frame(0x82, b"\x00\x01"));
    websocket.extend(frame(0x88, b"\x03\xe8"));
    samples.push(websocket);
    samples
}

/// A file that is put, one that comes in chunks and with a webhook, and a part of one.
fn files(token: &str) -> Vec<Vec<u8>> {
    let authorized = format!("Host: a\r\nAuthorization: Bearer {token}\r\n");
    let hook =
        r#"{"message":"m","attachments":[{"name":"a.txt","type":"text/plain","data":"aGk="}]}"#;
    [
        format!(
            "POST /attachments HTTP/1.1\r\n{authorized}Content-Type: image/png\r\n\
             Content-Disposition: attachment; filename=\"a\\\"b.png\"; filename*=UTF-8''%c3%a4.png\r\n\
             Content-Length: 12\r\n\r\nGIF89a\x01\0\x01\0\x01\0"
        ),
        format!(
            "POST /attachments HTTP/1.1\r\n{authorized}Transfer-Encoding: chunked\r\n\r\n\
             5\r\n%PDF-\r\n3;a=b\r\n1.7\r\n0\r\nx: y\r\n\r\n"
        ),
        format!(
            "GET /attachments/att_0000000000001 HTTP/1.1\r\n{authorized}Range: bytes=1-2\r\n\r\n"
        ),
        format!(
            "POST /webhook/ci HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{hook}",
            hook.len()
        ),
    ]
    .map(String::into_bytes)
    .into()
}

/// What programs made for OpenAI and Ollama, and a scraper, send.
fn requests_of_other_programs(token: &str) -> Vec<Vec<u8>> {
    let history = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":"Fine."},{"role":"user","content":"And you?"}]"#;
    let mut samples = vec![
        "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /api/tags HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!(
            "GET /v1/models/hearth HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n"
        ),
    ];
    for (path, body) in [
        (
            "/v1/chat/completions",
            format!(
                r#"{{"model":"hearth","messages":{history},"stream":true,"stream_options":{{"include_usage":true}},"temperature":0.2,"n":1}}"#
            ),
        ),
        (
            "/v1/chat/completions",
            format!(r#"{{"model":"hearth","messages":{history},"tools":[],"user":"u"}}"#),
        ),
        (
            "/api/chat",
            format!(r#"{{"model":"hearth:latest","messages":{history},"options":{{"seed":1}}}}"#),
        ),
        (
            "/api/generate",
            r#"{"model":"hearth","prompt":"Hi","system":"Be brief.","stream":false,"context":[1,2]}"#
                .to_owned(),
        ),
        ("/api/show", r#"{"model":"hearth"}"#.to_owned()),
    ] {
        samples.push(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }
    samples.into_iter().map(String::into_bytes).collect()
}

/// A client's frame (RFC 6455 section 5.2), masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => bytes.push(0x80 | length as u8),
        Ok(length) => {
            bytes.push(0x80 | 126);
            bytes.extend(length.to_be_bytes());
        }
        Err(_) => unreachable!("no sample is so long"),
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

fn commands(token: &str) -> Vec<String> {
    let mut commands = vec![format!(r#"{{"type":"auth","token":"{token}","id":1}}"#)];
    commands.extend(
        [
            r#"{"type":"ping","id":"a"}"#,
            r#"{"type":"chat","message":"Hello","stream":true,"idempotency_key":"k","id":2}"#,
            r#"{"type":"chat","message":"Hello","attachments":["att_0000000000001"]}"#,
            r#"{"type":"put_attachment","name":"a.txt","media_type":"text/plain","bytes":3}"#,
            r#"{"type":"put_attachment_part","attachment_id":"att_0000000000001","offset":0,"data":"aGk="}"#,
            r#"{"type":"get_attachment","attachment_id":"att_0000000000001","offset":1,"length":2}"#,
            r#"{"type":"get_config"}"#,
            r#"{"type":"update_config","config":{"temperature":0.5,"tool_permissions":{"a":"ask"}}}"#,
            r#"{"type":"list_conversations","limit":5,"cursor":"x"}"#,
            r#"{"type":"get_messages","conversation_id":"c_0000000000000","limit":3,"before":"m"}"#,
            r#"{"type":"list_tools"}"#,
            r#"{"type":"subscribe","events":["chat.delta","message.created"],"since":0}"#,
            r#"{"type":"search_messages","query":"hello \"world\" -x*","limit":3}"#,
            r#"{"type":"list_memories"}"#,
            r#"{"type":"update_list","list":"a","add":["b","c"],"check":["b"],"uncheck":["c"],"remove":["b"]}"#,
            r#"{"type":"get_list","list":"a"}"#,
            r#"{"type":"list_lists"}"#,
            r#"{"type":"delete_list","list":"a"}"#,
            r#"{"type":"list_approvals"}"#,
            r#"{"type":"approve","approval_id":"a_0000000000000","remember":"once"}"#,
            r#"{"type":"list_deliveries","state":"dead"}"#,
            r#"{"type":"rename_conversation","conversation_id":"c","title":"t"}"#,
            r#"{"type":"cancel","turn_id":"t_0000000000000"}"#,
            r#"{"type":"create_schedule","prompt":"hello","cron":"*/15 7-9,18 1,15 jan-jun/2 mon-fri"}"#,
            r#"{"type":"create_schedule","prompt":"hello","cron":"59 23 31 12 7","webhook":"ci"}"#,
            r#"{"type":"create_schedule","prompt":"hello","at":"2030-12-24T18:00"}"#,
            r#"{"type":"create_schedule","prompt":"hello","at":"+20m"}"#,
            r#"{"type":"list_schedules"}"#,
            r#"{"type":"pause_schedule","schedule_id":"sched_0000000000000","paused":true}"#,
            r#"{"type":"list_users"}"#,
            r#"{"type":"list_tokens","sessions":true}"#,
            r#"{"type":"create_token","name":"x","role":"viewer","expires_in":60}"#,
            r#"{"type":"server_info"}"#,
        ]
        .map(str::to_owned),
    );
    commands
}

/// Answers of a model server, streamed and whole, with and without tool calls.
pub fn model_answers() -> Vec<Vec<u8>> {
    let whole = r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let calling = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"current_time","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let refused = r#"{"error":{"message":"overloaded","type":"server_error","code":"x"}}"#;
    let stream = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"current_time\",\"arguments\":\"{}\"}}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let answer = |status: &str, kind: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{body}")
            .into_bytes()
    };
    vec![
        answer("200 OK", "application/json", whole),
        answer("200 OK", "application/json", calling),
        answer("200 OK", "text/event-stream", stream),
        answer("400 Bad Request", "application/json", refused),
    ]
}

/// The configurations in examples/.
pub fn configurations() -> Vec<Vec<u8>> {
    files_in("examples/config")
}

/// Conversations of other assistants.
pub fn imports() -> Vec<Vec<u8>> {
    files_in("tests/data/imports")
}

fn files_in(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // The same order everywhere, or a seed would repeat nothing.
    paths.sort();
    let samples: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!samples.is_empty());
    samples
}
