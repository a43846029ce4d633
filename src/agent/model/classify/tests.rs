//! Against a scripted server on loopback. The texts are those of the named services, as
//! issues of their clients quote them.

use serde_json::{Map, Value, json};

use super::*;
use crate::model::anthropic::Anthropic;
use crate::model::client_options::{ClientOptions, Format, MustCall};
use crate::model::dialect::{Dialect, Options};
use crate::model::openai::OpenAi;
use crate::model::testing::{Ask, hi, provider, provider_with, scripted};
use base::testing::rows;
use net::http_client::test_server::{Act, TestServer};

fn refused(status: &str, message: &str) -> Vec<Act> {
    scripted(&format!(
        "{status} {}",
        json!({ "error": { "message": message } })
    ))
}

#[test]
fn a_model_that_cannot_use_tools_answers_without_them() {
    let table = r#"
        400 | llama2 does not support tools
        400 | "auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set
        400 | `tool calling` is not supported with this model
        404 | No endpoints found that support tool use. To learn more, visit: https://openrouter.ai/docs
        400 | Function calling is not enabled for models/gemma-3-27b-it
        400 | Function calling is not enabled for this model
        500 | tools param requires --jinja flag
        500 | Unsupported param: tools
        400 | Unsupported parameter: 'tools' is not supported with this model.
        400 | tools is not supported in this model. For a list of supported models, refer to https://a
        400 | deepseek-reasoner does not support Function Calling
        400 | Tool calling is not supported for this model.
        400 | model features function calling not support
        422 | litellm.UnsupportedParamsError: x does not support parameters: ['tools'], for model=y
    "#;
    for [status, text] in rows(table) {
        let server = TestServer::new(vec![refused(status, text), hi(), hi()]);
        let provider = provider(&server, Box::new(OpenAi), "openai-compatible");
        let ask = Ask::hello(false);
        let reply = ask.reply(&provider).text;
        assert!(reply.contains("cannot use tools"), "{text}: {reply}");
        ask.reply(&provider);
        let offers = server
            .heard()
            .iter()
            .map(|one| one.json()["tools"].is_array())
            .collect::<Vec<_>>();
        assert_eq!(offers, [true, false, false], "{text}");
    }
    // The same statuses for another reason.
    for (status, text, says) in [
        ("404", "Not Found", "no chat API at this address"),
        (
            "404",
            "No endpoints found for a/b.",
            "refused the request (404): No endpoints",
        ),
        ("400", "tools.0.name: too long", "refused the request (400)"),
    ] {
        let server = TestServer::new(vec![refused(status, text)]);
        let provider = provider(&server, Box::new(OpenAi), "openai-compatible");
        let (public, _) = Ask::hello(false).failure(&provider);
        assert!(public.contains(says), "{public}");
    }
}

#[test]
fn a_model_that_takes_no_effort_is_asked_without() {
    let table = "
        400 | high | Unable to submit request because thinking is not supported by this model.
        400 | high | Thinking is not enabled for models/gemini-2.0-flash
        400 | high | Thinking level is not supported for this model.
        400 | none | Budget 0 is invalid. This model only works in thinking mode.
        404 | high | No endpoints found that can handle the requested parameters. To learn more, visit
        400 | high | Unrecognized request argument supplied: reasoning_effort
    ";
    for [status, effort, text] in rows(table) {
        let server = TestServer::new(vec![refused(status, text), hi(), hi()]);
        let efforts = ["none", "high"];
        let options = Options {
            reasoning_effort: efforts.into_iter().find(|one| *one == effort),
            ..Options::default()
        };
        let provider = provider_with(&server, Box::new(OpenAi), "openai-compatible", options);
        let ask = Ask::hello(false);
        assert_eq!(ask.reply(&provider).text, "Hi", "{text}");
        ask.reply(&provider);
        let efforts: Vec<Value> = server
            .heard()
            .iter()
            .map(|one| one.json()["reasoning_effort"].clone())
            .collect();
        assert_eq!(efforts, [effort.into(), Value::Null, Value::Null], "{text}");
        assert!(server.heard()[1].json()["tools"].is_array());
    }
}

/// What the household's next request has after one of a program was refused, and what the
/// program is told.
#[test]
fn what_a_program_wishes_for_teaches_nothing_about_the_model() {
    let must_call = ClientOptions {
        must_call: Some(MustCall::Any),
        ..ClientOptions::default()
    };
    let temperature = ClientOptions {
        temperature: Some(1.9),
        ..ClientOptions::default()
    };
    let format = ClientOptions {
        format: Some(Format::Json),
        ..ClientOptions::default()
    };
    let sampling = ClientOptions {
        sampling: Map::from_iter([("top_p".to_owned(), json!(0.5))]),
        ..ClientOptions::default()
    };
    let none = ClientOptions::default();
    // What the program is told, or nothing if it is answered.
    for (is_claude, client, error, told) in [
        (
            true,
            &must_call,
            "Thinking may not be enabled when tool_choice forces tool use.",
            Some("tool_choice forces"),
        ),
        (
            false,
            &must_call,
            "The tool_choice parameter does not support being set to required or object in thinking mode",
            Some("set to required"),
        ),
        (
            false,
            &must_call,
            "deepseek-reasoner does not support this tool_choice",
            Some("this tool_choice"),
        ),
        (
            false,
            &temperature,
            "Input should be less than or equal to 1.5 (temperature)",
            Some("1.5"),
        ),
        (
            false,
            &temperature,
            "Unsupported value: 'temperature' does not support 1.9 with this model.",
            None,
        ),
        (
            false,
            &format,
            "Function calling with a response mime type: 'application/json' is unsupported",
            Some("mime type"),
        ),
        (
            true,
            &sampling,
            "`temperature` and `top_p` cannot both be specified for this model.",
            None,
        ),
        (
            false,
            &none,
            "Invalid schema for function 'light': 'bogus' is not valid",
            None,
        ),
    ] {
        let answer = || match is_claude {
            true => scripted("200 {\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}"),
            false => hi(),
        };
        let mut answers = vec![refused("400", error)];
        if told.is_none() {
            answers.push(answer());
        }
        answers.push(answer());
        let server = TestServer::new(answers);
        let (dialect, name): (Box<dyn Dialect>, _) = match is_claude {
            true => (Box::new(Anthropic), "anthropic"),
            false => (Box::new(OpenAi), "openai-compatible"),
        };
        let options = Options {
            reasoning_effort: Some("high"),
            ..Options::default()
        };
        let provider = provider_with(&server, dialect, name, options);
        let mut ask = Ask::hello(false);
        ask.temperature = client.temperature.or(Some(0.3));
        ask.client = Some(client.clone());
        match told {
            Some(told) => {
                let (public, _) = ask.failure(&provider);
                assert!(public.contains(told), "{public}");
            }
            None => assert_eq!(ask.reply(&provider).text, "Hi", "{error}"),
        }
        let mut household = Ask::hello(false);
        household.temperature = Some(0.3);
        household.tools[0].parameters =
            json!({ "type": "object", "additionalProperties": false }).into();
        household.reply(&provider);
        let sent = server.heard().last().unwrap().json();
        assert_eq!(sent["temperature"], 0.3, "{error}");
        assert!(
            sent["tools"].to_string().contains("additionalProperties"),
            "{error}: {sent}"
        );
        let effort = sent
            .get("reasoning_effort")
            .or(sent["output_config"].get("effort"));
        assert_eq!(effort, Some(&json!("high")), "{error}");
    }
}

#[test]
fn a_forced_choice_is_not_dropped_with_the_tools() {
    let server = TestServer::new(vec![refused("400", "m does not support tools"), hi()]);
    let provider = provider(&server, Box::new(OpenAi), "openai-compatible");
    let mut ask = Ask::hello(false);
    ask.reply(&provider);
    ask.client = Some(ClientOptions {
        must_call: Some(MustCall::Any),
        ..ClientOptions::default()
    });
    let (public, _) = ask.failure(&provider);
    assert!(public.contains("cannot be told tool_choice"), "{public}");
    assert_eq!(server.heard().len(), 2);
}

#[test]
fn where_strict_is_unknown_a_program_is_answered_without() {
    for error in [
        "tools.0.function.strict: Extra inputs are not permitted",
        "Unknown name \"strict\" at 'tools[0].function': Cannot find field.",
        "response_format.json_schema.strict is not supported",
    ] {
        let server = TestServer::new(vec![refused("400", error), hi()]);
        let provider = provider(&server, Box::new(OpenAi), "openai-compatible");
        let mut ask = Ask::hello(false);
        ask.client = Some(ClientOptions {
            strict: vec!["light".to_owned()],
            format: Some(Format::Schema {
                name: "a".to_owned(),
                description: None,
                schema: json!({ "type": "object" }),
                is_strict: true,
            }),
            ..ClientOptions::default()
        });
        assert_eq!(ask.reply(&provider).text, "Hi", "{error}");
        let strict = server
            .heard()
            .iter()
            .map(|one| {
                let sent = one.json();
                (
                    sent["tools"][0]["function"]["strict"].clone(),
                    sent["response_format"]["json_schema"]["strict"].clone(),
                )
            })
            .collect::<Vec<_>>();
        let asked = (json!(true), json!(true));
        assert_eq!(strict, [asked, (Value::Null, Value::Null)], "{error}");
    }
    // Something else is restricted.
    let server = TestServer::new(vec![refused("400", "This account is restricted.")]);
    let provider = provider(&server, Box::new(OpenAi), "openai-compatible");
    let mut ask = Ask::hello(false);
    ask.client = Some(ClientOptions {
        strict: vec!["light".to_owned()],
        ..ClientOptions::default()
    });
    ask.failure(&provider);
}

/// What is done about an error of this status, with this word of the server on whether to try
/// again, after so many seconds, and this message.
#[test]
fn each_error_has_one_verdict() {
    let table = "
        429 | -     | -    | Rate limit reached                        | Wait(None)
        429 | -     | -    | You exceeded your current quota: billing  | NextServer
        429 | -     | 2    | You exceeded your current quota: billing  | Wait(Some(2s))
        429 | -     | 2    | Tokens per minute. Upgrade at /billing    | Wait(Some(2s))
        429 | -     | -    | Rate limit reached. Upgrade at /billing   | Wait(None)
        429 | -     | 2    | insufficient_quota                        | NextServer
        429 | -     | 2    | Your credit balance is too low            | NextServer
        429 | -     | -    | Rate limit exceeded: free-models-per-day  | NextServer
        429 | -     | 446  | Rate limit reached on tokens per day      | NextServer
        429 | -     | 34   | generaterequestsperdayperproject          | NextServer
        503 | -     | -    | Loading model                             | Wait(None)
        529 | -     | -    |                                           | Wait(None)
        408 | -     | -    |                                           | Wait(None)
        400 | -     | -    | messages: bad                             | GiveUp
        400 | -     | -    |                                           | Shorter(Perhaps)
        400 | -     | -    | Model Not Exist                           | NextServer
        400 | -     | -    | maximum context length is 8192            | Shorter(Window(8192))
        400 | -     | -    | m does not support tools                  | Without(Tools)
        400 | -     | -    | must be verified to stream this model     | Without(Stream)
        400 | -     | -    | stream_options: extra fields              | Without(StreamOptions)
        401 | -     | -    |                                           | NextServer
        400 | -     | -    | API key not valid. Please pass another.   | NextServer
        404 | -     | -    | The model `m` does not exist              | NextServer
        400 | true  | -    | messages: bad                             | Wait(None)
        500 | false | -    |                                           | NextServer
        429 | -     | 1.5  |                                           | Wait(Some(1.5s))
        429 | -     | 61.0 |                                           | NextServer
        429 | -     | NaN  |                                           | Wait(None)
    ";
    for [status, should_retry, wait, message, verdict] in rows(table) {
        let failure = Failure::Reported(Box::new(ErrorResponse {
            status: status.parse().unwrap(),
            message: message.to_owned(),
            labels: message.to_owned(),
            should_retry: should_retry.parse().ok(),
            wait: wait.parse().ok(),
            is_json: true,
            ..ErrorResponse::default()
        }));
        assert_eq!(
            format!("{:?}", verdict_on(&failure)),
            verdict,
            "{failure:?}"
        );
    }
    for (failure, verdict) in [
        (Failure::CutShort, Verdict::Wait(None)),
        (Failure::NoWord, Verdict::NextServer),
        (Failure::NoReply, Verdict::NextServer),
        (Failure::Withheld("refusal".to_owned()), Verdict::GiveUp),
        (Failure::Client(ClientError::TooLarge(1)), Verdict::GiveUp),
        (
            Failure::Client(ClientError::Refused("no".into())),
            Verdict::Wait(None),
        ),
    ] {
        assert_eq!(verdict_on(&failure), verdict, "{failure:?}");
    }
}

#[test]
fn the_wait_is_read_from_the_header_or_the_body() {
    // As Groq and Gemini write them; only a used-up account is not asked again.
    for (body, wait, is_quota) in [
        (
            json!({ "error": { "code": "rate_limit_exceeded", "message": "Rate limit reached \
                for model on tokens per minute (TPM): Limit 12000, Used 2542. Please try \
                again in 1.5s. Upgrade at https://console.groq.com/settings/billing" } }),
            Some(1.5),
            false,
        ),
        (
            json!([{ "error": { "code": 429, "message": "You exceeded your current quota, \
                please check your plan and billing details.",
                "details": [{ "retryDelay": "2s" }] } }]),
            Some(2.0),
            false,
        ),
        (
            json!({ "error": { "code": "insufficient_quota", "message": "You exceeded your \
                current quota, please check your plan and billing details." } }),
            None,
            true,
        ),
    ] {
        let response = ErrorResponse {
            status: 429,
            ..ErrorResponse::from_value(&body)
        };
        assert_eq!((response.wait, response.is_quota()), (wait, is_quota));
    }
}

#[test]
fn requests_for_something_else_than_a_reply_go_by_the_same_table() {
    let vectors = RequestKind::Vectors { has_length: true };
    let of_any_length = RequestKind::Vectors { has_length: false };
    for (kind, status, message, verdict) in [
        (
            vectors,
            400,
            "dimensions",
            Verdict::Without(Feature::VectorLength),
        ),
        (of_any_length, 400, "dimensions", Verdict::GiveUp),
        (vectors, 401, "no", Verdict::NextServer),
        (vectors, 413, "too long", Verdict::GiveUp),
        (vectors, 503, "loading", Verdict::Wait(None)),
        (RequestKind::Speech, 415, "no such format", Verdict::GiveUp),
        (
            RequestKind::Speech,
            429,
            "insufficient_quota",
            Verdict::NextServer,
        ),
        (RequestKind::Speech, 429, "slower", Verdict::Wait(None)),
        (
            RequestKind::Models,
            405,
            "no",
            Verdict::Without(Feature::ModelList),
        ),
        (
            RequestKind::Models,
            400,
            "API key not valid",
            Verdict::NextServer,
        ),
        (RequestKind::Models, 503, "loading", Verdict::Wait(None)),
    ] {
        let failure = Failure::Reported(Box::new(ErrorResponse {
            status,
            message: message.to_owned(),
            is_json: true,
            ..ErrorResponse::default()
        }));
        assert_eq!(classify(&failure, kind), verdict, "{status} {message}");
    }
    let away = Failure::Client(ClientError::Refused("no".into()));
    for kind in [vectors, RequestKind::Speech, RequestKind::Models] {
        assert_eq!(classify(&away, kind), Verdict::NextServer);
    }
}

/// What is done about a failure of a streamed request with a tool.
fn verdict_on(failure: &Failure) -> Verdict {
    let ask = Ask::hello(true);
    let service = "openai-compatible";
    ask.in_context(service, ask.capabilities(service), |context| {
        classify(failure, RequestKind::Reply(context, b"{}"))
    })
}

#[test]
fn servers_say_in_their_own_words_that_a_request_is_too_long() {
    use Overflow::{Perhaps, Unnamed, Window};
    // As the services' users quote them in public; Anthropic's second and Text Generation
    // Inference's by their documentation.
    for (status, message, expected) in [
        (
            400,
            "This model's maximum context length is 8192 tokens. However, you requested 9000 \
             tokens (3000 in the messages, 6000 in the completion).",
            Some(Window(8_192)),
        ),
        (
            400,
            "prompt is too long: 211000 tokens > 200,000 maximum",
            Some(Window(200_000)),
        ),
        (
            400,
            "input length and `max_tokens` exceed context limit: 196211 + 8192 > 200000, \
             decrease input length or `max_tokens` and try again",
            Some(Window(200_000)),
        ),
        (
            400,
            "The input token count (36211) exceeds the maximum number of tokens allowed \
             (32768).",
            Some(Window(32_768)),
        ),
        (
            400,
            "request (7052 tokens) exceeds the available context size (4096 tokens), try \
             increasing it",
            Some(Window(4_096)),
        ),
        (
            400,
            "The number of tokens to keep from the initial prompt is greater than the \
             context length. The model is loaded with context length of only 4096 tokens",
            Some(Window(4_096)),
        ),
        (
            422,
            "Prompt contains 40000 tokens ..., too large for model with 32768 maximum \
             context length",
            Some(Window(32_768)),
        ),
        (
            400,
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            Some(Window(8_192)),
        ),
        (
            400,
            "This model's maximum prompt length is 32768 but the request contains 36211 tokens.",
            Some(Window(32_768)),
        ),
        (
            400,
            "Your request exceeded model token limit: 32768 (requested: 36211)",
            Some(Window(32_768)),
        ),
        (
            400,
            "prompt token count of 36211 exceeds the limit of 32768",
            Some(Window(32_768)),
        ),
        (
            422,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. \
             Given: 36211 `inputs` tokens and 1024 `max_new_tokens`",
            Some(Window(32_769)),
        ),
        (
            429,
            "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit \
             30000, Requested 31538.",
            Some(Window(30_000)),
        ),
        (
            413,
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, \
             Requested 9855, please reduce your message size and try again.",
            Some(Window(6_000)),
        ),
        (400, "Input is too long for requested model.", Some(Unnamed)),
        (
            400,
            "Please reduce the length of the messages or completion.",
            Some(Unnamed),
        ),
        // A window of that size is none.
        (400, "maximum context length is 12 tokens", Some(Unnamed)),
        (413, "", Some(Perhaps)),
        (413, "<html>Request Entity Too Large</html>", Some(Perhaps)),
        (400, " ", Some(Perhaps)),
        (
            400,
            "Image is larger than the maximum allowed size of 10 MB",
            None,
        ),
        (400, "the number of tools exceeds the limit of 128", None),
        (429, "Rate limit reached: Limit 12000, Used 2542", None),
        (
            429,
            "Too many tokens, please wait before trying again.",
            None,
        ),
        (503, "context window", None),
        (500, "", None),
    ] {
        assert_eq!(
            Overflow::of(status, "", message),
            expected,
            "{status} {message}"
        );
    }
    let by_label = Overflow::of(400, "context_length_exceeded", "Too long.");
    assert_eq!(by_label, Some(Unnamed));
}

#[test]
fn waits_double_up_to_a_limit() {
    for (tries, longest) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (40, 8000)] {
        let wait = backoff(tries).as_millis();
        assert!(
            wait <= longest && wait >= longest * 3 / 4,
            "{wait} {longest}"
        );
    }
}
