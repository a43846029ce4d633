//! One relayed client: a thread with a session, so that a slow command delays no
//! other client of the link.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::private_session::PrivateSession;
use crate::noise::PrivateKey;
use base::sync::spawn;
use config::{Encryption, Limits};
use net::client_handler::{ClientHandler, HandlerFactory};
use net::listener::STACK_BYTES;
use net::outbox::{Backlog, Close, Direct, Item, Load, Outbox};
use net::peer::Peer;
use net::wait::time_left;
use protocol::relay::{ClientNumber, Frame, FrameKind};

/// Messages of one client that may wait for its thread.
const INBOX_MESSAGES: usize = 256;
/// Bytes of them, in messages of the largest size.
const INBOX_LARGEST: usize = 2;
/// Longest wait of a client when nothing is due.
const LONG: Duration = Duration::from_secs(60 * 60);

const FAILED: Close = Close::new(1011, "the session has failed");
/// The relay need not be told.
const RELEASED: Close = Close::new(1000, "the client has left");

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
    /// Frames for the relay; a close frame is the last one of its client.
    pub outbox: Arc<Outbox>,
    /// What waits in the inboxes of all clients.
    pub received: Arc<Backlog>,
}

/// The link's handle on a client.
pub(super) struct Client {
    inbox: Sender<(Input, [Load; 2])>,
    outbox: Arc<Outbox>,
    /// What waits in the inbox, of this client and of all.
    received: [Arc<Backlog>; 2],
    thread: JoinHandle<()>,
}

impl Client {
    /// Opens a session for a client, on its own thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(number: ClientNumber, peer: Peer, common: Common) -> io::Result<Client> {
        let (inbox, messages) = bounded(INBOX_MESSAGES);
        let (wake, wakes) = bounded(1);
        let outbox = Arc::new(Outbox::new(common.limits.outbox_bytes, move || {
            // One pending wake-up is enough.
            let _ = wake.try_send(());
        }));
        let room = INBOX_LARGEST * common.message_bytes;
        let own = Backlog::new(Arc::clone(&common.outbox), room);
        let received = [own, Arc::clone(&common.received)];
        let thread_outbox = Arc::clone(&outbox);
        let run = move || {
            let mut ending = Ending {
                number,
                outbox: Arc::clone(&common.outbox),
                close: Some(FAILED),
            };
            let outbox = thread_outbox;
            let client_handler = (common.sessions)(peer, "relay", Arc::clone(&outbox));
            let (key, encryption) = (common.key.clone(), common.encryption);
            let conversation = Conversation {
                number,
                session: PrivateSession::new(client_handler, Arc::clone(&outbox), key, encryption),
                unsent: Backlog::new(Arc::clone(&outbox), Backlog::ROOM),
                common,
                outbox,
                messages,
                wakes,
                frames: VecDeque::new(),
                is_reported: false,
            };
            ending.close = conversation.run().filter(|close| *close != RELEASED);
        };
        let builder = thread::Builder::new().name(format!("relayed-{number}"));
        Ok(Client {
            inbox,
            outbox,
            received,
            thread: spawn(builder.stack_size(STACK_BYTES), run)?,
        })
    }

    /// Gives it a message without waiting. A client that sends faster than it is
    /// served is closed.
    pub fn give(&self, input: Input) {
        let loads = self.received.each_ref().map(|all| all.load(input.len()));
        if !self.received[0].has_room() || self.inbox.try_send((input, loads)).is_err() {
            self.close(Close::TOO_MANY);
        }
    }

    /// Closes it after sending what waits for it.
    pub fn close(&self, close: Close) {
        self.outbox.close(close);
    }

    /// Ends it: its remaining messages are neither handled nor sent.
    pub fn release(self) -> JoinHandle<()> {
        drop(self.inbox);
        self.outbox.close(RELEASED);
        self.thread
    }
}

/// Tells link and relay that a client has ended, even by a panic.
struct Ending {
    number: ClientNumber,
    /// That of the link.
    outbox: Arc<Outbox>,
    /// None where they know.
    close: Option<Close>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(Close { code, reason }) = self.close {
            let frame = Frame::new(self.number, FrameKind::Close { code, reason }).encode();
            self.outbox.push(Item::Direct(Direct::Binary(frame), None));
        }
    }
}

/// A client's thread.
struct Conversation {
    number: ClientNumber,
    common: Common,
    session: PrivateSession,
    outbox: Arc<Outbox>,
    messages: Receiver<(Input, [Load; 2])>,
    wakes: Receiver<()>,
    /// Frames for which the link has no room. More are made only when there are none, so
    /// that everything else waits in the bounded outbox.
    frames: VecDeque<Vec<u8>>,
    /// What the link has and has not sent.
    unsent: Arc<Backlog>,
    /// Whether the relay knows that the client has signed in.
    is_reported: bool,
}

impl Conversation {
    /// Serves the client; returns how to close it, if the link has not released it.
    fn run(mut self) -> Option<Close> {
        let auth_time = Duration::from_secs(self.common.limits.auth_seconds);
        let mut auth_deadline = Some(Instant::now() + auth_time);
        loop {
            if let Some(close) = self.send_waiting() {
                return Some(close);
            }
            if self.session.is_authenticated() {
                auth_deadline = None;
            }
            select! {
                recv(self.messages) -> input => {
                    let (input, loads) = input.ok()?;
                    drop(loads);
                    match input {
                        Input::Text(text) => self.session.receive(&text),
                        Input::Binary(bytes) => self.session.receive_binary(&bytes),
                    }
                }
                recv(self.wakes) -> _ => {}
                default(auth_deadline.map_or(LONG, time_left)) => {}
            }
            if !self.session.is_authenticated()
                && auth_deadline
                    .take_if(|deadline| Instant::now() >= *deadline)
                    .is_some()
            {
                let close = self.session.time_out();
                self.outbox.close(close);
            }
        }
    }

    /// Passes on what waits, as far as the link has room for it. Returns how to close the
    /// client, once all of it is passed on.
    fn send_waiting(&mut self) -> Option<Close> {
        let mut close = None;
        if self.frames.is_empty() && self.unsent.has_room() {
            close = self.arrange_waiting();
        }
        while (close.is_some() || self.unsent.has_room())
            && let Some(frame) = self.frames.pop_front()
        {
            let load = self.unsent.load(frame.len());
            let frame = Item::Direct(Direct::Binary(frame), Some(load));
            self.common.outbox.push(frame);
        }
        close
    }

    /// Puts the contents of the outbox into frames.
    fn arrange_waiting(&mut self) -> Option<Close> {
        let taken = self.outbox.take();
        // Before the response, which wakes the relay's thread of this client.
        if self.common.wants_sign_ins && !self.is_reported && self.session.is_authenticated() {
            self.is_reported = true;
            let frame = Frame::new(self.number, FrameKind::SignedIn);
            self.frames.push_back(frame.encode());
        }
        let most = self.common.message_bytes;
        let frames = &mut self.frames;
        for item in taken.items {
            let mut send = |frame| frames.push_back(frame);
            let arranged = self
                .session
                .arrange_frames(item, self.number, most, &mut send);
            if let Err(close) = arranged {
                return Some(close);
            }
        }
        self.session.ended.or(taken.close)
    }
}
