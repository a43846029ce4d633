//! How the client gets in: a token that it was given, a password, or, on the
//! server's own machine, the right to write its database.

use std::time::Duration;

use serde_json::Value;

use super::address::{Address, unreachable};
use crate::cli::arguments::Arguments;
use crate::cli::context::{Context, Failure};
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::RunningServer;
use crate::cli::{http, password};
use base::clock::Clock;
use base::ids::TokenId;
use base::secret::{Secret, fingerprint};
use config::{Channel, DEFAULT_PORT, Settings};
use net::tls::Trust;
use serde_json::json;
use store::{NewToken, SESSION, Store, UserRole};

/// How long a token of this machine's owner is valid, should it not be revoked.
const LOCAL_TOKEN: Duration = Duration::from_secs(60 * 60);
/// How long POST and DELETE /auth may take.
const AUTH: Duration = Duration::from_secs(30);

/// A server and what opens it.
pub struct Access {
    pub address: Address,
    /// Whom it must be, where it is reached with TLS.
    pub trust: Trust,
    pub credential: Credential,
    /// The relay's AUTH_TOKEN, when the server is behind one.
    pub relay_token: Option<Secret>,
    ends: End,
}

/// What the first message signs in with.
pub enum Credential {
    Token(Secret),
    /// Through a relay, where there is no POST /auth.
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
                json!({"type": "auth", "id": "auth", "token": token.expose()})
            }
            Credential::Password { user, password } => json!({
                "type": "auth",
                "id": "auth",
                "username": user,
                "password": password.expose(),
            }),
        }
    }
}

/// What is to be done with the token when the client leaves.
enum End {
    /// It is somebody else's affair.
    Keep,
    /// It was made in the database and is revoked there.
    Revoke(Store, TokenId),
    /// It is a session, to be ended by DELETE /auth.
    LogOut(Secret),
}

impl Access {
    /// Gets in as the command line and the environment say.
    pub fn gain(arguments: &Arguments, context: &mut Context) -> Result<Access, Failure> {
        let url = match arguments.text("url")? {
            Some(url) => Some(Address::parse(url)?),
            None => None,
        };
        let user = arguments.text("user")?;
        arguments.exclude("token", "user")?;
        let token = match (arguments.text("token")?, user) {
            (Some(token), _) => Some(token.to_owned()),
            // --user takes precedence over the environment.
            (None, Some(_)) => None,
            (None, None) => context.variable("HEARTH_TOKEN"),
        };
        let local = match &url {
            Some(_) => None,
            None => Some(DataDirectory::of(arguments, context)?),
        };
        let (address, trust) = match (&url, &local) {
            (Some(address), _) => (address.clone(), http::trust(arguments, context)?),
            (None, Some(directory)) => local_address(directory)?,
            (None, None) => (
                Address::new("localhost", DEFAULT_PORT, false),
                Trust::default(),
            ),
        };
        let relay_token = match arguments.text("relay-token")? {
            Some(token) => Some(token.to_owned()),
            None => context.variable("HEARTH_RELAY_TOKEN"),
        };
        if let Some(token) = token {
            return Ok(Access {
                address,
                trust,
                credential: Credential::Token(Secret::new(token)),
                relay_token: relay_token.map(Secret::new),
                ends: End::Keep,
            });
        }
        match (user, local) {
            (Some(user), _) if address.machine_id().is_some() => {
                let ask = context.input_is_terminal;
                let prompt = format!("Password of {user}: ");
                let password = password::read_secret(context, &prompt, ask)?;
                Ok(Access {
                    address,
                    trust,
                    credential: Credential::Password {
                        user: user.to_owned(),
                        password,
                    },
                    relay_token: relay_token.map(Secret::new),
                    ends: End::Keep,
                })
            }
            (Some(user), _) => log_in(address, trust, user, context),
            (None, Some(directory)) => mint(address, trust, &directory),
            (None, None) => Err(arguments.usage(
                "a server elsewhere wants to know who you are: give --user NAME, or HEARTH_TOKEN",
            )),
        }
    }

    /// Gives back what was made for this session. That a session outlives an
    /// unreachable server is no reason to complain: it expires.
    pub fn end(self) {
        match self.ends {
            End::Keep => {}
            End::Revoke(store, id) => {
                if let Err(error) = store.revoke_token(id) {
                    log::debug!("the token {id} stays until it expires: {error}");
                }
                store.close();
            }
            End::LogOut(token) => {
                let bearer = format!("Bearer {}", token.expose());
                let request = http::agent(self.trust, AUTH).delete(&self.address.auth());
                if let Err(error) = request.header("Authorization", &bearer).call() {
                    log::debug!("the session stays until it expires: {error}");
                }
            }
        }
    }
}

/// Where the server of a data directory listens: as it says itself while it
/// runs, else as its configuration has it.
fn local_address(directory: &DataDirectory) -> Result<(Address, Trust), Failure> {
    let running = RunningServer::find(directory).and_then(|server| {
        let address = *server.addresses.first()?;
        Some((address, server))
    });
    let ((ip, port), certificate) = match running {
        Some((address, server)) => ((Some(address.ip()), address.port()), server.certificate),
        None => {
            let path = directory.config();
            if !path.exists() {
                return Err(Failure::failed(format!(
                    "there is no Hearth in {}: start one there with `hearth serve`, name its directory \
                     with --data-dir, or a server elsewhere with --url",
                    directory.path().display()
                )));
            }
            let config = Settings::load(&path).map_err(Failure::failed)?.current();
            let channel = config.channels.iter().find_map(|channel| match channel {
                Channel::Tcp(channel) => Some((channel.bind, channel.port)),
                _ => None,
            });
            let channel = channel.ok_or_else(|| {
                Failure::failed(format!(
                    "{} has no channel of type tcp to connect to",
                    path.display()
                ))
            })?;
            let identity = config.tls.identity();
            (channel, identity.map(|(path, _)| path.to_owned()))
        }
    };
    let host = match ip {
        Some(ip) if !ip.is_unspecified() => ip.to_string(),
        _ => "127.0.0.1".to_owned(),
    };
    let trust = certificate.as_deref().map(Trust::pinned);
    let address = Address::new(host, port, trust.is_some());
    Ok((address, trust.unwrap_or_default()))
}

/// Makes a token in the database: whoever may write that file may do anything
/// the server could refuse.
fn mint(address: Address, trust: Trust, directory: &DataDirectory) -> Result<Access, Failure> {
    let clock = Clock::system();
    let store = directory.open_store(&clock)?;
    let users = store.users()?;
    let admin = users.iter().find(|user| user.role == UserRole::Admin);
    let Some(admin) = admin else {
        return Err(Failure::failed(
            "there is no admin yet; add one with `hearth user add NAME --role admin`",
        ));
    };
    let token = Secret::random_token();
    let minted = store.add_token(NewToken {
        user_id: admin.id,
        name: SESSION.to_owned(),
        fingerprint: fingerprint(token.expose()),
        role: UserRole::Admin,
        expires_at: Some(clock.now().plus(LOCAL_TOKEN)),
    })?;
    Ok(Access {
        address,
        trust,
        credential: Credential::Token(token),
        relay_token: None,
        ends: End::Revoke(store, minted.id),
    })
}

/// Signs in with a password (POST /auth, contract section 4.2).
fn log_in(
    address: Address,
    trust: Trust,
    user: &str,
    context: &mut Context,
) -> Result<Access, Failure> {
    let ask = context.input_is_terminal;
    let password = password::read_secret(context, &format!("Password of {user}: "), ask)?;
    let body = json!({"username": user, "password": password.expose()}).to_string();
    let response = http::agent(trust.clone(), AUTH)
        .post(&address.auth())
        .header("Content-Type", "application/json")
        .send(body.as_str());
    let response = response.map_err(|error| match error {
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Failure::failed(format!(
                "no Hearth answers at {address}: start it with `hearth serve`"
            ))
        }
        ureq::Error::Io(error) => unreachable(&address, &error),
        error => Failure::failed(format!("{address} cannot be reached: {error}")),
    })?;
    let status = response.status();
    let text = http::text(response)
        .map_err(|error| Failure::failed(format!("{address} cannot be read: {error}")))?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    match (answer["data"]["token"].as_str(), answer["error"].as_str()) {
        (Some(token), _) => Ok(Access {
            trust,
            credential: Credential::Token(Secret::new(token)),
            address,
            relay_token: None,
            ends: End::LogOut(Secret::new(token)),
        }),
        (None, Some(error)) => Err(Failure::failed(error)),
        (None, None) => Err(Failure::failed(format!(
            "{address} answered {status} and no token; is this Hearth?"
        ))),
    }
}
