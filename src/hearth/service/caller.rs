//! Who sends a command, and where its response goes.

use std::sync::Arc;

use serde::Serialize;

use super::hub::{ConnectionId, TurnEnded, Watcher};
use base::error::{Error, Result};
use base::language::Words;
use net::outbox::{Item, Outbox, Ticket};
use net::peer::Peer;
use protocol::envelope::{self, RequestId};
use store::{Identity, UserRole};

/// The sender of a command, as the service needs to know it.
pub struct Caller<'a> {
    /// Its connection, for the hub.
    pub connection: ConnectionId,
    /// Where it is, for what is throttled.
    pub peer: &'a Peer,
    /// Where responses and events go.
    pub outbox: &'a Arc<Outbox>,
    /// `websocket`, `lines` or `relay`.
    pub transport: &'static str,
    /// Who signed in, and with which role.
    pub identity: &'a Identity,
}

impl Caller<'_> {
    /// Whether its role is admin.
    pub fn is_admin(&self) -> bool {
        self.identity.role >= UserRole::Admin
    }
}

/// Where the response to one request goes, from any thread.
pub struct Responder {
    /// The connection's.
    pub outbox: Arc<Outbox>,
    /// The request's place on its connection.
    pub ticket: Ticket,
    /// The id that the client gave the request.
    pub id: Option<RequestId>,
    /// Whether the client is the machine's owner, who sees the details of an error.
    pub is_owner: bool,
    /// Those of the person who reads an error.
    pub words: Option<Words>,
}

impl Responder {
    /// Sends the response.
    pub fn send(self, result: Result<impl Serialize>) {
        let text = match &result {
            Ok(data) => envelope::success(self.id.as_ref(), data),
            Err(error) if self.is_owner => {
                envelope::failure(self.id.as_ref(), &error.clone().in_full())
            }
            Err(error) => envelope::failure(self.id.as_ref(), &error.clone().in_words(self.words)),
        };
        self.outbox.push(Item::Response {
            ticket: self.ticket,
            text,
        });
    }

    /// Sends why there is no response.
    pub fn refuse(self, error: Error) {
        self.send(Err::<(), _>(error));
    }
}

impl Watcher for Responder {
    fn ended(self: Box<Self>, end: &TurnEnded) {
        (*self).send(end.result.as_ref().map_err(Clone::clone));
    }
}
