//! Against scripted servers on loopback.

use serde_json::{Value, json};

use super::*;
use crate::model::Provider;
use crate::model::dialect::{Dialect, Options};
use crate::model::learned::{BRIEF, LASTING};
use crate::model::ollama::Ollama;
use crate::model::openai::OpenAi;
use crate::model::profile::Profile;
use crate::model::remote::Remote;
use crate::model::testing::{Ask, KEY};
use base::clock::Clock;
use base::secret::Secret;
use net::http_client::test_server::{Act, TestServer, json as answer};

fn provider(name: &str, server: &TestServer, options: Options, clock: &Clock) -> Remote {
    let (dialect, url): (Box<dyn Dialect>, String) = match name {
        "ollama" => (Box::new(Ollama), format!("http://{}", server.address)),
        _ => (Box::new(OpenAi), server.url()),
    };
    let endpoint = Endpoint::new("The model server", &url, Some(Secret::new(KEY)));
    let service = Profile::of(name, "");
    Remote::new(endpoint, dialect, service, options).on_clock(clock.clone())
}

fn window_of(name: &str, answers: Vec<Vec<Act>>) -> (usize, Vec<String>) {
    let server = TestServer::new(answers);
    let provider = provider(name, &server, Options::default(), &Clock::system());
    let window = provider.window("m");
    assert_eq!(provider.window("m"), window, "it is not asked again");
    let heard = server.heard();
    let lines = heard.iter().map(|heard| {
        let head = heard.head.to_lowercase();
        let key = format!("authorization: bearer {}", KEY.to_lowercase());
        assert!(head.contains(&key), "{head}");
        heard.head.split(" HTTP").next().unwrap().to_owned()
    });
    (window, lines.collect())
}

fn props(tokens: u64) -> Vec<Act> {
    let settings = json!({"id": 0, "n_ctx": tokens});
    answer(
        200,
        &json!({"default_generation_settings": settings, "total_slots": 2}),
    )
}

#[test]
fn each_kind_of_server_is_asked_in_its_own_way() {
    let gone = || answer(404, &json!({"error": {"message": "no"}}));
    let list = |items: Value| answer(200, &json!({"object": "list", "data": items}));
    let shown = |value: Value| answer(200, &value);
    let info = json!({"general.architecture": "llama", "llama.context_length": 4096});
    let large = json!({"qwen3.context_length": 262_144, "qwen3.embedding_length": 4096});
    let other = json!({"id": "other", "max_model_len": 1024});
    let (get_props, get_models) = ("GET /props", "GET /v1/models");
    let get_lm_studio = "GET /api/v0/models";
    let show = "POST /api/show";
    for (name, answers, window, asked) in [
        ("llamacpp", vec![props(12_288)], 12_288, vec![get_props]),
        (
            "llamacpp",
            vec![
                gone(),
                list(json!([{"id": "gguf", "meta": {"n_ctx": 2048, "n_ctx_train": 99_999}}])),
            ],
            2048,
            vec![get_props, get_models],
        ),
        // What the model was trained with is not what it was loaded with.
        (
            "llamacpp",
            vec![
                gone(),
                list(json!([{"id": "gguf", "meta": {"n_ctx_train": 99_999}}])),
            ],
            8192,
            vec![get_props, get_models],
        ),
        (
            "llamacpp",
            vec![props(3), gone()],
            8192,
            vec![get_props, get_models],
        ),
        (
            "vllm",
            vec![list(json!([other, {"id": "m", "max_model_len": 40_960}]))],
            40_960,
            vec![get_models],
        ),
        (
            "vllm",
            vec![list(json!([other, other]))],
            8192,
            vec![get_models],
        ),
        (
            "lmstudio",
            vec![list(
                json!([{"id": "m", "state": "loaded", "loaded_context_length": 20_000,
                              "max_context_length": 131_072}]),
            )],
            20_000,
            vec![get_lm_studio],
        ),
        (
            "lmstudio",
            vec![list(
                json!([{"id": "m", "state": "not-loaded", "max_context_length": 4096}]),
            )],
            4096,
            vec![get_lm_studio],
        ),
        (
            "ollama",
            vec![shown(json!({ "model_info": info }))],
            4096,
            vec![show],
        ),
        (
            "ollama",
            vec![shown(json!({ "model_info": large }))],
            16_384,
            vec![show],
        ),
        (
            "ollama",
            vec![shown(json!({"model_info": large,
                "parameters": "stop \"<|im_end|>\"\nnum_ctx                        32768\n"}))],
            32_768,
            vec![show],
        ),
        (
            "ollama",
            vec![shown(
                json!({"model_info": info, "parameters": "num_ctx 32768"}),
            )],
            4096,
            vec![show],
        ),
        ("ollama", vec![gone()], 16_384, vec![show]),
        // What is behind such an address, nobody has said.
        (
            "openai-compatible",
            vec![list(json!([{"id": "m", "max_model_len": 40_960}]))],
            40_960,
            vec![get_models],
        ),
        (
            "openai-compatible",
            vec![list(json!([{"id": "m"}])), props(12_288)],
            12_288,
            vec![get_models, get_props],
        ),
        (
            "openai-compatible",
            vec![
                list(json!([{"id": "m"}])),
                answer(200, &json!({"error": "Unexpected endpoint or method"})),
                list(json!([{"id": "m", "loaded_context_length": 20_000}])),
            ],
            20_000,
            vec![get_models, get_props, get_lm_studio],
        ),
        // A proxy in front of the service.
        (
            "openai",
            vec![list(json!([other, {"id": "m", "context_length": 65_536}]))],
            65_536,
            vec![get_models],
        ),
        (
            "openai",
            vec![gone(), gone(), gone()],
            8192,
            vec![get_models, get_props, get_lm_studio],
        ),
    ] {
        assert_eq!(
            window_of(name, answers),
            (
                window,
                asked.iter().map(|line| (*line).to_owned()).collect()
            ),
            "{name}"
        );
    }
}

#[test]
fn what_the_owner_sets_wins_and_nobody_is_asked() {
    let server = TestServer::new(vec![props(12_288)]);
    let options = Options {
        context_tokens: Some(3_000),
        ..Options::default()
    };
    let provider = provider("llamacpp", &server, options, &Clock::system());
    assert_eq!(provider.window("m"), 3_000);
    assert!(server.heard().is_empty());
}

#[test]
fn a_server_that_does_not_answer_holds_up_nobody_for_long() {
    let server = TestServer::new(vec![vec![Act::Hang], props(12_288)]);
    let clock = Clock::system();
    let provider = provider("llamacpp", &server, Options::default(), &clock);
    let began = Instant::now();
    assert_eq!(provider.window("m"), 8192);
    let took = began.elapsed();
    // Both of its questions share a second; the rest is this machine's.
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(provider.window("m"), 8192);
    assert_eq!(server.heard().len(), 1, "not at once");
    clock.advance(BRIEF);
    assert_eq!(provider.window("m"), 12_288);
}

#[test]
fn a_server_that_knows_no_such_question_is_left_alone_for_a_day() {
    let gone = || answer(404, &json!({"error": {"message": "no"}}));
    let busy = || answer(503, &json!({"error": {"message": "Loading model"}}));
    let answers = vec![busy(), gone(), gone(), gone(), gone(), gone(), props(4096)];
    let server = TestServer::new(answers);
    let clock = Clock::system();
    let provider = provider("llamacpp", &server, Options::default(), &clock);
    let mut asked = 0;
    // Two questions each time: the first is answered once it is ready.
    for (wait, more, window) in [
        (Duration::ZERO, 2, 8192),
        (BRIEF, 2, 8192),
        (BRIEF, 0, 8192),
        (LASTING, 2, 8192),
        (LASTING, 1, 4096),
    ] {
        clock.advance(wait);
        assert_eq!(provider.window("m"), window);
        asked += more;
        assert_eq!(server.heard().len(), asked, "after {wait:?}");
    }
}

#[test]
fn it_is_asked_again_after_a_day_and_after_a_failure() {
    let said = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    let overflow = json!({"error": {"code": 400, "type": "exceed_context_size_error",
        "message": "the request exceeds the available context size"}});
    let server = TestServer::new(vec![
        props(2048),
        answer(200, &said),
        props(4096),
        answer(400, &overflow),
        vec![Act::Close],
        vec![Act::Close],
        props(1024),
    ]);
    let clock = Clock::system();
    let provider = provider("llamacpp", &server, Options::default(), &clock);
    assert_eq!(provider.window("m"), 2048);
    assert_eq!(Ask::hello(false).reply(&provider).text, "Hi");
    assert_eq!(provider.window("m"), 2048);
    clock.advance(LASTING);
    assert_eq!(provider.window("m"), 4096);
    Ask::hello(false).failure(&provider);
    // It does not say now: what it said before holds.
    assert_eq!(provider.window("m"), 4096);
    clock.advance(BRIEF);
    assert_eq!(provider.window("m"), 1024);
    assert_eq!(server.heard().len(), 7);
}

#[test]
fn ollama_loads_the_model_with_the_window_that_it_has() {
    let shown = json!({"model_info": {"llama.context_length": 2048}});
    let said = json!({"message": {"role": "assistant", "content": "Hi"}, "done": true});
    let server = TestServer::new(vec![answer(200, &shown), answer(200, &said)]);
    let provider = provider("ollama", &server, Options::default(), &Clock::system());
    assert_eq!(provider.window("m"), 2048);
    Ask::hello(false).reply(&provider);
    let heard = server.heard();
    assert_eq!(heard[0].json(), json!({"model": "m"}));
    assert_eq!(heard[1].json()["options"]["num_ctx"], 2048);
}

#[test]
fn the_window_that_a_refusal_names_holds_for_a_day() {
    let refused = |tokens: u32| {
        let says = format!("This model's maximum context length is {tokens} tokens. However, ...");
        answer(400, &json!({"error": {"message": says}}))
    };
    let clock = Clock::system();
    let configured = Options {
        context_tokens: Some(9_000),
        ..Options::default()
    };
    for (name, options, before) in [
        ("openai", Options::default(), 272_000),
        ("openai", configured, 9_000),
        ("openai-compatible", configured, 9_000),
    ] {
        let gone = || answer(404, &json!({"error": {"message": "no"}}));
        let asked = if before == 272_000 { 3 } else { 0 };
        let questions = std::iter::repeat_with(gone).take(asked);
        let refusals = [refused(300_000), refused(4_096)];
        let server = TestServer::new(questions.chain(refusals).collect());
        let provider = provider(name, &server, options, &clock);
        let ask = Ask {
            model: "gpt-5",
            ..Ask::hello(false)
        };
        assert_eq!(provider.window("gpt-5"), before);
        ask.failure(&provider);
        assert_eq!(provider.window("gpt-5"), before, "it has less");
        ask.failure(&provider);
        assert_eq!(provider.window("gpt-5"), 4_096);
        assert!(!provider.guesses_window("gpt-5"));
        clock.advance(LASTING);
        assert_eq!(provider.window("gpt-5"), before);
    }
    // It says the same as before, and then that it was started with another window.
    let server = TestServer::new(vec![
        props(16_384),
        refused(4_096),
        props(16_384),
        refused(4_096),
        props(32_768),
    ]);
    let provider = provider("llamacpp", &server, Options::default(), &clock);
    for window in [16_384, 4_096, 32_768] {
        assert_eq!(provider.window("m"), window);
        if window < 32_768 {
            Ask::hello(false).failure(&provider);
        }
    }
}

#[test]
fn a_reply_gets_half_of_the_window_at_most() {
    let said = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    let server = TestServer::new(vec![answer(200, &said)]);
    let options = Options {
        context_tokens: Some(8_192),
        ..Options::default()
    };
    let provider = provider("vllm", &server, options, &Clock::system());
    let mut ask = Ask::hello(false);
    ask.max_tokens = Some(8_192);
    ask.reply(&provider);
    assert_eq!(server.heard()[0].json()["max_tokens"], 4_096);
}
