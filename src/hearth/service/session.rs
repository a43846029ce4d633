//! One connection's session with the service, independent of its transport.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::caller::{Caller, Responder};
use super::hub::ConnectionId;
use super::{Service, commands};
use base::error::{Error, Result};
use base::language::{Said, Words, code_of};
use base::secret::Secret;
use net::client_handler::{ClientHandler, HandlerFactory};
use net::outbox::{Close, Item, Outbox, Ticket};
use net::peer::Peer;
use net::token_bucket::TokenBucket;
use protocol::command::{Command, Credential, Request};
use protocol::envelope::RequestId;
use store::{Identity, UserRole};

/// Most bytes of responses that wait behind an earlier request's.
const HELD_BYTES: usize = 8 * 1024 * 1024;
/// Most responses that wait in this way, refusals included.
const HELD_RESPONSES: usize = 1_024;

/// The state of one connection: who it is, what is in flight, what order the
/// responses have. A transport feeds it texts and sends what comes out.
pub struct Session {
    service: Arc<Service>,
    id: ConnectionId,
    peer: Peer,
    transport: &'static str,
    outbox: Arc<Outbox>,
    identity: Option<Identity>,
    /// Those of the person who reads the errors; a program reads English.
    words: Option<Words>,
    bucket: TokenBucket,
    next_ticket: u64,
    /// Requests without an id, oldest first, with the response of those that
    /// have one but must wait for an earlier request.
    ordered: VecDeque<(Ticket, Option<String>)>,
    /// Bytes of the responses in `ordered`.
    held_bytes: usize,
    in_flight: usize,
}

impl Session {
    /// A new, unauthenticated session. `transport` is `websocket`, `lines`
    /// or `relay`.
    pub fn new(
        service: Arc<Service>,
        peer: Peer,
        transport: &'static str,
        outbox: Arc<Outbox>,
    ) -> Session {
        let burst = service.settings.current().limits.commands_burst;
        let id = service.connections.open();
        Session {
            service,
            id,
            peer,
            transport,
            outbox,
            identity: None,
            words: None,
            bucket: TokenBucket::full(burst, Instant::now()),
            next_ticket: 0,
            ordered: VecDeque::new(),
            held_bytes: 0,
            in_flight: 0,
        }
    }

    fn responder(&mut self, id: Option<RequestId>) -> Responder {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.in_flight += 1;
        if id.is_none() {
            self.ordered.push_back((ticket, None));
        }
        Responder {
            outbox: Arc::clone(&self.outbox),
            ticket,
            id,
            is_owner: self
                .identity
                .as_ref()
                .is_some_and(|one| one.role == UserRole::Owner),
            words: self.words,
        }
    }

    /// A rejected credential ends the connection (protocol section 2).
    fn reject(&self, responder: Responder, error: Error) {
        log::info!(peer:% = self.peer.place(); "{} from {}: {error}", self.transport, self.peer);
        responder.refuse(error);
        self.outbox.close(Close::UNAUTHENTICATED);
    }

    fn authenticate(&mut self, credential: Credential, mut responder: Responder) {
        // A password takes long to check. A wrong one closes the connection, so
        // each connection has one try.
        if self.identity.is_some() && matches!(credential, Credential::Password { .. }) {
            return responder.refuse(Error::invalid_request(
                "this connection is signed in already; sign in with a password on a new one",
            ));
        }
        let language = credential.language().map(Words::of);
        responder.words = language;
        let connections = &self.service.connections;
        match self.prove(credential) {
            Ok((identity, token)) => {
                let store = &self.service.store;
                self.words = language.map(|_| store.words_of(identity.user_id));
                // The machine's owner holds no token that could be revoked.
                if !self.peer.is_local {
                    connections.authenticated(self.id, &identity, &self.outbox);
                }
                self.service.hub.leave(self.id);
                self.service.end_export(self.id);
                log::info!(
                    peer:% = self.peer.place();
                    "{} from {}: signed in as {}",
                    self.transport,
                    self.peer,
                    identity.user
                );
                let answer = commands::authenticated(&self.service, &identity, token);
                responder.send(Ok(answer));
                self.identity = Some(identity);
            }
            Err(error) => {
                connections.close(self.id);
                self.service.hub.leave(self.id);
                self.identity = None;
                self.reject(responder, error);
            }
        }
    }

    /// The identity, and the session token that was made for a password.
    fn prove(&self, credential: Credential) -> Result<(Identity, Option<Secret>)> {
        match credential {
            Credential::Token {
                token,
                as_user,
                language,
            } => {
                let identity = self.service.identify_at(&self.peer, &token)?;
                let identity = match as_user {
                    None => identity,
                    Some(name) => self.service.act_as(&identity, &name)?,
                };
                if let Some(language) = language.as_deref().and_then(code_of) {
                    let store = &self.service.store;
                    store.note_language(identity.user_id, language)?;
                }
                Ok((identity, None))
            }
            Credential::Password {
                username, password, ..
            } => {
                let login = self.service.log_in(&self.peer, &username, &password)?;
                let identity = self.service.identify(&login.token)?;
                Ok((identity, Some(login.token)))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.service.connections.close(self.id);
        self.service.hub.leave(self.id);
        self.service.end_export(self.id);
    }
}

impl ClientHandler for Session {
    fn receive(&mut self, text: &str) {
        let Request {
            id,
            needs_identity,
            declaration,
            command,
        } = Request::parse(text);
        let config = self.service.settings.current();
        let limits = &config.limits;
        let is_full = self.in_flight >= limits.in_flight;
        let rate = self.bucket.take(
            limits.commands_per_second,
            limits.commands_burst,
            Instant::now(),
        );
        let responder = self.responder(id);
        // Before the fields and the role: which commands there are and what their
        // fields must be is no business of strangers.
        if needs_identity && self.identity.is_none() {
            return self.reject(
                responder,
                Error::invalid_token("the first message must be \"auth\" with a token"),
            );
        }
        let command = match command {
            Ok(Command::Auth(credential)) => return self.authenticate(credential, responder),
            Err(error) if self.identity.is_none() => return self.reject(responder, error),
            command => command,
        };
        let excess = match rate {
            Err(wait) if !self.peer.is_local => {
                let most = limits.commands_per_second as usize;
                Some(("error.too_many_commands", most, wait))
            }
            _ => is_full.then_some(("error.too_many_requests", limits.in_flight, 1)),
        };
        if let Some((key, most, wait)) = excess {
            let said = Said::of(key, &[("most", &most.to_string())]);
            return responder.refuse(Error::rate_limited(said, wait));
        }
        let Some(identity) = &self.identity else {
            return;
        };
        let now = self.service.clock.now();
        if self.service.connections.has_expired(self.id, now) {
            self.identity = None;
            let expired = Error::invalid_token(Said::of("error.token_expired", &[]));
            return self.reject(responder, expired);
        }
        // Before the fields: what they must be is no business of others.
        let refusal = declaration.and_then(|one| commands::refusal(identity, one));
        let command = match (refusal, command) {
            (None, Ok(command)) => command,
            (Some(error), _) | (None, Err(error)) => return responder.refuse(error),
        };
        let caller = Caller {
            connection: self.id,
            peer: &self.peer,
            outbox: &self.outbox,
            transport: self.transport,
            identity,
        };
        commands::run(&self.service, &caller, command, responder);
    }

    fn refuse(&mut self, error: Error) {
        let responder = self.responder(None);
        if self.identity.is_some() {
            responder.refuse(error);
        } else {
            self.reject(responder, error);
        }
    }

    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        let (ticket, text) = match item {
            Item::Event(text) => return send(&text),
            Item::Replay(texts) => return texts.iter().for_each(|text| send(text)),
            Item::Response { ticket, text } => (ticket, text),
            // A relay's; sessions send none.
            Item::Direct(..) => return,
        };
        self.in_flight = self.in_flight.saturating_sub(1);
        match self
            .ordered
            .iter_mut()
            .find(|(waiting, _)| *waiting == ticket)
        {
            None => send(&text),
            Some((_, response)) => {
                self.held_bytes += text.len();
                *response = Some(text);
            }
        }
        while let Some((_, Some(_))) = self.ordered.front() {
            if let Some((_, Some(text))) = self.ordered.pop_front() {
                self.held_bytes -= text.len();
                send(&text);
            }
        }
        // A client that keeps asking behind a slow request would fill the memory.
        if self.held_bytes > HELD_BYTES || self.ordered.len() > HELD_RESPONSES {
            self.outbox.close(Close::TOO_MANY);
        }
    }

    fn is_authenticated(&self) -> bool {
        self.identity.is_some()
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    fn message_bytes(&self) -> usize {
        let config = self.service.settings.current();
        if self.is_authenticated() {
            config.limits.message_bytes
        } else {
            config.limits.unauthenticated_message_bytes
        }
    }

    fn time_out(&mut self) -> Close {
        let seconds = self.service.settings.current().limits.auth_seconds;
        let responder = self.responder(None);
        responder.refuse(Error::invalid_token(format!(
            "no \"auth\" message came within {seconds} seconds"
        )));
        Close::UNAUTHENTICATED
    }
}

/// Opens sessions with `service`.
pub fn sessions(service: Arc<Service>) -> HandlerFactory {
    Arc::new(move |peer, transport, outbox| {
        Box::new(Session::new(Arc::clone(&service), peer, transport, outbox))
    })
}
