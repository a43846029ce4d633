//! Against scripted servers on loopback.

use serde_json::{Value, json};

use super::*;
use crate::model::dialect::Options;
use crate::model::testing::{Ask, assistant, call, tool_result, user};
use crate::model::{from_config, server_of};
use base::clock::Clock;
use config::{Config, ModelChoice};
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
        first_token_seconds: None,
    }
}

/// Each gets the same request.
impl Provider for Servers {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, ProviderError> {
        Servers::complete(self, request, on)
    }
}

fn of_choices(choices: &[ModelChoice]) -> Servers {
    let (trust, clock) = (Trust::default(), Clock::system());
    let servers = choices.iter().enumerate().map(|(place, choice)| {
        let mut server = server_of(choice, Options::default(), &trust, &clock);
        server.model = server.model.filter(|_| place > 0);
        server
    });
    Servers::new(servers.collect())
}

fn of(urls: &[&str]) -> Servers {
    let choices = urls.iter().zip(["a", "b", "c"]);
    let choices: Vec<ModelChoice> = choices.map(|(url, model)| choice(url, model)).collect();
    of_choices(&choices)
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
        (404, "no such thing"),
        (429, "quota exceeded: billing"),
    ] {
        let first = TestServer::new(vec![refused(status, text)]);
        let second = TestServer::new(vec![said("Hi"), said("Ho")]);
        let servers = of(&[&first.url(), &second.url()]);
        let (reply, heard) = asked().of(&servers);
        let reply = reply.unwrap();
        assert_eq!((&*reply.text, heard.concat()), ("Hi", "Hi".to_owned()));
        assert_eq!(reply.model.as_deref(), Some("b"), "who answered is known");
        assert_eq!(second.heard()[0].json()["model"], "b");
        // The first one is in its cooldown.
        assert_eq!(asked().reply(&servers).text, "Ho");
        assert_eq!(first.heard().len(), 1);
        let health = servers.health("a");
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
    let servers = of(&[&third, &first.url(), &second.url()]);
    assert_eq!(asked().reply(&servers).text, "Hi");
    assert_eq!(first.heard().len(), 3);
}

#[test]
fn a_server_that_hangs_is_not_waited_for() {
    let comments = || {
        let mut script = vec![stream_head()];
        for _ in 0..2_000 {
            script.extend([
                Act::Pause(Duration::from_millis(40)),
                chunk(": still here\n\n"),
            ]);
        }
        script
    };
    let after = |events: &[Value]| {
        let mut script = comments();
        let data = events.iter().map(|event| format!("data: {event}\n\n"));
        script.insert(1, chunk(&data.collect::<String>()));
        script
    };
    let delta = |delta: Value| after(&[json!({ "choices": [{ "delta": delta }] })]);
    let block = |block: Value| {
        after(&[
            json!({ "type": "message_start", "message": {} }),
            json!({ "type": "content_block_start", "index": 0, "content_block": block }),
            json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "text_delta", "text": "" } }),
        ])
    };
    let item = |kind: &str| {
        let item = json!({ "type": kind, "content": [] });
        after(&[json!({ "type": "response.output_item.added", "item": item })])
    };
    let chat = "openai-compatible";
    for (provider, stream, script) in [
        (chat, false, vec![Act::Hang]),
        (chat, true, vec![Act::Hang]),
        (chat, true, vec![stream_head(), Act::Hang]),
        (chat, true, comments()),
        (
            chat,
            true,
            delta(json!({ "role": "assistant", "content": "" })),
        ),
        (
            chat,
            true,
            delta(json!({ "role": "assistant", "content": null, "reasoning_content": "" })),
        ),
        (
            chat,
            true,
            delta(json!({ "reasoning_details": [], "reasoning": null })),
        ),
        (
            "anthropic",
            true,
            block(json!({ "type": "text", "text": "" })),
        ),
        (
            "anthropic",
            true,
            block(json!({ "type": "thinking", "thinking": "" })),
        ),
        ("openai", true, item("message")),
        ("openai", true, item("reasoning")),
    ] {
        let scripts = match provider {
            "openai" => vec![refused(400, "only supported in v1/responses"), script],
            _ => vec![script],
        };
        let first = TestServer::new(scripts);
        let second = TestServer::new(vec![said("Hi")]);
        let hurried = ModelChoice {
            provider: provider.to_owned(),
            first_token_seconds: Some(1),
            ..choice(&first.url(), "a")
        };
        let servers = of_choices(&[hurried, choice(&second.url(), "b")]);
        let ask = Ask { stream, ..asked() };
        let (reply, heard) = ask.of(&servers);
        assert_eq!(reply.unwrap().text, "Hi");
        assert_eq!(heard.is_empty(), !stream);
        assert_eq!(
            first.heard()[0].json()["stream"],
            true,
            "silence tells nothing otherwise"
        );
        assert!(servers.health("a")[0].cooldown_left.is_some());
    }
}

#[test]
fn a_server_that_has_begun_is_waited_for() {
    let delta = |name: &str| {
        let delta = json!({ "choices": [{ "delta": { name: "a" } }] });
        chunk(&format!("data: {delta}\n\n"))
    };
    for name in ["content", "reasoning_content"] {
        let slow = vec![
            stream_head(),
            delta(name),
            Act::Pause(Duration::from_millis(1_300)),
            delta("content"),
            chunk("data: [DONE]\n\n"),
        ];
        let first = TestServer::new(vec![slow]);
        let second = TestServer::new(vec![said("Hi")]);
        let hurried = ModelChoice {
            first_token_seconds: Some(1),
            ..choice(&first.url(), "a")
        };
        let servers = of_choices(&[hurried, choice(&second.url(), "b")]);
        assert!(asked().reply(&servers).text.ends_with('a'));
        assert!(second.heard().is_empty());
    }
}

#[test]
fn a_busy_server_is_not_waited_for_where_another_one_answers() {
    let busy = || whole(429, "retry-after: 30\r\n", "{\"error\":\"slow down\"}");
    let loading = || whole(503, "retry-after: 30\r\n", "loading");
    for script in [busy(), loading()] {
        let first = TestServer::new(vec![script, said("Ha")]);
        let second = TestServer::new(vec![said("Hi"), said("Ho")]);
        let servers = of(&[&first.url(), &second.url()]);
        let started = Instant::now();
        assert_eq!(asked().reply(&servers).text, "Hi");
        assert!(started.elapsed() < Duration::from_secs(20));
        let left = servers.health("a")[0].cooldown_left.unwrap();
        assert!(
            left <= Duration::from_secs(30),
            "as long as it asks: {left:?}"
        );
        assert_eq!(asked().reply(&servers).text, "Ho");
        assert_eq!(first.heard().len(), 1);
    }
    // Where there is none, it is, and whoever listens learns how long.
    let short = || whole(429, "retry-after-ms: 2001\r\n", "{\"error\":\"slow down\"}");
    let first = TestServer::new(vec![short(), said("Hi")]);
    let servers = of(&[&first.url()]);
    let mut waits = Vec::new();
    let ask = asked();
    let reply = Servers::complete(&servers, &ask.request(), &mut |heard| {
        if let Heard::Waits(wait) = heard {
            waits.push(wait.as_millis());
        }
    });
    assert_eq!(reply.unwrap().text, "Hi");
    assert_eq!(waits, [2001]);
}

#[test]
fn the_quota_of_a_day_is_reported_at_once() {
    let refused = || {
        answer(
            429,
            &json!([{ "error": { "code": 429, "message": "You exceeded your current quota.",
                "details": [
                    { "violations": [{
                        "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }] },
                    { "retryDelay": "2s" }
                ] } }]),
        )
    };
    let first = TestServer::new(vec![refused()]);
    let (public, _) = asked().failure(&of(&[&first.url()]));
    assert!(public.contains("quota is used up"), "{public}");
    let first = TestServer::new(vec![refused()]);
    let second = TestServer::new(vec![said("Hi")]);
    assert_eq!(
        asked().reply(&of(&[&first.url(), &second.url()])).text,
        "Hi"
    );
}

#[test]
fn what_a_request_does_wrong_does_not_count_against_its_server() {
    let unknown = [
        (404, "The model `nope` does not exist"),
        (404, "No endpoints found for nope."),
        (400, "nope is not a valid model ID"),
        (403, "Your account may not use the model nope"),
    ];
    for (status, text) in unknown {
        let first = TestServer::new(vec![refused(status, text), said("Hi")]);
        let second = TestServer::new(vec![said("Ho")]);
        let servers = of(&[&first.url(), &second.url()]);
        let wrong = Ask {
            model: "nope",
            ..Ask::hello(true)
        };
        assert_eq!(
            wrong.reply(&servers).text,
            "Ho",
            "the next has its own model"
        );
        assert_eq!(servers.health("a")[0].cooldown_left, None, "{text}");
        assert_eq!(asked().reply(&servers).text, "Hi");
    }
}

#[test]
fn a_look_at_the_order_takes_no_trial_away() {
    let servers = of(&[&nobody(), &nobody()]);
    let now = Instant::now();
    let over = now + servers.0[1].breaker().failed(now);
    for _ in 0..3 {
        assert_eq!(servers.order(over).len(), 2);
        assert!(servers.0[1].is_ready(over));
    }
}

#[test]
fn what_another_would_refuse_too_is_not_asked_again() {
    let first = TestServer::new(vec![refused(400, "messages: bad")]);
    let second = TestServer::new(vec![said("Hi")]);
    let servers = of(&[&first.url(), &second.url()]);
    asked().failure(&servers);
    assert!(second.heard().is_empty());
    assert_eq!(servers.health("a")[0].cooldown_left, None);
}

#[test]
fn another_may_have_a_larger_window() {
    let first = TestServer::new(vec![refused(400, "maximum context length is 8")]);
    let second = TestServer::new(vec![said("Hi")]);
    let servers = of(&[&first.url(), &second.url()]);
    assert_eq!(asked().reply(&servers).text, "Hi");
    assert_eq!(servers.health("a")[0].cooldown_left, None);
}

#[test]
fn a_reply_that_was_heard_in_part_is_not_begun_again_and_the_next_one_goes_on() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n";
    let lost = vec![stream_head(), chunk(half), Act::Close];
    let first = TestServer::new(vec![lost, said("No")]);
    let second = TestServer::new(vec![said("Hi")]);
    let servers = of(&[&first.url(), &second.url()]);
    asked().kept(&servers, "Half");
    assert!(second.heard().is_empty());
    assert_eq!(asked().reply(&servers).text, "Hi");
}

#[test]
fn when_nobody_answers_all_are_named_and_asked_again_the_next_time() {
    let (first, second) = (nobody(), nobody());
    let servers = of(&[&first, &second]);
    let public = asked().failure(&servers).0;
    assert_eq!(public.matches("cannot be reached").count(), 2, "{public}");
    let public = asked().failure(&servers).0;
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
    let servers = of_choices(&[choice(&first, "a"), other]);
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
    assert_eq!(ask.reply(&servers).text, "Hi");
    let body: Value = second.heard()[0].json();
    assert_eq!(body["model"], "claude");
    let text = body.to_string();
    assert!(
        !text.contains("reasoning_content") && !text.contains("signature"),
        "{text}"
    );
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
    let config = Config {
        provider: "openai-compatible".to_owned(),
        model: "a".to_owned(),
        base_url: Some(nobody()),
        context_tokens: Some(100_000),
        fallback: vec![other],
        ..Config::default()
    };
    let provider = from_config(&config, &Clock::system());
    asked().reply(&provider);
    assert_eq!(second.heard()[0].json()["options"]["num_ctx"], 4_096);
}
