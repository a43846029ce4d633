//! Against a scripted server on loopback.

use serde_json::json;

use super::*;
use base::language::Words;
use base::secret::Secret;
use base::testing::rows;
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
        context_tokens: None,
        first_token_seconds: None,
    };
    probe(&choice, &Trust::default(), LIMIT).finding
}

/// An answer of the table below: an error, or a list of models in one of two forms.
fn scripted(text: &str) -> Vec<Act> {
    let (status, body) = text.split_once(' ').unwrap_or((text, ""));
    let names = body.split(' ').skip(1);
    let body = match body.split(' ').next() {
        Some("LIST") => {
            let data: Vec<Value> = names.map(|name| json!({"id": name})).collect();
            json!({"object": "list", "data": data})
        }
        Some("TAGS") => json!({"models": [{"name": "qwen3:latest"}, {"name": "llama3:8b"}]}),
        Some("") => json!({"error": {"message": "no"}}),
        _ => body.parse().unwrap(),
    };
    answer(status.parse().unwrap(), &body)
}

#[test]
fn each_finding_has_its_cause() {
    let table = r#"
        openai-compatible | b        | - | 200 LIST a b               | Good { has_key: false }
        gemini            | gemini-3 | k | 200 LIST models/gemini-3   | Good { has_key: true }
        openai            | gpt-x    | k | 200 LIST a gpt-5           | NoModel { others: ["gpt-5", "a"], is_served: false }
        llamacpp          | m        | - | 200 LIST file.gguf         | NoModel { others: ["file.gguf"], is_served: true }
        ollama            | qwen3    | - | 200 TAGS                   | Good { has_key: false }
        ollama            | qwen3:8b | - | 200 TAGS                   | NoModel { others: ["qwen3:latest", "llama3:8b"], is_served: false }
        openai            | m        | k | 401                        | BadKey("no")
        openai            | m        | - | 401                        | NoKey
        gemini            | m        | K | 400 {"error":{"message":"API key not valid."}} | BadKey("API key not valid.")
        openrouter        | m        | k | 401                        | BadKey("no")
        openai-compatible | m        | - | 404                        | NoList
        anthropic         | claude   | k | 200 LIST claude-1; 200 {}  | Good { has_key: true }
        anthropic         | claude   | k | 200 LIST claude-1; 404     | NoModel { others: ["claude-1"], is_served: false }
    "#;
    for [provider, model, key, scripts, expected] in rows(table) {
        let key = Some(key).filter(|key| *key != "-");
        let scripts = scripts.split("; ").map(scripted).collect();
        let found = find(provider, model, key, scripts);
        assert_eq!(format!("{found:?}"), expected, "{provider} {model}");
    }
    let error = |status| answer(status, &json!({"error": {"message": "no"}}));
    let html = || whole(200, "content-type: text/html\r\n", "<html>");
    for (scripts, expected) in [
        (vec![html()], "does not speak this API"),
        (
            vec![error(500)],
            "failed (500) when asked for its models: no",
        ),
        (vec![whole(404, "", "Not Found")], "usually ends in /v1"),
        (
            vec![whole(503, "", "")],
            "is overloaded or still loading the model (503)",
        ),
    ] {
        match find("openai-compatible", "m", None, scripts) {
            Finding::Unavailable(says) => {
                assert!(says.to_string().contains(expected), "{says}");
            }
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
        context_tokens: None,
        first_token_seconds: None,
    };
    let probe = probe(&choice, &Trust::default(), LIMIT);
    let away = model_error("not_running", &[]);
    assert_eq!(probe.finding, Finding::Unavailable(away));
    let said = probe.said();
    assert_eq!(
        said.to_string(),
        format!("Ollama ({address}) cannot be reached; check that it is running")
    );
    assert_eq!(
        said.in_words(Words::of("de")),
        format!("Ollama ({address}) ist nicht erreichbar; prüfe, ob es läuft")
    );
}

#[test]
fn without_key_or_address_no_request_is_sent() {
    let choice = |provider: &str| ModelChoice {
        provider: provider.to_owned(),
        model: "m".to_owned(),
        api_key: None,
        base_url: None,
        context_tokens: None,
        first_token_seconds: None,
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
