//! A token that may do less than its person does nothing about the account: what each
//! command and route answers it. Whoever ends their own access is told so.

use super::narrow_tokens::{Reached, narrowed};
use super::*;
use base::testing::rows;
use protocol::command::DECLARATIONS;
use support::client::End;
use support::home::PASSWORD;
use support::http::delete;
use support::push::Browser;

/// Tokens of a user, by letter: of a guest, for the household, with some tools, for several
/// people.
const TOKENS: [(&str, &str); 4] = [
    ("g", r#"{"role":"viewer"}"#),
    ("h", r#"{"only":"household"}"#),
    ("t", r#"{"tools":["current_time"]}"#),
    ("s", r#"{"speaks_for":["cleo"]}"#),
];

/// Each command, and which of [`TOKENS`] it refuses; `-` for none.
const COMMANDS: &str = r#"
    g    | {"type":"chat","message":"hello"}
    gh   | {"type":"chat","message":"hello","audience":"private"}
    -    | {"type":"get_config"}
    ghts | {"type":"update_config","config":{}}
    ghts | {"type":"set_config","path":"model","value":"x"}
    ghts | {"type":"replace_config","text":"{}","was":"{}"}
    ghts | {"type":"check_config"}
    -    | {"type":"list_settings"}
    -    | {"type":"list_conversations"}
    -    | {"type":"get_messages","conversation_id":"conv_0000000000001"}
    -    | {"type":"list_tools"}
    -    | {"type":"ping"}
    -    | {"type":"subscribe","events":[]}
    -    | {"type":"get_turn","turn_id":"turn_0000000000001"}
    g    | {"type":"cancel","turn_id":"turn_0000000000001"}
    g    | {"type":"rename_conversation","conversation_id":"conv_0000000000001","title":"x"}
    g    | {"type":"update_conversation","conversation_id":"conv_0000000000001","pinned":true}
    -    | {"type":"mark_read","conversation_id":"conv_0000000000001"}
    g    | {"type":"select_version","message_id":"msg_0000000000001"}
    g    | {"type":"delete_message","message_id":"msg_0000000000001"}
    g    | {"type":"delete_conversation","conversation_id":"conv_0000000000001"}
    gh   | {"type":"share_conversation","conversation_id":"conv_0000000000001","audience":"private"}
    g    | {"type":"search_messages","query":"x"}
    g    | {"type":"put_attachment","name":"x","bytes":0}
    g    | {"type":"put_attachment_part","attachment_id":"att_0000000000001","data":""}
    -    | {"type":"get_attachment","attachment_id":"att_0000000000001"}
    -    | {"type":"read_attachment","attachment_id":"att_0000000000001"}
    g    | {"type":"list_approvals"}
    g    | {"type":"approve","approval_id":"appr_0000000000001"}
    g    | {"type":"deny","approval_id":"appr_0000000000001"}
    g    | {"type":"list_memories"}
    ght  | {"type":"add_memory","content":"x"}
    gt   | {"type":"update_memory","memory_id":"mem_0000000000001"}
    gt   | {"type":"delete_memory","memory_id":"mem_0000000000001"}
    g    | {"type":"list_lists"}
    g    | {"type":"get_list","list":"x"}
    gt   | {"type":"update_list","list":"x"}
    gt   | {"type":"delete_list","list":"x"}
    ghts | {"type":"list_available_tools"}
    ghts | {"type":"add_tool","name":"x","answers":{}}
    ghts | {"type":"remove_tool","name":"x"}
    ghts | {"type":"list_own_tools"}
    ghts | {"type":"list_webhook_accounts"}
    ghts | {"type":"add_webhook_account","name":"x","account":{}}
    ghts | {"type":"remove_webhook_account","name":"x"}
    ghts | {"type":"test_webhook_account","name":"x"}
    -    | {"type":"draw_address","url":"http://a.lan/"}
    t    | {"type":"list_calendars"}
    ght  | {"type":"add_calendar","name":"x","url":"x"}
    gt   | {"type":"add_calendar","name":"x","url":"x","audience":"household"}
    gt   | {"type":"update_calendar","calendar_id":"cal_0000000000001"}
    gt   | {"type":"remove_calendar","calendar_id":"cal_0000000000001"}
    t    | {"type":"list_events"}
    t    | {"type":"today"}
    g    | {"type":"list_skills"}
    ghts | {"type":"add_skill","directory":"/x"}
    ghts | {"type":"remove_skill","name":"x"}
    gt   | {"type":"create_schedule","prompt":"x","at":"+9h"}
    -    | {"type":"list_schedules"}
    gt   | {"type":"delete_schedule","schedule_id":"sched_0000000000001"}
    gt   | {"type":"pause_schedule","schedule_id":"sched_0000000000001"}
    gt   | {"type":"finish_reminder","schedule_id":"sched_0000000000001"}
    gt   | {"type":"snooze_reminder","schedule_id":"sched_0000000000001"}
    -    | {"type":"list_schedule_runs","schedule_id":"sched_0000000000001"}
    ghts | {"type":"get_quiet_hours"}
    ghts | {"type":"set_language"}
    ghts | {"type":"set_quiet_hours"}
    ghts | {"type":"list_deliveries"}
    ghts | {"type":"retry_delivery","delivery_id":"dlv_0000000000001"}
    -    | {"type":"export","part":0}
    -    | {"type":"server_info"}
    g    | {"type":"transcribe","audio":"AAAA","media_type":"audio/webm"}
    g    | {"type":"speak","text":"x"}
    ghts | {"type":"push_subscribe","subscription":SUBSCRIPTION}
    ghts | {"type":"push_unsubscribe","endpoint":"https://a.example/"}
    ghts | {"type":"test_notification","name":"user"}
    ghts | {"type":"find_models"}
    ghts | {"type":"list_errors"}
    ghts | {"type":"list_backups"}
    ghts | {"type":"start_backup"}
    ghts | {"type":"download_backup","name":"x","part":0}
    ghts | {"type":"back_up","part":0}
    ghts | {"type":"list_users"}
    ghts | {"type":"add_user","name":"x","password":"correct horse"}
    ghts | {"type":"invite_user","name":"x","url":"http://a.lan/"}
    ghts | {"type":"reset_password","name":"user","url":"http://a.lan/"}
    ghts | {"type":"list_invitations"}
    ghts | {"type":"revoke_invitation","name":"user"}
    ghts | {"type":"set_password","name":"user","password":"correct horse"}
    ghts | {"type":"set_role","name":"user","role":"viewer"}
    ghts | {"type":"set_limits","name":"user","limits":{}}
    ghts | {"type":"get_belongings","name":"user"}
    ghts | {"type":"create_session"}
    ghts | {"type":"get_usage"}
    ghts | {"type":"remove_user","name":"user"}
    ghts | {"type":"list_tokens"}
    ghts | {"type":"create_token","name":"wide"}
    ghts | {"type":"revoke_token","token_id":"SESSION"}
    ghts | {"type":"change_password","old_password":"PASSWORD","new_password":"correct horse"}
    ghts | {"type":"delete_account","password":"PASSWORD"}
    ghts | {"type":"list_own_tokens"}
    ghts | {"type":"revoke_own_token","token_id":"SESSION"}
    ghts | {"type":"sign_out_everywhere","tokens":true}
    -    | {"type":"list_people"}
    ghts | {"type":"set_display_name","display_name":"x"}
    ghts | {"type":"link_sender","account":"x"}
    ghts | {"type":"list_senders"}
    ghts | {"type":"unlink_sender","account":"x","sender":"y"}
"#;

/// Those that the table leaves out: a credential is asked for itself, and a token may
/// always end itself.
const LEFT_OUT: [&str; 2] = ["auth", "sign_out"];

#[test]
fn a_narrowed_token_does_nothing_about_the_account() {
    let house = House::empty();
    let address = house.home.address();
    let mut user = house.websocket(1);
    let own = user.ask(json!({ "type": "list_own_tokens" }));
    let session = own["tokens"][0]["token_id"].as_str().unwrap();
    let subscription = Browser::new().subscription("https://fcm.googleapis.com/a");
    let commands = COMMANDS
        .replace("PASSWORD", PASSWORD)
        .replace("SESSION", session)
        .replace("SUBSCRIPTION", &subscription.to_string());
    let commands: Vec<(&str, Value)> = rows(&commands)
        .into_iter()
        .map(|[refused, command]| (refused, serde_json::from_str(command).unwrap()))
        .collect();
    for declared in DECLARATIONS {
        let is_known = commands.iter().any(|(_, one)| one["type"] == declared.name);
        let is_left_out = LEFT_OUT.contains(&declared.name);
        assert!(is_known != is_left_out, "{}", declared.name);
    }
    for (letter, narrowing) in TOKENS {
        let token = narrowed(&house, &serde_json::from_str(narrowing).unwrap());
        let mut lines = Client::lines(address);
        lines.authenticate(&token);
        for mut client in [house.home.websocket(&token), lines] {
            for (refused, command) in &commands {
                let response = answer(&mut client, command);
                let is_refused = response["code"] == "unauthorized";
                let expected = refused.contains(letter);
                assert_eq!(is_refused, expected, "{narrowing} {command}: {response}");
            }
        }
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        let refuses = |path: &str, body: &Value| post(address, path, &headers, body).status == 403;
        let machine = json!({
            "machine_name": "x", "public_key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
        });
        let question = json!({
            "model": "hearth", "messages": [{ "role": "user", "content": "hello" }],
        });
        // All that a guest may do over HTTP is to read.
        for (path, body) in [
            ("/ws/register", &machine),
            ("/v1/chat/completions", &question),
            ("/attachments", &json!({})),
        ] {
            assert_eq!(refuses(path, body), letter == "g", "{narrowing} {path}");
        }
        // It ends itself, and nothing else.
        assert_eq!(delete(address, "/auth", &headers).status, 200);
        let mut again = Client::websocket(address);
        let auth = json!({ "type": "auth", "token": token });
        assert_eq!(again.refused(auth), "invalid_token");
        user.ask(json!({ "type": "ping" }));
    }
    let left = user.ask(json!({ "type": "list_own_tokens" }));
    assert_eq!(left["tokens"], own["tokens"]);
    let body = json!({ "username": "user", "password": PASSWORD });
    assert_eq!(post(address, "/auth", &[], &body).status, 200);
}

#[test]
fn whoever_ends_their_own_access_gets_the_answer_before_the_connection_closes() {
    let reached = Reached::new();
    let home = &reached.house.home;
    let session = || {
        let body = json!({ "username": "admin", "password": PASSWORD });
        let answer = post(home.address(), "/auth", &[], &body).json();
        answer["data"]["token"].as_str().unwrap().to_owned()
    };
    // What is sent, and what its answer has; OWN is the id of the token, NAME whose it is.
    for (command, answer) in [
        (r#"{"type":"sign_out"}"#, r#"{"revoked":true}"#),
        (r#"{"type":"sign_out_everywhere"}"#, r#"{"revoked":0}"#),
        (
            r#"{"type":"revoke_own_token","token_id":"OWN"}"#,
            r#"{"token_id":"OWN"}"#,
        ),
        (
            r#"{"type":"revoke_token","token_id":"OWN"}"#,
            r#"{"token_id":"OWN"}"#,
        ),
        (
            r#"{"type":"set_role","name":"NAME","role":"user"}"#,
            r#"{"role":"user"}"#,
        ),
        (
            r#"{"type":"remove_user","name":"NAME"}"#,
            r#"{"name":"NAME"}"#,
        ),
        (
            r#"{"type":"set_password","name":"admin","password":"PASSWORD"}"#,
            r#"{"name":"admin"}"#,
        ),
    ] {
        for place in 0..reached.connections(&home.tokens.admin).len() {
            let name = format!("ann{place}-{}", command.len());
            let token = match command.contains("set_password") {
                true => session(),
                false => home.add_person(&name, UserRole::Admin),
            };
            let mut connections = reached.connections(&token);
            let (way, client) = &mut connections[place];
            let own = client.ask(json!({ "type": "list_own_tokens" }));
            let is_own = |one: &&Value| one["is_current"] == true;
            let own = own["tokens"]
                .as_array()
                .unwrap()
                .iter()
                .find(is_own)
                .unwrap();
            let filled = |text: &str| -> Value {
                let text = text.replace("OWN", own["token_id"].as_str().unwrap());
                let text = text.replace("NAME", &name).replace("PASSWORD", PASSWORD);
                serde_json::from_str(&text).unwrap()
            };
            // Sessions end everywhere, and this is a token.
            let ends = !command.contains("everywhere");
            let data = client.ask(filled(command));
            for (field, expected) in filled(answer).as_object().unwrap() {
                assert_eq!(&data[field], expected, "{way}: {command}: {data}");
            }
            for (way, mut client) in connections.into_iter().filter(|_| ends) {
                let end = client.next();
                let expected = match way {
                    "JSON lines" => End::Closed,
                    _ => End::Code(1008),
                };
                assert_eq!(end, Err(expected), "{way}: {command}");
            }
        }
    }
    reached.stop();
}
