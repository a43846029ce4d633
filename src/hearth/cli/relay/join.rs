//! `hearth relay join`: registers this machine at a relay, writes the channel,
//! and says where clients reach it.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Map, Value};

use super::qr;
use crate::cli::arguments::Arguments;
use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::RunningServer;
use crate::cli::{channels, config, http, password, table};
use base::secret::Secret;
use base::url::Url;
use net::dial::shown;
use net::tls::Trust;
use relay::identity::Identity;
use relay::link::{client_address, relay_address};
use serde_json::json;

/// How long the relay may take to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Shortest token that a relay accepts (protocol section 6), in characters.
const TOKEN_CHARACTERS: usize = 32;
/// The channel's name when none is given.
const NAME: &str = "relay";

/// Links this machine to a relay.
pub fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let url = websocket_url(arguments.required(0));
    let relay = relay_address(&url).map_err(|error| arguments.usage(error))?;
    let encryption = match arguments.text("encryption")? {
        None => None,
        Some(word @ ("required" | "optional")) => Some(word),
        Some(word) => {
            return Err(arguments.usage(format!(
                "--encryption is \"required\" or \"optional\", not {word:?}"
            )));
        }
    };
    let directory = DataDirectory::of(arguments, context)?;
    let settings = config::load(&directory)?;
    let name = arguments.text("name")?.unwrap_or(NAME);
    if channels::relay_key(&settings, name)?.is_some() {
        return Err(Failure::failed(format!(
            "there is a relay channel {name:?} already; give this one another --name, or end that \
             one with `hearth relay leave {name}`"
        )));
    }
    let token = auth_token(arguments, context)?;
    let identity = Identity::load_or_make(directory.path()).map_err(Failure::failed)?;
    let trust = Trust::new(settings.current().tls.ca_file.as_deref());
    register(&relay, &trust, &token, &identity)?;

    let mut channel = Map::from_iter([
        ("url".to_owned(), json!(url)),
        ("auth_token".to_owned(), json!(token.expose())),
    ]);
    if let Some(word) = encryption {
        channel.insert("encryption".to_owned(), json!(word));
    }
    let (key, value) = channels::new_relay(&settings, name, channel)?;
    settings.set(&key, &value.to_string())?;
    let told = RunningServer::notify(&directory);

    let clients = client_address(&relay, &identity.machine_id).text();
    if arguments.has("json") {
        let joined = json!({
            "name": name,
            "relay_url": clients,
            "machine_id": identity.machine_id.as_str(),
        });
        return table::print_json(context, &joined);
    }
    writeln!(context.errors, "Joined as the channel {name}; {told}.")?;
    writeln!(context.output, "machine id  {}", identity.machine_id)?;
    writeln!(context.output, "address     {clients}")?;
    if arguments.has("qr") || context.output_is_terminal {
        write!(context.output, "\n{}\n", qr::code(&clients)?)?;
    }
    writeln!(
        context.errors,
        "\nFrom elsewhere, with the relay's AUTH_TOKEN in HEARTH_RELAY_TOKEN:\n  \
         hearth chat --url '{clients}' --user NAME"
    )?;
    Ok(())
}

/// What a person wrote, as the address of a WebSocket.
fn websocket_url(text: &str) -> String {
    match text.split_once("://") {
        Some(("https", rest)) => format!("wss://{rest}"),
        Some(("http", rest)) => format!("ws://{rest}"),
        Some(_) => text.to_owned(),
        None => format!("wss://{text}"),
    }
}

fn auth_token(arguments: &Arguments, context: &mut Context) -> Result<Secret, Failure> {
    let given = match arguments.has("token-stdin") {
        true => None,
        false => context.variable("AUTH_TOKEN"),
    };
    let token = match given {
        Some(token) => Secret::new(token),
        None if arguments.has("token-stdin") || context.input_is_terminal => {
            let ask = context.input_is_terminal;
            password::read_secret(context, "The relay's AUTH_TOKEN: ", ask)?
        }
        None => {
            return Err(arguments.usage(
                "the relay's token is missing: put it into AUTH_TOKEN, or give --token-stdin",
            ));
        }
    };
    if token.expose().chars().count() < TOKEN_CHARACTERS {
        return Err(Failure::failed(format!(
            "a relay's AUTH_TOKEN has at least {TOKEN_CHARACTERS} characters"
        )));
    }
    Ok(token)
}

/// Tells the relay of this machine: by the contract's request, else by the
/// relay's own (protocol section 3).
fn register(relay: &Url, trust: &Trust, token: &Secret, identity: &Identity) -> Outcome {
    let own = identity.machine_id.as_str();
    let server = &relay.authority;
    let by_key = json!({
        "machine_name": machine_name(),
        "public_key": identity.key.public_key().to_base64(),
    });
    let answer = match post(&relay.http("/ws/register").text(), trust, token, &by_key)? {
        (404 | 405, _) => post(
            &relay.http("/register").text(),
            trust,
            token,
            &json!({"machine_id": own}),
        )?,
        answer => answer,
    };
    match answer {
        (200 | 201, answer) if answer["data"]["machine_id"] == own => Ok(()),
        (200 | 201, _) => Err(Failure::failed(format!(
            "{server} did not take this machine by its own name {own}; is it a relay of Hearth?"
        ))),
        (401, _) => Err(Failure::failed(format!(
            "{server} refuses the token; it must be the AUTH_TOKEN that the relay was started with"
        ))),
        (status, answer) => Err(Failure::failed(match answer["error"].as_str() {
            Some(error) => format!("{server} answered {status}: {}", shown(error)),
            None => format!("{server} answered {status}; is it a relay of Hearth?"),
        })),
    }
}

fn post(url: &str, trust: &Trust, token: &Secret, body: &Value) -> Result<(u16, Value), Failure> {
    let answer = http::agent(trust.clone(), ANSWER)
        .post(url)
        .header("Content-Type", "application/json")
        .header("Authorization", format!("Bearer {}", token.expose()))
        .send(body.to_string())
        .map_err(|error| match error {
            ureq::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
                Failure::failed(format!(
                    "{url} cannot be trusted: {error}; if the certificate is your own, name its \
                     file by `hearth config set tls.ca_file FILE`"
                ))
            }
            ureq::Error::Io(error) => Failure::failed(format!("{url} cannot be reached: {error}")),
            error => Failure::failed(format!("{url} cannot be reached: {error}")),
        })?;
    let status = answer.status().as_u16();
    let text = http::text(answer)
        .map_err(|error| Failure::failed(format!("{url} cannot be read: {error}")))?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

/// What this machine is called in the household.
fn machine_name() -> String {
    let name = rustix::system::uname();
    let name: String = name
        .nodename()
        .to_string_lossy()
        .chars()
        .filter(|letter| !letter.is_control())
        .take(64)
        .collect();
    match name.trim() {
        "" => "hearth".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_that_of_the_relays_page() {
        for (text, url) in [
            ("wss://relay.example/ws", "wss://relay.example/ws"),
            ("https://relay.example", "wss://relay.example"),
            ("http://127.0.0.1:81", "ws://127.0.0.1:81"),
            ("relay.example:81", "wss://relay.example:81"),
        ] {
            assert_eq!(websocket_url(text), url);
            assert_eq!(relay_address(url).unwrap().path, "/ws");
        }
    }
}
