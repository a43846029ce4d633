//! What was sent for a turn is sent again as it was: providers read it from their cache.

use support::prompt_cache::{Rules, play};

/// As many as pass in a test; `make bench` plays all of them.
const TURNS: usize = 240;

#[test]
fn a_long_conversation_is_read_from_the_cache_by_anthropic_s_rules() {
    holds(Rules::Anthropic);
}

#[test]
fn a_long_conversation_is_read_from_the_cache_by_openai_s_rules() {
    holds(Rules::OpenAi);
}

#[test]
fn a_long_conversation_is_read_from_the_cache_by_gemini_s_rules() {
    holds(Rules::Gemini);
}

#[test]
fn a_long_conversation_is_read_from_the_cache_by_deepseek_s_rules() {
    holds(Rules::DeepSeek);
}

#[test]
fn a_claude_at_openrouter_is_read_from_its_cache() {
    holds(Rules::OpenRouter);
}

fn holds(rules: Rules) {
    let share = play(rules, TURNS);
    assert!(share.requests > TURNS, "{share:?}");
    assert_eq!(share.lost_rounds, 0, "{share:?}");
    assert!(
        share.percent() >= 97.0,
        "{:.1} %: {share:?}",
        share.percent()
    );
}
