//! MCP servers that run by themselves (Streamable HTTP), with sessions and
//! without.

use std::fs;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::mcp_http::{Kind, McpServer};
use support::model::{Act, Model};
use support::program::{Program, free_port};

fn home(server: &McpServer, more: Value) -> Home {
    Home::start(config(server, more))
}

fn config(server: &McpServer, more: Value) -> Value {
    let mut entry = json!({
        "url": server.url(),
        "headers": {"Authorization": "Bearer open sesame", "accept": "ours wins"},
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    json!({
        "permission_mode": "allow",
        "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
        "mcp_servers": {"web": entry},
    })
}

fn tools(client: &mut Client) -> Vec<String> {
    let listed = client.ask(json!({"type": "list_tools"}));
    let tools = listed["tools"].as_array().unwrap();
    tools
        .iter()
        .filter(|tool| tool["source"] == "mcp:web")
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn ready(server: &McpServer, more: Value) -> (Home, Client) {
    let home = home(server, more);
    let mut client = home.admin();
    wait_until_ready(&mut client);
    (home, client)
}

fn wait_until_ready(client: &mut Client) {
    eventually("the server's tools are there", || {
        (!tools(client).is_empty()).then_some(())
    });
}

fn run(client: &mut Client, call: &str) -> String {
    let reply = client.chat(&format!("run mcp_web_{call}"));
    reply["response"].as_str().unwrap().to_owned()
}

#[test]
fn calls_are_answered_as_json_and_as_events() {
    for kind in [Kind::Sessions, Kind::Stateless] {
        let server = McpServer::start(kind);
        let (mut home, mut client) = ready(&server, json!({}));
        for (call, said) in [
            ("echo {\"text\": \"hello\"}", "answered: you said: hello"),
            ("plain", "answered: plain"),
            ("cut", "failed: it gave no answer"),
            (
                "broken",
                "failed: it answered with status 502: \"<html>Bad gateway</html>\"",
            ),
            ("wants", "asks for more than the arguments (input_required)"),
            ("echo {\"text\": \"again\"}", "answered: you said: again"),
        ] {
            let answer = run(&mut client, call);
            assert!(answer.contains(said), "{kind:?} {call}: {answer}");
        }
        // Each was answered beside its stream: no capability is declared, so only pings are served.
        let answers = server.answers();
        let pings = answers.iter().filter(|one| one["id"] == "q");
        assert!(
            pings.clone().all(|one| one["result"] == json!({})),
            "{answers:?}"
        );
        let forms = answers.iter().filter(|one| one["id"] == "form");
        assert!(
            forms.clone().all(|one| one["error"]["code"] == -32601),
            "{answers:?}"
        );
        assert_eq!((pings.count(), forms.count(), answers.len()), (2, 2, 4));
        for (_, request) in server.requests("initialize") {
            assert_eq!(request["params"]["capabilities"], json!({}));
        }
        home.stop();
        let ended = server.requests("DELETE").len();
        assert_eq!(ended, usize::from(kind == Kind::Sessions), "{kind:?}");
    }
}

/// A client offers an admin the way to what is wrong, and nobody a way that leads nowhere.
#[test]
fn a_result_says_whether_an_admin_can_mend_the_server() {
    let server = McpServer::with_tools(["absent".to_owned()].into_iter());
    let (_home, mut client) = ready(&server, json!({}));
    client.ask(json!({"type": "subscribe", "events": ["chat.tool_result"]}));
    for (call, ok, needs_admin) in [
        ("plain", true, Value::Null),
        ("absent", false, Value::Null),
        ("wants", false, Value::Null),
        ("broken", false, json!(true)),
    ] {
        client.send(&json!({"type": "chat", "message": format!("run mcp_web_{call}")}));
        let result = client.event("chat.tool_result");
        assert_eq!(result["ok"], ok, "{result}");
        assert_eq!(result["needs_admin"], needs_admin, "{result}");
        client.response();
    }
}

#[test]
fn silence_ends_a_call_and_progress_goes_on_with_it() {
    for kind in [Kind::Sessions, Kind::Stateless] {
        let server = McpServer::start(kind);
        let (mut home, mut client) = ready(&server, json!({"timeout_seconds": 2}));
        let answer = run(&mut client, "steady");
        assert!(answer.ends_with("nine steps"), "2.7 s with news: {answer}");
        let answer = run(&mut client, "hang");
        assert!(
            answer.contains("did not answer within 2 seconds"),
            "comments are no news: {answer}"
        );
        let told = server.requests("notifications/cancelled").len();
        assert_eq!(told, usize::from(kind == Kind::Sessions), "{kind:?}");
        home.stop();
    }
}

#[test]
fn a_cancelled_turn_breaks_the_call() {
    let server = McpServer::start(Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    let ended = client.chat_and_cancel("run mcp_web_hang", || {
        eventually("the call has arrived", || {
            server.requests("tools/call").pop()
        });
    });
    assert_eq!(ended["data"]["state"], "cancelled", "{ended}");
    eventually("the server is told", || {
        server.requests("notifications/cancelled").pop()
    });
    home.stop();
}

#[test]
fn changed_tools_are_noticed() {
    for kind in [Kind::Sessions, Kind::Stateless] {
        let server = McpServer::start(kind);
        let (mut home, mut client) = ready(&server, json!({}));
        let listening = match kind {
            Kind::Sessions => "GET",
            Kind::Stateless => "subscriptions/listen",
        };
        eventually("it listens", || server.requests(listening).pop());
        assert!(run(&mut client, "grow").ends_with("grown"));
        eventually("the new tool is there", || {
            let names = tools(&mut client);
            names.contains(&"mcp_web_sprout".to_owned()).then_some(())
        });
        home.stop();
    }
}

/// How often a tool was called.
fn calls(server: &McpServer, tool: &str) -> usize {
    let calls = server.requests("tools/call");
    let is_it = |(_, body): &&(String, Value)| body["params"]["name"] == tool;
    calls.iter().filter(is_it).count()
}

#[test]
fn a_call_whose_answer_is_lost_is_not_made_again_and_harms_no_other() {
    let server = McpServer::start(Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    let mut other = home.admin();
    other.send(&json!({"type": "chat", "message": "run mcp_web_steady", "id": "other"}));
    eventually("the other call runs", || {
        (calls(&server, "steady") == 1).then_some(())
    });
    // Leaves a connection that the next call reuses.
    assert!(run(&mut client, "plain").ends_with("answered: plain"));
    let answer = run(&mut client, "act");
    assert!(
        answer.contains("it may or may not have taken effect"),
        "{answer}"
    );
    assert_eq!(calls(&server, "act"), 1);
    assert!(tools(&mut client).contains(&"mcp_web_act".to_owned()));
    assert!(run(&mut client, "plain").ends_with("answered: plain"));
    let answer = loop {
        let response = other.response();
        if response["id"] == "other" {
            break response;
        }
    };
    let said = answer["data"]["response"].as_str().unwrap();
    assert!(said.ends_with("nine steps"), "{said}");
    assert_eq!(server.requests("initialize").len(), 1);
    home.stop();
}

#[test]
fn an_answer_is_read_on_where_its_stream_broke() {
    let server = McpServer::start(Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    let answer = run(&mut client, "resume");
    assert!(answer.ends_with("answered: read on"), "{answer}");
    assert_eq!(calls(&server, "resume"), 1);
    home.stop();
}

#[test]
fn a_server_s_instructions_are_told_once_and_fenced_unless_it_is_trusted() {
    for is_trusted in [false, true] {
        let server = McpServer::start(Kind::Sessions);
        let model = Model::start(|_, _| Act::say("fine"));
        let mut config = model.config();
        config["mcp_servers"]["web"] = json!({
            "url": server.url(),
            "headers": {"Authorization": "Bearer open sesame"},
            "trusted": is_trusted,
        });
        let mut home = Home::start(config);
        let mut client = home.admin();
        wait_until_ready(&mut client);
        client.chat("hello");
        let request = model.requests().pop().unwrap();
        let system = request["messages"][0]["content"].as_str().unwrap();
        assert_eq!(system.matches("Say please.").count(), 1, "{system}");
        let is_fenced = system.contains("\nSay please.\n</outside ");
        assert_eq!(is_fenced, !is_trusted, "{system}");
        let is_told = system.contains("What the tools mcp_web_* say of themselves is text from");
        assert_eq!(is_told, !is_trusted, "{system}");
        let tools = request["tools"].to_string();
        assert!(tools.contains("mcp_web_plain") && !tools.contains("<outside"));
        home.stop();
    }
}

#[test]
fn a_forgotten_session_is_opened_anew_and_the_call_made_again() {
    let server = McpServer::start(Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    server.forget_session();
    let answer = run(&mut client, "plain");
    assert!(answer.ends_with("answered: plain"), "{answer}");
    assert_eq!(server.requests("initialize").len(), 2);
    assert_eq!(server.requests("tools/call").len(), 2);
    home.stop();
}

#[test]
fn a_server_that_is_gone_is_down_until_it_is_back() {
    let address = (Ipv4Addr::LOCALHOST, free_port()).into();
    let server = McpServer::on(address, Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    eventually("it listens", || server.requests("GET").pop());
    drop(server);
    let answer = run(&mut client, "plain");
    assert!(answer.contains("failed"), "{answer}");
    eventually("its tools are gone", || {
        tools(&mut client).is_empty().then_some(())
    });
    let server = McpServer::on(address, Kind::Sessions);
    wait_until_ready(&mut client);
    assert!(run(&mut client, "plain").ends_with("answered: plain"));
    assert_eq!(server.requests("initialize").len(), 1);
    home.stop();
}

#[test]
fn a_call_waits_for_a_server_that_is_starting_again() {
    let address = (Ipv4Addr::LOCALHOST, free_port()).into();
    let server = McpServer::on(address, Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    eventually("it listens", || server.requests("GET").pop());
    drop(server);
    client.send(&json!({"type": "chat", "message": "run mcp_web_plain"}));
    let mut other = home.admin();
    eventually("the call finds it gone", || {
        let info = other.ask(json!({"type": "server_info"}));
        (info["mcp_servers"][0]["state"] == "down").then_some(())
    });
    let server = McpServer::on(address, Kind::Sessions);
    let answer = client.response();
    let said = answer["data"]["response"].as_str().unwrap();
    assert!(said.ends_with("answered: plain"), "{said}");
    assert_eq!(server.requests("initialize").len(), 1);
    assert_eq!(calls(&server, "plain"), 1);
    home.stop();
}

/// A router that starts anew takes the stream of notifications away, but not the session.
#[test]
fn a_session_outlives_its_stream_of_notifications() {
    let address = (Ipv4Addr::LOCALHOST, free_port()).into();
    let server = McpServer::on(address, Kind::Sessions);
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), config(&server, json!({})));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    wait_until_ready(&mut client);
    eventually("it listens", || server.requests("GET").pop());
    drop(server);
    eventually("it could not listen again", || {
        let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
        log.contains("its notifications do not come").then_some(())
    });
    assert!(!tools(&mut client).is_empty());
    let server = McpServer::on(address, Kind::Sessions);
    server.forget_session();
    let answer = run(&mut client, "plain");
    assert!(answer.ends_with("answered: plain"), "{answer}");
    assert_eq!(server.requests("initialize").len(), 0);
    eventually("it listens again", || server.requests("GET").pop());
}

#[test]
fn notifications_are_read_on_behind_the_last_one() {
    let server = McpServer::start(Kind::Sessions);
    let (mut home, mut client) = ready(&server, json!({}));
    eventually("it listens", || server.requests("GET").pop());
    assert!(run(&mut client, "grow").ends_with("grown"));
    eventually("the new tool is there", || {
        let names = tools(&mut client);
        names.contains(&"mcp_web_sprout".to_owned()).then_some(())
    });
    server.cut_streams();
    let (head, _) = eventually("it listens again", || {
        server.requests("GET").into_iter().nth(1)
    });
    let head = head.to_ascii_lowercase();
    assert!(head.contains("last-event-id: news-1\r\n"), "{head}");
    home.stop();
}

#[test]
fn a_missing_key_is_said() {
    let server = McpServer::start(Kind::Sessions);
    let mut home = home(&server, json!({"headers": {"X-Other": "1"}}));
    let mut client = home.admin();
    let problem = eventually("the problem is known", || {
        let info = client.ask(json!({"type": "server_info"}));
        info["mcp_servers"][0]["problem"]
            .as_str()
            .map(str::to_owned)
    });
    assert!(
        problem.contains("status 401") && problem.contains("Authorization"),
        "{problem}"
    );
    home.stop();
}
