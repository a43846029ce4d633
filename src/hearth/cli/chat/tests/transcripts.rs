//! The client by transcripts: events, and the actions that follow.

use crate::cli::chat::action::Action;
use crate::cli::chat::client::{ChatClient, ChatMode, ClientEvent};

/// The messages of the transcripts, and the longer actions, each after its name.
const NAMES: &str = include_str!("names.txt");

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
        Action::Note(text) => format!("note {}", text.replace('\n', "/")),
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
        ADMIN => SUBSCRIBE | WAITING | ready
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

        USER => SUBSCRIBE | WAITING | ready
        > /quit => exit true

        USER => SUBSCRIBE | WAITING | ready
        ^C => break | exit true

        USER => SUBSCRIBE | WAITING | ready
        TERM => exit false

        USER => SUBSCRIBE | WAITING | ready
        > /nope => problem unknown command /nope; see /help | ready
        > /conversations => LIST_PEOPLE | LIST_CONVERSATIONS
        PEOPLE =>
        LIST => note conv_1  21 Nov 2026  Tea/conv_2    private    Gift/conv_3    Oma Ada (ada), bo  Trip | ready
        > /open conv_1 => note continuing conv_1 | OPEN
        > more => CHAT_MORE

        NO_AUTH => problem this token is not valid | exit false

        SSH-2.0 => problem the server sent something that is not JSON; is this Hearth? | exit false

        UNKNOWN =>
        USER => SUBSCRIBE | WAITING | ready
    ";
    check_all(&interactive(), "", transcripts);
}

#[test]
fn tools_are_shown_and_permission_is_asked() {
    let begin = "
        ADMIN => SUBSCRIBE | WAITING | ready
        > hi => CHAT_HI
        CALL => note Look at the clock …
    ";
    let transcripts = "
        CALLED =>
        ANSWER => answer Hello | ready

        CALL_FAILED => note failed: no clock

        BUSY => note the model is busy, next try in 8 s
        DELTA => piece Hel

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

        MAY => ASK
        EXPIRED => note nobody answered in time

        MAY_OTHER => note ada asks. Run waits for approval; /approvals shows it

        MAY_LONG => ASK_LONG
        > o => ASK_MORE
        > => ASK_END
        > o => ONCE

        MAY_ONCE => ASK_ONCE
        > a => ASK_ONCE
        > o => ONCE

        MAY_LONG => ASK_LONG
        > d => DENY

        MAY => ASK
        > l => note Run waits; /approvals shows it | ready
        CALL =>
        > next => CHAT_NEXT
        NEXT_DELTA => piece Ne
        ANSWER => note reply to “hi”: | answer Hello
        NEXT_ANSWER => answer Next | ready

        MAY => ASK
        > l => note Run waits; /approvals shows it | ready
        ANSWER => note reply to “hi”: | answer Hello | ready

        MAY => ASK
        ^D => WAITS
        ANSWER => answer Hello | ready
    ";
    check_all(&interactive(), begin, transcripts);
}

#[test]
fn what_waits_is_decided_wherever_it_was_asked() {
    let transcripts = "
        ADMIN => SUBSCRIBE | WAITING | ready
        NONE_WAITING =>
        > /approvals => APPROVALS
        NONE => note nothing waits for approval | ready

        ADMIN => SUBSCRIBE | WAITING | ready
        ONE_WAITS => note 1 request waits for approval; /approvals shows it | ready
        MAY_OTHER => note ada asks. Run waits for approval; /approvals shows it | ready
        > /approvals => APPROVALS
        ALL => ASK_WAITING
        > yes => ASK_WAITING
        > c => CONVERSATION
        DECIDED => ready

        USER => SUBSCRIBE | WAITING | ready
        TWO_WAIT => note 2 requests wait for approval; /approvals shows them | ready
        > /open conv_1 => note continuing conv_1 | OPEN
        OPENED => ASK_WAITING
        > l => note Open waits; /approvals shows it | ready

        USER => SUBSCRIBE | WAITING | ready
        > /open conv_1 => note continuing conv_1 | OPEN
        OPENED => ASK_WAITING
        > d => DENY
        UNDECIDED => problem it is decided already | ready

        USER => SUBSCRIBE | WAITING | ready
        NOT_ASKED =>
        > hi => CHAT_HI
        DELTA => piece Hel
        MAY => CHECK
        NOT_MINE => note Run waits for the approval of somebody who may give it

        USER => SUBSCRIBE | WAITING | ready
        > hi => CHAT_HI
        DELTA => piece Hel
        MAY => CHECK
        MINE => ASK
    ";
    check_all(&interactive(), "", transcripts);
    let opened = ChatMode {
        conversation: Some("conv_1".to_owned()),
        ..interactive()
    };
    check(&opened, "ADMIN => SUBSCRIBE | OPEN\nOPENED => ASK_WAITING");
}

#[test]
fn a_reply_that_was_cut_says_so() {
    let transcripts = "
        USER => SUBSCRIBE | WAITING | ready
        > hi => CHAT_HI
        CUT => answer Once upon | CUT_NOTE | ready
    ";
    check_all(&interactive(), "", transcripts);
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
        "USER => SUBSCRIBE | WAITING | ready\n> hi => CHAT_HI",
        transcripts,
    );
}

#[test]
fn a_script_gets_an_answer_and_an_exit_code() {
    let question = |interactive| ChatMode {
        question: Some("hi".to_owned()),
        interactive,
        ..ChatMode::default()
    };
    let transcripts = "
        USER => SUBSCRIBE | CHAT_HI
        ANSWER => answer Hello | exit true

        USER => SUBSCRIBE | CHAT_HI
        REFUSED => LATER | exit false

        ADMIN => SUBSCRIBE | CHAT_HI
        MAY => WAITS
    ";
    check_all(&question(false), "", transcripts);
    let transcript = "
        USER => SUBSCRIBE | CHAT_HI
        DELTA => piece Hel
        ^C => break | STOPPING | CANCEL
        SILENCED => note stopped | exit false
    ";
    check(&question(true), transcript);
    // Lines of a pipe are messages, also those that look like commands; one that
    // failed is remembered to the end.
    let transcript = "
        USER => SUBSCRIBE | ready
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
