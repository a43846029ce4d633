use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use super::*;
use base::secret::Secret;
use base::testing::rows;
use net::http_client::test_server::{Act, TestServer};

/// Most time for something that should happen immediately.
const SOON: Duration = Duration::from_secs(30);

fn respond(status: &str, body: &[u8]) -> TestServer {
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend_from_slice(body);
    TestServer::new(vec![vec![Act::Send(response)]])
}

/// A tool and its request.
struct Tool {
    settings: CustomTool,
    http: CustomHttp,
}

fn tool(method: &'static str, url: String, headers: &[(&str, &str)], body: Option<Value>) -> Tool {
    let secret = |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new(*value));
    let http = CustomHttp {
        method,
        url,
        headers: headers.iter().map(secret).collect(),
        body,
        show: Vec::new(),
    };
    let settings = CustomTool {
        name: "lamp".to_owned(),
        description: String::new(),
        parameters: json!({
            "type": "object",
            "properties": {"room": {}, "level": {}, "absent": {}},
        }),
        run: CustomRun::Http(http.clone()),
        read_only: false,
        timeout_seconds: 60,
        output_bytes: 1_000,
        trusted: false,
        household: false,
    };
    Tool { settings, http }
}

fn run(tool: &Tool, arguments: &Value) -> Result<String, String> {
    run_until(tool, arguments, Instant::now() + SOON, &Cancel::default())
}

fn run_until(
    tool: &Tool,
    arguments: &Value,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<String, String> {
    send(tool, arguments, deadline, cancel).map_err(|failure| failure.text)
}

fn send(
    tool: &Tool,
    arguments: &Value,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<String, Failure> {
    let request = Request {
        is_trial: false,
        tool: &tool.settings,
        http: &tool.http,
        arguments: arguments.as_object().unwrap(),
    };
    request.send(&HttpClient::new(), deadline, cancel)
}

#[test]
fn a_failure_says_whether_an_admin_can_mend_it() {
    let needs_admin = |tool: &Tool, arguments: &Value| {
        let (deadline, cancel) = (Instant::now() + SOON, Cancel::default());
        send(tool, arguments, deadline, &cancel)
            .unwrap_err()
            .needs_admin
    };
    for [status, expected] in rows(
        "302 Found | true\n400 Bad | false\n401 Unauthorized | true\n403 Forbidden | true\n\
         404 Not Found | false\n422 Wrong | false\n429 Busy | false\n503 Away | true",
    ) {
        let server = respond(status, b"no");
        let tool = tool("GET", server.url(), &[], None);
        assert_eq!(
            needs_admin(&tool, &json!({})).to_string(),
            expected,
            "{status}"
        );
    }
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = tool("GET", format!("http://{gone}/{{room}}/x"), &[], None);
    assert!(needs_admin(&gone, &json!({ "room": "a" })));
    assert!(
        !needs_admin(&gone, &json!({ "room": ".." })),
        "an argument is wrong"
    );
}

/// The value of a header that comes at most once.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let mut found = headers.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let value = found.next().map(|(_, value)| value);
    assert!(found.next().is_none(), "{name} is there twice");
    value
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
        let server = respond("200 OK", b"done\n");
        let tool = tool(
            case.method,
            format!("http://{}{}", server.address, case.path),
            case.headers,
            case.body,
        );
        assert_eq!(run(&tool, &arguments), Ok("done".to_owned()));
        let heard = &server.heard()[0];
        assert_eq!(heard.head.lines().next(), Some(case.line));
        assert_eq!(heard.body, case.sent.as_bytes(), "{}", case.line);
        assert_eq!(header(&heard.head, "content-type"), case.media_type);
        assert_eq!(header(&heard.head, "x-room"), Some("<7>"));
    }
}

#[test]
fn an_absent_argument_takes_its_default_and_a_form_shows_a_part() {
    let server = respond("200 OK", br#"{"rooms": [{"name": "hall", "on": true}]}"#);
    let url = format!("http://{}/{{room}}?level={{level}}", server.address);
    let mut tool = tool("POST", url, &[], None);
    tool.settings.parameters["properties"]["level"]["default"] = json!(4);
    tool.http.show = vec![config::AnswerForm {
        each: Some("/rooms".to_owned()),
        text: config::Template::parse("{/name}: {/on}").unwrap(),
        most: 5,
    }];
    let ran = run(&tool, &json!({"room": "hall"}));
    assert_eq!(ran.as_deref(), Ok("hall: true"));
    let heard = &server.heard()[0];
    assert!(
        heard.head.starts_with("POST /hall?level=4 "),
        "{}",
        heard.head
    );
    assert_eq!(heard.body, br#"{"room":"hall","level":4}"#);
}

#[test]
fn the_response_becomes_the_result() {
    let table = r#"
        200 OK         | on      | on
        204 No Content |         | [no output]
        200 OK         | 00      | [binary output of 2 bytes]
        200 OK         | LONG    | SHORT¶[output cut: only its first 1000 bytes are shown]
        404 Not Found  | no lamp | was answered with status 404: no lamp
        500 Oh         | LONG    | was answered with status 500: SHORT¶[output cut: only its first 1000 bytes are shown]
        302 Found      |         | was answered with status 302, a redirect, which is not followed
    "#;
    for [status, body, expected] in rows(table) {
        let body = body
            .replace("LONG", &"x".repeat(300_000))
            .replace('0', "\0");
        let expected = expected
            .replace("SHORT", &"x".repeat(1000))
            .replace('¶', "\n");
        let expected = match expected.starts_with("was ") {
            true => Err(format!("the tool \"lamp\" {expected}")),
            false => Ok(expected),
        };
        let server = respond(status, body.as_bytes());
        let tool = tool("GET", server.url(), &[], None);
        assert_eq!(run(&tool, &json!({})), expected, "{status}");
    }
}

#[test]
fn arguments_cannot_change_what_is_asked() {
    // Nothing listens, so a request that is sent fails with another error.
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let headers = [("X-Room", "{level}")];
    let tool = tool("GET", format!("{address}/rooms/{{room}}/x"), &headers, None);
    let table = r#"
        {"room": "..", "level": 1}          | must not be
        {"room": ".", "level": 1}           | must not be
        {"room": "a", "level": "x\r\nY: z"} | header "X-Room"
        {"room": "../..", "level": 1}       | got no answer
        {"room": "a", "level": 1}           | got no answer: no connection: Connection refused
    "#;
    for [arguments, problem] in rows(table) {
        let arguments: Value = arguments.parse().unwrap();
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
    for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
        for (is_cancelled, time, problem) in [
            (
                false,
                Duration::from_secs(1),
                ": the time for this turn is up",
            ),
            (
                true,
                Duration::from_secs(60),
                " because the turn was cancelled",
            ),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let tool = tool("GET", url, &[], None);
            let cancel = Cancel::default();
            let (leave, stay) = crossbeam_channel::bounded::<()>(0);
            let began = Instant::now();
            let result = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.set_read_timeout(Some(SOON)).unwrap();
                    assert_ne!(stream.read(&mut [0; 4096]).unwrap(), 0);
                    stream.write_all(beginning.as_bytes()).unwrap();
                    if is_cancelled {
                        cancel.cancel();
                    }
                    // Until the test has its result.
                    let _ = stay.recv_timeout(SOON * 2);
                });
                let result = run_until(&tool, &json!({}), began + time, &cancel);
                drop(leave);
                result
            });
            let expected = format!("the tool \"lamp\" was stopped{problem}");
            assert_eq!(result.unwrap_err(), expected);
            assert!(began.elapsed() < SOON);
        }
    }
}
