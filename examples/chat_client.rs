//! A small client over WebSocket: signs in with a name and a password, asks one
//! question and shows the answer as it comes.
//!
//!     HEARTH_PASSWORD=... cargo run --example chat_client -- 127.0.0.1:5000 admin "What time is it?"

use std::io::{Write, stdout};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, user, question] = arguments.as_slice() else {
        return Err("usage: chat_client HOST:PORT USER QUESTION".into());
    };
    let token = sign_in(server, user, &std::env::var("HEARTH_PASSWORD")?)?;

    let stream = TcpStream::connect(server)?;
    // The server pings every 30 seconds: a longer silence means that it has gone.
    stream.set_read_timeout(Some(Duration::from_secs(90)))?;
    let (mut socket, _) = tungstenite::client(format!("ws://{server}/ws"), stream)?;
    send(&mut socket, json!({"type": "auth", "token": token}))?;
    send(
        &mut socket,
        json!({"type": "chat", "message": question, "stream": true}),
    )?;

    loop {
        let Message::Text(text) = socket.read()? else {
            continue; // a ping, which is answered by itself
        };
        let message: Value = serde_json::from_str(&text)?;
        if message["type"] == "event" {
            // Events have no status. Of them only the text matters here.
            if message["event"] == "chat.delta" {
                print!("{}", message["text"].as_str().unwrap_or_default());
                stdout().flush()?;
            }
        } else if message["status"] != "ok" {
            return Err(message["error"].as_str().unwrap_or("refused").into());
        } else if message["data"]["response"].is_string() {
            println!(
                "\n\n(go on with conversation_id {})",
                message["data"]["conversation_id"]
            );
            return Ok(());
        }
    }
}

/// POST /auth: a session token for a name and a password.
fn sign_in(server: &str, user: &str, password: &str) -> Fallible<String> {
    let body = json!({"username": user, "password": password}).to_string();
    let text = ureq::post(format!("http://{server}/auth"))
        .config()
        .timeout_global(Some(Duration::from_secs(30)))
        .http_status_as_error(false)
        .build()
        .content_type("application/json")
        .send(body.as_str())?
        .body_mut()
        .read_to_string()?;
    let answer: Value = serde_json::from_str(&text)?;
    match answer["data"]["token"].as_str() {
        Some(token) => Ok(token.to_owned()),
        None => Err(answer["error"].as_str().unwrap_or("no token").into()),
    }
}

fn send(socket: &mut WebSocket<TcpStream>, message: Value) -> Fallible<()> {
    Ok(socket.send(Message::text(message.to_string()))?)
}
