//! MCP servers of HTTP+SSE, the transport before Streamable HTTP, and tokens that a program
//! prints.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory};
use support::served::{Served, read_request};

/// A scripted server: its stream is at /sse, and takes messages at /messages.
struct SseServer {
    served: Served,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The newest stream.
    stream: Mutex<Option<TcpStream>>,
    /// The only token that is taken, if any is needed.
    token: Mutex<Option<String>>,
    /// The address of messages that the stream names.
    endpoint: Mutex<Option<String>>,
    /// What came to /messages.
    messages: Mutex<Vec<Value>>,
    /// Heads of all requests.
    heads: Mutex<Vec<String>>,
}

impl SseServer {
    fn start() -> SseServer {
        let shared = Arc::<Shared>::default();
        let served = {
            let shared = Arc::clone(&shared);
            Served::start(move |socket| serve(socket, &shared))
        };
        SseServer { served, shared }
    }

    fn home(&self, more: Value) -> (Home, Client) {
        let mut entry = json!({"url": format!("http://{}/sse", self.served.address)});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        let home = Home::start(json!({
            "permission_mode": "allow",
            "limits": {"commands_per_second": 100_000, "commands_burst": 100_000},
            "mcp_servers": {"old": entry},
        }));
        let client = home.admin();
        (home, client)
    }

    fn cut(&self) {
        if let Some(stream) = self.shared.stream.lock().unwrap().take() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for SseServer {
    fn drop(&mut self) {
        self.cut();
    }
}

fn serve(socket: TcpStream, shared: &Shared) {
    socket.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(socket);
    while let Some((head, body)) = read_request(&mut reader) {
        shared.heads.lock().unwrap().push(head.clone());
        let token = shared.token.lock().unwrap().clone();
        let is_refused = token.is_some_and(|token| !head.contains(&format!("Bearer {token}\r\n")));
        let socket = reader.get_mut();
        let answer = match (
            is_refused,
            head.split(' ').next(),
            head.contains(" /messages?s=1 "),
        ) {
            (true, ..) => "401 Unauthorized",
            (_, Some("GET"), _) => {
                let endpoint = shared.endpoint.lock().unwrap().clone();
                let endpoint = endpoint.unwrap_or_else(|| "/messages?s=1".to_owned());
                let opening = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                     Connection: close\r\n\r\n: hello\n\nevent: endpoint\ndata: {endpoint}\n\n"
                );
                let _ = socket.write_all(opening.as_bytes());
                let copy = socket.try_clone().unwrap();
                *shared.stream.lock().unwrap() = Some(copy);
                continue;
            }
            (_, _, false) => "405 Method Not Allowed",
            _ => {
                let body: Value = serde_json::from_slice(&body).unwrap();
                shared.messages.lock().unwrap().push(body.clone());
                for message in answers(&body) {
                    let mut stream = shared.stream.lock().unwrap();
                    if let Some(stream) = stream.as_mut() {
                        let _ = write!(stream, "event: message\ndata: {message}\n\n");
                    }
                }
                "202 Accepted"
            }
        };
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
        if socket.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// What the stream says to a message.
fn answers(message: &Value) -> Vec<Value> {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{"name": "echo", "inputSchema": {
            "type": "object", "properties": {"text": {"type": "string"}},
        }}]}),
        Some("tools/call") => {
            let text = &message["params"]["arguments"]["text"];
            json!({"content": [{"type": "text", "text": format!("you said: {text}")}]})
        }
        Some("resources/list") => match message["params"]["cursor"].as_str() {
            None => json!({
                "resources": [{"uri": "note://bins", "name": "bins", "description": "When"}],
                "nextCursor": "more",
            }),
            _ => json!({"resources": [{"uri": "note://tea", "name": "tea"}]}),
        },
        Some("resources/read") => {
            let uri = &message["params"]["uri"];
            json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "On Monday."}]})
        }
        Some("prompts/list") => json!({"prompts": [{
            "name": "letter", "description": "A letter", "arguments": [{"name": "to"}],
        }]}),
        Some("prompts/get") => {
            let to = message["params"]["arguments"]["to"].as_str().unwrap();
            json!({"messages": [
                {"role": "user", "content": {"type": "text", "text": format!("Dear {to},")}},
            ]})
        }
        Some("resources/templates/list") => {
            let error = json!({"code": -32601, "message": "no templates"});
            return vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error})];
        }
        _ => return Vec::new(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let ping = json!({"jsonrpc": "2.0", "id": "from-server", "method": "ping"});
    vec![ping, answer]
}

fn status(client: &mut Client) -> Value {
    client.ask(json!({"type": "server_info"}))["mcp_servers"][0].clone()
}

fn wait_until_ready(client: &mut Client) {
    eventually("the server is ready", || {
        (status(client)["state"] == "ready").then_some(())
    });
}

fn run(client: &mut Client, call: &str) -> String {
    let reply = client.chat(&format!("run mcp_old_{call}"));
    reply["response"].as_str().unwrap().to_owned()
}

fn echo(client: &mut Client, text: &str) -> String {
    run(client, &format!("echo {{\"text\": {text:?}}}"))
}

#[test]
fn servers_of_the_older_transport_are_spoken_to() {
    for more in [json!({}), json!({"type": "sse"})] {
        let server = SseServer::start();
        let (mut home, mut client) = server.home(more.clone());
        wait_until_ready(&mut client);
        let answer = echo(&mut client, "hello");
        assert!(answer.contains("you said: \"hello\""), "{answer}");
        let messages = server.shared.messages.lock().unwrap().clone();
        let pongs = messages
            .iter()
            .filter(|message| message["id"] == "from-server");
        assert!(pongs.count() > 0, "{messages:?}");
        // A server that is said to be older is not tried first.
        let heads = server.shared.heads.lock().unwrap().clone();
        assert_eq!(
            heads[0].starts_with("GET"),
            more["type"] == "sse",
            "{heads:?}"
        );
        // Its stream is the session: without it, there is another.
        server.cut();
        eventually("the end is noticed", || {
            (status(&mut client)["state"] != "ready").then_some(())
        });
        wait_until_ready(&mut client);
        let answer = echo(&mut client, "again");
        assert!(answer.contains("you said: \"again\""), "{answer}");
        home.stop();
    }
}

#[test]
fn messages_go_to_no_other_server() {
    let server = SseServer::start();
    *server.shared.endpoint.lock().unwrap() = Some("http://evil.example/messages".to_owned());
    let (_home, mut client) = server.home(json!({"type": "sse"}));
    let problem = eventually("the server is reported", || {
        Some(status(&mut client)["problem"].as_str()?.to_owned())
    });
    assert!(
        problem.contains("cannot be used") && problem.contains("evil.example"),
        "{problem}"
    );
}

#[test]
fn a_token_that_a_program_prints_is_renewed_when_it_is_refused() {
    let server = SseServer::start();
    let folder = TemporaryDirectory::new();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\n").unwrap();
    *server.shared.token.lock().unwrap() = Some("first".to_owned());
    let (_home, mut client) = server.home(json!({
        "token_command": ["cat", file], "headers": {"Authorization": "Bearer mine"},
    }));
    wait_until_ready(&mut client);
    assert!(echo(&mut client, "one").contains("you said: \"one\""));
    *server.shared.token.lock().unwrap() = Some("second".to_owned());
    std::fs::write(&file, "second").unwrap();
    let answer = echo(&mut client, "two");
    assert!(answer.contains("you said: \"two\""), "{answer}");
    std::fs::write(&file, "").unwrap();
    *server.shared.token.lock().unwrap() = Some("third".to_owned());
    server.cut();
    eventually("the program is blamed", || {
        let status = status(&mut client);
        let problem = status["problem"].as_str()?;
        problem
            .contains("\"token_command\" printed no token")
            .then_some(())
    });
}

#[test]
fn resources_and_prompts_of_servers_are_listed_and_used() {
    let server = SseServer::start();
    let (_home, mut client) = server.home(json!({}));
    wait_until_ready(&mut client);
    for (call, says) in [
        ("read_resource", "note://bins: When\nnote://tea: tea"),
        ("read_resource {\"uri\": \"note://bins\"}", "On Monday."),
        ("get_prompt", "letter (to): A letter"),
        (
            "get_prompt {\"name\": \"letter\", \"arguments\": {\"to\": \"Ada\"}}",
            "Dear Ada,",
        ),
    ] {
        let answer = run(&mut client, call);
        assert!(answer.contains(says), "{call}: {answer}");
    }
}
