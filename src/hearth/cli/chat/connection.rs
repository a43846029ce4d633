//! The WebSocket to the server: opened with deadlines, then read without
//! waiting, so that one loop can wait for it and for the person.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use serde_json::Value;
use tungstenite::http::header::AUTHORIZATION;
use tungstenite::{Error, Message};

use super::access::ServerAccess;
use super::address::unreachable;
use super::encryption::EncryptedSession;
use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError};
use base::url::Url;
use net::dial::{Dial, DialError, OpenSocket, open};
use net::stream::ReadTimeout;
use net::wait::{Interest, wait};

/// Time limit for opening the WebSocket, and for sending one message.
const EXCHANGE: Duration = Duration::from_secs(10);
/// Time limit of one answer of [`SignedIn::ask`], in which a password may be hashed.
const ANSWER: Duration = Duration::from_secs(30);
/// Largest message that is accepted.
const MESSAGE_BYTES: usize = 8 << 20;

/// A connection to the server that the command line names, signed in.
pub struct SignedIn {
    // Dropped in this order: the session is revoked last.
    connection: ChatConnection,
    /// How it signed in.
    pub access: ServerAccess,
    /// Whose it is.
    pub user: String,
}

impl SignedIn {
    /// Signs in as the person that the command line or the environment names.
    pub fn named(arguments: &Arguments, context: &mut CliContext) -> Result<SignedIn, CliError> {
        let is_named = arguments.has("user") || arguments.has("token");
        // With a data directory alone, whoever may write to it would be an admin.
        let is_local = arguments.has("data-dir") && !arguments.has("url");
        if !is_named && (is_local || context.variable("HEARTH_TOKEN").is_none()) {
            return Err(
                arguments.usage("say whose account: --user NAME, or a token in HEARTH_TOKEN")
            );
        }
        SignedIn::open(arguments, context)
    }

    /// Connects and signs in.
    pub fn open(arguments: &Arguments, context: &mut CliContext) -> Result<SignedIn, CliError> {
        let access = ServerAccess::gain(arguments, context)?;
        let mut signed_in = SignedIn {
            connection: ChatConnection::open(&access)?,
            access,
            user: String::new(),
        };
        let answer = signed_in.ask(&signed_in.access.credential.message())?;
        signed_in.user = answer["user"].as_str().unwrap_or_default().to_owned();
        Ok(signed_in)
    }

    /// Sends a request and waits for the data of its response.
    ///
    /// # Errors
    ///
    /// The server refuses, or does not answer in time.
    pub fn ask(&mut self, request: &Value) -> Result<Value, CliError> {
        let answer = self.connection.ask(request, Instant::now() + ANSWER);
        answer.map_err(|error| CliError::failed(self.access.refusal(&error)))
    }
}

/// An open WebSocket.
pub struct ChatConnection {
    socket: OpenSocket,
    /// The encryption through a relay.
    encryption: Option<EncryptedSession>,
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadResult {
    Text(String),
    /// A message without text, such as a ping.
    Alive,
    /// Nothing for now.
    Nothing,
    /// The connection has ended, for this reason.
    Closed(String),
}

impl ChatConnection {
    /// Connects to a server and upgrades to a WebSocket. Through a relay it also
    /// agrees on keys with the machine.
    pub fn open(access: &ServerAccess) -> Result<ChatConnection, CliError> {
        let url = &access.url;
        let headers: Vec<_> = access
            .relay_token
            .as_ref()
            .map(|token| (AUTHORIZATION, format!("Bearer {}", token.expose())))
            .into_iter()
            .collect();
        let deadline = Instant::now() + EXCHANGE;
        let socket = open(&Dial {
            url: &url.text(),
            headers: &headers,
            trust: &access.trust,
            message_bytes: MESSAGE_BYTES,
            deadline,
            begun: &|_| (),
        })
        .map_err(|error| refusal(url, error))?;
        let mut connection = ChatConnection {
            socket,
            encryption: None,
        };
        if let Some(machine) = url.parameter("machine_id") {
            let encryption =
                EncryptedSession::agree(machine, &mut |request| connection.ask(&request, deadline))
                    .map_err(|reason| CliError::failed(format!("{}: {reason}", url.authority)))?;
            connection.encryption = Some(encryption);
        }
        Ok(connection)
    }

    /// Sends a text.
    ///
    /// # Errors
    ///
    /// The connection has ended, or the server reads nothing for ten seconds.
    pub fn send(&mut self, text: String) -> Result<(), String> {
        let messages = match &mut self.encryption {
            None => vec![Message::text(text)],
            Some(encryption) => {
                let sealed = encryption.seal(&text)?;
                sealed.into_iter().map(Message::binary).collect()
            }
        };
        let deadline = Instant::now() + EXCHANGE;
        self.socket.get_mut().set_write_deadline(deadline);
        for message in messages {
            self.socket.write(message).map_err(reason)?;
        }
        self.socket.flush().map_err(reason)
    }

    /// What has arrived, without waiting. Ask again until it is
    /// [`ReadResult::Nothing`] before polling: more may be in the buffer.
    pub fn receive(&mut self) -> ReadResult {
        self.socket
            .get_mut()
            .set_write_deadline(Instant::now() + EXCHANGE);
        match self.socket.read() {
            Ok(Message::Text(_)) if self.encryption.is_some() => {
                ReadResult::Closed("an unencrypted message came through the relay".to_owned())
            }
            Ok(Message::Text(text)) => ReadResult::Text(text.as_str().to_owned()),
            Ok(Message::Binary(message)) => match &mut self.encryption {
                None => ReadResult::Alive,
                Some(encryption) => match encryption.open(&message) {
                    Ok(Some(text)) => ReadResult::Text(text),
                    Ok(None) => ReadResult::Alive,
                    Err(reason) => ReadResult::Closed(reason),
                },
            },
            Ok(Message::Close(frame)) => {
                let said = frame.map(|frame| frame.reason.as_str().to_owned());
                ReadResult::Closed(match said {
                    Some(said) if !said.is_empty() => said,
                    _ => "it closed the connection".to_owned(),
                })
            }
            Ok(_) => ReadResult::Alive,
            Err(Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                ReadResult::Nothing
            }
            Err(error) => ReadResult::Closed(reason(error)),
        }
    }

    /// Sends a request and waits for the data of its response.
    ///
    /// # Errors
    ///
    /// The server refuses, or does not answer before the deadline.
    pub fn ask(&mut self, request: &Value, deadline: Instant) -> Result<Value, String> {
        self.send(request.to_string())?;
        loop {
            match self.receive() {
                ReadResult::Alive => {}
                ReadResult::Closed(reason) => return Err(reason),
                ReadResult::Nothing => {
                    let stream = self.socket.get_ref();
                    let woken = wait(stream.as_fd(), Interest::Read, None, Some(deadline))
                        .map_err(|error| error.to_string())?;
                    if !woken.ready {
                        return Err("it did not answer in time".to_owned());
                    }
                }
                ReadResult::Text(text) => {
                    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
                    match (answer["status"].as_str(), answer["error"].as_str()) {
                        (Some("ok"), _) => return Ok(answer["data"].clone()),
                        (_, Some(error)) => return Err(error.to_owned()),
                        // An event.
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Closes the connection without waiting for the server.
impl Drop for ChatConnection {
    fn drop(&mut self) {
        self.socket.get_mut().set_read_timeout(ReadTimeout::Never);
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

impl AsFd for ChatConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

fn refusal(url: &Url, error: DialError) -> CliError {
    match error {
        DialError::Refused { status: 401, .. } if url.parameter("machine_id").is_some() => {
            CliError::failed(format!(
                "{error}; give the relay's AUTH_TOKEN in HEARTH_RELAY_TOKEN"
            ))
        }
        DialError::Unreachable { source, .. } => unreachable(url, &source),
        DialError::Refused { status: 308, .. } if !url.is_secure() => {
            CliError::failed(format!("{error}; it requires TLS: use wss://"))
        }
        error => CliError::failed(error),
    }
}

fn reason(error: Error) -> String {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(_) => {
            "it closed the connection".to_owned()
        }
        Error::Io(error) if error.kind() == ErrorKind::TimedOut => {
            "the server stopped reading".to_owned()
        }
        Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}
