//! A machine of ours behind a relay, and clients whom the relay cannot read.

use std::time::{Duration, Instant};

use base::ids::MachineId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::public_key::PublicKey;
use relay::identity::Identity;
use relay::noise::{Initiator, Purpose, Secured};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::home::{Home, Server, unlimited};
use crate::relay::Relay;
use support::MAX_WAIT;
use support::relay_peers::{Line, TOKEN};
use support::socket::Socket;

/// Between two looks whether the link stands: an address that asks for machines
/// that are not there more than once a second is soon refused.
const LOOK: Duration = Duration::from_millis(500);

/// The server, linked to a relay.
pub struct Machine {
    pub home: Home,
    pub server: Server,
    key: PublicKey,
}

impl Machine {
    /// Starts it; the link is there with the first client.
    pub fn behind(relay: &Relay) -> Machine {
        let home = Home::new(json!({
            "limits": unlimited(),
            "channels": [{ "name": "lan", "type": "tcp", "port": 0 }, {
                "name": "far", "type": "websocket", "auth_token": TOKEN,
                "url": format!("ws://{}/ws", relay.address()),
            }],
        }));
        let database = home.database();
        let identity = Identity::load_or_make(database.parent().unwrap()).unwrap();
        Machine {
            server: home.start(),
            key: identity.key.public_key(),
            home,
        }
    }

    fn id(&self) -> MachineId {
        self.key.machine_id()
    }
}

/// A client that has signed in.
pub struct Client {
    socket: WebSocket<Socket>,
    secured: Secured,
}

impl Client {
    /// Waits for the machine's link.
    pub fn open(relay: &Relay, machine: &Machine) -> Client {
        let began = Instant::now();
        loop {
            let Line(socket) = Line::client(relay.address(), &machine.id());
            match Client::agree(socket, &machine.key) {
                Some(mut client) => {
                    let token = &machine.home.token;
                    client.ask(&format!(r#"{{"type":"auth","token":"{token}"}}"#));
                    return client;
                }
                None => assert!(began.elapsed() < MAX_WAIT, "the machine does not link"),
            }
            std::thread::sleep(LOOK);
        }
    }

    /// None where the machine is not there.
    fn agree(mut socket: WebSocket<Socket>, key: &PublicKey) -> Option<Client> {
        let (initiator, first) = Initiator::begin(Purpose::Client, key).unwrap();
        let request = json!({ "type": "secure", "noise": STANDARD.encode(first) });
        socket.send(Message::text(request.to_string())).ok()?;
        let answer = socket.read().ok()?.into_text().ok()?;
        let answer: Value = serde_json::from_str(&answer).ok()?;
        let noise = STANDARD.decode(answer["data"]["noise"].as_str()?).unwrap();
        let secured = initiator.finish(&noise).unwrap();
        Some(Client { socket, secured })
    }

    /// Sends a request and returns its response, which must be a success.
    pub fn ask(&mut self, request: &str) -> String {
        let socket = &mut self.socket;
        self.secured
            .seal(request, &mut |message| {
                socket.write(Message::binary(message)).unwrap();
            })
            .unwrap();
        socket.flush().unwrap();
        loop {
            let message = socket.read().unwrap();
            if !message.is_binary() {
                continue;
            }
            if let Some(text) = self.secured.open(&message.into_data()).unwrap() {
                assert!(text.contains(r#""status":"ok""#), "{text}");
                return text;
            }
        }
    }
}
