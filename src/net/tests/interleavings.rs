//! Real WebSocket connections with their outboxes, and cancellation, under many
//! schedules: run with `make interleavings`. The sockets are pairs of the Unix domain, which deliver
//! within the call that sends.

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tungstenite::protocol::{Role, WebSocket, WebSocketConfig};
use tungstenite::{Error as WebSocketError, Message};

use super::support::{echo_handler, patterns};
use crate::cancel::Cancel;
use crate::client_handler::ClientHandler;
use crate::connection::admission::Admissions;
use crate::connection::policy::ListenerPolicy;
use crate::connection::{Connection, ConnectionIo};
use crate::http::connection::Upgrade;
use crate::outbox::{Backlog, Close, Direct, Item, Outbox, Ticket};
use crate::stream::Socket;
use crate::wait::{Interest, Waker, wait};
use base::error::Error;
use base::sync::channel::bounded;
use base::sync::thread::{self, JoinHandle};
use base::testing::explore;
use config::Config;

/// Echoes texts, and passes binary messages on to another connection.
struct Handler {
    outbox: Arc<Outbox>,
    next: Option<(Arc<Outbox>, Arc<Backlog>)>,
}

impl ClientHandler for Handler {
    fn receive(&mut self, text: &str) {
        self.outbox.push(Item::Response {
            ticket: Ticket(0),
            text: text.to_owned(),
        });
    }

    fn receive_binary(&mut self, bytes: &[u8]) {
        let (next, backlog) = self.next.as_ref().unwrap();
        assert!(backlog.has_room(), "read without room");
        let message = Direct::Binary(bytes.to_vec());
        let load = backlog.load(bytes.len());
        assert!(next.push(Item::Direct(message, Some(load))));
    }

    fn has_room(&self) -> bool {
        let backlog = self.next.as_ref().map(|(_, backlog)| backlog);
        backlog.is_none_or(|backlog| backlog.has_room())
    }

    fn refuse(&mut self, error: Error) {
        panic!("{error}");
    }

    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        match item {
            Item::Event(text) => send(&text),
            Item::Response { text, .. } => send(&text),
            Item::Replay(_) | Item::Direct(..) => unreachable!("none is pushed"),
        }
    }

    fn is_authenticated(&self) -> bool {
        true
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn message_bytes(&self) -> usize {
        1024 * 1024
    }

    fn time_out(&mut self) -> Close {
        Close::UNAUTHENTICATED
    }
}

/// An outbox for at most `bound` bytes, and what wakes its connection.
fn outbox(bound: usize) -> (Arc<Outbox>, Arc<Waker>) {
    let waker = Arc::new(Waker::new().unwrap());
    let wake = Arc::clone(&waker);
    (Arc::new(Outbox::new(bound, move || wake.wake())), waker)
}

/// Serves a WebSocket on a thread of its own. Returns the client's end.
fn serve(
    (outbox, waker): (Arc<Outbox>, Arc<Waker>),
    next: Option<(Arc<Outbox>, Arc<Backlog>)>,
) -> (Client, JoinHandle<()>) {
    static CONFIG: LazyLock<Arc<Config>> = LazyLock::new(Arc::default);
    let (client, server) = UnixStream::pair().unwrap();
    client.set_nonblocking(true).unwrap();
    let mut connection = Connection {
        policy: Arc::new(ListenerPolicy {
            is_local: false,
            allow_from: patterns(&[]),
            handler: echo_handler(),
            sessions: None,
            upgrades: true,
            #[cfg(feature = "tls")]
            tls: None,
        }),
        admission: Arc::new(Admissions::new(1))
            .enter(&CONFIG.limits, None)
            .unwrap(),
        config: Arc::clone(&CONFIG),
        remote: IpAddr::V4(Ipv4Addr::LOCALHOST),
        secure: false,
        begun: Instant::now(),
        received: 0,
    };
    let thread = thread::spawn(move || {
        let io = ConnectionIo {
            client_handler: Box::new(Handler {
                outbox: Arc::clone(&outbox),
                next,
            }),
            outbox,
            waker,
        };
        let upgrade = Upgrade {
            io,
            peer: connection.socket_peer(),
            rest: Vec::new(),
        };
        let mut socket = Socket::new(Arc::new(TcpStream::from(OwnedFd::from(server))));
        crate::websocket::run(&mut connection, &mut socket, upgrade);
    });
    let config = WebSocketConfig::default().read_buffer_size(4 * 1024);
    let client = WebSocket::from_raw_socket(client, Role::Client, Some(config));
    (Client(client), thread)
}

struct Client(WebSocket<UnixStream>);

impl Client {
    /// The next message; `None` once the connection is closed.
    fn next(&mut self) -> Option<Message> {
        loop {
            match self.0.read() {
                Ok(message) => return Some(message),
                Err(WebSocketError::Io(error)) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    wait(self.0.get_ref().as_fd(), Interest::Read, None, None).unwrap();
                }
                Err(WebSocketError::ConnectionClosed) => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads `count` texts.
    fn texts(&mut self, count: usize) -> Vec<String> {
        let text = |_| match self.next() {
            Some(Message::Text(text)) => text.to_string(),
            other => panic!("{other:?}"),
        };
        (0..count).map(text).collect()
    }

    /// Reads until the end; returns the texts and the code of the close.
    fn rest(&mut self) -> (Vec<String>, u16) {
        let (mut texts, mut code) = (Vec::new(), None);
        while let Some(message) = self.next() {
            match message {
                Message::Text(text) => texts.push(text.to_string()),
                Message::Close(frame) => code = frame.map(|frame| frame.code.into()),
                other => panic!("{other:?}"),
            }
        }
        (texts, code.expect("a close has a code"))
    }
}

/// Pushes `who` with the numbers from 1 to `count`; returns which were taken.
fn push(outbox: &Arc<Outbox>, who: &'static str, count: usize) -> JoinHandle<Vec<bool>> {
    let outbox = Arc::clone(outbox);
    thread::spawn(move || {
        (1..=count)
            .map(|number| outbox.push(Item::Event(format!("{who}{number}").into())))
            .collect()
    })
}

/// The texts of one sender, which must be its first ones in their order.
fn first_of(who: &str, texts: &[String]) -> usize {
    let own: Vec<&String> = texts.iter().filter(|text| text.starts_with(who)).collect();
    for (place, text) in own.iter().enumerate() {
        assert_eq!(**text, format!("{who}{}", place + 1), "{texts:?}");
    }
    own.len()
}

#[test]
fn everything_pushed_is_sent_in_order_without_another_wake_up() {
    explore("outbox: nothing lost", || {
        let (outbox, waker) = outbox(1024);
        let (mut client, served) = serve((Arc::clone(&outbox), waker), None);
        let pushers = [push(&outbox, "a", 3), push(&outbox, "b", 2)];
        // The client's own requests, at any moment between.
        for number in 1..=2 {
            client.0.send(Message::text(format!("c{number}"))).unwrap();
            thread::yield_now();
        }
        // All must come although nobody pushes any more.
        let texts = client.texts(7);
        assert_eq!(
            ["a", "b", "c"].map(|who| first_of(who, &texts)),
            [3, 2, 2],
            "{texts:?}"
        );
        for pusher in pushers {
            assert!(pusher.join().unwrap().into_iter().all(|taken| taken));
        }
        let last = push(&outbox, "d", 1).join().unwrap();
        outbox.close(Close::REVOKED);
        assert!(!outbox.push(Item::Event("late".into())));
        assert_eq!(client.rest(), (vec!["d1".to_owned()], 1008));
        served.join().unwrap();
        assert_eq!(last, [true]);
    });
}

#[test]
fn an_outbox_that_overflows_closes_its_connection() {
    explore("outbox: overflow", || {
        // Room for two of three.
        let (outbox, waker) = outbox(5);
        let (mut client, served) = serve((Arc::clone(&outbox), waker), None);
        let pushers = [push(&outbox, "a", 2), push(&outbox, "b", 2)];
        let reading = thread::spawn(move || client.rest());
        let [a, b] = pushers.map(|pusher| pusher.join().unwrap());
        let has_overflowed = [&a, &b].into_iter().flatten().any(|taken| !taken);
        outbox.close(Close::GOING_AWAY);
        let (texts, code) = reading.join().unwrap();
        served.join().unwrap();
        for (who, taken) in [("a", a), ("b", b)] {
            let accepted = taken.iter().take_while(|taken| **taken).count();
            assert!(!taken[accepted..].contains(&true), "taken after the end");
            let sent = first_of(who, &texts);
            match has_overflowed {
                true => assert!(sent <= accepted),
                false => assert_eq!(sent, 2),
            }
        }
        let expected = if has_overflowed {
            Close::TOO_SLOW
        } else {
            Close::GOING_AWAY
        };
        assert_eq!(code, expected.code);
    });
}

#[test]
fn a_connection_that_waits_for_room_reads_on_when_there_is_some() {
    explore("outbox: backlog", || {
        let (near, far) = (outbox(1024), outbox(1024));
        let (near_outbox, far_outbox) = (Arc::clone(&near.0), Arc::clone(&far.0));
        let backlog = Backlog::new(Arc::clone(&near.0), Backlog::ROOM);
        let (mut sender, near) = serve(near, Some((Arc::clone(&far.0), backlog)));
        let (mut receiver, far) = serve(far, None);
        // Two of them are more than may wait.
        let size = Backlog::ROOM * 2 / 3;
        for number in 1..=3u8 {
            sender.0.send(Message::binary(vec![number; size])).unwrap();
        }
        for number in 1..=3u8 {
            match receiver.next() {
                Some(Message::Binary(bytes)) => assert_eq!((bytes.len(), bytes[0]), (size, number)),
                other => panic!("{other:?}"),
            }
        }
        for (outbox, client) in [(near_outbox, &mut sender), (far_outbox, &mut receiver)] {
            outbox.close(Close::GOING_AWAY);
            assert_eq!(client.rest(), (vec![], 1001));
        }
        near.join().unwrap();
        far.join().unwrap();
    });
}

#[test]
fn cancelling_at_any_moment_interrupts_what_is_waited_for() {
    explore("cancel: interruption", || {
        let cancel = Cancel::default();
        let waits = {
            let cancel = cancel.clone();
            thread::spawn(move || {
                let (interrupt, interrupted) = bounded(1);
                let hook = move || interrupt.send(()).unwrap();
                cancel.guard(hook, || interrupted.recv().unwrap());
                assert!(cancel.wait(Duration::from_secs(60)));
            })
        };
        cancel.cancel();
        waits.join().unwrap();
    });
}
