//! A server in a folder of its own, with one token of each role.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use base::clock::Clock;
use base::secret::{Secret, fingerprint};
use hearth::server::{Options, Server};
use hearth::service::password;
use hearth::service::people::{TokenRequest, new_token, token_scope};
use serde_json::{Value, json};
use store::{NewToken, Store, TokenScope, User, UserRole};

use super::client::Client;
use super::eventually;

/// The password of every test user.
pub const PASSWORD: &str = "correct horse battery";

pub use base::testing::TemporaryDirectory;

/// A running server and everything to reach it. The server stops when this is
/// dropped.
pub struct Home {
    pub folder: TemporaryDirectory,
    pub clock: Clock,
    pub tokens: Tokens,
    server: Option<Server>,
}

/// One API token of each role.
pub struct Tokens {
    pub admin: String,
    pub user: String,
    pub viewer: String,
}

impl Home {
    /// A server with this configuration; `channels` are added.
    pub fn start(config: Value) -> Home {
        let folder = TemporaryDirectory::new();
        write_config(folder.path(), config);
        let tokens = make_people(folder.path());
        let mut home = Home {
            folder,
            clock: Clock::system(),
            tokens,
            server: None,
        };
        home.restart();
        home
    }

    /// The default: offline provider, tools that ask.
    pub fn offline() -> Home {
        Home::start(json!({}))
    }

    /// Stops the server, if it runs, and starts it again on the same folder.
    pub fn restart(&mut self) {
        self.stop();
        self.start_on(0);
    }

    /// Starts the stopped server on this port; 0 lets the system choose.
    pub fn start_on(&mut self, port: u16) {
        let options = || Options {
            data_dir: self.folder.path().to_owned(),
            bind: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            port: Some(port),
            clock: self.clock.clone(),
        };
        // A program that another test is starting has all files of this process, locks
        // included, until the system runs it.
        let own_lock = format!("another hearth (process {})", std::process::id());
        let server = eventually("the lock is free", || match Server::start(options()) {
            Ok(server) => Some(server),
            Err(error) if error.to_string().starts_with(&own_lock) => None,
            Err(error) => panic!("{error}"),
        });
        self.server = Some(server);
    }

    /// The same without waiting for turns that run.
    pub fn restart_at_once(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop_now();
        }
        self.restart();
    }

    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("the server runs")
    }

    pub fn address(&self) -> SocketAddr {
        self.server().addrs()[0]
    }

    /// An authenticated WebSocket connection.
    pub fn websocket(&self, token: &str) -> Client {
        let mut client = Client::websocket(self.address());
        client.authenticate(token);
        client
    }

    /// Adds somebody, who cannot sign in with a password; returns a token.
    pub fn add_person(&self, name: &str, role: UserRole) -> String {
        let store = Store::open(&self.folder.path().join("hearth.db"), Clock::system()).unwrap();
        let token = add_person(&store, name, role, "");
        store.close();
        token
    }

    /// Another token of this person, narrowed as `create_token` says it.
    pub fn token(&self, name: &str, narrowing: &Value) -> String {
        let store = Store::open(&self.folder.path().join("hearth.db"), Clock::system()).unwrap();
        let user = |name: &str| store.user(name).unwrap().unwrap();
        let list = |field: &str| {
            let values = narrowing[field].as_array()?.iter();
            let texts: Vec<String> = values
                .map(|value| value.as_str().unwrap().to_owned())
                .collect();
            Some(texts)
        };
        let speaks_for = list("speaks_for").unwrap_or_default();
        let request = TokenRequest {
            name: "test".to_owned(),
            role: narrowing["role"].as_str().and_then(UserRole::parse),
            scope: token_scope(list("tools"), narrowing["only"].as_str()).unwrap(),
            speaks_for: speaks_for.iter().map(|name| user(name).id).collect(),
            ..TokenRequest::default()
        };
        let (secret, new) = new_token(&user(name), request).unwrap();
        store.add_token(new).unwrap();
        store.close();
        secret.expose().to_owned()
    }

    /// A file of the only person who has some.
    pub fn own_file(&self, path: &str) -> PathBuf {
        let people = std::fs::read_dir(self.folder.path().join("people"));
        let mut people = people.into_iter().flatten().flatten();
        let own = people.next().map(|entry| entry.path());
        own.unwrap_or_else(|| self.folder.path().join("people/nobody"))
            .join(path)
    }

    /// An authenticated admin on WebSocket.
    pub fn admin(&self) -> Client {
        self.websocket(&self.tokens.admin)
    }
}

impl Drop for Home {
    /// Before its folder is removed, so that the server writes nothing there
    /// afterwards.
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop_now();
        }
    }
}

/// Writes a configuration file with one tcp channel on a free port.
pub fn write_config(folder: &Path, mut config: Value) {
    if config.get("channels").is_none() {
        config["channels"] = json!([{ "name": "lan", "type": "tcp", "port": 0 }]);
    }
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

/// Makes the users `admin`, `user` and `viewer` and a token of each.
pub fn make_people(folder: &Path) -> Tokens {
    let store = Store::open(&folder.join("hearth.db"), Clock::system()).unwrap();
    let hash = password::hash(&Secret::new(PASSWORD)).unwrap();
    let token = |name: &str, role| add_person(&store, name, role, &hash);
    let tokens = Tokens {
        admin: token("admin", UserRole::Admin),
        user: token("user", UserRole::User),
        viewer: token("viewer", UserRole::Viewer),
    };
    store.close();
    tokens
}

/// Adds a user with this hash of a password; returns a token.
fn add_person(store: &Store, name: &str, role: UserRole, hash: &str) -> String {
    let user = store.add_user(name, role, hash).unwrap();
    add_token(store, &user, TokenScope::default())
}

/// Adds a token of this person. One with a narrow scope makes nobody an admin.
pub fn add_token(store: &Store, user: &User, scope: TokenScope) -> String {
    let token = Secret::random_token();
    let role = match scope == TokenScope::default() {
        true => user.role,
        false => user.role.min(UserRole::User),
    };
    store
        .add_token(NewToken {
            name: "test".to_owned(),
            scope,
            ..NewToken::session(user.id, role, fingerprint(token.expose()))
        })
        .unwrap();
    token.expose().to_owned()
}
