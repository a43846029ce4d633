//! Tests of all providers.

use super::testing::Ask;
use super::*;
use base::error::Code;

fn named(name: &str) -> Box<dyn Provider> {
    let choice = ModelChoice {
        provider: name.to_owned(),
        model: "m".to_owned(),
        api_key: None,
        base_url: None,
    };
    provider_of(&choice, Options::default(), &Trust::default(), None)
}

fn hello(stream: bool) -> Ask {
    Ask {
        tools: Vec::new(),
        ..Ask::hello(stream)
    }
}

#[test]
fn the_offline_provider_needs_no_settings_and_speaks_in_words() {
    let provider = named("offline");
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
        let (public, _) = hello(false).failure(&*named(name));
        assert!(public.contains(expected), "{public}");
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
