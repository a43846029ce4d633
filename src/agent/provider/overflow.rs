//! Whether a server's error means that the request is too long for the model, and how large
//! it says the model's window is.

/// What servers say when a request is too long, and what stands right before the size of the
/// window, if they name it; in lower case.
const TEXTS: &[(&str, &str)] = &[
    // OpenAI, DeepSeek, OpenRouter, vLLM: "... length is 8192 tokens. However, ...".
    ("maximum context length", "maximum context length is "),
    ("context_length_exceeded", ""),
    ("context window", ""),
    // Anthropic: "prompt is too long: 211000 tokens > 200000 maximum".
    ("prompt is too long", "tokens > "),
    // Anthropic: "input length and `max_tokens` exceed context limit: 196211 + 8192 > 200000".
    ("exceed context limit", " > "),
    // Bedrock.
    ("input is too long", ""),
    // Gemini: "The input token count (36211) exceeds the maximum number of tokens allowed
    // (32768)."
    ("maximum number of tokens", "tokens allowed ("),
    // llama.cpp: "request (7052 tokens) exceeds the available context size (4096 tokens)".
    ("available context size", "context size ("),
    ("exceed_context_size", "context size ("),
    // LM Studio: "... when context the overflows. However, the model is loaded with context
    // length of only 4096 tokens".
    ("context length", "context length of only "),
    // Mistral: "too large for model with 32768 maximum context length".
    ("too large for model", "too large for model with "),
    // vLLM: "is longer than the maximum model length of 8192".
    ("maximum model length", "maximum model length of "),
    // xAI: "This model's maximum prompt length is 131072 but the request contains ...".
    ("maximum prompt length", "maximum prompt length is "),
    // Moonshot: "Your request exceeded model token limit: 8192 (requested: 9000)".
    ("exceeded model token limit", "token limit: "),
    // GitHub Copilot: "prompt token count of 36211 exceeds the limit of 32768".
    ("prompt token count", "exceeds the limit of "),
    // Text Generation Inference: "`inputs` tokens + `max_new_tokens` must be <= 32769".
    ("`max_new_tokens` must be", "must be <= "),
    // Groq.
    ("reduce the length of the messages", ""),
    ("maximum context", ""),
    ("too many tokens", ""),
];
/// One request that takes more than the account may use in a minute never passes:
/// "Request too large for gpt-4o ... on tokens per min (TPM): Limit 30000, Requested 31538"
/// (OpenAI with 429, Groq with 413).
const SHARE_OF_A_MINUTE: (&str, &str) = ("request too large", "limit ");
/// Fewest and most tokens that a window may have; another number is something else.
const CREDIBLE: std::ops::RangeInclusive<usize> = 512..=10_000_000;

/// That a request is too long for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The window has so many tokens, as the server says.
    Window(usize),
    /// The server does not say how large the window is.
    Unnamed,
    /// Perhaps: the server, or what stands before it, gives no reason.
    Perhaps,
}

impl Overflow {
    /// What an error with this status, these labels (in lower case) and this message says of
    /// the length of a request; none if it is about something else.
    pub fn of(status: u16, labels: &str, message: &str) -> Option<Overflow> {
        let said = message.to_lowercase();
        let texts = match status {
            200 | 400 | 413 | 422 | 500 => TEXTS,
            _ => &[],
        };
        let share = matches!(status, 413 | 429).then_some(&SHARE_OF_A_MINUTE);
        let mut found = texts
            .iter()
            .chain(share)
            .filter(|(text, _)| said.contains(text) || labels.contains(text))
            .peekable();
        if found.peek().is_some() {
            let window = found.find_map(|(_, before)| number_after(&said, before));
            return Some(window.map_or(Overflow::Unnamed, Overflow::Window));
        }
        let is_silent = status == 400 && said.trim().is_empty();
        (status == 413 || is_silent).then_some(Overflow::Perhaps)
    }
}

/// The number right behind these words.
fn number_after(said: &str, before: &str) -> Option<usize> {
    if before.is_empty() {
        return None;
    }
    let (_, rest) = said.split_once(before)?;
    let is_part = |letter: &char| letter.is_ascii_digit() || *letter == ',';
    let digits = rest.chars().take_while(is_part);
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    let tokens = digits.parse().ok()?;
    CREDIBLE.contains(&tokens).then_some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Overflow::{Perhaps, Unnamed, Window};

    #[test]
    fn servers_say_it_in_their_own_words() {
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
}
