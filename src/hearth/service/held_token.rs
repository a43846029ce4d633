//! The token behind a response that takes its time: revoking it ends the response.

use std::sync::Arc;

use super::Service;
use super::hub::ConnectionId;
use net::outbox::Outbox;
use store::Identity;

/// The token of a request that is being answered, while it is.
pub struct HeldToken {
    service: Arc<Service>,
    connection: ConnectionId,
    outbox: Arc<Outbox>,
}

impl HeldToken {
    /// Notes that this token is in use; `wake` is called when it is revoked, also with its
    /// person.
    pub fn new(
        service: &Arc<Service>,
        identity: &Identity,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> HeldToken {
        let outbox = Arc::new(Outbox::new(0, wake));
        let connection = service.connections.open();
        let connections = &service.connections;
        connections.authenticated(connection, identity, &outbox);
        HeldToken {
            service: Arc::clone(service),
            connection,
            outbox,
        }
    }

    /// Whether it was revoked since.
    pub fn is_revoked(&self) -> bool {
        self.outbox.take().close.is_some()
    }
}

impl Drop for HeldToken {
    fn drop(&mut self) {
        self.service.connections.close(self.connection);
    }
}
