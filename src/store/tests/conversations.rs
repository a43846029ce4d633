//! Lists, pages, search, deletion.

use crate::testing::*;
use base::error::Code;
use base::ids::{ConversationId, MessageId};
use protocol::command::ConversationCursor;

#[test]
fn pages_of_conversations_hold_while_new_ones_arrive() {
    let store = TestStore::new();
    let made: Vec<ConversationId> = (0..7)
        .map(|number| conversation(&store, &format!("number {number}")))
        .collect();
    let mut seen = Vec::new();
    let mut after: Option<ConversationCursor> = None;
    loop {
        let page = store.seen(&all()).conversations(3, after, false).unwrap();
        assert!(page.conversations.len() <= 3);
        seen.extend(page.conversations.iter().map(|c| c.id));
        conversation(&store, "a new one");
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let newest_first: Vec<ConversationId> = made.iter().rev().copied().collect();
    assert_eq!(seen, newest_first);

    begin(&store, Target::Existing(made[0]), "once more");
    let top = store.seen(&all()).conversations(1, None, false).unwrap();
    assert_eq!(top.conversations[0].id, made[0], "newest activity first");
    let all = store.seen(&all()).conversations(100, None, false).unwrap();
    assert_eq!((all.conversations.len(), all.next), (10, None));
}

#[test]
fn pages_of_messages_go_back_in_time() {
    let store = TestStore::new();
    let id = conversation(&store, "0");
    for number in 1..4 {
        exchange(&store, Target::Existing(id), &number.to_string(), "a reply");
    }
    let texts = |page: &MessagePage| -> Vec<String> {
        page.messages.iter().map(|m| m.content.clone()).collect()
    };
    let last = store.seen(&all()).messages(id, 3, None).unwrap();
    assert_eq!(texts(&last), ["a reply", "3", "a reply"]);
    assert!(last.has_more);
    let first = store
        .seen(&all())
        .messages(id, 5, Some(last.messages[0].id))
        .unwrap();
    assert_eq!(texts(&first), ["0", "a reply", "1", "a reply", "2"]);
    assert!(!first.has_more);
    let none = store
        .seen(&all())
        .messages(id, 5, Some(first.messages[0].id))
        .unwrap();
    assert!(none.messages.is_empty() && !none.has_more);
    let unknown = store
        .seen(&all())
        .messages(ConversationId::from(9), 5, None);
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_page_of_long_messages_is_shorter() {
    let store = TestStore::new();
    let mib = |count: usize| "x ".repeat(count * 512 * 1024);
    let first = exchange(&store, Target::New, "big", &mib(5));
    let id = first.conversation_id;
    exchange(&store, Target::Existing(id), &mib(2), &mib(1));
    let mut sizes = Vec::new();
    let mut before = None;
    loop {
        let page = store.seen(&all()).messages(id, 500, before).unwrap();
        sizes.push(page.messages.len());
        before = Some(page.messages[0].id);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(sizes, [2, 1, 1]);
    assert_eq!(newest_with(&store, &all(), "x", 500).len(), 2);
}

#[test]
fn a_page_before_a_message_of_elsewhere_is_not_found() {
    let store = TestStore::new();
    let one = exchange(&store, Target::New, "one", "1");
    let other = exchange(&store, Target::New, "other", "2");
    let page = |before| {
        store
            .seen(&all())
            .messages(one.conversation_id, 10, Some(before))
    };
    assert_eq!(page(one.reply_id.unwrap()).unwrap().messages.len(), 1);
    assert!(page(one.message_id).unwrap().messages.is_empty());
    for before in [other.message_id, MessageId::from(1)] {
        let error = page(before).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.message().contains(&before.to_string()), "{error}");
    }
}

#[test]
fn a_deleted_conversation_leaves_nothing() {
    let store = TestStore::new();
    let kept = conversation(&store, "the word stays");
    let new = NewTurn {
        message: "the word goes".to_owned(),
        channel: "webhook:ci".to_owned(),
        account: Some("ci".to_owned()),
        ..keyed("a", "b", 0, named("x"))
    };
    let Begun::New { turn, .. } = store.begin_turn(new).unwrap().into_inner() else {
        panic!("a first use is new");
    };
    let step = Step::Started {
        call_id: "1".to_owned(),
    };
    let approvals = store
        .suspend_turn(
            turn.id,
            vec![step],
            turn.audience_id,
            vec![question("run")],
            turn.created_at,
        )
        .unwrap();
    let busy = store
        .delete_conversation(&all(), turn.conversation_id)
        .unwrap_err();
    assert_eq!(busy.code(), Code::InvalidRequest);
    let allow = decision(Verdict::ApprovedConversation);
    store.decide(approvals[0].id, allow).unwrap();
    let (end, delivery) = (done("the word goes too"), Some(callback("{}")));
    let finished = store.finish_turn(turn.id, end, Usage::default(), "m", delivery, Vec::new());
    finished.unwrap();
    assert_eq!(newest_with(&store, &all(), "word", 10).len(), 3);

    store
        .delete_conversation(&all(), turn.conversation_id)
        .unwrap();
    for (table, left) in [
        ("conversations", 1),
        ("messages", 2),
        ("turns", 1),
        ("steps", 0),
        ("approvals", 0),
        ("grants", 0),
        ("deliveries", 0),
        // A repeat of the request must not run again.
        ("idempotency", 1),
    ] {
        let count: Option<i64> = store
            .read(|connection| {
                let sql = format!("SELECT count(*) FROM {table}");
                connection.row(&sql, params![], |row| Ok(row.get(0)?))
            })
            .unwrap();
        assert_eq!(count, Some(left), "{table}");
    }
    let found = newest_with(&store, &all(), "word", 10);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].conversation_id, kept);
    // The index matches its table.
    store
        .write(|write| {
            let check = "INSERT INTO message_terms (message_terms) VALUES ('integrity-check')";
            write.connection.execute_batch(check)?;
            Ok(())
        })
        .unwrap();
    let gone = store
        .delete_conversation(&all(), turn.conversation_id)
        .unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[test]
fn renaming_changes_the_title() {
    let store = TestStore::new();
    let id = conversation(&store, "before");
    store.rename_conversation(&all(), id, "after").unwrap();
    assert_eq!(store.seen(&all()).conversation(id).unwrap().title, "after");
    let unknown = store.rename_conversation(&all(), ConversationId::from(1), "x");
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

#[test]
fn search_finds_all_words_newest_first() {
    let store = TestStore::new();
    for text in [
        "the red fox",
        "the red car, fast",
        "Crème brûlée",
        "a state-of-the-art fox",
        "fox AND hound",
    ] {
        begin(&store, Target::New, text);
    }
    for (query, expected) in [
        (
            "fox",
            vec!["fox AND hound", "a state-of-the-art fox", "the red fox"],
        ),
        ("RED the", vec!["the red car, fast", "the red fox"]),
        ("red fo", vec!["the red fox"]),
        // None has both.
        (
            "re fox",
            vec!["fox AND hound", "a state-of-the-art fox", "the red fox"],
        ),
        ("creme brul", vec!["Crème brûlée"]),
        ("state-of-the", vec!["a state-of-the-art fox"]),
        ("fox hou", vec!["fox AND hound"]),
        ("a", vec!["a state-of-the-art fox"]),
    ] {
        let found = newest_with(&store, &all(), query, 10);
        let found: Vec<&str> = found.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(found, expected, "{query}");
    }
    assert_eq!(newest_with(&store, &all(), "fox", 2).len(), 2);
}

#[test]
fn no_query_is_a_syntax_error() {
    let store = TestStore::new();
    begin(&store, Target::New, "hello world");
    store.remember(fact("hello world", None)).unwrap();
    let many_words = "hello ".repeat(1000);
    for query in [
        "",
        " ",
        "\"",
        "\"\"",
        "'",
        "*",
        "hello*",
        "^hello",
        "-hello",
        "+hello",
        "hello +world",
        "content:hello",
        "{content}:hello",
        "NEAR(hello world)",
        "hello OR",
        "AND",
        "NOT hello",
        "(hello",
        "hello)",
        "hello\0world",
        "\u{0}",
        "\u{24b6}",
        "\u{fffd}",
        "hello \u{301}",
        "ज़िन्दगी",
        "\u{93e}",
        "こんにちは",
        "'; DROP TABLE messages; --",
        "\\",
        "a\"b\"c",
        "🦀",
        "½ ²",
        &many_words,
    ] {
        assert!(
            store
                .snapshot_to_search(&all())
                .unwrap()
                .search_messages(query, None, 10, SearchOrder::Relevance)
                .is_ok(),
            "{query:?}"
        );
        assert!(
            store.seen(&all()).recall(query, None, 10).is_ok(),
            "{query:?}"
        );
    }
    // Every character of the first plane, alone and inside a word.
    for character in (0..0x1_0000).step_by(7).filter_map(char::from_u32) {
        let query = format!("{character} x{character}y");
        assert!(
            store
                .snapshot_to_search(&all())
                .unwrap()
                .search_messages(&query, None, 1, SearchOrder::Relevance)
                .is_ok(),
            "{query:?}"
        );
    }
}

/// Neither with its message nor with its conversation does the key of a turn go.
#[test]
fn what_was_deleted_is_not_run_again() {
    let store = TestStore::new();
    let again = || store.begin_turn(keyed("user:1", "a", 1, Target::New));
    let Begun::New { turn, .. } = again().unwrap().into_inner() else {
        panic!("the first is new");
    };
    finish(&store, &turn, "done");
    store.delete_message(&all(), turn.message_id).unwrap();
    for _ in 0..2 {
        let error = again().unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.message().contains("was deleted"), "{error}");
        // The second time, the conversation is gone, too.
        let _ = store.delete_conversation(&all(), turn.conversation_id);
    }
    let other = store.begin_turn(keyed("user:1", "a", 2, Target::New));
    assert_eq!(other.unwrap_err().status(), 422);
}
