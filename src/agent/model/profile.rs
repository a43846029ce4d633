//! What is known of model services, and of families of models at them, before the
//! first request: one profile for each service. Requests are shaped by it, and the
//! handbook lists it. What a server's errors teach is in `server_capabilities`.

/// A service, or a kind of server, or one model there.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What people call it.
    pub name: &'static str,
    /// The value of the setting `provider`; empty if it has none of its own.
    pub provider: &'static str,
    /// Its domains. Kinds of server that people run themselves have none.
    pub hosts: &'static [&'static str],
    /// What it wants back of a model's reasoning.
    pub thoughts: Thoughts,
    /// Whether `tool_choice` can ask for an answer in words. Where it cannot, such
    /// requests describe no tools.
    pub tool_choice: bool,
    /// The name of the limit on a reply's tokens.
    pub limit_name: &'static str,
    /// The tokens of the window that Hearth uses if nobody says otherwise.
    pub window: usize,
    /// How to ask for the window, in this order.
    pub window_questions: &'static [WindowQuestion],
    /// The member that takes a reasoning effort; `None` if there is none.
    pub effort: Option<&'static str>,
    /// The form of images; `None` if it takes none.
    pub images: Option<&'static str>,
    /// Knows no `stream_options`, and counts at the end of a stream without it.
    pub no_stream_options: bool,
    /// Most images of one request.
    pub most_images: usize,
    /// Most bytes of an image, before base64.
    pub largest_image: u64,
    /// Most bytes of images and documents in one request, before base64.
    pub image_bytes: u64,
    /// The form of PDF files; `None` if it takes none.
    pub documents: Option<&'static str>,
    /// Whether a message of a person may follow the results of tools.
    pub message_after_results: bool,
    /// Ids of tool calls must be 9 letters or digits.
    pub short_call_ids: bool,
    /// Wants a signature of its own with the first call of every reply, and takes this
    /// text for calls that another model has made.
    pub call_signature: Option<&'static str>,
    /// Whether models think unless they are asked for less.
    pub thinks: bool,
    /// How its cache of the beginnings of requests is used, where it does not work by itself.
    pub cache: Option<CacheMark>,
    /// Models that think use their tools only through the Responses API, or best.
    pub responses: bool,
    /// Replies begin with thoughts of which only the end is marked, unless the server
    /// takes them out.
    pub opens_thinking: bool,
    /// How models differ there. The first family of each list counts that a model
    /// belongs to.
    pub families: &'static [&'static [Family]],
    /// Who says so, and when it was looked up.
    pub source: &'static str,
}

/// Models whose names are alike.
#[derive(Debug)]
pub struct Family {
    /// How their names begin, without the vendor; `*` stands for any letters.
    pub names: &'static [&'static str],
    /// Makes the profile of the service that of these models.
    pub adapt: fn(&mut Profile),
    /// Who says so, and when it was looked up.
    pub source: &'static str,
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

/// What a service wants to know of the beginning of a request that comes again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheMark {
    /// One name for all that begin alike: `prompt_cache_key`.
    Key,
    /// That it is to be kept: `cache_control`.
    Control,
}

/// A way to ask a server for a model's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowQuestion {
    /// `GET /props` of llama.cpp.
    Props,
    /// `GET /v1/models`: `max_model_len` of vLLM, `meta.n_ctx` of llama.cpp,
    /// `context_length` of OpenRouter and of proxies.
    Models,
    /// `GET /api/v0/models` of LM Studio.
    LmStudio,
    /// `POST /api/show` of Ollama.
    Show,
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
/// The most of a window that Hearth uses by default: a turn that sends more
/// costs much and takes long.
const LARGEST_WINDOW: usize = 272_000;

impl Profile {
    /// The service at `host`, or else that of a value of the setting `provider`, or
    /// else a server of which nothing is known.
    pub fn of(provider: &str, host: &str) -> &'static Profile {
        let at_host = SERVICES.iter().find(|service| service.is_at(host));
        let named = || SERVICES.iter().find(|service| service.provider == provider);
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
    /// service's own, something stands between that may not have every interface: it is
    /// asked for its window, which else is that of a known model, or small.
    pub fn for_model(&self, model: &str, host: &str) -> Profile {
        let mut profile = *self;
        let is_elsewhere = !self.hosts.is_empty() && !self.is_at(host);
        if is_elsewhere {
            profile.window = SMALL_WINDOW;
            // What speaks Anthropic's form says nothing of windows.
            if self.provider != "anthropic" {
                profile.window_questions = EVERY_QUESTION;
            }
        }
        for list in self.families {
            if let Some(family) = list.iter().find(|family| family.holds(model)) {
                (family.adapt)(&mut profile);
            }
        }
        profile.responses &= !is_elsewhere;
        profile.window = profile.window.min(LARGEST_WINDOW);
        profile.most_images = profile.most_images.min(MOST_IMAGES);
        profile
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

/// Every server that speaks Chat Completions, if nothing else is known of it.
pub const EVERY_SERVER: Profile = Profile {
    name: "Every server",
    provider: "",
    hosts: &[],
    thoughts: Thoughts::WithCalls,
    tool_choice: true,
    limit_name: "max_tokens",
    window: SMALL_WINDOW,
    window_questions: &[],
    effort: Some("reasoning_effort"),
    images: Some("`image_url` with a `data:` address"),
    no_stream_options: false,
    most_images: MOST_IMAGES,
    largest_image: MOST_BYTES,
    image_bytes: MOST_BYTES,
    documents: None,
    message_after_results: true,
    short_call_ids: false,
    call_signature: None,
    thinks: false,
    cache: None,
    responses: false,
    opens_thinking: false,
    families: &[AT_HOME],
    source: "openai-python 3.52.0; Ollama, llama-cpp-python and Mistral, which know no other name \
             of the limit; guesses (reasoning, window, PDF files); November 2026",
};

/// How to ask where any server may be.
const EVERY_QUESTION: &[WindowQuestion] = &[
    WindowQuestion::Models,
    WindowQuestion::Props,
    WindowQuestion::LmStudio,
];

/// Models that people run themselves.
const AT_HOME: &[Family] = &[Family {
    names: &["deepseek-r1", "qwq", "qwen3*thinking"],
    adapt: |profile| profile.opens_thinking = true,
    source: "the chat templates that come with these models; not tried, November 2026",
}];

const GPT: &[Family] = &[
    Family {
        names: &["gpt-5.4", "gpt-5.5"],
        adapt: |profile| profile.window = 1_050_000,
        source: OPENAI_TABLES,
    },
    Family {
        names: &["gpt-5.6", "gpt-6"],
        adapt: |profile| profile.window = 922_000,
        source: OPENAI_TABLES,
    },
    Family {
        names: &["gpt-5"],
        adapt: |profile| profile.window = 272_000,
        source: OPENAI_TABLES,
    },
    Family {
        names: &[
            "gpt-4.1",
            "gpt-4o",
            "gpt-4-turbo",
            "chatgpt-4o",
            "o1",
            "o3",
            "o4",
        ],
        adapt: |profile| profile.window = 128_000,
        source: OPENAI_TABLES,
    },
];

const GPT_INTERFACES: &[Family] = &[
    // They do not think.
    Family {
        names: &["gpt-5*-chat", "gpt-4"],
        adapt: |profile| profile.effort = None,
        source: OPENAI_TABLES,
    },
    Family {
        names: &["gpt-5", "gpt-6", "o1", "o3", "o4"],
        adapt: |profile| (profile.responses, profile.thinks) = (true, true),
        source: OPENAI_TABLES,
    },
];

const CLAUDE: &[Family] = &[Family {
    names: &["claude"],
    adapt: |profile| profile.window = 200_000,
    source: "common knowledge, not looked up, November 2026",
}];

/// OpenRouter passes the mark on to those that have such a cache.
const CLAUDE_MARKS: &[Family] = &[Family {
    names: &["claude"],
    adapt: |profile| profile.cache = Some(CacheMark::Control),
    source: "OpenRouter's documentation (prompt caching), November 2026",
}];

const CLAUDE_EFFORT: &[Family] = &[Family {
    names: &[
        "claude-3",
        "claude-*-4-0",
        "claude-*-4-1",
        "claude-*-4-5",
        "claude-*-4-2025",
    ],
    adapt: |profile| profile.effort = None,
    source: "anthropic-python 2.11.0, November 2026",
}];

const GEMINI: &[Family] = &[Family {
    names: &["gemini-3"],
    adapt: |profile| profile.call_signature = Some("skip_thought_signature_validator"),
    source: "Gemini's documentation (thought signatures), November 2026",
}];

const OPENAI_TABLES: &str = "@ai-sdk/openai 3.0.141 and litellm 1.106.2, November 2026";

/// A service with the usual window of large ones: few models have less.
const fn hosted(
    name: &'static str,
    provider: &'static str,
    hosts: &'static [&'static str],
) -> Profile {
    Profile {
        name,
        provider,
        hosts,
        window: 128_000,
        families: &[],
        source: "a guess, November 2026",
        ..EVERY_SERVER
    }
}

/// All services, in the order of the setting `provider`.
pub const SERVICES: &[Profile] = &[
    Profile {
        limit_name: "max_completion_tokens",
        most_images: 500,
        cache: Some(CacheMark::Key),
        documents: Some("`file`, or `input_file` of the Responses API"),
        families: &[GPT, GPT_INTERFACES],
        source: "openai-python 3.52.0; OpenAI's documentation (images, file inputs); \
                 a guess (window); November 2026",
        ..hosted("OpenAI", "openai", &["openai.com"])
    },
    Profile {
        effort: Some("output_config.effort"),
        images: Some("`image` blocks in base64, also in results of tools"),
        most_images: 100,
        // 5 MiB of base64.
        largest_image: 5 * 1024 * 1024 / 4 * 3,
        documents: Some("`document` blocks in base64"),
        families: &[CLAUDE, CLAUDE_EFFORT],
        source: "anthropic-python 2.11.0; Anthropic's documentation (vision: images in a \
                 request); errors of its API in issues of its clients (pi #424, lobehub #14711: \
                 size of images); a guess (window); November 2026",
        ..hosted("Anthropic", "anthropic", &["anthropic.com"])
    },
    Profile {
        name: "Ollama",
        provider: "ollama",
        tool_choice: false,
        limit_name: "options.num_predict",
        // Every request sets it (`num_ctx`).
        window: 16_384,
        window_questions: &[WindowQuestion::Show],
        effort: Some("think"),
        images: Some("`images` in base64"),
        source: "Ollama's source of August 2026 and ollama-python 0.6.3; Hearth sets the window \
                 in every request (`num_ctx`); November 2026",
        ..EVERY_SERVER
    },
    Profile {
        documents: Some("`file`"),
        families: &[GPT, CLAUDE, CLAUDE_MARKS],
        source: "OpenRouter's documentation (PDF inputs); a guess (window); November 2026",
        ..hosted("OpenRouter", "openrouter", &["openrouter.ai"])
    },
    Profile {
        most_images: 5,
        // 4 MB of base64.
        image_bytes: 2_900_000,
        source: "measured by the authors of pi (#120: number of images); Groq's documentation \
                 (vision); a guess (window); November 2026",
        ..hosted("Groq", "groq", &["groq.com"])
    },
    Profile {
        thoughts: Thoughts::Nothing,
        no_stream_options: true,
        most_images: 8,
        message_after_results: false,
        short_call_ids: true,
        source: "Mistral's documentation (reasoning, ids); mistralai 3.7.0 for Python (streams); \
                 measured by the authors of pi (#120: number of images); common knowledge, not \
                 looked up (images of tools); a guess (window); November 2026",
        ..hosted("Mistral", "mistral", &["mistral.ai"])
    },
    Profile {
        thoughts: Thoughts::WithEveryReply("reasoning_content"),
        thinks: true,
        source: "DeepSeek's documentation (thinking mode) and issues of its clients; a guess \
                 (window); November 2026",
        ..hosted("DeepSeek", "deepseek", &["deepseek.com"])
    },
    Profile {
        families: &[GEMINI],
        ..hosted("Gemini", "gemini", &["googleapis.com"])
    },
    hosted("xAI", "xai", &["x.ai"]),
    hosted("Together", "together", &["together.xyz", "together.ai"]),
    hosted("Fireworks", "fireworks", &["fireworks.ai"]),
    hosted("Cerebras", "cerebras", &["cerebras.ai"]),
    Profile {
        name: "LM Studio",
        provider: "lmstudio",
        window_questions: &[WindowQuestion::LmStudio],
        source: "LM Studio's documentation of its REST API, November 2026",
        ..EVERY_SERVER
    },
    Profile {
        name: "llama.cpp",
        provider: "llamacpp",
        window_questions: &[WindowQuestion::Props, WindowQuestion::Models],
        source: "llama.cpp's documentation of its server; its version of October 2026, tried \
                 (limit on a reply); November 2026",
        ..EVERY_SERVER
    },
    Profile {
        name: "vLLM",
        provider: "vllm",
        window_questions: &[WindowQuestion::Models],
        source: "vLLM's documentation, November 2026",
        ..EVERY_SERVER
    },
    Profile {
        name: "Another server (`openai-compatible`)",
        provider: "openai-compatible",
        window_questions: EVERY_QUESTION,
        source: "as of the servers above that may be behind such an address, November 2026",
        ..EVERY_SERVER
    },
    Profile {
        families: &[GPT],
        ..hosted("Azure OpenAI", "", &["azure.com"])
    },
    Profile {
        thoughts: Thoughts::WithEveryReply("reasoning_content"),
        source: "issues of kimi-cli and hermes-agent; a guess (window); November 2026",
        ..hosted("Moonshot", "", &["moonshot.ai", "moonshot.cn"])
    },
];

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
            openai            | proxy.example    | gpt-5              | 272000
            openai            | proxy.example    | gpt-4o-mini        | 128000
            openai            | proxy.example    | llama              | 8192
            anthropic         | proxy.example    | claude-x           | 200000
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
            let window = Profile::of(provider, host).for_model(model, host).window;
            assert_eq!(window.to_string(), expected, "{provider} {host} {model}");
        }
    }

    #[test]
    fn families_differ() {
        let openai = |model| Profile::of("openai", "").for_model(model, "api.openai.com");
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
        let proxied = Profile::of("openai", "").for_model("gpt-5", "127.0.0.1");
        assert!(!proxied.responses);
        assert_eq!(proxied.limit_name, "max_completion_tokens");
        let opens = |model| {
            Profile::of("llamacpp", "")
                .for_model(model, "nas")
                .opens_thinking
        };
        assert!(opens("DeepSeek-R1-Distill-Qwen-7B") && opens("qwen/qwen3-30b-a3b-thinking-2507"));
        assert!(!opens("qwen3-8b") && !opens("llama"));
        let claude = |model| {
            Profile::of("anthropic", "")
                .for_model(model, "")
                .effort
                .is_some()
        };
        assert!(claude("claude-opus-5") && !claude("claude-sonnet-4-5"));
    }

    #[test]
    fn the_table_holds_together() {
        for service in SERVICES {
            let same = SERVICES.iter().filter(|other| other.name == service.name);
            assert_eq!(same.count(), 1, "{}", service.name);
            if !service.provider.is_empty() {
                let found = Profile::of(service.provider, "");
                assert_eq!(found.name, service.name);
            }
            let families = service.families.iter().copied().flatten();
            let of_families = families.map(|family| family.source);
            for source in std::iter::once(service.source).chain(of_families) {
                assert!(source.contains("2026"), "{}: {source}", service.name);
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
