//! How many tokens of a model's window a request may use.

/// Tokens that are left for a reply of unknown length.
const USUAL_REPLY: usize = 4_096;
/// Tokens that are always kept free besides the reply: estimates are not exact.
const LEAST_MARGIN: usize = 1_024;

/// Most tokens of a request to a model with this window
/// ([`Provider::window`](crate::model::Provider::window)): all but the reply
/// (`max_tokens`) and a margin.
pub fn request_tokens(window: usize, max_tokens: Option<u32>) -> usize {
    let reply = match most_reply(max_tokens, window) {
        Some(most) => most as usize,
        None => USUAL_REPLY.min(window / 4),
    };
    let margin = LEAST_MARGIN.max(window / 20).min(window / 8);
    window - reply - margin
}

/// Most tokens of a reply: no more than half of the window, for servers refuse a request
/// that leaves less room than that.
pub fn most_reply(max_tokens: Option<u32>, window: usize) -> Option<u32> {
    let half = u32::try_from(window / 2).unwrap_or(u32::MAX);
    max_tokens.map(|most| most.min(half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_and_a_margin_are_kept_free() {
        for (window, max_tokens, expected) in [
            (8_192, None, 8_192 - 2_048 - 1_024),
            (128_000, None, 128_000 - 4_096 - 6_400),
            (128_000, Some(16_000), 128_000 - 16_000 - 6_400),
            (8_192, Some(8_192), 4_096 - 1_024),
            (2_048, None, 2_048 - 512 - 256),
            (2_048, Some(1_000_000), 1_024 - 256),
        ] {
            let found = request_tokens(window, max_tokens);
            assert_eq!(found, expected, "{window} {max_tokens:?}");
        }
    }
}
