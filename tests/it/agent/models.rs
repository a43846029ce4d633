//! Every kind of provider through the whole server, models that stand in, usage
//! and budget, and what `hearth doctor` says.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use serde_json::{Value, json};

use support::client::Client;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model, whole};
use support::program::{Program, printed, run};
use support::served::{page, read_request};
use support::{MAX_WAIT, eventually};

use crate::agent::memory::say;

/// Where nobody listens.
const NOBODY: &str = "127.0.0.1:1";

/// A server that answers one path after the other with these bodies, each with
/// its content type.
struct Scripted {
    address: SocketAddr,
    thread: Option<std::thread::JoinHandle<Vec<(String, Value)>>>,
}

impl Scripted {
    fn answering(answers: Vec<(&'static str, String)>) -> Scripted {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut heard = Vec::new();
            for (kind, body) in answers {
                let (socket, _) = eventually("a request", || listener.accept().ok());
                socket.set_nonblocking(false).unwrap();
                socket.set_read_timeout(Some(MAX_WAIT)).unwrap();
                let mut reader = BufReader::new(socket);
                let (head, request) = read_request(&mut reader).unwrap();
                let path = head.split(' ').nth(1).unwrap().to_owned();
                heard.push((path, serde_json::from_slice(&request).unwrap_or_default()));
                let answer = page(kind, &body);
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
            heard
        });
        Scripted {
            address,
            thread: Some(thread),
        }
    }

    /// The requests, once all were answered.
    fn heard(mut self) -> Vec<(String, Value)> {
        self.thread.take().unwrap().join().unwrap()
    }
}

fn config(provider: &str, address: SocketAddr) -> Value {
    json!({
        "provider": provider,
        "base_url": format!("http://{address}"),
        "api_key": "test-key",
        "model": "m",
        "permission_mode": "allow",
    })
}

fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Chats with streaming; returns the pieces and the response.
fn streamed(client: &mut Client, message: &str) -> (String, Value) {
    client.send(&json!({ "type": "chat", "message": message, "stream": true, "id": 1 }));
    let mut text = String::new();
    loop {
        let message = client.receive();
        match message["event"].as_str() {
            Some("chat.delta") => text.push_str(message["text"].as_str().unwrap()),
            Some(_) => {}
            None => return (text, message),
        }
    }
}

/// What a person is told in place of a reply.
fn error_of(client: &mut Client, message: &str) -> String {
    client.send(&json!({ "type": "chat", "message": message }));
    let response = client.response();
    assert_eq!(response["code"], "server_error", "{response}");
    response["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_turn_with_a_tool_through_anthropic() {
    let call = events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90}}}),
        json!({"type": "content_block_start", "index": 0, "content_block":
               {"type": "thinking", "thinking": "Hm.", "signature": "sig"}}),
        json!({"type": "content_block_start", "index": 1, "content_block":
               {"type": "tool_use", "id": "toolu_1", "name": "current_time", "input": {}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]);
    let reply = events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 7}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is "}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "late."}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]);
    let server = Scripted::answering(vec![
        ("text/event-stream", call),
        ("text/event-stream", reply),
    ]);
    let home = Home::start(config("anthropic", server.address));
    let mut client = home.admin();
    let (text, response) = streamed(&mut client, "what time is it?");
    assert_eq!(text, "It is late.");
    assert_eq!(response["data"]["response"], "It is late.");
    let heard = server.heard();
    assert_eq!(heard[0].0, "/v1/messages");
    let messages = heard[1].1["messages"].as_array().unwrap();
    assert_eq!(
        messages[1]["content"][0]["signature"], "sig",
        "{messages:?}"
    );
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "toolu_1");
    let turn = client.ask(json!({ "type": "get_turn", "turn_id": response["data"]["turn_id"] }));
    assert_eq!(turn["model"], "m");
    assert_eq!(
        turn["tokens"],
        json!({ "input": 107, "output": 8, "cached": 90 })
    );
}

#[test]
fn a_turn_with_a_tool_through_ollama() {
    let call = lines(&[
        json!({"message": {"role": "assistant", "content": "", "tool_calls":
               [{"function": {"name": "current_time", "arguments": {}}}]}, "done": false}),
        json!({"message": {"content": ""}, "done": true, "prompt_eval_count": 20, "eval_count": 4}),
    ]);
    let reply = lines(&[
        json!({"message": {"content": "It is "}, "done": false}),
        json!({"message": {"content": "late."}, "done": false}),
        json!({"message": {"content": ""}, "done": true, "prompt_eval_count": 30, "eval_count": 2}),
    ]);
    let ndjson = "application/x-ndjson";
    let shown = json!({ "model_info": { "llama.context_length": 9_000 } }).to_string();
    let answers = vec![("application/json", shown), (ndjson, call), (ndjson, reply)];
    let server = Scripted::answering(answers);
    let home = Home::start(config("ollama", server.address));
    let mut client = home.admin();
    let (text, _) = streamed(&mut client, "what time is it?");
    assert_eq!(text, "It is late.");
    let heard = server.heard();
    assert_eq!(heard[0], ("/api/show".to_owned(), json!({ "model": "m" })));
    assert_eq!(heard[2].0, "/api/chat");
    assert_eq!(heard[2].1["options"]["num_ctx"], 9_000);
    let messages = heard[2].1["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    assert_eq!(
        (&last["role"], &last["tool_name"]),
        (&json!("tool"), &json!("current_time"))
    );
    let info = client.ask(json!({ "type": "server_info" }));
    assert_eq!(
        info["tokens"],
        json!({ "input": 50, "output": 6, "cached": 0 })
    );
}

#[test]
fn a_server_at_home_is_asked_for_its_window_once() {
    let json = "application/json";
    let props = json!({ "default_generation_settings": { "n_ctx": 4_096 } }).to_string();
    let said = json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] });
    let said = || (json, said.to_string());
    let server = Scripted::answering(vec![(json, props), said(), said()]);
    let home = Home::start(config("llamacpp", server.address));
    let mut client = home.admin();
    assert_eq!(client.chat("hello")["response"], "Hi");
    assert_eq!(client.chat("and now?")["response"], "Hi");
    let paths: Vec<String> = server.heard().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/props", "/chat/completions", "/chat/completions"]);
}

#[test]
fn a_model_stands_in_and_who_answered_is_known() {
    let model = Model::saying("from the second");
    let mut config = model.config();
    let second = json!({
        "provider": "openai-compatible", "model": "stand-in", "base_url": config["base_url"],
    });
    let address: SocketAddr = NOBODY.parse().unwrap();
    config["base_url"] = json!(format!("http://{address}/v1"));
    config["fallback"] = json!([second]);
    let home = Home::start(config);
    let mut client = home.admin();
    let reply = client.chat("hello");
    assert_eq!(reply["response"], "from the second");
    let turn = client.ask(json!({ "type": "get_turn", "turn_id": reply["turn_id"] }));
    assert_eq!(turn["model"], "stand-in");
    assert_eq!(model.requests()[0]["model"], "stand-in");
    let models = client.ask(json!({ "type": "server_info" }))["models"].clone();
    assert_eq!(models[0]["state"], "resting", "{models}");
    assert_eq!(models[1]["state"], "ready", "{models}");
}

#[test]
fn a_budget_that_is_used_up_stops_turns_and_is_shown() {
    let model = Model::saying("fine");
    let mut config = model.config();
    config["budget"] = json!({ "monthly_tokens": 20 });
    let home = Home::start(config);
    let mut client = home.admin();
    // Each reply costs 15.
    client.chat("one");
    client.chat("two");
    let error = error_of(&mut client, "three");
    assert!(
        error.contains("of 20 tokens") && error.contains("budget.monthly_tokens"),
        "{error}"
    );
    assert_eq!(model.requests().len(), 2, "nothing was asked");
    let info = client.ask(json!({ "type": "server_info" }));
    assert_eq!(
        info["budget"],
        json!({ "monthly_tokens": 20, "used_this_month": 30 })
    );
    client
        .ask(json!({ "type": "update_config", "config": { "budget": { "monthly_tokens": 100 } } }));
    assert_eq!(client.chat("four")["response"], "fine");

    let output = run(home.folder.path(), &["usage", "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["used_this_month"], 45, "{shown}");
    let row = &shown["usage"][0];
    assert_eq!(
        (&row["model"], &row["turns"], &row["input"]),
        (&json!("scripted"), &json!(4), &json!(30))
    );
    let output = run(home.folder.path(), &["usage", "--by", "day"]);
    let text = printed(&output);
    assert!(
        text.contains("scripted") && text.contains("45 of 100 tokens"),
        "{text}"
    );
}

#[test]
fn usage_before_an_approval_counts() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "bins on Monday" })),
        Act::say("noted"),
    ]);
    let home = Home::start(model.config_with(json!({ "permission_mode": "ask" })));
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "remember it", "id": "c" }));
    let waiting = eventually("an approval waits", || {
        let list = client.ask(json!({ "type": "list_approvals" }));
        list["approvals"].get(0).cloned()
    });
    let approval = &waiting["approval_id"];
    client.ask(json!({ "type": "approve", "approval_id": approval }));
    let turn = eventually("the turn ends", || {
        let turn = client.ask(json!({ "type": "get_turn", "turn_id": waiting["turn_id"] }));
        (turn["state"] == "done").then_some(turn)
    });
    assert_eq!(turn["tokens"]["input"], 20);
}

#[test]
fn a_reply_that_is_no_json_ends_the_turn_in_words() {
    let model = Model::acting(vec![Act::Raw(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>".to_owned(),
    )]);
    let home = Home::start(model.config());
    let error = error_of(&mut home.admin(), "hello");
    assert!(
        error.contains("answered something that is not JSON"),
        "{error}"
    );
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let folder = TemporaryDirectory::new();
    make_people(folder.path());
    let doctor = |config: Value| {
        write_config(folder.path(), config);
        let output = run(folder.path(), &["doctor"]);
        (output.status.code(), printed(&output))
    };
    let (code, text) = doctor(json!({}));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("warning  no model is connected"), "{text}");

    let list = |names: &[&str]| {
        let data: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
        ("application/json", json!({ "data": data }).to_string())
    };
    let server = Scripted::answering(vec![list(&["m"])]);
    let (code, text) = doctor(config("openai-compatible", server.address));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("accepts the key and has the model \"m\""),
        "{text}"
    );
    assert_eq!(server.heard()[0].0, "/models");

    let server = Scripted::answering(vec![list(&["other", "many"])]);
    let (code, text) = doctor(config("openai-compatible", server.address));
    server.heard();
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("problem") && text.contains("hearth config set model many"),
        "{text}"
    );

    let address: SocketAddr = NOBODY.parse().unwrap();
    let mut sick = config("ollama", address);
    sick["fallback"] = json!([{ "provider": "openai", "model": "gpt" }]);
    write_config(folder.path(), sick);
    let output = run(folder.path(), &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["ok"], false);
    let problems: Vec<&Value> = shown["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["check"] == "provider")
        .collect();
    assert!(
        problems[0]["text"]
            .as_str()
            .unwrap()
            .contains("check that it is running")
    );
    assert!(
        problems[1]["advice"].to_string().contains("OPENAI_API_KEY"),
        "{shown}"
    );
}

#[test]
fn a_first_start_offers_what_the_environment_holds_and_uses_nothing() {
    let folder = TemporaryDirectory::new();
    let environment = [("GROQ_API_KEY", "gsk-hidden")];
    let arguments = ["serve", "--bind", "127.0.0.1", "--port", "0"];
    let program = Program::start_in(folder.path(), &arguments, &environment);
    let said = eventually("the offer is made", || {
        let said = std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
        said.ends_with("provider groq\n\n").then_some(said)
    });
    assert!(
        said.contains("GROQ_API_KEY is set") && !said.contains("gsk-hidden"),
        "{said}"
    );
    let listening = said.find("hearth listening on").unwrap();
    assert!(listening < said.find("No model is connected yet").unwrap());
    let output = run(folder.path(), &["config", "get", "provider"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "offline");
    assert_eq!(program.signal("TERM"), Some(0));
}

/// Some services want the thoughts behind every reply back, in later turns, too: they come
/// from the database.
#[test]
fn the_thoughts_of_a_last_reply_go_back_to_a_service_that_wants_them() {
    let think = |text: &str, thoughts: &str| {
        let message =
            json!({ "role": "assistant", "content": text, "reasoning_content": thoughts });
        Act::Raw(whole(&message, "stop"))
    };
    let replies = vec![
        think("It is on.", "The lamp."),
        think("Yes.", "As I said."),
        think("Still.", ""),
    ];
    for (provider, expected) in [
        ("deepseek", [json!("The lamp."), json!("As I said.")]),
        ("openai-compatible", [Value::Null, Value::Null]),
    ] {
        let model = Model::acting(replies.clone());
        let mut home =
            Home::start(model.config_with(json!({ "provider": provider, "api_key": "k" })));
        let mut client = home.admin();
        let first = client.ask(json!({ "type": "chat", "message": "is the lamp on?" }));
        let conversation = first["conversation_id"].clone();
        say(&mut client, &conversation, "really?");
        home.restart();
        say(&mut home.admin(), &conversation, "and now?");
        let last = model.requests()[2]["messages"].clone();
        let sent = [2, 4].map(|place| last[place]["reasoning_content"].clone());
        assert_eq!(sent, expected, "{provider}: {last}");
    }
}
