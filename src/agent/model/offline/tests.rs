//! Which answers and calls a person's messages lead to.

use std::sync::Arc;

use super::*;
use base::language::LANGUAGES;
use base::testing::rows;

fn spec(name: &str, required: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: Arc::new(match required {
            "" => json!({"type": "object", "properties": {}}),
            name => json!({"type": "object", "required": [name]}),
        }),
    }
}

fn tools() -> Vec<ToolSpec> {
    [
        ("current_time", ""),
        ("remember", "content"),
        ("recall", "query"),
        ("forget", "memory_id"),
        ("search_conversations", "query"),
        ("light", "room"),
    ]
    .map(|(name, required)| spec(name, required))
    .to_vec()
}

fn user(text: &str) -> ChatMessage<'_> {
    ChatMessage::User {
        content: text.into(),
        files: Vec::new(),
    }
}

fn result<'t>(tool: &str, content: &'t str, ok: bool) -> ChatMessage<'t> {
    ChatMessage::ToolResult {
        call_id: "1".to_owned(),
        tool: tool.to_owned(),
        content: content.into(),
        ok,
        files: Vec::new(),
    }
}

fn answer(messages: &[ChatMessage<'_>], tools: &[ToolSpec]) -> Answer {
    super::answer(messages, tools, Words::ENGLISH)
}

#[test]
fn intents_become_calls() {
    let table = r#"
        What time is it?                | current_time         | {}
        today's date? I mean the date   | current_time         | {}
        what time is it in Asia/Tokyo?  | current_time         | {"time_zone": "Asia/Tokyo"}
        Please remember that Mia is 7.  | remember             | {"content": "Mia is 7"}
        remember milk                   | remember             | {"content": "milk"}
        What do you remember about Mia? | recall               | {"query": "Mia"}
        recall Mia                      | recall               | {"query": "Mia"}
        forget Mia                      | recall               | {"query": "Mia"}
        forget mem_0000000000001        | forget               | {"memory_id": "mem_0000000000001"}
        search for Über uns             | search_conversations | {"query": "Über uns"}
        run light {"room": "hall"}      | light                | {"room": "hall"}
        run current_time                | current_time         | {}
    "#;
    for [said, tool, arguments] in rows(table) {
        let arguments: Value = arguments.parse().unwrap();
        let Answer::Call(name, written) = answer(&[user(said)], &tools()) else {
            panic!("{said:?} is no call");
        };
        assert_eq!(name, tool, "{said}");
        assert_eq!(
            serde_json::from_str::<Value>(&written).unwrap(),
            arguments,
            "{said}"
        );
    }
}

#[test]
fn other_messages_get_a_plain_answer() {
    for (said, expected) in [
        (
            "Hello!",
            "    hearth config set model NAME\n    hearth config set provider ollama",
        ),
        ("who are you?", "offline stand-in"),
        ("run nothing {}", "Available tools: current_time, remember"),
        (
            "Why is the sky blue?",
            "cannot think about: \"Why is the sky blue?\"",
        ),
        ("what did I say?", "the first message"),
        ("", "cannot think about"),
    ] {
        let Answer::Say(text) = answer(&[user(said)], &tools()) else {
            panic!("{said:?} is a call");
        };
        assert!(text.contains(expected), "{said:?}: {text}");
    }
    let Answer::Say(text) = answer(&[user("what time is it")], &[]) else {
        panic!("a tool was called that is not offered");
    };
    assert!(text.contains("no tools are available"), "{text}");
}

#[test]
fn earlier_messages_are_known() {
    let messages = [
        user("The cat is called Tom."),
        ChatMessage::Assistant {
            text: "Fine.".into(),
            calls: Vec::new(),
            extra: None,
        },
        user("what did I say"),
    ];
    assert_eq!(
        answer(&messages, &[]),
        Answer::Say(
            "Before this you said: \"The cat is called Tom.\". \
             This conversation has 2 earlier messages."
                .to_owned()
        )
    );
}

#[test]
fn results_become_sentences() {
    let table = r#"
        what time is it | current_time | noon                     | It is noon.
        recall Mia      | recall       | - Mia is 7               | This is what I remember:¶- Mia is 7
        run light {}    | light        | FAILED the owner refused it | The tool light failed: the owner refused it
        run light {}    | light        | on                       | The tool light answered: on
        forget Mia      | recall       | nothing found            | I remember nothing about "Mia".
        forget Mia      | forget       | ok                       | That is forgotten. (ok)
    "#;
    for [said, tool, content, expected] in rows(table) {
        let (content, ok) = match content.strip_prefix("FAILED ") {
            Some(content) => (content, false),
            None => (content, true),
        };
        let expected = expected.replace('¶', "\n");
        assert_eq!(
            answer(&[user(said), result(tool, content, ok)], &tools()),
            Answer::Say(expected)
        );
    }
}

#[test]
fn what_is_to_be_forgotten_is_looked_up_first() {
    let found = result("recall", "[mem_0000000000001] Mia is 7", true);
    assert_eq!(
        answer(&[user("forget Mia"), found], &tools()),
        Answer::Call(
            "forget".to_owned(),
            "{\"memory_id\":\"mem_0000000000001\"}".to_owned()
        )
    );
}

/// What the page offers to try works in its language, and English works in any.
#[test]
fn every_language_is_understood_and_answered() {
    for code in LANGUAGES {
        let words = Words::of(code);
        for (key, tool) in [
            ("offline.example.current_time", "current_time"),
            ("offline.example.remember", "remember"),
            ("offline.example.recall", "recall"),
            ("offline.example.forget", "recall"),
            (
                "offline.example.search_conversations",
                "search_conversations",
            ),
        ] {
            let example = words.word(key);
            let quotes = ['"', '“', '”', '„', '«', '»', '\u{a0}'];
            let said = example.trim_matches(quotes);
            for said in [said, &format!("{}?", base::language::capital(said))] {
                let answer = super::answer(&[user(said)], &tools(), words);
                let Answer::Call(called, _) = answer else {
                    panic!("{code}: {said:?} is no call: {answer:?}");
                };
                assert_eq!(called, tool, "{code}: {said}");
            }
        }
        let english = super::answer(&[user("What time is it?")], &tools(), words);
        assert!(matches!(english, Answer::Call(..)), "{code}");
        let Answer::Say(greeting) = super::answer(&[user("hello")], &tools(), words) else {
            panic!("{code}: a greeting is a call");
        };
        assert!(
            greeting.contains(&words.word("offline.hello")),
            "{greeting}"
        );
        let repeat = words.word("offline.repeat");
        let found = super::answer(&[user(&repeat)], &tools(), words);
        assert_eq!(found, Answer::Say(words.word("offline.first")), "{code}");
    }
    let noon = result("current_time", "Friday, 27 March 2026, 12:00", true);
    assert_eq!(
        super::answer(&[user("Wie spät ist es?"), noon], &tools(), Words::of("de")),
        Answer::Say("Es ist Freitag, 27 März 2026, 12:00.".to_owned())
    );
    let said = user("Merk dir, dass die Tonnen am Montag rausmüssen");
    let remember = r#"{"content":"die Tonnen am Montag rausmüssen"}"#;
    assert_eq!(
        super::answer(&[said], &tools(), Words::of("de-AT")),
        Answer::Call("remember".to_owned(), remember.to_owned())
    );
}
