//! Memories: what the assistant was asked to remember.

use serde_json::{Value, json};

use crate::model::fence::{is_untrusted, provenance};
use crate::tools::definition::{
    Arguments, Change, Definition, ToolContext, required_text, text, texts,
};
use crate::tools::function::FunctionTool;
use crate::tools::output::{minute, shorten};
use crate::tools::wording::{Approver, Intent};
use base::ids::MemoryId;
use base::sync::lock;
use store::{Audience, NewMemory};

/// Most characters of one memory: a fact, not a document.
const MAX_MEMORY_CHARS: usize = 4_000;
/// Most memories that one answer lists.
const MAX_RECALLED: usize = 10;
/// Characters of a memory in the question whether to delete it.
const SHOWN_CHARS: usize = 200;

pub(super) fn remember() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "remember",
            "Keep a fact when asked, or unasked if it will matter again (birthday, \
             allergy). No passwords, nothing known or only for today.",
            json!({
                "content": {
                    "type": "string",
                    "description": "Clear alone: names, not I; dates, not tomorrow",
                },
                "share": {
                    "type": "boolean",
                    "description": "For everybody here",
                },
                "search_words": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "8-16 other words to ask with, in its language: kind, \
                        everyday names, use",
                },
                "replaces": {
                    "type": "string",
                    "description": "Id or text of the memory it corrects",
                },
            }),
            &["content"],
        ),
        intent: remember_intent,
        run: run_remember,
    }
}

pub(super) fn recall() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "recall",
            "Search memories before saying you do not know.",
            json!({"query": {"type": "string"}}),
            &["query"],
        )
        .for_readers()
        .read_only(),
        intent: |arguments, approver| {
            let query = text(arguments, "query")?;
            approver.intent("action.recall", &[("query", query)])
        },
        run: run_recall,
    }
}

pub(super) fn forget() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "forget",
            "Delete a memory, only when asked.",
            json!({"memory_id": {"type": "string"}}),
            &["memory_id"],
        ),
        intent: forget_intent,
        run: run_forget,
    }
}

fn remember_intent(arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
    let content = text(arguments, "content")?;
    let replaced = text(arguments, "replaces");
    let replaced = replaced.map(|replaced| named(replaced, approver));
    let key = match (
        approver.viewer.is_person() && is_shared(arguments),
        &replaced,
    ) {
        (false, None) => "action.remember",
        (false, Some(_)) => "action.remember.instead",
        (true, None) => "action.remember.for_all",
        (true, Some(_)) => "action.remember.for_all_instead",
    };
    let memory = replaced.unwrap_or_default();
    approver.intent(key, &[("content", content), ("memory", &memory)])
}

fn run_remember(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let content = required_text(arguments, "content")?;
    let length = content.chars().count();
    if length > MAX_MEMORY_CHARS {
        return Err(format!(
            "a memory has at most {MAX_MEMORY_CHARS} characters, not {length}: keep what matters"
        ));
    }
    let is_for_all = context.user_id.is_some() && is_shared(arguments);
    let new = NewMemory {
        content: content.to_owned(),
        search_words: search_words(arguments),
        speaker: context.speaker.map(str::to_owned),
        owner_id: context.user_id,
        seen_as: context.conversation_id.filter(|_| !is_for_all),
        is_private: !is_for_all
            && context.config.privacy.conversations == Audience::Private
            && !context.viewer.is_household_only(),
        channel: Some(context.channel.to_owned()),
        account: is_untrusted(context.channel)
            .then_some(context.account)
            .flatten()
            .map(str::to_owned),
        is_outside: context.is_outside,
        told_in: context.turn_id,
        ..NewMemory::default()
    };
    let (memory, replaced) = match text(arguments, "replaces") {
        Some(replaced) => {
            let viewer = &context.viewer;
            let (memory, old) = context.store.replace_memory(viewer, replaced, new)?;
            (memory, Some(old))
        }
        None => (context.store.remember(new)?, None),
    };
    let mut changes = vec![Change::Memory(memory.id, memory.readers.clone())];
    changes.extend(
        replaced
            .iter()
            .map(|old| Change::Memory(old.id, old.readers.clone())),
    );
    context.changed(changes);
    let readers = match &memory.audience {
        Audience::Household => "everybody in the household sees it".to_owned(),
        Audience::Private => format!("only {} sees it", memory.speaker.unwrap_or_default()),
        Audience::People(_) if replaced.is_some() => "those who saw that see it".to_owned(),
        Audience::People(_) => "those who see this conversation see it".to_owned(),
    };
    let instead = match replaced {
        // Not its text, which is forgotten with it.
        Some(old) => format!(" in place of {}", old.id),
        None => String::new(),
    };
    let id = memory.id;
    let before = match instead.is_empty() {
        true => before(id, context)?,
        false => String::new(),
    };
    Ok(format!("Remembered as {id}{instead}; {readers}.{before}"))
}

/// Names the older memory of whose thing this one says something else, if there is one. It
/// is not deleted unasked: it may be true of something else.
fn before(id: MemoryId, context: &ToolContext<'_>) -> Result<String, String> {
    let seen = context.seen()?;
    let older = seen.outdated_by(id)?;
    // What outsiders said is shown where it is asked for.
    let Some(older) = older.filter(|older| !older.is_outside) else {
        return Ok(String::new());
    };
    context.shows_kept(false);
    let mut details = lock(&context.details);
    details.is_private = true;
    details.memories = vec![older.id];
    let text = shorten(&older.content, SHOWN_CHARS);
    Ok(format!(
        " From now on it stands for {}, \"{text}\", which is shown as what was before. Forget \
         that one if nobody needs it.",
        older.id
    ))
}

/// Some models write several as one text.
fn search_words(arguments: &Arguments) -> Vec<String> {
    let texts = texts(arguments, "search_words");
    let words = texts
        .iter()
        .flat_map(|text| text.split([',', ';', '\n', '、', '，', '；']));
    words.map(str::to_owned).collect()
}

/// Whether everybody in the household is to know it.
fn is_shared(arguments: &Arguments) -> bool {
    arguments.get("share").and_then(Value::as_bool) == Some(true)
}

fn run_recall(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let query = required_text(arguments, "query")?;
    let vector = context.vector_of(query);
    let seen = context.store.snapshot_to_search(&context.viewer)?;
    let memories = seen.recall(query, vector.as_ref(), MAX_RECALLED)?;
    drop(seen);
    if memories.is_empty() {
        return Ok(format!("Nothing remembered fits {query:?}."));
    }
    context.shows_kept(memories.iter().any(|memory| memory.is_outside));
    lock(&context.details).memories = memories.iter().map(|memory| memory.id).collect();
    let lines: Vec<String> = memories
        .iter()
        .map(|memory| {
            let speaker = match provenance(memory) {
                Some(name) => format!(", from {name}"),
                None => String::new(),
            };
            let time = minute(memory.created_at);
            format!("{} ({time}{speaker}): {}", memory.id, memory.content)
        })
        .collect();
    Ok(lines.join("\n"))
}

/// A person cannot judge an id alone.
fn forget_intent(arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
    let memory = named(text(arguments, "memory_id")?, approver);
    approver.intent("action.forget", &[("memory", &memory)])
}

/// A memory for a person, by its id or its text.
fn named(id: &str, approver: &Approver<'_>) -> String {
    let known = (approver.store)
        .snapshot(approver.viewer)
        .and_then(|seen| seen.memories())
        .unwrap_or_default();
    let content = match known.iter().find(|memory| memory.id.to_string() == id) {
        Some(memory) => &memory.content,
        None if id.parse::<MemoryId>().is_ok() => return approver.words.word("memory.unseen"),
        None => id,
    };
    let content = shorten(content, SHOWN_CHARS);
    approver.words.say("memory.named", &[("content", &content)])
}

fn run_forget(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let id: MemoryId = required_text(arguments, "memory_id")?.parse()?;
    let readers = context.store.forget(&context.viewer, id)?;
    context.changed(vec![Change::Memory(id, readers)]);
    Ok(format!("Forgot {id}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Household;
    use store::{Readers, UserRole, Viewer};

    #[test]
    fn a_fact_is_remembered_recalled_and_forgotten() {
        let household = Household::new();
        let nothing = household.run("recall", json!({"query": "tea"})).unwrap();
        assert_eq!(nothing, "Nothing remembered fits \"tea\".");

        let kept = household
            .run("remember", json!({"content": " Ann drinks green tea. "}))
            .unwrap();
        let id = kept
            .strip_prefix("Remembered as ")
            .and_then(|rest| rest.strip_suffix("; everybody in the household sees it."))
            .unwrap();
        let found = household.run("recall", json!({"query": "tea"})).unwrap();
        assert!(found.starts_with(&format!("{id} (")), "{found}");
        assert!(
            found.ends_with("UTC, from Ann): Ann drinks green tea."),
            "{found}"
        );

        let intent = |memory_id: &str| {
            let arguments = json!({ "memory_id": memory_id });
            forget_intent(
                arguments.as_object().unwrap(),
                &household.approver(&Viewer::server()),
            )
            .unwrap()
        };
        assert_eq!(
            intent(id),
            Intent::from("forget the memory “Ann drinks green tea.”".to_owned())
        );
        assert_eq!(intent("tea").action, "forget the memory “tea”");
        household.run("forget", json!({"memory_id": id})).unwrap();
        assert!(household.run("forget", json!({"memory_id": id})).is_err());
        assert_eq!(
            household.run("recall", json!({"query": "tea"})).unwrap(),
            nothing
        );
    }

    #[test]
    fn search_words_are_kept_beside_a_fact_and_not_told() {
        let household = Household::new();
        let words = json!(["hot drink, breakfast", "caffeine"]);
        household
            .run(
                "remember",
                json!({"content": "Ann likes tea.", "search_words": words}),
            )
            .unwrap();
        let found = household
            .run("recall", json!({"query": "breakfast"}))
            .unwrap();
        assert!(found.ends_with("from Ann): Ann likes tea."), "{found}");
        let memories = household
            .store()
            .snapshot(&Viewer::server())
            .unwrap()
            .memories()
            .unwrap();
        assert_eq!(
            memories[0].search_words,
            ["hot drink", "breakfast", "caffeine"]
        );
    }

    #[test]
    fn a_fact_is_corrected() {
        let household = Household::new();
        let remember = |arguments| household.run("remember", arguments);
        remember(json!({"content": "Ann drinks green tea."})).unwrap();
        let corrected =
            json!({"content": "Ann drinks coffee.", "replaces": "ann drinks green tea"});
        let intent = remember_intent(
            corrected.as_object().unwrap(),
            &household.approver(&Viewer::server()),
        );
        assert_eq!(
            intent.unwrap().action,
            "remember, in place of the memory “ann drinks green tea”: Ann drinks coffee."
        );
        let kept = remember(corrected.clone()).unwrap();
        assert!(kept.contains(" in place of mem_"), "{kept}");
        assert!(!kept.contains("tea"), "it is forgotten: {kept}");
        let known = household.run("recall", json!({"query": "Ann"})).unwrap();
        assert!(
            !known.contains("tea") && known.contains("coffee"),
            "{known}"
        );
        let error = remember(corrected).unwrap_err();
        assert!(error.contains("there is no memory"), "{error}");
    }

    #[test]
    fn what_a_new_fact_stands_for_is_named() {
        let household = Household::new();
        let remember = |content: &str| household.run("remember", json!({ "content": content }));
        let first = remember("The bins go out on Tuesday.").unwrap();
        let id = first.split([' ', ';']).nth(2).unwrap();
        assert!(first.ends_with("sees it."), "{first}");
        let other = remember("Zoë is allergic to peanuts.").unwrap();
        assert!(other.ends_with("sees it."), "{other}");
        let newer = remember("The bins now go out on Friday.").unwrap();
        let named = format!("it stands for {id}, \"The bins go out on Tuesday.\", which is shown");
        assert!(newer.contains(&named), "{newer}");
    }

    #[test]
    fn a_question_says_what_the_call_does_and_shows_only_what_the_viewer_sees() {
        let household = Household::new();
        let viewer = || Viewer::readers_of(household.conversation_id, &Readers::Household);
        let ann = household.store().user("Ann").unwrap().unwrap();
        let of_ann = || viewer().asked_by(Some(ann.id), None);
        let intent =
            |tool: fn(&Arguments, &Approver<'_>) -> Option<Intent>, of: &Viewer, what: Value| {
                let given = what.as_object().unwrap();
                tool(given, &household.approver(of)).unwrap().action
            };
        // What an account says is for those who see the conversation.
        let shared = || json!({"content": "x", "share": true});
        let of_account = viewer().asked_by(None, Some("door"));
        assert_eq!(
            intent(remember_intent, &of_account, shared()),
            "remember: x"
        );
        assert_eq!(
            intent(remember_intent, &of_ann(), shared()),
            "remember, for everybody in the household: x"
        );
        // A memory that only Ann sees.
        let audience = Audience::Private;
        let owner = Viewer::person(ann.id, UserRole::User);
        let id = household.conversation_id;
        household
            .store()
            .share_conversation(&owner, id, &audience)
            .unwrap();
        household
            .run("remember", json!({"content": "The code is 4711."}))
            .unwrap();
        let kept = household
            .store()
            .snapshot(&owner)
            .unwrap()
            .memories()
            .unwrap()[0]
            .id
            .to_string();
        for tool in [forget_intent, remember_intent] {
            let what = || json!({"memory_id": kept, "content": "x", "replaces": kept});
            let own = intent(tool, &of_ann(), what());
            assert!(own.contains("the memory “The code is 4711.”"), "{own}");
            let others = intent(tool, &of_ann().household_only(), what());
            assert!(
                others.contains("a memory that is not shown to you"),
                "{others}"
            );
        }
    }

    #[test]
    fn what_cannot_be_meant_is_explained() {
        let household = Household::new();
        for (tool, arguments, problem) in [
            ("remember", json!({"content": " "}), "must not be empty"),
            (
                "remember",
                json!({"content": "x".repeat(MAX_MEMORY_CHARS + 1)}),
                "at most 4000 characters",
            ),
            ("recall", json!({"query": ""}), "must not be empty"),
            ("forget", json!({"memory_id": "tea"}), "there is no memory"),
        ] {
            let error = household.run(tool, arguments).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
