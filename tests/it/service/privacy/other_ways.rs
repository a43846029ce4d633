//! Ways in beside the commands: the model API and webhooks.

use super::*;

fn complete(house: &House, who: usize, messages: &Value) {
    let authorization = format!("Bearer {}", house.tokens[who]);
    let body = json!({ "model": "hearth", "messages": messages });
    let headers = [("authorization", authorization.as_str())];
    let answer = post(
        house.home.address(),
        "/v1/chat/completions",
        &headers,
        &body,
    );
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The conversations that a person sees: id and number of messages.
fn counted(house: &House, who: usize) -> Vec<(String, u64)> {
    let listed = house
        .websocket(who)
        .ask(json!({ "type": "list_conversations" }));
    let list = listed["conversations"].as_array().unwrap().iter();
    list.map(|one| {
        let id = one["id"].as_str().unwrap().to_owned();
        (id, one["message_count"].as_u64().unwrap())
    })
    .collect()
}

#[test]
fn a_replayed_history_finds_no_other_person_s_conversation() {
    let house = House::empty();
    let said = |role: &str, content: &str| json!({ "role": role, "content": content });
    complete(&house, 1, &json!([said("user", "my secret plan")]));
    let history = json!([
        said("user", "my secret plan"),
        said("assistant", "fine"),
        said("user", "and then?"),
    ]);
    complete(&house, 2, &history);
    let (users, cleos) = (counted(&house, 1), counted(&house, 2));
    assert_eq!((users.len(), cleos.len()), (1, 1), "{users:?} {cleos:?}");
    assert_ne!(users[0].0, cleos[0].0);
    assert_eq!((users[0].1, cleos[0].1), (2, 4));
    assert!(counted(&house, 0).is_empty(), "they are private");
    // The person's own goes on.
    complete(&house, 1, &history);
    assert_eq!(counted(&house, 1), [(users[0].0.clone(), 4)]);
}

#[test]
fn a_program_without_a_token_has_only_what_is_the_household_s() {
    let mut house = House::empty();
    house.fill();
    let body = json!({
        "model": "hearth", "stream": false,
        "messages": [{ "role": "user", "content": "what is fact" }],
    });
    let before = house.model.requests().len();
    let answer = post(house.home.address(), "/api/chat", &[], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let shown = json!(house.model.requests()[before..]).to_string();
    assert!(!shown.contains("fact0"), "{shown}");
    assert_eq!(
        counted(&house, 2).len(),
        3,
        "what it begins is the household's"
    );
}

#[test]
fn a_webhook_s_caller_reaches_only_its_account_s_conversations() {
    let house = House::full();
    let send = |account: &str, name: &str| {
        let body = json!({ "message": "hello", "conversation_id": name });
        let path = format!("/{account}");
        let answer = post(house.home.address(), &path, &[("prefer", "wait=20")], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    // Its own name for a conversation is no id of ours.
    for thing in &house.things {
        send("safe", &thing.conversation);
        send("door", &thing.conversation);
    }
    let mine: Vec<(String, u64)> = counted(&house, 1);
    for thing in &house.things {
        let (_, messages) = mine
            .iter()
            .find(|(id, _)| *id == thing.conversation)
            .unwrap();
        let expected = match thing.name.starts_with("from") {
            // It is what the receipt called it.
            true => 4,
            false => 2,
        };
        assert_eq!(*messages, expected, "{}", thing.name);
    }
    // The others are new: each account has six.
    assert_eq!(mine.len(), 4 + 2 * 6);
}

#[test]
fn an_account_s_audience_follows_its_configuration() {
    let mut house = House::full();
    let (door, safe) = (4, 5);
    let sees = |house: &House, who: usize, thing: usize| {
        let id = &house.things[thing].conversation;
        counted(house, who).iter().any(|(known, _)| known == id)
    };
    assert!(sees(&house, 2, door) && !sees(&house, 2, safe));
    let path = house.home.folder.path().join("config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    let accounts = &mut config["channels"][1]["accounts"];
    accounts["safe"]["audience"] = json!(["cleo"]);
    accounts["door"]["audience"] = json!(["viewer"]);
    house.home.stop();
    std::fs::write(&path, config.to_string()).unwrap();
    house.home.restart();
    assert!(sees(&house, 2, safe) && !sees(&house, 1, safe));
    assert!(sees(&house, 3, door) && !sees(&house, 0, door));
}
