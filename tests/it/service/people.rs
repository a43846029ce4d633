//! People and tokens from the outside: what ends, ends at once.

use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::{Value, json};

use support::client::{Client, End};
use support::home::{Home, PASSWORD, TemporaryDirectory, Tokens, make_people, write_config};
use support::http::post;
use support::program::{Program, hearth, output_of, printed, run};

fn sign_in(home: &Home, name: &str, password: &str) -> Result<String, u16> {
    sign_in_at(home.address(), name, password)
}

fn sign_in_at(address: SocketAddr, name: &str, password: &str) -> Result<String, u16> {
    let body = json!({ "username": name, "password": password });
    let answer = post(address, "/auth", &[], &body);
    match answer.status {
        200 => Ok(answer.json()["data"]["token"].as_str().unwrap().to_owned()),
        status => Err(status),
    }
}

fn is_closed(client: &mut Client) -> bool {
    client.next() == Err(End::Code(1008))
}

#[test]
fn revoking_and_removing_close_open_connections() {
    let home = Home::offline();
    let mut admin = home.admin();
    admin.ask(json!({ "type": "add_user", "name": "grace", "password": "correct horse" }));
    let made = |admin: &mut Client| {
        let token = home.token("grace", &json!({}));
        let listed = admin.ask(json!({ "type": "list_tokens" }));
        (listed["tokens"][0]["token_id"].clone(), token)
    };
    let (first, token) = made(&mut admin);
    let mut display = home.websocket(&token);
    admin.ask(json!({ "type": "revoke_token", "token_id": first }));
    assert!(is_closed(&mut display));

    let (_, token) = made(&mut admin);
    let session = sign_in(&home, "grace", "correct horse").unwrap();
    let (mut by_token, mut by_session) = (home.websocket(&token), home.websocket(&session));
    admin.ask(json!({ "type": "set_password", "name": "grace", "password": "another horse" }));
    assert!(is_closed(&mut by_session), "sessions end");
    by_token.ask(json!({ "type": "ping" }));
    assert_eq!(sign_in(&home, "grace", "correct horse"), Err(401));
    assert!(sign_in(&home, "grace", "another horse").is_ok());

    admin.ask(json!({ "type": "remove_user", "name": "grace" }));
    assert!(is_closed(&mut by_token), "tokens go with their user");
    assert_eq!(sign_in(&home, "grace", "another horse"), Err(401));
    assert!(sign_in(&home, "user", PASSWORD).is_ok());
}

#[test]
fn a_role_that_is_taken_away_is_gone_from_open_connections() {
    let home = Home::offline();
    let role = |name: &str, role: &str| run(home.folder.path(), &["user", "role", name, role]);
    let mut session = home.websocket(&sign_in(&home, "user", PASSWORD).unwrap());
    let mut token = home.websocket(&home.tokens.user);
    let promoted = role("user", "admin");
    assert!(promoted.status.success(), "{}", printed(&promoted));
    assert!(is_closed(&mut session), "it signs in again as an admin");
    // A token keeps what it was made for.
    assert_eq!(
        token.refused(json!({ "type": "list_users" })),
        "unauthorized"
    );

    let mut admin = home.websocket(&sign_in(&home, "user", PASSWORD).unwrap());
    admin.ask(json!({ "type": "list_users" }));
    let mut by_token = home.admin();
    for (name, new) in [("user", "viewer"), ("user", "admin"), ("admin", "user")] {
        let done = role(name, new);
        assert!(done.status.success(), "{}", printed(&done));
    }
    assert!(is_closed(&mut admin) && is_closed(&mut by_token));
    let mut again = home.admin();
    assert_eq!(
        again.refused(json!({ "type": "list_users" })),
        "unauthorized"
    );
    let last = role("user", "user");
    assert!(!last.status.success() && printed(&last).contains("last admin"));
}

#[test]
fn sessions_are_listed_when_asked_for_and_can_be_ended() {
    let home = Home::offline();
    let mut admin = home.admin();
    let session = sign_in(&home, "user", PASSWORD).unwrap();
    let mut open = home.websocket(&session);
    let count = |admin: &mut Client, sessions: bool| {
        let listed = admin.ask(json!({ "type": "list_tokens", "sessions": sessions }));
        assert!(!listed.to_string().contains(&session), "it is shown once");
        listed["tokens"].as_array().unwrap().len()
    };
    let apart = count(&mut admin, false);
    assert_eq!(count(&mut admin, true), apart + 1);
    let listed = admin.ask(json!({ "type": "list_tokens", "sessions": true }));
    let newest = &listed["tokens"][0];
    assert_eq!(
        (&newest["name"], &newest["user"]),
        (&json!("session"), &json!("user"))
    );
    admin.ask(json!({ "type": "revoke_token", "token_id": newest["token_id"] }));
    assert!(is_closed(&mut open));
}

/// POST /auth with the secret of a link, and the password that its person chose.
fn by_link(address: SocketAddr, link: &str, password: Option<&str>) -> (u16, Value) {
    let (_, secret) = link.split_once("#invite=").unwrap();
    let mut body = json!({ "invitation": secret });
    if let Some(password) = password {
        body["password"] = json!(password);
    }
    let answer = post(address, "/auth", &[], &body);
    (answer.status, answer.json())
}

#[test]
fn an_invitation_lets_a_person_choose_a_password_once() {
    let home = Home::offline();
    let mut admin = home.admin();
    let page = format!("http://{}/", home.address());
    let asked = json!({ "type": "invite_user", "name": "grace", "child": true, "url": page });
    let made = admin.ask(asked.clone());
    let link = made["link"].as_str().unwrap().to_owned();
    assert!(
        link.starts_with(&format!("{page}#invite=hearth_")),
        "{link}"
    );
    let rows = made["qr"].as_array().unwrap();
    assert!(
        rows.len() > 20
            && rows
                .iter()
                .all(|row| row.as_str().unwrap().len() == rows.len())
    );
    assert_eq!(admin.refused(asked), "invalid_request");

    // Until then nobody signs in with that name, and lists hold no link.
    assert_eq!(sign_in(&home, "grace", ""), Err(401));
    let listed = admin.ask(json!({ "type": "list_invitations" }));
    assert_eq!(listed["invitations"][0]["name"], "grace");
    let database = std::fs::read(home.folder.path().join("hearth.db-wal")).unwrap();
    let (_, secret) = link.split_once('=').unwrap();
    for place in [listed.to_string().into_bytes(), database] {
        assert!(
            !place
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        );
    }
    let users = admin.ask(json!({ "type": "list_users" }))["users"].clone();
    let grace = users
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "grace")
        .unwrap();
    assert_eq!(grace["is_invited"], true);
    assert_eq!(
        grace["limits"]["tools"].as_array().unwrap().len(),
        7,
        "{grace}"
    );

    let (status, about) = by_link(home.address(), &link, None);
    assert_eq!((status, &about["data"]["name"]), (200, &json!("grace")));
    let (status, weak) = by_link(home.address(), &link, Some("short"));
    assert_eq!((status, &weak["code"]), (400, &json!("invalid_request")));
    let (status, accepted) = by_link(home.address(), &link, Some("correct horse"));
    assert_eq!((status, &accepted["data"]["user"]), (200, &json!("grace")));
    let mut session = home.websocket(accepted["data"]["token"].as_str().unwrap());
    session.ask(json!({ "type": "ping" }));
    for password in [None, Some("another horse")] {
        let (status, again) = by_link(home.address(), &link, password);
        assert_eq!((status, &again["code"]), (401, &json!("invalid_token")));
    }
    assert!(sign_in(&home, "grace", "correct horse").is_ok());
    assert!(
        admin.ask(json!({ "type": "list_invitations" }))["invitations"]
            .as_array()
            .unwrap()
            .is_empty()
    );

    // A reset keeps the password until its link is used, and then ends sessions.
    let reset = json!({ "type": "reset_password", "name": "Grace", "url": page });
    let link = admin.ask(reset)["link"].as_str().unwrap().to_owned();
    session.ask(json!({ "type": "ping" }));
    assert!(sign_in(&home, "grace", "correct horse").is_ok());
    assert_eq!(by_link(home.address(), &link, Some("third horse")).0, 200);
    assert!(is_closed(&mut session));
    assert_eq!(sign_in(&home, "grace", "correct horse"), Err(401));
    assert!(sign_in(&home, "grace", "third horse").is_ok());

    // Who is removed leaves no limits to the next of that name.
    admin.ask(json!({ "type": "remove_user", "name": "grace" }));
    admin.ask(json!({ "type": "add_user", "name": "grace", "password": "correct horse" }));
    let users = admin.ask(json!({ "type": "list_users" }))["users"].clone();
    let grace = users
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "grace")
        .unwrap();
    assert_eq!(grace["limits"], Value::Null);
}

#[test]
fn a_link_can_be_revoked_and_not_be_guessed() {
    let home = Home::offline();
    let mut admin = home.admin();
    let page = format!("http://{}/", home.address());
    let mut invite = |name: &str| {
        let asked = json!({ "type": "invite_user", "name": name, "url": page });
        admin.ask(asked)["link"].as_str().unwrap().to_owned()
    };
    let (grace, alan) = (invite("grace"), invite("alan"));
    admin.ask(json!({ "type": "revoke_invitation", "name": "grace" }));
    assert_eq!(by_link(home.address(), &grace, None).0, 401);
    let users = admin.ask(json!({ "type": "list_users" })).to_string();
    assert!(
        !users.contains("grace") && users.contains("alan"),
        "{users}"
    );
    let none = json!({ "type": "revoke_invitation", "name": "user" });
    assert_eq!(admin.refused(none), "not_found");

    // Wrong links keep neither those that work nor passwords out, and wrong passwords
    // keep out no link.
    for _ in 0..20 {
        for password in [None, Some("correct horse")] {
            assert_eq!(by_link(home.address(), &grace, password).0, 401);
        }
    }
    assert!(sign_in(&home, "user", PASSWORD).is_ok());
    let refused = (0..10).map(|_| sign_in(&home, "admin", "wrong"));
    assert_eq!(refused.last(), Some(Err(429)));
    assert_eq!(by_link(home.address(), &alan, None).0, 200);
    assert_eq!(by_link(home.address(), &alan, Some("correct horse")).0, 200);
}

#[test]
fn the_command_line_makes_links_to_the_server_that_runs() {
    // A process of its own, which is told to reload its configuration.
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let hearth = |words: &[&str]| {
        let ran = run(folder.path(), words);
        (ran.status.success(), printed(&ran))
    };
    let invited = run(folder.path(), &["user", "invite", "grace", "--child"]);
    assert!(invited.status.success(), "{}", printed(&invited));
    let link = String::from_utf8(invited.stdout).unwrap();
    let link = link.trim();
    assert!(
        link.starts_with(&format!("http://{}/#invite=", program.address)),
        "{link}"
    );
    let (_, listed) = hearth(&["user", "invitations"]);
    assert!(
        listed.contains("grace") && listed.contains("the first sign-in"),
        "{listed}"
    );
    let (_, users) = hearth(&["user", "list"]);
    assert!(
        users.contains("user, invited") && users.contains("7 tools"),
        "{users}"
    );
    assert_eq!(by_link(program.address, link, Some("correct horse")).0, 200);
    assert!(sign_in_at(program.address, "grace", "correct horse").is_ok());

    let (done, said) = hearth(&[
        "user",
        "reset",
        "grace",
        "--url",
        "https://hearth.lan",
        "--qr",
    ]);
    assert!(
        done && said.contains("https://hearth.lan/#invite=") && said.contains('█'),
        "{said}"
    );
    assert!(hearth(&["user", "revoke", "grace"]).0);
    assert!(!hearth(&["user", "revoke", "grace"]).0);
    let (done, said) = hearth(&["user", "remove", "grace", "--yes"]);
    assert!(
        done && said.contains("grace has nothing that nobody else sees"),
        "{said}"
    );
    let (_, config) = hearth(&["config", "get", "people"]);
    assert!(!config.contains("grace"), "{config}");
}

#[test]
fn limits_are_changed_one_by_one_and_people_are_known_to_members() {
    let told = json!({ "ntfy": { "url": "https://ntfy.example", "topic": "of-user", "token": "tk_secret" } });
    let home = Home::start(json!({ "people": {
        "user": { "notifications": told, "approves": ["remember"], "monthly_tokens": 5000 },
    } }));
    let mut admin = home.admin();
    let limits = json!({ "monthly_tokens": null, "instructions": "Answers for a nine year old." });
    let changed = admin.ask(json!({ "type": "set_limits", "name": "user", "limits": limits }));
    let limits = &changed["limits"];
    assert_eq!(
        [
            &limits["monthly_tokens"],
            &limits["instructions"],
            &limits["approves"]
        ],
        [
            &Value::Null,
            &json!("Answers for a nine year old."),
            &json!(["remember"])
        ]
    );
    let kept = std::fs::read_to_string(home.folder.path().join("config.json")).unwrap();
    assert!(
        kept.contains("of-user") && kept.contains("secret"),
        "{kept}"
    );
    let strange = json!({ "type": "set_limits", "name": "user", "limits": { "age": 9 } });
    assert_eq!(admin.refused(strange), "invalid_request");
    let mut user = home.websocket(&home.tokens.user);
    let people = user.ask(json!({ "type": "list_people" }));
    let one = |name: &str| json!({ "name": name, "display_name": name, "role": name });
    assert_eq!(
        people["people"],
        json!(["admin", "user", "viewer"].map(one))
    );
}

#[test]
fn people_manage_their_own_account() {
    let home = Home::offline();
    let first = sign_in(&home, "user", PASSWORD).unwrap();
    let second = sign_in(&home, "user", PASSWORD).unwrap();
    let (mut here, mut there) = (home.websocket(&first), home.websocket(&second));
    let change = |old: &str, new: &str| json!({ "type": "change_password", "old_password": old, "new_password": new });
    assert_eq!(
        here.refused(change("wrong horse", "correct horse")),
        "unauthorized"
    );
    assert_eq!(here.refused(change(PASSWORD, "short")), "invalid_request");
    here.ask(change(PASSWORD, "correct horse"));
    assert!(is_closed(&mut there), "other sessions end");
    assert_eq!(sign_in(&home, "user", PASSWORD), Err(401));

    let second = sign_in(&home, "user", "correct horse").unwrap();
    let mut there = home.websocket(&second);
    let listed = here.ask(json!({ "type": "list_own_tokens" }));
    let mine = listed["tokens"].as_array().unwrap();
    assert!(
        mine.len() >= 2 && mine.iter().all(|one| one["user"] == "user"),
        "{listed}"
    );
    let is_session = |one: &&Value| one["name"] == "session";
    let other = mine
        .iter()
        .filter(is_session)
        .find(|one| one["is_current"] == false);
    let of_admin = home.admin().ask(json!({ "type": "list_own_tokens" }));
    let revoke = |id: &Value| json!({ "type": "revoke_own_token", "token_id": id });
    let not_mine = revoke(&of_admin["tokens"][0]["token_id"]);
    assert_eq!(here.refused(not_mine), "not_found");
    here.ask(revoke(&other.unwrap()["token_id"]));
    assert!(is_closed(&mut there));

    let third = sign_in(&home, "user", "correct horse").unwrap();
    let mut there = home.websocket(&third);
    let mut program = home.websocket(&home.tokens.user);
    here.ask(json!({ "type": "sign_out_everywhere" }));
    assert!(is_closed(&mut here) && is_closed(&mut there));
    program.ask(json!({ "type": "ping" }));
    program.ask(json!({ "type": "sign_out_everywhere", "tokens": true }));
    assert!(is_closed(&mut program));
    home.admin().ask(json!({ "type": "ping" }));
}

#[test]
fn own_passwords_are_guessed_as_slowly_as_others() {
    let home = Home::offline();
    let mut program = home.websocket(&home.tokens.user);
    let guess = json!({
        "type": "change_password", "old_password": "wrong horse", "new_password": "correct horse",
    });
    let codes: Vec<String> = (0..6).map(|_| program.refused(guess.clone())).collect();
    assert_eq!(codes[4], "unauthorized");
    assert_eq!(codes[5], "rate_limited");
}

/// A server of its own process, with the people of the tests.
fn serve() -> (TemporaryDirectory, Program, Tokens) {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let people = make_people(folder.path());
    let program = Program::serve(folder.path());
    (folder, program, people)
}

fn account(folder: &TemporaryDirectory, words: &[&str], input: &str) -> (bool, String) {
    let words = [&["account"], words, &["--user", "user"]].concat();
    let mut command = hearth(folder.path());
    command.args(words).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let ran = output_of(child);
    (ran.status.success(), printed(&ran))
}

#[test]
fn the_command_line_looks_after_one_s_own_account() {
    let (folder, program, people) = serve();
    let mut client = Client::websocket(program.address);
    client.authenticate(&people.user);
    client.chat("mine alone");
    let mut admin = Client::websocket(program.address);
    admin.authenticate(&people.admin);
    admin.chat("of the admin");
    let word = format!("{PASSWORD}\n");

    let (done, said) = account(&folder, &["sessions"], &word);
    assert!(done && said.contains("session (this one)"), "{said}");
    let (done, said) = account(&folder, &["memories"], &word);
    assert!(done && said.contains("There is nothing"), "{said}");
    let file = folder.join("mine.jsonl");
    let path = file.to_str().unwrap();
    let (done, said) = account(&folder, &["export", "--output", path], &word);
    assert!(done && said.contains("1 conversation"), "{said}");
    let exported = std::fs::read_to_string(&file).unwrap();
    assert!(exported.starts_with(r#"{"type":"hearth_export","version":1,"has_end":true}"#));
    assert!(
        exported.contains("mine alone") && !exported.contains("of the admin"),
        "{exported}"
    );
    let both = format!("{PASSWORD}\ncorrect horse\n");
    assert!(account(&folder, &["passwd"], &both).0);
    assert!(!account(&folder, &["sessions"], &word).0);
    let (done, said) = account(&folder, &["sign-out"], "correct horse\n");
    assert!(done, "{said}");
    client.ask(json!({ "type": "ping" }));

    let nobody = run(folder.path(), &["account", "sessions"]);
    assert!(
        printed(&nobody).contains("say whose account"),
        "{}",
        printed(&nobody)
    );
    let (done, said) = account(&folder, &["delete"], "correct horse\n");
    assert!(
        !done && said.contains("without a terminal, --yes"),
        "{said}"
    );
    let (done, said) = account(&folder, &["delete", "--yes"], "correct horse\n");
    assert!(done, "{said}");
    assert!(is_closed(&mut client));
    assert_eq!(
        sign_in_at(program.address, "user", "correct horse"),
        Err(401)
    );
    let mut found = || {
        let sought = json!({ "type": "search_messages", "query": "alone" });
        admin.ask(sought)["messages"].as_array().unwrap().len()
    };
    assert_eq!(found(), 0, "what was theirs is gone");
    // Nobody has that name any more: what was theirs is private to whoever imports it.
    let imported = run(folder.path(), &["import", path]);
    let said = printed(&imported);
    assert!(imported.status.success(), "{said}");
    assert!(said.contains("Nobody here is called user"), "{said}");
    assert!(found() > 0);
    let listed = admin.ask(json!({ "type": "list_conversations" }));
    let own = |one: &Value| one["owner"] == "admin" && one["audience"] == "private";
    assert!(
        listed["conversations"].as_array().unwrap().iter().all(own),
        "{listed}"
    );
    let last = json!({ "type": "delete_account", "password": PASSWORD });
    assert_eq!(
        admin.refused(last),
        "invalid_request",
        "the last admin stays"
    );
}

#[test]
fn a_narrowed_token_stays_narrow() {
    let home = Home::start(json!({ "openai_api": { "enabled": true } }));
    let mut admin = home.admin();
    let mut made = |more: Value| {
        let mut asked = json!({ "type": "create_token", "name": "display" });
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        admin.ask(asked)["token"].as_str().unwrap().to_owned()
    };
    let plan = json!({ "type": "create_schedule", "prompt": "x", "at": "+1h" });
    let plan = home.admin().ask(plan)["schedule_id"].clone();
    let lights = made(json!({ "tools": ["current_time"] }));
    let mut client = home.websocket(&lights);
    client.chat("hello");
    for refused in [
        json!({ "type": "create_schedule", "prompt": "x", "at": "+1h" }),
        json!({ "type": "pause_schedule", "schedule_id": plan }),
        json!({ "type": "delete_schedule", "schedule_id": plan }),
        json!({ "type": "list_users" }),
    ] {
        assert_eq!(client.refused(refused), "unauthorized");
    }
    let bot = home.token("admin", &json!({ "speaks_for": ["user"] }));
    let ask = |name: &str| {
        let bearer = format!("Bearer {bot}");
        let headers = [("Authorization", bearer.as_str()), ("X-Hearth-User", name)];
        let body =
            json!({ "model": "hearth", "messages": [{ "role": "user", "content": "by the bot" }] });
        post(home.address(), "/v1/chat/completions", &headers, &body).status
    };
    assert_eq!([ask("user"), ask("USER"), ask("admin")], [200; 3]);
    assert_eq!([ask("viewer"), ask("nobody")], [403; 2]);
    // Open WebUI's header counts as well.
    let ask_open_webui = |token: &str, name: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("X-OpenWebUI-User-Name", name),
        ];
        let body = json!({ "model": "hearth", "messages": [{ "role": "user", "content": "from a page" }] });
        post(home.address(), "/v1/chat/completions", &headers, &body).status
    };
    assert_eq!(ask_open_webui(&bot, "Us%65r"), 200);
    assert_eq!(ask_open_webui(&bot, "Bob"), 403);
    assert_eq!(ask_open_webui(&home.tokens.admin, "Bob"), 403);
    let page = home
        .websocket(&home.tokens.user)
        .ask(json!({ "type": "search_messages", "query": "page" }));
    let page = page["messages"].as_array().unwrap();
    let said = page.iter().find(|one| one["role"] == "user").unwrap();
    assert_eq!(said["speaker"], "user", "{page:?}");
    let mut user = home.websocket(&home.tokens.user);
    let found = user.ask(json!({ "type": "search_messages", "query": "bot" }));
    assert!(
        found["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["speaker"] == "user")
    );
    let asked =
        json!({ "type": "create_token", "name": "x", "only": "household", "role": "admin" });
    assert_eq!(admin.refused(asked), "invalid_request");
}

#[test]
fn nobody_is_removed_where_nobody_can_be_asked() {
    let folder = TemporaryDirectory::new();
    make_people(folder.path());
    for (words, is_removed) in [
        (&["user", "remove", "viewer"][..], false),
        (&["user", "remove", "viewer", "--yes"], true),
    ] {
        // With a closed standard input, and with one that says yes to nobody.
        for input in [None, Some("y\n")] {
            let mut command = hearth(folder.path());
            command.args(words).stderr(Stdio::piped());
            command.stdin(match input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            });
            let mut child = command.spawn().unwrap();
            if let (Some(input), Some(stdin)) = (input, &mut child.stdin) {
                // It need not read it.
                let _ = stdin.write_all(input.as_bytes());
            }
            let ran = output_of(child);
            let said = printed(&ran);
            if !is_removed {
                assert!(!ran.status.success(), "{said}");
                assert!(
                    said.contains("nothing was deleted: without a terminal, --yes"),
                    "{said}"
                );
            }
            let listed = printed(&run(folder.path(), &["user", "list"]));
            assert_eq!(listed.contains("viewer"), !is_removed, "{said}");
        }
    }
}

#[test]
fn signing_out_everywhere_ends_the_links_that_would_let_somebody_in() {
    let home = Home::offline();
    let page = format!("http://{}/", home.address());
    let reset = json!({ "type": "reset_password", "name": "user", "url": page });
    let reset = || {
        home.admin().ask(reset.clone())["link"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let here = || home.websocket(&sign_in(&home, "user", PASSWORD).unwrap());
    let link = reset();
    here().ask(json!({ "type": "sign_out_everywhere" }));
    assert_eq!(by_link(home.address(), &link, None).0, 401);
    let link = reset();
    here().ask(json!({
        "type": "change_password", "old_password": PASSWORD, "new_password": "correct horse",
    }));
    assert_eq!(by_link(home.address(), &link, None).0, 401);
}

#[test]
fn nobody_new_has_a_name_that_stands_for_others() {
    let home = Home::offline();
    let mut admin = home.admin();
    let page = format!("http://{}/", home.address());
    for name in [
        "assistant",
        "System",
        "HEARTH",
        "h\u{e9}arth",
        "syst\u{e8}me",
        "hearth-",
    ] {
        let add = json!({ "type": "add_user", "name": name, "password": PASSWORD });
        let invite = json!({ "type": "invite_user", "name": name, "url": page });
        for request in [add, invite] {
            admin.send(&request);
            let refused = admin.response()["error"].to_string();
            let says = refused.contains("nobody is called");
            assert_eq!(says, name != "syst\u{e8}me", "{name}: {refused}");
        }
    }
    // Who has one already keeps it.
    let token = home.add_person("system", store::UserRole::User);
    home.websocket(&token).chat("hello");
    admin.ask(json!({ "type": "set_role", "name": "system", "role": "viewer" }));
}

#[test]
fn a_crash_while_somebody_is_removed_leaves_none_of_their_files() {
    let mut home = Home::offline();
    home.add_person("ann", store::UserRole::User);
    home.add_person("ben", store::UserRole::User);
    let people = home.folder.path().join("people");
    home.stop();
    let path = home.folder.path().join("hearth.db");
    let store = store::Store::open(&path, home.clock.clone()).unwrap();
    let id = |name: &str| store.user(name).unwrap().unwrap().id;
    let (ann, ben, heir) = (id("ann"), id("ben"), id("user"));
    for person in [ann, ben] {
        let folder = people.join(person.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("diary.txt"), "x").unwrap();
    }
    // The commit is all that came of it.
    store.remove_user(ann, None).unwrap();
    store.remove_user(ben, Some(heir)).unwrap();
    store.close();
    home.restart();
    let left = std::fs::read_dir(&people).unwrap().flatten();
    let left: Vec<_> = left.map(|one| one.path()).collect();
    assert_eq!(left, [people.join(heir.to_string())]);
    assert!(left[0].join("from-ben/diary.txt").exists());
}
