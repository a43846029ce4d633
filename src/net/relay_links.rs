//! The status of the links to relays: set by the links, shown by `server_info`.

use std::sync::{Arc, Mutex, OnceLock};

use base::ids::MachineId;
use base::sync::lock;
use base::words;
use protocol::record;

/// This machine's name on relays, and the links that it has to them.
#[derive(Default)]
pub struct RelayLinks {
    machine_id: OnceLock<MachineId>,
    links: Mutex<Vec<Arc<RelayLink>>>,
}

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is being opened.
    Connecting,
    /// It is open: clients can connect.
    Linked,
    /// It failed, and is opened again at `next_try`.
    Waiting,
    /// Another server with the same key has linked; this one waits until
    /// `next_try`.
    Replaced,
}

words! { LinkState {
    Connecting: "connecting",
    Linked: "linked",
    Waiting: "waiting",
    Replaced: "replaced",
} }

/// A link's own entry.
pub struct RelayLink(Mutex<record::RelayLink>);

impl RelayLinks {
    /// This machine's name, once it has a key.
    pub fn machine_id(&self) -> Option<&MachineId> {
        self.machine_id.get()
    }

    /// Notes this machine's name; it never changes.
    pub fn set_machine_id(&self, id: MachineId) {
        self.machine_id.get_or_init(|| id);
    }

    /// Adds a link that is about to be opened.
    pub fn add(&self, name: &str, url: &str) -> Arc<RelayLink> {
        let link = Arc::new(RelayLink(Mutex::new(record::RelayLink {
            name: name.to_owned(),
            url: url.to_owned(),
            state: LinkState::Connecting.as_str(),
            clients: 0,
            last_error: None,
            next_try: None,
        })));
        lock(&self.links).push(Arc::clone(&link));
        link
    }

    /// Removes a link that has ended.
    pub fn remove(&self, link: &Arc<RelayLink>) {
        lock(&self.links).retain(|known| !Arc::ptr_eq(known, link));
    }

    /// The status of all links, in the order in which they were added.
    pub fn statuses(&self) -> Vec<record::RelayLink> {
        lock(&self.links).iter().map(|link| link.status()).collect()
    }
}

impl RelayLink {
    /// Its status.
    pub fn status(&self) -> record::RelayLink {
        lock(&self.0).clone()
    }

    /// Changes its status.
    pub fn update(&self, change: impl FnOnce(&mut record::RelayLink)) {
        change(&mut lock(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_come_and_go_and_the_name_stays() {
        let relays = RelayLinks::default();
        let first = relays.add("one", "wss://one/ws");
        let second = relays.add("two", "wss://two/ws");
        second.update(|status| status.state = LinkState::Linked.as_str());
        relays.remove(&first);
        let statuses = relays.statuses();
        assert_eq!(statuses.len(), 1);
        assert_eq!(
            (statuses[0].name.as_str(), statuses[0].state),
            ("two", "linked")
        );

        let id = |key| MachineId::of_public_key(&[key; 32]);
        relays.set_machine_id(id(1));
        relays.set_machine_id(id(2));
        assert_eq!(relays.machine_id(), Some(&id(1)));
    }
}
