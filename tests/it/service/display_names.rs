//! What people are called, beside the name they sign in with.

use serde_json::{Value, json};

use base::people::UserRole;
use support::home::{Home, PASSWORD};
use support::http::post;
use support::model::{Act, Model};
use support::program::{printed, run};

fn called(people: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let people = people["people"].as_array().unwrap().iter();
    people
        .map(|one| (text(&one["name"]), text(&one["display_name"])))
        .collect()
}

#[test]
fn people_are_called_what_they_like_and_sign_in_as_before() {
    let model = Model::saying("Hello.");
    let home = Home::start(model.config());
    let mut user = home.websocket(&home.tokens.user);
    let set = |name: &str| json!({ "type": "set_display_name", "display_name": name });
    assert_eq!(user.ask(set("Oma Trude"))["display_name"], "Oma Trude");
    // Nobody passes for somebody else.
    let mut admin = home.admin();
    for taken in ["oma trude", "USER", "Ada\n", "", "viewer by webhook x"] {
        let named = json!({ "type": "set_display_name", "display_name": taken, "name": "viewer" });
        match taken {
            "" => assert_eq!(admin.ask(named)["display_name"], "viewer"),
            _ => assert_eq!(admin.refused(named), "invalid_request", "{taken:?}"),
        }
    }
    for (taken, why) in [
        ("O.m.a  Trude", "looks the same"),
        ("us er", "looks the same"),
        ("\u{ff35}\u{ff33}\u{ff25}\u{ff32}", "looks the same"),
        ("Hearth", "nobody is called \"Hearth\""),
        ("\u{ff28}earth.", "nobody is called \"Hearth\""),
        ("Assis tant", "nobody is called \"assistant\""),
        ("Everybody!", "nobody is called \"everybody\""),
        ("Ada\n", "no hidden characters"),
    ] {
        let named = json!({ "type": "set_display_name", "display_name": taken, "name": "viewer" });
        admin.send(&named);
        let refused = admin.response()["error"].to_string().replace('\\', "");
        assert!(refused.contains(why), "{taken:?}: {refused}");
    }
    let add = json!({ "type": "add_user", "name": "trude", "password": PASSWORD, "display_name": "oma Trude" });
    assert_eq!(admin.refused(add), "invalid_request");
    let other = json!({ "type": "set_display_name", "display_name": "Boss", "name": "admin" });
    assert_eq!(user.refused(other), "unauthorized");
    // Signing in is as before.
    let sign_in = |name: &str| {
        let body = json!({ "username": name, "password": PASSWORD });
        post(home.address(), "/auth", &[], &body).status
    };
    assert_eq!((sign_in("user"), sign_in("Oma Trude")), (200, 401));
    // It is what the model reads, also of what was said before.
    user.ask(set(""));
    let chat = user.chat("first");
    user.ask(set("Oma Trude"));
    let id = &chat["conversation_id"];
    user.ask(json!({ "type": "chat", "message": "second", "conversation_id": id }));
    let request = model.requests().pop().unwrap().to_string();
    assert_eq!(request.matches("[Oma Trude, ").count(), 2, "{request}");
    assert!(!request.contains("[user, "), "{request}");
    assert!(
        request.contains("Who lives here: admin (admin), Oma Trude."),
        "{request}"
    );
    // Records keep the name, and everybody can look up what it stands for.
    let listed = user.ask(json!({ "type": "list_conversations" }));
    assert_eq!(listed["conversations"][0]["owner"], "user");
    let list = json!({ "type": "list_people" });
    assert!(called(&user.ask(list.clone())).contains(&("user".into(), "Oma Trude".into())));
    // A guest knows those who see the same.
    let mut guest = home.websocket(&home.tokens.viewer);
    assert_eq!(
        called(&guest.ask(list.clone())),
        [("viewer".into(), "viewer".into())]
    );
    let share =
        json!({ "type": "share_conversation", "conversation_id": id, "audience": ["viewer"] });
    user.ask(share);
    let known = called(&guest.ask(list));
    assert_eq!(known.len(), 2, "{known:?}");
    let mut again = home.websocket(&home.tokens.user);
    let greeted = again.authenticate(&home.tokens.user);
    assert_eq!(greeted["display_name"], "Oma Trude", "{greeted}");
}

#[test]
fn the_terminal_adds_lists_and_renames() {
    let home = Home::offline();
    let folder = home.folder.path();
    home.add_person("grace", UserRole::User);
    let renamed = printed(&run(folder, &["user", "rename", "grace", "Grace Hopper"]));
    assert!(
        renamed.contains("grace is called Grace Hopper now."),
        "{renamed}"
    );
    let listed = String::from_utf8(run(folder, &["user", "list"]).stdout).unwrap();
    assert!(listed.contains("Grace Hopper"), "{listed}");
    let listed = |words: &[&str]| String::from_utf8(run(folder, words).stdout).unwrap();
    let tokens = listed(&["token", "list"]);
    assert!(tokens.contains("Grace Hopper (grace)"), "{tokens}");
    let tokens = listed(&["token", "list", "--json"]);
    assert!(!tokens.contains("Grace Hopper"), "{tokens}");
    let account = "webhook add door --url http://127.0.0.1:9/ --audience grace,user";
    run(folder, &account.split(' ').collect::<Vec<_>>());
    let accounts = listed(&["webhook", "list"]);
    assert!(accounts.contains("Grace Hopper (grace)"), "{accounts}");
    let url = format!("ws://{}/ws", home.address());
    let words = [
        "account",
        "rename",
        "李雷",
        "--url",
        &url,
        "--token",
        &home.tokens.user,
    ];
    let renamed = printed(&run(folder, &words));
    assert!(renamed.contains("You are called 李雷 now."), "{renamed}");
    let invite = [
        "user",
        "invite",
        "leo",
        "--display-name",
        "Leo der Kleine",
        "--url",
        "http://a/",
    ];
    run(folder, &invite);
    // Whoever follows the link is greeted so.
    let invited = home.admin().ask(json!({ "type": "list_invitations" }));
    let called = &invited["invitations"][0]["display_name"];
    assert_eq!(called, "Leo der Kleine", "{invited}");
    let listed = String::from_utf8(run(folder, &["user", "list"]).stdout).unwrap();
    assert!(listed.contains("Leo der Kleine"), "{listed}");
}

#[test]
fn errors_and_questions_say_what_people_are_called() {
    let model = Model::acting(vec![Act::call("remember", json!({ "content": "Milk" }))]);
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let (mut user, mut admin) = (home.websocket(&home.tokens.user), home.admin());
    for (client, name) in [(&mut user, "Oma Trude"), (&mut admin, "Boss")] {
        client.ask(json!({ "type": "set_display_name", "display_name": name }));
    }
    let tea = json!({ "type": "add_memory", "content": "Tea", "audience": "household" });
    let tea = user.ask(tea)["memory_id"].clone();
    user.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    user.send(&json!({ "type": "chat", "message": "Milk!" }));
    let asked = user.event("approval.requested");
    assert_eq!(asked["requested_by"], "user");
    assert_eq!(asked["origin"], "Oma Trude asks");
    let always = asked["answers"][2]["sentence"].as_str().unwrap();
    assert!(always.ends_with("when Oma Trude asks."), "{always}");
    let approve = json!({ "type": "approve", "approval_id": asked["approval_id"] });
    admin.ask(approve.clone());
    let mut ben = home.websocket(&home.add_person("ben", UserRole::User));
    for (is_admin, request, why) in [
        (true, approve, "by Boss"),
        (
            false,
            json!({ "type": "delete_memory", "memory_id": tea }),
            "only Oma Trude or an admin may change this memory",
        ),
        (
            true,
            json!({ "type": "update_memory", "memory_id": tea, "audience": "private" }),
            "this memory is of Oma Trude",
        ),
    ] {
        let client = if is_admin { &mut admin } else { &mut ben };
        client.send(&request);
        let refused = client.response()["error"].to_string();
        assert!(refused.contains(why), "{refused}");
    }
}
