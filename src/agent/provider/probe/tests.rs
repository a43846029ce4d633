//! Against a scripted server on loopback.

use serde_json::json;

use super::*;
use base::secret::Secret;
use net::http_client::test_server::{Act, TestServer, json as answer, whole};

const LIMIT: Duration = Duration::from_secs(5);

fn find(provider: &str, model: &str, key: Option<&str>, scripts: Vec<Vec<Act>>) -> Finding {
    let server = TestServer::new(scripts);
    let path = match provider {
        "ollama" | "anthropic" => "",
        _ => "/v1",
    };
    let choice = ModelChoice {
        provider: provider.to_owned(),
        model: model.to_owned(),
        api_key: key.map(Secret::new),
        base_url: Some(format!("http://{}{path}", server.address)),
    };
    probe(&choice, &Trust::default(), LIMIT).finding
}

#[test]
fn each_finding_has_its_cause() {
    let list = |names: &[&str]| {
        let data: Vec<Value> = names.iter().map(|name| json!({"id": name})).collect();
        answer(200, &json!({"object": "list", "data": data}))
    };
    let tags = || {
        answer(
            200,
            &json!({"models": [{"name": "qwen3:latest"}, {"name": "llama3:8b"}]}),
        )
    };
    let error = |status| answer(status, &json!({"error": {"message": "no"}}));
    let missing = |others: &[&str], is_served| Finding::NoModel {
        others: others.iter().map(|name| (*name).to_owned()).collect(),
        is_served,
    };
    let good = |has_key| Finding::Good { has_key };
    let bad_key = || Finding::BadKey("no".to_owned());
    for (provider, model, key, scripts, expected) in [
        (
            "openai-compatible",
            "b",
            None,
            vec![list(&["a", "b"])],
            good(false),
        ),
        (
            "gemini",
            "gemini-3",
            Some("k"),
            vec![list(&["models/gemini-3"])],
            good(true),
        ),
        (
            "openai",
            "gpt-x",
            Some("k"),
            vec![list(&["a", "gpt-5"])],
            missing(&["gpt-5", "a"], false),
        ),
        (
            "llamacpp",
            "m",
            None,
            vec![list(&["file.gguf"])],
            missing(&["file.gguf"], true),
        ),
        ("ollama", "qwen3", None, vec![tags()], good(false)),
        (
            "ollama",
            "qwen3:8b",
            None,
            vec![tags()],
            missing(&["qwen3:latest", "llama3:8b"], false),
        ),
        ("openai", "m", Some("k"), vec![error(401)], bad_key()),
        ("openai", "m", None, vec![error(401)], Finding::NoKey),
        ("openrouter", "m", Some("k"), vec![error(401)], bad_key()),
        (
            "openai-compatible",
            "m",
            None,
            vec![error(404)],
            Finding::NoList,
        ),
        (
            "anthropic",
            "claude",
            Some("k"),
            vec![list(&["claude-1"]), answer(200, &json!({}))],
            good(true),
        ),
        (
            "anthropic",
            "claude",
            Some("k"),
            vec![list(&["claude-1"]), error(404)],
            missing(&["claude-1"], false),
        ),
    ] {
        let found = find(provider, model, key, scripts);
        assert_eq!(found, expected, "{provider} {model}");
    }
    let html = || whole(200, "content-type: text/html\r\n", "<html>");
    for (scripts, expected) in [
        (vec![html()], "does not speak this API"),
        (vec![error(500)], "answered 500"),
        (vec![whole(404, "", "Not Found")], "usually ends in /v1"),
    ] {
        match find("openai-compatible", "m", None, scripts) {
            Finding::Unavailable(text) => assert!(text.contains(expected), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unreachable_server_is_named_with_its_address() {
    let address = "127.0.0.1:1";
    let choice = ModelChoice {
        provider: "ollama".to_owned(),
        model: "m".to_owned(),
        api_key: None,
        base_url: Some(format!("http://{address}")),
    };
    let probe = probe(&choice, &Trust::default(), LIMIT);
    assert_eq!(probe.subject, format!("Ollama ({address})"));
    let away = "cannot be reached: is it running?".to_owned();
    assert_eq!(probe.finding, Finding::Unavailable(away));
}

#[test]
fn without_key_or_address_no_request_is_sent() {
    let choice = |provider: &str| ModelChoice {
        provider: provider.to_owned(),
        model: "m".to_owned(),
        api_key: None,
        base_url: None,
    };
    assert_eq!(
        probe(&choice("openai"), &Trust::default(), LIMIT).finding,
        Finding::NoKey
    );
    assert_eq!(
        probe(&choice("offline"), &Trust::default(), LIMIT).finding,
        Finding::Offline
    );
    assert_eq!(
        probe(&choice("openai-compatible"), &Trust::default(), LIMIT).finding,
        Finding::NoAddress
    );
}
