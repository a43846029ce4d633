//! Tokens with which the things of others are read: who makes them, who is told, and what asks
//! in whose name.

use serde_json::{Value, json};

use support::client::Client;
use support::home::Home;
use support::http::post;
use support::program::{printed, run};

fn create(more: &Value) -> Value {
    let mut request = json!({ "type": "create_token", "name": "display" });
    for (field, value) in more.as_object().unwrap() {
        request[field] = value.clone();
    }
    request
}

/// The titles and messages of what somebody sees.
fn told(client: &mut Client) -> Vec<(String, Vec<String>)> {
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let conversations = listed["conversations"].as_array().unwrap().clone();
    let read = |one: Value| {
        let get = json!({ "type": "get_messages", "conversation_id": one["id"] });
        let messages = client.ask(get)["messages"].as_array().unwrap().clone();
        let texts = messages
            .iter()
            .map(|one| one["content"].as_str().unwrap().to_owned());
        (one["title"].as_str().unwrap().to_owned(), texts.collect())
    };
    conversations.into_iter().map(read).collect()
}

/// What a person's own list says: the names of tokens, and whose they are.
fn own(client: &mut Client) -> Vec<(String, String, String)> {
    let listed = client.ask(json!({ "type": "list_own_tokens" }));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tokens = listed["tokens"].as_array().unwrap().iter();
    tokens
        .map(|one| {
            (
                text(&one["name"]),
                text(&one["user"]),
                text(&one["token_id"]),
            )
        })
        .collect()
}

#[test]
fn an_admin_makes_tokens_for_themselves_and_for_programs() {
    let home = Home::offline();
    let mut admin = home.admin();
    for refused in [
        json!({ "user": "user" }),
        json!({ "user": "user", "role": "viewer" }),
        json!({ "speaks_for": ["user"] }),
        json!({ "speaks_for": [] }),
        json!({ "speaks_for": ["admin"] }),
    ] {
        let code = admin.refused(create(&refused));
        assert_eq!(code, "unauthorized", "{refused}");
    }
    assert_eq!(admin.ask(create(&json!({})))["user"], "admin");
    assert_eq!(
        admin.ask(create(&json!({ "user": "Admin" })))["user"],
        "admin"
    );

    let add = |more: &Value| {
        let mut request = json!({ "type": "add_user", "name": "home-assistant" });
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        request
    };
    for wrong in [
        json!({}),
        json!({ "program": true, "password": "correct horse" }),
        json!({ "program": true, "child": true }),
    ] {
        assert_eq!(admin.refused(add(&wrong)), "invalid_request", "{wrong}");
    }
    let made = admin.ask(add(&json!({ "program": true })));
    assert_eq!(made["is_program"], true, "{made}");
    let token = admin.ask(create(&json!({ "user": "home-assistant" })));
    let mut program = home.websocket(token["token"].as_str().unwrap());
    program.chat("hello");
    // It never becomes somebody who signs in.
    for refused in [
        json!({ "type": "set_password", "name": "home-assistant", "password": "correct horse" }),
        json!({ "type": "reset_password", "name": "home-assistant", "url": "http://a.lan/" }),
    ] {
        assert_eq!(admin.refused(refused), "invalid_request");
    }
    let body = json!({ "username": "home-assistant", "password": "program" });
    assert_eq!(post(home.address(), "/auth", &[], &body).status, 401);
    // Nor is it the admin who is left.
    admin.ask(json!({ "type": "set_role", "name": "home-assistant", "role": "admin" }));
    let last = json!({ "type": "set_role", "name": "admin", "role": "user" });
    assert_eq!(admin.refused(last), "invalid_request");
    let added = run(
        home.folder.path(),
        &["user", "add", "node-red", "--program"],
    );
    assert!(added.status.success(), "{}", printed(&added));
    let listed = printed(&run(home.folder.path(), &["user", "list"]));
    assert!(listed.contains("user, a program"), "{listed}");
}

#[test]
fn those_whose_things_a_token_reads_are_told() {
    let home = Home::offline();
    let create = |words: &[&str]| {
        let words = [&["token", "create", "--name", "panel"], words].concat();
        run(home.folder.path(), &words)
    };
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "subscribe", "events": ["conversation.changed"] }));
    let mut guest = home.websocket(&home.tokens.viewer);
    for refused in [&["--speaks-for", ""][..], &["--speaks-for", ","]] {
        let made = create(refused);
        assert!(!made.status.success(), "{}", printed(&made));
    }
    assert_eq!((told(&mut user), told(&mut guest)), (vec![], vec![]));

    let made = create(&["--user", "user"]);
    assert!(made.status.success(), "{}", printed(&made));
    user.event("conversation.changed");
    let [(title, messages)] = &told(&mut user)[..] else {
        panic!("one notice")
    };
    assert_eq!(title, "A token that reads your things");
    assert!(messages[0].contains("\"panel\"") && messages[0].contains("program of user"));
    assert_eq!(told(&mut guest), []);
    let (_, _, id) = &own(&mut user)[0];
    assert!(messages[0].contains(id.as_str()), "{messages:?}");

    // One that speaks for others is shown to all of them, and each ends it for themselves.
    let made = create(&["--user", "admin", "--speaks-for", "user,viewer"]);
    let said = printed(&made);
    assert!(made.status.success(), "{said}");
    let secret = String::from_utf8(made.stdout).unwrap();
    assert_eq!([told(&mut user).len(), told(&mut guest).len()], [2, 1]);
    assert_eq!(told(&mut home.admin()).len(), 1);
    let (name, owner, id) = own(&mut user).remove(0);
    assert_eq!((name.as_str(), owner.as_str()), ("panel", "admin"));
    let end = json!({ "type": "revoke_own_token", "token_id": id });
    let other = json!({ "type": "revoke_own_token", "token_id": own(&mut home.admin())[1].2 });
    assert_eq!(user.refused(other), "not_found");
    user.ask(end.clone());
    assert_eq!(user.refused(end), "not_found");
    assert!(own(&mut user).iter().all(|(_, owner, _)| owner == "user"));
    let left = own(&mut guest);
    assert!(
        left.iter().any(|(_, owner, _)| owner == "admin"),
        "{left:?}"
    );
    home.websocket(secret.trim()).ask(json!({ "type": "ping" }));
}

#[test]
fn a_name_for_which_a_program_does_not_speak_is_refused() {
    let home = Home::start(json!({ "openai_api": { "enabled": true, "ollama_user": "user" } }));
    let bot = home.token("admin", &json!({ "speaks_for": ["user"] }));
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let body = json!({ "model": "hearth", "messages": messages, "stream": false });
    let ask = |path: &str, token: Option<&str>, header: &str, name: &str| {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![(header, name)];
        headers.extend(
            bearer
                .iter()
                .map(|bearer| ("authorization", bearer.as_str())),
        );
        let answer = post(home.address(), path, &headers, &body);
        let is_error = answer.json().get("error").is_some();
        assert_eq!(is_error, answer.status != 200, "{answer:?}");
        answer.status
    };
    for header in ["x-hearth-user", "x-openwebui-user-name"] {
        for (token, name, expected) in [
            (Some(&bot), "user", 200),
            (Some(&bot), "viewer", 403),
            (Some(&home.tokens.admin), "Admin", 200),
            (Some(&home.tokens.admin), "user", 403),
            (Some(&home.tokens.user), "nobody", 403),
        ] {
            for path in ["/v1/chat/completions", "/api/chat"] {
                let status = ask(path, token.map(String::as_str), header, name);
                assert_eq!(status, expected, "{path} {header}: {name}");
            }
        }
        // Whoever needs no token speaks for one person.
        assert_eq!(ask("/api/chat", None, header, "User"), 200);
        assert_eq!(ask("/api/chat", None, header, "admin"), 403);
    }
}

#[test]
fn a_new_name_hides_nothing_and_an_old_one_goes_on_working() {
    let home = Home::offline();
    let mut admin = home.admin();
    for name in [
        "\u{430}dmin",
        "us\u{200b}er",
        "ada\u{202e}",
        "ju\u{308}rgen",
        "a b",
        "-ada",
    ] {
        for kind in ["add_user", "invite_user"] {
            let request = json!({
                "type": kind, "name": name, "password": "correct horse", "url": "http://a.lan/",
            });
            assert_eq!(admin.refused(request), "invalid_request", "{name:?}");
        }
    }
    let old = "ada\u{202e}@example.org";
    let token = home.add_person(old, store::UserRole::User);
    home.websocket(&token).chat("hello");
    let listed = run(home.folder.path(), &["user", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("ada\u{2039}U+202E\u{203a}@example.org"),
        "{listed}"
    );
}
