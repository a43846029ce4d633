//! What a server accepts, as far as its errors have shown. Servers and models differ, so the
//! common form is sent first, and an error that names its cause changes it once.

use super::profile::{Profile, Thoughts};
use crate::model::FileKind;

/// What OpenAI calls the limit on a reply's tokens.
const NEWER_LIMIT_NAME: &str = "max_completion_tokens";
/// The member in which servers ask for thoughts that they miss.
pub const THOUGHTS: &str = "reasoning_content";

/// What a request can go without, or how else it can be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feature {
    /// `temperature`.
    Temperature,
    /// A reasoning effort.
    Effort,
    /// Summaries of what it thinks.
    Summaries,
    /// Thinking, beside tools.
    Thinking,
    /// The Chat Completions interface: the Responses API takes it.
    ChatCompletions,
    /// The Responses API: Chat Completions take it.
    Responses,
    /// The present name of the limit on a reply's tokens.
    LimitName,
    /// The usual limit on a reply's tokens.
    LongReply,
    /// `strict` of tools and schemas.
    Strict,
    /// A stream.
    Stream,
    /// `stream_options`.
    StreamOptions,
    /// A message of the system: what it says stands before the first of a person.
    SystemRole,
    /// `cache_control` or `prompt_cache_key`.
    CacheMarks,
    /// Tools that it must leave alone.
    ToolChoice,
    /// Tools.
    Tools,
    /// All that JSON Schema has.
    FullSchemas,
    /// Replies without thoughts.
    BareReplies,
    /// The server's own extra members.
    OwnMembers,
    /// Any file of this kind.
    Kind(FileKind),
    /// More images than this.
    ImagesBeyond(usize),
    /// Single files of these kinds: `Files::accused` says which.
    Files(&'static [FileKind]),
    /// A length of vectors.
    VectorLength,
    /// A list of models.
    ModelList,
}

/// What one model of one server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerCapabilities {
    /// It accepts no `temperature`.
    pub no_temperature: bool,
    /// The limit is called `max_completion_tokens` (OpenAI's newer name), not
    /// `max_tokens`, which most others know only.
    pub newer_limit_name: bool,
    /// The other name was tried as well.
    pub limit_name_changed: bool,
    /// It cannot write as much as Hearth's default limit allows.
    pub small_limit: bool,
    /// It does not stream.
    pub no_stream: bool,
    /// It accepts no `stream_options`.
    pub no_stream_options: bool,
    /// It cannot use tools.
    pub no_tools: bool,
    /// It cannot be told to leave its tools alone.
    pub no_tool_choice: bool,
    /// It accepts only the plainest JSON Schemas of tools.
    pub plain_schemas: bool,
    /// It knows no `strict` of tools and schemas.
    pub no_strict: bool,
    /// What it wants back of its own extra members.
    pub thoughts: Thoughts,
    /// It accepts no message of the system.
    pub no_system_role: bool,
    /// It accepts neither `cache_control` nor `prompt_cache_key`.
    pub no_cache_marks: bool,
    /// It accepts no reasoning effort.
    pub no_effort: bool,
    /// It sums up no thoughts, or not for this account.
    pub no_summaries: bool,
    /// It accepts tools only with `reasoning_effort` `none`.
    pub effort_none: bool,
    /// It accepts tools only through the Responses API.
    pub needs_responses: bool,
    /// It takes no images.
    pub no_images: bool,
    /// It takes no more images in a request.
    pub most_images: Option<usize>,
    /// It takes no PDF files.
    pub no_documents: bool,
    /// Its replies begin with thoughts of which only the end is marked.
    pub opens_thinking: bool,
}

impl ServerCapabilities {
    /// What is known of a model before the first request.
    pub fn before(profile: &Profile) -> ServerCapabilities {
        ServerCapabilities {
            newer_limit_name: profile.limit_name == NEWER_LIMIT_NAME,
            no_stream_options: profile.no_stream_options,
            no_tool_choice: !profile.tool_choice,
            thoughts: profile.thoughts,
            no_effort: profile.effort.is_none(),
            needs_responses: profile.responses,
            no_images: profile.images.is_none(),
            no_documents: profile.documents.is_none(),
            opens_thinking: profile.opens_thinking,
            ..ServerCapabilities::default()
        }
    }

    /// The name of the limit on a reply's tokens.
    pub fn limit_name(&self) -> &'static str {
        if self.newer_limit_name {
            NEWER_LIMIT_NAME
        } else {
            "max_tokens"
        }
    }

    /// The same without a feature, and a description of the change.
    pub fn without(mut self, feature: Feature) -> (ServerCapabilities, &'static str) {
        let (flag, change) = match feature {
            Feature::Temperature => (&mut self.no_temperature, "without a temperature"),
            Feature::Effort => {
                self.effort_none = false;
                (&mut self.no_effort, "without a reasoning effort")
            }
            Feature::Summaries => (&mut self.no_summaries, "without summaries of its thoughts"),
            Feature::Thinking => (
                &mut self.effort_none,
                "without thinking, so that it may use tools",
            ),
            Feature::ChatCompletions => {
                self.effort_none = false;
                (&mut self.needs_responses, "through the Responses API")
            }
            Feature::Responses => {
                self.needs_responses = false;
                return (self, "through Chat Completions");
            }
            Feature::LimitName => {
                self.newer_limit_name = !self.newer_limit_name;
                (
                    &mut self.limit_name_changed,
                    "with the other name of the token limit",
                )
            }
            Feature::LongReply => (&mut self.small_limit, "for a shorter reply"),
            Feature::Strict => (&mut self.no_strict, "without `strict`"),
            Feature::Stream => (&mut self.no_stream, "without a stream"),
            Feature::StreamOptions => (&mut self.no_stream_options, "without stream options"),
            Feature::SystemRole => (&mut self.no_system_role, "without a message of the system"),
            Feature::CacheMarks => (&mut self.no_cache_marks, "without cache marks"),
            Feature::ToolChoice => (
                &mut self.no_tool_choice,
                "without tools where it must answer in words",
            ),
            Feature::Tools => (&mut self.no_tools, "without tools"),
            Feature::FullSchemas => (
                &mut self.plain_schemas,
                "with plainer descriptions of the tools",
            ),
            Feature::BareReplies => {
                self.thoughts = Thoughts::WithEveryReply(THOUGHTS);
                return (self, "with the thoughts of every reply");
            }
            Feature::OwnMembers => {
                self.thoughts = Thoughts::Nothing;
                return (self, "without its own extra members");
            }
            Feature::Kind(FileKind::Document) => (&mut self.no_documents, "without PDF files"),
            Feature::Kind(_) => (&mut self.no_images, "without images"),
            Feature::ImagesBeyond(most) => {
                self.most_images = Some(most);
                return (self, "with only as many images as it takes");
            }
            Feature::Files(_) => return (self, "without single files"),
            Feature::VectorLength => return (self, "without a length of vectors"),
            Feature::ModelList => return (self, "without a list of models"),
        };
        *flag = true;
        (self, change)
    }
}
