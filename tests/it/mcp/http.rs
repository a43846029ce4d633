//! MCP servers that run by themselves (Streamable HTTP), with sessions and
//! without.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::Home;
use support::mcp_http::{Kind, McpServer};
use support::program::free_port;

fn home(server: &McpServer, more: Value) -> Home {
    let mut entry = json!({
        "url": server.url(),
        "headers": {"Authorization": "Bearer open sesame", "accept": "ours wins"},
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    Home::start(json!({
        "permission_mode": "allow",
        "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
        "mcp_servers": {"web": entry},
    }))
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
