//! An open link: frames between the relay and the clients' threads.
//!
//! The relay waits while it writes, so this end must not: two ends that write
//! and do not read wait for each other. Even while the relay takes nothing, this end
//! reads what the relay sends, into the clients' bounded inboxes.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Bytes, Error as WebSocketError, Message};

use super::client::{Client, Common, Input};
use net::cancel::Cancel;
use net::dial::{OpenSocket, envelope_error, shown};
use net::outbox::{Close, Direct, Item};
use net::peer::Peer;
use net::relay_links::RelayLink;
use net::wait::{Interest, Waker, wait};
use protocol::relay::{Client as Arrived, ClientNumber, Frame, FrameKind};

/// Most clients at once, whatever the relay grants (protocol section 6).
const MOST_CLIENTS: usize = 64;
/// Threads of former clients that are finishing their last command.
const MOST_LEAVING: usize = 64;
/// How long a relay may be silent before it is pinged, and before it is considered
/// dead (protocol section 6).
const PING: Duration = Duration::from_secs(25);
const DEAD: Duration = Duration::from_secs(60);
/// How long the relay may take to read what is written to it.
const WRITE: Duration = Duration::from_secs(20);
/// Most messages that are read before writing has its turn.
const READ_MESSAGES: usize = 64;
/// How long clients have to send what still waits when the server stops.
const CLOSING: Duration = Duration::from_secs(2);

const FULL: Close = Close::new(1013, "this machine has reached its limit of clients");

/// Why a link ended, or was not opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server stops it.
    Stopped,
    /// A newer link with the same key has replaced it.
    Replaced,
    /// Anything else, as a sentence for people.
    Lost(String),
}

impl End {
    pub fn lost(reason: impl fmt::Display) -> End {
        End::Lost(reason.to_string())
    }

    /// The relay has closed the link, perhaps with a reason.
    pub fn closed(frame: Option<&CloseFrame>) -> End {
        match frame {
            Some(frame) => End::Lost(format!(
                "the relay closed the link with {}: {}",
                u16::from(frame.code),
                shown(&frame.reason)
            )),
            None => End::lost("the relay closed the link"),
        }
    }
}

/// An open link.
pub(super) struct Carrier<'a> {
    /// The relay's name in logs and throttles.
    name: &'a Arc<str>,
    /// Where the link shows how many clients it has.
    entry: &'a RelayLink,
    socket: OpenSocket,
    /// Ends the wait for the socket.
    waker: &'a Waker,
    common: Common,
    most_clients: usize,
    clients: BTreeMap<ClientNumber, Client>,
    leaving: Vec<JoinHandle<()>>,
    /// What was taken from the outbox and not yet given to the socket.
    unsent: VecDeque<Item>,
    /// Since when the socket has been full, if it is.
    stuck: Option<Instant>,
    heard: Instant,
    pinged: Instant,
}

impl<'a> Carrier<'a> {
    /// Carries at most `clients` clients, as the relay grants.
    pub fn new(
        name: &'a Arc<str>,
        entry: &'a RelayLink,
        mut socket: OpenSocket,
        waker: &'a Waker,
        common: Common,
        clients: usize,
    ) -> Carrier<'a> {
        let now = Instant::now();
        socket.get_mut().write_without_waiting();
        Carrier {
            name,
            entry,
            socket,
            waker,
            common,
            most_clients: clients.min(MOST_CLIENTS),
            clients: BTreeMap::new(),
            leaving: Vec::new(),
            unsent: VecDeque::new(),
            stuck: None,
            heard: now,
            pinged: now,
        }
    }

    /// Carries frames until the link ends; returns why it did. The waker must be used when
    /// `stop` is cancelled.
    pub fn run(mut self, stop: &Cancel) -> End {
        let Err(end) = self.carry(stop);
        if end == End::Stopped {
            self.close_all();
        }
        for (_, client) in std::mem::take(&mut self.clients) {
            self.leaving.push(client.release());
        }
        for thread in self.leaving {
            // Its panic, if any, was already reported.
            let _ = thread.join();
        }
        end
    }

    fn carry(&mut self, stop: &Cancel) -> Result<Infallible, End> {
        loop {
            self.waker.prepare();
            if stop.is_cancelled() {
                return Err(End::Stopped);
            }
            let is_more = self.turn()?;
            let now = Instant::now();
            if now >= self.heard + DEAD {
                return Err(End::lost("the relay has been silent for 60 seconds"));
            }
            if self.stuck.is_some_and(|since| now >= since + WRITE) {
                return Err(End::lost("the relay does not read what is sent"));
            }
            let ping_at = self.heard.max(self.pinged) + PING;
            if now >= ping_at {
                self.give(Message::Ping(Bytes::new()))?;
                self.is_sent()?;
                self.pinged = now;
            } else if !is_more {
                self.wait(ping_at.min(self.heard + DEAD))?;
            }
        }
    }

    /// Reads and writes once; returns whether there is more to do now.
    fn turn(&mut self) -> Result<bool, End> {
        let unread = self.read()?;
        let unsent = self.write()?;
        Ok(unread || unsent)
    }

    fn wait(&mut self, mut deadline: Instant) -> Result<(), End> {
        let stream = self.socket.get_ref();
        let interest = match (self.common.received.has_room(), self.stuck) {
            (true, _) if stream.has_buffered() => return Ok(()),
            (true, None) => Interest::Read,
            (true, Some(_)) => Interest::ReadOrWrite,
            (false, Some(_)) => Interest::Write,
            (false, None) => Interest::Hangup,
        };
        if let Some(since) = self.stuck {
            deadline = deadline.min(since + WRITE);
        }
        let woken = wait(stream.as_fd(), interest, Some(self.waker), Some(deadline))
            .map_err(|error| End::Lost(format!("cannot wait for the link: {error}")))?;
        // Without a read, nothing else would notice.
        match interest == Interest::Hangup && woken.gone {
            true => Err(End::lost("the link broke")),
            false => Ok(()),
        }
    }

    /// Reads what has arrived; returns whether there may be more.
    fn read(&mut self) -> Result<bool, End> {
        for _ in 0..READ_MESSAGES {
            if !self.common.received.has_room() {
                return Ok(false);
            }
            let message = match self.socket.read() {
                Ok(message) => message,
                Err(error) if would_block(&error) => return Ok(false),
                Err(error) => return Err(broken(error)),
            };
            self.heard = Instant::now();
            match message {
                Message::Binary(bytes) => {
                    let frame = Frame::decode(&bytes).map_err(|error| self.breach(&error))?;
                    self.take(frame)?;
                }
                Message::Close(Some(frame)) if u16::from(frame.code) == 1012 => {
                    return Err(End::Replaced);
                }
                Message::Close(frame) => return Err(End::closed(frame.as_ref())),
                Message::Text(text) => {
                    return Err(match envelope_error(text.as_bytes()) {
                        Some(error) => End::Lost(format!("the relay ended the link: {error}")),
                        None => self.breach(&"a text message on an open link"),
                    });
                }
                // Answered by the next write.
                _ => {}
            }
        }
        Ok(true)
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<(), End> {
        let number = frame.client;
        match frame.kind {
            FrameKind::Open(_) if self.clients.contains_key(&number) => {
                return Err(self.breach(&format!("client {number} connected twice")));
            }
            FrameKind::Open(arrived) => self.open(number, arrived),
            FrameKind::SignedIn => return Err(self.breach(&"only a machine says who signs in")),
            FrameKind::Text(text) => self.pass(number, Input::Text(text.to_owned())),
            FrameKind::Binary(bytes) => self.pass(number, Input::Binary(bytes.to_owned())),
            FrameKind::Close { .. } => self.let_go(number),
        }
        Ok(())
    }

    /// A client that we closed may still be sending, so an unknown one is no error.
    fn pass(&self, number: ClientNumber, input: Input) {
        if let Some(client) = self.clients.get(&number) {
            client.give(input);
        }
    }

    fn open(&mut self, number: ClientNumber, arrived: Arrived) {
        let peer = Peer {
            address: arrived.address.to_canonical(),
            secure: arrived.secure,
            relay: Some(Arc::clone(self.name)),
            is_local: false,
        };
        if self.clients.len() < self.most_clients {
            match Client::open(number, peer, self.common.clone()) {
                Ok(client) => {
                    self.clients.insert(number, client);
                    return self.count();
                }
                Err(error) => {
                    log::warn!("relay {}: no thread for a client: {error}", self.name)
                }
            }
        }
        let Close { code, reason } = FULL;
        let frame = Frame::new(number, FrameKind::Close { code, reason }).encode();
        let outbox = &self.common.outbox;
        outbox.push(Item::Direct(Direct::Binary(frame), None));
    }

    /// Sends what is in the outbox; returns whether there is more that can be sent now.
    fn write(&mut self) -> Result<bool, End> {
        if self.stuck.is_some() && !self.is_sent()? {
            return Ok(false);
        }
        if self.unsent.is_empty() {
            let taken = self.common.outbox.take();
            if taken.close.is_some() {
                return Err(End::lost(
                    "the relay does not read that its clients are refused",
                ));
            }
            self.unsent = taken.items;
        }
        while let Some(item) = self.unsent.pop_front() {
            let Item::Direct(Direct::Binary(frame), _load) = item else {
                continue;
            };
            if let Some(number) = Frame::closed_client(&frame) {
                self.let_go(number);
            }
            // The socket keeps this message, and must hold no other.
            if !self.give(Message::binary(frame))? {
                break;
            }
        }
        let is_sent = self.is_sent()?;
        Ok(is_sent && !self.unsent.is_empty())
    }

    /// Gives the socket a message; returns whether it has room for another.
    fn give(&mut self, message: Message) -> Result<bool, End> {
        match self.socket.write(message) {
            Ok(()) => Ok(true),
            Err(error) if would_block(&error) => Ok(false),
            Err(error) => Err(broken(error)),
        }
    }

    /// Whether everything that was given to the socket is sent.
    fn is_sent(&mut self) -> Result<bool, End> {
        let is_sent = match self.socket.flush() {
            Ok(()) => true,
            Err(error) if would_block(&error) => false,
            Err(error) => return Err(broken(error)),
        };
        self.stuck = match is_sent {
            true => None,
            false => self.stuck.or_else(|| Some(Instant::now())),
        };
        Ok(is_sent)
    }

    /// Releases a client that has left or ended.
    fn let_go(&mut self, number: ClientNumber) {
        let Some(client) = self.clients.remove(&number) else {
            return;
        };
        let (ended, mut leaving): (Vec<_>, Vec<_>) = std::mem::take(&mut self.leaving)
            .into_iter()
            .chain([client.release()])
            .partition(JoinHandle::is_finished);
        // A relay that opens and closes clients without end waits for them.
        let most = leaving.len().min(MOST_LEAVING);
        for thread in ended.into_iter().chain(leaving.split_off(most)) {
            let _ = thread.join();
        }
        self.leaving = leaving;
        self.count();
    }

    fn count(&self) {
        let clients = self.clients.len();
        self.entry
            .update(|standing| standing.clients = clients as u64);
    }

    /// Closes the link because the relay broke the protocol: the two ends no longer
    /// agree on who is connected.
    fn breach(&mut self, what: &dyn fmt::Display) -> End {
        self.close(CloseCode::Protocol, "relay protocol error");
        End::Lost(format!("the relay broke the protocol: {what}"))
    }

    /// Closes all clients because the server stops, and then the link.
    fn close_all(&mut self) {
        for client in self.clients.values() {
            client.close(Close::GOING_AWAY);
        }
        let deadline = Instant::now() + CLOSING;
        while !self.clients.is_empty() && Instant::now() < deadline {
            self.waker.prepare();
            let Ok(is_more) = self.turn() else {
                return;
            };
            if !is_more && !self.clients.is_empty() && self.wait(deadline).is_err() {
                return;
            }
        }
        self.close(CloseCode::Away, Close::GOING_AWAY.reason);
    }

    fn close(&mut self, code: CloseCode, reason: &'static str) {
        let deadline = Instant::now() + CLOSING;
        self.socket.get_mut().set_write_deadline(deadline);
        // The relay may be gone already.
        let _ = self.socket.close(Some(CloseFrame {
            code,
            reason: reason.into(),
        }));
        let _ = self.socket.flush();
    }
}

fn would_block(error: &WebSocketError) -> bool {
    matches!(error, WebSocketError::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
}

fn broken(error: WebSocketError) -> End {
    match error {
        WebSocketError::Capacity(_) => End::lost("the relay sent a frame that is too large"),
        error => End::Lost(format!("the link broke: {error}")),
    }
}
