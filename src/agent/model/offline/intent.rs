//! What a message asks for, found by rules.

use base::language::Words;

/// What a person asks for, as far as rules can tell.
#[derive(Debug, PartialEq)]
pub enum Intent<'a> {
    Greeting,
    /// The time or date, in a time zone if one is named.
    Time(Option<&'a str>),
    Remember(&'a str),
    Recall(&'a str),
    /// By what it is about, or by its id.
    Forget(&'a str),
    Search(&'a str),
    /// A tool and its arguments, both as written.
    Run(&'a str, &'a str),
    /// What the person said before.
    Repeat,
    Other,
}

/// The intent of a message, in English or in the language of these words. Only its beginning
/// and a few fixed phrases count.
pub fn intent_of(text: &str, words: Words) -> Intent<'_> {
    let text = text.trim();
    let phrases = |key: &str| {
        let texts = [words, Words::ENGLISH].map(|words| words.find(key).unwrap_or_default());
        texts.into_iter().flat_map(|text| text.split('|'))
    };
    // ASCII lower case keeps the length, so offsets fit both texts.
    let lower = text.to_ascii_lowercase();
    let polite =
        phrases("heard.please").find_map(|word| lower.strip_prefix(word)?.strip_prefix(' '));
    let lower = polite.unwrap_or(&lower);
    let original = &text[text.len() - lower.len()..];
    let after = |key: &str| {
        let rest = phrases(key).find_map(|beginning| {
            let rest = lower.strip_prefix(beginning)?;
            let is_whole = beginning.ends_with([':', '’', '\'']) || rest.starts_with(' ');
            is_whole.then_some(rest)
        })?;
        let rest = original[original.len() - rest.len()..].trim();
        Some(rest.trim_end_matches(['?', '!', '.']).trim_end()).filter(|rest| !rest.is_empty())
    };
    let says = |key: &str| phrases(key).any(|phrase| lower.contains(phrase));
    if let Some(rest) = lower.strip_prefix("run ") {
        let rest = original[original.len() - rest.len()..].trim();
        let (tool, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        return Intent::Run(tool, arguments.trim());
    }
    if says("heard.repeat") {
        return Intent::Repeat;
    }
    if let Some(query) = after("heard.recall") {
        return Intent::Recall(query);
    }
    if let Some(content) = after("heard.remember") {
        return Intent::Remember(content);
    }
    if let Some(what) = after("heard.forget") {
        return Intent::Forget(what);
    }
    if let Some(query) = after("heard.search") {
        return Intent::Search(query);
    }
    if says("heard.time") {
        let zone = original.split_whitespace().find(|word| word.contains('/'));
        return Intent::Time(zone.map(|zone| zone.trim_end_matches(['?', '!', '.'])));
    }
    let spoken = lower.split(|letter: char| !letter.is_alphabetic());
    let spoken: Vec<&str> = spoken.filter(|word| !word.is_empty()).collect();
    let first = spoken.first();
    let opens = first.is_some_and(|first| phrases("heard.hello").any(|word| word == *first));
    let asks = phrases("heard.who").any(|phrase| lower.starts_with(phrase));
    if (opens && spoken.len() <= 6) || asks {
        return Intent::Greeting;
    }
    Intent::Other
}
