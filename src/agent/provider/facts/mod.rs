//! What is known of model services, and of families of models at them, before the
//! first request: data with the source of each fact. Requests are shaped by it, and
//! the handbook lists it. What a server's errors teach is in `server_capabilities`.

mod table;

use std::fmt;

pub use table::{EVERY_SERVER, SERVICES};

/// A service, or a kind of server.
pub struct Service {
    /// What people call it.
    pub name: &'static str,
    /// The value of the setting `provider`; empty if it has none of its own.
    pub provider: &'static str,
    /// Its domains. Kinds of server that people run themselves have none.
    pub hosts: &'static [&'static str],
    /// How it differs from [`EVERY_SERVER`].
    pub facts: &'static [Fact],
    /// How models differ there. The first family of each list counts that a model
    /// belongs to.
    pub families: &'static [&'static [Family]],
}

/// Models whose names are alike.
pub struct Family {
    /// How their names begin, without the vendor; `*` stands for any letters.
    pub names: &'static [&'static str],
    /// How they differ from the others of the service.
    pub facts: &'static [Fact],
}

/// One fact.
pub struct Fact {
    /// What is so.
    pub says: Says,
    /// Who says so, and when it was looked up.
    pub source: &'static str,
}

/// What a fact says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Says {
    /// What it wants back of a model's reasoning.
    Thoughts(Thoughts),
    /// Whether `tool_choice` can ask for an answer in words. Where it cannot, such
    /// requests describe no tools.
    ToolChoice(bool),
    /// The name of the limit on a reply's tokens.
    Limit(&'static str),
    /// Whether thinking counts within that limit.
    LimitCountsThinking(bool),
    /// The tokens of the window that Hearth uses if nobody says otherwise.
    Window(usize),
    /// How to ask for the window, in this order.
    WindowQuestions(&'static [WindowQuestion]),
    /// The member that takes a reasoning effort; `None` if there is none.
    Effort(Option<&'static str>),
    /// The form of images; `None` if it takes none.
    Images(Option<&'static str>),
    /// Knows no `stream_options`, and counts at the end of a stream without it.
    NoStreamOptions,
    /// Most images of one request.
    MostImages(usize),
    /// Most bytes of an image, before base64.
    LargestImage(u64),
    /// Most bytes of images and documents in one request, before base64.
    ImageBytes(u64),
    /// The form of PDF files; `None` if it takes none.
    Documents(Option<&'static str>),
    /// Whether a message of a person may follow the results of tools.
    MessageAfterResults(bool),
    /// Ids of tool calls must be 9 letters or digits.
    ShortCallIds,
    /// Wants a signature of its own with the first call of every reply, and takes this
    /// text for calls that another model has made.
    CallSignature(&'static str),
    /// Models that think use their tools only through the Responses API, or best.
    Responses,
    /// Replies begin with thoughts of which only the end is marked, unless the server
    /// takes them out.
    OpensThinking,
}

/// What a service wants back of a model's reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Thoughts {
    /// Nothing: it refuses them.
    Nothing,
    /// As they came, in the replies with calls that they led to.
    #[default]
    WithCalls,
    /// In this member of every reply, empty where there are none.
    WithEveryReply(&'static str),
}

/// A way to ask a server for a model's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowQuestion {
    /// `GET /props` of llama.cpp.
    Props,
    /// `GET /v1/models`: `max_model_len` of vLLM, `meta.n_ctx` of llama.cpp.
    Models,
    /// `GET /api/v0/models` of LM Studio.
    LmStudio,
    /// `POST /api/show` of Ollama.
    Show,
}

/// What is known of one model at one service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traits {
    /// See [`Says::Thoughts`].
    pub thoughts: Thoughts,
    /// See [`Says::ToolChoice`].
    pub tool_choice: bool,
    /// See [`Says::Limit`].
    pub limit_name: &'static str,
    /// See [`Says::Window`].
    pub window: usize,
    /// See [`Says::WindowQuestions`].
    pub window_questions: &'static [WindowQuestion],
    /// See [`Says::Effort`].
    pub effort: bool,
    /// See [`Says::Images`].
    pub images: bool,
    /// See [`Says::NoStreamOptions`].
    pub no_stream_options: bool,
    /// See [`Says::MostImages`].
    pub most_images: usize,
    /// See [`Says::LargestImage`].
    pub largest_image: u64,
    /// See [`Says::ImageBytes`].
    pub image_bytes: u64,
    /// See [`Says::Documents`].
    pub documents: bool,
    /// See [`Says::MessageAfterResults`].
    pub message_after_results: bool,
    /// See [`Says::ShortCallIds`].
    pub short_call_ids: bool,
    /// See [`Says::CallSignature`].
    pub call_signature: Option<&'static str>,
    /// See [`Says::Responses`].
    pub responses: bool,
    /// See [`Says::OpensThinking`].
    pub opens_thinking: bool,
}

/// Most images of a request that Hearth sends: with more, Anthropic refuses those of more
/// than 2,000 pixels.
pub const MOST_IMAGES: usize = 20;
/// Most bytes of images and documents in one request, before base64: a small computer
/// has this in memory twice, and services take 20 MB and more.
pub const MOST_BYTES: u64 = 12 * 1024 * 1024;
/// The window of a model of which nothing is known: many servers load models with no
/// more.
const SMALL_WINDOW: usize = 8_192;
/// The most of a window that Hearth uses unless it is told to: a turn that sends more
/// costs much and takes long.
const LARGEST_WINDOW: usize = 272_000;

impl Service {
    /// The service at `host`, or else that of a value of the setting `provider`, or
    /// else a server of which nothing is known.
    pub fn of(provider: &str, host: &str) -> &'static Service {
        let mut services = SERVICES.iter();
        let at_host = services.find(|service| service.is_at(host));
        let mut services = SERVICES.iter();
        let named = || services.find(|service| service.provider == provider);
        at_host.or_else(named).unwrap_or(&EVERY_SERVER)
    }

    /// Whether `host` is one of its own.
    pub fn is_at(&self, host: &str) -> bool {
        self.hosts.iter().any(|domain| {
            let rest = host.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// What is known of a model there, which is asked at `host`. Where that is not the
    /// service's own, something stands between that may have a smaller window and not
    /// every interface.
    pub fn traits(&self, model: &str, host: &str) -> Traits {
        let mut traits = Traits {
            thoughts: Thoughts::default(),
            tool_choice: true,
            limit_name: "max_tokens",
            window: SMALL_WINDOW,
            window_questions: &[],
            effort: true,
            images: true,
            no_stream_options: false,
            most_images: MOST_IMAGES,
            largest_image: MOST_BYTES,
            image_bytes: MOST_BYTES,
            documents: false,
            message_after_results: true,
            short_call_ids: false,
            call_signature: None,
            responses: false,
            opens_thinking: false,
        };
        let families = self.families.iter().filter_map(|list| {
            let mut list = list.iter();
            list.find(|family| family.holds(model))
        });
        let of_families = families.flat_map(|family| family.facts);
        let facts = EVERY_SERVER
            .facts
            .iter()
            .chain(self.facts)
            .chain(of_families);
        facts.for_each(|fact| traits.take(fact.says));
        if !self.hosts.is_empty() && !self.is_at(host) {
            traits.window = SMALL_WINDOW;
            traits.responses = false;
        }
        traits.window = traits.window.min(LARGEST_WINDOW);
        traits
    }
}

impl Traits {
    fn take(&mut self, says: Says) {
        match says {
            Says::Thoughts(thoughts) => self.thoughts = thoughts,
            Says::ToolChoice(is_known) => self.tool_choice = is_known,
            Says::Limit(name) => self.limit_name = name,
            Says::LimitCountsThinking(_) => {}
            Says::Window(tokens) => self.window = tokens,
            Says::WindowQuestions(questions) => self.window_questions = questions,
            Says::Effort(member) => self.effort = member.is_some(),
            Says::Images(form) => self.images = form.is_some(),
            Says::NoStreamOptions => self.no_stream_options = true,
            Says::MostImages(most) => self.most_images = most.min(MOST_IMAGES),
            Says::LargestImage(bytes) => self.largest_image = bytes.min(MOST_BYTES),
            Says::ImageBytes(bytes) => self.image_bytes = bytes.min(MOST_BYTES),
            Says::Documents(form) => self.documents = form.is_some(),
            Says::MessageAfterResults(may) => self.message_after_results = may,
            Says::ShortCallIds => self.short_call_ids = true,
            Says::CallSignature(foreign) => self.call_signature = Some(foreign),
            Says::Responses => self.responses = true,
            Says::OpensThinking => self.opens_thinking = true,
        }
    }
}

impl Family {
    /// Whether a model of this name belongs to it.
    fn holds(&self, model: &str) -> bool {
        // OpenRouter, LM Studio and others put the vendor before the name.
        let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
        self.names.iter().any(|pattern| {
            let mut parts = pattern.split('*');
            let begin = parts.next().unwrap_or_default();
            let mut rest = name.strip_prefix(begin);
            for part in parts {
                rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
            }
            rest.is_some()
        })
    }
}

/// A sentence without its subject and its full stop.
impl fmt::Display for Says {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Says::Thoughts(Thoughts::Nothing) => f.write_str("wants no reasoning back"),
            Says::Thoughts(Thoughts::WithCalls) => {
                f.write_str("gets its reasoning back with the calls that it led to")
            }
            Says::Thoughts(Thoughts::WithEveryReply(member)) => write!(
                f,
                "wants its reasoning back with every reply, in `{member}`, empty where it has none"
            ),
            Says::ToolChoice(true) => f.write_str("is told by `tool_choice` to answer in words"),
            Says::ToolChoice(false) => {
                f.write_str("is told to answer in words by leaving the tools out")
            }
            Says::Limit(name) => write!(f, "takes the limit on a reply as `{name}`"),
            Says::LimitCountsThinking(true) => f.write_str("counts thinking within `max_tokens`"),
            Says::LimitCountsThinking(false) => {
                f.write_str("does not count thinking within `max_tokens`")
            }
            Says::Window(tokens) => write!(f, "has a window of {tokens} tokens"),
            Says::WindowQuestions(questions) => {
                let words: Vec<String> = questions.iter().map(ToString::to_string).collect();
                write!(f, "is asked for its window: {}", words.join(", then "))
            }
            Says::Effort(Some(member)) => write!(f, "takes a reasoning effort as `{member}`"),
            Says::Effort(None) => f.write_str("takes no reasoning effort"),
            Says::Images(Some(form)) => write!(f, "takes images as {form}"),
            Says::Images(None) => f.write_str("takes no images"),
            Says::NoStreamOptions => f.write_str("counts the tokens of a stream unasked"),
            Says::MostImages(most) => write!(f, "takes at most {most} images in a request"),
            Says::LargestImage(bytes) => write!(f, "takes images of at most {} KiB", bytes / 1024),
            Says::ImageBytes(bytes) => {
                write!(
                    f,
                    "takes at most {} KiB of images in a request",
                    bytes / 1024
                )
            }
            Says::Documents(Some(form)) => write!(f, "takes PDF files as {form}"),
            Says::Documents(None) => f.write_str("takes no PDF files"),
            Says::MessageAfterResults(true) => {
                f.write_str("is shown the images of tools in a message behind their results")
            }
            Says::MessageAfterResults(false) => f.write_str(
                "is not shown the images of tools: it takes no message behind their results",
            ),
            Says::ShortCallIds => f.write_str("wants ids of tool calls of 9 letters or digits"),
            Says::CallSignature(foreign) => write!(
                f,
                "wants its signature of a call back, and `{foreign}` with calls of other models"
            ),
            Says::Responses => f.write_str("is asked through the Responses API first"),
            Says::OpensThinking => f.write_str(
                "marks only the end of its thoughts, if its server does not take them out",
            ),
        }
    }
}

impl fmt::Display for WindowQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowQuestion::Props => "`n_ctx` of one slot in `/props`",
            WindowQuestion::Models => "`max_model_len` or `meta.n_ctx` in `/v1/models`",
            WindowQuestion::LmStudio => {
                "`loaded_context_length` or `max_context_length` in `/api/v0/models`"
            }
            WindowQuestion::Show => "`num_ctx` and `context_length` in `/api/show`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn the_window_is_that_of_service_and_model() {
        let table = "
            openai            | api.openai.com   | gpt-5              | 272000
            openai            | api.openai.com   | gpt-5.5            | 272000
            openai            | api.openai.com   | gpt-4.1-mini       | 128000
            openai            | proxy.example    | gpt-5              | 8192
            anthropic         | api.anthropic.com | claude-x          | 200000
            ollama            | 127.0.0.1        | llama              | 16384
            ollama            | ollama.com       | llama              | 16384
            cerebras          | api.cerebras.ai  | llama              | 128000
            llamacpp          | 127.0.0.1        | llama              | 8192
            openai-compatible | 127.0.0.1        | gpt-5              | 8192
            openai-compatible | nas.local        | llama              | 8192
            openai-compatible | llm.example      | llama              | 8192
            openai-compatible | notx.ai          | llama              | 8192
            openai-compatible | openrouter.ai    | anthropic/claude-x | 200000
            openai-compatible | api.mistral.ai   | large              | 128000
            openai-compatible | eu.azure.com     | gpt-5-mini         | 272000
        ";
        for [provider, host, model, expected] in rows(table) {
            let window = Service::of(provider, host).traits(model, host).window;
            assert_eq!(window.to_string(), expected, "{provider} {host} {model}");
        }
    }

    #[test]
    fn families_differ() {
        let openai = |model| Service::of("openai", "").traits(model, "api.openai.com");
        for (model, responses) in [
            ("gpt-5", true),
            ("gpt-5-mini", true),
            ("o3", true),
            ("o4-mini", true),
            ("gpt-6.1-sol", true),
            ("gpt-5-chat-latest", false),
            ("gpt-4.1", false),
            ("omni", false),
        ] {
            assert_eq!(openai(model).responses, responses, "{model}");
        }
        let proxied = Service::of("openai", "").traits("gpt-5", "127.0.0.1");
        assert!(!proxied.responses);
        assert_eq!(proxied.limit_name, "max_completion_tokens");
        let opens = |model| {
            Service::of("llamacpp", "")
                .traits(model, "nas")
                .opens_thinking
        };
        assert!(opens("DeepSeek-R1-Distill-Qwen-7B") && opens("qwen/qwen3-30b-a3b-thinking-2507"));
        assert!(!opens("qwen3-8b") && !opens("llama"));
        let claude = |model| Service::of("anthropic", "").traits(model, "").effort;
        assert!(claude("claude-opus-5") && !claude("claude-sonnet-4-5"));
    }

    #[test]
    fn the_table_holds_together() {
        for service in SERVICES {
            let same = SERVICES.iter().filter(|other| other.name == service.name);
            assert_eq!(same.count(), 1, "{}", service.name);
            if !service.provider.is_empty() {
                let found = Service::of(service.provider, "");
                assert_eq!(found.name, service.name);
            }
            let families = service.families.iter().copied().flatten();
            let of_families = families.flat_map(|family| family.facts);
            for fact in service.facts.iter().chain(of_families) {
                assert!(
                    fact.source.contains("2026"),
                    "{}: {}",
                    service.name,
                    fact.says
                );
            }
        }
        for preset in config::PRESETS {
            let is_known = SERVICES
                .iter()
                .any(|service| service.provider == preset.name);
            let has_none = matches!(preset.name, "offline" | "litellm");
            assert!(is_known != has_none, "{}", preset.name);
        }
    }
}
