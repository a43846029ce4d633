//! Hearth as a server of the Model Context Protocol, over real sockets.

use std::io::{BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::api::model_api::read_until;
use store::{Store, TokenScope};
use support::eventually;
use support::home::{Home, add_token};
use support::http::{FileAnswer, exchange};
use support::model::{Act, Model};
use support::socket::connect;

/// Headers of the newest revision, but for those that name the method and the tool.
const STATELESS: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

fn home(more: Value) -> Home {
    let mut config = json!({"mcp_api": {"enabled": true}, "permission_mode": "allow"});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    Home::start(config)
}

fn send(home: &Home, token: &str, headers: &[(&str, &str)], body: &str) -> FileAnswer {
    let authorization = format!("Bearer {token}");
    let mut all = vec![
        ("authorization", &*authorization),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    all.extend(headers);
    exchange(home.address(), "POST", "/mcp", &all, body.as_bytes())
}

/// A request after a handshake.
fn request(home: &Home, token: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let headers = [("mcp-protocol-version", "2025-11-25")];
    let answer = send(home, token, &headers, &body.to_string());
    assert_eq!(answer.status, 200, "{:?}", answer.json());
    let answer = answer.json();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!(7))
    );
    answer
}

/// Calls a tool; its text, and whether that is an error.
fn call(home: &Home, token: &str, tool: &str, arguments: Value) -> (String, bool) {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = request(home, token, "tools/call", params);
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"] == true)
}

pub fn done(home: &Home, token: &str, tool: &str, arguments: Value) -> String {
    let (text, is_error) = call(home, token, tool, arguments);
    assert!(!is_error, "{tool}: {text}");
    text
}

fn names(home: &Home, token: &str) -> Vec<String> {
    let listed = request(home, token, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[test]
fn clients_that_begin_with_a_handshake_use_the_tools() {
    let home = home(json!({}));
    let user = &home.tokens.user;
    for (wanted, given) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
            "protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let answer = send(&home, user, &[], &body.to_string());
        assert!(answer.header("mcp-session-id").is_some());
        let result = &answer.json()["result"];
        assert_eq!(result["protocolVersion"], given);
        assert_eq!(result["serverInfo"]["name"], "hearth");
        assert!(result["capabilities"]["tools"].is_object());
    }
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let noted = send(&home, user, &[], initialized);
    assert_eq!((noted.status, noted.body.len()), (202, 0));
    assert_eq!(request(&home, user, "ping", json!({}))["result"], json!({}));
    let listed = request(&home, user, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(
        names(&home, user),
        [
            "recall",
            "remember",
            "forget",
            "search_conversations",
            "lists",
            "schedule",
            "ask"
        ]
    );
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["query"]));
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[2]["annotations"]["destructiveHint"], true);
    assert_eq!(tools[0]["title"], "Look up memories");
    let ask = &tools[6];
    assert_eq!(ask["title"], "Ask the assistant");
    for hint in ["destructiveHint", "openWorldHint"] {
        assert_eq!(ask["annotations"][hint], true, "{ask}");
    }

    let kept = done(
        &home,
        user,
        "remember",
        json!({"content": "Mia is allergic to nuts.", "search_words": ["snack"]}),
    );
    assert!(kept.ends_with("only user sees it."), "{kept}");
    for query in ["nuts", "snack"] {
        let query = json!({ "query": query });
        let found = done(&home, user, "recall", query.clone());
        assert!(found.contains("Mia is allergic to nuts."), "{found}");
        let others = done(&home, &home.tokens.admin, "recall", query);
        assert!(others.contains("Nothing remembered"), "{others}");
    }
    let found = done(&home, user, "recall", json!({"query": "nuts"}));
    let id = found.split(' ').next().unwrap();
    let (refused, is_error) = call(
        &home,
        &home.tokens.admin,
        "forget",
        json!({"memory_id": id}),
    );
    assert!(is_error, "{refused}");
    done(&home, user, "forget", json!({"memory_id": id}));
    let shared = done(
        &home,
        user,
        "remember",
        json!({"content": "Bins on Monday.", "share": true}),
    );
    assert!(
        shared.ends_with("everybody in the household sees it."),
        "{shared}"
    );

    let add = json!({"action": "add", "list": "shopping", "items": ["milk"]});
    done(&home, user, "lists", add);
    let seen = home
        .admin()
        .ask(json!({"type": "get_list", "list": "shopping"}));
    assert_eq!(seen["items"][0]["text"], "milk");

    let create = json!({"action": "create", "prompt": "Water the plants", "at": "+20m"});
    let set = done(&home, user, "schedule", create);
    assert!(set.starts_with("Set as "), "{set}");
    let mut client = home.websocket(user);
    let schedules = client.ask(json!({"type": "list_schedules"}));
    assert_eq!(schedules["schedules"][0]["prompt"], "Water the plants");
    let others = home.admin().ask(json!({"type": "list_schedules"}));
    assert_eq!(others["schedules"], json!([]));

    client.ask(json!({"type": "chat", "message": "the boiler makes a noise"}));
    let found = done(
        &home,
        user,
        "search_conversations",
        json!({"query": "which noise did the boilers make?"}),
    );
    assert!(found.contains("the boiler makes a noise"), "{found}");
}

/// A request of the newest revision, with these headers instead of its own.
fn stateless(home: &Home, headers: &[(&str, &str)], method: &str, params: Value) -> FileAnswer {
    let mut params = params;
    if params.get("_meta").is_none() {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    send(home, &home.tokens.user, headers, &body.to_string())
}

#[test]
fn clients_of_the_newest_revision_need_no_handshake() {
    let home = home(json!({}));
    let with = |method| [STATELESS, ("mcp-method", method)];
    let found = stateless(
        &home,
        &with("server/discover"),
        "server/discover",
        json!({}),
    );
    let found = found.json();
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["result"]["resultType"], "complete");
    let listed = stateless(&home, &with("tools/list"), "tools/list", json!({})).json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 7);
    assert_eq!(listed["result"]["cacheScope"], "private");
    let call = json!({"name": "lists", "arguments": {"action": "show"}});
    // As clients write what no header can hold.
    for name in ["lists", "=?base64?bGlzdHM=?="] {
        let headers = [STATELESS, ("mcp-method", "tools/call"), ("mcp-name", name)];
        let called = stateless(&home, &headers, "tools/call", call.clone()).json();
        assert_eq!(
            called["result"]["content"][0]["text"],
            "There are no lists yet."
        );
    }
    let meta = |version: &str| {
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }})
    };
    for (headers, method, params, status, code) in [
        (
            &with("tools/call")[..],
            "tools/call",
            call.clone(),
            400,
            -32020,
        ),
        (&[STATELESS], "tools/list", json!({}), 400, -32020),
        (&with("tools/call"), "tools/list", json!({}), 400, -32020),
        (
            &[("mcp-method", "tools/list")],
            "tools/list",
            json!({}),
            400,
            -32020,
        ),
        (
            &with("tools/list"),
            "tools/list",
            json!({"_meta": {}}),
            400,
            -32602,
        ),
        (
            &[
                ("mcp-protocol-version", "2099-01-01"),
                ("mcp-method", "tools/list"),
            ],
            "tools/list",
            meta("2099-01-01"),
            400,
            -32022,
        ),
        (&with("ping"), "ping", json!({}), 404, -32601),
        (&with("initialize"), "initialize", json!({}), 404, -32601),
        (
            &with("resources/list"),
            "resources/list",
            json!({}),
            404,
            -32601,
        ),
    ] {
        let answer = stateless(&home, headers, method, params);
        let error = answer.json();
        let found = (answer.status, error["error"]["code"].as_i64().unwrap());
        assert_eq!(found, (status, code), "{method} {headers:?} {error}");
    }
}

#[test]
fn what_is_no_request_is_refused_as_the_protocol_says() {
    let home = home(json!({}));
    let user = &home.tokens.user;
    for method in ["GET", "DELETE", "PUT"] {
        let authorization = format!("Bearer {user}");
        let headers = [
            ("authorization", &*authorization),
            ("accept", "text/event-stream"),
        ];
        let answer = exchange(home.address(), method, "/mcp", &headers, b"");
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("POST")),
            "{method}"
        );
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let no_token = exchange(home.address(), "POST", "/mcp", &[], ping.as_bytes());
    assert_eq!(
        (no_token.status, no_token.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert_eq!(send(&home, "wrong", &[], ping).status, 401);
    // As clients send what stands before the host in a URL.
    for (pair, status) in [
        (format!("hearth:{user}"), 200),
        (user.clone(), 401),
        ("hearth:wrong".to_owned(), 401),
        ("hearth:".to_owned(), 401),
    ] {
        let basic = format!("Basic {}", BASE64_STANDARD.encode(&pair));
        let headers = [("authorization", basic.as_str())];
        let answer = exchange(home.address(), "POST", "/mcp", &headers, ping.as_bytes());
        assert_eq!(answer.status, status, "{pair}");
    }
    assert_eq!(send(&home, &home.tokens.viewer, &[], ping).status, 403);
    let evil = [("origin", "https://evil.example")];
    let long = format!("{ping}{}", " ".repeat(1 << 20));
    for (headers, body, status) in [(&evil[..], ping, 403), (&[], &long, 413)] {
        let answer = send(&home, user, headers, body);
        assert_eq!(answer.status, status);
        let answer = answer.json();
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
    }
    let new = ("mcp-protocol-version", "2025-11-25");
    let several = format!("[{ping},{{\"jsonrpc\":\"2.0\",\"method\":\"x\"}},7]");
    for (headers, body, status, code) in [
        (&[][..], "{", 400, -32700),
        (&[], "7", 400, -32600),
        (&[], r#"{"id":1,"method":"ping"}"#, 400, -32600),
        (
            &[],
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            400,
            -32600,
        ),
        (&[], "[]", 400, -32600),
        (&[new], &several, 400, -32600),
        (&[("mcp-protocol-version", "2000-01-01")], ping, 400, -32022),
        (
            &[new],
            r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
            200,
            -32601,
        ),
        (
            &[new],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            200,
            -32602,
        ),
        (
            &[new],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command"}}"#,
            200,
            -32602,
        ),
    ] {
        let answer = send(&home, user, headers, body);
        let found = (
            answer.status,
            answer.json()["error"]["code"].as_i64().unwrap(),
        );
        assert_eq!(found, (status, code), "{body}");
    }
    let wrong = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#;
    let answer = send(&home, user, &[new], wrong).json();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(7), &json!(-32600))
    );
    // The one revision that has them.
    let answers = send(&home, user, &[], &several).json();
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers.as_array().unwrap().len(), 2);
    let (text, is_error) = call(&home, user, "recall", json!({"q": 1}));
    assert!(is_error && text.contains("query"), "{text}");
    let off = Home::offline();
    assert_eq!(send(&off, &off.tokens.user, &[], ping).status, 404);
}

#[test]
fn a_question_that_comes_again_goes_on_with_its_turn() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let model = Model::start(move |request, _| {
        let messages = request["messages"].as_array().unwrap();
        let has_result = messages.iter().any(|message| message["role"] == "tool");
        let add = json!({"action": "add", "list": "toys", "items": ["ball"]});
        match has_result {
            false => Act::call("lists", add),
            true if well.load(Ordering::SeqCst) => Act::say("It is on the list."),
            true => Act::error(503, "Retry-After: 90\r\n", "no"),
        }
    });
    let mut config = model.config();
    config["mcp_api"] = json!({"enabled": true});
    config["permission_mode"] = json!("allow");
    let home = Home::start(config);
    let ask = || {
        let message = json!({"message": "note the ball"});
        call(&home, &home.tokens.user, "ask", message)
    };
    let (text, is_error) = ask();
    assert!(is_error, "{text}");
    assert!(text.ends_with("(a tool has already run)"), "{text}");
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(ask(), ("It is on the list.".to_owned(), false));
    let asked = model.requests().len();
    assert_eq!(asked, 3, "the tool is called once");
}

#[test]
fn programs_may_do_what_their_person_and_token_may() {
    let home = home(json!({
        "permission_mode": "ask",
        "tool_permissions": {"forget": "deny"},
        "people": {
            "child": {"tools": ["recall", "lists"], "approves": ["recall"]},
        },
    }));
    let add = json!({"action": "add", "list": "toys", "items": ["ball"]});
    // What is asked for, who may answer that for themselves may do at once.
    done(&home, &home.tokens.user, "lists", add.clone());
    assert!(!names(&home, &home.tokens.user).contains(&"forget".to_owned()));
    // To replace is to forget.
    let replace = json!({"content": "x", "replaces": "y"});
    let (text, is_error) = call(&home, &home.tokens.user, "remember", replace);
    assert!(is_error && text.contains("not permitted"), "{text}");
    let child = home.add_person("child", store::UserRole::User);
    assert_eq!(names(&home, &child), ["recall", "lists", "ask"]);
    let (text, is_error) = call(&home, &child, "lists", add);
    assert!(
        is_error && text.contains("somebody has to permit this"),
        "{text}"
    );
    let store = Store::open(&home.folder.path().join("hearth.db"), home.clock.clone()).unwrap();
    let user = store.user("user").unwrap().unwrap();
    let household = add_token(
        &store,
        &user,
        TokenScope {
            tools: None,
            household_only: true,
        },
    );
    let narrow = add_token(
        &store,
        &user,
        TokenScope {
            tools: Some(["recall".to_owned(), "schedule".to_owned()].into()),
            household_only: false,
        },
    );
    store.close();
    let kept = done(
        &home,
        &household,
        "remember",
        json!({"content": "Bins on Monday."}),
    );
    assert!(
        kept.ends_with("everybody in the household sees it."),
        "{kept}"
    );
    assert_eq!(names(&home, &narrow), ["recall", "ask"]);
}

fn with_model(model: &Model, more: Value) -> Home {
    let mut config = model.config();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    home(config)
}

fn conversations(home: &Home) -> Vec<Value> {
    let mut client = home.websocket(&home.tokens.user);
    let listed = client.ask(json!({"type": "list_conversations"}));
    listed["conversations"].as_array().unwrap().clone()
}

#[test]
fn other_assistants_ask_the_household_s() {
    let model = Model::saying("It is in the shed.");
    let home = with_model(&model, json!({}));
    let user = &home.tokens.user;
    let question = json!({"message": "Where is the ladder?", "chat": "garden"});
    assert_eq!(done(&home, user, "ask", question), "It is in the shed.");
    let more = json!({"message": "Is it long?", "chat": "garden"});
    done(&home, user, "ask", more);
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(4)));
    done(&home, user, "ask", json!({"message": "Hello"}));
    assert_eq!(conversations(&home).len(), 2);
    for (wrong, says) in [
        (json!({}), "message"),
        (json!({"message": " "}), "must not be empty"),
        (json!({"message": 7}), "message"),
        (
            json!({"message": "x", "chat": "c".repeat(201)}),
            "200 bytes",
        ),
    ] {
        let (text, is_error) = call(&home, user, "ask", wrong);
        assert!(is_error && text.contains(says), "{text}");
    }
    // With a token for its progress, the response is a stream.
    let params = json!({
        "name": "ask", "arguments": {"message": "And the hose?"}, "_meta": {"progressToken": "p"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
    let answer = send(&home, user, &[], &body.to_string());
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = String::from_utf8(answer.body).unwrap();
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| data.parse().unwrap())
        .collect();
    let progress = &messages[0]["params"];
    assert_eq!(
        (&progress["progressToken"], &progress["progress"]),
        (&json!("p"), &json!(1))
    );
    let last = messages.last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "It is in the shed.");
}

#[test]
fn what_waits_for_permission_is_said_and_goes_on() {
    for (more, waits) in [
        (json!({"permission_mode": "ask"}), true),
        // Whoever asks may have read anything: what was allowed is asked for again.
        (
            json!({"permission_mode": "ask", "tool_permissions": {"remember": "allow"}}),
            true,
        ),
        (
            json!({
                "permission_mode": "ask",
                "tool_permissions": {"remember": "allow"},
                "mcp_api": {"enabled": true, "trusted": true},
            }),
            false,
        ),
    ] {
        let model = Model::acting(vec![
            Act::call("remember", json!({"content": "Rex is a dog."})),
            Act::say("I shall remember."),
        ]);
        let home = with_model(&model, more);
        let text = done(
            &home,
            &home.tokens.user,
            "ask",
            json!({"message": "Rex is a dog"}),
        );
        if !waits {
            assert_eq!(text, "I shall remember.");
            continue;
        }
        assert!(
            text.contains("Waiting for permission to use remember"),
            "{text}"
        );
        let mut client = home.websocket(&home.tokens.user);
        let waiting = client.ask(json!({"type": "list_approvals"}));
        let id = waiting["approvals"][0]["approval_id"].clone();
        client.ask(json!({"type": "approve", "approval_id": id}));
        eventually("the reply", || {
            (conversations(&home)[0]["message_count"] == 2).then_some(())
        });
    }
}

/// What a program sets up for later is text from outside then, too.
#[test]
fn what_was_set_up_from_outside_asks_when_it_comes() {
    for (trusted, waiting) in [(false, 1), (true, 0)] {
        let model = Model::acting(vec![
            Act::call("remember", json!({"content": "Rex is a dog."})),
            Act::say("I remember."),
        ]);
        let home = with_model(
            &model,
            json!({
                "permission_mode": "ask",
                "tool_permissions": {"remember": "allow", "schedule": "allow"},
                "mcp_api": {"enabled": true, "trusted": trusted},
            }),
        );
        let user = &home.tokens.user;
        let mut client = home.websocket(user);
        let plan = json!({"action": "create", "prompt": "Remember Rex", "at": "+1s"});
        done(&home, user, "schedule", plan);
        model.wait_for_requests(1);
        let list = || json!({"type": "list_approvals"});
        eventually("it asks, or is done", || {
            let approvals = client.ask(list())["approvals"].as_array().unwrap().len();
            (approvals == waiting && (waiting == 1 || model.requests().len() == 2)).then_some(())
        });
    }
}

/// Sends a question that is not answered yet, on a socket of its own.
fn begin(home: &Home, id: u64, headers: &str, meta: Value) -> BufReader<support::socket::Socket> {
    let mut socket = connect(home.address());
    let params = json!({"name": "ask", "arguments": {"message": "hi"}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let body = body.to_string();
    write!(
        socket,
        "POST /mcp HTTP/1.1\r\nHost: hearth\r\nAuthorization: Bearer {}\r\n\
         Accept: application/json, text/event-stream\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        home.tokens.user,
        body.len()
    )
    .unwrap();
    BufReader::new(socket)
}

fn turns(home: &Home, state: &str) -> u64 {
    let info = home.admin().ask(json!({"type": "server_info"}));
    info["turns"][state].as_u64().unwrap_or_default()
}

#[test]
fn a_question_is_taken_back_as_its_revision_has_it() {
    let model = Model::start(|_, _| Act::Pause("half and half".to_owned()));
    let home = with_model(&model, json!({}));
    let session = "Mcp-Session-Id: one\r\n";
    // A connection that breaks says nothing where there is a notification for it.
    let mut lost = begin(&home, 5, session, json!({"progressToken": 1}));
    read_until(&mut lost, "has begun");
    drop(lost);
    let mut asked = begin(&home, 6, session, json!({"progressToken": 2}));
    read_until(&mut asked, "has begun");
    model.wait_for_requests(2);
    let cancel = |session: &str, id: u64| {
        let body = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
        });
        let headers = [("mcp-session-id", session)];
        let noted = send(&home, &home.tokens.user, &headers, &body.to_string());
        assert_eq!(noted.status, 202);
    };
    cancel("another", 6);
    cancel("one", 7);
    assert_eq!(turns(&home, "running"), 2);
    cancel("one", 6);
    read_until(&mut asked, "the turn was cancelled");
    // Which of two with the same id is meant, nobody knows.
    let mut two: Vec<_> = (0..2)
        .map(|_| begin(&home, 9, session, json!({"progressToken": 4})))
        .collect();
    two.iter_mut()
        .for_each(|asked| read_until(asked, "has begun"));
    cancel("one", 9);
    assert_eq!(turns(&home, "running"), 3);
    // Without sessions, the connection is all there is.
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ask\r\n";
    let meta = json!({
        "progressToken": 3,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut asked = begin(&home, 8, headers, meta);
    read_until(&mut asked, "has begun");
    model.wait_for_requests(5);
    drop(asked);
    eventually("the end of its turn", || {
        (turns(&home, "running") == 3).then_some(())
    });
    model.release();
    eventually("the end of the others", || {
        (turns(&home, "running") == 0).then_some(())
    });
}

#[test]
fn a_token_of_the_household_makes_no_reminders_for_others() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let remind = json!({
            "action": "create", "say": "Bins", "at": "in 10 minutes", "people": ["admin", "user"],
        });
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("schedule", remind),
        }
    });
    let home = with_model(&model, json!({}));
    let token = home.token("user", &json!({ "only": "household" }));
    let remind = |people: &[&str]| {
        json!({
            "action": "create", "say": "Bins", "at": "in 10 minutes", "people": people,
        })
    };
    let (text, is_error) = call(&home, &token, "schedule", remind(&["admin"]));
    assert!(
        is_error && text.contains("no reminders for others"),
        "{text}"
    );
    done(&home, &token, "schedule", remind(&["user"]));
    let mut client = home.websocket(&token);
    let mut command = json!({ "type": "create_schedule", "say": "Bins", "at": "in 10 minutes" });
    command["people"] = json!(["admin"]);
    assert_eq!(client.refused(command), "unauthorized");
    client.chat("Remind us of the bins.");
    let last = model.requests().pop().unwrap();
    let last = last["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(last.contains("no reminders for others"), "{last}");
    let of_admin = home.admin().ask(json!({ "type": "list_schedules" }));
    let of_admin = of_admin["schedules"].as_array().unwrap();
    assert!(
        of_admin.iter().all(|one| one["say"] == "Bins"),
        "{of_admin:?}"
    );
    // Who is asked by the whole person sets them.
    home.websocket(&home.tokens.user)
        .chat("Remind us of the bins.");
    let of_admin = home
        .admin()
        .ask(json!({ "type": "list_schedules" }))
        .to_string();
    assert!(of_admin.contains("From user: Bins"), "{of_admin}");
}
