//! Query plans: a list of a million rows must cost as much as one of ten thousand.

use rusqlite::StatementStatus;

use crate::testing::*;
use base::ids::{MessageId, UserId};
use protocol::command::ConversationCursor;

fn plan(store: &Store, sql: &str) -> String {
    store
        .read(|connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let mut rows = statement.raw_query();
            let mut plan = Vec::new();
            while let Some(row) = rows.next()? {
                plan.push(row.get::<_, String>("detail")?);
            }
            Ok(plan.join("\n"))
        })
        .unwrap()
}

/// Lines of a plan that tell how statements within it come together.
const PARTS: [&str; 5] = [
    "CO-ROUTINE newest",
    "SCAN newest",
    "MERGE (UNION ALL)",
    "LEFT",
    "RIGHT",
];

#[test]
fn no_list_reads_a_table_from_end_to_end() {
    let store = TestStore::new();
    for sql in [
        conversation_list::NEWEST_OF_AUDIENCES,
        conversation_list::OF_ACCOUNT,
        viewer::BELONGS,
        askers::ASKED,
        audience::MEMBERS,
        audience::AUDIENCES_OF,
        search::candidates::SEARCH_IDS,
        search::candidates::SPANS,
        counts::COUNT_OF_AUDIENCE,
        usage::TOKENS_BY,
        usage::USAGE_BY,
        deliveries::UNDELIVERED_STATES,
        files::FIND,
        files::IN_CONVERSATION,
        files::OF_TURN,
        files::OF_MESSAGE,
        files::PIECE_AT,
        messages::PAGE_OF_MESSAGES,
        messages::PAGE_OF_HIDDEN,
        messages::UNTIL_MESSAGE,
        messages::NEWER_MESSAGES,
        messages::IN_CONVERSATION,
        messages::VERSIONS,
        conversation_marks::MARKS,
        conversation_marks::IS_NEWS,
        search::ranking::ITSELF,
        search::ranking::BEFORE,
        search::ranking::AFTER,
        history::PAST_TURNS,
        history::WORDLESS_TURNS,
        history::PAST_STEPS,
        history::VIEW,
        shown::SHOWN,
        forgetting::TOLD,
        kept_results::FIND,
        lists::FIND,
        lists::ITEMS_OF,
        turns::FIND_TURN,
        repeats::TURN_OF_REQUEST,
        replayed_history::CANDIDATES,
        replayed_history::NEWEST_MESSAGES,
        replayed_history::NEWEST_TURN,
        due::NEXT_ACCOUNT,
        due::DUE_DELIVERIES,
        due::DUE_NOTIFICATIONS,
        push_subscriptions::OF_USER,
        push_subscriptions::FIND_SUBSCRIPTION,
        deliveries::DELIVERIES_OF_STATE,
        deliveries::OLDEST_UNDELIVERED,
        crate::home::runs::DUE_SCHEDULES,
        tokens::FIND_IDENTITY,
        tokens::SPOKEN_FOR,
    ] {
        let plan = plan(&store, sql);
        for line in plan.lines() {
            assert!(
                line.starts_with("SEARCH")
                    || line.contains("VIRTUAL TABLE INDEX")
                    || line.contains("SCALAR SUBQUERY")
                    || PARTS.contains(&line),
                "{sql}\n{plan}"
            );
        }
    }
}

#[test]
fn what_is_unfinished_is_found_without_what_is_finished() {
    let store = TestStore::new();
    for (sql, index) in [
        (turns::UNFINISHED_TURNS, "turns_unfinished"),
        (turns::UNFINISHED_BY_STATE, "turns_unfinished"),
        (turns::UNFINISHED_STATES, "turns_unfinished"),
        (approvals::WAITING_APPROVALS, "approvals_undecided"),
        (approvals::EXPIRED_APPROVALS, "approvals_undecided"),
        (due::NEXT_DUE, "deliveries_due"),
        (due::NEXT_DUE, "notifications_due"),
        (due::NEXT_DUE, "schedules_due"),
        (due::NEXT_DUE, "approvals_undecided"),
        (crate::home::runs::NEXT_SCHEDULE, "schedules_due"),
        (deliveries::UNDELIVERED_BY_STATE, "deliveries_by_state"),
    ] {
        let plan = plan(&store, sql);
        assert!(plan.contains(&format!("INDEX {index}")), "{sql}\n{plan}");
    }
}

#[test]
fn what_somebody_often_asks_is_counted_in_their_newest_conversations() {
    let plan = plan(&TestStore::new(), messages::REPEATED_OPENINGS);
    for part in [
        "INDEX conversations_by_owner",
        "INDEX messages_by_conversation",
    ] {
        assert!(plan.contains(part), "{plan}");
    }
    let is_scan = |line: &&str| line.starts_with("SCAN") && !PARTS.contains(line);
    assert_eq!(plan.lines().find(is_scan), None, "{plan}");
}

/// People with these ids: one with a hundred lists of names, a guest, another.
const MANY_LISTS: i64 = 1;
const GUEST: i64 = 2;
const OTHER: i64 = 3;
/// The audience of the guest's few conversations, which are the oldest.
const OF_GUEST: i64 = 2;
const OF_OTHER: i64 = 3;
const LISTS: i64 = 100;
const FIRST_LIST: i64 = 4;
const OF_GUEST_MOST: i64 = 5;

/// So many conversations: three of four are another person's alone, and the rest are
/// the household's and in turns those of the lists.
fn fill(store: &Store, conversations: i64) {
    let sql = format!(
        "INSERT INTO users (id, name, folded_name, role, password_hash, created_at)
         VALUES ({MANY_LISTS}, 'a', 'a', 'user', '-', 0), ({GUEST}, 'b', 'b', 'viewer', '-', 0),
             ({OTHER}, 'c', 'c', 'user', '-', 0);
         INSERT INTO audiences (id, members)
         VALUES ({OF_GUEST}, '{GUEST},{OTHER}'), ({OF_OTHER}, '{OTHER}');
         INSERT INTO audience_members (audience_id, user_id)
         VALUES ({OF_GUEST}, {GUEST}), ({OF_GUEST}, {OTHER}), ({OF_OTHER}, {OTHER});
         WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {LISTS})
         INSERT INTO audiences (id, members) SELECT {FIRST_LIST} + i, 'list ' || i FROM n;
         INSERT INTO audience_members (audience_id, user_id)
         SELECT id, {MANY_LISTS} FROM audiences WHERE id >= {FIRST_LIST};
         WITH RECURSIVE n (i) AS
             (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {conversations})
         INSERT INTO conversations
             (id, title, channel, created_at, updated_at, message_count, latest, audience_id)
         SELECT i, 'one', 'websocket', i, i, 1, i,
             CASE WHEN i <= {OF_GUEST_MOST} THEN {OF_GUEST} WHEN i % 4 THEN {OF_OTHER}
                 WHEN i % 8 THEN 1 ELSE {FIRST_LIST} + i / 8 % {LISTS} END
         FROM n;"
    );
    let filled = store.write(move |write| Ok(write.connection.execute_batch(&sql)?));
    filled.unwrap();
}

/// Steps of SQLite's machine that a list or a search takes: some for each entry of an index and
/// each row that it reads.
fn steps(store: &Store, list: impl FnOnce()) -> i32 {
    let count = || {
        store.read(|connection| {
            let mut steps = 0;
            for sql in [
                audience::AUDIENCES_OF,
                conversation_list::NEWEST_OF_AUDIENCES,
                audience::MEMBERS,
                search::candidates::SEARCH_IDS,
                search::candidates::SPANS,
                viewer::BELONGS,
            ] {
                let statement = connection.prepare_cached(sql)?;
                steps += statement.reset_status(StatementStatus::VmStep);
            }
            Ok(steps)
        })
    };
    count().unwrap();
    list();
    count().unwrap()
}

#[test]
fn a_page_costs_the_same_of_few_and_of_many_conversations() {
    const FEW: i64 = 4_000;
    const MANY: i64 = 40_000;
    const PAGE: usize = 50;
    let [few, many] = [FEW, MANY].map(|conversations| {
        let store = TestStore::new();
        fill(&store, conversations);
        (store, conversations)
    });
    let person = |id, role| Viewer::person(UserId::from(id), role);
    let has_lists = person(MANY_LISTS, UserRole::User);
    for (who, viewer, expected) in [
        ("the server", Viewer::server(), PAGE),
        ("one with many lists of names", has_lists.clone(), PAGE),
        (
            "their token for the household",
            has_lists.household_only(),
            PAGE,
        ),
        (
            "a guest",
            person(GUEST, UserRole::Viewer),
            OF_GUEST_MOST as usize,
        ),
    ] {
        for part in [1, 2] {
            let [few, many] = [&few, &many].map(|(store, conversations)| {
                let before = MessageId::from(conversations / part + 1);
                steps(store, || {
                    let page = store.seen(&viewer).conversations(
                        PAGE,
                        Some(ConversationCursor(before)),
                        false,
                    );
                    assert_eq!(page.unwrap().conversations.len(), expected);
                })
            });
            println!("{who}, 1/{part}: {few} {many}");
            assert!(
                many <= few + few / 5,
                "{who}, 1/{part}: {many} steps, {few} of few"
            );
        }
    }
}

#[test]
fn a_search_skips_what_was_said_among_others() {
    const OTHERS: i64 = 1_000_000;
    let [few, many] = [2_000, 10_000].map(|messages: i64| {
        let store = TestStore::new();
        fill(&store, 8);
        let newest = OTHERS + messages;
        // In two conversations of the guest, beside them and between them.
        let sql = format!(
            "DELETE FROM conversations WHERE id > 3;
             INSERT INTO messages (id, conversation_id, role, content, created_at)
             VALUES (10, 1, 'user', 'the first', 0), (30, 1, 'user', 'the second', 0),
                 ({newest} + 1, 2, 'user', 'the third', 0);
             UPDATE conversations SET audience_id = {OF_OTHER} WHERE id = 3;
             UPDATE conversations SET latest = 30 WHERE id = 1;
             UPDATE conversations SET latest = {newest} + 1 WHERE id = 2;
             UPDATE conversations SET latest = {newest} WHERE id = 3;
             WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
             INSERT INTO messages (id, conversation_id, role, content, created_at)
             SELECT CASE WHEN i > 5 THEN {OTHERS} + i ELSE i * 5 + 1 END, 3, 'user', 'the', 0
             FROM n;
             UPDATE meta SET value = 0 WHERE key = 'indexed_to';"
        );
        let filled = store.write(move |write| Ok(write.connection.execute_batch(&sql)?));
        filled.unwrap();
        while store.index_messages().unwrap() {}
        let viewer = Viewer::person(UserId::from(GUEST), UserRole::Viewer);
        steps(&store, || {
            let found = newest_with(&store, &viewer, "the", 50);
            let texts: Vec<_> = found.into_iter().map(|found| found.content).collect();
            assert_eq!(texts, ["the third", "the second", "the first"]);
        })
    });
    assert!(many <= few + few / 5, "{many} steps, {few} of few");
}
