//! Files that messages carry: over HTTP, WebSocket, JSON lines, webhooks and a relay;
//! in backups and exports; and what they cost.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::http::{FileAnswer, exchange, post};
use support::model::Model;
use support::process::private_kib;
use support::program::{Program, printed, run};
use support::receiver::Receiver;
use support::socket::connect;

const PART: usize = 256 * 1024;
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn put(address: SocketAddr, token: &str, more: &[(&str, &str)], body: &[u8]) -> FileAnswer {
    let token = bearer(token);
    let mut headers = vec![("authorization", token.as_str())];
    headers.extend(more);
    exchange(address, "POST", "/attachments", &headers, body)
}

pub fn uploaded(address: SocketAddr, token: &str, name: &str, body: &[u8]) -> Value {
    let disposition = format!("attachment; filename=\"{name}\"");
    let answer = put(
        address,
        token,
        &[("content-disposition", &disposition)],
        body,
    );
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()["data"].clone()
}

fn get(address: SocketAddr, token: &str, id: &Value, more: &[(&str, &str)]) -> FileAnswer {
    let token = bearer(token);
    let mut headers = vec![("authorization", token.as_str())];
    headers.extend(more);
    let path = format!("/attachments/{}", id.as_str().unwrap());
    exchange(address, "GET", &path, &headers, b"")
}

/// A file of these many bytes that are not text.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u32)
        .map(|place| (place * 7 / 3) as u8)
        .collect()
}

/// Puts a file in parts.
#[cfg(feature = "relay")]
fn put_parts(client: &mut Client, name: &str, file: &[u8]) -> Value {
    let put = json!({ "type": "put_attachment", "name": name, "bytes": file.len() });
    let id = client.ask(put)["attachment_id"].clone();
    let mut last = json!(null);
    for (number, part) in file.chunks(PART).enumerate() {
        last = client.ask(json!({
            "type": "put_attachment_part", "attachment_id": id, "offset": number * PART,
            "data": STANDARD.encode(part),
        }));
    }
    assert_eq!(last["complete"], true, "{last}");
    assert_eq!(last["attachment_id"], id);
    last
}

/// Reads a file in parts.
fn get_parts(client: &mut Client, id: &Value) -> Vec<u8> {
    let mut file = Vec::new();
    loop {
        let part = client.ask(json!({
            "type": "get_attachment", "attachment_id": id, "offset": file.len(),
        }));
        file.extend(STANDARD.decode(part["data"].as_str().unwrap()).unwrap());
        if part["bytes"] == file.len() {
            return file;
        }
    }
}

/// Sends a message with files, and returns its conversation.
fn send(client: &mut Client, ids: &[&Value]) -> Value {
    let chat = json!({ "type": "chat", "message": "look at this", "attachments": ids });
    client.ask(chat)["conversation_id"].clone()
}

fn first_message(client: &mut Client, conversation: &Value) -> Value {
    let get = json!({ "type": "get_messages", "conversation_id": conversation });
    client.ask(get)["messages"][0].clone()
}

#[test]
fn a_file_is_put_sent_and_served_over_http() {
    let model = Model::saying("A letter, it seems.");
    let home = Home::start(model.config());
    let (address, token) = (home.address(), home.tokens.user.as_str());
    let file = content(700_001);
    let answer = put(
        address,
        token,
        &[
            ("content-type", "text/html"),
            (
                "content-disposition",
                "attachment; filename=\"x\"; filename*=UTF-8''..%2Fgr%C3%BC%C3%9Fe%22%0A.bin",
            ),
        ],
        &file,
    );
    assert_eq!(answer.status, 201);
    let data = answer.json()["data"].clone();
    let id = &data["attachment_id"];
    assert_eq!(data["name"], "grüße\" .bin");
    assert_eq!(data["type"], "application/octet-stream");
    assert_eq!(data["bytes"], file.len());

    // Before it is sent it is nobody else's, not even an admin's.
    for other in [&home.tokens.admin, &home.tokens.viewer] {
        assert_eq!(get(address, other, id, &[]).status, 404);
        let mut other = home.websocket(other);
        let read = json!({ "type": "get_attachment", "attachment_id": id });
        assert_eq!(other.refused(read), "not_found");
    }
    let mut admin = home.admin();
    let steal = json!({ "type": "chat", "message": "mine", "attachments": [id] });
    assert_eq!(admin.refused(steal), "not_found");

    let mut user = home.websocket(token);
    let twice = json!({ "type": "chat", "message": "twice", "attachments": [id, id] });
    assert_eq!(user.refused(twice), "not_found");
    let conversation = send(&mut user, &[id]);
    let listed = first_message(&mut user, &conversation);
    assert_eq!(listed["attachments"], json!([data]));
    let again = json!({ "type": "chat", "message": "again", "attachments": [id] });
    user.send(&again);
    let says = user.response()["error"].as_str().unwrap().to_owned();
    assert!(says.contains("was sent already"), "{says}");
    // Who does not see the conversation learns nothing of it.
    admin.send(&again);
    let says = admin.response()["error"].as_str().unwrap().to_owned();
    assert!(says.starts_with("there is no attachment"), "{says}");

    let served = get(address, token, id, &[]);
    assert_eq!((served.status, served.body == file), (200, true));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "700001"),
        ("content-security-policy", "sandbox"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        (
            "content-disposition",
            "attachment; filename=\"gr__e_ .bin\"; filename*=UTF-8''gr%C3%BC%C3%9Fe%22%20.bin",
        ),
    ] {
        assert_eq!(served.header(name), Some(value), "{name}");
    }
    let part = get(address, token, id, &[("range", "bytes=262100-262200")]);
    assert_eq!(part.status, 206);
    assert_eq!(part.body, file[262_100..=262_200]);
    let place = Some("bytes 262100-262200/700001");
    assert_eq!(part.header("content-range"), place);
    let after = get(address, token, id, &[("range", "bytes=700001-")]);
    assert_eq!(after.status, 416);
    let path = format!("/attachments/{}", id.as_str().unwrap());
    let authorization = bearer(token);
    let headers = [("authorization", authorization.as_str())];
    let head = exchange(address, "HEAD", &path, &headers, b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some("700001"));

    // The model learns what it is called, and not as the household's words.
    let request = model.requests().remove(0);
    let messages = request["messages"].as_array().unwrap();
    let said = messages.last().unwrap()["content"].as_str().unwrap();
    let fence = said.split_once("\n<outside ").expect(said).1;
    assert!(
        fence.contains("1. \"grüße\\\" .bin\", application/octet-stream, 700001 bytes"),
        "{said}"
    );
    let system = messages[0]["content"].as_str().unwrap();
    assert!(system.contains("</outside CODE>"), "{system}");

    let delete = json!({ "type": "delete_conversation", "conversation_id": conversation });
    user.ask(delete);
    assert_eq!(get(address, token, id, &[]).status, 404);
    assert_eq!(
        admin.ask(json!({ "type": "server_info" }))["attachment_bytes"],
        0
    );
}

#[test]
fn nothing_is_served_as_a_page() {
    let home = Home::offline();
    let (address, token) = (home.address(), home.tokens.user.as_str());
    let html = b"<!DOCTYPE html><script>alert(document.domain)</script>";
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";
    for (name, body, media_type, kind) in [
        (
            "a.html",
            &html[..],
            "text/plain; charset=utf-8",
            "attachment;",
        ),
        ("a.svg", svg, "text/plain; charset=utf-8", "attachment;"),
        ("a.pdf", b"%PDF-1.7", "application/pdf", "attachment;"),
        ("a.html", PNG, "image/png", "inline;"),
        ("empty", b"", "text/plain; charset=utf-8", "attachment;"),
    ] {
        for declared in ["text/html", "image/svg+xml", "application/xhtml+xml"] {
            let disposition = format!("inline; filename={name}");
            let more = [
                ("content-type", declared),
                ("content-disposition", disposition.as_str()),
            ];
            let answer = put(address, token, &more, body);
            let served = get(address, token, &answer.json()["data"]["attachment_id"], &[]);
            assert_eq!(served.body, body);
            assert_eq!(served.header("content-type"), Some(media_type), "{name}");
            assert_eq!(served.header("content-security-policy"), Some("sandbox"));
            let disposition = served.header("content-disposition").unwrap();
            assert!(disposition.starts_with(kind), "{disposition}");
        }
    }
}

#[test]
fn what_is_too_much_or_not_allowed_is_refused_and_leaves_nothing() {
    let home = Home::start(json!({
        "limits": {
            "attachment_bytes": 400_000, "attachments_total_bytes": 1_000_000,
            "attachment_seconds": 2,
        },
    }));
    let (address, token) = (home.address(), home.tokens.user.as_str());
    let large = content(400_001);
    let answer = put(address, token, &[], &large);
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (413, &json!("invalid_request"))
    );
    let mut user = home.websocket(token);
    let announce = |bytes: usize| json!({ "type": "put_attachment", "name": "a", "bytes": bytes });
    assert_eq!(user.refused(announce(400_001)), "invalid_request");
    let mut guest = home.websocket(&home.tokens.viewer);
    assert_eq!(guest.refused(announce(1)), "unauthorized");
    assert_eq!(put(address, &home.tokens.viewer, &[], b"x").status, 403);
    assert_eq!(put(address, "wrong", &[], b"x").status, 401);
    assert_eq!(
        exchange(address, "POST", "/attachments", &[], b"x").status,
        401
    );
    assert_eq!(get(address, token, &json!("att_0"), &[]).status, 404);
    assert_eq!(
        exchange(address, "GET", "/attachments/att_0", &[], b"").status,
        401
    );

    // Without a length, too: one that breaks off, and one that is late.
    let mut admin = home.admin();
    let mut bytes = || admin.ask(json!({ "type": "server_info" }))["attachment_bytes"].clone();
    let head = format!(
        "POST /attachments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let chunk = |file: &[u8]| [format!("{:x}\r\n", file.len()).as_bytes(), file, b"\r\n"].concat();
    for (sent, status) in [
        (chunk(&large), Some(413)),
        (chunk(&large[..300_000]), None),
        (chunk(&large[..300_000]), Some(408)),
        (
            [chunk(&large[..300_000]), b"0\r\n\r\n".to_vec()].concat(),
            Some(201),
        ),
    ] {
        let request = [head.as_bytes(), &sent].concat();
        match status {
            Some(status) => {
                // On a busy machine an answer may be lost with what the server did not read.
                let answer = eventually("an answer", || {
                    let answer = support::socket::exchange(address, &request);
                    (!answer.is_empty()).then_some(answer)
                });
                let answer = String::from_utf8_lossy(&answer);
                assert!(
                    answer.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{answer}"
                );
            }
            None => {
                let mut socket = connect(address);
                socket.write_all(&request).unwrap();
                eventually("the server has some of it", || (bytes() != 0).then_some(()));
                drop(socket);
            }
        }
        let left = if status == Some(201) { 300_000 } else { 0 };
        eventually("what was not finished is gone", || {
            (bytes() == left).then_some(())
        });
    }

    // The space for all.
    uploaded(address, token, "b", &large[..400_000]);
    let full = put(address, token, &[], &large[..300_001]);
    let error = full.json();
    assert_eq!((full.status, &error["code"]), (507, &json!("server_error")));
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("limits.attachments_total_bytes"), "{text}");
    uploaded(address, token, "c", &large[..300_000]);
}

#[test]
fn announced_files_take_no_space_from_others() {
    let home = Home::start(json!({
        "limits": { "attachment_bytes": 400_000, "attachments_total_bytes": 1_000_000 },
    }));
    let (address, mut user) = (home.address(), home.websocket(&home.tokens.user));
    let announce = json!({ "type": "put_attachment", "name": "a", "bytes": 400_000 });
    let ids: Vec<Value> = (0..8)
        .map(|_| user.ask(announce.clone())["attachment_id"].clone())
        .collect();
    assert_eq!(user.refused(announce), "rate_limited");
    let file = content(400_000);
    let others = [(); 2].map(|()| uploaded(address, &home.tokens.admin, "b", &file));

    // The space is exact in what arrives.
    let part = |id: &Value, offset: usize, bytes: usize| {
        json!({
            "type": "put_attachment_part", "attachment_id": id, "offset": offset,
            "data": STANDARD.encode(&file[..bytes]),
        })
    };
    user.ask(part(&ids[0], 0, 200_000));
    assert_eq!(user.refused(part(&ids[0], 200_000, 1)), "server_error");
    assert_eq!(user.refused(part(&ids[1], 0, 1)), "server_error");
    let mut admin = home.admin();
    let conversation = send(&mut admin, &[&others[0]["attachment_id"]]);
    admin.ask(json!({ "type": "delete_conversation", "conversation_id": conversation }));
    let done = user.ask(part(&ids[0], 200_000, 200_000));
    assert_eq!(done["complete"], true, "{done}");
    user.ask(json!({ "type": "put_attachment", "name": "a", "bytes": 1 }));
}

#[test]
fn a_file_goes_in_parts_and_on_after_the_connection_was_lost() {
    let home = Home::offline();
    let file = content(2 * PART + 1000);
    for lines in [false, true] {
        let connect = || {
            let mut client = match lines {
                true => Client::lines(home.address()),
                false => Client::websocket(home.address()),
            };
            client.authenticate(&home.tokens.user);
            client
        };
        let mut client = connect();
        let id = client.ask(json!({
            "type": "put_attachment", "name": "a\u{202e}b", "media_type": "image/png",
            "bytes": file.len(),
        }))["attachment_id"]
            .clone();
        let part = |start: usize, end: usize| {
            json!({
                "type": "put_attachment_part", "attachment_id": id, "offset": start,
                "data": STANDARD.encode(&file[start..end]),
            })
        };
        assert_eq!(
            client.refused(part(1, 2)),
            "invalid_request",
            "nothing is there"
        );
        let first = client.ask(part(0, PART));
        assert_eq!(first["received"], PART);
        assert_eq!(first["complete"], false);
        let too_large = json!({
            "type": "put_attachment_part", "attachment_id": id, "offset": PART,
            "data": STANDARD.encode(&file[..PART + 1]),
        });
        assert_eq!(client.refused(too_large), "invalid_request");
        let chat = json!({ "type": "chat", "message": "now?", "attachments": [id] });
        assert_eq!(client.refused(chat), "invalid_request", "not yet");
        drop(client);

        let mut client = connect();
        let known = client.ask(part(0, 0))["received"].as_u64().unwrap() as usize;
        assert_eq!(known, PART);
        client.ask(part(PART - 500, PART + 500));
        client.ask(part(PART + 500, 2 * PART + 500));
        assert_eq!(client.ask(part(0, 10))["received"], 2 * PART + 500, "again");
        let mut other = part(0, 10);
        other["data"] = json!(STANDARD.encode([1; 10]));
        assert_eq!(client.refused(other), "invalid_request", "it differs");
        let last = client.ask(part(2 * PART, file.len()));
        assert_eq!(
            last,
            json!({
                "attachment_id": id, "name": "ab", "type": "application/octet-stream",
                "bytes": file.len(), "received": file.len(), "complete": true,
            })
        );
        assert_eq!(client.ask(part(2 * PART, file.len())), last, "again");
        send(&mut client, &[&id]);
        assert!(get_parts(&mut client, &id) == file);
        let end = client.ask(json!({
            "type": "get_attachment", "attachment_id": id, "offset": file.len() - 2, "length": 10,
        }));
        assert_eq!(end["data"], STANDARD.encode(&file[file.len() - 2..]));
    }
}

#[cfg(feature = "relay")]
#[test]
fn a_file_goes_through_a_relay() {
    use support::relay_peers::{TOKEN, relay, with_token};
    let relay = relay(|_| {});
    let url = format!("ws://{}/ws", relay.local_addr());
    let home = Home::start(json!({
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "far", "type": "websocket", "url": url, "auth_token": TOKEN },
        ],
    }));
    let mut admin = home.admin();
    let info = eventually("the link", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        (info["relays"][0]["state"] == "linked").then_some(info)
    });
    let query = format!("?machine_id={}", info["machine_id"].as_str().unwrap());
    let address = relay.local_addr();
    let (websocket, _) =
        tungstenite::client(with_token(address, &query), connect(address)).unwrap();
    let mut client = Client::WebSocket(Box::new(websocket));
    client.authenticate(&home.tokens.user);
    let file = content(3 * PART + 5);
    let put = put_parts(&mut client, "far.bin", &file);
    let conversation = send(&mut client, &[&put["attachment_id"]]);
    let listed = first_message(&mut client, &conversation);
    assert_eq!(listed["attachments"][0]["name"], "far.bin");
    assert!(get_parts(&mut client, &put["attachment_id"]) == file);
    drop(client);
    relay.stop();
}

#[test]
fn a_webhooks_body_may_hold_files() {
    let (model, receiver) = (Model::saying("Seen."), Receiver::start());
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": { "incoming_path": "/door", "outgoing_url": receiver.url() },
        } },
    ]);
    let home = Home::start(config);
    let file = |name: &str, data: &[u8]| json!({ "name": name, "data": STANDARD.encode(data) });
    let hook =
        |body: &Value, key: &str| post(home.address(), "/door", &[("idempotency-key", key)], body);
    for (body, says) in [
        (
            json!({ "message": "m", "attachments": "x" }),
            "an array of objects",
        ),
        (
            json!({ "message": "m", "attachments": [{ "data": "" }] }),
            "\"name\" is required",
        ),
        (
            json!({ "message": "m", "attachments": [{ "name": "a" }] }),
            "\"data\" is required",
        ),
        (
            json!({ "message": "m", "attachments": [{ "name": "a", "data": "%" }] }),
            "must be base64",
        ),
        (
            json!({ "message": "m", "attachments": vec![file("a", b""); 17] }),
            "at most 16",
        ),
        (
            json!({ "attachments": [file("a", b"x")] }),
            "\"message\" is required",
        ),
    ] {
        let answer = hook(&body, "k");
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(
            answer.body.contains(&says.replace('"', "\\\"")),
            "{answer:?}"
        );
    }
    let body = json!({
        "message": "Somebody is here.", "conversation_id": "door",
        "attachments": [file("cam.png", PNG), { "name": "log", "type": "x/y", "data": "aGk" }],
    });
    for _ in 0..2 {
        assert_eq!(hook(&body, "once").status, 202);
    }
    receiver.wait_for(1);
    let mut admin = home.admin();
    let listed = admin.ask(json!({ "type": "list_conversations" }));
    let message = first_message(&mut admin, &listed["conversations"][0]["id"]);
    let files = message["attachments"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{message}");
    assert_eq!(
        (&files[0]["type"], &files[0]["name"]),
        (&json!("image/png"), &json!("cam.png"))
    );
    assert_eq!(files[1]["type"], "text/plain");
    let served = get(
        home.address(),
        &home.tokens.user,
        &files[1]["attachment_id"],
        &[],
    );
    assert_eq!(served.body, b"hi");
    let said = model.requests()[0]["messages"].to_string();
    assert!(said.contains("cam.png"), "{said}");
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    assert!(said.contains(&url), "{said}");
    assert!(said.contains("File 2:\\nhi"), "{said}");
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        printed(&output)
    );
    printed(&output)
}

/// The files of the newest conversation, with their content.
fn files_in(folder: &Path, token: &str) -> Vec<(String, Vec<u8>)> {
    let program = Program::serve(folder);
    let mut client = Client::websocket(program.address);
    client.authenticate(token);
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let message = first_message(&mut client, &listed["conversations"][0]["id"]);
    let files = message["attachments"].as_array().unwrap().iter();
    let files = files
        .map(|file| {
            let name = file["name"].as_str().unwrap().to_owned();
            let served = get(program.address, token, &file["attachment_id"], &[]);
            (name, served.body)
        })
        .collect();
    drop(client);
    assert_eq!(program.signal("TERM"), Some(0));
    files
}

#[test]
fn backups_and_exports_hold_files() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let files = [
        ("a.bin".to_owned(), content(3 * PART + 17)),
        ("empty".to_owned(), Vec::new()),
        ("b.txt".to_owned(), "Grüße\n".repeat(1000).into_bytes()),
    ];
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    let ids: Vec<Value> = files
        .iter()
        .map(|(name, file)| {
            uploaded(program.address, &tokens.admin, name, file)["attachment_id"].clone()
        })
        .collect();
    send(&mut client, &ids.iter().collect::<Vec<_>>());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    good(folder.path(), &["backup", &path("copy.db")]);
    good(
        folder.path(),
        &["export", "--all", "--output", &path("all.jsonl")],
    );
    let markdown = good(folder.path(), &["export", "--all", "--format", "markdown"]);
    assert!(
        markdown.contains("a.bin (application/octet-stream, 786449 bytes)"),
        "{markdown}"
    );
    drop(client);
    assert_eq!(program.signal("TERM"), Some(0));
    let longest = fs::read_to_string(path("all.jsonl"))
        .unwrap()
        .lines()
        .map(str::len)
        .max();
    assert!(
        longest < Some(400_000),
        "no line holds a whole file: {longest:?}"
    );

    let restored = TemporaryDirectory::new();
    good(restored.path(), &["restore", &path("copy.db")]);
    assert!(files_in(restored.path(), &tokens.admin) == files);

    let imported = TemporaryDirectory::new();
    write_config(imported.path(), json!({}));
    let tokens = make_people(imported.path());
    for _ in 0..2 {
        good(imported.path(), &["import", &path("all.jsonl")]);
    }
    assert!(files_in(imported.path(), &tokens.admin) == files);

    // One that was cut is left out, and the rest is there.
    let text = fs::read_to_string(path("all.jsonl")).unwrap();
    let cut: Vec<&str> = text.lines().collect();
    let part = cut
        .iter()
        .position(|line| line.contains("attachment_part"))
        .unwrap();
    let cut: Vec<&str> = cut[..part]
        .iter()
        .chain(&cut[part + 1..])
        .copied()
        .collect();
    fs::write(path("cut.jsonl"), cut.join("\n")).unwrap();
    let other = TemporaryDirectory::new();
    write_config(other.path(), json!({}));
    let tokens = make_people(other.path());
    let told = good(other.path(), &["import", &path("cut.jsonl")]);
    assert!(
        told.contains("Skipped 1: attachments that are not whole"),
        "{told}"
    );
    assert!(files_in(other.path(), &tokens.admin) == files[1..]);
}

#[test]
fn a_large_file_costs_little_memory_and_delays_nobody() {
    let folder = TemporaryDirectory::new();
    let limits = json!({ "limits": { "commands_per_second": 100_000 } });
    write_config(folder.path(), limits);
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let (address, id) = (program.address, program.id());
    let file = content(20 * 1024 * 1024);
    let mut client = Client::websocket(address);
    client.authenticate(&tokens.user);
    // What a first file and a first message cost once.
    client.chat("hello");
    let first = uploaded(address, &tokens.user, "first", &file[..4 * PART]);
    get(address, &tokens.user, &first["attachment_id"], &[]);
    let Some(before) = private_kib(id) else {
        println!("skipped: no smaps");
        return;
    };
    let began = Instant::now();
    let mut chats: Vec<Duration> = Vec::new();
    let mut most = before;
    let (put, took) = std::thread::scope(|scope| {
        let upload = scope.spawn(|| uploaded(address, &tokens.user, "large", &file));
        while !upload.is_finished() {
            let asked = Instant::now();
            client.chat("and now?");
            chats.push(asked.elapsed());
            most = most.max(private_kib(id).unwrap());
        }
        (upload.join().unwrap(), began.elapsed())
    });
    chats.sort();
    println!(
        "20 MiB in {took:?}; {} chats meanwhile, median {:?}, slowest {:?}; {} KiB more memory",
        chats.len(),
        chats[chats.len() / 2],
        chats[chats.len() - 1],
        most - before,
    );
    let served = get(address, &tokens.user, &put["attachment_id"], &[]);
    assert!(served.body == file);
    most = most.max(private_kib(id).unwrap());
    // The threads and connections that serve the chats beside it count, too.
    assert!(most - before < 5 * 1024, "{before} KiB, then {most}");
}

#[test]
fn the_terminal_sends_files_with_the_first_message() {
    let folder = TemporaryDirectory::new();
    let model = Model::saying("a long text");
    write_config(folder.path(), model.config());
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let file = folder.path().join("long.txt");
    // More than one part.
    let text = "0123456789".repeat(60_000);
    std::fs::write(&file, &text).unwrap();
    let path = file.to_str().unwrap();
    let two = ["chat", "--attach", path, "--attach", path, "what is it"];
    let answer = run(folder.path(), &two);
    assert!(answer.status.success(), "{}", printed(&answer));
    let mut admin = Client::websocket(program.address);
    admin.ask(json!({ "type": "auth", "token": tokens.admin }));
    let found = admin.ask(json!({ "type": "search_messages", "query": "what" }));
    let files = found["messages"][0]["attachments"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(
            (&file["name"], &file["bytes"]),
            (&json!("long.txt"), &json!(text.len()))
        );
    }
    // Without words, the name says what it is about.
    let alone = run(folder.path(), &["chat", "--attach", path]);
    assert!(
        printed(&alone).contains("a long text"),
        "{}",
        printed(&alone)
    );
    let found = admin.ask(json!({ "type": "search_messages", "query": "long.txt" }));
    let message = &found["messages"][0];
    assert_eq!(
        message["attachments"].as_array().unwrap().len(),
        1,
        "{message}"
    );
    let refused = run(
        folder.path(),
        &["chat", "--attach", "/nowhere/x", "what is it"],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        printed(&refused).contains("/nowhere/x"),
        "{}",
        printed(&refused)
    );
}
