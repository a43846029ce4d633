//! GET /events: server-sent events for programs that only read.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use support::eventually;
use support::home::Home;
use support::http::get;
use support::socket::{Socket, connect};

/// A response that is read as it arrives.
pub struct Reader(BufReader<Socket>);

impl Reader {
    pub fn open(home: &Home, token: &str, path: &str, headers: &str) -> Reader {
        let mut socket = connect(home.address());
        write!(
            socket,
            "GET {path} HTTP/1.1\r\nHost: hearth\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        )
        .unwrap();
        let mut reader = Reader(BufReader::new(socket));
        let status = reader.line().unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        reader
    }

    /// The next line; none once the response is over.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let is_last = line.is_empty() || line.trim_end() == "0";
        (!is_last).then_some(line)
    }

    /// The next event, and its id if it has one.
    pub fn event(&mut self) -> (Option<u64>, Value) {
        let mut id = None;
        loop {
            let line = self.line().expect("another event");
            if let Some(number) = line.strip_prefix("id: ") {
                id = Some(number.trim().parse().unwrap());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (id, data.parse().unwrap());
            }
        }
    }
}

#[test]
fn a_program_reads_events_and_goes_on_where_it_was() {
    let home = Home::offline();
    let path = "/events?events=message.created,chat.done";
    let mut reader = Reader::open(&home, &home.tokens.user, path, "");
    let (id, first) = reader.event();
    assert_eq!(first["type"], "subscribed", "{first}");
    assert_eq!(
        (id, &first["events_lost"]),
        (first["seq"].as_u64(), &json!(false))
    );

    let mut user = home.websocket(&home.tokens.user);
    user.chat("the first");
    let mut names = Vec::new();
    let mut last = 0;
    while names.last().is_none_or(|name| name != "chat.done") {
        let (id, event) = reader.event();
        assert_eq!(id, event["seq"].as_u64(), "{event}");
        assert!(id.unwrap() > last);
        last = id.unwrap();
        names.push(event["event"].as_str().unwrap().to_owned());
    }
    names.dedup();
    assert_eq!(names, ["message.created", "chat.done"]);
    drop(reader);

    // What was missed comes once it is back, and nothing of others.
    user.chat("the second");
    home.admin().chat("nothing for them");
    let since = format!("Last-Event-ID: {last}\r\n");
    let mut reader = Reader::open(&home, &home.tokens.user, path, &since);
    let (id, first) = reader.event();
    assert_eq!(
        (id, &first["events_lost"]),
        (None, &json!(false)),
        "{first}"
    );
    let (id, event) = reader.event();
    assert!(id.unwrap() > last);
    assert_eq!(event["message"]["content"], "the second", "{event}");
    user.chat("the third");
    let mut said = Vec::new();
    while !said.contains(&json!("the third")) {
        said.push(reader.event().1["message"]["content"].take());
    }
    assert!(!said.contains(&json!("nothing for them")), "{said:?}");

    // A number that was never given out.
    let lost = "Last-Event-ID: 99999999\r\n";
    let (id, first) = Reader::open(&home, &home.tokens.user, "/events", lost).event();
    assert_eq!(first["events_lost"], true, "{first}");
    assert_eq!(id, first["seq"].as_u64());
}

#[test]
fn events_end_with_their_credential() {
    let home = Home::offline();
    let token = home.token("user", &json!({}));
    let mut reader = Reader::open(&home, &token, "/events", "");
    assert_eq!(reader.event().1["type"], "subscribed");
    home.websocket(&token).ask(json!({ "type": "sign_out" }));
    eventually("the end", || reader.line().is_none().then_some(()));
    assert_eq!(get(home.address(), "/events").status, 401);
}

#[test]
fn what_cannot_be_listened_to_is_refused() {
    let home = Home::offline();
    for (path, headers, status, says) in [
        ("/events?events=chat.nothing", "", 400, "there is no event"),
        ("/events", "Last-Event-ID: x\r\n", 400, "Last-Event-ID"),
        ("/events", "X-Hearth-User: admin\r\n", 400, "X-Hearth-User"),
        (
            "/events?token=TOKEN",
            "Authorization: no\r\n",
            401,
            "Bearer",
        ),
    ] {
        let mut socket = connect(home.address());
        let token = &home.tokens.user;
        let bearer = match status {
            401 => String::new(),
            _ => format!("Authorization: Bearer {token}\r\n"),
        };
        let path = path.replace("TOKEN", token);
        write!(
            socket,
            "GET {path} HTTP/1.1\r\nHost: hearth\r\n{bearer}{headers}Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut socket, &mut text).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        assert!(text.contains(says), "{text}");
    }
}
