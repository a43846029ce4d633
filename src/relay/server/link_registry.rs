//! Which machines are linked, and which clients each has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base::error::{Error, Result};
use base::ids::MachineId;
use base::sync::lock;
use net::outbox::{Backlog, Close, Direct, Item, Outbox};
use protocol::public_key::PublicKey;
use protocol::relay::{Client, ClientNumber, Frame, FrameKind};

/// A newer link of the same machine has replaced it.
const REPLACED: Close = Close::new(1012, "replaced by a newer link of this machine");
/// The machine's link has closed; clients reconnect.
const OFFLINE: Close = Close::new(1013, "the machine is offline");
/// Seconds after which to try again when a limit is reached.
const RETRY_SECONDS: u32 = 30;

/// The links, by machine_id.
pub struct LinkRegistry {
    machines: usize,
    links: Mutex<HashMap<MachineId, Arc<Link>>>,
}

/// One machine's link, once it is proved.
pub struct Link {
    /// The machine.
    pub machine: MachineId,
    /// The key that was proved.
    pub public_key: PublicKey,
    outbox: Arc<Outbox>,
    clients: Mutex<Clients>,
    most: usize,
    /// Whether the machine says which clients sign in.
    reports_sign_ins: bool,
}

#[derive(Default)]
struct Clients {
    last: u32,
    open: HashMap<ClientNumber, Member>,
    /// Whether the link has ended, so that no client may join.
    over: bool,
}

/// One client of a link.
struct Member {
    outbox: Arc<Outbox>,
    /// Whether it has signed in at the machine, or the machine does not say so.
    signed_in: Arc<AtomicBool>,
}

/// The outcome of a frame for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Sent,
    /// The client has left; the machine may not know yet.
    Gone,
    /// There never was a client of this number.
    Never,
}

impl LinkRegistry {
    /// A registry for at most this many machines.
    pub fn new(machines: usize) -> LinkRegistry {
        LinkRegistry {
            machines,
            links: Mutex::default(),
        }
    }

    /// Binds a machine_id to a link, and sends `linked` on it before any client
    /// joins. An older link of the same machine is closed.
    ///
    /// # Errors
    /// `server_error` 503 when the limit of machines is reached.
    pub fn bind(&self, link: &Arc<Link>, linked: String) -> Result<()> {
        let mut links = lock(&self.links);
        if links.len() >= self.machines && !links.contains_key(&link.machine) {
            return Err(Error::overloaded(
                "the relay has reached its limit of machines",
                RETRY_SECONDS,
            ));
        }
        link.outbox.push(Item::Direct(Direct::Text(linked), None));
        let older = links.insert(link.machine.clone(), Arc::clone(link));
        drop(links);
        if let Some(older) = older {
            older.end();
            older.outbox.close(REPLACED);
        }
        Ok(())
    }

    /// Ends a link and closes its clients.
    pub fn unbind(&self, link: &Arc<Link>) {
        if let Entry::Occupied(entry) = lock(&self.links).entry(link.machine.clone())
            && Arc::ptr_eq(entry.get(), link)
        {
            entry.remove();
        }
        link.end();
    }

    /// The link of a machine, if it is linked.
    pub fn find(&self, machine: &MachineId) -> Option<Arc<Link>> {
        lock(&self.links).get(machine).cloned()
    }
}

impl Clients {
    fn find(&self, number: ClientNumber) -> Result<&Member, Delivery> {
        match self.open.get(&number) {
            Some(member) => Ok(member),
            None if number.0 == 0 || number.0 > self.last => Err(Delivery::Never),
            None => Err(Delivery::Gone),
        }
    }
}

impl Link {
    /// A link of the machine with this key, for at most `most` clients.
    pub fn new(
        public_key: PublicKey,
        outbox: Arc<Outbox>,
        most: usize,
        reports_sign_ins: bool,
    ) -> Arc<Link> {
        Arc::new(Link {
            machine: public_key.machine_id(),
            public_key,
            outbox,
            clients: Mutex::default(),
            most,
            reports_sign_ins,
        })
    }

    /// Adds a client and tells the machine; none when the link has ended.
    ///
    /// # Errors
    /// `server_error` 503 when the machine has reached its limit of clients.
    pub fn enter(
        self: &Arc<Link>,
        client: Client,
        outbox: &Arc<Outbox>,
    ) -> Result<Option<Attached>> {
        let mut clients = lock(&self.clients);
        if clients.over {
            return Ok(None);
        }
        let Some(last) = clients.last.checked_add(1) else {
            // After four billion clients: a new link starts again at 1.
            self.outbox.close(REPLACED);
            return Ok(None);
        };
        if clients.open.len() >= self.most {
            return Err(Error::overloaded(
                "the machine has reached its limit of clients",
                RETRY_SECONDS,
            ));
        }
        clients.last = last;
        let number = ClientNumber(last);
        let signed_in = Arc::new(AtomicBool::new(!self.reports_sign_ins));
        clients.open.insert(
            number,
            Member {
                outbox: Arc::clone(outbox),
                signed_in: Arc::clone(&signed_in),
            },
        );
        // Under the lock, so that the numbers arrive in order.
        self.tell(number, FrameKind::Open(client));
        Ok(Some(Attached {
            link: Arc::clone(self),
            number,
            signed_in,
            backlog: Backlog::new(Arc::clone(outbox), Backlog::ROOM),
        }))
    }

    /// Passes a message of the machine on to a client.
    pub fn deliver(&self, number: ClientNumber, message: Direct) -> Delivery {
        let mut clients = lock(&self.clients);
        let member = match clients.find(number) {
            Ok(member) => member,
            Err(outcome) => return outcome,
        };
        let is_last = matches!(message, Direct::Close { .. });
        let is_open = member.outbox.push(Item::Direct(message, None));
        if is_last || !is_open {
            clients.open.remove(&number);
            drop(clients);
            if !is_last {
                self.tell(
                    number,
                    FrameKind::Close {
                        code: Close::TOO_SLOW.code,
                        reason: Close::TOO_SLOW.reason,
                    },
                );
            }
        }
        Delivery::Sent
    }

    /// Notes that a client has signed in at the machine.
    pub fn signed_in(&self, number: ClientNumber) -> Delivery {
        match lock(&self.clients).find(number) {
            Ok(member) => {
                member.signed_in.store(true, Ordering::Relaxed);
                Delivery::Sent
            }
            Err(outcome) => outcome,
        }
    }

    /// How many clients it has.
    pub fn clients(&self) -> usize {
        lock(&self.clients).open.len()
    }

    fn tell(&self, number: ClientNumber, kind: FrameKind<'_>) {
        let frame = Frame::new(number, kind).encode();
        self.outbox.push(Item::Direct(Direct::Binary(frame), None));
    }

    /// Closes every client.
    fn end(&self) {
        let mut clients = lock(&self.clients);
        clients.over = true;
        let open = std::mem::take(&mut clients.open);
        drop(clients);
        for member in open.values() {
            member.outbox.close(OFFLINE);
        }
    }
}

/// A client that has joined a link. Dropping it tells the machine that it left.
pub struct Attached {
    link: Arc<Link>,
    /// Its number there.
    pub number: ClientNumber,
    signed_in: Arc<AtomicBool>,
    backlog: Arc<Backlog>,
}

impl Attached {
    /// Passes a message on to the machine.
    pub fn pass(&self, kind: FrameKind<'_>) {
        let frame = Frame::new(self.number, kind).encode();
        let load = self.backlog.load(frame.len());
        self.link
            .outbox
            .push(Item::Direct(Direct::Binary(frame), Some(load)));
    }

    /// Whether the client has signed in at the machine, as far as that says so.
    pub fn is_signed_in(&self) -> bool {
        self.signed_in.load(Ordering::Relaxed)
    }

    /// The machine's link.
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Whether the machine keeps up with what this client sends.
    pub fn has_room(&self) -> bool {
        self.backlog.has_room()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if lock(&self.link.clients).open.remove(&self.number).is_some() {
            self.link.tell(
                self.number,
                FrameKind::Close {
                    code: 1000,
                    reason: "the client has left",
                },
            );
        }
    }
}
