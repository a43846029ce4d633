//! How the links to relays stand: filled by the links, shown by `server_info`.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base::clock::Timestamp;
use base::ids::MachineId;

/// This machine's name on relays, and the links that it has to them.
#[derive(Default)]
pub struct Relays {
    machine_id: OnceLock<MachineId>,
    links: Mutex<Vec<Arc<Link>>>,
}

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being opened.
    Connecting,
    /// It stands: clients can come.
    Linked,
    /// It failed, and is opened again at `next_try`.
    Waiting,
    /// Another server holds the same key and has linked: this one keeps still
    /// until `next_try`.
    Replaced,
}

impl State {
    /// Its word in `server_info`.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Connecting => "connecting",
            State::Linked => "linked",
            State::Waiting => "waiting",
            State::Replaced => "replaced",
        }
    }
}

/// How a link stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The channel's name.
    pub name: String,
    /// The relay's address, without what may be secret in it.
    pub url: String,
    /// What it does now.
    pub state: State,
    /// Clients that are connected through it.
    pub clients: usize,
    /// Why it ended or could not be opened the last time.
    pub last_error: Option<String>,
    /// When it is opened again.
    pub next_try: Option<Timestamp>,
}

/// A link's own entry.
pub struct Link(Mutex<Standing>);

impl Relays {
    /// This machine's name, once it has a key.
    pub fn machine_id(&self) -> Option<&MachineId> {
        self.machine_id.get()
    }

    /// Notes this machine's name; it never changes.
    pub fn set_machine_id(&self, id: MachineId) {
        self.machine_id.get_or_init(|| id);
    }

    /// Adds a link that is about to be opened.
    pub fn add(&self, name: &str, url: &str) -> Arc<Link> {
        let link = Arc::new(Link(Mutex::new(Standing {
            name: name.to_owned(),
            url: url.to_owned(),
            state: State::Connecting,
            clients: 0,
            last_error: None,
            next_try: None,
        })));
        self.lock().push(Arc::clone(&link));
        link
    }

    /// Removes a link that has ended.
    pub fn remove(&self, link: &Arc<Link>) {
        self.lock().retain(|known| !Arc::ptr_eq(known, link));
    }

    /// How all links stand, in the order in which they were added.
    pub fn standings(&self) -> Vec<Standing> {
        self.lock().iter().map(|link| link.standing()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.lock().clone()
    }

    /// Changes how it stands.
    pub fn update(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_come_and_go_and_the_name_stays() {
        let relays = Relays::default();
        let first = relays.add("one", "wss://one/ws");
        let second = relays.add("two", "wss://two/ws");
        second.update(|standing| standing.state = State::Linked);
        relays.remove(&first);
        let standings = relays.standings();
        assert_eq!(standings.len(), 1);
        assert_eq!(
            (standings[0].name.as_str(), standings[0].state),
            ("two", State::Linked)
        );

        let id = |key| MachineId::of_public_key(&[key; 32]);
        relays.set_machine_id(id(1));
        relays.set_machine_id(id(2));
        assert_eq!(relays.machine_id(), Some(&id(1)));
    }
}
