//! What makes requests cheaper: marks for caches, and little thought where little is needed.

use super::*;
use base::ids::ConversationId;
use store::Purpose;

/// The body that a service gets for a model and a purpose.
fn sent(service: &str, model: &'static str, purpose: Purpose, options: Options) -> Value {
    let server = TestServer::new(vec![answer(200, &said("Hi"))]);
    let provider = provider_with(&server, options, service);
    let ask = Ask {
        model,
        purpose,
        conversation: Some(ConversationId::from(7)),
        ..hello()
    };
    ask.reply(&provider);
    server.heard()[0].json()
}

#[test]
fn a_cache_is_told_what_comes_again_and_nothing_of_side_questions() {
    let key = ConversationId::from(7).to_string();
    let control = json!({"type": "ephemeral"});
    for (service, model, has_key, has_control) in [
        ("openai", "gpt-4.1", true, false),
        ("openrouter", "anthropic/claude-sonnet-5", false, true),
        ("openrouter", "openai/gpt-5", false, false),
        ("gemini", "gemini-3", false, false),
        ("deepseek", "deepseek-v4-pro", false, false),
        ("openai-compatible", "m", false, false),
    ] {
        let reply = sent(service, model, Purpose::Reply, Options::default());
        assert_eq!(reply.get("prompt_cache_key").is_some(), has_key, "{reply}");
        assert_eq!(reply.get("cache_control").is_some(), has_control, "{reply}");
        assert!(!has_key || reply["prompt_cache_key"] == *key, "{reply}");
        assert!(!has_control || reply["cache_control"] == control, "{reply}");
        for purpose in [Purpose::Title, Purpose::Summary] {
            let aside = sent(service, model, purpose, Options::default());
            assert!(!aside.to_string().contains("cache"), "{aside}");
        }
    }
}

#[test]
fn a_side_question_is_asked_at_the_lowest_effort() {
    let configured = |effort| Options {
        reasoning_effort: effort,
        ..Options::default()
    };
    for (service, model, effort, expected) in [
        ("openai-compatible", "m", Some("high"), json!("low")),
        ("openai-compatible", "m", Some("none"), json!("none")),
        ("openai-compatible", "m", None, Value::Null),
        ("openai", "gpt-4.1", Some("high"), Value::Null),
        ("deepseek", "deepseek-v4-pro", None, json!("low")),
    ] {
        let aside = sent(service, model, Purpose::Title, configured(effort));
        assert_eq!(aside["reasoning_effort"], expected, "{service} {model}");
    }
}

#[test]
fn a_server_that_knows_no_mark_gets_none_again() {
    for (service, model, member) in [
        ("openai", "gpt-4.1", "prompt_cache_key"),
        ("openrouter", "anthropic/claude-x", "cache_control"),
    ] {
        let refused = json!({"error": {"message": format!("Unknown parameter: '{member}'.")}});
        let server = TestServer::new(vec![
            answer(400, &refused),
            answer(200, &said("Hi")),
            answer(200, &said("Hi")),
        ]);
        let provider = provider_with(&server, Options::default(), service);
        let ask = Ask {
            model,
            conversation: Some(ConversationId::from(7)),
            ..hello()
        };
        ask.reply(&provider);
        ask.reply(&provider);
        let heard = server.heard();
        let has = |place: usize| heard[place].json().get(member).is_some();
        assert_eq!([0, 1, 2].map(has), [true, false, false], "{member}");
    }
}
