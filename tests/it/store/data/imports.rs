//! Exports and imports.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{exported, good, household, refused, sample, text};
use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::program::{Program, hearth, output_of, printed, run};
use support::socket;

#[test]
fn exports_are_imported_as_they_were() {
    let folder = household();
    let export = exported(folder.path());
    let file = folder.path().join("export.jsonl");
    let told = good(folder.path(), &["export", "--all", "--output", text(&file)]);
    assert!(
        told.starts_with("Exported 4 messages in 2 conversations"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), export);
    let again = refused(folder.path(), &["export", "--all", "--output", text(&file)]);
    assert!(again.contains("already exists"), "{again}");

    let told = good(folder.path(), &["import", text(&file)]);
    assert_eq!(
        told,
        "Imported 0 messages in 0 conversations; 2 were already there.\n"
    );
    let other = TemporaryDirectory::new();
    write_config(other.path(), json!({}));
    let tokens = make_people(other.path());
    let program = Program::serve(other.path());
    let told = good(other.path(), &["import", text(&file)]);
    assert_eq!(
        told,
        "Imported 4 messages in 2 conversations; 0 were already there.\n"
    );
    assert_eq!(exported(other.path()), export);
    let told = good(other.path(), &["import", text(&file)]);
    assert!(told.contains("2 were already there"), "{told}");
    // The running server has it.
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    let found = client.ask(json!({"type": "search_messages", "query": "boiler"}));
    let found = found["messages"].as_array().unwrap();
    assert!(
        found
            .iter()
            .any(|message| message["content"] == "the boiler hums")
    );

    let one: Value = serde_json::from_str(export.lines().nth(1).unwrap()).unwrap();
    let id = one["id"].as_str().unwrap();
    // People who read it read what people are called.
    client.ask(json!({"type": "set_display_name", "display_name": "Ada"}));
    let markdown = good(
        other.path(),
        &["export", "--conversation", id, "--format", "markdown"],
    );
    assert!(
        markdown.starts_with("# good morning\n\nconv_"),
        "{markdown}"
    );
    assert!(markdown.contains("\n## Ada, 20") && markdown.contains("\n## Assistant, 20"));
    // Programs read it once for all lines.
    let lines = good(other.path(), &["export", "--conversation", id]);
    let head: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let called: Vec<&Value> = head["people"].as_object().unwrap().values().collect();
    assert_eq!(called, ["Ada"], "{head}");
    let usage = run(folder.path(), &["export"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn conversations_of_chatgpt_and_claude_are_taken_in_once() {
    let folder = household();
    let told = good(folder.path(), &["import", &sample("chatgpt.json")]);
    assert_eq!(
        told,
        "Imported 4 messages in 2 conversations; 0 were already there.\n\
         Skipped 2: conversations without messages\n\
         Skipped 2: items that are not conversations of ChatGPT or Claude\n"
    );
    let told = good(folder.path(), &["import", &sample("claude.json"), "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["imported"], &told["messages"]),
        (&json!(2), &json!(3))
    );
    let again = good(folder.path(), &["import", &sample("chatgpt.json")]);
    assert!(
        again.starts_with("Imported 0 messages in 0 conversations; 2 were"),
        "{again}"
    );

    let markdown = good(folder.path(), &["export", "--all", "--format", "markdown"]);
    for piece in [
        "# Sourdough\n\nconv_",
        ", import, 2023-11-14T22:13:20.250Z\n\n## admin, 2023-11-14T22:13:21.500Z\n\n[image]\n\nHow long",
        "## Assistant, 2023-11-14T22:13:23.000Z\n\nLet me look.\n\nFour hours at 26 degrees.\n",
        "# ChatGPT\n",
        "## Assistant, 2020-09-13T12:26:40.000Z\n\nAlder.\n",
        "# Garden plan\n",
        "[attachment: beds.txt]\n\nbed one: north wall\n\n[file: garden.jpg]\n",
        "## Assistant, 2024-05-01T06:00:09.000Z\n\nFerns and hostas.\n",
    ] {
        assert!(markdown.contains(piece), "{piece} is not in {markdown}");
    }
    for piece in ["abandoned", "a web page", "search('leaven')", "hidden"] {
        assert!(!markdown.contains(piece), "{piece} is in {markdown}");
    }
    // What is old is listed after what is new, and found by its words.
    let at = |title: &str| markdown.find(title).unwrap();
    assert!(at("# good morning") < at("# Claude") && at("# Garden plan") < at("# Sourdough"));
    let found = good(folder.path(), &["search", "degrees"]);
    assert!(found.contains("14 Nov 2023 22:13"), "{found}");

    for (name, content, says) in [
        ("export.zip", &b"PK\x03\x04...."[..], "unzip it"),
        ("notes.txt", b"notes", "is not a known export"),
        (
            "cut.json",
            b"[{\"title\": \"x\", ",
            "the file is incomplete or invalid",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let told = refused(folder.path(), &["import", text(&path)]);
        assert!(told.contains(says) && told.contains(name), "{told}");
    }
}

#[test]
fn what_is_imported_for_somebody_is_theirs_alone() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let import = |more: &[&str]| {
        let file = sample("claude.json");
        let arguments = [&["import", file.as_str()], more].concat();
        run(folder.path(), &arguments)
    };
    let nobody = import(&["--owner", "nobody"]);
    assert!(
        !nobody.status.success(),
        "{}",
        support::program::printed(&nobody)
    );
    assert!(import(&["--owner", "USER"]).status.success());
    let listed = |token: &str| {
        let mut client = Client::websocket(program.address);
        client.authenticate(token);
        let list = client.ask(json!({"type": "list_conversations"}));
        let list = list["conversations"].as_array().unwrap().iter();
        list.map(|one| (one["owner"].clone(), one["audience"].clone()))
            .collect::<Vec<(Value, Value)>>()
    };
    let own = (json!("user"), json!("private"));
    assert_eq!(listed(&tokens.user), [own.clone(), own]);
    assert!(listed(&tokens.admin).is_empty());
}

#[test]
fn what_is_no_file_is_imported_as_it_comes_and_what_fails_is_shown_all_the_same() {
    let folder = household();
    let export = exported(folder.path());
    let place = TemporaryDirectory::new();
    let fifo = place.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
    let import = |folder: &Path, text: &str| {
        let (fifo_too, text) = (fifo.clone(), text.to_owned());
        let writer = std::thread::spawn(move || fs::write(fifo_too, text));
        let told = run(folder, &["import", fifo.to_str().unwrap()]);
        // Takes what the command left, also if it never opened the file: the writer ends.
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let rest = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty()).unwrap();
        while !writer.is_finished() {
            let _ = rustix::io::read(&rest, &mut [0; 4096]);
            std::thread::yield_now();
        }
        let _ = writer.join().unwrap();
        told
    };
    let other = TemporaryDirectory::new();
    write_config(other.path(), json!({}));
    let tokens = make_people(other.path());
    let program = Program::serve(other.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    client.ask(json!({"type": "subscribe", "events": ["*"]}));
    // The first conversation is whole, and the second is cut off.
    let second = export.rfind("{\"type\":\"conversation\"").unwrap();
    let cut = &export[..export[second..].find('\n').unwrap() + second + 20];
    let failed = import(other.path(), cut);
    let told = printed(&failed);
    assert!(!failed.status.success());
    assert!(
        told.contains("imported until there: 1 conversation, 2 messages"),
        "{told}"
    );
    assert_eq!(client.receive()["event"], "conversation.changed");
    let told = import(other.path(), &export);
    assert!(
        printed(&told).contains("1 was already there"),
        "{}",
        printed(&told)
    );
    assert_eq!(exported(other.path()), export);
    // Without a server too.
    drop(program);
    let again = import(other.path(), &export);
    assert!(
        printed(&again).contains("2 were already there"),
        "{}",
        printed(&again)
    );
}

/// An export of one conversation with so many messages of 20,000 letters.
fn long_export(messages: usize) -> String {
    let time = "2026-01-02T03:04:05.000Z";
    let message = json!({ "type": "message", "role": "user", "timestamp": time,
        "content": "x".repeat(20_000) });
    let mut lines = vec![
        json!({ "type": "hearth_export", "version": 1 }).to_string(),
        json!({ "type": "conversation", "id": "conv_0000000000001", "title": "long",
            "created_at": time })
        .to_string(),
    ];
    lines.resize(lines.len() + messages, message.to_string());
    lines.join("\n")
}

#[test]
fn a_file_over_the_limit_is_refused_on_every_way() {
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({ "limits": { "import_bytes": 1 << 20 } }),
    );
    let tokens = make_people(folder.path());
    let file = long_export(400);
    let path = folder.path().join("long.jsonl");
    fs::write(&path, &file).unwrap();
    let says = "the body may have at most 1048576 bytes (limits.import_bytes)";
    for has_server in [false, true] {
        let program = has_server.then(|| Program::serve(folder.path()));
        for _ in 0..4 {
            let told = refused(folder.path(), &["import", text(&path)]);
            assert!(told.contains(says), "{told}");
            let mut child = hearth(folder.path())
                .args(["import", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // It ends before it has read all.
            let _ = child.stdin.take().unwrap().write_all(file.as_bytes());
            let ended = output_of(child);
            assert_eq!(ended.status.code(), Some(1), "{}", printed(&ended));
            assert!(printed(&ended).contains(says), "{}", printed(&ended));
        }
        let Some(program) = program else { continue };
        let (length, chunk) = (
            file.len(),
            format!("{:x}\r\n{file}\r\n0\r\n\r\n", file.len()),
        );
        for (header, body) in [
            (format!("Content-Length: {length}"), &file),
            ("Transfer-Encoding: chunked".to_owned(), &chunk),
        ] {
            let request = format!(
                "POST /import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{header}\r\n\r\n{body}",
                tokens.user
            );
            let answer = socket::exchange(program.address, request.as_bytes());
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with("HTTP/1.1 413 "), "{header}: {answer}");
            assert!(answer.contains(says), "{header}: {answer}");
        }
    }
    assert!(!exported(folder.path()).contains("conv_"));
}

#[test]
fn ids_are_read_under_the_name_that_they_have_everywhere_and_the_older_one() {
    let folder = household();
    let export = exported(folder.path());
    for line in export.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = match line["type"].as_str().unwrap() {
            "conversation" => "conversation_id",
            "message" => "message_id",
            _ => continue,
        };
        assert!(line["id"].is_string() && line["id"] == line[name], "{line}");
    }
    for name in ["conversation_id", "message_id", "id"] {
        let other = TemporaryDirectory::new();
        write_config(other.path(), json!({}));
        make_people(other.path());
        let file = other.path().join("all.jsonl");
        let text = export.replace(&format!("\"{name}\":"), "\"unknown\":");
        fs::write(&file, text).unwrap();
        good(other.path(), &["import", file.to_str().unwrap()]);
        assert_eq!(exported(other.path()), export, "{name}");
    }
}

/// Pages of a list begin where the last one ended, which each entry has to itself.
#[test]
fn emptied_conversations_are_listed_on_some_page() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let mut file = json!({"type": "hearth_export", "version": 1}).to_string();
    for minute in 10..15 {
        let empty = json!({ "type": "conversation", "id": format!("conv_06zvk5wc4af{minute}"),
            "title": "", "owner": "admin", "created_at": format!("2026-11-27T12:{minute}:00Z") });
        file = format!("{file}\n{empty}");
    }
    let path = folder.path().join("all.jsonl");
    fs::write(&path, file).unwrap();
    let told = good(folder.path(), &["import", text(&path)]);
    assert!(
        told.starts_with("Imported 0 messages in 5 conversations"),
        "{told}"
    );

    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    let (mut listed, mut cursor) = (0, Value::Null);
    loop {
        let page = client.ask(json!({"type": "list_conversations", "limit": 2, "cursor": cursor}));
        listed += page["conversations"].as_array().unwrap().len();
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, 5);
}
