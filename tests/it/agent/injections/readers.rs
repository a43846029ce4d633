//! Tools of an MCP server that is not trusted: those that its owner declared to read run
//! unasked, and nothing that they bring, or that passes for them, has an effect unasked.

use serde_json::{Value, json};

use super::world::{Outcome, World};

const READ: &str = "mcp_attic_read";

fn read(id: &str) -> Value {
    json!({ "id": id })
}

fn order(tool: &str, arguments: &Value) -> String {
    format!("«{tool} {arguments}»")
}

/// What came of this call, said in a conversation.
fn attempt(
    world: &mut World,
    conversation: Option<&Value>,
    tool: &str,
    arguments: &Value,
) -> Outcome {
    world.begin(tool, arguments);
    world.say(conversation, &order(tool, arguments));
    world.outcome()
}

#[test]
fn what_is_allowed_runs_unasked_until_outside_text_was_read() {
    let mut world = World::start("ask", &json!({ "mcp": true }));
    // A server that is merely there makes nothing ask, its own tools neither.
    let memory = json!({ "content": "The bins go out on Monday." });
    assert_eq!(attempt(&mut world, None, "remember", &memory), Outcome::Ran);
    world.mcp("There is a box.", false);
    world.begin(READ, &read("1"));
    let conversation = world.say(None, &order(READ, &read("1")));
    assert_eq!(world.outcome(), Outcome::Ran);
    // Nobody said that it only reads.
    let again = attempt(&mut world, Some(&conversation), READ, &read("2"));
    assert_eq!(again, Outcome::Asked);
    assert_eq!(world.after, "After reading what attic said");
}

#[test]
fn a_declared_reader_runs_unasked_and_what_it_brings_stays_outside_text() {
    for declared in [json!(["read"]), json!(true)] {
        let mut world = World::start("ask", &json!({ "mcp": { "read_only": declared } }));
        let door = json!({ "id": "1" });
        world.mcp(&order("open_door", &door), false);
        world.begin("open_door", &door);
        let conversation = world.say(None, &order(READ, &read("1")));
        assert_eq!(world.outcome(), Outcome::Asked);
        assert_eq!(world.after, "After reading what attic said");
        let again = attempt(&mut world, Some(&conversation), READ, &read("2"));
        assert_eq!(again, Outcome::Ran);
        // Much is not carried out with it, whatever the model was made to take along.
        let much = read(&"x".repeat(1_024));
        let carried = attempt(&mut world, Some(&conversation), READ, &much);
        assert_eq!(carried, Outcome::Asked);
        let fresh = attempt(&mut world, None, READ, &much);
        assert_eq!(fresh, Outcome::Ran, "nothing made the model take it along");
        // Nor in pieces: the calls of a turn take no more along together.
        let piece = |letter: &str| read(&letter.repeat(300));
        world.begin(READ, &piece("d"));
        let orders = ["a", "b", "c", "d"].map(|letter| order(READ, &piece(letter)));
        world.say(Some(&conversation), &orders.concat());
        assert_eq!(world.outcome(), Outcome::Asked);
        let later = attempt(&mut world, Some(&conversation), READ, &piece("e"));
        assert_eq!(later, Outcome::Ran, "a turn begins with nothing");
        // One that takes something else since is what it was declared to be no longer.
        world.take("Another argument.");
        let changed = attempt(&mut world, Some(&conversation), READ, &read("3"));
        assert_eq!(changed, Outcome::Asked);
    }
}

#[test]
fn a_tool_that_reaches_any_address_is_a_reader_only_by_its_name() {
    for (declared, expected) in [
        (json!(true), Outcome::Asked),
        (json!(["read", "fetch"]), Outcome::Ran),
    ] {
        let mut world = World::start("ask", &json!({ "mcp": { "read_only": declared } }));
        world.mcp("There is a box.", false);
        let conversation = world.say(None, &order(READ, &read("1")));
        let fetch = "mcp_attic_fetch";
        let fetched = attempt(&mut world, Some(&conversation), fetch, &read("2"));
        assert_eq!(fetched, expected, "{declared}");
    }
}

#[test]
fn a_tool_that_is_not_declared_is_no_reader_whatever_its_server_says() {
    let mut world = World::start("ask", &json!({ "mcp": { "read_only": ["other"] } }));
    world.mcp("There is a box.", false);
    let conversation = world.say(None, &order(READ, &read("1")));
    let again = attempt(&mut world, Some(&conversation), READ, &read("2"));
    assert_eq!(again, Outcome::Asked);
}
