//! Tools of MCP servers, from the handshake to the end of the program. The
//! server is a shell script, so that the tests need nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use support::AT_ONCE;
use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::program::{self, Program, printed, send_signal, whole_lines};

/// A configuration with these MCP servers. Its command limits are high enough for
/// tests that poll.
fn config(servers: Value, more: Value) -> Value {
    let mut config = json!({
        "mcp_servers": servers,
        "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

#[test]
fn what_a_tool_does_to_things_is_said_and_who_says_so() {
    let stub = Stub::new();
    let entry = stub.entry(json!({ "read_only": ["echo"] }));
    let home = Home::start(config(json!({ "stub": entry }), json!({})));
    let mut admin = home.admin();
    wait_for_tools(&mut admin, "mcp:stub");
    let declared = "The configuration declares that it changes nothing.";
    let hint = "Its server says that it only reads.";
    eventually("the declaration", || {
        let listed = admin.ask(json!({ "type": "list_tools" }));
        let tools = listed["tools"].as_array().unwrap();
        let effect =
            |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["effect"].clone();
        assert_eq!(effect("mcp_stub_hang"), hint);
        assert_eq!(
            effect("remember"),
            Value::Null,
            "Hearth's own have words of their own"
        );
        (effect("mcp_stub_echo") == declared).then_some(())
    });
    let shown = printed(&program::run(
        home.folder.path(),
        &["tool", "list", "--all"],
    ));
    let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap();
    assert!(line("mcp_stub_echo").contains(declared), "{shown}");
    assert!(line("mcp_stub_hang").contains(hint), "{shown}");
    assert!(line("remember").contains("builtin"), "{shown}");
}

/// A stub that notes what it gets.
struct Stub {
    notes: TemporaryDirectory,
}

impl Stub {
    fn new() -> Stub {
        Stub {
            notes: TemporaryDirectory::new(),
        }
    }

    fn path(&self) -> PathBuf {
        self.notes.path().join("notes")
    }

    /// Its entry in the configuration, with more members.
    fn entry(&self, more: Value) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp_stub.sh");
        let mut entry = json!({
            "command": "sh",
            "args": [script],
            "env": {"STUB_NOTES": self.path(), "STUB_EXTRA": "from the configuration"},
        });
        for (key, value) in more.as_object().unwrap() {
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        entry[key][name] = value.clone();
                    }
                }
                value => entry[key] = value.clone(),
            }
        }
        entry
    }

    fn home(&self, more: Value) -> Home {
        let servers = json!({"stub": self.entry(more)});
        Home::start(config(servers, json!({"permission_mode": "allow"})))
    }

    /// The lines it got that contain a text. The last may be half written.
    fn got(&self, text: &str) -> Vec<String> {
        let notes = fs::read_to_string(self.path()).unwrap_or_default();
        let lines = whole_lines(&notes).filter(|line| line.contains(text));
        lines.map(str::to_owned).collect()
    }

    fn process(&self) -> u32 {
        let path = self.path().with_extension("pid");
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }
}

fn is_running(process: u32) -> bool {
    Path::new(&format!("/proc/{process}/cmdline"))
        .metadata()
        .is_ok()
        && !fs::read_to_string(format!("/proc/{process}/stat"))
            .unwrap_or_default()
            .contains(") Z ")
}

/// The tools with this source, by name.
fn tools_of(client: &mut Client, source: &str) -> Vec<Value> {
    let listed = client.ask(json!({"type": "list_tools"}));
    let tools = listed["tools"].as_array().unwrap();
    let of_source = |tool: &&Value| tool["source"] == source;
    tools.iter().filter(of_source).cloned().collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

fn wait_for_tools(client: &mut Client, source: &str) -> Vec<Value> {
    eventually("the server's tools are there", || {
        let tools = tools_of(client, source);
        (!tools.is_empty()).then_some(tools)
    })
}

/// Lets the offline provider call a tool of the stub.
fn run(client: &mut Client, call: &str) -> String {
    let reply = client.chat(&format!("run mcp_stub_{call}"));
    reply["response"].as_str().unwrap().to_owned()
}

fn ready(stub: &Stub, more: Value) -> (Home, Client) {
    let home = stub.home(more);
    let mut client = home.admin();
    wait_for_tools(&mut client, "mcp:stub");
    (home, client)
}

#[test]
fn a_servers_tool_is_listed_and_runs_after_an_approval() {
    let stub = Stub::new();
    let mut home = Home::start(config(json!({"stub": stub.entry(json!({}))}), json!({})));
    let mut client = home.admin();
    let tools = wait_for_tools(&mut client, "mcp:stub");
    assert_eq!(
        names(&tools),
        [
            "mcp_stub_echo",
            "mcp_stub_hang",
            "mcp_stub_steady",
            "mcp_stub_crash",
            "mcp_stub_grow",
            "mcp_stub_env",
            "mcp_stub_big",
            "mcp_stub_noise",
            "mcp_stub_fail",
            "mcp_stub_ask",
            "mcp_stub_dots_and_spaces",
        ],
        "both pages, once, although the second names itself as the next"
    );
    assert_eq!(
        tools[0]["parameters"],
        json!({"text": "string", "times": "integer|null"})
    );
    assert_eq!(
        tools[0]["permission"], "ask",
        "a hint of the server gives no right"
    );
    assert_eq!(
        tools[0]["annotations"],
        json!({"title": "Title of echo", "read_only": true, "destructive": false})
    );

    client.ask(json!({"type": "subscribe", "events": ["approval.requested"]}));
    client.send(
        &json!({"type": "chat", "message": "run mcp_stub_echo {\"text\": \"hello\"}", "id": 7}),
    );
    let asked = client.event("approval.requested");
    assert_eq!(asked["tool"], "mcp_stub_echo");
    assert!(stub.got("tools/call").is_empty(), "nothing ran yet");
    client.ask(json!({"type": "approve", "approval_id": asked["approval_id"], "id": 8}));
    let answer = loop {
        let message = client.response();
        if message["id"] == 7 {
            break message;
        }
    };
    assert_eq!(
        answer["data"]["response"],
        "The tool mcp_stub_echo answered: you said: hello"
    );
    let info = client.ask(json!({"type": "server_info"}));
    assert_eq!(
        info["mcp_servers"],
        json!([{"name": "stub", "state": "ready", "tools": 11, "problem": null}])
    );
    assert!(stub.got("\"initialize\"")[0].contains("2025-11-25"));
    home.stop();
}

#[test]
fn an_approval_survives_a_restart_of_the_server() {
    let stub = Stub::new();
    let mut home = Home::start(config(json!({"stub": stub.entry(json!({}))}), json!({})));
    let mut client = home.admin();
    wait_for_tools(&mut client, "mcp:stub");
    client.ask(json!({"type": "subscribe", "events": ["approval.requested"]}));
    client.send(
        &json!({"type": "chat", "message": "run mcp_stub_echo {\"text\": \"late\"}", "id": 7}),
    );
    let asked = client.event("approval.requested");
    home.restart();
    let mut client = home.admin();
    // At once: the server is still being started.
    client.ask(json!({"type": "approve", "approval_id": asked["approval_id"]}));
    let done = eventually("the turn is done", || {
        let view = client.ask(json!({"type": "get_turn", "turn_id": asked["turn_id"]}));
        (view["state"] == "done").then_some(view)
    });
    assert!(
        done["response"]
            .as_str()
            .unwrap()
            .ends_with("you said: late"),
        "{done}"
    );
    home.stop();
}

#[test]
fn what_a_server_does_wrong_stays_with_its_call() {
    let stub = Stub::new();
    let (mut home, mut client) = ready(&stub, json!({"timeout_seconds": 50}));
    for (call, said) in [
        ("fail", "failed: no such room"),
        ("big", "it sent a message of more than 8 MiB"),
        ("noise", "answered: quiet again"),
        ("ask", "answered: asked"),
        (
            "echo {\"text\": 7}",
            "the argument \"text\" must be a string",
        ),
        ("echo {\"text\": \"still here\"}", "you said: still here"),
    ] {
        let answer = run(&mut client, call);
        assert!(answer.contains(said), "{call}: {answer}");
    }
    assert!(stub.got("\"id\":\"q1\",\"result\":{}").len() == 1);
    assert!(stub.got("\"id\":\"q2\",\"error\"")[0].contains("-32601"));
    let environment = run(&mut client, "env");
    for (name, there) in [
        ("STUB_EXTRA", true),
        ("PATH", true),
        ("CARGO_MANIFEST_DIR", false),
    ] {
        assert_eq!(environment.contains(name), there, "{environment}");
    }
    home.stop();
}

#[test]
fn a_server_that_dies_is_started_again() {
    let stub = Stub::new();
    let (mut home, mut client) = ready(&stub, json!({}));
    let first = stub.process();
    let answer = run(&mut client, "crash");
    assert!(
        answer.contains(
            "failed: it ended with exit code 3: Error: the stub has no more strength; it may or may \
             not have taken effect"
        ),
        "{answer}"
    );
    // At once: the call starts it again.
    assert!(run(&mut client, "echo {\"text\": \"back\"}").ends_with("you said: back"));
    assert_ne!(stub.process(), first);
    assert_eq!(stub.got("\"name\":\"crash\"").len(), 1);
    home.stop();
}

#[test]
fn changed_tools_are_listed_again_but_not_in_a_loop() {
    let stub = Stub::new();
    let began = Instant::now();
    let (mut home, mut client) = ready(&stub, json!({"env": {"STUB_NAGS": "1"}}));
    assert!(run(&mut client, "grow").ends_with("grown"));
    eventually("the new tool is there", || {
        let tools = tools_of(&mut client, "mcp:stub");
        names(&tools).contains(&"mcp_stub_sprout").then_some(())
    });
    // One list at the start, then at most one a second, two pages each.
    let lists = stub.got("tools/list").len();
    let most = 2 * (2 + began.elapsed().as_secs() as usize);
    assert!((4..=most).contains(&lists), "{lists} pages");
    home.stop();
}

#[test]
fn tools_that_change_all_the_time_do_not_fill_the_log() {
    let stub = Stub::new();
    let folder = TemporaryDirectory::new();
    let entry = stub.entry(json!({ "env": { "STUB_GROWS": "1" } }));
    let mut settings = config(json!({ "stub": entry }), json!({}));
    settings["limits"]["log_lines_per_address"] = 1.into();
    write_config(folder.path(), settings);
    let program = Program::serve(folder.path());
    eventually("its tools were listed often", || {
        (stub.got("tools/list").len() >= 2 * 5).then_some(())
    });
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    let lines = log.lines().filter(|line| line.contains("mcp stub: has"));
    assert_eq!(lines.count(), 1, "{log}");
    program.signal("TERM");
}

#[test]
fn silence_ends_a_call_and_progress_goes_on_with_it() {
    let stub = Stub::new();
    let (mut home, mut client) = ready(&stub, json!({"timeout_seconds": 2}));
    let answer = run(&mut client, "steady");
    assert!(answer.ends_with("nine steps"), "2.7 s with news: {answer}");
    let answer = run(&mut client, "hang");
    assert!(
        answer.contains("did not answer within 2 seconds"),
        "{answer}"
    );
    let told = eventually("the server is told", || {
        stub.got("notifications/cancelled").pop()
    });
    let call = stub.got("\"name\":\"hang\"").pop().unwrap();
    let call: Value = serde_json::from_str(&call).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["params"]["requestId"], call["id"]);
    home.stop();
}

#[test]
fn a_cancelled_turn_cancels_the_call() {
    let stub = Stub::new();
    let (mut home, mut client) = ready(&stub, json!({}));
    let ended = client.chat_and_cancel("run mcp_stub_hang", || {
        eventually("the call has arrived", || {
            stub.got("\"name\":\"hang\"").pop()
        });
    });
    assert_eq!(ended["data"]["state"], "cancelled", "{ended}");
    eventually("the server is told", || {
        stub.got("notifications/cancelled").pop()
    });
    home.stop();
}

#[test]
fn only_what_changed_in_the_configuration_is_started_anew() {
    let (stays, changes) = (Stub::new(), Stub::new());
    let servers = |more: Value| {
        let servers = json!({
            "stays": stays.entry(json!({})),
            "changes": changes.entry(more),
            "off": {"command": "no-such-program", "disabled": true},
        });
        config(servers, json!({}))
    };
    let mut home = Home::start(servers(json!({})));
    let mut client = home.admin();
    wait_for_tools(&mut client, "mcp:stays");
    wait_for_tools(&mut client, "mcp:changes");
    let before = (stays.process(), changes.process());
    write_config(home.folder.path(), servers(json!({"timeout_seconds": 5})));
    home.server().reload().unwrap();
    eventually("the changed one is another process", || {
        let is_another = changes.process() != before.1;
        (is_another && !is_running(before.1)).then_some(())
    });
    wait_for_tools(&mut client, "mcp:changes");
    assert_eq!(stays.process(), before.0);
    assert!(is_running(before.0));
    write_config(home.folder.path(), config(json!({}), json!({})));
    home.server().reload().unwrap();
    assert!(tools_of(&mut client, "mcp:stays").is_empty());
    eventually("both are gone", || {
        (!is_running(stays.process()) && !is_running(changes.process())).then_some(())
    });
    home.stop();
}

#[test]
fn a_start_waits_for_no_server_and_a_stop_leaves_none() {
    let (good, deaf) = (Stub::new(), Stub::new());
    let servers = json!({
        "mute": {"command": "sleep", "args": ["600"]},
        "gone": {"command": "no-such-program"},
        "good": good.entry(json!({})),
        "deaf": deaf.entry(json!({"env": {"STUB_DEAF": "1"}})),
    });
    let home = Home::start(config(servers, json!({})));
    let mut client = home.admin();
    wait_for_tools(&mut client, "mcp:good");
    wait_for_tools(&mut client, "mcp:deaf");
    // Each is started by a thread of its own.
    let problem = eventually("each is in its state", || {
        let info = client.ask(json!({"type": "server_info"}));
        let servers = info["mcp_servers"].as_array()?;
        let states = servers.iter().map(|server| server["state"].as_str());
        let expected = ["starting", "down", "ready", "ready"];
        states
            .eq(expected.map(Some))
            .then(|| servers[1]["problem"].to_string())
    });
    assert!(problem.contains("no-such-program"), "{problem}");
    // What a program prints is not for everybody.
    let mut user = home.websocket(&home.tokens.user);
    let info = user.ask(json!({"type": "server_info"}));
    let gone = &info["mcp_servers"][1];
    assert_eq!(
        (&gone["state"], &gone["problem"]),
        (&json!("down"), &json!(null))
    );
    let (one, two) = (good.process(), deaf.process());
    let began = Instant::now();
    home.server().stop_now();
    assert!(!is_running(one) && !is_running(two));
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[test]
fn a_signal_ends_the_programs_too() {
    let stub = Stub::new();
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        config(
            json!({"stub": stub.entry(json!({}))}),
            json!({"log_level": "debug"}),
        ),
    );
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    wait_for_tools(&mut client, "mcp:stub");
    let process = stub.process();
    assert_eq!(program.signal("TERM"), Some(0));
    assert!(!is_running(process));
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    for part in [
        "mcp stub: the stub starts",
        "mcp stub: not a message: Listening on stdio",
        "mcp stub: ready with 11 tools (stub 1, MCP 2025-06-18)",
    ] {
        assert!(log.contains(part), "{part:?} in {log}");
    }

    // Killed, the server leaves nothing behind either: the end of the input
    // ends the program.
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    wait_for_tools(&mut client, "mcp:stub");
    let process = stub.process();
    send_signal(program.id(), "KILL");
    eventually("the program ends", || (!is_running(process)).then_some(()));
}
