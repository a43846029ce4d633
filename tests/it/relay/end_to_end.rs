//! The whole way, of real pieces only: `hearth chat`, `hearth relay`, and a
//! machine that has joined it by `hearth relay join`.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::{Output, Stdio};

use base::secret::Secret;
use relay::server::{Options, RelayServer, Token};
use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, PASSWORD, TemporaryDirectory, Tokens, make_people, write_config};
use support::model::Model;
use support::program::{Program, finish, free_port, hearth, output_of, printed, run};
use support::relay_peers::{TOKEN, relay, with_token};
use support::socket::connect;
use support::tap::Tap;

/// `hearth relay` as a process on this port.
fn relay_program(folder: &TemporaryDirectory, port: u16, more: &[&str]) -> Program {
    let port = port.to_string();
    let mut arguments = vec!["relay", "--bind", "127.0.0.1", "--port", &port];
    arguments.extend(more);
    Program::start_in(folder.path(), &arguments, &[("AUTH_TOKEN", TOKEN)])
}

/// A household's server as a process.
struct Machine {
    folder: TemporaryDirectory,
    tokens: Tokens,
    program: Program,
}

impl Machine {
    fn start(config: Value) -> Machine {
        let folder = TemporaryDirectory::new();
        write_config(folder.path(), config);
        let tokens = make_people(folder.path());
        let program = Program::serve(folder.path());
        Machine {
            folder,
            tokens,
            program,
        }
    }

    /// Links it to a relay and waits until the link stands; returns the address
    /// for clients.
    fn join(&self, url: &str, name: &str) -> String {
        let joined = finish(
            hearth(self.folder.path())
                .args(["relay", "join", url, "--name", name, "--json"])
                .env("AUTH_TOKEN", TOKEN),
        );
        assert!(joined.status.success(), "{}", printed(&joined));
        let joined: Value = serde_json::from_slice(&joined.stdout).unwrap();
        self.wait_for(name, "linked");
        joined["relay_url"].as_str().unwrap().to_owned()
    }

    fn status(&self) -> Value {
        let ran = run(self.folder.path(), &["relay", "status", "--json"]);
        assert!(ran.status.success(), "{}", printed(&ran));
        serde_json::from_slice(&ran.stdout).unwrap()
    }

    /// The link of this name, once it is in this state.
    fn wait_for(&self, name: &str, state: &str) -> Value {
        eventually(&format!("{name} is {state}"), || {
            let status = self.status();
            let mut links = status["relays"].as_array().unwrap().iter();
            let found = links.find(|link| link["name"] == name && link["state"] == state);
            found.cloned()
        })
    }

    /// `hearth chat` from another folder: nothing of this machine is at hand.
    fn chat(&self, address: &str, arguments: &[&str], input: &str) -> Output {
        let elsewhere = TemporaryDirectory::new();
        let mut child = hearth(elsewhere.path())
            .args(["chat", "--url", address])
            .args(arguments)
            .env("HEARTH_RELAY_TOKEN", TOKEN)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        output_of(child)
    }

    /// The same with a token, which must be answered.
    fn says(&self, address: &str, arguments: &[&str]) -> String {
        let mut words = vec!["--token", self.tokens.user.as_str()];
        words.extend(arguments);
        let answered = self.chat(address, &words, "");
        assert!(answered.status.success(), "{}", printed(&answered));
        String::from_utf8(answered.stdout).unwrap()
    }
}

/// A client that knows nothing of encryption.
fn plain(relay: SocketAddr, machine_id: &str) -> Client {
    let request = with_token(relay, &format!("?machine_id={machine_id}"));
    let (websocket, _) = tungstenite::client(request, connect(relay)).unwrap();
    Client::WebSocket(Box::new(websocket))
}

fn machine_id(address: &str) -> &str {
    address.split_once("machine_id=").unwrap().1
}

/// The same address at another port.
fn through(address: &str, tap: &Tap) -> String {
    let (_, query) = address.split_once("/ws").unwrap();
    format!("ws://{}/ws{query}", tap.address)
}

#[test]
fn nothing_that_is_said_is_seen_on_either_side_of_the_relay() {
    let model = Model::saying("marmalade it is");
    let folder = TemporaryDirectory::new();
    let relay = relay_program(&folder, 0, &[]);
    let (inside, outside) = (Tap::before(relay.address), Tap::before(relay.address));
    let machine = Machine::start(model.config());
    let joined = machine.join(&format!("ws://{}", inside.address), "relay");
    let address = through(&joined, &outside);

    let answer = machine.says(&address, &["nightingale?"]);
    assert!(answer.contains("marmalade"), "{answer}");
    let with_password = machine.chat(
        &address,
        &["--user", "user", "nightingale!"],
        &format!("{PASSWORD}\n"),
    );
    assert!(
        with_password.status.success(),
        "{}",
        printed(&with_password)
    );
    assert!(printed(&with_password).contains("marmalade"));
    let wrong = machine.chat(&address, &["--user", "user", "hello"], "not this one\n");
    assert!(!wrong.status.success(), "{}", printed(&wrong));
    let long = "nightingale ".repeat(8_000);
    machine.says(&address, &[&long]);

    for (side, tap) in [("inside", &inside), ("outside", &outside)] {
        let seen = tap.seen();
        assert!(seen.len() > 100_000 && seen.contains("secure"), "{side}");
        let token = machine.tokens.user.as_str();
        for word in ["nightingale", "marmalade", PASSWORD, token, "username"] {
            assert!(!seen.contains(word), "{side}: {word}");
        }
    }
    // What is not encrypted is seen: the taps do not look away.
    let mut client = plain(outside.address, machine_id(&joined));
    client.authenticate(&machine.tokens.user);
    let said = client.chat("a nightingale in the open");
    assert_eq!(said["response"], "marmalade it is");
    for tap in [&inside, &outside] {
        let seen = tap.seen();
        assert!(seen.contains("a nightingale in the open") && seen.contains("marmalade"));
    }
    let log = fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
    for word in ["nightingale", "marmalade", PASSWORD, TOKEN] {
        assert!(!log.contains(word), "{log}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn a_relay_is_reached_over_tls() {
    use support::tls::Identity;

    let identity = Identity::new();
    let certificate = identity.certificate.to_str().unwrap();
    let folder = TemporaryDirectory::new();
    let key = identity.key.to_str().unwrap();
    let relay = relay_program(&folder, 0, &["--cert", certificate, "--key", key]);
    let tap = Tap::before(relay.address);
    let machine = Machine::start(json!({ "tls": { "ca_file": certificate } }));
    let address = machine.join(
        &format!("https://localhost:{}", tap.address.port()),
        "relay",
    );
    assert!(address.starts_with("wss://localhost:"), "{address}");

    let answer = machine.says(&address, &["--ca-file", certificate, "hello"]);
    assert!(!answer.is_empty());
    let token = machine.tokens.user.as_str();
    let untrusted = machine.chat(&address, &["--token", token, "hello"], "");
    assert!(!untrusted.status.success());
    assert!(
        printed(&untrusted).contains("certificate"),
        "{}",
        printed(&untrusted)
    );
    let seen = tap.seen();
    for word in ["secure", "machine_id", TOKEN, "HTTP/1.1"] {
        assert!(!seen.contains(word), "{word}");
    }
}

#[test]
fn what_was_acknowledged_is_there_after_the_relay_was_killed() {
    let folder = TemporaryDirectory::new();
    let port = free_port();
    let relay = relay_program(&folder, port, &[]);
    let at = relay.address;
    let machine = Machine::start(json!({}));
    let address = machine.join(&format!("ws://{at}"), "relay");
    let id = machine_id(&address);
    let mut client = plain(at, id);
    client.authenticate(&machine.tokens.user);
    let said = client.chat("the bins go out on Monday");
    let link = machine.wait_for("relay", "linked");
    assert_eq!(link["clients"], 1);

    relay.kill();
    let waiting = machine.wait_for("relay", "waiting");
    assert!(waiting["last_error"].is_string() && waiting["next_try"].is_string());
    assert_eq!(waiting["clients"], 0);
    let unreachable = machine.chat(&address, &["--token", "t", "hello"], "");
    assert!(!unreachable.status.success());

    let _relay = relay_program(&folder, port, &[]);
    machine.wait_for("relay", "linked");
    let mut client = plain(at, id);
    client.authenticate(&machine.tokens.user);
    let conversation = said["conversation_id"].clone();
    let request = json!({ "type": "get_messages", "conversation_id": conversation });
    let messages = client.ask(request)["messages"].clone();
    assert_eq!(messages[0]["content"], "the bins go out on Monday");
    assert_eq!(messages[1]["content"], said["response"]);
    machine.says(&address, &["hello"]);
}

#[test]
fn two_relays_carry_at_once_and_one_may_go() {
    let (one, two) = (relay(|_| ()), relay(|_| ()));
    let machine = Machine::start(json!({}));
    let first = machine.join(&format!("ws://{}", one.local_addr()), "one");
    let second = machine.join(&format!("ws://{}", two.local_addr()), "two");
    assert_eq!(machine_id(&first), machine_id(&second));
    for address in [&first, &second] {
        assert!(!machine.says(address, &["hello"]).is_empty());
    }
    one.stop();
    machine.wait_for("one", "waiting");
    assert!(!machine.says(&second, &["hello"]).is_empty());
    assert_eq!(machine.wait_for("two", "linked")["last_error"], Value::Null);
}

#[test]
fn a_server_that_is_a_relay_serves_its_own_and_another_machine() {
    let home = Home::start(json!({ "relay": { "enabled": true, "auth_token": TOKEN } }));
    let machine = Machine::start(json!({}));
    let address = machine.join(&format!("ws://{}", home.address()), "relay");
    assert!(!machine.says(&address, &["hello"]).is_empty());
    let mut own = home.admin();
    assert!(own.chat("hello")["response"].is_string());
    // The households are two.
    let token = home.tokens.user.as_str();
    let stranger = machine.chat(&address, &["--token", token, "hello"], "");
    assert!(!stranger.status.success(), "{}", printed(&stranger));
}

#[test]
fn a_copied_key_takes_the_link_once_and_nobody_fights() {
    let relay = relay(|_| ());
    let url = format!("ws://{}", relay.local_addr());
    let first = Machine::start(json!({}));
    let address = first.join(&url, "relay");
    let second = Machine::start(json!({}));
    let key = fs::read(first.folder.path().join("identity.key")).unwrap();
    let copy = second.folder.path().join("identity.key");
    fs::write(&copy, key).unwrap();
    fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(second.join(&url, "relay"), address);

    let replaced = first.wait_for("relay", "replaced");
    let told = replaced["last_error"].as_str().unwrap();
    assert!(told.contains("identity.key"), "{told}");
    assert!(replaced["next_try"].is_string());
    assert!(!second.says(&address, &["hello"]).is_empty());
    assert_eq!(first.status()["relays"][0], replaced, "it keeps still");
    assert_eq!(second.status()["relays"][0]["state"], "linked");
}

#[test]
fn a_client_that_comes_straight_may_talk_as_through_a_relay() {
    let model = Model::saying("marmalade it is");
    let relay = relay(|_| ());
    let machine = Machine::start(model.config());
    let address = machine.join(&format!("ws://{}", relay.local_addr()), "relay");
    let tap = Tap::before(machine.program.address);
    let straight = through(&address, &tap);
    let answer = machine.says(&straight, &["nightingale?"]);
    assert!(answer.contains("marmalade"), "{answer}");
    let long = "nightingale ".repeat(8_000);
    let password = format!("{PASSWORD}\n");
    let answered = machine.chat(&straight, &["--user", "user", &long], &password);
    assert!(answered.status.success(), "{}", printed(&answered));
    let seen = tap.seen();
    assert!(seen.len() > 100_000 && seen.contains("secure"));
    for word in ["nightingale", "marmalade", PASSWORD] {
        assert!(!seen.contains(word), "{word}");
    }
    // Who knows only the contract is served as ever.
    let mut client = plain(tap.address, machine_id(&address));
    client.authenticate(&machine.tokens.user);
    assert_eq!(client.chat("hello")["response"], "marmalade it is");
    assert_eq!(
        client.refused(json!({ "type": "secure" })),
        "invalid_request"
    );
}

/// Large answers to many clients while each of them sends as much: neither end
/// of the link may wait for the other to read.
#[test]
fn a_link_that_is_full_both_ways_goes_on() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 4;
    let mut options = Options::new(Token::new(Secret::new(TOKEN)).unwrap());
    options.rules.limits.connections_per_address = 1_000;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = RelayServer::start(options, socket).unwrap();
    let at = relay.local_addr();
    let machine = Machine::start(json!({}));
    let address = machine.join(&format!("ws://{at}"), "relay");
    let id = machine_id(&address);
    let conversation = long_conversation(&mut plain_user(at, id, &machine));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| plain_user(at, id, &machine)).collect();

    let read = json!({ "type": "get_messages", "conversation_id": conversation });
    let large = json!({ "type": "search_messages", "query": "x".repeat(600 << 10) });
    let threads: Vec<_> = clients
        .drain(..)
        .map(|mut client| {
            let (read, large) = (read.clone(), large.clone());
            std::thread::spawn(move || {
                for _ in 0..ROUNDS {
                    client.send(&read);
                    client.send(&large);
                    let answer = client.response();
                    assert_eq!(answer["data"]["messages"].as_array().unwrap().len(), 8);
                    assert_eq!(client.response()["code"], "invalid_request");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let link = &machine.status()["relays"][0];
    assert_eq!(
        link["last_error"],
        Value::Null,
        "the link stood all the time"
    );
}

fn plain_user(relay: SocketAddr, id: &str, machine: &Machine) -> Client {
    let mut client = plain(relay, id);
    client.authenticate(&machine.tokens.user);
    client
}

/// A conversation whose messages have 800 KiB.
fn long_conversation(client: &mut Client) -> Value {
    let mut conversation = Value::Null;
    for _ in 0..4 {
        let mut request = json!({ "type": "chat", "message": "y".repeat(200 << 10) });
        if conversation.is_string() {
            request["conversation_id"] = conversation;
        }
        conversation = client.ask(request)["conversation_id"].clone();
    }
    conversation
}

#[test]
fn those_who_have_signed_in_are_no_strangers_to_the_relay() {
    let relay = relay(|_| ());
    let machine = Machine::start(json!({}));
    let address = machine.join(&format!("ws://{}", relay.local_addr()), "away");
    let query = address.split_once("/ws").unwrap().1;
    let socket = || {
        let request = with_token(relay.local_addr(), query);
        tungstenite::client(request, connect(relay.local_addr()))
            .unwrap()
            .0
    };
    // More than an address's share of strangers, all at once.
    let mut sockets = Vec::new();
    for _ in 0..40 {
        let mut socket = socket();
        let auth = json!({ "type": "auth", "token": machine.tokens.user });
        socket.send(auth.to_string().into()).unwrap();
        let answer = socket.read().unwrap();
        assert!(
            answer.to_text().unwrap().contains(r#""status":"ok""#),
            "{answer}"
        );
        sockets.push(socket);
    }
}
