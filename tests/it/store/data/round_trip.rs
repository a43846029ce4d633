//! What leaves and comes back is the same, and whose it was.

use std::fs;
use std::path::Path;

use base::clock::Clock;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{good, text};
use store::{ListChange, NewMemory, Store, UserRole, Viewer};
use support::client::Client;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::http::{FileAnswer, exchange};
use support::process::private_kib;
use support::program::{Program, printed, run};
use support::receiver::Receiver;

/// Each kind of row with the names of people instead of their numbers, without what an import
/// gives anew: the ids of turns, lists and items, and what a run of the server counts.
const TABLES: [(&str, &str); 9] = [
    (
        "conversations",
        "SELECT c.id, title, channel, account, external_name, created_at, updated_at,
             message_count, latest, o.name, model, instructions, surface, has_outside_text,
             (SELECT group_concat(name) FROM (SELECT u.name FROM audience_members m
                 JOIN users u ON u.id = m.user_id WHERE m.audience_id = c.audience_id
                 ORDER BY u.name)) AS audience
         FROM conversations c LEFT JOIN (SELECT id AS user_id, name FROM users) o
             ON o.user_id = c.owner_id ORDER BY c.id",
    ),
    (
        "messages",
        "SELECT id, conversation_id, role, content, speaker, created_at, in_reply_to,
             finish_reason, version_of, hidden_with, attachment_count FROM messages ORDER BY id",
    ),
    (
        "turns",
        "SELECT t.conversation_id, t.channel, t.account, t.message_id, t.reply_id, u.name
         FROM turns t LEFT JOIN users u ON u.id = t.user_id ORDER BY t.message_id",
    ),
    (
        "attachments",
        "SELECT a.id, a.name, media_type, bytes, received, message_id,
             (SELECT group_concat(hex(data), '') FROM (SELECT data FROM attachment_pieces
                 WHERE attachment_id = a.id ORDER BY start)) FROM attachments a ORDER BY a.id",
    ),
    (
        "memories",
        "SELECT m.id, content, speaker, created_at, u.name, channel, account, is_outside,
             search_words, (SELECT members FROM audiences WHERE id = m.audience_id) = 'household',
             (SELECT group_concat(name) FROM (SELECT n.name FROM audience_members k
                 JOIN (SELECT id, name FROM users) n ON n.id = k.user_id
                 WHERE k.audience_id = m.audience_id ORDER BY n.name))
         FROM memories m LEFT JOIN (SELECT id AS user_id, name FROM users) u
             ON u.user_id = m.owner_id ORDER BY m.id",
    ),
    (
        "lists",
        "SELECT name, folded, is_outside FROM lists ORDER BY folded",
    ),
    (
        "list_items",
        "SELECT l.name, i.text, i.is_checked, i.is_outside OR l.is_outside FROM list_items i
         JOIN lists l ON l.id = i.list_id ORDER BY i.list_id, i.id",
    ),
    (
        "schedules",
        "SELECT s.id, prompt, owner, conversation_id, channel, account, cron, next_at, planned_at,
             last_at, is_paused, s.created_at, is_wait, u.name, is_outside
         FROM schedules s LEFT JOIN users u ON u.id = s.owner_id ORDER BY s.id",
    ),
    (
        "conversation_marks",
        "SELECT u.name, conversation_id, is_pinned, is_archived, read_until
         FROM conversation_marks m JOIN users u ON u.id = m.user_id ORDER BY 1, 2",
    ),
];

fn rows(folder: &Path, sql: &str) -> Vec<String> {
    let database = Connection::open(folder.join("hearth.db")).unwrap();
    let mut statement = database.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let value = |column| row.get::<_, rusqlite::types::Value>(column);
        let values: rusqlite::Result<Vec<_>> = (0..columns).map(value).collect();
        Ok(format!("{:?}", values?))
    });
    rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

fn get(home: &Home, token: &str, path: &str) -> FileAnswer {
    let token = format!("Bearer {token}");
    exchange(
        home.address(),
        "GET",
        path,
        &[("authorization", &token)],
        b"",
    )
}

fn import(home: &Home, token: &str, path: &str, file: &[u8]) -> FileAnswer {
    let token = format!("Bearer {token}");
    let headers = [("authorization", token.as_str())];
    exchange(home.address(), "POST", path, &headers, file)
}

/// The conversations that somebody sees: title, owner and audience.
fn seen(home: &Home, token: &str) -> Vec<(Value, Value, Value)> {
    let mut client = home.websocket(token);
    let list = client.ask(json!({ "type": "list_conversations" }));
    let list = list["conversations"].as_array().unwrap().iter();
    list.map(|one| {
        (
            one["title"].clone(),
            one["owner"].clone(),
            one["audience"].clone(),
        )
    })
    .collect()
}

/// Four people with one thing of each kind, and more.
fn household() -> (Home, String) {
    let (receiver, secret) = (Receiver::start(), "s".repeat(32));
    let accounts = json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "door": {
            "incoming_path": "/hooks/door", "outgoing_url": receiver.url(), "secret": secret,
            "audience": ["admin", "carol"],
        } } },
    ] });
    let home = Home::start(accounts);
    let carol = home.add_person("carol", UserRole::User);
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    let mut theirs = home.websocket(&carol);
    // Versions, and one of them hidden.
    let first = user.chat("how war is it");
    let id = first["conversation_id"].clone();
    let page = user.ask(json!({ "type": "get_messages", "conversation_id": id }));
    let asked = page["messages"][0]["id"].clone();
    user.ask(json!({ "type": "chat", "message": "how warm is it", "conversation_id": id, "replaces": asked }));
    user.ask(json!({ "type": "chat", "message": "and at night", "conversation_id": id }));
    user.ask(
        json!({ "type": "update_conversation", "conversation_id": id, "pinned": true,
        "model": "offline", "instructions": "Answer in rhymes." }),
    );
    // Files.
    let bearer = format!("Bearer {}", home.tokens.admin);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-disposition", "attachment; filename=\"a.bin\""),
    ];
    let content: Vec<u8> = (0..700_000_u32)
        .map(|place| (place * 7 / 8) as u8)
        .collect();
    let file = exchange(home.address(), "POST", "/attachments", &headers, &content).json();
    let file = file["data"]["attachment_id"].clone();
    let shared = admin.ask(json!({ "type": "chat", "message": "look at this", "attachments": [file], "audience": "household" }));
    theirs.ask(json!({ "type": "update_conversation", "conversation_id": shared["conversation_id"], "archived": true }));
    theirs.ask(json!({ "type": "mark_read", "conversation_id": shared["conversation_id"] }));
    theirs.ask(json!({ "type": "chat", "message": "for the guest", "audience": ["viewer"] }));
    theirs.chat("of carol alone");
    let rang = json!({ "message": "it rang", "user_id": "bell", "conversation_id": "bell" });
    let headers = [("x-service-secret", secret.as_str())];
    let answer = support::http::post(home.address(), "/hooks/door", &headers, &rang);
    assert_eq!(answer.status, 202, "{}", answer.body);
    receiver.wait_for(1);
    user.ask(
        json!({ "type": "create_schedule", "prompt": "water the flowers", "cron": "0 8 * * *" }),
    );
    let plan = user.ask(
        json!({ "type": "create_schedule", "prompt": "rest", "at": "+3h", "conversation_id": id }),
    );
    user.ask(
        json!({ "type": "pause_schedule", "schedule_id": plan["schedule_id"], "paused": true }),
    );
    theirs.ask(json!({ "type": "update_list", "list": "Shopping", "add": ["milk", "tea"], "check": ["tea"] }));
    (home, carol)
}

/// Adds what only a model makes.
fn add_memories(folder: &Path) {
    let store = Store::open(&folder.join("hearth.db"), Clock::system()).unwrap();
    let carol = store.user("carol").unwrap().unwrap().id;
    for (content, owner_id, is_private, is_outside) in [
        ("The wifi is slow.", None, false, true),
        ("Carol likes dill.", Some(carol), true, false),
        ("Carol sings in a choir.", Some(carol), false, false),
    ] {
        store
            .remember(NewMemory {
                content: content.to_owned(),
                search_words: vec!["herbs".to_owned()],
                speaker: Some("carol".to_owned()),
                owner_id,
                is_private,
                is_outside,
                channel: Some("websocket".to_owned()),
                ..NewMemory::default()
            })
            .unwrap();
    }
    let outside = ListChange {
        add: vec!["a free phone".to_owned()],
        is_outside: true,
        ..ListChange::default()
    };
    store
        .update_list(&Viewer::server(), "Shopping", outside)
        .unwrap();
    store.close();
}

#[test]
fn a_household_comes_back_row_by_row() {
    let (mut home, _) = household();
    home.stop();
    let folder = home.folder.path();
    add_memories(folder);
    let file = folder.join("all.jsonl");
    good(folder, &["export", "--all", "--output", text(&file)]);

    let other = TemporaryDirectory::new();
    write_config(other.path(), json!({}));
    make_people(other.path());
    let store = Store::open(&other.path().join("hearth.db"), Clock::system()).unwrap();
    store.add_user("carol", UserRole::User, "").unwrap();
    store.close();
    let told = good(other.path(), &["import", text(&file)]);
    assert!(
        told.starts_with("Imported 12 messages in 5 conversations; 0 were"),
        "{told}"
    );
    assert!(
        !told.contains("Skipped") && !told.contains("Nobody"),
        "{told}"
    );
    let compare = || {
        for (table, sql) in TABLES {
            let (before, after) = (rows(folder, sql), rows(other.path(), sql));
            assert!(!before.is_empty(), "{table}: nothing is compared");
            assert_eq!(before, after, "{table}");
        }
    };
    compare();
    let exported = good(other.path(), &["export", "--all"]);
    assert_eq!(exported, fs::read_to_string(&file).unwrap());
    // A second time adds nothing.
    let told = good(other.path(), &["import", text(&file)]);
    assert_eq!(
        told,
        "Imported 0 messages in 0 conversations; 5 were already there.\n"
    );
    compare();
}

#[test]
fn what_somebody_brings_is_theirs_alone() {
    let (home, carol) = household();
    let own = get(&home, &home.tokens.user, "/export");
    assert_eq!(own.status, 200);
    assert_eq!(own.header("cache-control"), Some("no-store"));
    // A name that counts for the model API must not be passed over here.
    let bearer = format!("Bearer {}", home.tokens.user);
    for (method, path) in [
        ("GET", "/export"),
        ("POST", "/attachments"),
        ("POST", "/import"),
    ] {
        for (name, is_refused) in [("admin", true), ("User", false)] {
            let headers = [("authorization", bearer.as_str()), ("x-hearth-user", name)];
            let answer = exchange(home.address(), method, path, &headers, b"");
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(body.contains("X-Hearth-User"), is_refused, "{path}: {body}");
            assert!(answer.status == 400 || !is_refused, "{path}: {body}");
        }
    }
    let exported = String::from_utf8(own.body.clone()).unwrap();
    assert!(exported.contains("how warm is it") && exported.contains("water the flowers"));
    for not_theirs in ["look at this", "of carol alone", "it rang", "milk"] {
        assert!(!exported.contains(not_theirs), "{not_theirs}");
    }
    let shared = get(&home, &home.tokens.user, "/export?shared=1").body;
    assert!(String::from_utf8(shared).unwrap().contains("look at this"));
    // Over a connection it is the same.
    let mut client = home.websocket(&home.tokens.user);
    let (mut parts, mut part) = (String::new(), 0);
    loop {
        let answer = client.ask(json!({ "type": "export", "part": part }));
        parts.push_str(answer["text"].as_str().unwrap());
        part += 1;
        if answer["done"] == true {
            break;
        }
    }
    assert_eq!(parts, exported);
    assert_eq!(
        client.refused(json!({ "type": "export", "part": part })),
        "invalid_request"
    );
    // Everything is nobody's over the network, not even an admin's.
    for token in [&home.tokens.admin, &home.tokens.user, &home.tokens.viewer] {
        assert_eq!(get(&home, token, "/export?all=1").status, 403);
        assert_eq!(
            home.websocket(token)
                .refused(json!({ "type": "export", "part": 0, "all": true })),
            "unauthorized"
        );
    }
    assert_eq!(get(&home, "wrong", "/export").status, 401);
    for unknown in ["all=true", "shared=yes", "shared=", "format=csv"] {
        let path = format!("/export?{unknown}");
        assert_eq!(get(&home, &home.tokens.user, &path).status, 400, "{path}");
    }
    let id = exported.lines().nth(1).unwrap();
    let id: Value = serde_json::from_str(id).unwrap();
    let path = format!("/export?conversation={}", id["id"].as_str().unwrap());
    assert_eq!(
        get(&home, &home.tokens.admin, &path).status,
        404,
        "an admin reads no diaries"
    );
    let markdown = get(&home, &home.tokens.user, &format!("{path}&format=markdown"));
    assert!(
        String::from_utf8(markdown.body)
            .unwrap()
            .starts_with("# how warm is it\n\n")
    );

    // Carol imports what the user exported: it is hers now, privately, and marked.
    let before = seen(&home, &home.tokens.user);
    let answer = import(&home, &carol, "/import", &own.body).json();
    assert_eq!(answer["data"]["imported"], 1, "{answer}");
    assert_eq!(answer["data"]["owner"], "carol");
    assert_eq!(
        seen(&home, &home.tokens.user),
        before,
        "nobody writes into another's account"
    );
    let copy = (json!("how warm is it"), json!("carol"), json!("private"));
    assert_eq!(
        seen(&home, &carol)
            .iter()
            .filter(|one| **one == copy)
            .count(),
        1
    );
    let outside = "SELECT c.has_outside_text, c.instructions FROM conversations c
        JOIN users u ON u.id = c.owner_id WHERE u.name = 'carol' AND c.imported_from IS NOT NULL";
    assert_eq!(rows(home.folder.path(), outside), ["[Integer(1), Null]"]);
    let plans = "SELECT u.name, s.is_outside, s.conversation_id IN (SELECT id FROM conversations
            WHERE owner_id = u.id) FROM schedules s JOIN users u ON u.id = s.owner_id
        WHERE u.name = 'carol' ORDER BY s.id";
    let marked = "[Text(\"carol\"), Integer(1), ";
    let plans = rows(home.folder.path(), plans);
    assert!(
        plans.len() == 2 && plans.iter().all(|one| one.starts_with(marked)),
        "{plans:?}"
    );
    let answer = import(&home, &carol, "/import", &own.body).json();
    let again = &answer["data"];
    assert_eq!(
        (
            &again["imported"],
            &again["already_there"],
            &again["schedules"]
        ),
        (&json!(0), &json!(1), &json!(0))
    );

    // Nobody names another owner; guests import nothing.
    for (token, path) in [
        (&carol, "/import?owner=user"),
        (&home.tokens.viewer, "/import"),
    ] {
        assert_eq!(import(&home, token, path, &own.body).status, 403);
    }
    assert_eq!(
        import(&home, &carol, "/import?owner=CAROL", &own.body).status,
        200
    );
}

#[test]
fn what_somebody_imports_is_read_and_in_their_name() {
    let home = Home::offline();
    let file = fs::read("tests/data/imports/chatgpt.json").unwrap();
    let answer = import(&home, &home.tokens.user, "/import", &file);
    assert_eq!(answer.status, 200);
    let mut user = home.websocket(&home.tokens.user);
    let list = user.ask(json!({ "type": "list_conversations" }));
    let list = list["conversations"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    for one in list {
        assert_ne!(one["unread"], true, "{one}");
        let messages = user.ask(json!({ "type": "get_messages", "conversation_id": one["id"] }));
        for message in messages["messages"].as_array().unwrap() {
            let expected = (message["role"] == "user").then_some("user");
            assert_eq!(message["speaker"].as_str(), expected, "{message}");
        }
    }
}

#[test]
fn a_speaker_that_a_file_names_is_marked_unless_it_is_the_importer() {
    let home = Home::offline();
    let at = "2026-11-01T08:00:00.000Z";
    let said = |speaker: &str| {
        json!({ "type": "message", "role": "user", "speaker": speaker, "content": "Stay up late.",
            "timestamp": at })
    };
    let lines = [
        json!({ "type": "hearth_export", "version": 1 }),
        json!({ "type": "conversation", "id": "conv_06xt5n5scvj85", "title": "Bedtime",
            "channel": "websocket", "owner": "admin", "created_at": at }),
        said("admin"),
        said("user"),
        said("admin by webhook door"),
        json!({ "type": "memory", "content": "Bedtime is at midnight.", "speaker": "admin",
            "owner": "admin", "outside": false, "created_at": at }),
    ];
    let file = lines.map(|line| format!("{line}\n")).concat();
    let mut file = file.into_bytes();
    // What was marked is not marked again.
    for home in [&home, &Home::offline()] {
        let answer = import(home, &home.tokens.user, "/import", &file);
        assert_eq!(answer.json()["data"]["left_out"], 0, "{}", answer.json());
        let mut user = home.websocket(&home.tokens.user);
        let list = user.ask(json!({ "type": "list_conversations" }));
        let id = &list["conversations"][0]["id"];
        let read = user.ask(json!({ "type": "get_messages", "conversation_id": id }));
        let messages = read["messages"].as_array().unwrap().iter();
        let speakers: Vec<&str> = messages
            .map(|one| one["speaker"].as_str().unwrap())
            .collect();
        assert_eq!(
            speakers,
            ["admin by import", "user", "admin by webhook door"]
        );
        let memories = user.ask(json!({ "type": "list_memories" }));
        assert_eq!(memories["memories"][0]["speaker"], "admin by import");
        file = user.ask(json!({ "type": "export" }))["text"]
            .as_str()
            .unwrap()
            .into();
    }
}

#[test]
fn what_names_nobody_is_whoever_s_imports_it() {
    let (mut home, _) = household();
    home.stop();
    let file = home.folder.path().join("all.jsonl");
    good(
        home.folder.path(),
        &["export", "--all", "--output", text(&file)],
    );
    // Carol does not exist here.
    let mut other = Home::offline();
    let told = good(other.folder.path(), &["import", text(&file)]);
    assert!(
        told.contains("Nobody here is called carol: what was theirs is private to admin now."),
        "{told}"
    );
    let all = fs::read_to_string(&file).unwrap();
    for again in [
        &["--json"][..],
        &["--owner", "USER", "--json"],
        &["--owner", "user", "--json"],
    ] {
        let arguments = [&["import", text(&file)], again].concat();
        let told: Value = serde_json::from_str(&good(other.folder.path(), &arguments)).unwrap();
        // With an owner, all becomes theirs, once; what they had is there already.
        let expected = if again.contains(&"USER") {
            [4, 1]
        } else {
            [0, 5]
        };
        assert_eq!(
            [&told["imported"], &told["already_there"]],
            expected.map(|count| json!(count)).each_ref(),
            "{again:?} {told}"
        );
    }
    let of_user = seen(&other, &other.tokens.user);
    let alone = of_user
        .iter()
        .filter(|(_, owner, audience)| owner == "user" && audience == "private");
    assert_eq!(alone.count(), 5, "{of_user:?}");
    let of_admin = seen(&other, &other.tokens.admin);
    assert!(
        of_admin.contains(&(json!("of carol alone"), json!("admin"), json!("private"))),
        "{of_admin:?}"
    );
    assert!(
        !seen(&other, &other.tokens.viewer)
            .iter()
            .any(|(title, ..)| title == "of carol alone")
    );

    // A file from before owners and audiences.
    let old = all.lines().filter_map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let kind = line["type"].as_str().unwrap().to_owned();
        let members = line.as_object_mut().unwrap();
        for newer in [
            "owner",
            "audience",
            "outside",
            "marks",
            "has_end",
            "account",
            "external_name",
        ] {
            members.remove(newer);
        }
        ["hearth_export", "conversation", "message"]
            .contains(&kind.as_str())
            .then(|| line.to_string())
    });
    let old = old.collect::<Vec<String>>().join("\n");
    let third = Home::offline();
    let answer = import(&third, &third.tokens.user, "/import", old.as_bytes()).json();
    assert_eq!(answer["data"]["imported"], 5, "{answer}");
    assert_eq!(seen(&third, &third.tokens.user).len(), 5);
    assert_eq!(seen(&third, &third.tokens.admin), []);
    let path = third.folder.path().join("old.jsonl");
    fs::write(&path, old).unwrap();
    good(third.folder.path(), &["import", text(&path)]);
    let all_private = seen(&third, &third.tokens.admin);
    assert!(
        all_private.len() == 5
            && all_private
                .iter()
                .all(|(_, owner, audience)| owner == "admin" && audience == "private")
    );
    other.stop();
}

#[test]
fn a_file_that_was_cut_says_where() {
    let (mut home, _) = household();
    home.stop();
    let file = home.folder.path().join("all.jsonl");
    let all = good(home.folder.path(), &["export", "--all"]);
    let lines: Vec<&str> = all.lines().collect();
    let second = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains(r#""type":"conversation""#))
        .nth(2)
        .unwrap()
        .0;
    let whole = lines[..second + 1].join("\n") + "\n";
    let half = lines[..second].join("\n") + "\n" + &lines[second][..40];
    // The one that may not be whole is left out.
    for (cut, says, count) in [
        (whole, "the file ends here", 2),
        (half, "the file ends in the middle", 1),
    ] {
        fs::write(&file, &cut).unwrap();
        let other = Home::offline();
        let output = run(other.folder.path(), &["import", text(&file)]);
        let told = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        let line = format!("line {}: {says}", second + 1);
        let imported = format!("imported until there: {count} conversation");
        assert!(told.contains(&line) && told.contains(&imported), "{told}");
        let answer = import(&other, &other.tokens.user, "/import", cut.as_bytes());
        let told = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(answer.status == 400 && told.contains(&line), "{told}");
        assert_eq!(
            seen(&other, &other.tokens.user)
                .iter()
                .filter(|one| one.1 == "user")
                .count(),
            count
        );
    }
}

#[test]
fn what_was_just_deleted_comes_back_with_its_files() {
    let home = Home::offline();
    let token = &home.tokens.user;
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let put = exchange(
        home.address(),
        "POST",
        "/attachments",
        &headers,
        b"a recipe",
    )
    .json();
    let mut client = home.websocket(token);
    let chat = json!({
        "type": "chat", "message": "keep it", "attachments": [put["data"]["attachment_id"]],
    });
    let conversation = client.ask(chat)["conversation_id"].clone();
    let file = get(&home, token, "/export").body;
    client.ask(json!({ "type": "delete_conversation", "conversation_id": conversation }));
    let answer = import(&home, token, "/import", &file);
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let messages = client.ask(json!({ "type": "list_conversations" }));
    let id = &messages["conversations"][0]["conversation_id"];
    let messages = client.ask(json!({ "type": "get_messages", "conversation_id": id }));
    let attachment = &messages["messages"][0]["attachments"][0]["attachment_id"];
    assert_ne!(
        *attachment, put["data"]["attachment_id"],
        "its pieces are still to go"
    );
    let path = format!("/attachments/{}", attachment.as_str().unwrap());
    assert_eq!(get(&home, token, &path).body, b"a recipe");
}

#[test]
fn a_token_of_a_guest_exports_no_memories() {
    let home = Home::start(json!({ "permission_mode": "allow" }));
    let mut client = home.websocket(&home.tokens.user);
    client.ask(json!({ "type": "chat", "message": "remember that the well is nine metres deep" }));
    let display = home.token("user", &json!({ "role": "viewer" }));
    let holds = |token: &str| {
        let file = get(&home, token, "/export").body;
        String::from_utf8_lossy(&file).contains("\"type\":\"memory\"")
    };
    assert!(holds(&home.tokens.user));
    assert!(!holds(&display));
}

#[test]
fn a_large_file_passes_through_little_memory() {
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({ "limits": { "attachment_bytes": 64 << 20 } }),
    );
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let token = format!("Bearer {}", tokens.user);
    let headers = [("authorization", token.as_str())];
    let put = |size: usize| {
        let content: Vec<u8> = (0..size).map(|place| (place * 31 / 128) as u8).collect();
        let file = exchange(program.address, "POST", "/attachments", &headers, &content).json();
        let mut client = Client::websocket(program.address);
        client.authenticate(&tokens.user);
        client.ask(json!({ "type": "chat", "message": "keep it", "attachments": [file["data"]["attachment_id"]] }));
    };
    let export = || exchange(program.address, "GET", "/export", &headers, b"").body;
    put(300_000);
    let admin = format!("Bearer {}", tokens.admin);
    let bring = |file: &[u8]| {
        exchange(
            program.address,
            "POST",
            "/import",
            &[("authorization", &admin)],
            file,
        )
        .json()
    };
    bring(&export());
    put(40 << 20);
    let Some(before) = private_kib(program.id()) else {
        return println!("skipped: no smaps");
    };
    let file = export();
    assert!(file.len() > 50 << 20);
    let longest = file.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert!(longest < Some(400_000), "{longest:?}");
    let mut most = before;
    std::thread::scope(|scope| {
        let import = scope.spawn(|| bring(&file));
        while !import.is_finished() {
            most = most.max(private_kib(program.id()).unwrap());
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        let answer = import.join().unwrap();
        assert_eq!(
            (
                &answer["data"]["imported"],
                &answer["data"]["already_there"]
            ),
            (&json!(1), &json!(1)),
            "{answer}"
        );
    });
    assert!(most - before < 8 * 1024, "{before} KiB, then {most}");
}

#[test]
fn a_reminder_that_somebody_else_made_stays_with_whom_it_reminds() {
    let (home, other) = (Home::offline(), Home::offline());
    home.admin().ask(json!({
        "type": "create_schedule", "say": "Dinner", "at": "+9h", "people": ["user"],
    }));
    let own = String::from_utf8(get(&home, &home.tokens.user, "/export").body).unwrap();
    let line = own.lines().find(|line| line.contains("Dinner")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&line["owner"], &line["made_by"]),
        (&json!("user"), &json!("admin"))
    );
    let file = home.folder.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    for (home, words) in [
        (&home, vec!["export", "--all", "--output", file]),
        (&other, vec!["import", file]),
    ] {
        let done = run(home.folder.path(), &words);
        assert!(done.status.success(), "{}", printed(&done));
    }
    let list = json!({ "type": "list_schedules" });
    let back = other.websocket(&other.tokens.user).ask(list.clone());
    assert_eq!(back["schedules"][0]["owner"], "admin", "{back}");
    let of_maker = other.admin().ask(list);
    assert_eq!(of_maker["schedules"], json!([]));
}
