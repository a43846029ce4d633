//! kill -9 under load: nothing that was acknowledged is lost, and every
//! accepted webhook has one turn and is answered once the server is back.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Posted, Poster, check_integrity, echoing, look_into, random, wait_until_done, with_account,
    within,
};
use support::SetOnDrop;
use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::program::{Program, send_signal};
use support::receiver::{Callback, Receiver};

/// People who chat at the same time.
const CHATS: usize = 3;
/// Replies, and posts accepted, that come before each kill, however slow the
/// machine is.
const LEAST: usize = 5;

/// How a caller of the webhook behaves; each has a conversation of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Posts, and forgets what got no answer.
    Plain,
    /// Gives every message a key, and repeats what got no answer.
    Keyed,
    /// The same, and waits for the reply in the response.
    Waiting,
}

const CALLERS: [Manner; 4] = [Manner::Plain, Manner::Keyed, Manner::Keyed, Manner::Waiting];

#[derive(Default)]
struct Ledger {
    /// Replies that a WebSocket client was given: message id and text.
    replies: Mutex<Vec<(String, String)>>,
    /// Marks of the messages that got a 202: a callback is owed.
    accepted: Mutex<Vec<String>>,
    /// Marks of those that got their reply in a 200.
    answered: Mutex<Vec<String>>,
    /// For each caller, the message whose fate it does not know.
    open: Mutex<HashMap<usize, String>>,
    sent: Mutex<u64>,
}

impl Ledger {
    /// The replies and the accepted posts so far.
    fn counts(&self) -> (usize, usize) {
        (
            self.replies.lock().unwrap().len(),
            self.accepted.lock().unwrap().len(),
        )
    }
}

/// Puts the server under load and kills it, `count` times.
pub fn rounds(count: u64) {
    let model = echoing();
    let receiver = Receiver::start();
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), with_account(&model, receiver.url()));
    let tokens = make_people(folder.path());
    let ledger = Ledger::default();

    for round in 0..count {
        let program = Program::serve(folder.path());
        let stop = AtomicBool::new(false);
        // Signing in is not what is tested: the time runs from its end.
        let clients: Vec<_> = (0..CHATS)
            .map(|_| {
                let mut client = Client::websocket(program.address);
                client.authenticate(&tokens.user);
                client
            })
            .collect();
        std::thread::scope(|scope| {
            let stopped = SetOnDrop(&stop);
            for (number, client) in clients.into_iter().enumerate() {
                let (ledger, stop) = (&ledger, &stop);
                scope.spawn(move || chat_until(client, ledger, stop, number));
            }
            for (number, &manner) in CALLERS.iter().enumerate() {
                let (program, ledger, stop) = (&program, &ledger, &stop);
                scope.spawn(move || post_until(program, ledger, stop, number, manner));
            }
            let (replies, accepted) = ledger.counts();
            let moment = Duration::from_millis(50 + random(350));
            std::thread::park_timeout(moment);
            within(Duration::from_secs(60), "the server works", || {
                let (replies_now, accepted_now) = ledger.counts();
                let is_enough = replies_now >= replies + LEAST && accepted_now >= accepted + LEAST;
                is_enough.then_some(())
            });
            send_signal(program.id(), "KILL");
            drop(stopped);
        });
        program.kill();
        check_integrity(&look_into(folder.path()));
        if (round + 1) % 50 == 0 {
            println!("kill -9: {} rounds", round + 1);
        }
    }

    let program = Program::serve(folder.path());
    // What is still open is settled as its callers would: by repeating it.
    let open = ledger.open.lock().unwrap().clone();
    for (number, mark) in open {
        let poster = Poster::new(program.address);
        while CALLERS[number] != Manner::Plain && ledger.open.lock().unwrap().contains_key(&number)
        {
            assert!(post_one(&poster, &ledger, number, CALLERS[number], &mark));
        }
    }
    wait_until_done(folder.path(), Duration::from_secs(60));
    assert_eq!(program.signal("TERM"), Some(0));
    check_replies(&folder, &ledger);
    let repeats = check_callbacks(&folder, &ledger, &receiver.callbacks());
    println!(
        "kill -9: {count} rounds; {} messages sent, {} accepted with 202, {} answered with 200, \
         {} chats answered; each accepted one has one turn and its callback; {repeats} callbacks \
         came again, each with the webhook-id of the first",
        ledger.sent.lock().unwrap(),
        ledger.accepted.lock().unwrap().len(),
        ledger.answered.lock().unwrap().len(),
        ledger.replies.lock().unwrap().len(),
    );
}

fn chat_until(mut client: Client, ledger: &Ledger, stop: &AtomicBool, number: usize) {
    for count in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let text = format!("tok-chat-{number}-{count}");
        let sent = client.try_send(&json!({ "type": "chat", "message": text }));
        let Some(Ok(response)) = sent.then(|| client.next()) else {
            return;
        };
        // Over 50 commands a second: refused, so nothing was acknowledged.
        if response["status"] == "ok" {
            let data = &response["data"];
            ledger.replies.lock().unwrap().push((
                data["message_id"].as_str().unwrap().to_owned(),
                data["response"].as_str().unwrap().to_owned(),
            ));
        }
    }
}

fn post_until(
    program: &Program,
    ledger: &Ledger,
    stop: &AtomicBool,
    number: usize,
    manner: Manner,
) {
    let poster = Poster::new(program.address);
    while !stop.load(Ordering::SeqCst) {
        let before = ledger.open.lock().unwrap().get(&number).cloned();
        let mark = match before {
            Some(mark) if manner != Manner::Plain => mark,
            _ => {
                let mut sent = ledger.sent.lock().unwrap();
                *sent += 1;
                format!("tok-{number}-{:08}", *sent)
            }
        };
        if !post_one(&poster, ledger, number, manner, &mark) {
            return;
        }
    }
}

/// Posts a message and notes its fate, which stays open when it was refused;
/// false when there was no answer.
fn post_one(poster: &Poster, ledger: &Ledger, number: usize, manner: Manner, mark: &str) -> bool {
    let body = json!({ "message": mark, "conversation_id": format!("c{number}") });
    let headers: &[(&str, &str)] = match manner {
        Manner::Plain => &[],
        Manner::Keyed => &[("idempotency-key", mark)],
        Manner::Waiting => &[("idempotency-key", mark), ("prefer", "wait=10")],
    };
    ledger.open.lock().unwrap().insert(number, mark.to_owned());
    match poster.post(headers, &body) {
        Posted::Answered(202, _) => ledger.accepted.lock().unwrap().push(mark.to_owned()),
        Posted::Answered(200, body) => {
            assert_eq!(body["data"]["message"], mark);
            ledger.answered.lock().unwrap().push(mark.to_owned());
        }
        // The queue is full of what earlier rounds left: not accepted.
        Posted::Answered(503, _) => {
            std::thread::park_timeout(Duration::from_millis(20));
            return true;
        }
        Posted::Answered(status, body) => panic!("{status}: {body}"),
        Posted::Unknown => return false,
    }
    ledger.open.lock().unwrap().remove(&number);
    true
}

fn check_replies(folder: &TemporaryDirectory, ledger: &Ledger) {
    let replies = ledger.replies.lock().unwrap();
    let database = look_into(folder.path());
    let mut find = database
        .prepare("SELECT content FROM messages WHERE id = ?")
        .unwrap();
    for (message, text) in replies.iter() {
        let id: base::ids::MessageId = message.parse().unwrap();
        let content: String = find
            .query_row([id.as_i64()], |row| row.get(0))
            .unwrap_or_else(|error| panic!("the reply {message} is lost: {error}"));
        assert_eq!(content, *text);
    }
}

/// Returns how many callbacks were repeats.
fn check_callbacks(folder: &TemporaryDirectory, ledger: &Ledger, callbacks: &[Callback]) -> usize {
    let database = look_into(folder.path());
    check_integrity(&database);
    let turns: HashMap<String, i64> = database
        .prepare(
            "SELECT m.content, count(*) FROM turns t JOIN messages m ON m.id = t.message_id
             WHERE t.account = 'ci' GROUP BY m.content",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(turns.values().all(|&count| count == 1), "two turns of one");

    let mut first: HashMap<String, &Callback> = HashMap::new();
    let mut newest: HashMap<Value, String> = HashMap::new();
    let mut repeats = 0;
    for callback in callbacks {
        let mark = callback.body["message"].as_str().unwrap().to_owned();
        if let Some(known) = first.get(&mark) {
            repeats += 1;
            assert_eq!(known.header("webhook-id"), callback.header("webhook-id"));
            assert_eq!(known.raw, callback.raw, "a repeat differs");
            continue;
        }
        // The marks of one conversation rise in the order of their posts.
        let newest = newest
            .entry(callback.body["conversation_id"].clone())
            .or_default();
        assert!(*newest < mark, "{mark} came after {newest}");
        newest.clone_from(&mark);
        first.insert(mark, callback);
    }
    let accepted = ledger.accepted.lock().unwrap();
    let answered = ledger.answered.lock().unwrap();
    for mark in accepted.iter() {
        assert_eq!(turns.get(mark), Some(&1), "{mark} has no turn");
        assert!(first.contains_key(mark), "{mark} was not called back");
    }
    for mark in answered.iter() {
        assert_eq!(turns.get(mark), Some(&1), "{mark} has no turn");
    }
    repeats
}
