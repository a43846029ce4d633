//! One relayed client: a thread with a session, so that a slow command delays no
//! other client of the link.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::privacy::{Privacy, TOO_LARGE, Verdict};
use crate::noise::PrivateKey;
use base::error::Error;
use base::sync;
use base::threads;
use config::{Encryption, Limits};
use net::client_handler::{ClientHandler, HandlerFactory};
use net::listener::STACK_BYTES;
use net::outbox::{Close, Item, Outbox};
use net::peer::Peer;
use net::wait::{Waker, time_left};
use protocol::relay::{ClientNumber, Frame, FrameKind};

/// Messages of one client that may wait for its thread.
const INBOX_MESSAGES: usize = 256;
/// Bytes of them, in messages of the largest size.
const INBOX_LARGEST: usize = 2;
/// Bytes of all clients' messages that may wait; beyond that, the link is not read
/// from.
const LINK_INBOX_BYTES: usize = 16 * 1024 * 1024;
/// Longest wait of a client when nothing is due.
const LONG: Duration = Duration::from_secs(60 * 60);

/// A client's message from the relay.
#[derive(Debug)]
pub(super) enum Input {
    Text(String),
    Binary(Vec<u8>),
}

impl Input {
    fn len(&self) -> usize {
        match self {
            Input::Text(text) => text.len(),
            Input::Binary(bytes) => bytes.len(),
        }
    }
}

/// What the clients of one link share.
#[derive(Clone)]
pub(super) struct Common {
    pub sessions: HandlerFactory,
    pub key: PrivateKey,
    pub encryption: Encryption,
    pub limits: Limits,
    /// Most bytes of a message that the relay carries.
    pub message_bytes: usize,
    /// Whether the relay wants to know which clients sign in.
    pub wants_sign_ins: bool,
    /// Wakes the link's thread.
    pub waker: Arc<Waker>,
    /// Bytes that wait in the inboxes of all clients.
    pub waiting: Arc<AtomicUsize>,
}

impl Common {
    /// Whether the clients keep up with their messages. If not, they wake the link
    /// once they do.
    pub fn have_room(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) <= LINK_INBOX_BYTES
    }
}

/// The link's handle on a client.
pub(super) struct Client {
    inbox: Sender<(Input, Counted)>,
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    wake: Sender<()>,
    most_waiting: usize,
    thread: JoinHandle<()>,
}

/// What a client's thread and its link share.
struct Shared {
    outlet: Mutex<Outlet>,
    /// Bytes in the inbox.
    waiting: AtomicUsize,
    /// The same of all clients.
    all_waiting: Arc<AtomicUsize>,
    /// Wakes the link's thread.
    waker: Arc<Waker>,
}

/// Frames for the relay. The client's thread adds more only when there are none,
/// so that everything else waits in its bounded outbox.
#[derive(Default)]
struct Outlet {
    frames: VecDeque<Vec<u8>>,
    /// Whether the client has ended: no more frames follow.
    is_over: bool,
}

impl Shared {
    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        sync::lock(&self.outlet)
    }
}

/// A message in an inbox. It is counted until it is dropped, with the inbox at the
/// latest.
struct Counted {
    bytes: usize,
    shared: Arc<Shared>,
}

impl Counted {
    fn new(shared: &Arc<Shared>, bytes: usize) -> Counted {
        shared.waiting.fetch_add(bytes, Ordering::Relaxed);
        shared.all_waiting.fetch_add(bytes, Ordering::SeqCst);
        Counted {
            bytes,
            shared: Arc::clone(shared),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
        let shared = &self.shared;
        let before = shared.all_waiting.fetch_sub(self.bytes, Ordering::SeqCst);
        if before > LINK_INBOX_BYTES && before - self.bytes <= LINK_INBOX_BYTES {
            shared.waker.wake();
        }
    }
}

impl Client {
    /// Opens a session for a client, on its own thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(number: ClientNumber, peer: Peer, common: Common) -> io::Result<Client> {
        let (inbox, messages) = bounded(INBOX_MESSAGES);
        let (wake, wakes) = bounded(1);
        let outbox_wake = wake.clone();
        let outbox = Arc::new(Outbox::new(common.limits.outbox_bytes, move || {
            // One pending wake-up is enough.
            let _ = outbox_wake.try_send(());
        }));
        let shared = Arc::new(Shared {
            outlet: Mutex::default(),
            waiting: AtomicUsize::new(0),
            all_waiting: Arc::clone(&common.waiting),
            waker: Arc::clone(&common.waker),
        });
        let most_waiting = INBOX_LARGEST * common.message_bytes;
        let (thread_outbox, thread_shared) = (Arc::clone(&outbox), Arc::clone(&shared));
        let thread = threads::spawn(
            thread::Builder::new()
                .name(format!("relayed-{number}"))
                .stack_size(STACK_BYTES),
            move || {
                let _end = Over(Arc::clone(&thread_shared), Arc::clone(&common.waker));
                let client_handler = (common.sessions)(peer, "relay", Arc::clone(&thread_outbox));
                Conversation {
                    number,
                    common,
                    client_handler,
                    outbox: thread_outbox,
                    shared: thread_shared,
                    messages,
                    wakes,
                    privacy: Privacy::Undecided,
                    is_reported: false,
                }
                .run();
            },
        )?;
        Ok(Client {
            inbox,
            outbox,
            shared,
            wake,
            most_waiting,
            thread,
        })
    }

    /// Gives it a message without waiting. A client that sends faster than it is
    /// served is closed.
    pub fn give(&self, input: Input) {
        let counted = Counted::new(&self.shared, input.len());
        let fits = self.shared.waiting.load(Ordering::Relaxed) <= self.most_waiting;
        if !fits || self.inbox.try_send((input, counted)).is_err() {
            self.close(Close::TOO_MANY);
        }
    }

    /// Closes it after sending what waits for it.
    pub fn close(&self, close: Close) {
        self.outbox.close(close);
    }

    /// Takes frames to send, about `most` bytes of them; returns whether more are
    /// left.
    pub fn take_frames(&self, most: usize, frames: &mut Vec<Vec<u8>>) -> bool {
        let mut outlet = self.shared.outlet();
        let mut bytes = 0;
        let had_any = !outlet.frames.is_empty();
        while bytes < most {
            let Some(frame) = outlet.frames.pop_front() else {
                break;
            };
            bytes += frame.len();
            frames.push(frame);
        }
        let is_empty = outlet.frames.is_empty();
        drop(outlet);
        if had_any && is_empty {
            let _ = self.wake.try_send(());
        }
        !is_empty
    }

    /// Whether it has ended and all its frames were taken.
    pub fn is_over(&self) -> bool {
        let outlet = self.shared.outlet();
        outlet.is_over && outlet.frames.is_empty()
    }

    /// Ends it: its remaining messages are neither handled nor sent.
    pub fn release(self) -> JoinHandle<()> {
        drop(self.inbox);
        self.outbox.close(Close::GOING_AWAY);
        self.thread
    }
}

/// Tells the link that the client's thread has ended, even by a panic.
struct Over(Arc<Shared>, Arc<Waker>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.outlet().is_over = true;
        self.1.wake();
    }
}

/// A client's thread.
struct Conversation {
    number: ClientNumber,
    common: Common,
    client_handler: Box<dyn ClientHandler>,
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    messages: Receiver<(Input, Counted)>,
    wakes: Receiver<()>,
    privacy: Privacy,
    /// Whether the relay knows that the client has signed in.
    is_reported: bool,
}

/// The link has released the client.
struct Released;

impl Conversation {
    fn run(mut self) {
        if let Ok(close) = self.converse() {
            let Close { code, reason } = close;
            let frame = Frame::new(self.number, FrameKind::Close { code, reason });
            let mut outlet = self.shared.outlet();
            outlet.frames.push_back(frame.encode());
            // At once, so that the place is free when the relay reads the close.
            outlet.is_over = true;
            drop(outlet);
            self.common.waker.wake();
        }
    }

    fn converse(&mut self) -> Result<Close, Released> {
        let auth_time = Duration::from_secs(self.common.limits.auth_seconds);
        let auth_deadline = Instant::now() + auth_time;
        loop {
            if self.shared.outlet().frames.is_empty()
                && let Err(close) = self.send_waiting()
            {
                return Ok(close);
            }
            let wait = match self.client_handler.is_authenticated() {
                true => LONG,
                false => time_left(auth_deadline),
            };
            select! {
                recv(self.messages) -> input => match input {
                    Ok((input, counted)) => {
                        drop(counted);
                        if let Some(close) = self.receive(input) {
                            return Ok(close);
                        }
                    }
                    Err(_) => return Err(Released),
                },
                recv(self.wakes) -> _ => {}
                default(wait) => {}
            }
            if !self.client_handler.is_authenticated() && Instant::now() >= auth_deadline {
                let close = self.client_handler.time_out();
                // The error comes before the close.
                return Ok(self.send_waiting().err().unwrap_or(close));
            }
        }
    }

    /// Handles one message; returns how to close the client, if it must be.
    fn receive(&mut self, input: Input) -> Option<Close> {
        let most = self.client_handler.message_bytes();
        let Common {
            key, encryption, ..
        } = &self.common;
        let verdict = match input {
            Input::Text(text) => self.privacy.text(text, most, key, *encryption),
            Input::Binary(message) => self.privacy.binary(&message, most),
        };
        match verdict {
            Verdict::Nothing => None,
            Verdict::Message(text) => {
                self.client_handler.receive(&text);
                None
            }
            Verdict::NoBinary => {
                self.client_handler.refuse(Error::invalid_request(
                    "binary messages are accepted only after \"secure\"; send JSON as text",
                ));
                None
            }
            Verdict::TooLarge => {
                self.client_handler.refuse(Error::too_large(format!(
                    "a message may have at most {most} bytes"
                )));
                let _ = self.send_waiting();
                Some(TOO_LARGE)
            }
            Verdict::Answer(text) => {
                self.push_text(&text);
                None
            }
            Verdict::Refuse(text, close) => {
                self.push_text(&text);
                Some(close)
            }
            Verdict::Close(close) => Some(close),
        }
    }

    /// Puts the contents of the outbox into frames.
    fn send_waiting(&mut self) -> Result<(), Close> {
        let taken = self.outbox.take();
        let mut frames = Vec::new();
        // Before the response, which wakes the relay's thread of this client.
        if self.common.wants_sign_ins && !self.is_reported && self.client_handler.is_authenticated()
        {
            self.is_reported = true;
            frames.push(Frame::new(self.number, FrameKind::SignedIn).encode());
        }
        let wrapped = self.wrap(taken.items, &mut frames);
        if !frames.is_empty() {
            self.push(frames);
        }
        wrapped?;
        taken.close.map_or(Ok(()), Err)
    }

    fn wrap(&mut self, items: VecDeque<Item>, frames: &mut Vec<Vec<u8>>) -> Result<(), Close> {
        let mut wrapped = Ok(());
        let Conversation {
            number,
            common,
            client_handler,
            privacy,
            ..
        } = self;
        for item in items {
            client_handler.arrange(item, &mut |text| {
                if wrapped.is_ok() {
                    wrapped = privacy.wrap(*number, text, common.message_bytes, frames);
                }
            });
        }
        wrapped
    }

    /// Sends a text in plain, from before the handshake.
    fn push_text(&self, text: &str) {
        self.push(vec![
            Frame::new(self.number, FrameKind::Text(text)).encode(),
        ]);
    }

    fn push(&self, frames: Vec<Vec<u8>>) {
        self.shared.outlet().frames.extend(frames);
        self.common.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_message_is_no_longer_counted() {
        let all = Arc::new(AtomicUsize::new(7));
        let shared = Arc::new(Shared {
            outlet: Mutex::default(),
            waiting: AtomicUsize::new(0),
            all_waiting: Arc::clone(&all),
            waker: Arc::new(Waker::new().unwrap()),
        });
        let counts = || {
            let waiting = shared.waiting.load(Ordering::Relaxed);
            (waiting, all.load(Ordering::Relaxed))
        };
        let (inbox, messages) = bounded(2);
        for _ in 0..2 {
            assert!(inbox.try_send(Counted::new(&shared, 10)).is_ok());
        }
        assert_eq!(counts(), (20, 27));
        assert!(inbox.try_send(Counted::new(&shared, 10)).is_err());
        drop(messages.recv());
        assert_eq!(counts(), (10, 17));
        drop((messages, inbox));
        assert_eq!(counts(), (0, 7));
    }
}
