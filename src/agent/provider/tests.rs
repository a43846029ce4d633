//! What holds for all providers.

use std::time::{Duration, Instant};

use super::*;
use crate::model::ChatMessage;
use base::error::Code;
use net::cancel::Cancel;

fn named(name: &str) -> Box<dyn Provider> {
    let choice = ModelChoice {
        provider: name.to_owned(),
        model: "m".to_owned(),
        api_key: None,
        base_url: None,
    };
    provider_of(&choice, Options::default(), &Trust::default(), None)
}

fn ask(provider: &dyn Provider, text: &str, stream: bool) -> (ModelReply, Vec<String>) {
    let mut pieces = Vec::new();
    let messages = [ChatMessage::User {
        text: text.to_owned(),
    }];
    let request = ModelRequest {
        model: "m",
        system: "",
        messages: &messages,
        tools: &[],
        temperature: None,
        max_tokens: None,
        stream,
        deadline: Instant::now() + Duration::from_secs(5),
        cancel: &Cancel::default(),
    };
    let reply = provider
        .complete(&request, &mut |piece| pieces.push(piece.to_owned()))
        .unwrap();
    (reply, pieces)
}

#[test]
fn the_offline_provider_needs_no_settings_and_speaks_in_words() {
    let provider = named("offline");
    let (reply, pieces) = ask(&*provider, "hello", true);
    assert!(pieces.len() > 10);
    assert_eq!(pieces.concat(), reply.text);
    let (reply, pieces) = ask(&*provider, "hello", false);
    assert!(pieces.is_empty() && !reply.text.is_empty());
}

#[test]
fn an_unusable_provider_explains_itself() {
    for (name, expected) in [
        ("openai-compatible", "needs a base_url"),
        ("telepathy", "does not know"),
    ] {
        let provider = named(name);
        let request = ModelRequest {
            model: "m",
            system: "",
            messages: &[],
            tools: &[],
            temperature: None,
            max_tokens: None,
            stream: false,
            deadline: Instant::now() + Duration::from_secs(5),
            cancel: &Cancel::default(),
        };
        match provider.complete(&request, &mut |_| {}) {
            Err(ProviderError::Failed { public, .. }) => {
                assert!(public.contains(expected), "{public}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn provider_errors_become_errors_of_hearth() {
    let failed = ProviderError::Failed {
        public: "The model server is away".to_owned(),
        detail: "/private".to_owned(),
        cause: Cause::Request,
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
        (failed, Code::ServerError, 500, "The model server is away"),
    ] {
        let error = error.into_error();
        assert_eq!((error.code(), error.status()), (code, status));
        assert!(error.message().contains(text), "{error}");
        assert!(!error.message().contains("/private"));
    }
}
