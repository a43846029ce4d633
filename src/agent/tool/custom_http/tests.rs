use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

use super::*;
use config::CustomRun;

/// Longest that something which should happen at once may take.
const SOON: Duration = Duration::from_secs(5);

/// A request as it arrived.
struct Received {
    line: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is there twice");
        value
    }
}

/// Answers one request with `answer` on an address of its own.
fn serve(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (String, JoinHandle<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut reader = BufReader::new(stream);
        let mut next_line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let line = next_line();
        let headers: Vec<(String, String)> = std::iter::repeat_with(&mut next_line)
            .take_while(|line| !line.is_empty())
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_ascii_lowercase(), value.to_owned())
            })
            .collect();
        let mut received = Received {
            line,
            headers,
            body: String::new(),
        };
        let length = received
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        received.body = String::from_utf8(body).unwrap();
        answer(&mut reader.into_inner());
        received
    });
    (address, server)
}

fn respond(status: &str, body: &[u8]) -> impl FnOnce(&mut TcpStream) + Send + 'static {
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend_from_slice(body);
    move |stream| {
        // The client may have left before the end.
        let _ = stream.write_all(&response);
    }
}

fn tool(method: &str, url: String, headers: &[(&str, &str)], body: Option<Value>) -> HttpTool {
    let headers: Vec<(String, Secret)> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
        .collect();
    let custom = CustomTool {
        name: "lamp".to_owned(),
        description: String::new(),
        parameters: json!({
            "type": "object",
            "properties": {"room": {}, "level": {}, "absent": {}},
        }),
        run: CustomRun::Http {
            method: method.to_owned(),
            url: url.clone(),
            headers: headers.clone(),
            body: body.clone(),
        },
        read_only: false,
        timeout_seconds: 60,
        output_bytes: 1_000,
    };
    HttpTool::new(
        &custom,
        method,
        &url,
        &headers,
        body.as_ref(),
        Arc::default(),
    )
}

fn run(tool: &HttpTool, arguments: &Value) -> Result<String, String> {
    tool.execute(
        arguments.as_object().unwrap(),
        Instant::now() + SOON,
        &Cancel::default(),
    )
}

#[test]
fn templates_become_the_request() {
    struct Case {
        method: &'static str,
        path: &'static str,
        headers: &'static [(&'static str, &'static str)],
        body: Option<Value>,
        line: &'static str,
        sent: &'static str,
        media_type: Option<&'static str>,
    }
    let json_type = Some("application/json");
    let cases = [
        Case {
            method: "GET",
            path: "/{room}?level={level}&x={absent}",
            headers: &[("X-Room", "<{level}>"), ("X-Key", "secret")],
            body: None,
            line: "GET /a%20b%2F%26?level=7&x= HTTP/1.1",
            sent: "",
            media_type: None,
        },
        Case {
            method: "DELETE",
            path: "/x",
            headers: &[("X-Room", "<{level}>")],
            body: None,
            line: "DELETE /x HTTP/1.1",
            sent: "",
            media_type: None,
        },
        Case {
            method: "POST",
            path: "/x",
            headers: &[("X-Room", "<{level}>")],
            body: None,
            line: "POST /x HTTP/1.1",
            sent: r#"{"room":"a b/&","level":7}"#,
            media_type: json_type,
        },
        Case {
            method: "PUT",
            path: "/x",
            headers: &[("X-Room", "<{level}>")],
            body: Some(json!({"a": "{level}", "b": "in {room}", "c": "{absent}"})),
            line: "PUT /x HTTP/1.1",
            sent: r#"{"a":7,"b":"in a b/&"}"#,
            media_type: json_type,
        },
        Case {
            method: "PATCH",
            path: "/x",
            headers: &[("X-Room", "<{level}>")],
            body: Some(json!("{level}")),
            line: "PATCH /x HTTP/1.1",
            sent: "7",
            media_type: json_type,
        },
        Case {
            method: "POST",
            path: "/x",
            headers: &[("X-Room", "<{level}>"), ("content-type", "text/plain")],
            body: Some(json!("Now {room}!")),
            line: "POST /x HTTP/1.1",
            sent: "Now a b/&!",
            media_type: Some("text/plain"),
        },
        Case {
            method: "POST",
            path: "/x",
            headers: &[
                ("X-Room", "<{level}>"),
                ("Content-Type", "application/x-www-form-urlencoded"),
            ],
            body: Some(json!("a={room}&b={level}")),
            line: "POST /x HTTP/1.1",
            sent: "a=a%20b%2F%26&b=7",
            media_type: Some("application/x-www-form-urlencoded"),
        },
        Case {
            method: "DELETE",
            path: "/x",
            headers: &[("X-Room", "<{level}>")],
            body: Some(json!({"a": "{level}"})),
            line: "DELETE /x HTTP/1.1",
            sent: r#"{"a":7}"#,
            media_type: json_type,
        },
    ];
    let arguments = json!({"room": "a b/&", "level": 7});
    for case in cases {
        let (address, server) = serve(respond("200 OK", b"done\n"));
        let tool = tool(
            case.method,
            format!("{address}{}", case.path),
            case.headers,
            case.body,
        );
        assert_eq!(run(&tool, &arguments), Ok("done".to_owned()));
        let received = server.join().unwrap();
        assert_eq!(received.line, case.line);
        assert_eq!(received.body, case.sent, "{}", case.line);
        assert_eq!(received.header("content-type"), case.media_type);
        assert_eq!(received.header("x-room"), Some("<7>"));
    }
}

#[test]
fn the_response_becomes_the_result() {
    let answered = |rest: &str| Err(format!("the tool \"lamp\" was answered with {rest}"));
    for (status, body, result) in [
        ("200 OK", "on".as_bytes().to_vec(), Ok("on".to_owned())),
        ("204 No Content", Vec::new(), Ok("[no output]".to_owned())),
        (
            "200 OK",
            b"\0\0".to_vec(),
            Ok("[binary output of 2 bytes]".to_owned()),
        ),
        (
            "200 OK",
            vec![b'x'; 300_000],
            Ok(format!(
                "{}\n[output cut: only its first 1000 bytes are shown]",
                "x".repeat(1000)
            )),
        ),
        (
            "404 Not Found",
            b"no lamp".to_vec(),
            answered("status 404: no lamp"),
        ),
        (
            "500 Oh",
            vec![b'x'; 2_000],
            answered(&format!(
                "status 500: {}\n[output cut: only its first 1000 bytes are shown]",
                "x".repeat(1000)
            )),
        ),
        (
            "302 Found",
            Vec::new(),
            answered("status 302, a redirect, which is not followed"),
        ),
    ] {
        let (address, server) = serve(respond(status, &body));
        let tool = tool("GET", address, &[], None);
        assert_eq!(run(&tool, &json!({})), result, "{status}");
        server.join().unwrap();
    }
}

#[test]
fn arguments_cannot_change_what_is_asked() {
    // Nobody listens: a request that is made says so instead.
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let headers = [("X-Room", "{level}")];
    let tool = tool("GET", format!("{address}/rooms/{{room}}/x"), &headers, None);
    for (arguments, problem) in [
        (json!({"room": "..", "level": 1}), "must not be"),
        (json!({"room": ".", "level": 1}), "must not be"),
        (
            json!({"room": "a", "level": "x\r\nY: z"}),
            "header \"X-Room\"",
        ),
        (json!({"room": "../..", "level": 1}), "got no answer"),
        (
            json!({"room": "a", "level": 1}),
            "got no answer: no connection: Connection refused",
        ),
    ] {
        let result = run(&tool, &arguments).unwrap_err();
        assert!(result.contains(problem), "{arguments}: {result}");
    }
}

#[test]
fn a_request_that_cannot_be_made_is_an_error_without_its_secrets() {
    for url in [
        "nonsense-key1234",
        "http://[key1234",
        "ftp://127.0.0.1/key1234",
    ] {
        let tool = tool("GET", url.to_owned(), &[], None);
        let problem = run(&tool, &json!({})).unwrap_err();
        assert!(
            problem.contains("lamp") && !problem.contains("key1234"),
            "{problem}"
        );
    }
}

#[test]
fn a_silent_server_does_not_hold_the_turn() {
    for beginning in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        let (leave, stay) = crossbeam_channel::bounded::<()>(0);
        let (address, server) = serve(move |stream| {
            stream.write_all(beginning).unwrap();
            // Until the test has its result.
            let _ = stay.recv_timeout(SOON * 2);
        });
        let tool = tool("GET", address, &[], None);
        let began = Instant::now();
        let result = tool.execute(
            &Arguments::new(),
            Instant::now() + Duration::from_millis(500),
            &Cancel::default(),
        );
        assert_eq!(
            result.unwrap_err(),
            "the tool \"lamp\" was stopped: the time for this turn is up"
        );
        assert!(began.elapsed() < SOON);
        drop(leave);
        server.join().unwrap();
    }
}

#[test]
fn cancelling_breaks_the_request() {
    for beginning in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        let cancel = Cancel::default();
        let canceller = cancel.clone();
        let (leave, stay) = crossbeam_channel::bounded::<()>(0);
        let (address, server) = serve(move |stream| {
            stream.write_all(beginning).unwrap();
            canceller.cancel();
            let _ = stay.recv_timeout(SOON * 2);
        });
        let tool = tool("GET", address, &[], None);
        let began = Instant::now();
        let result = tool.execute(
            &Arguments::new(),
            Instant::now() + Duration::from_secs(60),
            &cancel,
        );
        assert_eq!(
            result.unwrap_err(),
            "the tool \"lamp\" was stopped because the turn was cancelled"
        );
        assert!(began.elapsed() < SOON);
        drop(leave);
        server.join().unwrap();
    }
}
