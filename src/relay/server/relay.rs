//! What a relay consists of: its limits, its token, and the machines that are
//! linked.

use std::sync::Arc;

use super::entrance::Token;
use super::link_registry::{Link, LinkRegistry};
use base::error::{Error, Result};
use base::ids::MachineId;
use config::Limits;

/// Machines that may be linked at once, unless it is set.
pub const MACHINES: usize = 10_000;
/// Clients that each machine may have at once, unless it is set.
pub const CLIENTS_PER_MACHINE: usize = 64;
/// Messages per second of each client, unless it is set.
pub const MESSAGES_PER_SECOND: u32 = 200;

/// What the relay allows.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Machines that may be linked at once.
    pub machines: usize,
    /// Clients that each machine may have at once.
    pub clients_per_machine: usize,
    /// Messages per second of each client, with bursts of twice as many. A
    /// machine may send as many for each client that it may have.
    pub messages_per_second: u32,
    /// Those of its connections.
    pub limits: Limits,
}

impl Rules {
    /// The defaults, under these limits.
    pub fn under(limits: Limits) -> Rules {
        Rules {
            machines: MACHINES,
            clients_per_machine: CLIENTS_PER_MACHINE,
            messages_per_second: MESSAGES_PER_SECOND,
            limits,
        }
    }
}

/// A relay: standalone, or part of a server.
pub struct Relay {
    /// What it allows.
    pub rules: Rules,
    /// Admits machines and clients.
    pub token: Token,
    /// The machines that are linked.
    pub machines: LinkRegistry,
}

impl Relay {
    /// A relay without any links.
    pub fn new(token: Token, rules: Rules) -> Arc<Relay> {
        Arc::new(Relay {
            machines: LinkRegistry::new(rules.machines),
            token,
            rules,
        })
    }

    /// The link of a machine that a client names. Look-ups are not limited: a
    /// machine_id has 160 bits, and honest clients of a machine that is off ask again
    /// and again.
    ///
    /// # Errors
    /// `not_found`, whether the machine never existed, is offline or cannot exist.
    pub fn find(&self, machine: Option<&MachineId>) -> Result<Arc<Link>> {
        machine
            .and_then(|machine| self.machines.find(machine))
            .ok_or_else(Relay::not_there)
    }

    /// The error for a machine that is not linked.
    pub fn not_there() -> Error {
        Error::not_found("no machine of this machine_id is linked to this relay now")
    }
}
