//! Query plans: a list of a million rows must cost as much as one of ten thousand.

use crate::testing::*;

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

#[test]
fn no_list_reads_a_table_from_end_to_end() {
    let store = TestStore::new();
    for sql in [
        conversations::NEWEST_OF_AUDIENCE,
        conversations::OF_ACCOUNT,
        conversations::PAGE_OF_AUDIENCE,
        conversations::BELONGS,
        audience::MEMBERS,
        viewer::AUDIENCES_OF,
        messages::SEARCH_IDS,
        counts::COUNT_OF_AUDIENCE,
        usage::TOKENS_BY,
        usage::USAGE_BY,
        deliveries::UNDELIVERED_STATES,
        attachments::FIND,
        attachments::OF_MESSAGE,
        attachments::PIECE_AT,
        messages::PAGE_OF_MESSAGES,
        messages::IN_CONVERSATION,
        messages::SEARCH_MESSAGES,
        history::PAST_TURNS,
        history::PAST_STEPS,
        history::SUMMARY,
        history::SUSPENDED,
        turns::FIND_TURN,
        replayed_history::CANDIDATES,
        deliveries::DUE_DELIVERIES,
        deliveries::DELIVERIES_OF_STATE,
        deliveries::OLDEST_UNDELIVERED,
        schedules::DUE_SCHEDULES,
        tokens::FIND_IDENTITY,
        tokens::SPOKEN_FOR,
    ] {
        let plan = plan(&store, sql);
        for line in plan.lines() {
            assert!(
                line.starts_with("SEARCH") || line.contains("VIRTUAL TABLE INDEX"),
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
        (deliveries::NEXT_DELIVERY, "deliveries_due"),
        (schedules::NEXT_SCHEDULE, "schedules_due"),
        (deliveries::UNDELIVERED_BY_STATE, "deliveries_by_state"),
    ] {
        let plan = plan(&store, sql);
        assert!(plan.contains(&format!("INDEX {index}")), "{sql}\n{plan}");
    }
}
