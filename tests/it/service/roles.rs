//! Who may send which command (protocol section 2), and for how long.

use std::time::Duration;

use base::clock::Clock;
use base::secret::{Secret, fingerprint};
use serde_json::{Value, json};
use store::{NewToken, Store, UserRole};

use support::client::{Client, End};
use support::eventually;
use support::home::Home;
use support::home::PASSWORD;
use support::http::post;
use support::model::{Act, Model};

#[test]
fn each_command_needs_its_role() {
    let home = Home::start(json!({
        "limits": {
            "commands_per_second": 100_000, "commands_burst": 100_000,
            // A stranger's closed connection may count for a moment longer.
            "connections_per_address": 1000, "unauthenticated_per_address": 1000,
        },
    }));
    let conversation = "conv_0000000000001";
    let commands = [
        ("viewer", json!({ "type": "get_config" })),
        ("viewer", json!({ "type": "list_conversations" })),
        (
            "viewer",
            json!({ "type": "get_messages", "conversation_id": conversation }),
        ),
        ("viewer", json!({ "type": "list_tools" })),
        ("viewer", json!({ "type": "ping" })),
        ("viewer", json!({ "type": "subscribe" })),
        (
            "viewer",
            json!({ "type": "get_turn", "turn_id": "turn_0000000000001" }),
        ),
        ("user", json!({ "type": "search_messages", "query": "x" })),
        ("user", json!({ "type": "list_memories" })),
        ("user", json!({ "type": "list_lists" })),
        ("user", json!({ "type": "get_list", "list": "x" })),
        ("user", json!({ "type": "update_list", "list": "x" })),
        ("user", json!({ "type": "delete_list", "list": "x" })),
        ("viewer", json!({ "type": "server_info" })),
        (
            "user",
            json!({ "type": "chat", "message": "x", "conversation_id": conversation }),
        ),
        (
            "user",
            json!({ "type": "cancel", "turn_id": "turn_0000000000001" }),
        ),
        (
            "user",
            json!({ "type": "rename_conversation", "conversation_id": conversation, "title": "x" }),
        ),
        (
            "user",
            json!({
                "type": "share_conversation", "conversation_id": conversation,
                "audience": "private",
            }),
        ),
        (
            "user",
            json!({ "type": "delete_conversation", "conversation_id": conversation }),
        ),
        (
            "user",
            json!({ "type": "delete_memory", "memory_id": "mem_0000000000001" }),
        ),
        ("viewer", json!({ "type": "list_schedules" })),
        (
            "user",
            json!({ "type": "create_schedule", "prompt": "x", "at": "+1h" }),
        ),
        (
            "user",
            json!({ "type": "pause_schedule", "schedule_id": "sched_0000000000001" }),
        ),
        (
            "viewer",
            json!({ "type": "delete_schedule", "schedule_id": "sched_0000000000001" }),
        ),
        ("user", json!({ "type": "list_skills" })),
        ("admin", json!({ "type": "remove_skill", "name": "x" })),
        ("admin", json!({ "type": "list_available_tools" })),
        (
            "admin",
            json!({ "type": "add_tool", "name": "x", "answers": {} }),
        ),
        ("admin", json!({ "type": "remove_tool", "name": "x" })),
        (
            "viewer",
            json!({ "type": "draw_address", "url": "http://a.lan/" }),
        ),
        ("admin", json!({ "type": "list_users" })),
        (
            "admin",
            json!({ "type": "add_user", "name": "x", "password": "short" }),
        ),
        (
            "admin",
            json!({ "type": "set_password", "name": "x", "password": "short" }),
        ),
        ("admin", json!({ "type": "remove_user", "name": "x" })),
        ("admin", json!({ "type": "list_tokens" })),
        ("admin", json!({ "type": "create_token", "name": "x" })),
        (
            "admin",
            json!({ "type": "revoke_token", "token_id": "tok_0000000000001" }),
        ),
        ("admin", json!({ "type": "update_config", "config": {} })),
        ("user", json!({ "type": "list_approvals" })),
        (
            "user",
            json!({ "type": "approve", "approval_id": "appr_0000000000001" }),
        ),
        (
            "user",
            json!({ "type": "deny", "approval_id": "appr_0000000000001" }),
        ),
        ("admin", json!({ "type": "list_deliveries" })),
        (
            "admin",
            json!({ "type": "retry_delivery", "delivery_id": "dlv_0000000000001" }),
        ),
    ];
    let roles = ["viewer", "user", "admin"];
    let tokens = [&home.tokens.viewer, &home.tokens.user, &home.tokens.admin];
    for (rank, token) in tokens.into_iter().enumerate() {
        let mut client = home.websocket(token);
        for (needed, command) in &commands {
            let needed_rank = roles.iter().position(|role| role == needed).unwrap();
            // The role counts before the fields.
            let malformed = json!({ "type": command["type"], "limit": [] });
            for command in [command, &malformed] {
                client.send(command);
                let response = client.response();
                let is_refused = response["code"] == "unauthorized";
                assert_eq!(
                    is_refused,
                    rank < needed_rank,
                    "{} {command}: {response}",
                    roles[rank]
                );
            }
        }
    }
    // Without a sign-in, they are all the same, and so is one that does not exist.
    let unknown = ("nobody", json!({ "type": "list_secrets" }));
    for (_, command) in commands.iter().chain([&unknown]) {
        let malformed = json!({ "type": command["type"], "conversation_id": "nope", "limit": [] });
        for command in [command, &malformed] {
            let mut stranger = Client::websocket(home.address());
            stranger.send(command);
            let response = stranger.response();
            let said = (&response["code"], &response["error"]);
            let expected = "the first message must be \"auth\" with a token";
            assert_eq!(
                said,
                (&json!("invalid_token"), &json!(expected)),
                "{command}"
            );
            assert_eq!(stranger.next(), Err(End::Code(1008)), "{command}");
        }
    }
}

#[test]
fn only_an_admin_hears_of_approvals_and_settings() {
    let home = Home::start(json!({ "privacy": { "conversations": "household" } }));
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "subscribe" }));
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe" }));
    admin.send(&json!({ "type": "update_config", "config": { "model": "m" } }));
    admin.event("config.updated");
    admin.send(&json!({ "type": "chat", "message": "hello" }));
    let first = user.receive();
    assert_eq!(first["event"], "message.created", "{first}");
}

#[test]
fn a_token_ends_with_its_time() {
    let home = Home::offline();
    let body = json!({ "username": "user", "password": PASSWORD });
    let answer = post(home.address(), "/auth", &[], &body).json();
    let token = answer["data"]["token"].as_str().unwrap().to_owned();
    let mut client = home.websocket(&token);
    home.server()
        .advance_clock(Duration::from_secs(31 * 24 * 3600));
    assert_eq!(
        client.next(),
        Err(End::Code(1008)),
        "the open connection is closed"
    );
    let mut again = Client::websocket(home.address());
    assert_eq!(
        again.refused(json!({ "type": "auth", "token": token })),
        "invalid_token"
    );
}

#[test]
fn a_token_may_have_less_than_its_user() {
    let home = Home::offline();
    let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
    let admin = store.user("admin").unwrap().unwrap();
    let token = Secret::random_token();
    let new = NewToken {
        name: "display".to_owned(),
        ..NewToken::session(admin.id, UserRole::Viewer, fingerprint(token.expose()))
    };
    store.add_token(new).unwrap();
    store.close();
    let mut client = Client::websocket(home.address());
    let who: Value = client.authenticate(token.expose());
    assert_eq!(
        (&who["user"], &who["role"]),
        (&json!("admin"), &json!("viewer"))
    );
    assert_eq!(
        client.refused(json!({ "type": "chat", "message": "hello" })),
        "unauthorized"
    );
}

#[test]
fn settings_that_name_programs_and_paths_are_the_owners() {
    let home = Home::start(json!({
        "limits": { "commands_per_second": 100_000, "commands_burst": 100_000 },
    }));
    let mut guest = home.websocket(&home.tokens.viewer);
    let mut user = home.websocket(&home.tokens.user);
    let mut admin = home.admin();
    let mut closed = Vec::new();
    for setting in config::documentation() {
        let set = json!({ "type": "set_config", "path": setting.key, "value": null });
        for client in [&mut guest, &mut user, &mut admin] {
            assert_eq!(
                client.refused(set.clone()),
                "unauthorized",
                "{}",
                setting.key
            );
        }
        if setting.key.contains("NAME") || setting.key.contains('[') {
            continue;
        }
        let update = json!({ "type": "update_config", "config": { &setting.key: null } });
        for client in [&mut guest, &mut user] {
            assert_eq!(
                client.refused(update.clone()),
                "unauthorized",
                "{}",
                setting.key
            );
        }
        if !setting.writable {
            assert_eq!(admin.refused(update), "invalid_request", "{}", setting.key);
            closed.push(setting.key);
        }
    }
    for key in [
        "mcp_servers",
        "tools",
        "channels",
        "tls",
        "limits",
        "relay",
        "backup.directory",
        "backup.encrypt_to",
        "notifications.push_hosts",
        "voice",
    ] {
        assert!(closed.iter().any(|one| one == key), "{key}");
    }
    let change = json!({ "backup.keep": 3, "notifications.push_contact": "mailto:a@b.example" });
    let changed = admin.ask(json!({ "type": "update_config", "config": change }));
    assert_eq!(
        changed["updated_fields"],
        json!(["backup.keep", "notifications.push_contact"])
    );
    let keep = json!({ "type": "get_config", "path": "backup.keep" });
    assert_eq!(admin.ask(keep)["value"], 3);
    for command in [
        json!({ "type": "check_config" }),
        json!({ "type": "replace_config", "text": "{}", "was": "{}" }),
    ] {
        assert_eq!(admin.refused(command.clone()), "unauthorized", "{command}");
    }
    // A webhook account is an admin's, but not what widens its rights, nor a variable.
    let add = |more: Value| {
        let mut account = json!({ "incoming_path": "/x", "outgoing_url": "http://127.0.0.1:9/" });
        let more = more.as_object().unwrap().clone();
        account.as_object_mut().unwrap().extend(more);
        json!({ "type": "add_webhook_account", "name": "x", "account": account })
    };
    let remove = json!({ "type": "remove_webhook_account", "name": "x" });
    for client in [&mut guest, &mut user] {
        assert_eq!(client.refused(add(json!({}))), "unauthorized");
        assert_eq!(client.refused(remove.clone()), "unauthorized");
    }
    for (more, code) in [
        (json!({ "trusted": true }), "unauthorized"),
        (json!({ "tools": ["*"] }), "unauthorized"),
        (
            json!({ "tool_permissions": { "recall": "allow" } }),
            "unauthorized",
        ),
        (json!({ "secret": "${HOME}" }), "invalid_request"),
    ] {
        assert_eq!(admin.refused(add(more.clone())), code, "{more}");
    }
    admin.ask(add(json!({ "audience": ["user"] })));
    admin.ask(remove);
    admin.ask(json!({ "type": "list_webhook_accounts" }));
    let settings = guest.ask(json!({ "type": "list_settings" }));
    assert!(settings["settings"].as_array().unwrap().len() > 100);
}

#[test]
fn a_turn_is_stopped_by_whoever_asked_and_by_admins() {
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let home = Home::start(model.config());
    let cleo = home.add_person("cleo", UserRole::User);
    let turn = |token: &str, audience: Value, requests: usize| {
        let mut client = home.websocket(token);
        let mut watcher = home.websocket(token);
        watcher.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
        client.send(&json!({ "type": "chat", "message": "hello", "audience": audience }));
        let turn = watcher.event("message.created")["message"]["turn_id"].clone();
        model.wait_for_requests(requests);
        (client, json!({ "type": "cancel", "turn_id": turn }))
    };
    let (mut asking, cancel) = turn(&home.tokens.admin, json!("household"), 1);
    for other in [&home.tokens.user, &cleo] {
        assert_eq!(
            home.websocket(other).refused(cancel.clone()),
            "unauthorized"
        );
    }
    home.admin().ask(cancel);
    assert_eq!(asking.response()["data"]["state"], "cancelled");
    let (mut asking, cancel) = turn(&home.tokens.user, json!("household"), 2);
    assert_eq!(
        home.websocket(&cleo).refused(cancel.clone()),
        "unauthorized"
    );
    home.admin().ask(cancel);
    assert_eq!(asking.response()["data"]["state"], "cancelled");
    // What one does not see is not there, for an admin as well.
    let (mut asking, cancel) = turn(&home.tokens.user, json!(["cleo"]), 3);
    assert_eq!(home.admin().refused(cancel.clone()), "not_found");
    assert_eq!(
        home.websocket(&cleo).refused(cancel.clone()),
        "unauthorized"
    );
    home.websocket(&home.tokens.user).ask(cancel);
    assert_eq!(asking.response()["data"]["state"], "cancelled");
    model.release();
}

#[test]
fn what_an_admin_has_allowed_themselves_in_a_conversation_ends_with_the_role() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("write_file", json!({ "path": "a.txt", "content": "a" })),
        }
    });
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let second = json!({
        "type": "add_user", "name": "second", "password": PASSWORD, "role": "admin",
    });
    home.admin().ask(second);
    let second = home.token("second", &json!({}));
    let asking = || {
        let mut client = home.admin();
        client.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
        client
    };
    let mut admin = asking();
    admin.send(&json!({ "type": "chat", "message": "Write.", "id": "first" }));
    let id = admin.event("approval.requested")["approval_id"].clone();
    let approve = json!({ "type": "approve", "approval_id": id, "remember": "conversation" });
    home.admin().ask(approve);
    let conversation = admin.response()["data"]["conversation_id"].clone();
    let again = |client: &mut Client| {
        let chat = json!({ "type": "chat", "message": "Again.", "conversation_id": conversation });
        client.send(&chat);
    };
    again(&mut admin);
    assert_eq!(admin.response()["data"]["response"], "Done.");
    let demote = json!({ "type": "set_role", "name": "admin", "role": "user" });
    home.websocket(&second).ask(demote);
    let mut former = asking();
    again(&mut former);
    assert_eq!(former.event("approval.requested")["tool"], "write_file");
}

#[test]
fn what_an_admin_always_allows_themselves_ends_with_the_role() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("mark", json!({})),
        }
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "tools": { "custom": [{
            "name": "mark", "description": "Marks.", "parameters": {}, "command": ["true"],
        }] },
        "people": { "second": { "tool_permissions": {
            "run_command": "deny", "schedule": "allow_own",
        } } },
    })));
    let mut second = home.websocket(&home.add_person("second", UserRole::Admin));
    second.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    second.send(&json!({ "type": "chat", "message": "Mark." }));
    let id = second.event("approval.requested")["approval_id"].clone();
    let approve = json!({ "type": "approve", "approval_id": id, "remember": "always" });
    home.admin().ask(approve);
    assert_eq!(second.response()["data"]["response"], "Done.");
    let of_second = || {
        let users = home.admin().ask(json!({ "type": "list_users" }));
        let users = users["users"].as_array().unwrap().clone();
        let second = users.into_iter().find(|one| one["name"] == "second");
        second.unwrap()["limits"]["tool_permissions"].clone()
    };
    let allowed = json!({ "mark": "allow", "run_command": "deny", "schedule": "allow_own" });
    assert_eq!(of_second(), allowed);
    let demote = |name: &str| json!({ "type": "set_role", "name": name, "role": "user" });
    home.admin().ask(demote("second"));
    assert_eq!(of_second(), json!({ "run_command": "deny" }));
    // Who is no admin keeps what an admin lets them do.
    home.admin().ask(json!({
        "type": "set_limits", "name": "second", "limits": { "tool_permissions": { "mark": "allow" } },
    }));
    home.admin().ask(demote("second"));
    assert_eq!(of_second(), json!({ "mark": "allow" }));
}

/// Somebody who waits for an answer loses the right to what they asked for.
#[test]
fn a_question_ends_when_whoever_asked_may_not_do_it_any_more() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("write_file", json!({ "path": "a.txt", "content": "a" })),
        }
    });
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let mut admin = home.admin();
    admin
        .ask(json!({ "type": "subscribe", "events": ["approval.requested", "approval.resolved"] }));
    for (name, change) in [
        ("zoe", json!({ "type": "set_role", "role": "viewer" })),
        (
            "ben",
            json!({ "type": "set_limits", "limits": { "tools": ["recall"] } }),
        ),
        (
            "eve",
            json!({ "type": "set_limits", "limits": { "permission_mode": "deny" } }),
        ),
        ("leo", json!({ "type": "remove_user" })),
    ] {
        let mut asker = home.websocket(&home.add_person(name, UserRole::User));
        asker.send(&json!({ "type": "chat", "message": "Write.", "audience": "household" }));
        let asked = admin.event("approval.requested");
        let mut change = change;
        change["name"] = json!(name);
        home.admin().ask(change);
        let resolved = admin.event("approval.resolved");
        assert_eq!(resolved["approval_id"], asked["approval_id"], "{name}");
        let decided = (&resolved["decision"], &resolved["by"]);
        assert_eq!(decided, (&json!("denied"), &json!("hearth")), "{name}");
        let approve = json!({ "type": "approve", "approval_id": asked["approval_id"] });
        let refused = home.admin().refused(approve);
        if name == "zoe" {
            // A guest does not see what is the household's, so that the turn ends.
            assert_eq!(refused, "not_found");
            continue;
        }
        assert_eq!(refused, "invalid_request", "{name}");
        let last = eventually("the turn goes on", || {
            let request = model.requests().pop().unwrap();
            let last = request["messages"]
                .as_array()
                .unwrap()
                .last()
                .unwrap()
                .clone();
            (last["role"] == "tool").then_some(last)
        });
        let told = last["content"].to_string();
        assert!(told.contains("may not do this any more"), "{name}: {told}");
    }
    // A guest may cause nothing in a conversation of their own either.
    let mut asker = home.websocket(&home.add_person("ann", UserRole::User));
    asker.send(&json!({ "type": "chat", "message": "Write." }));
    admin.event("approval.requested");
    home.admin()
        .ask(json!({ "type": "set_role", "name": "ann", "role": "viewer" }));
    assert_eq!(admin.event("approval.resolved")["by"], "hearth");
    // A change of somebody else ends nothing.
    let mut asker = home.websocket(&home.tokens.user);
    asker.send(&json!({ "type": "chat", "message": "Write." }));
    let id = admin.event("approval.requested")["approval_id"].clone();
    let change = json!({ "type": "set_limits", "name": "ann", "limits": { "tools": [] } });
    home.admin().ask(change);
    home.admin()
        .ask(json!({ "type": "approve", "approval_id": id }));
    assert_eq!(asker.response()["data"]["response"], "Done.");
}
