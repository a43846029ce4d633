//! A webhook account, a delivery and a scripted receiver for the tests of webhooks.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{ConversationId, DeliveryId, TurnId};
use base::secret::Secret;
use config::WebhookAccount;
use store::{Delivery, DeliveryState, Durable};

/// An account `door` that posts to `outgoing_url`.
pub fn account(secret: Option<Secret>, outgoing_url: &str) -> WebhookAccount {
    WebhookAccount {
        name: "door".to_owned(),
        incoming_path: "/hook".to_owned(),
        outgoing_url: outgoing_url.to_owned(),
        secret,
        model: None,
        permission_mode: None,
        tools: None,
        secret_previous: None,
        timeout_seconds: None,
        max_attempts: 10,
        enabled: true,
        map: None,
    }
}

/// A delivery `dlv_0000000000001` of this body that was not attempted yet.
pub fn delivery(body: &str) -> Durable<Delivery> {
    Durable::for_test(Delivery {
        id: DeliveryId::from(1),
        turn_id: TurnId::from(1),
        conversation_id: ConversationId::from(1),
        account: "door".to_owned(),
        body: body.to_owned(),
        state: DeliveryState::Pending,
        attempts: 0,
        created_at: Timestamp::from_millis(0),
        next_at: Timestamp::from_millis(0),
        last_error: None,
    })
}

/// What the receiver got: the request line and headers, as sent, and the body.
#[derive(Debug)]
pub struct Received {
    pub head: Vec<String>,
    pub body: String,
    /// Which connection brought it, counted from 1.
    pub connection: usize,
}

impl Received {
    /// The value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Answers requests on 127.0.0.1 with the texts of a script, one by one, and
/// ends with it. An empty text closes the connection without an answer.
pub struct Script {
    pub url: String,
    received: Receiver<Received>,
    thread: JoinHandle<()>,
}

impl Script {
    pub fn play(answers: &[&str]) -> Script {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/callback?key=k", listener.local_addr().unwrap());
        let answers: Vec<String> = answers.iter().map(|&text| text.to_owned()).collect();
        let (sender, received) = channel();
        let thread = thread::Builder::new()
            .name("scripted receiver".to_owned())
            .spawn(move || serve(&listener, answers, &sender))
            .unwrap();
        Script {
            url,
            received,
            thread,
        }
    }

    /// Waits for the end of the script and returns what was received.
    pub fn finish(self) -> Vec<Received> {
        self.thread.join().unwrap();
        self.received.into_iter().collect()
    }
}

fn serve(listener: &TcpListener, answers: Vec<String>, received: &Sender<Received>) {
    let mut answers = answers.into_iter().peekable();
    let mut connection = 0;
    while answers.peek().is_some() {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        connection += 1;
        while answers.peek().is_some() {
            let Some((head, body)) = read_request(&mut reader) else {
                break;
            };
            let request = Received {
                head,
                body,
                connection,
            };
            received.send(request).unwrap();
            let answer = answers.next().unwrap();
            if answer.is_empty() {
                break;
            }
            write(&mut stream, &answer);
        }
    }
}

fn write(stream: &mut TcpStream, text: &str) {
    // The client may have gone when it has read enough.
    let _ = stream.write_all(text.as_bytes());
}

fn read_request(reader: &mut impl BufRead) -> Option<(Vec<String>, String)> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head
        .iter()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}
