//! Detects a model that repeats a tool call and gets the same result each time.

use serde_json::Value;

use store::{Step, ToolCall};

/// Equal calls with equal results after which the model gets a hint.
pub const HINT_AFTER: usize = 3;
/// Equal calls with equal results after which it gets no more tools.
pub const STOP_AFTER: usize = 5;

/// The call of the newest reply that was made most often in this turn with the
/// same arguments and the same result: its tool, and how often.
pub fn most_repeated(steps: &[Step]) -> Option<(&str, usize)> {
    let newest = steps
        .iter()
        .rposition(|step| matches!(step, Step::Reply { .. }))?;
    let all: Vec<(&ToolCall, &str)> = results(steps).collect();
    results(&steps[newest..])
        .map(|(call, content)| {
            let equal = |other: &(&ToolCall, &str)| other.1 == content && is_same(other.0, call);
            let count = all.iter().filter(|other| equal(other)).count();
            (call.tool.as_str(), count)
        })
        .max_by_key(|(_, count)| *count)
}

/// The hint for the model, if there were enough repetitions.
pub fn hint(tool: &str, count: usize) -> Option<String> {
    match count {
        STOP_AFTER.. => Some(format!(
            "You called {tool} {count} times with the same arguments and the same result. \
             Answer now with what you know."
        )),
        HINT_AFTER.. => Some(format!(
            "You called {tool} {count} times with the same arguments and the same result: another \
             call will not change it. Try something else, or answer with what you know."
        )),
        _ => None,
    }
}

/// The calls among these steps that have a result, with it.
fn results(steps: &[Step]) -> impl Iterator<Item = (&ToolCall, &str)> {
    let calls = steps.iter().flat_map(Step::calls);
    calls.filter_map(move |call| {
        steps.iter().find_map(|step| match step {
            Step::Result {
                call_id, content, ..
            } if *call_id == call.id => Some((call, content.as_str())),
            _ => None,
        })
    })
}

/// Whether two calls ask for the same, even if they are written differently.
fn is_same(one: &ToolCall, other: &ToolCall) -> bool {
    let parsed = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).ok();
    one.tool == other.tool
        && (one.arguments == other.arguments
            || parsed(one).is_some_and(|value| parsed(other) == Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(number: usize, calls: &[(&str, &str, &str)]) -> Vec<Step> {
        let id = |place: usize| format!("{number}_{place}");
        let mut steps = vec![Step::Reply {
            text: String::new(),
            calls: calls
                .iter()
                .enumerate()
                .map(|(place, (tool, arguments, _))| ToolCall {
                    id: id(place),
                    provider_id: None,
                    tool: (*tool).to_owned(),
                    arguments: (*arguments).to_owned(),
                    extra: None,
                })
                .collect(),
            extra: None,
            result_chars: None,
        }];
        steps.extend(
            calls
                .iter()
                .enumerate()
                .map(|(place, (_, _, content))| Step::Result {
                    call_id: id(place),
                    ok: true,
                    content: (*content).to_owned(),
                    outside: false,
                    private: false,
                    memories: Vec::new(),
                    files: Vec::new(),
                    page: None,
                }),
        );
        steps
    }

    #[test]
    fn only_the_same_call_with_the_same_result_counts() {
        let rounds = [
            round(0, &[("look", r#"{"a":1,"b":2}"#, "x")]),
            round(
                1,
                &[("look", r#"{ "b": 2, "a": 1 }"#, "x"), ("other", "{}", "y")],
            ),
            round(2, &[("look", r#"{"a":1,"b":2}"#, "changed")]),
            round(3, &[("look", r#"{"a":2}"#, "x")]),
            round(
                4,
                &[("other", "{}", "y"), ("look", r#"{"a":1,"b":2}"#, "x")],
            ),
        ];
        let steps: Vec<Step> = rounds.concat();
        assert_eq!(most_repeated(&[]), None);
        for (rounds, expected) in [
            (1, ("look", 1)),
            (2, ("look", 2)),
            (3, ("look", 1)),
            (4, ("look", 1)),
            (5, ("look", 3)),
        ] {
            let length = steps
                .iter()
                .enumerate()
                .filter(|(_, step)| matches!(step, Step::Reply { .. }))
                .map(|(place, _)| place)
                .chain([steps.len()])
                .nth(rounds)
                .unwrap();
            assert_eq!(most_repeated(&steps[..length]), Some(expected), "{rounds}");
        }
        assert_eq!(hint("look", 2), None);
        assert!(hint("look", 3).unwrap().contains("Try something else"));
        assert!(hint("look", 5).unwrap().contains("Answer now"));
    }
}
