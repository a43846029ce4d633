//! Clients that repeat a request as real libraries do, before an upstream that fails at each
//! step: an effect happens once, and the status says whether to try again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{COMPLETIONS, bearer, conversations, home, home_with};
use support::home::Home;
use support::http::{Answer, post};
use support::model::{Act, Model};

/// How often libraries send a request, the first time included.
const TRIES: usize = 3;

fn water() -> Act {
    Act::call(
        "lists",
        json!({ "action": "add", "list": "garden", "items": ["water plants"] }),
    )
}

fn count_of(messages: &Value, role: &str) -> usize {
    let messages = messages.as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == role)
        .count()
}

fn items(home: &Home) -> usize {
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "get_list", "list": "garden" }));
    let list = user.response();
    list["data"]["items"].as_array().map_or(0, Vec::len)
}

/// What an upstream does that fails at one step, and answers once it is well.
struct Failing {
    model: Model,
    is_well: Arc<AtomicUsize>,
}

impl Failing {
    /// Fails so before (`0`) or after (`1`) the tool has run.
    fn at(step: usize, act: Act) -> Failing {
        let is_well = Arc::new(AtomicUsize::new(0));
        let well = Arc::clone(&is_well);
        let model = Model::start(move |request, _| {
            let done = count_of(&request["messages"], "tool");
            match done {
                done if done == step && well.load(Ordering::SeqCst) == 0 => act.clone(),
                0 => water(),
                _ => Act::say("Done."),
            }
        });
        Failing { model, is_well }
    }

    fn recover(&self) {
        self.is_well.store(1, Ordering::SeqCst);
    }
}

fn send(home: &Home, path: &str, body: &Value) -> Answer {
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", &*authorization), ("x-request-id", "mine")];
    post(home.address(), path, &headers, body)
}

fn question(path: &str, stream: bool) -> Value {
    match path {
        "/v1/responses" => json!({ "model": "hearth", "input": "water", "stream": stream }),
        _ => json!({ "model": "hearth", "stream": stream,
            "messages": [{ "role": "user", "content": "water" }] }),
    }
}

/// Sends it as libraries do: again, unless the answer says that this is of no use.
fn repeat(home: &Home, path: &str, body: &Value) -> Vec<Answer> {
    let mut answers = Vec::new();
    while answers.len() < TRIES {
        answers.push(send(home, path, body));
        let last = answers.last().unwrap();
        let again = last.status == 408 || last.status == 409 || last.status == 429;
        if !(again || last.status >= 500) {
            break;
        }
    }
    answers
}

#[test]
fn an_upstream_s_status_says_whether_to_try_again() {
    // What the upstream says, and the status before and after a tool has had its effect.
    for (status, message, before) in [
        (400, "no", 400),
        (404, "no such model", 404),
        (413, "no", 413),
        (422, "no", 422),
        (401, "no", 424),
        (402, "no", 424),
        (403, "no", 424),
        (429, "try again in 90s", 429),
        (503, "no", 503),
    ] {
        for step in [0, 1] {
            let headers = if status == 503 {
                "Retry-After: 90\r\n"
            } else {
                ""
            };
            let failing = Failing::at(step, Act::error(status, headers, message));
            let home = home(&failing.model);
            let answers = repeat(&home, COMPLETIONS, &question(COMPLETIONS, false));
            let expected = if step == 0 { before } else { 424 };
            let case = format!("{status} at {step}: {answers:?}");
            let tries = if matches!(expected, 429 | 503) {
                TRIES
            } else {
                1
            };
            assert_eq!(answers.len(), tries, "{case}");
            for answer in &answers {
                assert_eq!(answer.status, expected, "{case}");
                assert_eq!(answer.header("x-request-id"), Some("mine"), "{case}");
                let turn = answer.header("x-hearth-turn").unwrap();
                assert_eq!(Some(turn), answers[0].header("x-hearth-turn"), "{case}");
                let wait = answer.header("retry-after");
                assert_eq!(wait, (tries == TRIES).then_some("90"), "{case}");
                let retries = answer.header("x-should-retry");
                assert_eq!(retries, (tries == 1).then_some("false"), "{case}");
            }
            assert_eq!(items(&home), step, "{case}");
            let listed = conversations(&home);
            assert_eq!(
                (listed.len(), &listed[0]["message_count"]),
                (1, &json!(1)),
                "{case}"
            );
        }
    }
}

#[test]
fn a_failed_turn_continues_when_its_request_comes_again() {
    for path in [COMPLETIONS, "/v1/responses", "/api/chat"] {
        for stream in [false, true] {
            for step in [0, 1] {
                let failing = Failing::at(step, Act::error(503, "Retry-After: 90\r\n", "no"));
                let home = home(&failing.model);
                let body = question(path, stream);
                let case = format!("{path} {stream} at {step}");
                let first = send(&home, path, &body);
                assert!(!first.body.contains("Done."), "{case}: {first:?}");
                let asked = failing.model.requests().len();
                send(&home, path, &body);
                assert!(
                    failing.model.requests().len() > asked,
                    "{case}: it is asked again"
                );
                failing.recover();
                let answer = send(&home, path, &body);
                assert_eq!(answer.status, 200, "{case}: {answer:?}");
                assert!(answer.body.contains("Done."), "{case}: {answer:?}");
                assert_eq!(items(&home), 1, "{case}");
                let last = failing.model.requests().pop().unwrap();
                assert_eq!(count_of(&last["messages"], "tool"), 1, "{case}: {last}");
                let listed = conversations(&home);
                let counted = (listed.len(), &listed[0]["message_count"]);
                assert_eq!(counted, (1, &json!(2)), "{case}");
                // The answer has come: the same is a new question.
                send(&home, path, &body);
                assert_eq!(conversations(&home).len(), 2, "{case}");
            }
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_not_run_again() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let piece = json!({ "choices": [{ "delta": { "content": "I have" } }] });
    let cut = Act::Raw(format!("{head}data: {piece}\n\n"));
    let failing = Failing::at(1, cut);
    let home = home(&failing.model);
    let body = question(COMPLETIONS, true);
    let broken = send(&home, COMPLETIONS, &body);
    assert!(!broken.body.contains("Done."), "{broken:?}");
    failing.recover();
    let answer = send(&home, COMPLETIONS, &body);
    assert!(answer.body.contains("Done."), "{answer:?}");
    assert_eq!(items(&home), 1);
}

#[test]
fn a_refusal_for_good_is_answered_from_the_store_for_a_while() {
    let failing = Failing::at(0, Act::error(400, "", "odd words"));
    let mut home = home(&failing.model);
    let body = question(COMPLETIONS, false);
    let first = send(&home, COMPLETIONS, &body);
    let asked = failing.model.requests().len();
    home.restart();
    let second = send(&home, COMPLETIONS, &body);
    assert_eq!((second.status, &second.body), (400, &first.body));
    assert_eq!(
        failing.model.requests().len(),
        asked,
        "it is not asked again"
    );
    // Another credential's request is another turn.
    failing.recover();
    let authorization = bearer(&home.tokens.admin);
    let headers = [("authorization", authorization.as_str())];
    let answer = post(home.address(), COMPLETIONS, &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(conversations(&home).len(), 1);
}

#[test]
fn an_answer_that_was_lost_comes_with_the_next_try() {
    let model = slow();
    let mut home = home(&model);
    let body = question(COMPLETIONS, false);
    let lost = super::streams::begin(home.address(), &home.tokens.user, &body);
    model.wait_for_requests(2);
    drop(lost);
    support::eventually("its end", || {
        (super::streams::open(&home) == 1).then_some(())
    });
    home.restart_at_once();
    model.release();
    let answer = send(&home, COMPLETIONS, &body);
    assert!(answer.body.contains("Done."), "{answer:?}");
    assert_eq!((items(&home), conversations(&home).len()), (1, 1));
}

/// Waters the plants, and says that it has once it is released.
fn slow() -> Model {
    Model::start(|request, _| match count_of(&request["messages"], "tool") {
        0 => water(),
        _ => Act::Stall("Done.".to_owned()),
    })
}

/// Its library has given up on the first try, whose connection is still open.
#[test]
fn a_retry_that_says_so_joins_the_turn_that_still_runs() {
    for stream in [false, true] {
        let model = slow();
        let home = home(&model);
        let body = question(COMPLETIONS, stream);
        let first = super::streams::begin(home.address(), &home.tokens.user, &body);
        model.wait_for_requests(2);
        let retry = || {
            let authorization = bearer(&home.tokens.user);
            let headers = [
                ("authorization", &*authorization),
                ("x-stainless-retry-count", "1"),
            ];
            post(home.address(), COMPLETIONS, &headers, &body)
        };
        let answer = std::thread::scope(|scope| {
            let asked = scope.spawn(retry);
            let is_open = |count| (super::streams::open(&home) == count).then_some(());
            support::eventually("it is joined", || is_open(3));
            // Whoever hangs up ends nothing that another waits for.
            drop(first);
            support::eventually("the first has gone", || is_open(2));
            model.release();
            asked.join().unwrap()
        });
        assert!(answer.body.contains("Done."), "{stream}: {answer:?}");
        assert_eq!((items(&home), conversations(&home).len()), (1, 1));
        assert_eq!(model.requests().len(), 2, "{stream}");
        // The answer has come: the same is a new question.
        assert_eq!(retry().status, 200);
        assert_eq!(conversations(&home).len(), 2);
    }
}

/// A program may want several answers to one question.
#[test]
fn the_same_request_beside_one_that_is_read_is_another_turn() {
    let model = slow();
    let home = home(&model);
    let body = question(COMPLETIONS, false);
    let turns: Vec<_> = std::thread::scope(|scope| {
        let both: Vec<_> = (1..=2)
            .map(|count| {
                let asked = scope.spawn(|| send(&home, COMPLETIONS, &body));
                model.wait_for_requests(2 * count);
                asked
            })
            .collect();
        model.release();
        let answers = both.into_iter().map(|asked| asked.join().unwrap());
        answers
            .map(|answer| answer.header("x-hearth-turn").unwrap().to_owned())
            .collect()
    });
    assert_ne!(turns[0], turns[1]);
    assert_eq!(conversations(&home).len(), 2);
}

/// Most libraries close the connection and ask again at once.
#[test]
fn whoever_hangs_up_and_asks_again_at_once_gets_the_same_turn() {
    for round in 0..8 {
        let model = slow();
        let home = home(&model);
        let body = question(COMPLETIONS, false);
        let first = super::streams::begin(home.address(), &home.tokens.user, &body);
        model.wait_for_requests(2);
        let mut again = support::socket::connect(home.address());
        drop(first);
        super::streams::send(&mut again, &home.tokens.user, &body);
        support::eventually("it is joined", || {
            (super::streams::open(&home) == 2).then_some(())
        });
        model.release();
        super::streams::read_until(&mut std::io::BufReader::new(again), "X-Hearth-Turn");
        assert_eq!(conversations(&home).len(), 1, "{round}");
        assert_eq!((items(&home), model.requests().len()), (1, 2), "{round}");
    }
}

#[test]
fn other_errors_have_the_same_headers() {
    let limits = json!({ "model_api_body_bytes": 2_000 });
    let home = home_with(&Model::saying("hi"), json!({ "limits": limits }));
    let long = "x".repeat(129);
    for (own, kept) in [("mine", true), ("a b", false), (long.as_str(), false)] {
        let headers = [("x-request-id", own)];
        let answer = post(home.address(), COMPLETIONS, &headers, &json!({}));
        assert_eq!(answer.status, 401);
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(id == own, kept, "{id}");
        assert!(kept || id.starts_with("req_"), "{id}");
    }
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", &*authorization), ("x-request-id", "mine")];
    let large = json!({ "model": "x".repeat(2_000) });
    for (path, body, status) in [
        (COMPLETIONS, &large, 413),
        (COMPLETIONS, &json!({}), 400),
        ("/v1/odd", &json!({}), 404),
        ("/api/chat", &json!([]), 400),
    ] {
        let answer = post(home.address(), path, &headers, body);
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("x-request-id"), Some("mine"), "{path}");
    }
}

#[test]
fn a_turn_that_is_out_of_time_says_so() {
    let model = Model::start(|_, _| Act::Stall("Done.".to_owned()));
    let home = home_with(&model, json!({ "limits": { "turn_seconds": 1 } }));
    let answer = send(&home, COMPLETIONS, &question(COMPLETIONS, false));
    assert!(answer.status >= 500, "{answer:?}");
    assert!(!answer.body.contains("the turn goes on"), "{answer:?}");
}

/// A person who stops the turn has stopped it.
#[test]
fn a_turn_that_somebody_stopped_does_not_go_on() {
    let model = slow();
    let home = home(&model);
    let body = question(COMPLETIONS, false);
    let turn = std::thread::scope(|scope| {
        let asked = scope.spawn(|| send(&home, COMPLETIONS, &body));
        model.wait_for_requests(2);
        let mut user = home.websocket(&home.tokens.user);
        let id = conversations(&home)[0]["id"].clone();
        let listed = user.ask(json!({ "type": "get_messages", "conversation_id": id }));
        let turn = listed["messages"][0]["turn_id"].clone();
        user.ask(json!({ "type": "cancel", "turn_id": turn }));
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 424, "{answer:?}");
        turn
    });
    model.release();
    // Until the stopped turn has left its worker, the answer is to come again.
    let answer = support::eventually("it is answered", || {
        let answer = send(&home, COMPLETIONS, &body);
        let is_early = answer.status == 503 && answer.header("retry-after") == Some("1");
        (!is_early).then_some(answer)
    });
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.header("x-hearth-turn"), turn.as_str());
}

#[test]
fn embeddings_have_the_same_statuses() {
    for (status, expected) in [(400, 400), (401, 424), (404, 404), (429, 429), (503, 503)] {
        let model = Model::start(move |_, _| Act::error(status, "", "no such model"));
        let home = home(&model);
        let body = json!({ "model": "vectors", "input": "a" });
        let answer = send(&home, "/v1/embeddings", &body);
        assert_eq!(answer.status, expected, "{answer:?}");
        assert_eq!(
            answer.header("retry-after").is_some(),
            matches!(expected, 429 | 503)
        );
        let plain = json!({ "model": "hearth-plain",
            "messages": [{ "role": "user", "content": "hi" }] });
        // Its own waits would take long.
        if expected < 425 {
            let answer = send(&home, COMPLETIONS, &plain);
            assert_eq!(answer.status, expected, "{answer:?}");
        }
    }
}

fn light_turn(home: &Home, messages: &[Value]) -> Value {
    let tool = json!({ "type": "function", "function": { "name": "light" } });
    let body = json!({ "model": "hearth", "messages": messages, "tools": [tool] });
    let answer = send(home, COMPLETIONS, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["choices"][0]["message"].take()
}

/// Waters the plants, calls `light` once after "on", and tells what it was shown.
fn lights() -> Model {
    Model::start(|request, _| {
        let messages = &request["messages"];
        match count_of(messages, "tool") {
            0 => water(),
            1 => Act::call("light", json!({})),
            _ => Act::say("Both are done."),
        }
    })
}

#[test]
fn results_without_a_second_step_are_kept() {
    let model = lights();
    let home = home(&model);
    let mut messages = vec![json!({ "role": "user", "content": "on" })];
    let calls = light_turn(&home, &messages);
    let id = calls["tool_calls"][0]["id"].clone();
    messages.push(calls);
    messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "it shines" }));
    messages.push(json!({ "role": "user", "content": "thanks" }));
    let asked = model.requests().len();
    let reply = light_turn(&home, &messages);
    assert_eq!(reply["content"], "Both are done.", "{reply}");
    messages.push(reply);
    messages.push(json!({ "role": "user", "content": "bye" }));
    light_turn(&home, &messages);
    let requests = model.requests();
    assert_eq!(
        requests.len(),
        asked + 2,
        "nothing is asked that nobody reads"
    );
    for request in &requests[asked..] {
        let shown = shown_results(request);
        assert_eq!(shown.len(), 2, "{request}");
        assert!(shown[1].contains("it shines"), "{shown:?}");
    }
    assert_eq!((items(&home), conversations(&home).len()), (1, 1));
}

/// The response may have been lost, whatever happened to the server meanwhile.
#[test]
fn results_that_come_again_are_used_once() {
    for is_late in [false, true] {
        let model = Model::start(|request, _| {
            let messages = request["messages"].to_string();
            match () {
                () if !messages.contains("water plants") => water(),
                () if !messages.contains("it shines") => Act::call("light", json!({})),
                () => Act::say("Both are done."),
            }
        });
        let mut home = home(&model);
        let mut messages = vec![json!({ "role": "user", "content": "on" })];
        let calls = light_turn(&home, &messages);
        let id = calls["tool_calls"][0]["id"].clone();
        messages.push(calls);
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "it shines" }));
        if is_late {
            home.restart_at_once();
            support::eventually("the turn is left", || {
                let info = home.admin().ask(json!({ "type": "server_info" }))["turns"].take();
                (info["running"] == 0 && info["queued"] == 0).then_some(())
            });
        }
        let tool = json!({ "type": "function", "function": { "name": "light" } });
        let body = json!({ "model": "hearth", "messages": messages, "tools": [tool] });
        let first = send(&home, COMPLETIONS, &body);
        let asked = model.requests().len();
        for restarts in [false, true, false] {
            if restarts {
                home.restart();
            }
            let again = send(&home, COMPLETIONS, &body);
            assert_eq!(again.status, 200, "{again:?}");
            assert!(again.body.contains("Both are done."), "{again:?}");
            let turn = again.header("x-hearth-turn");
            assert_eq!(turn, first.header("x-hearth-turn"), "late: {is_late}");
        }
        assert_eq!(model.requests().len(), asked, "late: {is_late}");
        assert_eq!((items(&home), conversations(&home).len()), (1, 1));
    }
}

#[test]
fn a_request_that_hung_up_goes_on_with_its_turn() {
    let slow = json!({ "name": "slow", "description": "Test.",
        "command": ["/bin/sh", "-c", "trap '' TERM; echo x >> started; sleep 600"] });
    let model = Model::start(|request, _| match count_of(&request["messages"], "tool") {
        0 => Act::call("slow", json!({})),
        _ => Act::say("Done."),
    });
    let more = json!({ "permission_mode": "allow", "tools": { "custom": [slow] } });
    let home = home_with(&model, more);
    let body = question(COMPLETIONS, true);
    let asked = super::streams::begin(home.address(), &home.tokens.user, &body);
    let started = home.folder.path().join("files/started");
    support::eventually("the tool runs", || started.exists().then_some(()));
    drop(asked);
    support::eventually("its end", || {
        (super::streams::open(&home) == 1).then_some(())
    });
    let answer = support::eventually("an answer", || {
        let answer = send(&home, COMPLETIONS, &body);
        let waits = answer.status == 503 && answer.header("retry-after") == Some("1");
        (!waits).then_some(answer)
    });
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("Done."), "{answer:?}");
    assert_eq!(std::fs::read_to_string(&started).unwrap(), "x\n");
    assert_eq!(conversations(&home).len(), 1);
}

fn shown_results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn results_that_come_late_go_on_with_their_turn() {
    let model = lights();
    let mut home = home(&model);
    let mut messages = vec![json!({ "role": "user", "content": "on" })];
    let calls = light_turn(&home, &messages);
    let id = calls["tool_calls"][0]["id"].clone();
    messages.push(calls);
    messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "it shines" }));
    home.restart_at_once();
    support::eventually("the turn is left", || {
        let info = home.admin().ask(json!({ "type": "server_info" }))["turns"].take();
        (info["running"] == 0 && info["queued"] == 0).then_some(())
    });
    let asked = model.requests().len();
    let reply = light_turn(&home, &messages);
    assert_eq!(reply["content"], "Both are done.", "{reply}");
    assert_eq!(model.requests().len(), asked + 1);
    let last = model.requests().pop().unwrap();
    assert!(shown_results(&last)[1].contains("it shines"), "{last}");
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(2)));
    assert_eq!(items(&home), 1);
}

#[test]
fn results_that_come_late_with_a_new_message_are_kept() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"]
            .as_str()
            .unwrap_or_default()
            .contains("light")
        {
            true => Act::call("light", json!({})),
            false => Act::say("Fine."),
        }
    });
    let mut home = home(&model);
    let mut messages = Vec::new();
    for said in ["hello", "and", "light"] {
        messages.push(json!({ "role": "user", "content": said }));
        let reply = light_turn(&home, &messages);
        messages.push(reply);
    }
    let id = messages.last().unwrap()["tool_calls"][0]["id"].clone();
    home.restart_at_once();
    support::eventually("the turn is left", || {
        let info = home.admin().ask(json!({ "type": "server_info" }))["turns"].take();
        (info["running"] == 0 && info["queued"] == 0).then_some(())
    });
    let asked = model.requests().len();
    messages.push(json!({ "role": "tool", "tool_call_id": id, "content": "it shines" }));
    messages.push(json!({ "role": "user", "content": "thanks" }));
    light_turn(&home, &messages);
    let shown = shown_results(&model.requests()[asked]);
    assert!(shown[0].contains("it shines"), "{shown:?}");
    assert_eq!(conversations(&home).len(), 1);
}

#[test]
fn results_that_no_turn_knows_are_imported() {
    let model = Model::saying("It is on.");
    let home = home(&model);
    let call = |id: &str| {
        json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": id, "type": "function", "function": { "name": "remember",
            "arguments": "{\"content\":\"x\"}" } } ] })
    };
    let result =
        |id: &str, content: &str| json!({ "role": "tool", "tool_call_id": id, "content": content });
    let messages = [
        json!({ "role": "user", "content": "first" }),
        call("a"),
        result("a", "result one"),
        json!({ "role": "assistant", "content": "Good." }),
        json!({ "role": "user", "content": "second" }),
        call("b"),
        result("b", "result two"),
    ];
    let reply = light_turn(&home, &messages);
    assert_eq!(reply["content"], "It is on.", "{reply}");
    let last = model.requests().pop().unwrap();
    let results = shown_results(&last);
    assert!(
        results[0].contains("result one") && results[1].contains("result two"),
        "{last}"
    );
    let roles: Vec<String> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        roles[1..],
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "tool"
        ]
    );
    // They are the program's, and a call without its result is not run here.
    let open = [
        json!({ "role": "user", "content": "third" }),
        call("c"),
        result("nobody's", "x"),
    ];
    light_turn(&home, &open);
    let mut user = home.websocket(&home.tokens.user);
    let memories = user.ask(json!({ "type": "list_memories" }));
    assert!(
        memories["memories"].as_array().unwrap().is_empty(),
        "{memories}"
    );
}
