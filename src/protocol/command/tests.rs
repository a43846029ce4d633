use super::*;
use crate::envelope::RequestId;
use base::error::Code;
use base::error::Error;
use base::testing::rows;

fn error_of(text: &str) -> Error {
    Request::parse(text).command.expect_err(text)
}

#[test]
fn every_name_is_a_command() {
    for Declaration { name, .. } in DECLARATIONS {
        let parsed = Request::parse(&format!(r#"{{"type":"{name}"}}"#)).command;
        if let Err(error) = parsed {
            assert!(error.message().contains("is required"), "{name}: {error}");
        }
    }
}

#[test]
fn errors_name_the_field_and_keep_the_id() {
    let table = r#"
        []                                                           | must be a JSON object, not an array
        {                                                            | not valid JSON
        {"id":1}                                                     | "type" is required
        {"id":1,"type":"nope"}                                       | there is no command "nope"; the commands are auth, chat
        {"id":1,"type":"chat"}                                       | "message" is required
        {"id":1,"type":"chat","message":7}                           | "message" must be a string, not a number
        {"id":1,"type":"chat","message":" \n"}                       | "message" must not be empty
        {"id":1,"type":"get_messages","conversation_id":"conv_0000000000001","limit":0} | "limit" must be an integer from 1 to 500, not 0
        {"id":1,"type":"list_conversations","limit":"5"}             | "limit" must be an integer from 1 to 500, not a string
        {"id":1,"type":"subscribe","events":["x"]}                   | there is no event "x"
        {"id":1,"type":"approve","approval_id":"appr_0000000000001","remember":"never"} | "remember" must be
    "#;
    for [text, says] in rows(table) {
        let error = error_of(text);
        assert_eq!(error.code(), Code::InvalidRequest, "{text}");
        assert!(error.message().contains(says), "{text}: {error}");
        if text.contains("\"id\"") {
            assert_eq!(
                Request::parse(text).id,
                Some(RequestId::Number(1.into())),
                "{text}"
            );
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let text = format!(
        r#"{{"type":"chat","message":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(error_of(&text).code(), Code::InvalidRequest);
}

#[test]
fn a_message_over_the_limit_is_too_large() {
    let text = format!(
        r#"{{"type":"chat","message":"{}"}}"#,
        "x".repeat(CHAT_MESSAGE_BYTES + 1)
    );
    assert_eq!(error_of(&text).status(), 413);
}

#[test]
fn unknown_fields_are_ignored() {
    assert!(
        Request::parse(r#"{"type":"ping","color":"red"}"#)
            .command
            .is_ok()
    );
}

#[test]
fn a_declaration_says_what_a_command_takes_and_needs() {
    let declared = |name| DECLARATIONS.iter().find(|one| one.name == name).unwrap();
    let chat = declared("chat");
    assert_eq!(
        chat.fields,
        [
            "message",
            "conversation_id",
            "stream",
            "idempotency_key",
            "attachments",
            "audience",
            "surface",
            "replaces",
            "model"
        ]
    );
    assert_eq!(
        declared("auth").fields,
        ["token", "as_user", "language", "username", "password"]
    );
    assert!(declared("ping").fields.is_empty());
    assert_eq!(chat.role, UserRole::User);
    let Request {
        command: parsed,
        declaration,
        ..
    } = Request::parse(r#"{"type":"chat","message":"hi"}"#);
    assert!(parsed.is_ok());
    assert_eq!(declaration.unwrap().role, UserRole::User);
}

#[test]
fn each_command_but_auth_needs_an_identity() {
    for (text, needs_identity) in [
        (r#"{"type":"ping"}"#, true),
        (r#"{"type":"chat"}"#, true),
        (r#"{"type":"nonsense"}"#, true),
        (r#"{"type":"auth","token":"x"}"#, false),
        (r#"{"type":"auth"}"#, false),
        (r#"{"type":7}"#, false),
        ("{not json", false),
    ] {
        assert_eq!(
            Request::parse(text).needs_identity,
            needs_identity,
            "{text}"
        );
    }
}
