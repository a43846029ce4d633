//! Looks for model servers of one's own: on this machine, and at addresses that a person
//! gives. Nobody else is asked.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::endpoint::Endpoint;
use super::probe::{keyless, models_at};
use crate::parallel::run_parallel;
use base::error::{Error, Result};
use base::url::Url;
use config::{OPENAI_COMPATIBLE, Preset};
use net::cancel::Cancel;
use net::tls::Trust;
use protocol::record::ModelServer;

/// The providers that are looked for at their usual ports.
const AT_HOME: [&str; 3] = ["ollama", "llamacpp", "lmstudio"];
const OLLAMA: &str = "ollama";
/// How long servers on this machine, and those elsewhere, may take to list their models.
const HERE: Duration = Duration::from_millis(300);
const ELSEWHERE: Duration = Duration::from_secs(2);
/// Most addresses of one search.
const MOST: usize = 8;
/// Most bytes of what tells Ollama from others.
const VERSION_BYTES: usize = 4096;

/// A server that may be there.
struct Candidate {
    preset: &'static Preset,
    base_url: String,
}

/// The servers that run on this machine at their usual addresses.
pub fn on_this_machine() -> Vec<ModelServer> {
    ask(&usual().collect::<Vec<_>>(), HERE)
}

fn usual() -> impl Iterator<Item = Candidate> {
    presets().filter_map(|preset| {
        let base_url = preset.base_url?.to_owned();
        Some(Candidate { preset, base_url })
    })
}

/// The servers at these addresses: a host, whose usual ports are tried; a host with a port; or
/// a whole URL.
///
/// # Errors
/// `invalid_request` for too many addresses, and for one that is none.
pub fn at(addresses: &[String]) -> Result<Vec<ModelServer>> {
    if addresses.len() > MOST {
        let text = format!("\"addresses\" are {}; at most {MOST}", addresses.len());
        return Err(Error::invalid_request(text));
    }
    let mut candidates = Vec::new();
    for address in addresses {
        let found = candidates_at(address).ok_or_else(|| {
            Error::invalid_request(format!(
                "{address:?} is no address: give one such as nas.lan or 192.168.1.20:11434"
            ))
        })?;
        candidates.extend(found);
    }
    Ok(ask(&candidates, ELSEWHERE))
}

fn presets() -> impl Iterator<Item = &'static Preset> {
    AT_HOME.iter().filter_map(|name| Preset::of(name))
}

/// The port at which a provider usually is.
fn usual_url(preset: &Preset) -> Option<Url> {
    Url::parse(preset.base_url?).ok()
}

fn candidates_at(address: &str) -> Option<Vec<Candidate>> {
    let address = address.trim();
    let url = match address.contains("://") {
        true => Url::parse(address).ok()?,
        false => Url::parse(&format!("http://{address}")).ok()?,
    };
    if !matches!(url.scheme.as_str(), "http" | "https") || url.user.is_some() {
        return None;
    }
    let at = |preset: &'static Preset, path: &str, port: Option<u16>| {
        let mut url = url.clone();
        url.authority.port = port;
        Candidate {
            preset,
            base_url: format!("{}{path}", url.origin()),
        }
    };
    let own = url.authority.port;
    let is_whole = url.path.len() > 1;
    if own.is_none() && !is_whole && !url.is_secure() {
        let usual = presets().filter_map(|preset| {
            let usual = usual_url(preset)?;
            Some(at(preset, &usual.path, usual.authority.port))
        });
        return Some(usual.collect());
    }
    let by_port = presets().find(|preset| {
        let usual = usual_url(preset).and_then(|usual| usual.authority.port);
        preset.name != OLLAMA && own.is_some() && usual == own
    });
    let compatible = by_port.or_else(|| Preset::of(OPENAI_COMPATIBLE))?;
    let path = match is_whole {
        true => url.path.trim_end_matches('/'),
        false => "/v1",
    };
    Some(vec![
        at(Preset::of(OLLAMA)?, "", own),
        at(compatible, path, own),
    ])
}

/// Asks these servers for their models, all at the same time. What does not answer in time is
/// left out, and so is what another one of the same place has answered for.
fn ask(candidates: &[Candidate], limit: Duration) -> Vec<ModelServer> {
    let count = candidates.len();
    let found = run_parallel(count, count, |place| server_of(&candidates[place], limit));
    let mut servers: Vec<ModelServer> = Vec::new();
    for server in found.into_iter().flatten() {
        let place = |url: &str| Url::parse(url).ok().map(|url| url.authority);
        let is_known = |one: &ModelServer| place(&one.base_url) == place(&server.base_url);
        if !servers.iter().any(is_known) {
            servers.push(server);
        }
    }
    servers
}

fn server_of(candidate: &Candidate, limit: Duration) -> Option<ModelServer> {
    let Candidate { preset, base_url } = candidate;
    let is_usual = preset.base_url == Some(base_url);
    let deadline = Instant::now() + limit;
    // Others answer as Ollama does when they are asked for their models.
    if preset.name == OLLAMA && !is_usual && !is_ollama(base_url, deadline) {
        return None;
    }
    let left = deadline.saturating_duration_since(Instant::now());
    Some(ModelServer {
        provider: preset.name,
        title: preset.title,
        base_url: base_url.clone(),
        is_usual,
        models: models_at(preset.name, base_url, left)?,
    })
}

fn is_ollama(base_url: &str, deadline: Instant) -> bool {
    let Some(endpoint) = Endpoint::of_choice(&keyless(OLLAMA, base_url), &Trust::default()) else {
        return false;
    };
    let cancel = Cancel::default();
    let request = endpoint.request("/api/version", None, deadline, &cancel);
    let answer = endpoint.json(&request, VERSION_BYTES);
    answer.is_ok_and(|answer: Value| answer["version"].is_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use net::http_client::test_server::{Act, TestServer, json as answer};

    fn places(address: &str) -> Vec<String> {
        let found = candidates_at(address).unwrap_or_default();
        let place = |one: Candidate| format!("{} {}", one.preset.name, one.base_url);
        found.into_iter().map(place).collect()
    }

    #[test]
    fn an_address_says_where_to_look() {
        for (address, expected) in [
            (
                "nas.lan",
                &[
                    "ollama http://nas.lan:11434",
                    "llamacpp http://nas.lan:8080/v1",
                    "lmstudio http://nas.lan:1234/v1",
                ][..],
            ),
            (
                "192.168.1.20:1234",
                &[
                    "ollama http://192.168.1.20:1234",
                    "lmstudio http://192.168.1.20:1234/v1",
                ],
            ),
            (
                "[fd00::1]:9",
                &[
                    "ollama http://[fd00::1]:9",
                    "openai-compatible http://[fd00::1]:9/v1",
                ],
            ),
            (
                "https://models.lan/api/v1/",
                &[
                    "ollama https://models.lan",
                    "openai-compatible https://models.lan/api/v1",
                ],
            ),
            ("ftp://nas.lan", &[]),
            ("me:pw@nas.lan", &[]),
            ("nas lan", &[]),
        ] {
            assert_eq!(places(address), expected, "{address}");
        }
        let many = vec!["nas.lan".to_owned(); MOST + 1];
        assert!(at(&many).is_err());
        let problem = at(&["nas lan".to_owned()]).unwrap_err();
        assert!(problem.message().contains("nas lan"), "{problem}");
    }

    /// What is looked for on this machine, at ports that are free here.
    #[test]
    fn the_servers_of_this_machine_are_found_beside_each_other() {
        let places = usual().map(|one| format!("{} {}", one.preset.name, one.base_url));
        assert_eq!(
            places.collect::<Vec<_>>(),
            [
                "ollama http://127.0.0.1:11434",
                "llamacpp http://127.0.0.1:8080/v1",
                "lmstudio http://127.0.0.1:1234/v1",
            ]
        );
        let version = answer(200, &json!({ "version": "0.12.0" }));
        let tags = answer(200, &json!({ "models": [{ "name": "qwen3:8b" }] }));
        let list = |name| answer(200, &json!({ "object": "list", "data": [{ "id": name }] }));
        let servers = [
            TestServer::new(vec![version, tags]),
            TestServer::new(vec![list("file.gguf")]),
            TestServer::new(vec![list("gemma")]),
        ];
        let here = usual().zip(&servers).map(|(one, server)| Candidate {
            base_url: one.base_url.replace(
                &usual_url(one.preset).unwrap().authority.to_string(),
                server.address.as_str(),
            ),
            ..one
        });
        let here: Vec<Candidate> = here.collect();
        let found = ask(&here, Duration::from_secs(30));
        let found = found
            .iter()
            .map(|one| (one.provider, one.base_url.as_str(), one.models[0].as_str()));
        let expected = here.iter().zip(["qwen3:8b", "file.gguf", "gemma"]);
        let expected = expected.map(|(one, model)| (one.preset.name, &*one.base_url, model));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    /// Which server it is at a port that says nothing. llama.cpp lists its models for programs
    /// of Ollama, too.
    #[test]
    fn a_server_is_known_by_its_answers() {
        let version = || answer(200, &json!({ "version": "0.12.0" }));
        let tags = || answer(200, &json!({ "models": [{ "name": "qwen3:8b" }] }));
        let list = || {
            answer(
                200,
                &json!({ "object": "list", "data": [{ "id": "file.gguf" }] }),
            )
        };
        let no = || answer(404, &json!({ "error": { "message": "no" } }));
        for (place, scripts, expected) in [
            (0, vec![version(), tags()], Some(("ollama", "qwen3:8b"))),
            (0, vec![no(), tags()], None),
            (1, vec![list()], Some(("openai-compatible", "file.gguf"))),
            (1, vec![no()], None),
            (1, vec![vec![Act::Hang]], None),
        ] {
            let server = TestServer::new(scripts);
            let candidate = &candidates_at(&server.address).unwrap()[place];
            // A busy machine may need longer than a person is made to wait.
            let is_silent = expected.is_none();
            let limit = Duration::from_secs(if is_silent { 1 } else { 30 });
            let found = server_of(candidate, limit);
            let found = found
                .as_ref()
                .map(|one| (one.provider, one.models[0].as_str()));
            assert_eq!(found, expected);
        }
    }
}
