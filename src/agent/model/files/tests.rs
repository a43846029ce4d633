//! Against a scripted server on loopback.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::model::FileReader;
use crate::model::anthropic::Anthropic;
use crate::model::dialect::Dialect;
use crate::model::ollama::Ollama;
use crate::model::openai::OpenAi;
use crate::model::profile::MOST_BYTES;
use crate::model::testing::{Ask, assistant, call, tool_result, user};

/// Files by their ids; an image holds its id, so that it is known in a request.
pub struct Held(pub BTreeMap<AttachmentId, Vec<u8>>);

impl FileReader for Held {
    fn bytes(&self, file: &ModelFile) -> Option<Vec<u8>> {
        self.0.get(&file.id).cloned()
    }

    fn text(&self, file: &ModelFile) -> Option<String> {
        let text = self.bytes(file).filter(|_| file.kind() == FileKind::Text);
        String::from_utf8(text?).ok()
    }
}

fn file(id: i64, name: &str, media_type: &str, bytes: u64) -> ModelFile {
    ModelFile {
        id: AttachmentId::from(id),
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes,
        most_chars: 1_000,
        is_folded: false,
        tokens: 10,
    }
}

pub fn image(id: i64) -> ModelFile {
    file(id, "a.png", "image/png", 1)
}

pub fn with(message: ChatMessage<'static>, added: Vec<ModelFile>) -> ChatMessage<'static> {
    match message {
        ChatMessage::User { content, .. } => ChatMessage::User {
            content,
            files: added,
        },
        ChatMessage::ToolResult {
            call_id,
            tool,
            content,
            ok,
            ..
        } => ChatMessage::ToolResult {
            call_id,
            tool,
            content,
            ok,
            files: added,
        },
        message => message,
    }
}

/// A message with three files, and a call whose result has an image.
pub fn ask() -> Ask {
    let names = [(1, "image"), (2, "a;b"), (3, "pdf"), (4, "tool")];
    let held = names.map(|(id, content)| (AttachmentId::from(id), content.as_bytes().to_vec()));
    let mut ask = Ask::hello(false);
    let files = vec![
        image(1),
        file(2, "a.csv", "text/plain", 3),
        file(3, "a.pdf", "application/pdf", 3),
        file(5, "a.zip", "application/octet-stream", 3),
    ];
    ask.files = Box::new(Held(held.into()));
    ask.messages = vec![
        with(user("look"), files),
        assistant("", vec![call("callabcde", "light", "{}")], None),
        with(tool_result("callabcde", "on", true), vec![image(4)]),
    ];
    ask
}

/// The request to a service.
fn sent(dialect: &dyn Dialect, service: &str, needs_responses: bool) -> Value {
    let ask = ask();
    let mut capabilities = ask.capabilities(service);
    capabilities.needs_responses = needs_responses;
    ask.body(dialect, service, capabilities)
}

/// What follows the message's own text, without the codes of its fences.
fn behind(text: &Value) -> String {
    let text = text.as_str().unwrap();
    let lines = text.lines().map(|line| match line.strip_prefix('<') {
        Some(tag) => tag.split([' ', '>']).next().unwrap(),
        None => line,
    });
    lines.collect::<Vec<_>>().join("|")
}

const TEXT: &str = "look|outside|File 2:|a;b|/outside";
const ZIP: &str = "|note|File 4 is not shown to you: files of its type cannot be read here. \
    Say so if that matters for your answer.|/note";
const PDF: &str = "|note|File 3 is not shown to you: the model that you are takes no PDF files. \
    Say so if that matters for your answer.|/note";

#[test]
fn each_dialect_has_its_form() {
    let sent_to = sent(&Anthropic, "anthropic", false);
    let messages = &sent_to["messages"];
    let block = |kind: &str, media_type: &str, content: &str| {
        let data = encode(content.as_bytes());
        let source = json!({ "type": "base64", "media_type": media_type, "data": data });
        json!({ "type": kind, "source": source })
    };
    let first = &messages[0]["content"];
    assert_eq!(first[0], block("image", "image/png", "image"));
    assert_eq!(first[1], block("document", "application/pdf", "pdf"));
    assert_eq!(behind(&first[2]["text"]), format!("{TEXT}{ZIP}"));
    let result = &messages[2]["content"][0];
    assert_eq!(
        result["content"][0],
        json!({ "type": "text", "text": "on" })
    );
    assert_eq!(result["content"][1], block("image", "image/png", "tool"));

    let url = |media_type: &str, content: &str| {
        format!("data:{media_type};base64,{}", encode(content.as_bytes()))
    };
    let sent_to = sent(&OpenAi, "openai", false);
    let messages = &sent_to["messages"];
    let first = &messages[1]["content"];
    let text = first[0]["text"].clone();
    assert_eq!(behind(&text), format!("{TEXT}{ZIP}"));
    let image = |content: &str| json!({ "type": "image_url", "image_url": { "url": url("image/png", content) } });
    let pdf = json!({ "filename": "a.pdf", "file_data": url("application/pdf", "pdf") });
    assert_eq!(
        *first,
        json!([{ "type": "text", "text": text }, image("image"), { "type": "file", "file": pdf }])
    );
    assert_eq!(messages[3]["content"], "on");
    let last = &messages[4];
    assert_eq!(
        (&last["role"], &last["content"][1]),
        (&json!("user"), &image("tool"))
    );
    assert_eq!(last["content"][0]["text"], FROM_RESULTS);

    let sent_to = sent(&OpenAi, "openai", true);
    let input = &sent_to["input"];
    let image = |content: &str| json!({ "type": "input_image", "image_url": url("image/png", content), "detail": "auto" });
    let first = &input[0]["content"];
    assert_eq!(
        (&first[0]["type"], &first[1]),
        (&json!("input_text"), &image("image"))
    );
    let pdf = json!({
        "type": "input_file", "filename": "a.pdf", "file_data": url("application/pdf", "pdf"),
    });
    assert_eq!(first[2], pdf);
    assert_eq!(
        input[2]["output"],
        json!([{ "type": "input_text", "text": "on" }, image("tool")])
    );

    let sent_to = sent(&Ollama, "ollama", false);
    let messages = &sent_to["messages"];
    let first = &messages[1];
    assert_eq!(behind(&first["content"]), format!("{TEXT}{PDF}{ZIP}"));
    assert_eq!(first["images"], json!([encode(b"image")]));
    assert_eq!(messages[3].get("images"), None);
    assert_eq!(messages[4]["role"], "user");
    assert_eq!(messages[4]["images"], json!([encode(b"tool")]));

    // No message of a person may stand behind a result there.
    let sent_to = sent(&OpenAi, "mistral", false);
    let messages = sent_to["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    let result = messages[3]["content"].as_str().unwrap();
    assert!(
        result.contains("you are not shown those of this one"),
        "{result}"
    );
}

/// The images of these sizes that are within the bound.
fn kept(sizes: &[u64]) -> Vec<usize> {
    let messages: Vec<ChatMessage<'_>> = sizes
        .iter()
        .zip(0..)
        .map(|(bytes, id)| with(user(""), vec![file(id, "a.png", "image/png", *bytes)]))
        .collect();
    let ask = Ask {
        messages,
        ..Ask::hello(false)
    };
    let profile = crate::model::profile::EVERY_SERVER.for_model("m", "");
    let capabilities = ServerCapabilities::before(&profile);
    let request = ask.request();
    let files = Files::of(&request, profile, capabilities, BTreeSet::new());
    let is_kept = |id: &usize| files.kept.contains(&AttachmentId::from(*id as i64));
    (0..sizes.len()).filter(is_kept).collect()
}

#[test]
fn the_oldest_go_in_big_steps() {
    let all = |count: usize| (0..count).collect::<Vec<_>>();
    assert_eq!(kept(&[1; 20]), all(20));
    // From 21 on, the eleven newest, until there are 20 again.
    for count in 21..=30 {
        assert_eq!(kept(&vec![1; count]), (10..count).collect::<Vec<_>>());
    }
    assert_eq!(kept(&vec![1; 31]).len(), 11);
    let third = MOST_BYTES / 3;
    assert_eq!(kept(&[third; 3]), all(3));
    assert_eq!(kept(&[third; 4]), [3]);
    assert_eq!(kept(&[third; 6]), [3, 4, 5]);
    assert_eq!(kept(&[1, MOST_BYTES + 1, 1]), [0, 2]);
    assert_eq!(kept(&[MOST_BYTES, MOST_BYTES]), [1]);
}
