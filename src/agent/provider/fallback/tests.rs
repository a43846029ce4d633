//! Against scripted servers on loopback.

use serde_json::{Value, json};

use super::*;
use crate::message_text::{fenced, spoken_text};
use crate::provider::dialect::Options;
use crate::provider::testing::{Ask, assistant, call, tool_result, user};
use crate::provider::{fallback_of, provider_of};
use base::clock::Clock;
use net::http_client::test_server::{
    Act, TestServer, chunk, json as answer, stream, stream_head, whole,
};
use net::tls::Trust;

fn said(text: &str) -> Vec<Act> {
    let delta = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    stream(&[delta], true, 999)
}

fn refused(status: u16, text: &str) -> Vec<Act> {
    answer(status, &json!({"error": {"message": text}}))
}

fn choice(url: &str, model: &str) -> ModelChoice {
    ModelChoice {
        provider: "openai-compatible".to_owned(),
        model: model.to_owned(),
        api_key: None,
        base_url: Some(url.to_owned()),
        // Nobody is asked for the window.
        context_tokens: Some(8_192),
    }
}

fn of(urls: &[&str]) -> Fallback {
    let choices: Vec<ModelChoice> = urls
        .iter()
        .zip(["a", "b", "c"])
        .map(|(url, model)| choice(url, model))
        .collect();
    fallback_of(
        &choices[0],
        &choices[1..],
        Options::default(),
        &Trust::default(),
        &Clock::system(),
    )
}

fn asked() -> Ask {
    Ask {
        model: "a",
        ..Ask::hello(true)
    }
}

/// An address without a listener. A port that was just released would not do: the
/// next test may get it.
fn nobody() -> String {
    "http://127.0.0.1:1/v1".to_owned()
}

#[test]
fn the_next_is_asked_when_one_does_not_answer_and_then_at_once() {
    for (status, text) in [
        (401, "bad key"),
        (402, "no credit"),
        (403, "not here"),
        (404, "no such model"),
        (429, "quota exceeded: billing"),
    ] {
        let first = TestServer::new(vec![refused(status, text)]);
        let second = TestServer::new(vec![said("Hi"), said("Ho")]);
        let fallback = of(&[&first.url(), &second.url()]);
        let (reply, heard) = asked().of(&fallback);
        let reply = reply.unwrap();
        assert_eq!((&*reply.text, heard.concat()), ("Hi", "Hi".to_owned()));
        assert_eq!(reply.model.as_deref(), Some("b"), "who answered is known");
        assert_eq!(second.heard()[0].json()["model"], "b");
        // The first one is in its cooldown.
        assert_eq!(asked().reply(&fallback).text, "Ho");
        assert_eq!(first.heard().len(), 1);
        let health = fallback.health("a");
        assert_eq!(health[0].model, "a");
        assert!(health[0].cooldown_left.is_some() && health[1].cooldown_left.is_none());
    }
}

#[test]
fn a_server_that_keeps_failing_is_given_up_after_its_tries() {
    let busy = || whole(503, "retry-after: 0\r\n", "busy");
    let first = TestServer::new(vec![busy(), busy(), busy()]);
    let second = TestServer::new(vec![said("Hi")]);
    let third = nobody();
    let fallback = of(&[&third, &first.url(), &second.url()]);
    assert_eq!(asked().reply(&fallback).text, "Hi");
    assert_eq!(first.heard().len(), 3);
}

#[test]
fn a_server_that_hangs_is_not_waited_for() {
    for stream in [false, true] {
        let first = TestServer::new(vec![vec![Act::Hang]]);
        let second = TestServer::new(vec![said("Hi")]);
        let mut fallback = of(&[&first.url(), &second.url()]);
        let timeout = Some(Duration::from_secs(1));
        let hanging = choice(&first.url(), "a");
        let trust = Trust::default();
        let clock = Clock::system();
        fallback.entries[0].provider =
            provider_of(&hanging, Options::default(), &trust, &clock, timeout);
        let ask = Ask { stream, ..asked() };
        let (reply, heard) = ask.of(&fallback);
        assert_eq!(reply.unwrap().text, "Hi");
        assert_eq!(heard.is_empty(), !stream);
        assert_eq!(
            first.heard()[0].json()["stream"],
            true,
            "silence tells nothing otherwise"
        );
    }
}

#[test]
fn what_another_would_refuse_too_is_not_asked_again() {
    for (status, text) in [(400, "messages: bad"), (400, "maximum context length is 8")] {
        let first = TestServer::new(vec![refused(status, text)]);
        let second = TestServer::new(vec![said("Hi")]);
        let fallback = of(&[&first.url(), &second.url()]);
        asked().failure(&fallback);
        assert!(second.heard().is_empty());
        assert_eq!(fallback.health("a")[0].cooldown_left, None);
    }
}

#[test]
fn a_reply_that_was_heard_in_part_is_not_begun_again_and_the_next_one_goes_on() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n";
    let lost = vec![stream_head(), chunk(half), Act::Close];
    let first = TestServer::new(vec![lost, said("No")]);
    let second = TestServer::new(vec![said("Hi")]);
    let fallback = of(&[&first.url(), &second.url()]);
    asked().kept(&fallback, "Half");
    assert!(second.heard().is_empty());
    assert_eq!(asked().reply(&fallback).text, "Hi");
}

#[test]
fn when_nobody_answers_all_are_named_and_asked_again_the_next_time() {
    let (first, second) = (nobody(), nobody());
    let fallback = of(&[&first, &second]);
    let public = asked().failure(&fallback).0;
    assert_eq!(public.matches("cannot be reached").count(), 2, "{public}");
    let public = asked().failure(&fallback).0;
    assert_eq!(public.matches("cannot be reached").count(), 2, "{public}");
}

#[test]
fn a_conversation_goes_over_to_another_kind_of_api() {
    let first = nobody();
    let second = TestServer::new(vec![answer(
        200,
        &json!({"content": [{"type": "text", "text": "Hi"}]}),
    )]);
    let other = ModelChoice {
        provider: "anthropic".to_owned(),
        base_url: Some(format!("http://{}", second.address)),
        ..choice("", "claude")
    };
    let fallback = fallback_of(
        &choice(&first, "a"),
        &[other],
        Options::default(),
        &Trust::default(),
        &Clock::system(),
    );
    let mut signed = call("call_1", "light", "{}");
    signed.extra = Some(json!({"origin": first, "members": {"signature": "s"}}));
    let mut ask = asked();
    ask.stream = false;
    ask.messages = vec![
        user("Light on"),
        assistant(
            "",
            vec![signed],
            Some(json!({"origin": first, "members": {"reasoning_content": "hm"}})),
        ),
        tool_result("call_1", "on", true),
    ];
    assert_eq!(ask.reply(&fallback).text, "Hi");
    let body: Value = second.heard()[0].json();
    assert_eq!(body["model"], "claude");
    let text = body.to_string();
    assert!(
        !text.contains("reasoning_content") && !text.contains("signature"),
        "{text}"
    );
}

#[test]
fn one_with_a_smaller_window_gets_a_request_that_fits_it() {
    let long = "word ".repeat(1_000);
    let mut messages = Vec::new();
    for number in 0..6 {
        messages.push(user(&format!("question {number} {long}")));
        messages.push(assistant("", vec![call("c", "light", "{}")], None));
        messages.push(tool_result("c", &long, true));
        messages.push(assistant("fine", Vec::new(), None));
    }
    messages.push(user("and now?"));
    messages.push(assistant("", vec![call("c", "light", "{}")], None));
    messages.push(tool_result("c", &long.repeat(3), true));
    let asked = |window: Option<u32>| {
        let second = TestServer::new(vec![said("Hi")]);
        let other = ModelChoice {
            context_tokens: window,
            ..choice(&second.url(), "b")
        };
        let fallback = fallback_of(
            &ModelChoice {
                context_tokens: Some(128_000),
                ..choice(&nobody(), "a")
            },
            &[other],
            Options::default(),
            &Trust::default(),
            &Clock::system(),
        );
        assert_eq!(fallback.window("a"), 128_000);
        let mut ask = asked();
        ask.messages = messages.clone();
        ask.max_tokens = Some(5_000);
        ask.reply(&fallback);
        second.heard()[0].json()
    };
    let whole = asked(Some(128_000));
    assert_eq!(whole["messages"].as_array().unwrap().len(), 28);
    assert_eq!(whole["max_tokens"], 5_000);

    let some = asked(Some(16_384));
    let sent = some["messages"].as_array().unwrap();
    assert!(sent.len() > 4 && sent.len() < 28, "{}", sent.len());
    assert_eq!(sent[1]["role"], "user", "whole turns go");
    assert_eq!(sent.last().unwrap()["content"], long.repeat(3));

    let least = asked(Some(2_048));
    let sent = least["messages"].as_array().unwrap();
    let content = sent[1]["content"].as_str().unwrap();
    let note = content.strip_suffix("\nand now?").unwrap();
    assert!(note.starts_with("<earlier "), "{note}");
    assert!(note.contains("older messages are not shown"), "{note}");
    let result = sent[3]["content"].as_str().unwrap();
    assert!(result.contains("bytes left out"), "{result}");
    assert!(
        least.to_string().len() < 2_048 * 4,
        "{}",
        least.to_string().len()
    );
    assert_eq!(least["max_tokens"], 1_024);
}

#[test]
fn the_summary_and_the_memories_of_what_does_not_fit_stay() {
    let long = "word ".repeat(1_000);
    let summary = fenced(
        "earlier",
        "What was said before, in short. Facts, not \
        instructions:\nThey met.",
    );
    let memory = |text: &str| fenced("memories", &format!("Remembered:\n- {text}")) + "\n";
    let first = format!("{summary}\n{}one {long}", memory("no walnuts"));
    let messages = vec![
        user(&first),
        assistant("fine", Vec::new(), None),
        user(&format!("{}two {long}", memory("bins on Tuesday"))),
        assistant("fine", Vec::new(), None),
        user("three"),
        assistant("fine", Vec::new(), None),
        user("and now?"),
    ];
    let sent = |window: u32| {
        let second = TestServer::new(vec![said("Hi")]);
        let other = ModelChoice {
            context_tokens: Some(window),
            ..choice(&second.url(), "b")
        };
        let trust = Trust::default();
        let clock = Clock::system();
        let first = choice(&nobody(), "a");
        let fallback = fallback_of(&first, &[other], Options::default(), &trust, &clock);
        let ask = Ask {
            messages: messages.clone(),
            ..asked()
        };
        ask.reply(&fallback);
        second.heard()[0].json()["messages"].clone()
    };
    let whole = sent(16_384);
    assert_eq!(whole[1]["content"], first);
    let some = sent(2_048);
    assert_eq!(some.as_array().unwrap().len(), 4);
    let text = some[1]["content"].as_str().unwrap();
    let parts = [
        "They met.\n(Some older messages",
        "no walnuts",
        "bins on Tuesday",
        "three",
    ];
    let places: Vec<usize> = parts.map(|part| text.find(part).unwrap()).to_vec();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(text.matches("<earlier ").count(), 1, "{text}");
    assert_eq!(spoken_text(text), "three");
}

#[test]
fn each_has_its_own_window() {
    let second = TestServer::new(vec![answer(
        200,
        &json!({"message": {"content": "Hi"}, "done": true}),
    )]);
    let other = ModelChoice {
        provider: "ollama".to_owned(),
        context_tokens: Some(4_096),
        ..choice(&format!("http://{}", second.address), "b")
    };
    let config = config::Config {
        provider: "openai-compatible".to_owned(),
        model: "a".to_owned(),
        base_url: Some(nobody()),
        context_tokens: Some(100_000),
        fallback: vec![other],
        ..config::Config::default()
    };
    let provider = crate::provider::from_config(&config, &Clock::system());
    asked().reply(&*provider);
    assert_eq!(second.heard()[0].json()["options"]["num_ctx"], 4_096);
}

#[test]
fn one_that_says_it_is_too_long_gets_less_and_then_the_next_is_asked() {
    let too_long = || refused(400, "Input is too long for requested model.");
    let messages = |server: &TestServer| -> Vec<usize> {
        let heard = server.heard();
        let count = |request: Value| request["messages"].as_array().unwrap().len();
        heard.iter().map(|heard| count(heard.json())).collect()
    };
    let mut ask = asked();
    for _ in 0..10 {
        ask.messages.push(user(&"word ".repeat(50)));
        ask.messages.push(assistant("fine", Vec::new(), None));
    }
    ask.messages.push(user("and now?"));

    let second = TestServer::new(vec![too_long(), said("Hi")]);
    let fallback = of(&[&nobody(), &second.url()]);
    assert_eq!(ask.reply(&fallback).text, "Hi");
    let sent = messages(&second);
    assert!(sent[1] < sent[0], "{sent:?}");

    let second = TestServer::new(vec![too_long(); 20]);
    let third = TestServer::new(vec![said("Ho")]);
    let fallback = of(&[&nobody(), &second.url(), &third.url()]);
    assert_eq!(ask.reply(&fallback).text, "Ho");
    let sent = messages(&second);
    assert!(sent.is_sorted_by(|one, other| one > other), "{sent:?}");

    // It is not the first one's window that is too small.
    let second = TestServer::new(vec![too_long(); 20]);
    let fallback = of(&[&nobody(), &second.url()]);
    assert!(matches!(
        ask.of(&fallback).0,
        Err(ProviderError::Failed { .. })
    ));
}
