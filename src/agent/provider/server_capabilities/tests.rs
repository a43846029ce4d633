//! Against a scripted server on loopback. The texts are those of the named services, as
//! issues of their clients quote them.

use serde_json::{Map, Value, json};

use crate::client_options::{ClientOptions, Format, MustCall};
use crate::provider::anthropic::Anthropic;
use crate::provider::dialect::{Dialect, Options};
use crate::provider::openai::OpenAi;
use crate::provider::testing::{Ask, provider, provider_with, scripted};
use base::testing::rows;
use net::http_client::test_server::{Act, TestServer};

fn refused(status: &str, message: &str) -> Vec<Act> {
    scripted(&format!(
        "{status} {}",
        json!({ "error": { "message": message } })
    ))
}

fn hi() -> Vec<Act> {
    scripted("200 {\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}")
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
