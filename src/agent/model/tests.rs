//! Tests of all providers.

use super::server_capabilities::ServerCapabilities;
use super::testing::{Ask, assistant, call, tool_result};
use super::*;
use base::error::Code;
use serde_json::{Value, json};

fn named(name: &str) -> Server {
    let choice = ModelChoice {
        provider: name.to_owned(),
        model: "m".to_owned(),
        api_key: None,
        base_url: None,
        context_tokens: None,
        first_token_seconds: None,
    };
    let (trust, clock) = (Trust::default(), Clock::system());
    server_of(&choice, Options::default(), &trust, &clock)
}

fn hello(stream: bool) -> Ask {
    Ask {
        tools: Vec::new(),
        ..Ask::hello(stream)
    }
}

#[test]
fn the_offline_provider_needs_no_settings_and_speaks_in_words() {
    let provider = named("offline").provider;
    let (reply, pieces) = hello(true).of(&*provider);
    let reply = reply.unwrap();
    assert!(pieces.len() > 10);
    assert_eq!(pieces.concat(), reply.text);
    let (reply, pieces) = hello(false).of(&*provider);
    assert!(pieces.is_empty() && !reply.unwrap().text.is_empty());
}

#[test]
fn an_unusable_provider_explains_itself() {
    for (name, expected) in [
        ("openai-compatible", "needs a base_url"),
        ("telepathy", "does not know"),
    ] {
        let (public, _) = hello(false).failure(&*named(name).provider);
        assert!(public.contains(expected), "{public}");
    }
}

#[test]
fn nobody_is_asked_to_wait_for_years() {
    let wait = |wait| Refusal::of(429, Some(wait), false).retry_after;
    assert_eq!(wait(3_600.0), Some(3_600));
    for long in [1e9, 1e30, f64::INFINITY] {
        assert_eq!(wait(long), None, "{long}");
    }
}

#[test]
fn provider_errors_become_errors_of_hearth() {
    let failed = ProviderError::Failed {
        public: "The model server is away".into(),
        detail: "/private".to_owned(),
        cause: Cause::Request,
        refusal: Refusal::of(429, Some(1.5), false),
    };
    for (error, code, status, text) in [
        (
            ProviderError::TimedOut,
            Code::ServerError,
            504,
            "the turn took longer",
        ),
        (
            ProviderError::Cancelled,
            Code::InvalidRequest,
            409,
            "stopped",
        ),
        (failed, Code::ServerError, 429, "The model server is away"),
    ] {
        let error = error.into_error();
        assert_eq!((error.code(), error.status()), (code, status));
        assert!(error.message().contains(text), "{error}");
        assert!(!error.message().contains("/private"));
    }
}

fn body(dialect: &dyn Dialect, ask: &Ask, capabilities: ServerCapabilities) -> Value {
    ask.body(dialect, "openai-compatible", capabilities)
}

#[test]
fn a_model_that_must_answer_in_words_still_sees_its_tools() {
    let none = ServerCapabilities::default();
    let mut responses = none;
    responses.needs_responses = true;
    let dialects: [(&dyn Dialect, _, _); 3] = [
        (&OpenAi, none, json!("none")),
        (&OpenAi, responses, json!("none")),
        (&Anthropic, none, json!({ "type": "none" })),
    ];
    for (dialect, capabilities, choice) in dialects {
        let mut ask = Ask::hello(false);
        let calling = body(dialect, &ask, capabilities);
        assert_eq!(calling.get("tool_choice"), None, "{calling}");
        ask.may_call = false;
        let mut answering = body(dialect, &ask, capabilities);
        assert_eq!(answering["tool_choice"], choice);
        // Nothing else differs: the beginning stays in the server's cache.
        answering.as_object_mut().unwrap().remove("tool_choice");
        assert_eq!(answering, calling);
        let mut unable = capabilities;
        unable.no_tool_choice = true;
        let answering = body(dialect, &ask, unable);
        assert_eq!(answering.get("tool_choice"), None);
        assert_eq!(answering.get("tools"), None);
    }
    let ollama = ServerCapabilities::before(&Profile::of("ollama", "").for_model("m", ""));
    let mut ask = Ask::hello(false);
    assert!(body(&Ollama, &ask, ollama).get("tools").is_some());
    ask.may_call = false;
    assert_eq!(body(&Ollama, &ask, ollama).get("tools"), None);
}

#[test]
fn a_history_with_calls_is_never_sent_to_claude_without_tools() {
    let mut ask = hello(false);
    let calls = vec![call("c1", "light", "{}"), call("c2", "door", "{}")];
    ask.messages.push(assistant("", calls, None));
    ask.messages.push(tool_result("c1", "on", true));
    ask.messages.push(tool_result("c2", "shut", true));
    let sent = body(&Anthropic, &ask, ServerCapabilities::default());
    let tools = sent["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["door", "light"]);
    assert_eq!(sent["tool_choice"], json!({ "type": "none" }));
    let first = body(&Anthropic, &hello(false), ServerCapabilities::default());
    assert_eq!(first.get("tools"), None);
}
