//! What MCP servers ask the person of a turn while a tool runs (elicitation).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use base::clock::Clock;
use serde_json::{Value, json};
use store::{Store, UserRole};

use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::http::post;
use support::program::{Program, printed, run, whole_lines};

/// A server whose MCP server asks.
struct Asking {
    home: Home,
    notes: TemporaryDirectory,
}

/// A configuration with the MCP server that asks.
fn config(notes: &TemporaryDirectory, entry: Value, more: Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_asking.sh");
    let mut server = json!({
        "command": "sh", "args": [script], "env": {"STUB_NOTES": notes.path().join("notes")},
    });
    for (key, value) in entry.as_object().unwrap() {
        match key.as_str() {
            "revision" => server["env"]["STUB_REVISION"] = value.clone(),
            key => server[key] = value.clone(),
        }
    }
    let mut config = json!({
        "permission_mode": "allow",
        "mcp_servers": {"desk": server},
        "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
    });
    for (key, value) in more.as_object().unwrap() {
        match (value, config.get_mut(key)) {
            (Value::Object(members), Some(known)) => {
                for (name, value) in members {
                    known[name] = value.clone();
                }
            }
            _ => config[key] = value.clone(),
        }
    }
    config
}

impl Asking {
    fn start(entry: Value, more: Value) -> Asking {
        let notes = TemporaryDirectory::new();
        let home = Home::start(config(&notes, entry, more));
        let asking = Asking { home, notes };
        asking.wait_until_ready();
        asking
    }

    fn wait_until_ready(&self) {
        let mut client = self.home.admin();
        eventually("the server's tools are there", || {
            let info = client.ask(json!({"type": "server_info"}));
            (info["mcp_servers"][0]["state"] == "ready").then_some(())
        });
    }

    /// The lines that the server got that contain a text.
    fn got(&self, text: &str) -> Vec<String> {
        let notes = fs::read_to_string(self.notes.path().join("notes")).unwrap_or_default();
        let lines = whole_lines(&notes).filter(|line| line.contains(text));
        lines.map(str::to_owned).collect()
    }

    fn go_on(&self) {
        fs::write(self.notes.path().join("notes.go"), "").unwrap();
    }

    /// Somebody who hears of questions.
    fn watching(&self, token: &str) -> Client {
        let mut client = self.home.websocket(token);
        client.ask(json!({
            "type": "subscribe", "events": ["approval.requested", "approval.resolved", "chat.tool_call"],
        }));
        client
    }
}

/// Lets the offline provider call a tool of the server, in a new conversation.
fn call(client: &mut Client, tool: &str) {
    client.send(&json!({
        "type": "chat", "message": format!("run mcp_desk_{tool}"), "id": "chat",
    }));
}

/// What the reply to [`call`] says.
fn said(client: &mut Client) -> String {
    loop {
        let message = client.receive();
        if message["id"] == "chat" {
            assert_eq!(message["status"], "ok", "{message}");
            return message["data"]["response"].as_str().unwrap().to_owned();
        }
    }
}

/// The response to a request, past events.
fn answer(client: &mut Client, mut request: Value) -> Value {
    request["id"] = json!("answer");
    client.send(&request);
    loop {
        let message = client.receive();
        if message["id"] == "answer" {
            return message;
        }
    }
}

#[test]
fn a_question_waits_for_its_person_and_the_answer_reaches_the_server() {
    let asking = Asking::start(json!({}), json!({}));
    assert!(asking.got("\"initialize\"")[0].contains(r#""elicitation":{}"#));
    let mut ann = asking.watching(&asking.home.tokens.user);
    call(&mut ann, "book");
    let asked = ann.event("approval.requested");
    assert_eq!(asked["tool"], "mcp_desk_book");
    assert_eq!(asked["reason"], "The MCP server desk asks: Which room?");
    assert_eq!(asked["covers"], Value::Null);
    let question = json!({
        "server": "desk",
        "message": "Which room?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "room": {
                    "type": "string", "title": "Room", "default": "r2",
                    "oneOf": [
                        {"const": "r1", "title": "Kitchen"}, {"const": "r2", "title": "Hall"},
                    ],
                },
                "guests": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
                "mail": {"type": "string", "minLength": 0, "maxLength": 8000, "format": "email"},
                "quiet": {"type": "boolean", "default": false},
            },
            "required": ["room", "guests"],
        },
    });
    assert_eq!(asked["question"], question);
    let listed = answer(&mut ann, json!({"type": "list_approvals"}));
    let listed = &listed["data"]["approvals"][0];
    assert_eq!(
        (&listed["question"], &listed["may_answer"]),
        (&question, &json!(true))
    );

    let id = &asked["approval_id"];
    let approve =
        |content: Value| json!({"type": "approve", "approval_id": id, "content": content});
    for (request, why) in [
        (
            json!({"type": "approve", "approval_id": id}),
            "\"content\" must have the answer, by the names \"room\", \"guests\", \"mail\", \"quiet\"",
        ),
        (approve(json!({"room": "r1"})), "\"guests\" is missing"),
        (
            approve(json!({"room": "r3", "guests": 3})),
            "\"Room\" must be one of its options",
        ),
        (
            approve(json!({"room": "r1", "guests": 10})),
            "\"guests\" must be at most 9",
        ),
        (
            approve(json!({"room": "r1", "guests": 3, "mail": "x"})),
            "\"mail\" must be an e-mail",
        ),
        (approve(json!("r1")), "\"content\" must be an object"),
        (
            json!({"type": "approve", "approval_id": id, "remember": "always", "content": {}}),
            "an answer to a question covers this question alone",
        ),
    ] {
        let refused = answer(&mut ann, request);
        assert_eq!(refused["code"], "invalid_request");
        assert!(
            refused["error"].as_str().unwrap().contains(why),
            "{refused}"
        );
    }
    let content = json!({"room": "r1", "guests": 3, "mail": "zoe@example.org"});
    let done = answer(&mut ann, approve(content.clone()));
    assert_eq!(done["data"]["decision"], "approved", "{done}");
    assert!(said(&mut ann).ends_with(
        "{'jsonrpc':'2.0','id':'e1','result':{'action':'accept','content':\
             {'room':'r1','guests':3,'mail':'zoe@example.org'}}}"
    ),);
    let again = answer(&mut ann, approve(content));
    assert_eq!(again["code"], "invalid_request", "{again}");

    // What was asked is stored, and how it ended; not what was answered.
    let store = Store::open(
        &asking.home.folder.path().join("hearth.db"),
        Clock::system(),
    )
    .unwrap();
    let turn = asked["turn_id"].as_str().unwrap().parse().unwrap();
    let stored = format!("{:?}", store.approvals_of(turn).unwrap());
    store.close();
    assert!(
        stored.contains("Which room?") && stored.contains("ApprovedOnce"),
        "{stored}"
    );
    assert!(!stored.contains("zoe"), "{stored}");
}

#[test]
fn every_way_to_answer_has_its_action() {
    let asking = Asking::start(json!({}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    for (tool, how, decision, action) in [
        (
            "confirm",
            json!({"type": "approve"}),
            "approved",
            "'action':'accept','content':{}",
        ),
        (
            "confirm",
            json!({"type": "deny"}),
            "denied",
            "{'action':'decline'}",
        ),
        (
            "confirm",
            json!({"type": "deny", "dismiss": true}),
            "expired",
            "{'action':'cancel'}",
        ),
        (
            "two",
            json!({"type": "deny"}),
            "denied",
            "{'action':'decline'}",
        ),
    ] {
        call(&mut ann, tool);
        for message in if tool == "two" {
            &["First?", "Second?"][..]
        } else {
            &["Really?"]
        } {
            let asked = ann.event("approval.requested");
            assert_eq!(asked["question"]["message"], *message);
            let mut how = how.clone();
            how["approval_id"] = asked["approval_id"].clone();
            ann.send(&how);
            let resolved = ann.event("approval.resolved");
            assert_eq!(resolved["approval_id"], asked["approval_id"]);
            assert_eq!(resolved["decision"], decision);
        }
        let said = said(&mut ann);
        assert!(said.contains(action), "{tool} {how}: {said}");
    }
    for (tool, refused) in [
        (
            "address",
            "'code':-32602,'message':'this client shows forms only",
        ),
        (
            "nested",
            "'code':-32602,'message':'the field 'deep' cannot be asked for",
        ),
    ] {
        call(&mut ann, tool);
        let said = said(&mut ann);
        assert!(said.contains(refused), "{tool}: {said}");
    }
}

#[test]
fn only_the_person_and_those_who_answer_for_them_see_a_question() {
    let asking = Asking::start(json!({}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    let zoe = asking.home.add_person("zoe", UserRole::User);
    let (mut zoe, mut admin) = (
        asking.watching(&zoe),
        asking.watching(&asking.home.tokens.admin),
    );
    call(&mut ann, "confirm");
    let asked = ann.event("approval.requested");
    assert_eq!(
        admin.event("approval.requested")["approval_id"],
        asked["approval_id"]
    );
    let listed = zoe.ask(json!({"type": "list_approvals"}));
    assert_eq!(listed["approvals"], json!([]));
    for request in ["approve", "deny"] {
        let request = json!({"type": request, "approval_id": asked["approval_id"]});
        assert_eq!(zoe.refused(request), "not_found");
    }
    let mut viewer = asking.home.websocket(&asking.home.tokens.viewer);
    let deny = json!({"type": "deny", "approval_id": asked["approval_id"]});
    assert_eq!(viewer.refused(deny.clone()), "unauthorized");
    admin.send(&deny);
    assert!(said(&mut ann).contains("'decline'"));
}

#[test]
fn nobody_is_asked_where_nobody_may_be_there() {
    let asking = Asking::start(
        json!({}),
        json!({
            "openai_api": {"enabled": true},
            "channels": [
                {"name": "lan", "type": "tcp", "port": 0},
                {"name": "hooks", "type": "webhook", "accounts": {"door": {
                    "incoming_path": "/hooks/door",
                    "outgoing_url": "http://127.0.0.1:9/", "secret": "a secret of the door",
                    "tools": ["mcp_desk_confirm"], "permission_mode": "allow",
                }}},
            ],
        }),
    );
    let mut admin = asking.watching(&asking.home.tokens.admin);
    let body = json!({
        "model": "hearth", "messages": [{"role": "user", "content": "run mcp_desk_confirm"}],
    });
    let token = format!("Bearer {}", asking.home.tokens.user);
    let answered = post(
        asking.home.address(),
        "/v1/chat/completions",
        &[("Authorization", &token)],
        &body,
    );
    assert!(
        answered.body.contains("'action':'cancel'"),
        "{}",
        answered.body
    );
    let body = json!({"message": "run mcp_desk_confirm"});
    let secret = [("X-Service-Secret", "a secret of the door")];
    post(asking.home.address(), "/hooks/door", &secret, &body);
    eventually("the server has its answer", || {
        (asking.got(r#""action":"cancel""#).len() == 2).then_some(())
    });
    let waiting = admin.ask(json!({"type": "list_approvals"}));
    assert_eq!(waiting["approvals"], json!([]));
}

#[test]
fn a_question_ends_with_its_call() {
    let asking = Asking::start(json!({}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    // Somebody stops the turn.
    call(&mut ann, "confirm");
    let asked = ann.event("approval.requested");
    ann.send(&json!({"type": "cancel", "turn_id": asked["turn_id"]}));
    let resolved = ann.event("approval.resolved");
    assert_eq!(resolved["approval_id"], asked["approval_id"]);
    assert_eq!(
        (&resolved["decision"], &resolved["by"]),
        (&json!("expired"), &json!("user"))
    );
    eventually("the server is told", || {
        asking.got(r#""action":"cancel""#).pop()
    });
    let late = json!({"type": "approve", "approval_id": asked["approval_id"]});
    assert_eq!(answer(&mut ann, late)["code"], "invalid_request");
    // The server withdraws its question, or goes on without an answer.
    for (tool, says) in [("regret", "regretted"), ("hurry", "without you")] {
        call(&mut ann, tool);
        let asked = ann.event("approval.requested");
        asking.go_on();
        let resolved = ann.event("approval.resolved");
        assert_eq!(resolved["approval_id"], asked["approval_id"]);
        assert_eq!(resolved["by"], "its tool");
        let said = said(&mut ann);
        assert!(said.ends_with(says), "{said}");
        fs::remove_file(asking.notes.path().join("notes.go")).unwrap();
    }
    assert_eq!(
        asking.got("regretted\",\"result").len(),
        0,
        "no answer to what was withdrawn"
    );
}

#[test]
fn a_question_ends_with_its_person() {
    let asking = Asking::start(json!({}), json!({}));
    let zoe = asking.home.add_person("zoe", UserRole::User);
    let mut zoe = asking.watching(&zoe);
    let mut admin = asking.watching(&asking.home.tokens.admin);
    call(&mut zoe, "confirm");
    let asked = admin.event("approval.requested");
    admin.send(&json!({"type": "remove_user", "name": "zoe"}));
    let resolved = admin.event("approval.resolved");
    assert_eq!(resolved["approval_id"], asked["approval_id"]);
    assert_eq!(resolved["decision"], "expired");
}

#[test]
fn the_command_line_says_what_becomes_of_a_question() {
    let asking = Asking::start(json!({}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    let words = |words: &[&str]| printed(&run(asking.home.folder.path(), words));
    for (tool, decide, says) in [
        ("confirm", "allow", "Sent: mcp_desk_confirm has your yes."),
        ("confirm", "deny", "Declined: mcp_desk_confirm learns that"),
        ("book", "deny", "Declined: mcp_desk_book learns that"),
    ] {
        call(&mut ann, tool);
        let asked = ann.event("approval.requested");
        let id = asked["approval_id"].as_str().unwrap();
        if tool == "book" {
            let refused = words(&["approvals", "allow", id]);
            let why = "a question with a form: answer it on the web page";
            assert!(refused.contains(why), "{refused}");
        }
        let shown = words(&["approvals", "show", id]);
        let marked = format!("  | {}\n", asked["question"]["message"].as_str().unwrap());
        assert!(shown.contains(&marked), "{shown}");
        let printed = words(&["approvals", decide, id]);
        assert!(printed.contains(says), "{printed}");
        said(&mut ann);
    }
}

#[test]
fn a_persons_time_is_not_the_tools() {
    let asking = Asking::start(
        json!({"timeout_seconds": 1}),
        json!({"limits": {"turn_seconds": 2, "approval_seconds": 60}}),
    );
    let mut ann = asking.watching(&asking.home.tokens.user);
    call(&mut ann, "confirm");
    let asked = ann.event("approval.requested");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        answer(&mut ann, json!({"type": "ping"}));
    }
    let approve = json!({"type": "approve", "approval_id": asked["approval_id"]});
    assert_eq!(answer(&mut ann, approve)["status"], "ok");
    assert!(said(&mut ann).contains("'action':'accept'"));
}

#[test]
fn nobody_is_waited_for_beyond_the_deadline() {
    let asking = Asking::start(json!({}), json!({"limits": {"approval_seconds": 1}}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    call(&mut ann, "confirm");
    let resolved = ann.event("approval.resolved");
    assert_eq!(
        (&resolved["decision"], &resolved["by"]),
        (&json!("expired"), &json!("timeout"))
    );
    assert!(said(&mut ann).contains("'action':'cancel'"));
}

#[test]
fn an_open_question_ends_with_the_server() {
    let mut asking = Asking::start(json!({}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    call(&mut ann, "confirm");
    let asked = ann.event("approval.requested");
    asking.home.restart_at_once();
    let mut ann = asking.watching(&asking.home.tokens.user);
    let waiting = ann.ask(json!({"type": "list_approvals"}));
    assert_eq!(waiting["approvals"], json!([]));
    let turn = eventually("the turn has ended", || {
        let turn = ann.ask(json!({"type": "get_turn", "turn_id": asked["turn_id"]}));
        (turn["state"] == "done").then_some(turn)
    });
    let response = turn["response"].as_str().unwrap();
    let ways = [
        "interrupted while this ran",
        "was cancelled",
        "'action':'cancel'",
    ];
    assert!(ways.iter().any(|way| response.contains(way)), "{response}");
    assert_eq!(asking.got("\"tools/call\"").len(), 1, "nothing runs twice");
}

#[test]
fn a_killed_server_leaves_no_question_open() {
    let (notes, folder) = (TemporaryDirectory::new(), TemporaryDirectory::new());
    write_config(folder.path(), config(&notes, json!({}), json!({})));
    let tokens = make_people(folder.path());
    let ready = |program: &Program| {
        let mut client = Client::websocket(program.address);
        client.authenticate(&tokens.admin);
        eventually("the server's tools are there", || {
            let info = answer(&mut client, json!({"type": "server_info"}));
            (info["data"]["mcp_servers"][0]["state"] == "ready").then_some(())
        });
        client
    };
    let program = Program::serve(folder.path());
    let mut client = ready(&program);
    client.ask(json!({"type": "subscribe", "events": ["approval.requested"]}));
    call(&mut client, "confirm");
    let asked = client.event("approval.requested");
    program.kill();

    let program = Program::serve(folder.path());
    let mut client = ready(&program);
    let waiting = client.ask(json!({"type": "list_approvals"}));
    assert_eq!(waiting["approvals"], json!([]));
    let turn = eventually("the turn has ended", || {
        let turn = client.ask(json!({"type": "get_turn", "turn_id": asked["turn_id"]}));
        (turn["state"] == "done").then_some(turn)
    });
    let response = turn["response"].as_str().unwrap();
    // The turn may go on before the MCP server is there again.
    let ways = ["interrupted while this ran", "there is no tool"];
    assert!(ways.iter().any(|way| response.contains(way)), "{response}");
    let notes = fs::read_to_string(notes.path().join("notes")).unwrap();
    assert_eq!(
        notes.matches("\"tools/call\"").count(),
        1,
        "nothing runs twice"
    );
}

#[test]
fn a_question_holds_up_no_other_call_and_reaches_nobody_else() {
    let asking = Asking::start(json!({}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    let zoe = asking.home.add_person("zoe", UserRole::User);
    let mut zoe = asking.watching(&zoe);
    call(&mut ann, "book");
    let asked = ann.event("approval.requested");
    call(&mut zoe, "echo");
    assert!(said(&mut zoe).ends_with("here"));
    // Nobody knows which of two calls asks.
    call(&mut zoe, "confirm");
    let cancelled = said(&mut zoe);
    assert!(cancelled.contains("'action':'cancel'"), "{cancelled}");
    assert!(cancelled.contains(OTHERS_RAN), "{cancelled}");
    let waiting = answer(&mut ann, json!({"type": "list_approvals"}));
    assert_eq!(waiting["data"]["approvals"].as_array().unwrap().len(), 1);
    ann.send(&json!({"type": "cancel", "turn_id": asked["turn_id"]}));
    ann.event("approval.resolved");
}

/// What the model is told.
const OTHERS_RAN: &str = "Hearth could not show a question of the MCP server \"desk\": other calls \
                          of it were running, or had just ended. If the answer is needed, try \
                          again later.";

#[test]
fn a_late_question_of_one_person_reaches_no_other() {
    for first in ["slow", "after"] {
        let asking = Asking::start(json!({}), json!({}));
        let mut ann = asking.watching(&asking.home.tokens.user);
        let zoe = asking.home.add_person("zoe", UserRole::User);
        let mut zoe = asking.watching(&zoe);
        call(&mut ann, first);
        if first == "slow" {
            let turn = ann.event("chat.tool_call")["turn_id"].clone();
            eventually("the server has the call", || {
                asking.got(r#""name":"slow""#).pop()
            });
            ann.send(&json!({"type": "cancel", "turn_id": turn}));
            eventually("the server is told", || {
                asking.got("notifications/cancelled").pop()
            });
        } else {
            said(&mut ann);
        }
        let mut same = asking.watching(&asking.home.tokens.user);
        call(&mut same, "confirm");
        let asked = same.event("approval.requested");
        same.send(&json!({"type": "deny", "approval_id": asked["approval_id"]}));
        assert!(said(&mut same).contains("'action':'decline'"));

        call(&mut zoe, "idle");
        let text = said(&mut zoe);
        assert!(text.contains("'action':'cancel'"), "{first}: {text}");
        assert!(text.contains(OTHERS_RAN), "{first}: {text}");
    }
}

#[test]
fn an_older_revision_has_no_questions() {
    let asking = Asking::start(json!({"revision": "2025-03-26"}), json!({}));
    let mut ann = asking.watching(&asking.home.tokens.user);
    call(&mut ann, "confirm");
    assert!(said(&mut ann).contains("'code':-32601"));
}
