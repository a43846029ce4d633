//! Texts in pieces of all sizes.

use super::*;

const CASES: &[(&str, &str)] = &[
    ("Hello <think> you", "Hello <think> you"),
    ("<think>hm</think>\n\nHello", "Hello"),
    ("\n <think>\nh\u{e4}\n</think> Hello  you ", "Hello  you "),
    ("<think></think>Hello", "Hello"),
    ("<thinking>Hello", "<thinking>Hello"),
    ("<thi", "<thi"),
    ("<think>cut off in the mid", ""),
    ("  ", ""),
    ("", ""),
    ("  Hello", "  Hello"),
    ("I look.\n<think>hm\n</think>\nHello", "I look.\nHello"),
    (
        "It ends with `</think>`, see",
        "It ends with `</think>`, see",
    ),
    (
        "```\n<think>\n</think>\n``` so",
        "```\n<think>\n</think>\n``` so",
    ),
    ("1 < 2 <b> <", "1 < 2 <b> <"),
    (
        "To end such a block, write </think> as the last line.",
        "To end such a block, write </think> as the last line.",
    ),
    (
        "It is used so: <think>x</think> ok",
        "It is used so: <think>x</think> ok",
    ),
    ("It ends it (</think>).", "It ends it (</think>)."),
    (
        "On. <tool_call>{\"name\":\"a\"}</tool_call>\nYes",
        "On. Yes",
    ),
    ("<tool_call>\n{\"name\": \"a\"}", ""),
    ("<think>x</think><tool_call>{}</tool_call>", ""),
    ("A <tool_call> is a tag", "A <tool_call> is a tag"),
];

/// What comes of a reply in pieces of `size` letters, and what was heard.
fn streamed(written: &str, size: usize, expecting: bool) -> (String, String) {
    let mut heard = String::new();
    let mut listener = |piece: Heard<'_>| {
        if let Heard::Text(piece) = piece {
            heard.push_str(piece);
        }
    };
    let mut reply_stream = ReplyStream::new(Some(&mut listener), None);
    if expecting {
        reply_stream = reply_stream.expecting_thoughts();
    }
    let letters: Vec<char> = written.chars().collect();
    for piece in letters.chunks(size) {
        reply_stream.push(&piece.iter().collect::<String>());
    }
    let text = reply_stream.finish(false);
    (text, heard)
}

#[test]
fn thoughts_and_calls_are_never_streamed_however_they_are_cut() {
    for (written, expected) in CASES {
        for size in 1..=written.chars().count().max(1) {
            for expecting in [false, true] {
                let (text, heard) = streamed(written, size, expecting);
                let context = format!("{written:?} in pieces of {size}, {expecting}");
                assert_eq!(&text, expected, "{context}");
                assert_eq!(heard, text, "{context}");
            }
        }
    }
}

#[test]
fn thoughts_without_their_first_tag_are_not_kept_and_not_heard_the_next_time() {
    let written = "Hm, so\n</think>\n\nHello";
    for size in 1..=written.len() {
        let (text, heard) = streamed(written, size, false);
        assert_eq!(text, "Hello", "pieces of {size}");
        assert!(heard.ends_with("Hello"));
        let (text, heard) = streamed(written, size, true);
        assert_eq!((text.as_str(), heard.as_str()), ("Hello", "Hello"));
    }
    // Whole, they are not heard the first time either.
    let (_, heard) = streamed(written, 99, false);
    assert_eq!(heard, "Hello");
}

#[test]
fn a_reply_tells_whether_the_next_one_begins_with_thoughts() {
    for (written, expecting, is_cut, text, tells) in [
        ("Hm</think>Hello", false, false, "Hello", Some(true)),
        ("Hm</think>Hello", true, false, "Hello", Some(true)),
        ("Hello", true, false, "Hello", Some(false)),
        ("Hello", false, false, "Hello", None),
        ("Hm, so the", true, true, "", None),
        ("Hm. </think> Hello", false, false, "Hello", Some(true)),
        (
            "Write </think> last",
            false,
            false,
            "Write </think> last",
            None,
        ),
        (
            "Write </think> last",
            true,
            false,
            "Write </think> last",
            Some(false),
        ),
        ("```\nHm\n</think>\nHello", true, false, "Hello", Some(true)),
        (
            "Hm\n</think>\nWrite:\n</think>",
            true,
            false,
            "Write:\n</think>",
            Some(true),
        ),
    ] {
        let mut reply_stream = ReplyStream::new(None, None);
        if expecting {
            reply_stream = reply_stream.expecting_thoughts();
        }
        reply_stream.push(written);
        assert_eq!(reply_stream.finish(is_cut), text, "{written}");
        assert_eq!(reply_stream.opens_thinking(), tells, "{written}");
    }
    let mut reply_stream = ReplyStream::new(None, None).expecting_thoughts();
    reply_stream.push("Hel");
    assert!(!reply_stream.has_text());
    reply_stream.thoughts_are_separate();
    assert!(reply_stream.has_text());
}

#[test]
fn only_what_may_be_a_tag_is_held_back() {
    let mut heard = Vec::new();
    let mut listener = |piece: Heard<'_>| {
        if let Heard::Text(piece) = piece {
            heard.push(piece.to_owned());
        }
    };
    let mut reply_stream = ReplyStream::new(Some(&mut listener), None);
    for piece in [
        "Hel",
        "lo <",
        "b> a <to",
        "ol",
        "s> ",
        "<tool_call>",
        "{}",
        "</tool_call>",
    ] {
        reply_stream.push(piece);
    }
    reply_stream.finish(false);
    assert_eq!(reply_stream.take_calls(), ["{}"]);
    assert_eq!(heard, ["Hel", "lo ", "<b> a ", "<tools> "]);
}

#[test]
fn a_note_comes_before_the_reply_and_only_with_one() {
    let mut reply_stream = ReplyStream::new(None, Some("Note. ".to_owned()));
    reply_stream.push("<think>x</think>");
    reply_stream.push("Hello");
    assert_eq!(reply_stream.finish(false), "Note. Hello");
    let mut reply_stream = ReplyStream::new(None, Some("Note. ".to_owned()));
    assert_eq!(reply_stream.finish(false), "");
    let mut reply_stream = ReplyStream::new(None, Some("Note. ".to_owned()));
    reply_stream.push("Hm");
    reply_stream.push("</think>Hello");
    assert_eq!(reply_stream.finish(false), "Note. Hello");
}
