//! Servers of the Model Context Protocol: one over Streamable HTTP, and scripts of a shell.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::served::{Served, read_request};

/// Which revisions the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Those with `initialize` and a session.
    Sessions,
    /// 2026-07-28 alone.
    Stateless,
}

/// The running server.
pub struct McpServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _served: Served,
}

struct Shared {
    kind: Kind,
    /// Number of the one session that is known.
    session: Mutex<u32>,
    tools: Mutex<Vec<String>>,
    /// Heads and bodies that came.
    requests: Mutex<Vec<(String, Value)>>,
    /// Streams for what is said unasked.
    streams: Mutex<Vec<TcpStream>>,
    /// All sockets, to be cut.
    sockets: Mutex<Vec<TcpStream>>,
}

impl McpServer {
    pub fn start(kind: Kind) -> McpServer {
        McpServer::on((Ipv4Addr::LOCALHOST, 0).into(), kind)
    }

    /// A server with many tools more, which say much of themselves.
    pub fn with_tools(names: impl Iterator<Item = String>) -> McpServer {
        let server = McpServer::start(Kind::Stateless);
        server.shared.tools.lock().unwrap().extend(names);
        server
    }

    /// A server on this address, which may have been in use before.
    pub fn on(address: SocketAddr, kind: Kind) -> McpServer {
        let tools = [
            "echo", "plain", "steady", "hang", "cut", "broken", "grow", "wants", "act", "resume",
        ];
        let shared = Arc::new(Shared {
            kind,
            session: Mutex::new(0),
            tools: Mutex::new(tools.map(str::to_owned).to_vec()),
            requests: Mutex::default(),
            streams: Mutex::default(),
            sockets: Mutex::default(),
        });
        let served = {
            let shared = Arc::clone(&shared);
            Served::on(address, move |socket| serve(socket, &shared))
        };
        McpServer {
            address: served.address,
            shared,
            _served: served,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests so far of this JSON-RPC method, or of this HTTP method for
    /// those without a body: head and body.
    pub fn requests(&self, method: &str) -> Vec<(String, Value)> {
        let requests = self.shared.requests.lock().unwrap();
        let is_it = |(head, body): &&(String, Value)| {
            body["method"] == method || (body.is_null() && head.starts_with(method))
        };
        requests.iter().filter(is_it).cloned().collect()
    }

    /// What came as answers to our own requests.
    pub fn answers(&self) -> Vec<Value> {
        let requests = self.shared.requests.lock().unwrap();
        let bodies = requests.iter().map(|(_, body)| body);
        let answers = bodies.filter(|body| !body.is_null() && body.get("method").is_none());
        answers.cloned().collect()
    }

    /// Cuts the streams for what is said unasked.
    pub fn cut_streams(&self) {
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Forgets the session, as a server does that was restarted.
    pub fn forget_session(&self) {
        *self.shared.session.lock().unwrap() += 1;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        for socket in self.shared.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn serve(socket: TcpStream, shared: &Shared) {
    socket.set_nodelay(true).unwrap();
    let copy = socket.try_clone().unwrap();
    shared.sockets.lock().unwrap().push(copy);
    let mut reader = BufReader::new(socket);
    while let Some((head, body)) = read_request(&mut reader) {
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let noted = (head.clone(), body.clone());
        shared.requests.lock().unwrap().push(noted);
        // An error means that the client has gone.
        if answer(shared, reader.get_mut(), &head.to_ascii_lowercase(), &body).is_err() {
            return;
        }
    }
}

fn answer(
    shared: &Shared,
    socket: &mut TcpStream,
    head: &str,
    body: &Value,
) -> std::io::Result<()> {
    let id = &body["id"];
    let method = body["method"].as_str().unwrap_or_default();
    if !head.contains("authorization: bearer open sesame") {
        return reply(
            socket,
            "401 Unauthorized",
            "",
            &json!({"error": "invalid_token"}),
        );
    }
    let has_body = !body.is_null();
    if has_body && !head.contains("accept: application/json, text/event-stream") {
        return reply(socket, "406 Not Acceptable", "", &json!({}));
    }
    match shared.kind {
        Kind::Sessions if method == "initialize" => {
            let mut session = shared.session.lock().unwrap();
            *session += 1;
            let header = format!("Mcp-Session-Id: s{session}\r\n");
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "stub", "version": "2"},
                "instructions": "Say please."});
            return reply(socket, "200 OK", &header, &result_of(id, result));
        }
        Kind::Sessions => {
            let session = *shared.session.lock().unwrap();
            let is_known = head.contains(&format!("mcp-session-id: s{session}\r\n"))
                && head.contains("mcp-protocol-version: 2025-11-25\r\n");
            if !is_known {
                return reply(
                    socket,
                    "404 Not Found",
                    "",
                    &json!({"error": "no such session"}),
                );
            }
        }
        Kind::Stateless => {
            let meta = &body["params"]["_meta"];
            let is_whole = head.contains(&format!("mcp-method: {method}\r\n"))
                && head.contains("mcp-protocol-version: 2026-07-28\r\n")
                && meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
                && meta["io.modelcontextprotocol/clientCapabilities"].is_object();
            if !is_whole {
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32022,
                    "message": "unsupported version", "data": {"supported": ["2026-07-28"]}}});
                return reply(socket, "400 Bad Request", "", &error);
            }
        }
    }
    match method {
        "server/discover" => {
            let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "resultType": "complete"});
            reply(socket, "200 OK", "", &result_of(id, result))
        }
        "tools/list" => {
            let tools = shared.tools.lock().unwrap().clone();
            let tools: Vec<Value> = tools
                .iter()
                .map(|name| match name.split_once("job_") {
                    Some((kind, _)) => json!({
                        "name": name,
                        "description": format!("Does {kind} jobs. {}", "It takes its time. ".repeat(9)),
                        "inputSchema": {"type": "object"},
                    }),
                    None => json!({"name": name, "inputSchema": {"type": "object"}}),
                })
                .collect();
            reply(
                socket,
                "200 OK",
                "",
                &result_of(id, json!({"tools": tools})),
            )
        }
        "tools/call" => call(shared, socket, id, &body["params"]),
        "subscriptions/listen" => listen(shared, socket),
        _ if head.starts_with("get ") && head.contains("last-event-id: call-") => {
            let (_, id) = head.split_once("last-event-id: call-").unwrap();
            let id: Value = id.split("\r\n").next().unwrap().parse().unwrap();
            let content = json!([{"type": "text", "text": "read on"}]);
            open_stream(socket)?;
            let answer = result_of(&id, json!({"content": content}));
            event(socket, &format!("data: {answer}\n\n"))?;
            event(socket, "")
        }
        _ if head.starts_with("get ") && shared.kind == Kind::Sessions => listen(shared, socket),
        _ if head.starts_with("delete ") => reply(socket, "200 OK", "", &Value::Null),
        _ => reply(socket, "202 Accepted", "", &Value::Null),
    }
}

fn call(
    shared: &Shared,
    socket: &mut TcpStream,
    id: &Value,
    params: &Value,
) -> std::io::Result<()> {
    let text = |text: &str| result_of(id, json!({"content": [{"type": "text", "text": text}]}));
    match params["name"].as_str().unwrap() {
        "echo" => {
            open_stream(socket)?;
            event(socket, "id: 1\ndata: \n\n")?;
            for (id, method) in [("q", "ping"), ("form", "elicitation/create")] {
                let request = json!({"jsonrpc": "2.0", "id": id, "method": method});
                event(socket, &format!("event: message\ndata: {request}\n\n"))?;
            }
            let said = params["arguments"]["text"].as_str().unwrap_or_default();
            event(
                socket,
                &format!("data: {}\n\n", text(&format!("you said: {said}"))),
            )?;
            event(socket, "")
        }
        "plain" => reply(socket, "200 OK", "", &text("plain")),
        "steady" => {
            open_stream(socket)?;
            for step in 1..=9 {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": params["_meta"]["progressToken"], "progress": step}});
                event(socket, &format!("data: {progress}\n\n"))?;
                std::thread::sleep(Duration::from_millis(300));
            }
            event(socket, &format!("data: {}\n\n", text("nine steps")))?;
            event(socket, "")
        }
        "hang" => {
            open_stream(socket)?;
            loop {
                event(socket, ": still here\n\n")?;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        "cut" => {
            open_stream(socket)?;
            event(socket, "")
        }
        "act" => socket.shutdown(Shutdown::Both),
        "resume" => {
            open_stream(socket)?;
            event(socket, &format!("id: call-{id}\nretry: 10\ndata: \n\n"))?;
            event(socket, "id: lost\ndata: {")?;
            socket.shutdown(Shutdown::Both)
        }
        "broken" => {
            let page = json!("<html>Bad gateway</html>");
            reply(socket, "502 Bad Gateway", "", &page)
        }
        "grow" => {
            shared.tools.lock().unwrap().push("sprout".to_owned());
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            for stream in &mut *shared.streams.lock().unwrap() {
                event(stream, &format!("id: news-1\ndata: {changed}\n\n"))?;
            }
            reply(socket, "200 OK", "", &text("grown"))
        }
        "wants" => {
            let result = json!({"resultType": "input_required", "inputRequests": {}});
            reply(socket, "200 OK", "", &result_of(id, result))
        }
        name => {
            let error = json!({"jsonrpc": "2.0", "id": id,
                "error": {"code": -32602, "message": format!("Unknown tool: {name}")}});
            reply(socket, "200 OK", "", &error)
        }
    }
}

/// Keeps a stream open until the client leaves.
fn listen(shared: &Shared, socket: &mut TcpStream) -> std::io::Result<()> {
    open_stream(socket)?;
    let copy = socket.try_clone()?;
    shared.streams.lock().unwrap().push(copy);
    Ok(())
}

fn result_of(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn reply(socket: &mut TcpStream, status: &str, headers: &str, body: &Value) -> std::io::Result<()> {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let length = body.len();
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

fn open_stream(socket: &mut TcpStream) -> std::io::Result<()> {
    socket.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
}

/// One piece of a stream; an empty one ends it.
fn event(socket: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(socket, "{:x}\r\n{text}\r\n", text.len())
}

/// The script of a server on standard input and output, with these tools. After the list of
/// them it does `then`, and it runs `call` for each call.
pub fn shell_server(name: &str, tools: &Value, then: &str, call: &str) -> String {
    let begun = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": name, "version": "1"},
    });
    let list = json!({"tools": tools});
    format!(
        r#"
say() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
while read -r line; do
  id=${{line#*'"id":'}}
  id=${{id%%[,\}}]*}}
  case $line in
  *'"initialize"'*) say '{begun}' ;;
  *'"tools/list"'*) say '{list}'; {then} ;;
  *'"tools/call"'*) {call} ;;
  esac
done
"#
    )
}
