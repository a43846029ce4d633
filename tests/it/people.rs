//! People and tokens from the outside: what ends, ends at once.

use serde_json::json;

use support::client::{Client, End};
use support::home::{Home, PASSWORD};
use support::http::post;
use support::program::{printed, run};

fn sign_in(home: &Home, name: &str, password: &str) -> Result<String, u16> {
    let body = json!({ "username": name, "password": password });
    let answer = post(home.address(), "/auth", &[], &body);
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
        let asked = json!({ "type": "create_token", "name": "display", "user": "grace" });
        let made = admin.ask(asked);
        let token = made["token"].as_str().unwrap().to_owned();
        (made["token_id"].clone(), token)
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
