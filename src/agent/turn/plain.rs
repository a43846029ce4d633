//! A reply of the model without the household: no tools, memory or past but what the
//! program that asks brings along. Nothing of it is stored but what it cost.

use std::path::Path;
use std::time::Instant;

use crate::Assistant;
use crate::model::budget;
use crate::model::client_options::ClientOptions;
use crate::model::estimate::file_tokens;
use crate::model::{
    ChatMessage, FileKind, FileReader, Heard, ModelFile, ModelReply, ModelRequest, Takes, ToolSpec,
};
use crate::prompt::system::LIMITS;
use crate::tools::output::{MAX_RESULT_CHARS, cap_text};
use crate::tools::{PdfTexts, text_of};
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::{AttachmentId, UserId};
use base::secret::random_bytes;
use net::cancel::Cancel;
use store::{IncludedFile, Purpose, Store, Usage};

/// Who asks for what.
pub struct PlainRequest<'a> {
    /// The person, whose budget it is.
    pub user: (UserId, &'a str),
    /// The program's own system prompt.
    pub system: &'a str,
    /// All that was said, the question last.
    pub messages: &'a [ChatMessage<'a>],
    /// Their files.
    pub files: &'a BroughtFiles,
    /// The program's tools, which it runs itself.
    pub tools: &'a [ToolSpec],
    /// What it wants of the reply.
    pub client: &'a ClientOptions,
    /// Whether to pass on text and thoughts as they arrive.
    pub stream: bool,
    /// What the program that reads PDFs must not see.
    pub data_dir: &'a Path,
    /// When the time is up.
    pub deadline: Instant,
    /// Stops it.
    pub cancel: &'a Cancel,
}

/// Files that a request brings along. They are in memory as long as it is answered.
#[derive(Default)]
pub struct BroughtFiles(Vec<(AttachmentId, Vec<u8>)>);

impl BroughtFiles {
    /// Adds one; returns it as a message has it.
    pub fn add(&mut self, file: IncludedFile) -> ModelFile {
        // Random, since providers remember for a day which files a model has refused.
        let id = AttachmentId::from(i64::from_le_bytes(random_bytes::<8>()) & i64::MAX);
        let mut brought = ModelFile {
            id,
            media_type: file.media_type().to_owned(),
            name: file.name,
            bytes: file.data.len() as u64,
            most_chars: MAX_RESULT_CHARS,
            is_folded: false,
            tokens: 0,
        };
        let takes = Takes {
            images: true,
            documents: true,
        };
        let (kind, most) = (brought.kind(), brought.most_chars);
        brought.tokens = file_tokens(kind, brought.bytes, most, takes);
        self.0.push((id, file.data));
        brought
    }

    fn find(&self, file: &ModelFile) -> Option<&[u8]> {
        let found = self.0.iter().find(|(id, _)| *id == file.id);
        found.map(|(_, bytes)| &**bytes)
    }
}

/// Reads them; each PDF once.
struct Reader<'a>(&'a PlainRequest<'a>, PdfTexts);

impl FileReader for Reader<'_> {
    fn bytes(&self, file: &ModelFile) -> Option<Vec<u8>> {
        self.0.files.find(file).map(<[u8]>::to_vec)
    }

    fn text(&self, file: &ModelFile) -> Option<String> {
        let Reader(asked, pdfs) = self;
        let text = match file.kind() {
            FileKind::Text => text_of(asked.files.find(file)?)?,
            FileKind::Document => {
                let (deadline, cancel) = (asked.deadline, asked.cancel);
                let text = pdfs.of(
                    file.id,
                    || self.bytes(file),
                    asked.data_dir,
                    deadline,
                    cancel,
                );
                text.ok()?
            }
            _ => return None,
        };
        Some(cap_text(text, file.most_chars))
    }
}

/// Asks the model. What the household tells the model about the person holds here too.
///
/// # Errors
/// `server_error`: the budget is used up, or the model gave no answer.
pub fn reply(
    assistant: &Assistant,
    store: &Store,
    clock: &Clock,
    asked: &PlainRequest<'_>,
    listener: &mut dyn FnMut(Heard<'_>),
) -> Result<ModelReply> {
    let config = &assistant.config;
    let (user, name) = asked.user;
    let person = config.person(name);
    let its = person.map(|person| (user, person));
    budget::check(config, store, clock.now(), Usage::default(), its)?;
    let about = person.and_then(|person| person.instructions.as_deref());
    let limits = about.filter(|_| !asked.system.is_empty()).map(|_| LIMITS);
    let parts = [Some(asked.system), limits, about];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    let system = parts.join("\n\n");
    let of_program = asked.client.max_tokens;
    let request = ModelRequest {
        model: &config.model,
        system: system.trim(),
        messages: asked.messages,
        files: &Reader(asked, PdfTexts::default()),
        tools: asked.tools,
        may_call: !asked.client.may_not_call,
        purpose: Purpose::Program,
        conversation: None,
        client: Some(asked.client),
        words: store.words_of(asked.user.0),
        temperature: asked.client.temperature.or(config.temperature),
        max_tokens: of_program.into_iter().chain(config.max_tokens).min(),
        stream: asked.stream,
        has_next: false,
        deadline: asked.deadline,
        cancel: asked.cancel,
    };
    let began = Instant::now();
    let answer = assistant.servers.complete(&request, listener);
    assistant.meter.note(began.elapsed(), &answer);
    let mut reply = answer.map_err(crate::model::ProviderError::into_error)?;
    let model = reply.model.as_deref().unwrap_or(&config.model);
    store.note_usage_of(user, reply.usage, model, Purpose::Program);
    let is_offered = |tool: &String| asked.tools.iter().any(|one| one.name == *tool);
    let called = reply.calls.len();
    reply
        .calls
        .retain(|call| request.may_call && is_offered(&call.tool));
    if reply.calls.is_empty() && called > 0 && reply.text.is_empty() {
        let why = "the model called only tools that the request does not offer, and said nothing";
        return Err(Error::server(why, "a plain reply"));
    }
    Ok(reply)
}
