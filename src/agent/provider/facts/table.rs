//! The table.

use super::{Fact, Family, Says, Service, Thoughts, WindowQuestion};

const fn fact(says: Says, source: &'static str) -> Fact {
    Fact { says, source }
}

const OPENAI_SDK: &str = "openai-python 3.52.0, November 2026";
const OPENAI_TABLES: &str = "@ai-sdk/openai 3.0.141 and litellm 1.106.2, November 2026";
const ANTHROPIC_SDK: &str = "anthropic-python 2.11.0, November 2026";
const ANTHROPIC_VISION: &str = "Anthropic's documentation (vision), November 2026";
const ANTHROPIC_ERRORS: &str =
    "errors of its API in issues of its clients (pi #424, lobehub #14711), November 2026";
const OPENAI_FILES: &str = "OpenAI's documentation (images, file inputs), November 2026";
const OPENROUTER_DOCS: &str = "OpenRouter's documentation (PDF inputs), November 2026";
const GROQ_DOCS: &str = "Groq's documentation (vision), November 2026";
const IMAGE_TESTS: &str = "measured by the authors of pi (#120), looked up in November 2026";
const OLLAMA_SOURCE: &str = "Ollama's source of August 2026 and ollama-python 0.6.3, November 2026";
const LLAMACPP_TRIED: &str = "llama.cpp of October 2026; tried, November 2026";
const LLAMACPP_DOCS: &str = "llama.cpp's documentation of its server, November 2026";
const LMSTUDIO_DOCS: &str = "LM Studio's documentation of its REST API, November 2026";
const VLLM_DOCS: &str = "vLLM's documentation, November 2026";
const MISTRAL_DOCS: &str = "Mistral's documentation, November 2026";
const DEEPSEEK_DOCS: &str =
    "DeepSeek's documentation (thinking mode) and issues of its clients, November 2026";
const GEMINI_DOCS: &str = "Gemini's documentation (thought signatures), November 2026";
const MOONSHOT_ISSUES: &str = "issues of kimi-cli and hermes-agent, November 2026";
const TEMPLATES: &str = "the chat templates that come with these models; not tried, November 2026";
const COMMON: &str = "common knowledge, not looked up, November 2026";
const CAUTION: &str = "a guess, November 2026";

/// The usual window of the models of large services: few have less.
const LARGE: Fact = fact(Says::Window(128_000), CAUTION);

/// Every server that speaks Chat Completions, if nothing else is known of it.
pub const EVERY_SERVER: Service = Service {
    name: "Every server",
    provider: "",
    hosts: &[],
    facts: &[
        fact(Says::Thoughts(Thoughts::WithCalls), CAUTION),
        fact(Says::Window(8_192), CAUTION),
        fact(
            Says::Limit("max_tokens"),
            "Ollama, llama-cpp-python and Mistral know no other name, November 2026",
        ),
        fact(Says::ToolChoice(true), OPENAI_SDK),
        fact(Says::Effort(Some("reasoning_effort")), OPENAI_SDK),
        fact(
            Says::Images(Some("`image_url` with a `data:` address")),
            OPENAI_SDK,
        ),
        fact(Says::Documents(None), CAUTION),
        fact(Says::MessageAfterResults(true), OPENAI_SDK),
    ],
    families: &[AT_HOME],
};

const GPT: &[Family] = &[
    Family {
        names: &["gpt-5.4", "gpt-5.5"],
        facts: &[fact(Says::Window(1_050_000), OPENAI_TABLES)],
    },
    Family {
        names: &["gpt-5.6", "gpt-6"],
        facts: &[fact(Says::Window(922_000), OPENAI_TABLES)],
    },
    Family {
        names: &["gpt-5"],
        facts: &[fact(Says::Window(272_000), OPENAI_TABLES)],
    },
];

const GPT_INTERFACES: &[Family] = &[
    // They do not think.
    Family {
        names: &["gpt-5*-chat"],
        facts: &[fact(Says::Effort(None), OPENAI_TABLES)],
    },
    Family {
        names: &["gpt-5", "gpt-6", "o1", "o3", "o4"],
        facts: &[fact(Says::Responses, OPENAI_TABLES)],
    },
    Family {
        names: &["gpt-4"],
        facts: &[fact(Says::Effort(None), OPENAI_TABLES)],
    },
];

const CLAUDE: &[Family] = &[Family {
    names: &["claude"],
    facts: &[fact(Says::Window(200_000), COMMON)],
}];

const CLAUDE_EFFORT: &[Family] = &[Family {
    names: &[
        "claude-3",
        "claude-*-4-0",
        "claude-*-4-1",
        "claude-*-4-5",
        "claude-*-4-2025",
    ],
    facts: &[fact(Says::Effort(None), ANTHROPIC_SDK)],
}];

const GEMINI: &[Family] = &[Family {
    names: &["gemini-3"],
    facts: &[fact(
        Says::CallSignature("skip_thought_signature_validator"),
        GEMINI_DOCS,
    )],
}];

/// Models that people run themselves.
const AT_HOME: &[Family] = &[Family {
    names: &["deepseek-r1", "qwq", "qwen3*thinking"],
    facts: &[fact(Says::OpensThinking, TEMPLATES)],
}];

/// Of a service with nothing but a large window.
const fn hosted(
    name: &'static str,
    provider: &'static str,
    hosts: &'static [&'static str],
) -> Service {
    Service {
        name,
        provider,
        hosts,
        facts: &[LARGE],
        families: &[],
    }
}

/// All services, in the order of the setting `provider`.
pub const SERVICES: &[Service] = &[
    Service {
        facts: &[
            fact(Says::Limit("max_completion_tokens"), OPENAI_SDK),
            fact(Says::LimitCountsThinking(true), OPENAI_SDK),
            fact(Says::MostImages(500), OPENAI_FILES),
            fact(
                Says::Documents(Some("`file`, or `input_file` of the Responses API")),
                OPENAI_FILES,
            ),
            LARGE,
        ],
        families: &[GPT, GPT_INTERFACES],
        ..hosted("OpenAI", "openai", &["openai.com"])
    },
    Service {
        facts: &[
            fact(Says::Thoughts(Thoughts::WithCalls), ANTHROPIC_SDK),
            fact(Says::ToolChoice(true), ANTHROPIC_SDK),
            fact(Says::LimitCountsThinking(true), ANTHROPIC_SDK),
            fact(Says::Effort(Some("output_config.effort")), ANTHROPIC_SDK),
            fact(
                Says::Images(Some("`image` blocks in base64, also in results of tools")),
                ANTHROPIC_SDK,
            ),
            fact(Says::MostImages(100), ANTHROPIC_VISION),
            // 5 MiB of base64.
            fact(
                Says::LargestImage(5 * 1024 * 1024 / 4 * 3),
                ANTHROPIC_ERRORS,
            ),
            fact(
                Says::Documents(Some("`document` blocks in base64")),
                ANTHROPIC_SDK,
            ),
            fact(Says::Window(128_000), CAUTION),
        ],
        families: &[CLAUDE, CLAUDE_EFFORT],
        ..hosted("Anthropic", "anthropic", &["anthropic.com"])
    },
    Service {
        facts: &[
            fact(Says::Thoughts(Thoughts::WithCalls), OLLAMA_SOURCE),
            fact(Says::ToolChoice(false), OLLAMA_SOURCE),
            fact(Says::Limit("options.num_predict"), OLLAMA_SOURCE),
            fact(Says::Effort(Some("think")), OLLAMA_SOURCE),
            fact(Says::Images(Some("`images` in base64")), OLLAMA_SOURCE),
            fact(Says::Documents(None), OLLAMA_SOURCE),
            fact(
                Says::WindowQuestions(&[WindowQuestion::Show]),
                OLLAMA_SOURCE,
            ),
            fact(
                Says::Window(16_384),
                "Hearth sets it in every request (`num_ctx`), November 2026",
            ),
            fact(Says::LimitCountsThinking(true), COMMON),
        ],
        families: &[AT_HOME],
        ..hosted("Ollama", "ollama", &[])
    },
    Service {
        facts: &[
            fact(Says::Documents(Some("`file`")), OPENROUTER_DOCS),
            LARGE,
        ],
        families: &[GPT, CLAUDE],
        ..hosted("OpenRouter", "openrouter", &["openrouter.ai"])
    },
    Service {
        facts: &[
            fact(Says::MostImages(5), IMAGE_TESTS),
            // 4 MB of base64.
            fact(Says::ImageBytes(2_900_000), GROQ_DOCS),
            LARGE,
        ],
        ..hosted("Groq", "groq", &["groq.com"])
    },
    Service {
        facts: &[
            fact(Says::Thoughts(Thoughts::Nothing), MISTRAL_DOCS),
            fact(Says::ShortCallIds, MISTRAL_DOCS),
            fact(
                Says::NoStreamOptions,
                "mistralai 3.7.0 for Python, November 2026",
            ),
            fact(Says::MostImages(8), IMAGE_TESTS),
            fact(Says::MessageAfterResults(false), COMMON),
            LARGE,
        ],
        ..hosted("Mistral", "mistral", &["mistral.ai"])
    },
    Service {
        facts: &[
            fact(
                Says::Thoughts(Thoughts::WithEveryReply("reasoning_content")),
                DEEPSEEK_DOCS,
            ),
            fact(Says::LimitCountsThinking(true), COMMON),
            LARGE,
        ],
        ..hosted("DeepSeek", "deepseek", &["deepseek.com"])
    },
    Service {
        facts: &[
            fact(Says::Thoughts(Thoughts::WithCalls), GEMINI_DOCS),
            fact(Says::LimitCountsThinking(true), COMMON),
            LARGE,
        ],
        families: &[GEMINI],
        ..hosted("Gemini", "gemini", &["googleapis.com"])
    },
    hosted("xAI", "xai", &["x.ai"]),
    hosted("Together", "together", &["together.xyz", "together.ai"]),
    hosted("Fireworks", "fireworks", &["fireworks.ai"]),
    hosted("Cerebras", "cerebras", &["cerebras.ai"]),
    Service {
        facts: &[fact(
            Says::WindowQuestions(&[WindowQuestion::LmStudio]),
            LMSTUDIO_DOCS,
        )],
        families: &[AT_HOME],
        ..hosted("LM Studio", "lmstudio", &[])
    },
    Service {
        facts: &[
            fact(Says::Limit("max_tokens"), LLAMACPP_TRIED),
            fact(
                Says::WindowQuestions(&[WindowQuestion::Props, WindowQuestion::Models]),
                LLAMACPP_DOCS,
            ),
        ],
        families: &[AT_HOME],
        ..hosted("llama.cpp", "llamacpp", &[])
    },
    Service {
        facts: &[fact(
            Says::WindowQuestions(&[WindowQuestion::Models]),
            VLLM_DOCS,
        )],
        families: &[AT_HOME],
        ..hosted("vLLM", "vllm", &[])
    },
    Service {
        facts: &[fact(
            Says::WindowQuestions(&[
                WindowQuestion::Models,
                WindowQuestion::Props,
                WindowQuestion::LmStudio,
            ]),
            "as of the servers above that may be behind such an address, November 2026",
        )],
        families: &[AT_HOME],
        ..hosted(
            "Another server (`openai-compatible`)",
            "openai-compatible",
            &[],
        )
    },
    Service {
        families: &[GPT],
        ..hosted("Azure OpenAI", "", &["azure.com"])
    },
    Service {
        facts: &[
            fact(
                Says::Thoughts(Thoughts::WithEveryReply("reasoning_content")),
                MOONSHOT_ISSUES,
            ),
            LARGE,
        ],
        ..hosted("Moonshot", "", &["moonshot.ai", "moonshot.cn"])
    },
];
