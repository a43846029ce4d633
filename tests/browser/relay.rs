//! A relay and the machine behind it, in front of a real server: what the page
//! needs of them, and the ways in which a relay can lie. It forwards what it
//! decrypts as JSON lines.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base::ids::MachineId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use snow::{Builder, Keypair, TransportState};
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

pub use support::relay::TOKEN;

const PROTOCOL: &str = "Noise_NK_25519_AESGCM_SHA256";
const MORE: u8 = 1;
const REKEY: u8 = 2;
/// Small, so that every longer text comes in pieces and under several keys.
const PIECE_BYTES: usize = 200;
const REKEY_EVERY: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(60);

/// How a relay may lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It only listens, and the machine cuts its texts small and changes its keys
    /// often.
    None,
    /// Offers a key of its own.
    OtherKey,
    /// Offers the machine's key without holding the private one.
    OtherMachine,
}

pub struct Relay {
    pub address: SocketAddr,
    pub machine_id: String,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

struct State {
    home: SocketAddr,
    lie: Lie,
    machine: Keypair,
    impostor: Keypair,
    machine_id: String,
    clients: AtomicUsize,
    /// Flip a bit of the next message to the browser.
    flips: AtomicBool,
    /// All that came and went in messages.
    seen: Mutex<Vec<u8>>,
    streams: Mutex<Vec<TcpStream>>,
    stops: AtomicBool,
}

impl Relay {
    /// A relay before the machine on which this server runs.
    pub fn start(home: SocketAddr, lie: Lie) -> Relay {
        let keypair = || {
            Builder::new(PROTOCOL.parse().unwrap())
                .generate_keypair()
                .unwrap()
        };
        let machine = keypair();
        let public: &[u8; 32] = machine.public.as_slice().try_into().unwrap();
        let machine_id = MachineId::of_public_key(public).to_string();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            home,
            lie,
            machine,
            impostor: keypair(),
            machine_id: machine_id.clone(),
            clients: AtomicUsize::new(0),
            flips: AtomicBool::new(false),
            seen: Mutex::default(),
            streams: Mutex::default(),
            stops: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        let acceptor = std::thread::spawn(move || accept(&listener, &shared));
        Relay {
            address,
            machine_id,
            state,
            acceptor: Some(acceptor),
        }
    }

    /// Its address as a person types it.
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub fn clients(&self) -> usize {
        self.state.clients.load(Ordering::SeqCst)
    }

    pub fn flip_a_bit(&self) {
        self.state.flips.store(true, Ordering::SeqCst);
    }

    /// Whether any message held this text.
    pub fn has_seen(&self, text: &str) -> bool {
        let seen = self.state.seen.lock().unwrap();
        seen.windows(text.len()).any(|part| part == text.as_bytes())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.stops.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = self.acceptor.take().unwrap().join();
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    let mut clients = Vec::new();
    for stream in listener.incoming() {
        if state.stops.load(Ordering::SeqCst) {
            break;
        }
        let stream = stream.unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let kept = stream.try_clone().unwrap();
        state.streams.lock().unwrap().push(kept);
        state.clients.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(state);
        clients.push(std::thread::spawn(move || {
            let closing = stream.try_clone().unwrap();
            let _ = serve(stream, &state);
            let _ = closing.shutdown(Shutdown::Both);
        }));
    }
    for client in clients {
        let _ = client.join();
    }
}

/// What the relay admits: the token among the subprotocols, and the machine.
fn admit(request: &Request) -> Result<(), StatusCode> {
    let offered = request
        .headers()
        .get("sec-websocket-protocol")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let bearer = format!("bearer.{TOKEN}");
    if !offered.split(", ").any(|one| one == bearer) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let query = request.uri().query().unwrap_or_default();
    if query.starts_with("machine_id=") && request.uri().path() == "/ws" {
        Ok(())
    } else {
        Err(StatusCode::NOT_FOUND)
    }
}

#[allow(clippy::result_large_err)]
fn serve(stream: TcpStream, state: &Arc<State>) -> Result<(), Box<dyn std::error::Error>> {
    let mut is_known = false;
    let clone = stream.try_clone()?;
    let callback = |request: &Request, mut response: Response| match admit(request) {
        Ok(()) => {
            is_known = request.uri().query() == Some(&format!("machine_id={}", state.machine_id));
            let chosen = HeaderValue::from_static("hearth.v1");
            response
                .headers_mut()
                .insert("sec-websocket-protocol", chosen);
            Ok(response)
        }
        Err(status) => {
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = status;
            Err(refusal)
        }
    };
    let mut browser =
        tungstenite::accept_hdr(stream, callback).map_err(|error| error.to_string())?;

    assert_eq!(ask(&mut browser, state)?["type"], "machine_key");
    let key = match state.lie {
        Lie::OtherKey => &state.impostor.public,
        _ => &state.machine.public,
    };
    // An unknown machine's key is not known either; a relay that lies says nothing.
    if !is_known && state.lie == Lie::None {
        let refusal = json!({ "status": "error", "error": "that machine is not connected", "code": "not_found" });
        browser.send(Message::text(refusal.to_string()))?;
        return Ok(browser.close(None)?);
    }
    answer(&mut browser, json!({ "public_key": STANDARD.encode(key) }))?;

    let request = ask(&mut browser, state)?;
    let noise = STANDARD.decode(request["noise"].as_str().unwrap()).unwrap();
    let prologue = format!("hearth-1{}", state.machine_id);
    let mut handshake = Builder::new(PROTOCOL.parse()?)
        .prologue(prologue.as_bytes())?
        .local_private_key(&state.machine.private)?
        .build_responder()?;
    let mut buffer = vec![0; 65_535];
    handshake.read_message(&noise, &mut buffer)?;
    let length = if state.lie == Lie::OtherMachine {
        // Somebody's key, and a tag that nobody can make without the private one.
        buffer[..32].copy_from_slice(&state.impostor.public);
        48
    } else {
        handshake.write_message(&[], &mut buffer)?
    };
    answer(
        &mut browser,
        json!({ "noise": STANDARD.encode(&buffer[..length]) }),
    )?;
    if state.lie == Lie::OtherMachine {
        let _ = browser.read();
        return Ok(());
    }

    let channel = Arc::new(Mutex::new(handshake.into_transport_mode()?));
    let home = TcpStream::connect(state.home)?;
    home.set_read_timeout(Some(TIMEOUT))?;
    let replies = home.try_clone()?;
    let shared = (Arc::clone(state), Arc::clone(&channel));
    let back = std::thread::spawn(move || {
        let browser = WebSocket::from_raw_socket(clone, Role::Server, None);
        let _ = carry_back(replies, browser, &shared.0, &shared.1);
    });
    let _ = carry_forth(&mut browser, &home, state, &channel);
    let _ = home.shutdown(Shutdown::Both);
    let _ = back.join();
    Ok(())
}

fn ask(
    browser: &mut WebSocket<TcpStream>,
    state: &State,
) -> Result<Value, Box<dyn std::error::Error>> {
    let text = browser.read()?.into_text()?;
    state
        .seen
        .lock()
        .unwrap()
        .extend_from_slice(text.as_bytes());
    Ok(serde_json::from_str(&text)?)
}

fn answer(browser: &mut WebSocket<TcpStream>, data: Value) -> tungstenite::Result<()> {
    let envelope = json!({ "status": "ok", "data": data });
    browser.send(Message::text(envelope.to_string()))
}

/// From the browser to the server.
fn carry_forth(
    browser: &mut WebSocket<TcpStream>,
    mut home: &TcpStream,
    state: &State,
    channel: &Mutex<TransportState>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut text = Vec::new();
    loop {
        let sealed = match browser.read()? {
            Message::Binary(sealed) => sealed,
            Message::Close(_) => return Ok(()),
            other => panic!("not encrypted: {other:?}"),
        };
        state.seen.lock().unwrap().extend_from_slice(&sealed);
        let mut plain = vec![0; sealed.len()];
        let mut channel = channel.lock().unwrap();
        let length = channel.read_message(&sealed, &mut plain)?;
        let flags = plain[0];
        text.extend_from_slice(&plain[1..length]);
        if flags & REKEY != 0 {
            channel.rekey_incoming();
        }
        if flags & MORE == 0 {
            text.push(b'\n');
            home.write_all(&text)?;
            text.clear();
        }
    }
}

/// From the server to the browser.
fn carry_back(
    home: TcpStream,
    mut browser: WebSocket<TcpStream>,
    state: &State,
    channel: &Mutex<TransportState>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut sent = 0;
    for line in BufReader::new(home).lines() {
        let line = line?;
        let mut pieces = line.as_bytes().chunks(PIECE_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            sent += 1;
            let rekeys = sent % REKEY_EVERY == 0;
            let more = if pieces.peek().is_some() { MORE } else { 0 };
            let mut plain = vec![more | if rekeys { REKEY } else { 0 }];
            plain.extend_from_slice(piece);
            let mut sealed = vec![0; plain.len() + 16];
            let mut channel = channel.lock().unwrap();
            channel.write_message(&plain, &mut sealed)?;
            if rekeys {
                channel.rekey_outgoing();
            }
            drop(channel);
            if state.flips.swap(false, Ordering::SeqCst) {
                sealed[3] ^= 1;
            }
            state.seen.lock().unwrap().extend_from_slice(&sealed);
            browser.send(Message::binary(sealed))?;
        }
    }
    browser.close(None)?;
    Ok(browser.flush()?)
}
