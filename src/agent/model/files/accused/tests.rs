//! Against a scripted server on loopback.

use serde_json::{Value, json};

use crate::model::anthropic::Anthropic;
use crate::model::dialect::Dialect;
use crate::model::files::tests::{Held, ask, image, with};
use crate::model::openai::OpenAi;
use crate::model::testing::{Ask, hi, provider, scripted, user};
use crate::model::{Cause, ChatMessage, Provider, ProviderError};
use base::ids::AttachmentId;
use net::http_client::test_server::{Act, TestServer};
use protocol::attachment::encode;

/// The images that a request shows.
fn shown(request: &Value) -> usize {
    request.to_string().matches("image_url\":{").count()
}

#[test]
fn refused_images_are_left_out_and_said_so() {
    // What the server answers to the first requests, how many requests the first and the
    // second question take, and how many images the last of each shows.
    for (errors, first, second) in [
        (
            &["unknown variant `image_url`, expected `text`"][..],
            (2, 0),
            (1, 0),
        ),
        (&["This model does not support image input"], (2, 0), (1, 0)),
        (
            &["'messages.1.content' : value must be a string"],
            (2, 0),
            (1, 0),
        ),
        // Something is wrong with the newest.
        (&["Could not process image"], (2, 1), (1, 1)),
        // Or with the other one: the newest is shown then.
        (
            &["Could not process image", "Invalid image data"],
            (3, 1),
            (1, 1),
        ),
        // Or with both, and nobody has said that it takes none.
        (&["Could not process image"; 3], (4, 0), (1, 0)),
    ] {
        let mut answers: Vec<Vec<Act>> = errors
            .iter()
            .map(|error| scripted(&format!("400 {}", json!({ "error": { "message": error } }))))
            .collect();
        answers.extend([hi(), hi()]);
        let server = TestServer::new(answers);
        let provider = provider(&server, Box::new(OpenAi), "openai");
        let mut asked = 0;
        for (requests, images) in [first, second] {
            assert_eq!(ask().reply(&provider).text, "Hi", "{errors:?}");
            asked += requests;
            let sent = server.heard();
            assert_eq!(sent.len(), asked, "{errors:?}");
            let last = sent.last().unwrap().json();
            assert_eq!(shown(&last), images, "{errors:?}");
            let text = last.to_string();
            assert!(text.contains("is not shown to you"), "{text}");
            let is_said = !errors[0].contains("process");
            assert_eq!(provider.takes("m").images, !is_said, "{errors:?}");
        }
    }
}

#[test]
fn an_error_about_something_else_is_not_about_images() {
    let server = TestServer::new(vec![
        scripted("400 {\"error\":{\"message\":\"temperature is not allowed\"}}"),
        hi(),
        scripted(
            "400 {\"error\":{\"message\":\"The decoder prompt (length 9000) is longer than the \
             maximum model length of 8192. Mind the multimodal tokens of images.\"}}",
        ),
        hi(),
    ]);
    let provider = provider(&server, Box::new(OpenAi), "openai");
    let mut ask = ask();
    ask.temperature = Some(1.0);
    ask.reply(&provider);
    assert_eq!(shown(&server.heard()[1].json()), 2);
    let refused = ask.of(&provider).0;
    assert!(matches!(
        refused,
        Err(ProviderError::Failed {
            cause: Cause::Length { .. },
            ..
        })
    ));
    ask.reply(&provider);
    assert_eq!(shown(&server.heard()[3].json()), 2);
}

/// A conversation with one image in each message.
fn album(count: i64) -> Ask {
    let held = (0..count).map(|id| (AttachmentId::from(id), format!("picture {id}").into_bytes()));
    Ask {
        files: Box::new(Held(held.collect())),
        messages: (0..count)
            .map(|id| with(user("look"), vec![image(id)]))
            .collect(),
        ..Ask::hello(false)
    }
}

/// Which of its images each request shows.
fn shown_of_album(server: &TestServer) -> Vec<Vec<i64>> {
    let ids = |text: String| {
        let is_shown = |id: &i64| text.contains(&encode(format!("picture {id}").as_bytes()));
        (0..9).filter(is_shown).collect()
    };
    let heard = server.heard();
    heard
        .iter()
        .map(|one| ids(one.json().to_string()))
        .collect()
}

#[test]
fn the_image_that_an_error_names_is_left_out() {
    let claude = || scripted("200 {\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]}");
    let openai: fn() -> Box<dyn Dialect> = || Box::new(OpenAi);
    let anthropic: fn() -> Box<dyn Dialect> = || Box::new(Anthropic);
    // Neighbours are one message there, and each image stands before its text.
    let pixels = "messages.0.content.2.image.source.base64.data: At least one of the image \
                  dimensions exceed max allowed size: 8000 pixels";
    for (dialect, name, error, expected) in [
        (anthropic, "anthropic", json!({ "message": pixels }), [0, 2]),
        (
            openai,
            "openai",
            json!({ "message": "messages[1].content[1]: Invalid image" }),
            [1, 2],
        ),
        (
            openai,
            "openai",
            json!({ "message": "Invalid image", "param": "messages.[2].content.[1].image_url" }),
            [0, 2],
        ),
        // Nothing of the kind is there.
        (
            openai,
            "openai",
            json!({ "message": "messages[9].content[1]: Invalid image" }),
            [0, 1],
        ),
    ] {
        let hi = || if name == "openai" { hi() } else { claude() };
        let server = TestServer::new(vec![
            scripted(&format!("400 {}", json!({ "error": error }))),
            hi(),
            hi(),
        ]);
        let provider = provider(&server, dialect(), name);
        album(3).reply(&provider);
        album(3).reply(&provider);
        let expected = expected.to_vec();
        assert_eq!(
            shown_of_album(&server)[1..],
            [expected.clone(), expected],
            "{error}"
        );
        assert!(provider.takes("m").images);
    }
}

#[test]
fn the_newest_images_are_kept_where_there_are_too_many() {
    // vLLM, Mistral and others, Claude, DeepInfra, MiniMax, Fireworks, Copilot; the last two say
    // something else.
    for (error, kept) in [
        ("At most 1 image(s) may be provided in one prompt.", 1),
        ("At most 2 image(s) may be provided in one request.", 2),
        ("Too many images in request. Max is 2.", 2),
        ("Too much media: 0 document pages + 3 images > 2", 2),
        ("Too many images in request: 3 > 2", 2),
        (
            "request contains 3 images, exceeding the maximum of 2 allowed per request",
            2,
        ),
        (
            "we currently limit the number of images per conversation to 1",
            1,
        ),
        ("too many URL images in request (max 2)", 2),
        ("At most 0 image(s) may be provided in one prompt.", 0),
    ] {
        let refused = scripted(&format!("400 {}", json!({ "error": { "message": error } })));
        let server = TestServer::new(vec![refused, hi(), hi()]);
        let provider = provider(&server, Box::new(OpenAi), "openai");
        album(3).reply(&provider);
        album(4).reply(&provider);
        let newest = |count: i64| (count - kept..count).collect::<Vec<i64>>();
        let shown = [(0..3).collect(), newest(3), newest(4)];
        assert_eq!(shown_of_album(&server), shown, "{error}");
        assert_eq!(provider.takes("m").images, kept > 0);
        if kept > 0 {
            let text = server.heard()[1].json().to_string();
            let why = format!(
                "newer images took its place: the service of the model takes at most {kept} in"
            );
            assert!(text.contains(&why), "{text}");
        }
    }
}

#[test]
fn an_image_that_was_taken_is_innocent() {
    let bad = || scripted("400 {\"error\":{\"message\":\"Could not process image\"}}");
    // The second message has two new images and one that was taken.
    let server = TestServer::new(vec![hi(), bad(), hi(), hi()]);
    let provider = provider(&server, Box::new(OpenAi), "openai");
    let mut ask = album(3);
    ask.messages.truncate(1);
    ask.reply(&provider);
    ask.messages
        .push(with(user("look"), vec![image(1), image(0)]));
    ask.reply(&provider);
    ask.reply(&provider);
    assert_eq!(
        shown_of_album(&server),
        [vec![0], vec![0, 1], vec![0], vec![0]]
    );
}

#[test]
fn a_request_that_is_too_large_for_a_proxy_says_nothing_about_the_model() {
    let large = || scripted("413 [content-type: text/html] <h1>413 Request Entity Too Large</h1>");
    let server = TestServer::new(vec![large(), large(), large(), hi()]);
    let provider = provider(&server, Box::new(OpenAi), "openai");
    let mut ask = album(3);
    for message in &mut ask.messages {
        if let ChatMessage::User { files, .. } = message {
            files[0].bytes = 100_000;
        }
    }
    ask.reply(&provider);
    let shown = [vec![0, 1, 2], vec![2], vec![0, 1], vec![]];
    assert_eq!(shown_of_album(&server), shown);
    assert!(provider.takes("m").images);
}

#[test]
fn the_cause_that_an_error_names_first_comes_first() {
    let bounds = "`temperature` may only be set to 1 when thinking is enabled. Please consult our \
                  documentation at https://docs/image";
    for (error, is_file) in [
        (bounds, false),
        ("The request is provisioned for temperature 1 only", false),
        ("Could not process the document; see temperature", true),
        ("Invalid PDF", true),
    ] {
        let refused = scripted(&format!("400 {}", json!({ "error": { "message": error } })));
        let server = TestServer::new(vec![refused, hi()]);
        let provider = provider(&server, Box::new(OpenAi), "openai");
        let mut ask = ask();
        ask.temperature = Some(0.5);
        ask.reply(&provider);
        let sent = server.heard()[1].json();
        let has_file = sent.to_string().contains("file_data");
        assert_eq!(
            (has_file, sent.get("temperature").is_some()),
            (!is_file, is_file),
            "{error}"
        );
    }
}

#[test]
fn a_name_such_as_vision_is_not_about_images() {
    // What the requests after the first show, and whether a reply comes in the end.
    for (status, error, shows, is_answered) in [
        (
            400,
            "registry.ollama.ai/library/Llama3.2-vision:latest does not support tools",
            Some(2),
            true,
        ),
        (
            404,
            "model 'llama3.2-vision' not found, try pulling it first",
            None,
            false,
        ),
        (404, "No endpoints found for llama3.2-vision.", None, false),
        (400, "messages.3.tool_call_id must be a string", None, false),
    ] {
        let error = json!({ "error": { "message": error } });
        let server = TestServer::new(vec![scripted(&format!("{status} {error}")), hi()]);
        let provider = provider(&server, Box::new(OpenAi), "openai-compatible");
        let ask = Ask {
            model: "llama3.2-vision",
            ..ask()
        };
        match is_answered {
            true => drop(ask.reply(&provider)),
            false => drop(ask.failure(&provider)),
        }
        let heard = server.heard();
        let second = heard.get(1).map(|one| shown(&one.json()));
        assert_eq!(second, shows, "{error}");
        assert!(provider.takes("llama3.2-vision").images);
    }
}

#[test]
fn images_that_were_accused_for_nothing_are_shown_again() {
    let rejected = || {
        let error = "Your prompt was rejected: it asks to produce an image of a person.";
        scripted(&format!("400 {}", json!({ "error": { "message": error } })))
    };
    let server = TestServer::new(vec![rejected(), rejected(), rejected(), rejected(), hi()]);
    let provider = provider(&server, Box::new(OpenAi), "openai");
    ask().failure(&provider);
    let before = server.heard().len();
    assert_eq!(shown(&server.heard()[before - 1].json()), 0);
    ask().reply(&provider);
    assert_eq!(shown(&server.heard()[before].json()), 2);
}
