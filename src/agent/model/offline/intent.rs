//! What a message asks for, found by rules.

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

/// The intent of a message. Only its beginning and a few fixed phrases count.
pub fn intent_of(text: &str) -> Intent<'_> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_prefix("please ").unwrap_or(&lower);
    // ASCII lower case keeps the length, so offsets fit both texts.
    let original = &text[text.len() - lower.len()..];
    let after = |beginnings: &[&str]| {
        let beginning = beginnings.iter().find(|word| lower.starts_with(**word))?;
        let rest = original[beginning.len()..].trim();
        Some(rest.trim_end_matches(['?', '!', '.']).trim_end()).filter(|rest| !rest.is_empty())
    };
    if let Some(rest) = lower.strip_prefix("run ") {
        let rest = original[original.len() - rest.len()..].trim();
        let (tool, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        return Intent::Run(tool, arguments.trim());
    }
    if lower.contains("what did i say") || lower.contains("what did i just say") {
        return Intent::Repeat;
    }
    if let Some(query) = after(&[
        "what do you remember about ",
        "what do you know about ",
        "do you remember ",
        "recall ",
    ]) {
        return Intent::Recall(query);
    }
    if let Some(content) = after(&["remember that ", "remember: ", "remember "]) {
        return Intent::Remember(content);
    }
    if let Some(what) = after(&["forget that ", "forget about ", "forget "]) {
        return Intent::Forget(what);
    }
    if let Some(query) = after(&["search for ", "search "]) {
        return Intent::Search(query);
    }
    let asks_time = [
        "what time",
        "the time",
        "what date",
        "the date",
        "what day",
        "which day",
    ];
    if asks_time.iter().any(|words| lower.contains(words)) {
        let zone = original.split_whitespace().find(|word| word.contains('/'));
        return Intent::Time(zone.map(|zone| zone.trim_end_matches(['?', '!', '.'])));
    }
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let greets = ["hello", "hi", "hey", "help", "moin", "hallo"];
    let opens = words.first().is_some_and(|first| greets.contains(first));
    let asks = [
        "good morning",
        "good evening",
        "who are you",
        "what are you",
        "what can you do",
    ];
    if (opens && words.len() <= 6) || asks.iter().any(|phrase| lower.starts_with(phrase)) {
        return Intent::Greeting;
    }
    Intent::Other
}
