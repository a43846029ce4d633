//! What the model is shown of files: those of messages, in this turn and the next ones.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::service::attachments::{self, PNG};
use support::client::Client;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::pdf::letter;
use support::process::status;
use support::program::Program;

const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\n";

fn uploaded(address: SocketAddr, token: &str, name: &str, body: &[u8]) -> Value {
    attachments::uploaded(address, token, name, body)["attachment_id"].clone()
}

fn send(client: &mut Client, conversation: &Value, message: &str, files: &[Value]) -> Value {
    let mut chat = json!({ "type": "chat", "message": message, "attachments": files });
    if !conversation.is_null() {
        chat["conversation_id"] = conversation.clone();
    }
    client.ask(chat)["conversation_id"].clone()
}

/// The text of a message of a request.
fn text(message: &Value) -> &str {
    let content = &message["content"];
    content.as_str().or(content[0]["text"].as_str()).unwrap()
}

fn data_url(kind: &str, content: &[u8]) -> String {
    format!("data:{kind};base64,{}", STANDARD.encode(content))
}

#[test]
fn files_of_a_message_are_shown_and_stay_the_same() {
    let model = Model::saying("A list, it seems.");
    let mut home = Home::start(model.config());
    let token = home.tokens.user.clone();
    let files = [
        ("photo.txt", PNG),
        ("list.csv", b"what;how many\neggs;6\n"),
        ("latin.csv", b"caf\xe9;1\n"),
        ("utf16.txt", b"\xff\xfec\0a\0f\0\xe9\0"),
        ("letter.pdf", PDF),
        ("sound.bin", b"a\0b"),
    ];
    let ids = files.map(|(name, content)| uploaded(home.address(), &token, name, content));
    let mut client = home.websocket(&token);
    let conversation = send(&mut client, &Value::Null, "look at this", &ids);
    send(&mut client, &conversation, "and now?", &[]);
    home.restart();
    let mut client = home.websocket(&token);
    send(&mut client, &conversation, "and after a restart?", &[]);

    let requests = model.requests();
    let first = &requests[0]["messages"][1];
    let parts = first["content"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{parts:?}");
    assert_eq!(parts[1]["image_url"]["url"], data_url("image/png", PNG));
    let shown = text(first);
    for part in [
        "1. \"photo.txt\", image/png, 16 bytes",
        "File 2:\nwhat;how many\neggs;6\n",
        "File 3:\ncafé;1\n",
        "File 4:\ncafé\n",
        "File 5 is not shown to you: the model that you are takes no PDF files. Say so",
        "File 6 is not shown to you: files of its type cannot be read here. Say so",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // What strangers may have written is marked.
    let fences = shown.matches("<outside ").count();
    assert_eq!(fences, 4, "{shown}");
    for later in &requests[1..] {
        assert_eq!(later["messages"][1], *first);
    }
}

#[test]
fn long_text_is_read_on() {
    let line = |number: usize| format!("{number:05};eggs and flour\n");
    let long: String = (0..5_000).map(line).collect();
    let ids = std::sync::Arc::new(std::sync::Mutex::new(Value::Null));
    let path = std::sync::Arc::clone(&ids);
    let model = Model::start(move |request, number| {
        let messages = request["messages"].as_array().unwrap();
        let last = text(messages.last().unwrap());
        match number {
            0 => {
                let offset: usize = last
                    .split("read on with offset ")
                    .nth(1)
                    .and_then(|rest| rest.split(']').next()?.parse().ok())
                    .unwrap();
                let path = path.lock().unwrap().clone();
                let how = format!("[read_file with the path {} and", path.as_str().unwrap());
                assert!(last.contains(&how), "{last}");
                Act::call("read_file", json!({ "path": path, "offset": offset }))
            }
            2 => Act::call("read_file", json!({ "path": *path.lock().unwrap() })),
            _ => Act::say("Read."),
        }
    });
    let home = Home::start(model.config_with(json!({ "context_tokens": 100_000 })));
    let token = &home.tokens.user;
    let id = uploaded(home.address(), token, "long.csv", long.as_bytes());
    *ids.lock().unwrap() = id.clone();
    let mut client = home.websocket(token);
    send(&mut client, &Value::Null, "read it", &[id]);
    let requests = model.requests();
    let shown = text(&requests[0]["messages"][1]);
    let read_on = text(requests[1]["messages"].as_array().unwrap().last().unwrap());
    // No letter is lost between the two.
    let end = shown.split("[characters 0 to ").nth(1).unwrap();
    let end: usize = end.split(' ').next().unwrap().parse().unwrap();
    assert!(shown.contains(&format!("{}\n[characters", &long[..end])));
    assert!(read_on.contains(&format!("\n{}", &long[end..end + 2_000])));

    // Another conversation does not read it, not even the same person's.
    send(&mut client, &Value::Null, "once more", &[]);
    let requests = model.requests();
    let refused = text(requests[3]["messages"].as_array().unwrap().last().unwrap());
    assert!(refused.contains("there is no file att_"), "{refused}");
    assert!(!refused.contains("eggs"), "{refused}");
}

#[test]
fn a_model_that_takes_no_pdf_is_shown_its_text() {
    let model = Model::saying("In the shed.");
    let mut home = Home::start(model.config());
    let token = home.tokens.user.clone();
    let id = uploaded(
        home.address(),
        &token,
        "letter.pdf",
        &letter("The cat is in the shed"),
    );
    let mut client = home.websocket(&token);
    let conversation = send(&mut client, &Value::Null, "where is the cat?", &[id]);
    home.restart();
    let mut client = home.websocket(&token);
    send(&mut client, &conversation, "and now?", &[]);
    let requests = model.requests();
    let shown = text(&requests[0]["messages"][1]);
    if let Some(obstacle) = agent::tools::pdf_obstacle() {
        assert!(shown.contains("takes no PDF files"), "{shown}");
        return println!("skipped: {obstacle}");
    }
    let part = "File 1:\n[page 1]\nThe cat is in the shed\n</outside";
    assert!(shown.contains(part), "{shown}");
    assert_eq!(requests[1]["messages"][1], requests[0]["messages"][1]);
}

#[test]
fn a_deleted_conversation_takes_its_files_along() {
    let model = Model::saying("Nice.");
    let home = Home::start(model.config());
    let (address, token) = (home.address(), &home.tokens.user);
    let id = uploaded(address, token, "photo.png", PNG);
    let mut client = home.websocket(token);
    let conversation = send(&mut client, &Value::Null, "look", std::slice::from_ref(&id));
    let delete = json!({ "type": "delete_conversation", "conversation_id": conversation });
    client.ask(delete);
    let read = json!({ "type": "get_attachment", "attachment_id": id });
    assert_eq!(client.refused(read), "not_found");
}

/// The model of a home server that takes no images says so, and is asked so from then on.
#[test]
fn a_model_without_images_is_told_that_it_gets_none() {
    let model = Model::start(
        |request, _| match request.to_string().contains("image_url") {
            true => Act::error(
                500,
                "",
                "image input is not supported - hint: provide the mmproj",
            ),
            false => Act::say("I cannot see it."),
        },
    );
    let home = Home::start(model.config());
    let (address, token) = (home.address(), &home.tokens.user);
    let id = uploaded(address, token, "photo.png", PNG);
    let mut client = home.websocket(token);
    let conversation = send(&mut client, &Value::Null, "look", &[id]);
    send(&mut client, &conversation, "and now?", &[]);
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests[1..] {
        let shown = text(&request["messages"][1]);
        assert!(
            shown.contains("the model that you are takes no images"),
            "{shown}"
        );
    }
}

/// A request is in memory twice, as values and as text, and nothing of it afterwards.
#[test]
fn a_large_image_fits_a_small_computer() {
    let model = Model::saying("A fox.");
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), model.config());
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    client.chat("hello");
    let image = [PNG, &vec![7; 11 * 1024 * 1024]].concat();
    let id = uploaded(program.address, &tokens.user, "a.png", &image);
    let Some(before) = status(program.id(), "VmHWM") else {
        println!("skipped: no /proc");
        return;
    };
    send(&mut client, &Value::Null, "look", &[id]);
    let sent = model.requests().remove(1)["messages"].to_string();
    assert!(sent.len() > image.len(), "{} bytes", sent.len());
    let most = status(program.id(), "VmHWM").unwrap();
    println!("11 MiB of image: {} KiB more memory", most - before);
    assert!(most - before < 44 * 1024, "{before} KiB, then {most}");
}
