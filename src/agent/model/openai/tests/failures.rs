//! A server that is wrong, slow or down, and a person who stops the turn.

use super::*;

#[test]
fn a_stream_that_is_left_open_after_its_end_is_not_waited_for() {
    let script = vec![
        stream_head(),
        chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n"),
        Act::Hang,
    ];
    let server = TestServer::new(vec![script, answer(200, &said("Ho"))]);
    let provider = provider(&server);
    assert_eq!(streaming().reply(&provider).text, "Hi");
    assert_eq!(hello().reply(&provider).text, "Ho");
    assert_eq!(server.heard()[1].connection, 1);
}

/// A reply whose end the server has announced is whole, whether the stream then stays open or
/// breaks off.
#[test]
fn a_reply_counts_once_the_server_says_why_the_model_stopped() {
    let [text, end] = [delta(json!({"content": "Hi"})), end("stop")];
    let whole = chunk(&format!("data: {text}\n\ndata: {end}\n\n"));
    for last in [Act::Close, Act::Hang] {
        let script = vec![stream_head(), whole.clone(), last];
        let server = TestServer::new(vec![script, answer(200, &said("Ho"))]);
        let reply = streaming().reply(&provider(&server));
        assert_eq!((&*reply.text, reply.finish_reason), ("Hi", None));
        assert_eq!(server.heard().len(), 1);
    }
}

#[test]
fn a_cut_stream_is_retried_only_before_its_first_piece() {
    let good = || {
        let chunks = [delta(json!({"content": "Hi"})), end("stop")];
        stream(&chunks, true, 64)
    };
    let cut = |text: &str| vec![stream_head(), chunk(text), Act::Close];
    let server = TestServer::new(vec![
        cut("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"),
        good(),
    ]);
    assert_eq!(streaming().reply(&provider(&server)).text, "Hi");
    assert_eq!(server.heard().len(), 2);

    let began = "data: {\"choices\":[{\"delta\":{\"content\":\"Half a\"}}]}\n\n";
    // Cut off in the middle of the body, and ended properly but too early.
    let early = vec![
        stream_head(),
        chunk(began),
        Act::Send(b"0\r\n\r\n".to_vec()),
    ];
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function":
        {"name": "light", "arguments": "{}"}}]});
    let failed = json!({"error": {"code": 502, "message": "upstream broke"}});
    let then = |event: Value| cut(&format!("{began}data: {event}\n\n"));
    for script in [cut(began), early, then(delta(call)), then(failed)] {
        let server = TestServer::new(vec![script, good()]);
        with_tools(streaming()).kept(&provider(&server), "Half a");
        assert_eq!(server.heard().len(), 1);
    }
    // Whoever hears nothing misses nothing: it is begun again.
    let server = TestServer::new(vec![cut(began), good()]);
    assert_eq!(hello().reply(&provider(&server)).text, "Hi");
}

#[test]
fn failures_name_the_server_and_not_the_key() {
    let table = r#"
        401 {"error": {"message": "Incorrect API key provided: sk-test-01****WXYZ or KEY."}} | refused the API key (401)
        400 {"error": {"message": "Incorrect API key provided: sk-test-01****WXYZ or KEY."}} | refused the request (400): Incorrect API key provided: [key]
        403 {"error": {"message": "no"}} | forbids this request (403)
        402 {"error": {"message": "no"}} | says that the account has no credit left (402)
        404 {"error": {"message": "The model `m` does not exist"}} | does not know the model "m" (404)
        404 {"detail": "Not Found"} | has no chat API at this address (404): check the address (base_url), which usually ends in /v1
        429 {"error": {"message": "You exceeded your current quota (insufficient_quota)"}} | says that the account's quota is used up (429)
        400 {"error": {"message": "This model's maximum context length is 8 tokens"}} | refused the conversation: it is too long for the model "m" (400)
        301 [location: https://else.example/v1] | answers with a redirect to https://else.example/v1 (301): set the address (base_url) to the final one
        200 [content-type: text/html] <html>Welcome</html> | answered something that is not JSON
        200 {"choices": | answered something that is not JSON
        200 [content-encoding: gzip] {"choices": [] | compresses its answer (gzip) although Hearth asks for a plain one: turn compression off
        200 {"choices": []} | answered without a reply in it
        200 {"error": {"code": 402, "message": "no credits"}} | says that the account has no credit left (402)
        200 [content-type: text/event-stream] data: garbage\n\n | answered something that is not JSON
        400 {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\"error\":{\"message\":\"it is too large\"}}", "provider_name": "Acme"}}} | refused the request (400): Provider returned error: it is too large
        400 {"error": {"message": "Provider returned error", "metadata": {"raw": "bad template"}}} | refused the request (400): Provider returned error: bad template
        stream data: {"error": {"message": "upstream broke"}}\n\n | reported an error: upstream broke
        raw SSH-2.0-OpenSSH_9.9\n | answered something that is not HTTP
        500 [x-should-retry: false] <html>oops</html> | failed (500)
    "#;
    for [script, expected] in rows(table) {
        let server = TestServer::new(vec![scripted(script)]);
        let (public, detail) = hello().failure(&provider(&server));
        let subject = format!("The model server at {}", server.address);
        assert!(
            public.starts_with(&format!("{subject} {expected}")),
            "{public:?} is not {expected:?} ({detail})"
        );
        assert_eq!(server.heard().len(), 1, "{expected}");
    }
}

#[test]
fn a_busy_server_is_asked_three_times() {
    let busy = || whole(429, "retry-after: 0\r\n", "{\"error\":\"slow down\"}");
    let server = TestServer::new(vec![busy(), busy(), answer(200, &said("Hi"))]);
    assert_eq!(hello().reply(&provider(&server)).text, "Hi");

    let failing = || whole(503, "retry-after-ms: 1\r\n", "Loading model");
    let server = TestServer::new(vec![failing(), failing(), failing(), failing()]);
    let (public, detail) = hello().failure(&provider(&server));
    assert!(
        public.ends_with("is overloaded or still loading the model (503)"),
        "{public}"
    );
    assert!(detail.contains("Loading model"), "{detail}");
    assert_eq!(server.heard().len(), 3);

    let server = TestServer::new(vec![whole(429, "retry-after: 61\r\n", "{}")]);
    let (public, _) = hello().failure(&provider(&server));
    assert!(public.contains("too many requests (429)"), "{public}");
}

#[test]
fn an_account_that_may_not_stream_is_asked_once_with_a_stream() {
    let why = "Your organization must be verified to stream this model.";
    let refused = answer(403, &json!({ "error": { "message": why } }));
    let whole = || answer(200, &said("Hi"));
    let server = TestServer::new(vec![refused, whole(), whole()]);
    let provider = provider(&server);
    for _ in 0..2 {
        assert_eq!(streaming().reply(&provider).text, "Hi");
    }
    let streams = server
        .heard()
        .into_iter()
        .map(|heard| heard.json()["stream"] == true);
    assert_eq!(streams.collect::<Vec<bool>>(), [true, false, false]);
}

#[test]
fn a_kept_connection_that_the_server_closes_costs_no_try() {
    let busy = || whole(503, "retry-after-ms: 1\r\n", "busy");
    let server = TestServer::new(vec![
        answer(200, &said("Hi")),
        vec![Act::Close],
        busy(),
        busy(),
        answer(200, &said("Ho")),
    ]);
    let provider = provider(&server);
    assert_eq!(hello().reply(&provider).text, "Hi");
    assert_eq!(hello().reply(&provider).text, "Ho");
    let connections: Vec<usize> = server
        .heard()
        .iter()
        .map(|heard| heard.connection)
        .collect();
    assert_eq!(connections, [0, 0, 1, 1, 1]);
}

#[test]
fn a_refused_form_is_changed_once_and_remembered() {
    let refused = |param: &str, text: &str| {
        let code = "unsupported_parameter";
        answer(
            400,
            &json!({"error": {"message": text, "param": param, "code": code}}),
        )
    };
    let server = TestServer::new(vec![
        refused("temperature", "Unsupported value: 'temperature'"),
        refused(
            "max_tokens",
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        ),
        whole(
            422,
            "",
            "{\"detail\":\"extra fields not permitted: stream_options\"}",
        ),
        refused("", "m does not support tools"),
        stream(&[delta(json!({"content": "Hi"})), end("stop")], true, 64),
        stream(&[delta(json!({"content": "Ho"})), end("stop")], true, 64),
    ]);
    let provider = provider(&server);
    let ask = Ask {
        temperature: Some(1.0),
        max_tokens: Some(9),
        ..with_tools(streaming())
    };
    let (reply, heard) = ask.of(&provider);
    let text = reply.unwrap().text;
    assert_eq!(heard.concat(), text);
    assert!(
        text.contains("cannot use tools") && text.ends_with("\n\nHi"),
        "{text}"
    );
    assert_eq!(ask.reply(&provider).text, "Ho");
    let heard = server.heard();
    let last = heard[5].json();
    let members: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["model", "stream", "max_completion_tokens", "messages"]
    );

    let server = TestServer::new(vec![
        refused("temperature", "Unsupported value: 'temperature'"),
        refused("temperature", "Unsupported value: 'temperature'"),
    ]);
    let (public, _) = ask.failure(&self::provider(&server));
    assert!(public.contains("refused the request (400)"), "{public}");
}

#[test]
fn members_that_the_server_does_not_want_back_are_left_out() {
    let refusal = "property 'reasoning_content' is unsupported";
    let server = TestServer::new(vec![
        answer(400, &json!({"error": {"message": refusal}})),
        answer(200, &said("Hi")),
    ]);
    let mut ask = hello();
    let extra = json!({"origin": server.url(), "members": {"reasoning_content": "hm"}});
    ask.messages.push(assistant("x", Vec::new(), Some(extra)));
    assert_eq!(ask.reply(&provider(&server)).text, "Hi");
    let bodies: Vec<Value> = server.heard().iter().map(|heard| heard.json()).collect();
    assert_eq!(bodies[0]["messages"][2]["reasoning_content"], "hm");
    assert_eq!(bodies[1]["messages"][2].get("reasoning_content"), None);
}

#[test]
fn what_was_learned_holds_for_one_model_and_a_day() {
    let refusal = json!({"error": {"message": "Unsupported value: 'temperature'"}});
    let said = || answer(200, &said("Hi"));
    let server = TestServer::new(vec![
        answer(400, &refusal),
        said(),
        said(),
        said(),
        answer(400, &refusal),
        said(),
    ]);
    let clock = Clock::system();
    let provider = provider(&server).on_clock(clock.clone());
    let ask = |model| Ask {
        temperature: Some(0.5),
        model,
        ..hello()
    };
    ask("m").reply(&provider);
    ask("m").reply(&provider);
    ask("other").reply(&provider);
    clock.advance(Duration::from_secs(24 * 60 * 60));
    ask("m").reply(&provider);
    let heard = server.heard();
    let is_sent = heard
        .iter()
        .map(|heard| heard.json()["temperature"].is_number());
    let is_sent: Vec<bool> = is_sent.collect();
    assert_eq!(is_sent, [true, false, false, true, true, false]);
}

#[test]
fn an_unreachable_server_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/v1");
    let endpoint = Endpoint::new("The model server", &url, None);
    let service = Profile::of("openai-compatible", "");
    let provider = Remote::new(endpoint, Box::new(OpenAi), service, Options::default());
    let (public, _) = hello().failure(&provider);
    assert_eq!(
        public,
        format!("The model server at {address} cannot be reached; check that it is running")
    );
}

#[test]
fn the_deadline_holds_against_every_kind_of_slowness() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n";
    let pause = || Act::Pause(Duration::from_millis(40));
    let drip = |first: Act, piece: Act| {
        let mut script = vec![first];
        for _ in 0..2_000 {
            script.extend([pause(), piece.clone()]);
        }
        script
    };
    for script in [
        vec![Act::Hang],
        vec![Act::Send(head.as_bytes().to_vec()), Act::Hang],
        drip(
            Act::Send(head.as_bytes().to_vec()),
            Act::Send(b" ".to_vec()),
        ),
        drip(
            Act::Send(b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
            Act::Send(b"y".to_vec()),
        ),
        drip(stream_head(), chunk(": still here\n\n")),
        drip(
            stream_head(),
            chunk("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"),
        ),
    ] {
        let server = TestServer::new(vec![script]);
        let ask = Ask {
            time: Duration::from_millis(250),
            ..streaming()
        };
        let started = Instant::now();
        let (reply, _) = ask.of(&provider(&server));
        let taken = started.elapsed();
        assert!(matches!(reply, Err(ProviderError::TimedOut)), "{reply:?}");
        // They drip for 80 seconds, each time sooner than any shorter time-out.
        assert!(taken >= ask.time && taken.as_secs() < 60, "{taken:?}");
    }
}

#[test]
fn a_stop_breaks_the_call_and_the_next_one_works() {
    let began = "data: {\"choices\":[{\"delta\":{\"content\":\"Half a\"}}]}\n\n";
    let server = TestServer::new(vec![
        vec![stream_head(), chunk(began), Act::Hang],
        answer(200, &said("Hi")),
    ]);
    let provider = provider(&server);
    let ask = streaming();
    let (heard, hears) = mpsc::channel();
    let stopper = ask.cancel.clone();
    let thread = thread::spawn(move || {
        hears.recv_timeout(Duration::from_secs(60)).unwrap();
        stopper.cancel();
        Instant::now()
    });
    let request = ModelRequest {
        model: "m",
        system: "",
        messages: &ask.messages,
        files: &(),
        tools: &[],
        words: base::language::Words::ENGLISH,
        may_call: true,
        purpose: Default::default(),
        conversation: None,
        client: None,
        temperature: None,
        max_tokens: None,
        stream: true,
        has_next: false,
        deadline: Instant::now() + Duration::from_secs(600),
        cancel: &ask.cancel,
    };
    let reply = provider.complete(&request, &mut |_| heard.send(()).unwrap());
    let returned = Instant::now();
    assert!(matches!(reply, Err(ProviderError::Cancelled)), "{reply:?}");
    let stopped = thread.join().unwrap();
    assert!(returned.saturating_duration_since(stopped) < Duration::from_secs(60));
    assert_eq!(hello().reply(&provider).text, "Hi");

    let stopped = hello();
    stopped.cancel.cancel();
    let (reply, _) = stopped.of(&provider);
    assert!(matches!(reply, Err(ProviderError::Cancelled)));
    assert_eq!(
        server.heard().len(),
        2,
        "nothing is sent for a stopped turn"
    );
}

#[test]
fn a_template_without_a_system_role_gets_its_text_with_the_first_message() {
    let refused = "Jinja Exception: System role not supported";
    for status in [400, 500] {
        let server = TestServer::new(vec![
            answer(status, &json!({"error": {"message": refused}})),
            answer(200, &said("Hi")),
            answer(200, &said("Ho")),
        ]);
        let provider = provider(&server);
        assert_eq!(hello().reply(&provider).text, "Hi");
        assert_eq!(hello().reply(&provider).text, "Ho");
        let heard = server.heard();
        assert_eq!(heard[0].json()["messages"][0]["role"], "system");
        for place in [1, 2] {
            let messages = heard[place].json()["messages"].clone();
            assert_eq!(messages[0]["role"], "user", "{messages}");
            let text = messages[0]["content"].as_str().unwrap();
            assert!(text.starts_with("You are Ada.\n\n"), "{text}");
        }
    }
}
