//! How the client signs in: with a given token, with a password, or, on the
//! server's own machine, as its owner through the door.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use super::address::{not_running, parse, untrusted, websocket_url};
use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError};
use crate::cli::data_directory::DataDirectory;
use crate::cli::door::{Door, address_settings};
use crate::cli::running_server::{RunningServer, reachable_here};
use crate::cli::{http, password};
use base::secret::Secret;
use base::url::{Authority, Host, Url};
use net::http_client::ClientError;
use net::tls::Trust;
use serde_json::json;

/// Time limit of POST and DELETE /auth.
const AUTH: Duration = Duration::from_secs(30);

/// A server, and how to sign in to it.
pub struct ServerAccess {
    pub url: Url,
    /// The certificates that are accepted, with TLS.
    pub trust: Trust,
    pub credential: Credential,
    /// The relay's AUTH_TOKEN, when the server is behind a relay.
    pub relay_token: Option<Secret>,
    /// Whether the token is that of `HEARTH_TOKEN`.
    pub is_from_environment: bool,
    /// The password that was asked for, if one was.
    pub password: Option<Secret>,
    /// The session that ends with the client; none where the token was given.
    session: Option<Secret>,
}

/// The credential in the first message.
pub enum Credential {
    Token(Secret),
    /// Through a relay, which has no POST /auth.
    Password {
        user: String,
        password: Secret,
    },
}

impl Credential {
    /// The first message.
    pub fn message(&self) -> Value {
        match self {
            Credential::Token(token) => {
                json!({"type": "auth", "id": "auth", "token": token.expose(), "language": ""})
            }
            Credential::Password { user, password } => json!({
                "type": "auth",
                "id": "auth",
                "username": user,
                "password": password.expose(),
                "language": "",
            }),
        }
    }
}

impl ServerAccess {
    /// Signs in as the command line and the environment say.
    ///
    /// # Errors
    ///
    /// The command line contradicts itself, or the server refuses.
    pub fn gain(arguments: &Arguments, context: &mut CliContext) -> Result<ServerAccess, CliError> {
        arguments.exclude("token", "user")?;
        let user = arguments.text("user")?;
        let given = arguments.text("token")?;
        // --user takes precedence over the environment, and so does a data directory:
        // who may write to it has full access.
        let is_local = arguments.has("data-dir") && !arguments.has("url");
        let variable = if given.is_some() || user.is_some() || is_local {
            None
        } else {
            context.variable("HEARTH_TOKEN")
        };
        let is_from_environment = variable.is_some();
        let token = given.map(str::to_owned).or(variable);
        let (url, trust, local) = match arguments.text("url")? {
            Some(url) => (parse(url)?, http::trust(arguments, context)?, None),
            None => {
                let directory = DataDirectory::of(arguments, context)?;
                let (url, trust) = local_url(&directory)?;
                (url, trust, Some(directory))
            }
        };
        let relay_token = match arguments.text("relay-token")? {
            Some(token) => Some(token.to_owned()),
            None => context.variable("HEARTH_RELAY_TOKEN"),
        };
        let is_relayed = url.parameter("machine_id").is_some();
        let mut asked = None;
        let (credential, session) = match (token, user, local) {
            (Some(token), ..) => (Credential::Token(Secret::new(token)), None),
            (None, Some(user), _) => {
                let prompt = format!("Password of {user}: ");
                let password = password::read_secret(context, &prompt)?;
                asked = Some(password.clone());
                if is_relayed {
                    let user = user.to_owned();
                    (Credential::Password { user, password }, None)
                } else {
                    log_in(&url, &trust, user, &password)?
                }
            }
            (None, None, Some(directory)) => local_session(directory, &url)?,
            (None, None, None) => {
                return Err(arguments.usage(
                    "sign in to a remote server with --user NAME, or a token in HEARTH_TOKEN",
                ));
            }
        };
        Ok(ServerAccess {
            url,
            trust,
            credential,
            relay_token: relay_token.map(Secret::new),
            is_from_environment,
            password: asked,
            session,
        })
    }

    /// What the server refuses, with the variable that the token came from.
    pub fn refusal(&self, error: &str) -> String {
        if self.is_from_environment {
            format!("{error} (signed in with HEARTH_TOKEN)")
        } else {
            error.to_owned()
        }
    }
}

/// Revokes what was created for this session. If the server cannot be reached, the session
/// expires later.
impl Drop for ServerAccess {
    fn drop(&mut self) {
        let Some(token) = &self.session else {
            return;
        };
        let bearer = format!("Bearer {}", token.expose());
        let headers = [("authorization", bearer.as_str())];
        let url = self.url.http("/auth").text();
        if let Err(error) = http::send(&self.trust, "DELETE", &url, &headers, None, AUTH) {
            log::debug!("the session stays until it expires: {error}");
        }
    }
}

/// Where the server of a data directory listens: from the running server, else
/// from the configuration.
fn local_url(directory: &DataDirectory) -> Result<(Url, Trust), CliError> {
    let running = RunningServer::find(directory).and_then(|server| {
        let address = *server.addresses.first()?;
        Some((address, server.certificate))
    });
    let (address, certificate) = match running {
        Some(running) => running,
        None => {
            let path = directory.config();
            if !path.exists() {
                return Err(CliError::failed(format!(
                    "there is no Hearth in {}: start one there with `hearth serve`, or give its \
                     directory with --data-dir, or the address of a server with --url",
                    directory.path().display()
                )));
            }
            let config = address_settings(directory)?.current();
            let channel = config.tcp_channels().next().ok_or_else(|| {
                CliError::failed(format!(
                    "{} has no tcp channel to connect to",
                    path.display()
                ))
            })?;
            let ip = channel
                .bind
                .unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into());
            let identity = config.tls.identity();
            (
                SocketAddr::new(ip, channel.port),
                identity.map(|(path, _)| path.to_owned()),
            )
        }
    };
    let address = reachable_here(address);
    let trust = certificate.as_deref().map(Trust::pinned);
    let authority = Authority {
        host: Host::Address(address.ip()),
        port: Some(address.port()),
    };
    let url = websocket_url(authority, trust.is_some());
    Ok((url, trust.unwrap_or_default()))
}

/// Begins a session of the first admin: whoever may use the door has full access anyway.
fn local_session(
    directory: DataDirectory,
    url: &Url,
) -> Result<(Credential, Option<Secret>), CliError> {
    let mut door = Door::at(directory);
    if door.server()?.is_none() {
        return Err(not_running(url));
    }
    let session = door.ask(&json!({ "type": "create_session" }))?;
    Ok(own_session(session["token"].as_str().unwrap_or_default()))
}

/// A session that ends with the client.
fn own_session(token: &str) -> (Credential, Option<Secret>) {
    let token = Secret::new(token);
    (Credential::Token(token.clone()), Some(token))
}

/// Signs in with a password (POST /auth, contract section 4.2).
fn log_in(
    url: &Url,
    trust: &Trust,
    user: &str,
    password: &Secret,
) -> Result<(Credential, Option<Secret>), CliError> {
    let server = &url.authority;
    let body = json!({"username": user, "password": password.expose()}).to_string();
    let auth = url.http("/auth").text();
    let (status, text) =
        http::send(trust, "POST", &auth, &[], Some(&body), AUTH).map_err(|error| match error {
            ClientError::Refused(_) => not_running(url),
            ClientError::Untrusted(reason) => untrusted(url, &reason),
            error => CliError::failed(format!("{server} cannot be reached: {error}")),
        })?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    match (answer["data"]["token"].as_str(), answer["error"].as_str()) {
        (Some(token), _) => Ok(own_session(token)),
        (None, Some(error)) => Err(CliError::failed(error)),
        (None, None) => Err(CliError::failed(format!(
            "{server} answered {status} without a token; is this Hearth?"
        ))),
    }
}
