use serde_json::json;

use super::*;

fn openai(value: Value) -> Result<OptionsRead> {
    of_openai(value.as_object().unwrap().clone())
}

#[test]
fn what_a_program_wants_is_passed_on() {
    let tool = json!({ "type": "function", "function": { "name": "light", "description": "x",
            "strict": true } });
    let read = openai(json!({
        "tools": [tool], "tool_choice": "required", "stop": "END", "max_tokens": 5,
        "temperature": 0.5, "top_p": 1, "seed": 7, "logprobs": false, "user": "ada",
        "response_format": { "type": "json_schema",
            "json_schema": { "name": "a", "schema": { "type": "object" }, "strict": true,
                "description": "b" } },
    }));
    let OptionsRead { program, ignored } = read.unwrap();
    let ProgramOptions {
        reply: client,
        tools,
    } = program;
    assert_eq!(tools[0].name, "light");
    assert_eq!(
        *tools[0].parameters,
        json!({ "type": "object", "properties": {} })
    );
    let schema = json!({ "type": "object" });
    let name = "a".to_owned();
    assert_eq!(
        client,
        ClientOptions {
            stop: vec!["END".to_owned()],
            format: Some(Format::Schema {
                name,
                description: Some("b".to_owned()),
                schema,
                is_strict: true,
            }),
            strict: vec!["light".to_owned()],
            must_call: Some(MustCall::Any),
            may_not_call: false,
            max_tokens: Some(5),
            temperature: Some(0.5),
            sampling: json!({ "seed": 7 }).as_object().unwrap().clone(),
        }
    );
    assert_eq!(ignored, ["user"]);
    assert_eq!(
        openai(json!({ "top_p": 1.0, "n": null })).unwrap(),
        OptionsRead::default()
    );
    let none = json!({ "tools": [{ "function": { "name": "a" } }], "tool_choice": "none" });
    let ProgramOptions {
        reply: client,
        tools,
    } = openai(none).unwrap().program;
    assert!(client.may_not_call && tools.len() == 1);

    let options = json!({ "format": "json", "options":
        { "stop": ["a", "b"], "num_predict": 9, "num_ctx": 8192, "top_k": 4 }, "think": true });
    let OptionsRead { program, ignored } = of_ollama(options.as_object().unwrap().clone()).unwrap();
    let client = program.reply;
    assert_eq!(client.stop, ["a", "b"]);
    assert_eq!(
        (client.max_tokens, client.format),
        (Some(9), Some(Format::Json))
    );
    assert_eq!(ignored, ["num_ctx", "think"]);
}

#[test]
fn more_than_any_model_writes_is_no_limit() {
    let read = openai(json!({ "max_tokens": 1_000_000_000_000_u64 })).unwrap();
    assert_eq!(read.program.reply.max_tokens, Some(u32::MAX));
}

#[test]
fn what_cannot_be_passed_on_is_refused() {
    for (value, says) in [
        (
            json!({ "logprobs": true }),
            "\"logprobs\" cannot be passed on",
        ),
        (json!({ "functions": [{}] }), "\"functions\" cannot"),
        (json!({ "modalities": ["text", "audio"] }), "\"modalities\""),
        (
            json!({ "tools": [{ "type": "web_search" }], "tool_choice": "required" }),
            "where there are no",
        ),
        (
            json!({ "tools": [], "tool_choice": { "type": "web_search" } }),
            "or a function",
        ),
        (
            json!({ "tools": [{ "function": { "name": "a b" } }] }),
            "with names",
        ),
        (json!({ "tool_choice": "required" }), "\"tool_choice\""),
        (json!({ "stop": 7 }), "\"stop\""),
        (
            json!({ "tools": [{ "function": { "name": "a", "strict": 1 } }] }),
            "\"tools.strict\" must be true or false",
        ),
        (json!({ "tools": ["a"] }), "\"tools\" must be of objects"),
        (
            json!({ "response_format": { "type": "json_schema", "name": "a" } }),
            "with a \"schema\"",
        ),
        (
            json!({ "response_format": { "type": "json_schema", "schema": {}, "description": 1 } }),
            "\"response_format.description\" must be a text",
        ),
        (
            json!({ "max_tokens": 0 }),
            "\"max_tokens\" must be a whole number of at least 1",
        ),
        (json!({ "temperature": 9 }), "\"temperature\""),
        (
            json!({ "response_format": { "type": "grammar" } }),
            "\"response_format\"",
        ),
    ] {
        let error = openai(value.clone()).unwrap_err();
        assert!(error.message().contains(says), "{value}: {error}");
    }
}

#[test]
fn what_has_no_effect_is_named_wherever_it_stands() {
    let read = openai(json!({
        "tools": [{ "type": "function", "x": 1, "function": { "name": "a", "y": 1, "z": null } }],
        "response_format": { "type": "json_schema", "schema": {}, "x": 1 },
    }));
    let ignored = read.unwrap().ignored;
    assert_eq!(ignored, ["tools.x", "tools.y", "response_format.x"]);
    assert_eq!(
        ignored_header(&[&ignored[..], &ignored].concat()),
        ignored.join(", ")
    );
    let many: Vec<String> = (0..300).map(|number| format!("zz{number}")).collect();
    let header = ignored_header(&many);
    assert!(
        header.starts_with("zz0, zz1, ") && header.ends_with(", ..."),
        "{header}"
    );
    assert!(header.len() < 2 * IGNORED_BYTES, "{header}");
    assert_eq!(ignored_header(&["a b".to_owned()]), "...");
}

#[test]
fn what_is_only_a_hint_to_a_service_is_named() {
    let read = openai(json!({
        "tools": [{ "function": { "name": "a", "strict": true } }],
        "response_format": { "type": "json_schema", "schema": {}, "description": "b" },
    }));
    let client = read.unwrap().program.reply;
    let (strict, described) = ("tools.strict", "response_format.description");
    for (provider, hints) in [
        ("openai", &[][..]),
        ("anthropic", &[described]),
        ("ollama", &[strict, described]),
    ] {
        let provider = provider.to_owned();
        let config = Config {
            provider,
            ..Config::default()
        };
        assert_eq!(only_hints(&config, &client), hints);
    }
}
