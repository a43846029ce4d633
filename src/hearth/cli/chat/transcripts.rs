//! The client by transcripts: events, and the actions that follow.

use super::action::Action;
use super::client::{ChatClient, ChatMode, ClientEvent};

/// The messages of the transcripts, and the longer actions, each after its name.
const NAMES: &str = r#"
ADMIN {"status":"ok","id":"auth","data":{"role":"admin","limits":{"ping_seconds":30}}}
USER {"status":"ok","id":"auth","data":{"role":"user"}}
NO_AUTH {"status":"error","id":"auth","error":"this token is not valid","code":"invalid_token"}
DELTA {"type":"event","seq":1,"turn_id":"turn_1","event":"chat.delta","text":"Hel"}
ANSWER {"status":"ok","id":"chat","data":{"response":"Hello","conversation_id":"conv_1"}}
REFUSED {"status":"error","id":"chat","error":"too much","code":"rate_limited","retry_after":3}
CANCELLED {"status":"ok","id":"chat","data":{"state":"cancelled","response":"Hel","conversation_id":"conv_1","turn_id":"turn_1"}}
SILENCED {"status":"ok","id":"chat","data":{"state":"cancelled","response":"","conversation_id":"conv_1","turn_id":"turn_1"}}
LIST {"status":"ok","id":"list","data":{"conversations":[{"id":"conv_1","title":"Tea","updated_at":"2026-11-21T09:30:00.125Z"}]}}
CALL {"type":"event","turn_id":"turn_1","event":"chat.tool_call","tool":"clock","call_id":"c","arguments":{}}
CALLED {"type":"event","turn_id":"turn_1","event":"chat.tool_result","call_id":"c","ok":true,"summary":"noon"}
CALL_FAILED {"type":"event","turn_id":"turn_1","event":"chat.tool_result","call_id":"c","ok":false,"summary":"no clock"}
MAY {"type":"event","turn_id":"turn_1","event":"approval.requested","approval_id":"appr_1","tool":"run","arguments":{"x":1},"reason":"risky"}
MAY_ALSO {"type":"event","turn_id":"turn_1","event":"approval.requested","approval_id":"appr_2","tool":"fetch","arguments":{},"reason":""}
MAY_OTHER {"type":"event","turn_id":"turn_9","event":"approval.requested","approval_id":"appr_9","tool":"run","arguments":{},"reason":""}
RESOLVED {"type":"event","turn_id":"turn_1","event":"approval.resolved","approval_id":"appr_1","decision":"denied","by":"ada"}
UNKNOWN {"type":"event","event":"from.the.future"}
AUTH send {"type":"auth","id":"auth","token":"t"}
SUBSCRIBE send {"type":"subscribe","id":"subscribe","events":["approval.requested","approval.resolved"]}
CHAT_HI send {"type":"chat","id":"chat","message":"hi","stream":true}
CHAT_QUIT send {"type":"chat","id":"chat","message":"/quit","stream":true}
CHAT_MORE send {"type":"chat","id":"chat","message":"more","stream":true,"conversation_id":"conv_1"}
LIST_CONVERSATIONS send {"type":"list_conversations","id":"list","limit":20}
CANCEL send {"type":"cancel","id":"cancel","turn_id":"turn_1"}
ONCE send {"type":"approve","id":"decide","approval_id":"appr_1","remember":"once"}
CONVERSATION send {"type":"approve","id":"decide","approval_id":"appr_1","remember":"conversation"}
ALWAYS send {"type":"approve","id":"decide","approval_id":"appr_1","remember":"always"}
DENY send {"type":"deny","id":"decide","approval_id":"appr_1"}
DENY_ALSO send {"type":"deny","id":"decide","approval_id":"appr_2"}
ASK ask risky\n  run {"x":1}\nMay it?\n(o)nce, for this (c)onversation, (a)lways or (d)eny:
ASK_ALSO ask May fetch run? {}\n(o)nce, for this (c)onversation, (a)lways or (d)eny:
WAITS problem run is waiting for approval; decide on the web page or in `hearth chat` in a terminal
LATER problem too much; try again in 3 seconds
STOPPING note stopping; press Ctrl-C again to exit
"#;

/// The text of this name, or the word itself.
fn named(word: &str) -> String {
    let texts = NAMES.lines().filter_map(|line| line.split_once(' '));
    let found = texts.into_iter().find(|(name, _)| *name == word);
    found.map_or(word, |(_, text)| text).replace("\\n", "\n")
}

fn auth() -> serde_json::Value {
    serde_json::json!({"type": "auth", "id": "auth", "token": "t"})
}

/// An action as the transcripts write it.
fn written(action: &Action) -> String {
    match action {
        Action::Send(message) => format!("send {message}"),
        Action::Piece(text) => format!("piece {text}"),
        Action::Answer(text) => format!("answer {text}"),
        Action::Note(text) => format!("note {text}"),
        Action::Ask(text) => format!("ask {}", text.trim_end()),
        Action::Ready => "ready".to_owned(),
        Action::Break => "break".to_owned(),
        Action::Problem(text) => format!("problem {text}"),
        Action::Exit { success } => format!("exit {success}"),
    }
}

/// Takes one event: `> text` is a typed line, `^C` an interrupt, `^D` the end of the input,
/// `TERM` a signal; all else comes from the server.
fn take(client: &mut ChatClient, text: &str) -> Vec<Action> {
    let message = named(text);
    client.take(match (text, text.strip_prefix('>')) {
        (_, Some(line)) => ClientEvent::Line(line.strip_prefix(' ').unwrap_or(line)),
        ("^C", _) => ClientEvent::Interrupt,
        ("^D", _) => ClientEvent::End,
        ("TERM", _) => ClientEvent::Terminate,
        _ => ClientEvent::Received(&message),
    })
}

/// Plays a transcript, `EVENT => ACTION | ACTION` on each line.
fn check(mode: &ChatMode, transcript: &str) {
    let (mut client, begin) = ChatClient::begin(mode.clone(), auth());
    assert_eq!(
        begin.iter().map(written).collect::<Vec<_>>(),
        [named("AUTH")]
    );
    for line in transcript
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
    {
        let (input, expected) = line.split_once(" =>").expect(line);
        let expected = expected
            .split(" | ")
            .map(str::trim)
            .filter(|action| !action.is_empty());
        let actions = take(&mut client, input);
        let actions: Vec<String> = actions.iter().map(written).collect();
        let expected: Vec<String> = expected.map(named).collect();
        assert_eq!(actions, expected, "{line}, of {transcript}");
    }
}

/// Plays each of the transcripts, which empty lines separate, after `begin`.
fn check_all(mode: &ChatMode, begin: &str, transcripts: &str) {
    for rest in transcripts.split("\n\n") {
        check(mode, &format!("{begin}\n{rest}"));
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
    let transcripts = "
        ADMIN => SUBSCRIBE | ready
        > => ready
        > hi => CHAT_HI
        DELTA => piece Hel
        ANSWER => answer Hello | ready
        > more => CHAT_MORE
        REFUSED => LATER | ready
        > /new => note new conversation | ready
        > hi => CHAT_HI
        ANSWER => answer Hello | ready
        ^D => break | exit true

        USER => ready
        > /quit => exit true

        USER => ready
        ^C => break | exit true

        USER => ready
        TERM => exit false

        USER => ready
        > /nope => problem unknown command /nope; see /help | ready
        > /conversations => LIST_CONVERSATIONS
        LIST => note conv_1  21 Nov 2026  Tea | ready
        > /open conv_1 => note continuing conv_1 | ready
        > more => CHAT_MORE

        NO_AUTH => problem this token is not valid | exit false

        SSH-2.0 => problem the server sent something that is not JSON; is this Hearth? | exit false

        UNKNOWN =>
        USER => ready
    ";
    check_all(&interactive(), "", transcripts);
}

#[test]
fn tools_are_shown_and_permission_is_asked() {
    let begin = "
        ADMIN => SUBSCRIBE | ready
        > hi => CHAT_HI
        CALL => note clock …
    ";
    let transcripts = "
        CALLED =>
        ANSWER => answer Hello | ready

        CALL_FAILED => note failed: no clock

        MAY => ASK
        MAY =>
        > o => ONCE

        MAY => ASK
        > Conversation  => CONVERSATION

        MAY => ASK
        > a => ALWAYS

        MAY => ASK
        > d => DENY
        ANSWER => answer Hello | ready

        MAY => ASK
        > => ASK
        > yes => ASK
        > d => DENY

        MAY => ASK
        MAY_ALSO =>
        > d => DENY | ASK_ALSO
        > d => DENY_ALSO

        MAY => ASK
        MAY_ALSO =>
        RESOLVED => note denied by ada | ASK_ALSO

        MAY_OTHER =>

        MAY => ASK
        ^D => WAITS
        ANSWER => answer Hello | ready
    ";
    check_all(&interactive(), begin, transcripts);
}

#[test]
fn an_interrupt_cancels_and_a_second_one_exits() {
    // The turn's name is not known at first: then the cancel follows when it is.
    let transcripts = "
        DELTA => piece Hel
        ^C => break | STOPPING | CANCEL
        CANCELLED => answer Hel | note stopped | ready
        ^C => break | exit true

        SILENCED => note stopped | ready

        ^C => break | STOPPING
        DELTA => CANCEL | piece Hel

        ^C => break | STOPPING
        ^C => exit false
    ";
    check_all(
        &interactive(),
        "USER => ready\n> hi => CHAT_HI",
        transcripts,
    );
}

#[test]
fn a_script_gets_an_answer_and_an_exit_code() {
    let question = |interactive| ChatMode {
        question: Some("hi".to_owned()),
        interactive,
        conversation: None,
    };
    let transcripts = "
        USER => CHAT_HI
        ANSWER => answer Hello | exit true

        USER => CHAT_HI
        REFUSED => LATER | exit false

        ADMIN => SUBSCRIBE | CHAT_HI
        MAY => WAITS
    ";
    check_all(&question(false), "", transcripts);
    let transcript = "
        USER => CHAT_HI
        DELTA => piece Hel
        ^C => break | STOPPING | CANCEL
        SILENCED => note stopped | exit false
    ";
    check(&question(true), transcript);
    // Lines of a pipe are messages, also those that look like commands; one that
    // failed is remembered to the end.
    let transcript = "
        USER => ready
        > /quit => CHAT_QUIT
        REFUSED => LATER | ready
        ^D => break | exit false
    ";
    check(&ChatMode::default(), transcript);
}

#[test]
fn a_line_is_wanted_only_when_it_would_be_taken() {
    let (mut client, _) = ChatClient::begin(interactive(), auth());
    for (input, wants) in [
        ("ADMIN", true),
        ("> hi", false),
        ("DELTA", false),
        ("MAY", true),
        ("> o", false),
        ("ANSWER", true),
    ] {
        take(&mut client, input);
        assert_eq!(client.wants_line(), wants, "after {input}");
    }
    assert_eq!(
        client.silence(),
        90,
        "three times the server's ping_seconds"
    );
}
