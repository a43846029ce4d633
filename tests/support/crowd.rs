//! Many people at once, as threads: all chat, some sign in with a password meanwhile,
//! and all stay connected until the last has its answers.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use super::client::Client;
use super::home::PASSWORD;
use super::http::post;

/// How long an answer may take when one processor has thousands of turns to do.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a crowd does.
pub struct Crowd {
    pub clients: usize,
    /// Messages of each client.
    pub messages: usize,
    /// People who sign in meanwhile.
    pub sign_ins: usize,
}

impl Crowd {
    /// Does it all, with this token; every message must be answered with `reply`.
    /// `meanwhile` runs beside it, on this thread. Returns the statuses of the sign-ins.
    pub fn come(
        &self,
        address: SocketAddr,
        token: &str,
        reply: &str,
        meanwhile: impl FnOnce(),
    ) -> Vec<u16> {
        std::thread::scope(|scope| {
            let people: Vec<_> = (0..self.clients)
                .map(|number| {
                    let person = move || {
                        let mut client = patient(address);
                        client.authenticate(token);
                        for turn in 0..self.messages {
                            let message = format!("{number}, {turn}: what is the weather like?");
                            assert_eq!(client.chat(&message)["response"], reply);
                        }
                        client
                    };
                    std::thread::Builder::new()
                        .stack_size(256 * 1024)
                        .spawn_scoped(scope, person)
                        .unwrap()
                })
                .collect();
            let sign_ins: Vec<_> = (0..self.sign_ins)
                .map(|_| scope.spawn(move || sign_in(address)))
                .collect();
            meanwhile();
            let clients: Vec<Client> = people.into_iter().map(|one| one.join().unwrap()).collect();
            drop(clients);
            sign_ins
                .into_iter()
                .map(|one| one.join().unwrap())
                .collect()
        })
    }
}

fn patient(address: SocketAddr) -> Client {
    let client = Client::websocket(address);
    if let Client::WebSocket(websocket) = &client {
        let socket = websocket.get_ref();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    client
}

/// Signs in with a password; the server may say that it is too busy for it.
fn sign_in(address: SocketAddr) -> u16 {
    let body = json!({ "username": "user", "password": PASSWORD });
    let answer = post(address, "/auth", &[], &body);
    assert!(matches!(answer.status, 200 | 503), "{answer:?}");
    answer.status
}
