//! What a routine watches: its tools run first, and without a change no model is asked.

use serde_json::Value;

use super::turn_context::{Stop, TurnContext};
use base::error::Error;
use store::{Step, ToolCall, Viewer, WatchedCall, watched_call_id, watched_digest};

/// The calls that the routine of this turn watches, as if the model had made them.
pub(super) fn calls(run: &TurnContext<'_>) -> Result<Option<Step>, Stop> {
    let Some((calls, _)) = watched(run)? else {
        return Ok(None);
    };
    let calls: Vec<WatchedCall> = serde_json::from_str(&calls).map_err(|error| {
        Error::server("what the routine watches cannot be read", error.to_string())
    })?;
    let calls = calls.into_iter().enumerate().map(|(place, call)| ToolCall {
        id: watched_call_id(place),
        provider_id: None,
        tool: call.tool,
        arguments: Value::Object(call.arguments).to_string(),
        extra: None,
    });
    log::debug!("{}: looks at what its routine watches", run.turn.id);
    Ok(Some(Step::Reply {
        text: String::new(),
        calls: calls.collect(),
        result_chars: None,
        extra: None,
    }))
}

/// Whether all that the routine watches is as it was, before the model is asked.
pub(super) fn is_unchanged(run: &TurnContext<'_>, steps: &[Step]) -> Result<bool, Stop> {
    let of_reply = |step: &&Step| matches!(step, Step::Reply { .. });
    let digest = match steps.iter().filter(of_reply).count() {
        1 if run.turn.schedule_id.is_some() => watched_digest(steps),
        _ => None,
    };
    Ok(digest.is_some() && watched(run)?.is_some_and(|(_, known)| known == digest))
}

/// What the routine of this turn watches, and the digest of what that brought before.
fn watched(run: &TurnContext<'_>) -> Result<Option<(String, Option<String>)>, Stop> {
    let Some(schedule) = run.turn.schedule_id else {
        return Ok(None);
    };
    let seen = run.store.snapshot(&Viewer::server())?;
    Ok(seen.watched(schedule)?)
}
