use base::ids::ConversationId;
use protocol::command::SearchOrder;

use crate::testing::*;

fn ask(store: &Store, query: &str) -> Vec<Hit> {
    let found = store.snapshot_to_search(&all()).unwrap();
    let found = found.search_messages(query, None, 10, SearchOrder::Relevance);
    found.unwrap().hits
}

/// The texts of the first hit: those before and after it with it.
fn first(store: &Store, query: &str) -> Vec<String> {
    let hits = ask(store, query);
    let hit = hits.first();
    let parts = hit.map(|hit| [&hit.before, &hit.message, &hit.after]);
    let parts = parts.into_iter().flatten().flatten();
    parts.map(|message| message.content.clone()).collect()
}

#[test]
fn a_question_finds_the_passage_that_answers_it() {
    let store = TestStore::new();
    for (question, answer) in [
        ("How was your weekend?", "We painted the shed green."),
        (
            "What broke this time?",
            "The boiler, in the coldest night of the year.",
        ),
        ("Wo liegt der Schlüssel?", "Unter den Büchern im Flur."),
        ("¿Qué compraste?", "Dos bicicletas para las niñas."),
        ("我们什么时候去花园？", "下个星期天，如果不下雨。"),
        ("サウナはどうだった？", "とても熱かった。"),
    ] {
        exchange(&store, Target::New, question, answer);
    }
    for (query, passage) in [
        ("when did somebody paint a shed", 0),
        ("boilers that break", 1),
        ("in welchem Buch liegen die Schlüssel", 2),
        ("buch", 2),
        ("una bicicleta", 3),
        ("花园", 4),
        ("サウナ", 5),
        ("the shed and a chimney", 0),
        ("pain", 0),
    ] {
        let texts = first(&store, query);
        let expected = [
            "weekend",
            "broke",
            "Schlüssel",
            "compraste",
            "花园",
            "サウナ",
        ][passage];
        assert!(
            texts.first().is_some_and(|text| text.contains(expected)),
            "{query}: {texts:?}"
        );
        assert_eq!(texts.len(), 2, "both of the exchange, {query}");
    }
    assert!(ask(&store, "chimney").is_empty());
}

#[test]
fn rare_words_names_and_days_count() {
    let store = TestStore::new();
    let mut importing = begin_import(&store);
    let said = |day: &str, speaker: &str, content: &str| {
        let message = serde_json::json!({
            "role": "user", "timestamp": format!("{day}T10:00:00Z"), "speaker": speaker,
            "content": content,
        });
        (serde_json::from_value(message).unwrap(), None)
    };
    let filler = |day: usize| said(&format!("2026-03-{day:02}"), "Ben", "more about the garden");
    let mut messages: Vec<_> = (1..=20).map(filler).collect();
    messages.push(said("2026-05-02", "Ann", "the trip to the lake was cold"));
    messages.extend((3..=20).map(|day| said(&format!("2026-05-{day:02}"), "Ben", "the garden")));
    messages.push(said("2026-07-09", "Ben", "the trip to the lake was hot"));
    messages.push(said(
        "2026-07-10",
        "Ann",
        "a garden, a heron in the garden, and no trip",
    ));
    importing.add(messages).unwrap();
    importing.finish().unwrap();
    for (query, expected) in [
        ("the lake in May 2026", "cold"),
        ("the lake on 9 July 2026", "hot"),
        ("how was Ann's trip to the lake?", "cold"),
        ("how was Ben's trip to the lake?", "hot"),
        ("a heron in the garden", "heron"),
    ] {
        let hits = ask(&store, query);
        let text = &hits[0].message.as_ref().unwrap().content;
        assert!(text.contains(expected), "{query}: {text}");
        assert!(hits.is_sorted_by(|one, other| one.score >= other.score));
    }
}

fn begin_import(store: &Store) -> Import {
    let new = serde_json::json!({ "title": "x", "created_at": "2026-03-01T10:00:00Z" });
    let ownership = Ownership {
        owner: None,
        audience: Audience::Household,
        copy_for: None,
    };
    let new = serde_json::from_value(new).unwrap();
    let begun = store.begin_import("test", new, Vec::new(), ownership);
    begun.unwrap().unwrap()
}

#[test]
fn a_title_is_found_unless_a_message_says_the_same() {
    let store = TestStore::new();
    let conversation = |text: &str| -> ConversationId {
        exchange(&store, Target::New, text, "yes").conversation_id
    };
    let renamed = conversation("shall we go?");
    conversation("zebras in the zoo");
    let title = "Zebra crossings".to_owned();
    store.rename_conversation(&all(), renamed, &title).unwrap();
    let hits = ask(&store, "zebra");
    let found: Vec<_> = hits
        .iter()
        .map(|hit| (hit.title.as_str(), hit.message.is_some()))
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&("Zebra crossings", false)), "{found:?}");
    assert!(found.contains(&("zebras in the zoo", true)), "{found:?}");
}

/// However many newer conversations there are, and also once an upgrade has left it.
#[test]
fn an_old_title_is_found_among_many() {
    let store = TestStore::new();
    let old = exchange(&store, Target::New, "shall we go?", "yes").conversation_id;
    let title = "Zebra crossings".to_owned();
    store.rename_conversation(&all(), old, &title).unwrap();
    let newer = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
         INSERT INTO conversations
             (id, title, channel, created_at, updated_at, message_count, latest, audience_id)
         SELECT c.id + i, 'Other', 'websocket', 0, 0, 0, c.latest + i, c.audience_id
         FROM n CROSS JOIN conversations c;";
    let upgrade = "INSERT INTO title_terms (title_terms) VALUES ('delete-all');
         INSERT INTO meta (key, value)
         SELECT 'untitled_before', max(id) + 1 FROM conversations;";
    let run = |sql: &'static str| {
        let ran = store.write(move |write| Ok(write.connection.execute_batch(sql)?));
        ran.unwrap();
    };
    let found = || ask(&store, "zebras").iter().any(|hit| hit.title == title);
    run(newer);
    assert!(found());
    run(upgrade);
    assert!(!found());
    while store.index_messages().unwrap() {}
    assert!(found());
    store.delete_conversation(&all(), old).unwrap();
    assert!(!found());
    assert_eq!(number(&store, "SELECT count(*) FROM title_terms"), 2_500);
}

/// A turn does not wait for the index, and a search for nothing but the index.
#[test]
fn what_was_just_said_is_indexed_when_it_is_looked_for() {
    let store = TestStore::new();
    let indexed = || number(&store, "SELECT count(*) FROM message_terms");
    exchange(&store, Target::New, "Where is the ladder?", "In the barn.");
    let gone = exchange(&store, Target::New, "And the ladder's hooks?", "Lost.");
    store
        .delete_conversation(&all(), gone.conversation_id)
        .unwrap();
    assert_eq!(indexed(), 0);
    assert_eq!(
        first(&store, "ladder"),
        ["Where is the ladder?", "In the barn."]
    );
    assert_eq!(indexed(), 2);
    assert!(!store.index_messages().unwrap(), "nothing is left");
}

#[test]
fn what_an_upgrade_left_is_indexed_in_the_background_the_newest_first() {
    let store = TestStore::new();
    for number in 0..1_200 {
        begin(&store, Target::New, &format!("message{number} of many"));
    }
    while store.index_messages().unwrap() {}
    store
        .write(|write| {
            Ok(write.connection.execute_batch(
                "INSERT INTO message_terms (message_terms) VALUES ('delete-all');
                 INSERT INTO meta (key, value)
                 SELECT 'unindexed_before', max(id) + 1 FROM messages;",
            )?)
        })
        .unwrap();
    let look = |query: &str| {
        let found = store.snapshot_to_search(&all()).unwrap();
        let found = found
            .search_messages(query, None, 10, SearchOrder::Relevance)
            .unwrap();
        let messages = found.hits.iter().filter(|hit| hit.message.is_some());
        (messages.count(), found.is_indexing)
    };
    let new = begin(&store, Target::New, "a new one");
    assert_eq!(look("new"), (1, true), "at once");
    assert_eq!(look("message1199"), (0, true));
    assert!(store.index_messages().unwrap());
    assert_eq!(
        (look("message1199"), look("message0")),
        ((1, true), (0, true))
    );
    // One that goes before it has its turn leaves nothing.
    let first = newest_with(&store, &all(), "message1199", 1)[0].conversation_id;
    store
        .write(|write| {
            Ok(write
                .connection
                .execute_batch("DELETE FROM messages WHERE content = 'message5 of many'")?)
        })
        .unwrap();
    assert_ne!(first, new.conversation_id);
    while store.index_messages().unwrap() {}
    assert_eq!(look("message0"), (1, false));
    assert_eq!(number(&store, "SELECT count(*) FROM message_terms"), 1_200);
}

#[test]
fn what_is_near_by_its_meaning_is_found_too() {
    let store = TestStore::new();
    let say = |text: &str| begin(&store, Target::New, text).conversation_id;
    let others: Vec<ConversationId> = (0..30)
        .map(|number| say(&format!("shelf {number}")))
        .collect();
    let told = begin(&store, Target::New, "Zoë keeps her zither upstairs");
    let near = told.conversation_id;
    let look = |query: &str| -> Vec<ConversationId> {
        let seen = store.snapshot_to_search(&all()).unwrap();
        let found = seen.search_messages(query, Some(&towards(3)), 10, SearchOrder::Relevance);
        let hits = found.unwrap().hits.into_iter();
        hits.map(|hit| hit.conversation_id).collect()
    };
    let keep = |model: &str| {
        let waiting = store.messages_without_vector(model, 100).unwrap();
        let direction = |text: &str| match text.contains("zither") {
            true => 3,
            false => text.len() % 3,
        };
        let made = waiting
            .iter()
            .map(|(message, text)| (*message, towards(direction(text))));
        store.keep_message_vectors(model, made.collect()).unwrap();
        waiting.len()
    };
    assert!(store.has_messages_without_vector("one").unwrap());
    assert!(look("mandolin").is_empty());
    assert_eq!(keep("one"), 31);
    assert!(!store.has_messages_without_vector("one").unwrap());
    assert_eq!(look("mandolin"), [near]);
    // Both orders count.
    assert_eq!(look("on shelf 17")[..2], [near, others[17]]);

    // What follows changes the passage of what was said before it, and imports have theirs.
    exchange(
        &store,
        Target::Existing(near),
        "and its strings?",
        "In a drawer.",
    );
    let waiting = store.messages_without_vector("one", 100).unwrap();
    let texts: Vec<&str> = waiting.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "and its strings?\nIn a drawer.",
            "Zoë keeps her zither upstairs\nand its strings?\nIn a drawer.",
            "Zoë keeps her zither upstairs\nand its strings?",
        ]
    );
    assert_eq!(keep("one"), 3);
    let mut importing = begin_import(&store);
    let old = serde_json::json!({
        "role": "user", "timestamp": "2019-03-01T10:00:00Z", "speaker": "Ann", "content": "zither",
    });
    importing
        .add(vec![(serde_json::from_value(old).unwrap(), None)])
        .unwrap();
    importing.finish().unwrap();
    let waiting = store.messages_without_vector("one", 100).unwrap();
    assert_eq!(waiting[0].1, "Ann: zither");
    assert_eq!(keep("one"), 1);

    // Of another model, all are made anew; the old one's come too late.
    let late = store.messages_without_vector("two", 100).unwrap();
    assert_eq!(late.len(), 34);
    assert!(look("mandolin").is_empty());
    store
        .keep_message_vectors("one", vec![(late[0].0, towards(3))])
        .unwrap();
    assert_eq!(keep("two"), 34);

    // A message takes its vector along and is part of no other passage; only the newest keep
    // theirs.
    let sql = "DELETE FROM messages WHERE content = 'and its strings?'";
    let delete = store.write(|write| Ok(write.connection.execute_batch(sql)?));
    delete.unwrap();
    assert_eq!(keep("two"), 2);
    let kept = || number(&store, "SELECT count(*) FROM message_vectors");
    finish(&store, &told, "I see.");
    store.delete_conversation(&all(), near).unwrap();
    assert_eq!(kept(), 31);
    assert!(!look("mandolin").contains(&near));
    store.purge_message_vectors(12).unwrap();
    assert_eq!(kept(), 12);
    let newest = "SELECT count(*) FROM (SELECT id FROM messages ORDER BY id DESC LIMIT 12)
        WHERE id IN (SELECT message_id FROM message_vectors)";
    assert_eq!(number(&store, newest), 12);
}

/// Vectors take a while to make, and people go on talking.
#[test]
fn the_vector_of_a_passage_that_has_changed_is_made_again() {
    let store = TestStore::new();
    let told = begin(&store, Target::New, "Zoë keeps her zither upstairs");
    let waiting = || store.messages_without_vector("one", 100).unwrap();
    let keep = |old: Vec<(MessageBetween, String)>| {
        let made = old.iter().map(|(message, _)| (*message, towards(3)));
        store.keep_message_vectors("one", made.collect()).unwrap();
    };
    let alone = waiting();
    finish(&store, &told, "I see.");
    keep(alone);
    let with_reply = waiting();
    assert_eq!(
        with_reply.last().unwrap().1,
        "Zoë keeps her zither upstairs\nI see."
    );
    let sql = "DELETE FROM messages WHERE content = 'I see.'";
    let delete = store.write(|write| Ok(write.connection.execute_batch(sql)?));
    delete.unwrap();
    keep(with_reply);
    let alone = waiting();
    assert_eq!(alone[0].1, "Zoë keeps her zither upstairs");
    keep(alone);
    assert!(waiting().is_empty());
}

#[test]
fn a_page_around_a_message_has_it_in_its_middle() {
    let store = TestStore::new();
    let id = exchange(&store, Target::New, "0", "0!").conversation_id;
    for number in 1..10 {
        exchange(
            &store,
            Target::Existing(id),
            &number.to_string(),
            &format!("{number}!"),
        );
    }
    let whole = store.seen(&all()).messages(id, 100, None).unwrap().messages;
    let around = |place: usize| {
        let found = store.seen(&all()).messages_around(id, 4, whole[place].id);
        let (page, has_newer) = found.unwrap();
        let texts = page.messages.into_iter().map(|message| message.content);
        (
            texts.collect::<Vec<_>>().join(" "),
            page.has_more,
            has_newer,
        )
    };
    assert_eq!(around(6), ("2! 3 3! 4".to_owned(), true, true));
    assert_eq!(around(0), ("0 0! 1".to_owned(), false, true));
    assert_eq!(around(19), ("9 9!".to_owned(), true, false));
    let other = exchange(&store, Target::New, "other", "!");
    let unknown = store.seen(&all()).messages_around(id, 4, other.message_id);
    assert_eq!(unknown.unwrap_err().code(), base::error::Code::NotFound);
}
