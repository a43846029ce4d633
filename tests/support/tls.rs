//! Certificates, and clients and servers that speak TLS.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use base::clock::Clock;
use net::stream::{ReadTimeout, Socket, Stream};
use net::tls::stream;
use net::tls::{Acceptor, Trust, household, self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::{Value, json};

use super::MAX_WAIT;
use super::home::{Home, TemporaryDirectory};
use super::served::{page, read_request};
use super::socket::{self, connect};

/// A certificate and its key in files.
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
    folder: TemporaryDirectory,
}

impl Identity {
    /// A certificate for loopback, good for a day.
    pub fn new() -> Identity {
        let folder = TemporaryDirectory::new();
        let identity = Identity {
            certificate: folder.path().join("cert.pem"),
            key: folder.path().join("key.pem"),
            folder,
        };
        identity.renew();
        identity
    }

    /// Puts another certificate in its place, as programs do that renew them:
    /// each file at once.
    pub fn renew(&self) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = self_signed::make(&names, 1, Clock::system().now()).unwrap();
        self.replace(&self.key, made.key.expose());
        self.replace(&self.certificate, &made.certificate);
    }

    pub fn replace(&self, file: &Path, text: &str) {
        let next = self.folder.path().join("next");
        fs::write(&next, text).unwrap();
        fs::rename(next, file).unwrap();
    }

    /// The configuration of a server with it.
    pub fn config(&self) -> Value {
        json!({ "tls": { "cert": self.certificate, "key": self.key } })
    }

    /// Trust in it beside the public authorities.
    pub fn trust(&self) -> Trust {
        Trust::new(Some(&self.certificate))
    }
}

/// What [`household`] may vouch for.
pub const NAMES: [&str; 5] = [
    "pi.local",
    "localhost",
    "127.0.0.1",
    "192.168.1.7",
    "fd00::7",
];

/// Starts a home again with an authority of its own, and trusts that.
pub fn household(home: &mut Home, only: bool) -> Trust {
    home.stop();
    let folder = home.folder.path();
    let names = NAMES.map(str::to_owned);
    household::make(folder, "pi", &names, home.clock.now()).unwrap();
    let config = folder.join("config.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    text["tls"] = json!({ "household": true, "only": only });
    fs::write(&config, text.to_string()).unwrap();
    let trust = Trust::new(Some(&folder.join("authority.pem")));
    home.restart();
    trust
}

/// A connection with TLS; every wait ends.
pub type Secure = StreamOwned<ClientConnection, socket::Socket>;

/// Connects; the handshake is made by the first read or write.
pub fn secure(address: SocketAddr, config: Arc<ClientConfig>) -> Secure {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    StreamOwned::new(connection, connect(address))
}

/// GET over TLS; the whole answer, or why there is none.
pub fn get(address: SocketAddr, path: &str, trust: &Trust) -> std::io::Result<String> {
    let mut stream = secure(address, trust.client_config().unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Serves the same answer over TLS to whoever asks, until the test program ends.
pub fn serve(identity: &Identity, content_type: &'static str, body: String) -> SocketAddr {
    let acceptor = Acceptor::open(&identity.certificate, &identity.key).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = Socket::new(Arc::new(socket.unwrap()));
            let deadline = Instant::now() + MAX_WAIT;
            let Ok(mut stream) = stream::accept(socket, acceptor.config(), deadline) else {
                continue;
            };
            stream.set_read_timeout(ReadTimeout::Until(deadline));
            let _ = read_request(&mut BufReader::new(&mut stream));
            let _ = stream.write_all(page(content_type, &body).as_bytes());
            let _ = stream.finish();
        }
    });
    address
}
