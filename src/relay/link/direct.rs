//! Clients that connect directly to this machine and name it in the address. They
//! use the relay's protocol, so that one address and one protocol serve both ways.

use std::sync::{Arc, OnceLock};

use tungstenite::Message;

use super::privacy::{ADDED_BYTES, ANSWER_TOO_LARGE, Privacy, TOO_LARGE, Verdict};
use crate::machine_key;
use crate::noise::PrivateKey;
use base::error::Error;
use config::Encryption;
use net::client_handler::{ClientHandler, HandlerFactory};
use net::outbox::{Close, Direct, Item, Outbox};

/// This machine, for clients that name it in the address.
pub struct OwnMachine {
    pub(super) sessions: HandlerFactory,
    pub(super) key: Arc<OnceLock<PrivateKey>>,
}

impl OwnMachine {
    /// Opens a WebSocket that names this machine; none while it has no key.
    pub fn open(&self) -> Option<HandlerFactory> {
        let key = self.key.get()?.clone();
        let sessions = Arc::clone(&self.sessions);
        Some(Arc::new(move |peer, transport, outbox| {
            Box::new(Named {
                client_handler: sessions(peer, transport, Arc::clone(&outbox)),
                outbox,
                key: key.clone(),
                privacy: Privacy::Undecided,
            })
        }))
    }
}

/// A client that has named this machine.
struct Named {
    client_handler: Box<dyn ClientHandler>,
    outbox: Arc<Outbox>,
    key: PrivateKey,
    privacy: Privacy,
}

impl Named {
    fn act(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Nothing => {}
            Verdict::Message(text) => self.client_handler.receive(&text),
            Verdict::NoBinary => self.client_handler.receive_binary(&[]),
            Verdict::TooLarge => {
                let most = self.client_handler.message_bytes();
                self.client_handler.refuse(Error::too_large(format!(
                    "a message may have at most {most} bytes"
                )));
                self.outbox.close(TOO_LARGE);
            }
            Verdict::Answer(text) => self.say(text),
            Verdict::Refuse(text, close) => {
                self.say(text);
                self.outbox.close(close);
            }
            Verdict::Close(close) => self.outbox.close(close),
        }
    }

    /// Sends a text in plain, from before the handshake.
    fn say(&self, text: String) {
        self.outbox.push(Item::Direct(Direct::Text(text), None));
    }
}

impl ClientHandler for Named {
    fn receive(&mut self, text: &str) {
        if self.privacy.secured().is_none()
            && let Some(answer) = machine_key::answer(text, || self.key.public_key())
        {
            return self.say(answer);
        }
        let most = self.client_handler.message_bytes();
        // There is no relay in between, so encryption is up to the client.
        let demand = Encryption::Optional;
        let verdict = self.privacy.text(text.to_owned(), most, &self.key, demand);
        self.act(verdict);
    }

    fn receive_binary(&mut self, bytes: &[u8]) {
        let verdict = self
            .privacy
            .binary(bytes, self.client_handler.message_bytes());
        self.act(verdict);
    }

    fn has_room(&self) -> bool {
        self.client_handler.has_room()
    }

    fn refuse(&mut self, error: Error) {
        self.client_handler.refuse(error);
    }

    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        self.client_handler.arrange(item, send);
    }

    fn arrange_messages(&mut self, item: Item, send: &mut dyn FnMut(Message)) {
        let Some(secured) = self.privacy.secured() else {
            return self.client_handler.arrange_messages(item, send);
        };
        let mut sealed = Ok(());
        self.client_handler.arrange(item, &mut |text| {
            if sealed.is_ok() {
                sealed = secured.seal(text, &mut |message| send(Message::binary(message)));
            }
        });
        if sealed.is_err() {
            self.outbox.close(ANSWER_TOO_LARGE);
        }
    }

    fn is_authenticated(&self) -> bool {
        self.client_handler.is_authenticated()
    }

    fn is_idle(&self) -> bool {
        self.client_handler.is_idle()
    }

    fn message_bytes(&self) -> usize {
        self.client_handler.message_bytes() + ADDED_BYTES
    }

    fn time_out(&mut self) -> Close {
        self.client_handler.time_out()
    }
}
