//! `hearth relay join`: registers this machine with a relay, adds the channel, and
//! prints the address for clients.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::arguments::Arguments;
use crate::cli::config::{channel_path, report, set_value};
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::door::{Configuration, Door, settings};
use crate::cli::tls::names::host;
use crate::cli::{http, password, table};
use crate::qr;
use base::secret::Secret;
use base::url::{Url, UrlError};
use net::dial::shown;
use net::http_client::ClientError;
use net::tls::Trust;
use relay::identity::Identity;
use relay::link::{client_address, relay_address};
use relay::server::Token;
use serde_json::json;

/// Time limit of the relay's answer.
const ANSWER: Duration = Duration::from_secs(30);
/// How long to wait for the link.
const LINK: Duration = Duration::from_secs(10);
/// Pause between two looks at it.
const PAUSE: Duration = Duration::from_millis(100);
/// The default name of the channel.
const NAME: &str = "relay";

/// Links this machine to a relay.
pub fn run(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let url = websocket_url(arguments.required(0));
    let relay = relay_address(&url).map_err(|error| arguments.usage(error))?;
    let encryption = arguments.choice("encryption", &["required", "optional"])?;
    let name = arguments.text("name")?.unwrap_or(NAME);
    if named(door, "websocket")?.iter().any(|known| known == name) {
        return Err(CliError::failed(format!(
            "a relay channel {name:?} exists already; choose another --name, or remove that one \
             with `hearth relay leave {name}`"
        )));
    }
    // A number would name the place of another channel.
    let is_taken =
        ["tcp", "webhook"].contains(&name) || named(door, "tcp")?.iter().any(|known| known == name);
    if is_taken || name.parse::<usize>().is_ok() {
        return Err(arguments.usage(format!("--name {name:?} is taken; choose another")));
    }
    let directory = door.directory()?.clone();
    let token = auth_token(arguments, context)?;
    let identity = Identity::load_or_make(directory.path()).map_err(CliError::failed)?;
    let settings = settings(&directory, Configuration::Needed)?;
    settings.check_is_set("tls.ca_file")?;
    let trust = Trust::new(settings.current().tls.ca_file.as_deref());
    register(&relay, &trust, &token, &identity)?;

    let mut channel = json!({ "type": "websocket", "url": url, "auth_token": token.expose() });
    if let Some(word) = encryption {
        channel["encryption"] = json!(word);
    }
    let changed = set_value(door, &channel_path(name), channel)?;

    let clients = client_address(&relay, &identity.machine_id).text();
    if arguments.has("json") {
        let joined = json!({
            "name": name,
            "relay_url": clients,
            "machine_id": identity.machine_id.as_str(),
        });
        return table::print_json(context, &joined);
    }
    let done = format!("Saved as the channel {name}");
    report(door, &done, &changed, arguments, context)?;
    if let Ok(Some(_)) = door.server() {
        context.note(came_of_it(door, name))?;
    }
    writeln!(context.output, "machine id  {}", identity.machine_id)?;
    writeln!(context.output, "address     {clients}")?;
    if arguments.has("qr") || context.output_is_terminal {
        write!(context.output, "\n{}\n", qr::code(&clients)?)?;
    }
    context.note(format_args!(
        "\nFrom elsewhere, with the relay's AUTH_TOKEN in HEARTH_RELAY_TOKEN:\n  \
         hearth chat --url '{clients}' --user NAME"
    ))
}

/// The names of the channels of a type.
pub fn named(door: &mut Door, kind: &str) -> Result<Vec<String>, CliError> {
    let config = door.ask(&json!({ "type": "get_config" }))?;
    let channels = config["channels"].as_array().into_iter().flatten();
    let of_kind = channels.filter(|channel| channel["type"] == kind);
    let names = of_kind.filter_map(|channel| channel["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// What came of the link to the running server, once it is up or has failed.
fn came_of_it(door: &mut Door, name: &str) -> String {
    let deadline = Instant::now() + LINK;
    loop {
        let info = match door.ask(&json!({"type": "server_info"})) {
            Ok(info) => info,
            Err(error) => {
                let why = error.message();
                return format!("Whether the link is up is not known: {why}.");
            }
        };
        let relays = info["relays"].as_array().map_or(&[][..], Vec::as_slice);
        let link = relays.iter().find(|relay| relay["name"] == name);
        let link = link.unwrap_or(&Value::Null);
        let error = link["last_error"].as_str();
        match (link["state"].as_str(), error) {
            (Some("linked"), _) => return "The link is up.".to_owned(),
            (_, Some(error)) => {
                return format!(
                    "The link is not up: {error}. The server tries again; see `hearth relay \
                     status`."
                );
            }
            _ if Instant::now() >= deadline => {
                return "The link is not up yet; see `hearth relay status`.".to_owned();
            }
            _ => thread::sleep(PAUSE),
        }
    }
}

/// The WebSocket URL for what a person wrote.
fn websocket_url(text: &str) -> String {
    match Url::parse(text) {
        Ok(mut url) => {
            if let Some(s) = url.scheme.strip_prefix("http") {
                url.scheme = format!("ws{s}");
            }
            url.text()
        }
        Err(UrlError::Scheme) => format!("wss://{text}"),
        Err(_) => text.to_owned(),
    }
}

fn auth_token(arguments: &Arguments, context: &mut CliContext) -> Result<Secret, CliError> {
    let given = match arguments.has("token-stdin") {
        true => None,
        false => context.variable("AUTH_TOKEN"),
    };
    let token = match given {
        Some(token) => Secret::new(token),
        None if arguments.has("token-stdin") || context.input_is_terminal => {
            password::read_secret(context, "The relay's AUTH_TOKEN: ")?
        }
        None => {
            return Err(arguments
                .usage("the relay's token is missing: set AUTH_TOKEN, or use --token-stdin"));
        }
    };
    Token::new(token.clone())?;
    Ok(token)
}

/// Registers this machine: with the contract's request, else with the relay's own
/// (protocol section 3).
fn register(relay: &Url, trust: &Trust, token: &Secret, identity: &Identity) -> CliResult {
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
        (200 | 201, _) => Err(CliError::failed(format!(
            "{server} did not register this machine as {own}; is it a Hearth relay?"
        ))),
        (401, _) => Err(CliError::failed(format!(
            "{server} rejects the token; it must be the AUTH_TOKEN of the relay"
        ))),
        (status, answer) => Err(CliError::failed(match answer["error"].as_str() {
            Some(error) => format!("{server} answered {status}: {}", shown(error)),
            None => format!("{server} answered {status}; is it a Hearth relay?"),
        })),
    }
}

fn post(url: &str, trust: &Trust, token: &Secret, body: &Value) -> Result<(u16, Value), CliError> {
    let bearer = format!("Bearer {}", token.expose());
    let headers = [("authorization", bearer.as_str())];
    let (status, text) = http::send(
        trust,
        "POST",
        url,
        &headers,
        Some(&body.to_string()),
        ANSWER,
    )
    .map_err(|error| match error {
        ClientError::Untrusted(reason) => CliError::failed(format!(
            "{url} cannot be trusted: {reason}; if the certificate is your own, set its \
                     file with `hearth config set tls.ca_file FILE`"
        )),
        error => CliError::failed(format!("{url} cannot be reached: {error}")),
    })?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}

/// This machine's host name.
fn machine_name() -> String {
    let name = host();
    let name = name.chars().filter(|letter| !letter.is_control());
    let name: String = name.take(64).collect();
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
            ("HTTP://127.0.0.1:81", "ws://127.0.0.1:81"),
            ("relay.example:81", "wss://relay.example:81"),
        ] {
            assert_eq!(websocket_url(text), url);
            assert_eq!(relay_address(url).unwrap().path, "/ws");
        }
    }
}
