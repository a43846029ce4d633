//! MCP servers with more tools than the model's window has room for.

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::Home;
use support::mcp_http::McpServer;
use support::model::{Act, Model};
use support::program::run;

const WINDOW: usize = 8_192;

/// 56 tools, of which one does garden jobs.
fn server() -> McpServer {
    let kitchen = (0..45).map(|number| format!("kitchen_job_{number}"));
    McpServer::with_tools(kitchen.chain(["garden_job_0".to_owned()]))
}

/// Looks for a tool for the garden where it is asked to, and calls what it finds.
fn gardener() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let says = |text: &str| last["content"].to_string().contains(text);
        match last["role"].as_str().unwrap() {
            "user" if says("water the garden") && request["tools"].is_array() => {
                Act::call("find_tools", json!({ "query": "garden jobs" }))
            }
            "tool" if says("Listed from now on") => Act::call("mcp_web_garden_job_0", json!({})),
            _ => Act::say("Fine."),
        }
    })
}

fn config(model: &Model, server: &McpServer) -> Value {
    let mut config = model.config_with(json!({ "permission_mode": "allow" }));
    config["context_tokens"] = json!(WINDOW);
    let headers = json!({ "Authorization": "Bearer open sesame" });
    config["mcp_servers"] = json!({ "web": { "url": server.url(), "headers": headers } });
    config
}

fn listed(client: &mut Client) -> Vec<Value> {
    eventually("the server's tools are there", || {
        let tools = client.ask(json!({ "type": "list_tools" }))["tools"].take();
        let tools = tools.as_array().unwrap().clone();
        (tools.len() > 50).then_some(tools)
    })
}

/// The requests of turns, without those for titles.
fn requests(model: &Model) -> Vec<Value> {
    let mut requests = model.requests();
    requests.retain(|request| request["tools"].is_array());
    requests
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_small_window_keeps_room_for_the_conversation_and_tools_are_found_on_demand() {
    let (server, model) = (server(), gardener());
    let home = Home::start(config(&model, &server));
    let mut client = home.admin();
    let left_out = listed(&mut client);
    let is_left_out = |tool: &&Value| tool["is_left_out"] == true;
    let left_out: Vec<&Value> = left_out.iter().filter(is_left_out).collect();
    assert!(
        left_out
            .iter()
            .any(|tool| tool["name"] == "mcp_web_garden_job_0")
    );
    let conversation = client.chat("please water the garden")["conversation_id"].clone();
    let sent = requests(&model);
    let first = tools(&sent[0]);
    assert_eq!(first.last(), Some(&"find_tools"));
    assert!(first.contains(&"remember") && !first.contains(&"mcp_web_garden_job_0"));
    // A token has about three bytes of JSON.
    let bytes = sent[0]["tools"].to_string().len();
    assert!(bytes / 4 <= WINDOW / 4, "{bytes} bytes of tools");
    // What is found comes last: the beginning of the request is the same.
    let found = tools(&sent[1]);
    assert_eq!(found[..first.len()], first[..]);
    assert_eq!(found[first.len()..], ["mcp_web_garden_job_0"]);
    assert_eq!(server.requests("tools/call").len(), 1, "it was called");
    // It stays for the conversation, whose past is shown.
    for number in 0..8 {
        let message = format!("{number}: {}", "and so on ".repeat(30));
        client.ask(json!({ "type": "chat", "message": message, "conversation_id": conversation }));
    }
    let sent = requests(&model);
    let last = sent.last().unwrap();
    assert_eq!(tools(last), found);
    assert!(last["messages"].as_array().unwrap().len() > 16, "{last}");
    // Another conversation begins without it, and others have it as often as they use it.
    client.chat("hello");
    let sent = requests(&model);
    assert!(
        tools(sent.last().unwrap()).contains(&"mcp_web_garden_job_0"),
        "it was used"
    );
}

#[test]
fn nobody_finds_a_tool_that_they_may_not_have() {
    let (server, model) = (server(), gardener());
    let mut config = config(&model, &server);
    config["tool_permissions"] = json!({ "mcp_web_garden_job_0": "deny" });
    let home = Home::start(config);
    let mut client = home.admin();
    listed(&mut client);
    client.chat("please water the garden");
    for request in requests(&model) {
        assert!(!request["tools"].to_string().contains("garden_job"));
        let messages = request["messages"].as_array().unwrap().iter();
        let mut found = messages
            .map(Value::to_string)
            .filter(|one| one.contains("Listed from"));
        assert!(
            found.all(|listed| !listed.contains("garden_job")),
            "{request}"
        );
    }
    assert!(server.requests("tools/call").is_empty());
}

#[test]
fn doctor_names_the_tools_for_which_there_is_no_room() {
    let (server, model) = (server(), gardener());
    let mut home = Home::start(config(&model, &server));
    listed(&mut home.admin());
    let says = |home: &Home| {
        let output = run(home.folder.path(), &["doctor"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            said.contains("the model's window has no room for "),
            "{said}"
        );
        assert!(said.contains("mcp_web_garden_job_0"), "{said}");
    };
    says(&home);
    home.stop();
    says(&home);
}
