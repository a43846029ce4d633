//! Receivers that fail in every way, for the whole schedule of 32 hours (with
//! jitter up to 38), which an injected clock lets pass in seconds.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{SOON, echoing, with_account, within};
use support::home::Home;
use support::http::post;
use support::program::free_port;
use support::receiver::Receiver;
use support::served::{Served, read_request};

/// Attempts of the schedule.
const ATTEMPTS: u64 = 10;
/// The delays between them, in seconds (protocol section 4).
const DELAYS: [i64; 9] = [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400];
/// What a receiver that answers 429 asks for: longer than the schedule's delay
/// up to the fifth attempt.
const RETRY_AFTER: i64 = 3600;

/// Ways to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Nothing listens.
    Refused,
    /// Resets the connection in the middle of the request.
    Reset,
    /// Takes the request and says nothing.
    Silent,
    /// Sends its head byte by byte, without an end.
    Drips,
    Answers500,
    Answers429,
    /// Redirects to a receiver that would take it.
    Redirects,
    /// Answers 503 with a body without an end.
    HugeBody,
    /// Speaks something else than HTTP.
    Garbage,
    /// Speaks no TLS, where TLS is wanted.
    NoTls,
}

const WAYS: [Way; 10] = [
    Way::Refused,
    Way::Reset,
    Way::Silent,
    Way::Drips,
    Way::Answers500,
    Way::Answers429,
    Way::Redirects,
    Way::HugeBody,
    Way::Garbage,
    Way::NoTls,
];

/// A receiver that fails until it is told to take what comes.
struct Failing {
    way: Way,
    address: SocketAddr,
    state: Arc<State>,
    /// Absent while nothing listens.
    served: Option<Served>,
}

#[derive(Default)]
struct State {
    is_good: AtomicBool,
    elsewhere: AtomicUsize,
    /// webhook-id and webhook-timestamp of every request that could be read.
    heads: Mutex<Vec<(String, i64)>>,
    /// Bodies that were taken.
    taken: Mutex<Vec<Value>>,
}

impl Failing {
    fn start(way: Way) -> Failing {
        let state = Arc::default();
        let nowhere = (Ipv4Addr::LOCALHOST, free_port()).into();
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let served = (way != Way::Refused).then(|| listen(any, way, &state));
        Failing {
            way,
            address: served.as_ref().map_or(nowhere, |served| served.address),
            state,
            served,
        }
    }

    fn url(&self) -> String {
        let scheme = if self.way == Way::NoTls {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}/callback", self.address)
    }

    /// From now on it takes what comes, if it can.
    fn relent(&mut self) {
        self.state.is_good.store(true, Ordering::SeqCst);
        if self.served.is_none() {
            self.served = Some(listen(self.address, self.way, &self.state));
        }
    }
}

fn listen(address: SocketAddr, way: Way, state: &Arc<State>) -> Served {
    let state = Arc::clone(state);
    Served::on(address, move |socket| serve(socket, way, &state))
}

fn serve(mut socket: TcpStream, way: Way, state: &State) {
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let is_good = state.is_good.load(Ordering::SeqCst) && way != Way::NoTls;
    if !is_good && way == Way::Reset {
        // Closing with unread data resets.
        let _ = socket.read(&mut [0; 10]);
        return;
    }
    if !is_good && way == Way::NoTls {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = socket.shutdown(Shutdown::Both);
        return;
    }
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    while let Some((head, body)) = read_request(&mut reader) {
        let header = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
                .unwrap_or_default()
        };
        if head.starts_with("POST /elsewhere") {
            state.elsewhere.fetch_add(1, Ordering::SeqCst);
        }
        let sent = header("webhook-timestamp:").parse().unwrap();
        state
            .heads
            .lock()
            .unwrap()
            .push((header("webhook-id:"), sent));
        if state.is_good.load(Ordering::SeqCst) {
            let body = serde_json::from_slice(&body).unwrap();
            state.taken.lock().unwrap().push(body);
            let _ = socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            continue;
        }
        let _ = match way {
            Way::Silent => {
                let _ = socket.read(&mut [0; 10]);
                return;
            }
            Way::Drips => {
                while socket
                    .write_all(b"HTTP/1.1 200 OK\r\nX: y".get(..1).unwrap())
                    .is_ok()
                {
                    std::thread::park_timeout(Duration::from_millis(20));
                }
                return;
            }
            Way::Answers429 => {
                let head = format!(
                    "HTTP/1.1 429 Slow Down\r\nRetry-After: {RETRY_AFTER}\r\nContent-Length: 0\r\n\r\n"
                );
                socket.write_all(head.as_bytes())
            }
            Way::Redirects => socket.write_all(
                b"HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
            ),
            Way::HugeBody => {
                let head = b"HTTP/1.1 503 Busy\r\nContent-Length: 99999999999\r\n\r\n";
                let mut written = socket.write_all(head);
                while written.is_ok() {
                    written = socket.write_all(&[b'x'; 64 * 1024]);
                }
                return;
            }
            Way::Garbage => {
                let _ = socket.write_all(b"220 mail.example ESMTP\r\n");
                return;
            }
            _ => socket.write_all(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        };
    }
}

/// Lets `copies` receivers of each way fail nine times and relent at the tenth
/// attempt.
pub fn fail_in_every_way(copies: usize) {
    let mut receivers: Vec<Failing> = (0..copies).flat_map(|_| WAYS.map(Failing::start)).collect();
    let model = echoing();
    let mut config = with_account(&model, String::new());
    config["limits"]["callback_seconds"] = json!(1);
    config["limits"]["commands_per_second"] = json!(100_000);
    let accounts = &mut config["channels"][1]["accounts"];
    *accounts = json!({});
    for (number, receiver) in receivers.iter().enumerate() {
        accounts[format!("a{number}")] = json!({
            "incoming_path": format!("/webhook/{number}"), "outgoing_url": receiver.url(),
        });
    }
    let bystander = Receiver::start();
    accounts["bystander"] = json!({
        "incoming_path": "/webhook/bystander", "outgoing_url": bystander.url(),
    });
    let home = Home::start(config);
    let mut admin = home.admin();
    let mut list = || {
        let listed = admin.ask(json!({ "type": "list_deliveries", "limit": 500 }));
        let mut deliveries = listed["deliveries"].as_array().unwrap().clone();
        deliveries.retain(|one| one["account"] != "bystander");
        deliveries
    };
    let mut slowest = Duration::ZERO;
    let (began, first) = (Instant::now(), home.clock.now());
    for number in 0..receivers.len() {
        let body = json!({ "message": format!("tok-{number}"), "conversation_id": "c" });
        let path = format!("/webhook/{number}");
        assert_eq!(post(home.address(), &path, &[], &body).status, 202);
    }
    for attempt in 1..ATTEMPTS {
        // Meanwhile another account's callback leaves at once.
        let (posted, body) = (Instant::now(), json!({ "message": "tok-bystander" }));
        let answer = post(home.address(), "/webhook/bystander", &[], &body);
        assert_eq!(answer.status, 202);
        bystander.wait_for(attempt as usize);
        slowest = slowest.max(posted.elapsed());
        let deliveries = within(Duration::from_secs(60), "every attempt is made", || {
            let deliveries = list();
            let is_made = |one: &Value| one["attempts"] == attempt && one["last_error"].is_string();
            let all = deliveries.len() == receivers.len() && deliveries.iter().all(is_made);
            all.then_some(deliveries)
        });
        assert!(deliveries.iter().all(|one| one["state"] == "pending"));
        if attempt == ATTEMPTS - 1 {
            receivers.iter_mut().for_each(Failing::relent);
        }
        let last = deliveries.iter().map(next_at).max().unwrap();
        let wait = last - home.clock.now().as_millis() + 1000;
        home.server()
            .advance_clock(Duration::from_millis(wait.max(0) as u64));
    }
    let ended = within(Duration::from_secs(60), "the last attempt is made", || {
        let deliveries = list();
        let is_over = |one: &Value| one["state"] != "pending";
        deliveries.iter().all(is_over).then_some(deliveries)
    });
    let passed = home.clock.now().since(first);
    let (mut delivered, mut dead) = (0, 0);
    for (number, receiver) in receivers.iter().enumerate() {
        let account = format!("a{number}");
        let one = ended.iter().find(|one| one["account"] == *account).unwrap();
        assert_eq!(one["attempts"], ATTEMPTS, "{:?}: {one}", receiver.way);
        let taken = receiver.state.taken.lock().unwrap();
        if receiver.way == Way::NoTls {
            assert_eq!(one["state"], "dead", "{one}");
            dead += 1;
        } else {
            assert_eq!(one["state"], "delivered", "{:?}: {one}", receiver.way);
            assert_eq!(taken.len(), 1);
            assert_eq!(taken[0]["message"], format!("tok-{number}"));
            delivered += 1;
        }
        assert_eq!(receiver.state.elsewhere.load(Ordering::SeqCst), 0);
        check_times(receiver, one);
    }
    println!(
        "receivers: {} that failed in {} ways over {} attempts in {:.1} h of the clock ({:.1} s): \
         {delivered} delivered at the last attempt, {dead} dead (no TLS); a bystander's callback \
         came within {slowest:?}",
        receivers.len(),
        WAYS.len(),
        receivers.len() as u64 * ATTEMPTS,
        passed.as_secs_f64() / 3600.0,
        began.elapsed().as_secs_f64(),
    );
    assert!(slowest < SOON, "a bystander waited for {slowest:?}");
    let schedule: i64 = DELAYS.iter().sum();
    assert!(passed > Duration::from_secs(schedule as u64), "{passed:?}");
}

/// Every attempt carried the same id, and none came before its time.
fn check_times(receiver: &Failing, delivery: &Value) {
    let heads = receiver.state.heads.lock().unwrap();
    assert!(heads.iter().all(|(id, _)| delivery["delivery_id"] == *id));
    if heads.len() as u64 != ATTEMPTS {
        return;
    }
    for (pair, &delay) in heads.windows(2).zip(&DELAYS) {
        let least = match receiver.way {
            Way::Answers429 => delay.max(RETRY_AFTER),
            _ => delay,
        };
        let passed = pair[1].1 - pair[0].1;
        // The times on the wire are whole seconds.
        assert!(
            passed >= least - 1,
            "{:?}: {passed} of {least} s",
            receiver.way
        );
    }
}

fn next_at(delivery: &Value) -> i64 {
    let text = delivery["next_at"].as_str().unwrap();
    let time: jiff::Timestamp = text.parse().unwrap();
    time.as_millisecond()
}
