//! The client by transcripts: events, and the actions that follow.

use super::action::Action;
use super::client::{ChatClient, ChatMode, ClientEvent};

const AUTH: &str = r#"{"type":"auth","id":"auth","token":"t"}"#;
const ADMIN: &str =
    r#"{"status":"ok","id":"auth","data":{"role":"admin","limits":{"ping_seconds":30}}}"#;
const USER: &str = r#"{"status":"ok","id":"auth","data":{"role":"user"}}"#;
const SUBSCRIBE: &str = r#"send {"type":"subscribe","id":"subscribe","events":["approval.requested","approval.resolved"]}"#;
const CHAT_HI: &str = r#"send {"type":"chat","id":"chat","message":"hi","stream":true}"#;
const DELTA: &str =
    r#"{"type":"event","seq":1,"turn_id":"turn_1","event":"chat.delta","text":"Hel"}"#;
const ANSWER: &str =
    r#"{"status":"ok","id":"chat","data":{"response":"Hello","conversation_id":"conv_1"}}"#;
const REFUSED: &str =
    r#"{"status":"error","id":"chat","error":"too much","code":"rate_limited","retry_after":3}"#;
const CANCELLED: &str =
    r#"{"status":"error","id":"chat","error":"the turn was cancelled","code":"invalid_request"}"#;
const CANCEL: &str = r#"send {"type":"cancel","id":"cancel","turn_id":"turn_1"}"#;
const MAY: &str = r#"{"type":"event","turn_id":"turn_1","event":"approval.requested","approval_id":"appr_1","tool":"run","arguments":{"x":1},"reason":"risky"}"#;
const MAY_ALSO: &str = r#"{"type":"event","turn_id":"turn_1","event":"approval.requested","approval_id":"appr_2","tool":"fetch","arguments":{},"reason":""}"#;
const MAY_OTHER: &str = r#"{"type":"event","turn_id":"turn_9","event":"approval.requested","approval_id":"appr_9","tool":"run","arguments":{},"reason":""}"#;
const ASK: &str =
    "ask risky\n  run {\"x\":1}\nMay it?\n(o)nce, for this (c)onversation, (a)lways or (d)eny: ";
const ASK_ALSO: &str =
    "ask May fetch run? {}\n(o)nce, for this (c)onversation, (a)lways or (d)eny: ";
const RESOLVED: &str = r#"{"type":"event","turn_id":"turn_1","event":"approval.resolved","approval_id":"appr_1","decision":"denied","by":"ada"}"#;

fn auth() -> serde_json::Value {
    serde_json::json!({"type": "auth", "id": "auth", "token": "t"})
}

/// An action as the tables write it.
fn written(action: &Action) -> String {
    match action {
        Action::Send(message) => format!("send {message}"),
        Action::Piece(text) => format!("piece {text}"),
        Action::Answer(text) => format!("answer {text}"),
        Action::Note(text) => format!("note {text}"),
        Action::Ask(text) => format!("ask {text}"),
        Action::Ready => "ready".to_owned(),
        Action::Break => "break".to_owned(),
        Action::Problem(text) => format!("problem {text}"),
        Action::Exit { success } => format!("exit {success}"),
    }
}

/// One step: a line is `> text`, `^C` an interrupt, `^D` the end of the input,
/// `TERM` a signal, all else comes from the server.
fn step<'a>(text: &'a str) -> ClientEvent<'a> {
    match (text, text.strip_prefix("> ")) {
        (_, Some(line)) => ClientEvent::Line(line),
        ("^C", _) => ClientEvent::Interrupt,
        ("^D", _) => ClientEvent::End,
        ("TERM", _) => ClientEvent::Terminate,
        _ => ClientEvent::Received(text),
    }
}

fn check(mode: &ChatMode, transcript: &[(&str, &[&str])]) {
    let (mut client, begin) = ChatClient::begin(mode.clone(), auth());
    assert_eq!(
        begin.iter().map(written).collect::<Vec<_>>(),
        [format!("send {AUTH}")]
    );
    for (place, (input, expected)) in transcript.iter().enumerate() {
        let actions = client.take(step(input));
        let actions: Vec<String> = actions.iter().map(written).collect();
        assert_eq!(
            actions, *expected,
            "step {place}, {input:?}, of {transcript:?}"
        );
    }
}

fn interactive() -> ChatMode {
    ChatMode {
        interactive: true,
        ..ChatMode::default()
    }
}

#[test]
fn a_person_talks() {
    let continued = r#"send {"type":"chat","id":"chat","message":"more","stream":true,"conversation_id":"conv_1"}"#;
    let transcripts: &[&[(&str, &[&str])]] = &[
        &[
            (ADMIN, &[SUBSCRIBE, "ready"]),
            ("> ", &["ready"]),
            ("> hi", &[CHAT_HI]),
            (DELTA, &["piece Hel"]),
            (ANSWER, &["answer Hello", "ready"]),
            ("> more", &[continued]),
            (
                REFUSED,
                &["problem too much; try again in 3 seconds", "ready"],
            ),
            ("> /new", &["note new conversation", "ready"]),
            ("> hi", &[CHAT_HI]),
            (ANSWER, &["answer Hello", "ready"]),
            ("^D", &["break", "exit true"]),
        ],
        &[(USER, &["ready"]), ("> /quit", &["exit true"])],
        &[(USER, &["ready"]), ("^C", &["break", "exit true"])],
        &[(USER, &["ready"]), ("TERM", &["exit false"])],
        &[
            (USER, &["ready"]),
            (
                "> /nope",
                &["problem unknown command /nope; see /help", "ready"],
            ),
            (
                "> /conversations",
                &[r#"send {"type":"list_conversations","id":"list","limit":20}"#],
            ),
            (
                r#"{"status":"ok","id":"list","data":{"conversations":[{"id":"conv_1","title":"Tea","updated_at":"2026-11-21T09:30:00.125Z"}]}}"#,
                &["note conv_1  2026-11-21  Tea", "ready"],
            ),
            ("> /open conv_1", &["note continuing conv_1", "ready"]),
            ("> more", &[continued]),
        ],
        &[(
            r#"{"status":"error","id":"auth","error":"this token is not valid","code":"invalid_token"}"#,
            &["problem this token is not valid", "exit false"],
        )],
        &[(
            "SSH-2.0",
            &[
                "problem the server sent something that is not JSON; is this Hearth?",
                "exit false",
            ],
        )],
        &[
            (r#"{"type":"event","event":"from.the.future"}"#, &[]),
            (USER, &["ready"]),
        ],
    ];
    for transcript in transcripts {
        check(&interactive(), transcript);
    }
}

#[test]
fn tools_are_shown_and_permission_is_asked() {
    let call = r#"{"type":"event","turn_id":"turn_1","event":"chat.tool_call","tool":"clock","call_id":"c","arguments":{}}"#;
    let good = r#"{"type":"event","turn_id":"turn_1","event":"chat.tool_result","call_id":"c","ok":true,"summary":"noon"}"#;
    let bad = r#"{"type":"event","turn_id":"turn_1","event":"chat.tool_result","call_id":"c","ok":false,"summary":"no clock"}"#;
    let approve = |remember: &str| {
        format!(
            r#"send {{"type":"approve","id":"decide","approval_id":"appr_1","remember":"{remember}"}}"#
        )
    };
    let deny = r#"send {"type":"deny","id":"decide","approval_id":"appr_1"}"#;
    let deny_also = r#"send {"type":"deny","id":"decide","approval_id":"appr_2"}"#;
    let begin: &[(&str, &[&str])] = &[
        (ADMIN, &[SUBSCRIBE, "ready"]),
        ("> hi", &[CHAT_HI]),
        (call, &["note clock …"]),
    ];
    let rest: &[&[(&str, &[&str])]] = &[
        &[(good, &[]), (ANSWER, &["answer Hello", "ready"])],
        &[(bad, &["note failed: no clock"])],
        &[(MAY, &[ASK]), (MAY, &[]), ("> o", &[&approve("once")])],
        &[
            (MAY, &[ASK]),
            ("> Conversation ", &[&approve("conversation")]),
        ],
        &[(MAY, &[ASK]), ("> a", &[&approve("always")])],
        &[
            (MAY, &[ASK]),
            ("> d", &[deny]),
            (ANSWER, &["answer Hello", "ready"]),
        ],
        &[
            (MAY, &[ASK]),
            ("> ", &[ASK]),
            ("> yes", &[ASK]),
            ("> d", &[deny]),
        ],
        &[
            (MAY, &[ASK]),
            (MAY_ALSO, &[]),
            ("> d", &[deny, ASK_ALSO]),
            ("> d", &[deny_also]),
        ],
        &[
            (MAY, &[ASK]),
            (MAY_ALSO, &[]),
            (RESOLVED, &["note denied by ada", ASK_ALSO]),
        ],
        &[(MAY_OTHER, &[])],
        &[
            (MAY, &[ASK]),
            (
                "^D",
                &[
                    "problem run is waiting for approval; decide on the web page or in `hearth chat` in a terminal",
                ],
            ),
            (ANSWER, &["answer Hello", "ready"]),
        ],
    ];
    for rest in rest {
        check(&interactive(), &[begin, rest].concat());
    }
}

#[test]
fn an_interrupt_cancels_and_a_second_one_exits() {
    let stopping = "note stopping; press Ctrl-C again to exit";
    let begin: &[(&str, &[&str])] = &[(USER, &["ready"]), ("> hi", &[CHAT_HI])];
    let rest: &[&[(&str, &[&str])]] = &[
        &[
            (DELTA, &["piece Hel"]),
            ("^C", &["break", stopping, CANCEL]),
            (CANCELLED, &["note the turn was cancelled", "ready"]),
            ("^C", &["break", "exit true"]),
        ],
        // The turn's name is not known yet: the cancel follows when it is.
        &[
            ("^C", &["break", stopping]),
            (DELTA, &[CANCEL, "piece Hel"]),
        ],
        &[("^C", &["break", stopping]), ("^C", &["exit false"])],
    ];
    for rest in rest {
        check(&interactive(), &[begin, rest].concat());
    }
}

#[test]
fn a_script_gets_an_answer_and_an_exit_code() {
    let question = |interactive| ChatMode {
        question: Some("hi".to_owned()),
        interactive,
        conversation: None,
    };
    check(
        &question(false),
        &[(USER, &[CHAT_HI]), (ANSWER, &["answer Hello", "exit true"])],
    );
    check(
        &question(false),
        &[
            (USER, &[CHAT_HI]),
            (
                REFUSED,
                &["problem too much; try again in 3 seconds", "exit false"],
            ),
        ],
    );
    check(
        &question(true),
        &[
            (USER, &[CHAT_HI]),
            (DELTA, &["piece Hel"]),
            (
                "^C",
                &["break", "note stopping; press Ctrl-C again to exit", CANCEL],
            ),
            (CANCELLED, &["note the turn was cancelled", "exit false"]),
        ],
    );
    check(
        &question(false),
        &[
            (ADMIN, &[SUBSCRIBE, CHAT_HI]),
            (
                MAY,
                &[
                    "problem run is waiting for approval; decide on the web page or in `hearth chat` in a terminal",
                ],
            ),
        ],
    );
    // LineBuffer of a pipe are messages, also those that look like commands; one
    // that failed is remembered to the end.
    let quit = r#"send {"type":"chat","id":"chat","message":"/quit","stream":true}"#;
    check(
        &ChatMode::default(),
        &[
            (USER, &["ready"]),
            ("> /quit", &[quit]),
            (
                REFUSED,
                &["problem too much; try again in 3 seconds", "ready"],
            ),
            ("^D", &["break", "exit false"]),
        ],
    );
}

#[test]
fn a_line_is_wanted_only_when_it_would_be_taken() {
    let (mut client, _) = ChatClient::begin(interactive(), auth());
    for (input, wants) in [
        (ADMIN, true),
        ("> hi", false),
        (DELTA, false),
        (MAY, true),
        ("> o", false),
        (ANSWER, true),
    ] {
        client.take(step(input));
        assert_eq!(client.wants_line(), wants, "after {input}");
    }
    assert_eq!(
        client.silence(),
        90,
        "three times the server's ping_seconds"
    );
}
