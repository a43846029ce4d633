//! Which messages are found for a question, over long conversations.

use serde_json::json;

use support::home::Home;
use support::model::Model;
use support::search::{Evidence, HALVES, measure, measure_by_meaning};

/// The goal is 75 % of the evidence among the first ten passages. Half of the later questions use
/// other words than the answers, which vectors are for.
#[test]
fn what_was_said_is_found_by_questions_in_plain_words() {
    for (language, halves) in measure() {
        for (half, evidence) in HALVES.into_iter().zip(halves) {
            let of = format!("{language}, {half}: {evidence:?}");
            println!("{of}");
            let least = if language == "later English" {
                69.0
            } else {
                75.0
            };
            assert!(evidence.found >= least, "{of}");
            let floor = evidence.floor.max(evidence.floor_with_neighbours);
            assert!(evidence.found > floor, "{of}");
        }
    }
}

/// The goal is 82 % with vectors of a good model; these are of a small one.
#[test]
fn what_was_said_in_other_words_is_found_by_its_meaning() {
    for ((language, by_words), code) in measure().into_iter().zip(["en", "later"]) {
        let by_both = measure_by_meaning(code);
        println!("{language}: {by_words:?} by words, {by_both:?} by both");
        let found = |halves: [Evidence; 2]| (halves[0].found + halves[1].found) / 2.0;
        assert!(by_both[1].found >= 82.0 && found(by_both) > found(by_words) + 3.0);
    }
}

/// What the page, a model and a program over /mcp ask for goes through one ranking.
#[test]
fn every_way_in_finds_the_same_passage() {
    let model = Model::saying("It stands behind the shed, next to the oak.");
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.chat("where did we leave the **ladder**?");
    let titled = client.chat("good morning");
    let rename = json!({
        "type": "rename_conversation", "title": "Ladders and ropes",
        "conversation_id": titled["conversation_id"],
    });
    client.ask(rename);
    let question = "which ladders did Ann leave?";
    let found = client.ask(json!({ "type": "search_messages", "query": question }));
    assert_eq!(found["indexing"], false);
    let hits = found["messages"].as_array().unwrap();
    let hit = hits
        .iter()
        .find(|hit| hit.get("message_id").is_some())
        .unwrap();
    assert_eq!(hit["excerpt"], "where did we leave the ladder?");
    assert_eq!(hit["passage"].as_array().unwrap().len(), 2);
    let title = hits
        .iter()
        .find(|hit| hit.get("message_id").is_none())
        .unwrap();
    assert_eq!(title["title"], "Ladders and ropes");
    assert_eq!(title["conversation_id"], titled["conversation_id"]);
    let newest = json!({ "type": "search_messages", "query": "shed", "order": "newest" });
    let newest = client.ask(newest)["messages"].clone();
    assert_eq!(
        newest.as_array().unwrap().len(),
        2,
        "one for each reply: {newest}"
    );

    let around = json!({
        "type": "get_messages", "conversation_id": hit["conversation_id"],
        "around": hit["message_id"],
    });
    let page = client.ask(around);
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&page["has_more_before"], &page["has_more_after"]),
        (&json!(false), &json!(false))
    );
}
