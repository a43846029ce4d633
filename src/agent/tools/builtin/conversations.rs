//! Earlier conversations.

use serde_json::json;

use crate::tools::definition::{Arguments, Definition, ToolContext, required_text, text};
use crate::tools::function::FunctionTool;
use crate::tools::output::minute;
use protocol::command::SearchOrder;
use store::{Hit, Message, Role, excerpt};

/// Passages that one answer lists, unless the model asks for another number.
const DEFAULT_LIMIT: u64 = 5;
/// Most passages that one answer lists.
const MAX_LIMIT: u64 = 20;
/// Characters shown of each message.
const SHOWN_CHARS: usize = 300;

pub(super) fn search() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "search_conversations",
            "Find what was said earlier by any of the words.",
            json!({
                "query": {"type": "string"},
                "limit": {"type": "integer"},
            }),
            &["query"],
        )
        .for_readers()
        .read_only(),
        intent: |arguments, approver| {
            let query = text(arguments, "query")?;
            approver.intent("action.search_conversations", &[("query", query)])
        },
        run,
    }
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let query = required_text(arguments, "query")?;
    let limit = limit(arguments)?;
    let vector = context.vector_of(query);
    let seen = context.store.snapshot_to_search(&context.viewer)?;
    let found = seen.search_messages(query, vector.as_ref(), limit, SearchOrder::Relevance)?;
    drop(seen);
    let later = match found.is_indexing {
        true => "\nOlder messages are not found yet: try again in some minutes.",
        false => "",
    };
    if found.hits.is_empty() {
        return Ok(format!("No message has a word of {query:?}.{later}"));
    }
    let conversations = found.hits.iter().map(|hit| hit.conversation_id);
    context.shows_kept(context.seen()?.have_outside_text(conversations)?);
    let hits: Vec<String> = found
        .hits
        .iter()
        .map(|hit| shown(hit, &found.words))
        .collect();
    Ok(format!("{}{later}", hits.join("\n\n")))
}

/// A hit: where it is, and what was said, one message on each line.
fn shown(hit: &Hit, words: &[String]) -> String {
    let mut text = format!("{} {:?}", hit.conversation_id, hit.title);
    for message in [&hit.before, &hit.message, &hit.after]
        .into_iter()
        .flatten()
    {
        text.push('\n');
        text.push_str(&line(message, words));
    }
    text
}

fn limit(arguments: &Arguments) -> Result<usize, String> {
    let Some(limit) = arguments.get("limit") else {
        return Ok(DEFAULT_LIMIT as usize);
    };
    match limit.as_u64() {
        Some(limit @ 1..=MAX_LIMIT) => Ok(limit as usize),
        _ => Err(format!(
            "the argument \"limit\" must be an integer from 1 to {MAX_LIMIT}, not {limit}"
        )),
    }
}

/// One message on one line.
fn line(message: &Message, words: &[String]) -> String {
    let speaker = match (message.role, &message.speaker) {
        (Role::Assistant, _) => "assistant",
        (Role::User, Some(name)) => name,
        (Role::User, None) => "user",
    };
    format!(
        "({}, {speaker}): {}",
        minute(message.created_at),
        excerpt(&message.content, words, SHOWN_CHARS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Household;
    use base::clock::Timestamp;
    use base::ids::{ConversationId, MessageId};

    #[test]
    fn the_limit_has_a_range() {
        for (arguments, expected) in [
            (json!({}), Some(5)),
            (json!({"limit": 1}), Some(1)),
            (json!({"limit": 20}), Some(20)),
            (json!({"limit": 0}), None),
            (json!({"limit": 21}), None),
            (json!({"limit": -1}), None),
        ] {
            assert_eq!(
                limit(arguments.as_object().unwrap()).ok(),
                expected,
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_message_is_one_line() {
        for (role, speaker, content, text) in [
            (Role::User, Some("Ann"), "two\n lines", "Ann): two lines"),
            (Role::User, None, "x", "user): x"),
            (Role::Assistant, None, "x", "assistant): x"),
        ] {
            let message = Message {
                id: MessageId::from(1),
                conversation_id: ConversationId::from(2),
                turn_id: None,
                role,
                content: content.to_owned(),
                speaker: speaker.map(str::to_owned),
                in_reply_to: None,
                versions: Vec::new(),
                finish_reason: None,
                created_at: Timestamp::from_millis(1_795_253_400_125),
                attachments: Vec::new(),
            };
            assert_eq!(
                line(&message, &["two".to_owned()]),
                format!("(2026-11-21 09:30 UTC, {text}")
            );
        }
    }

    #[test]
    fn earlier_messages_are_found() {
        let household = Household::new();
        let first = household.say("the boiler makes a noise");
        let second = household.say("is the boiler\nquiet now?");
        let found = household
            .run("search_conversations", json!({"query": "boiler"}))
            .unwrap();
        let hits: Vec<&str> = found.split("\n\n").collect();
        assert_eq!(hits.len(), 2, "{found}");
        for (conversation, said) in [(first, "makes a noise"), (second, "quiet now?")] {
            let hit = hits
                .iter()
                .find(|hit| hit.starts_with(&conversation.to_string()));
            let line = hit.unwrap().lines().nth(1).unwrap();
            assert!(line.contains(", Ann): ") && line.ends_with(said), "{found}");
        }
        let one = household.run(
            "search_conversations",
            json!({"query": "which boiler was noisy?", "limit": 1}),
        );
        assert_eq!(one.unwrap().split("\n\n").count(), 1);
        assert!(
            household
                .run("search_conversations", json!({"query": "chimney"}))
                .unwrap()
                .starts_with("No message")
        );
    }
}
