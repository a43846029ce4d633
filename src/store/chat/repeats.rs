//! Requests of programs that come again, byte for byte, because their answer was lost or
//! their turn failed. They go on with the turn that the first one began.

use std::time::Duration;

use rusqlite::params;

use crate::chat::new_turn::Begun;
use crate::chat::steps;
use crate::chat::turn_end::reopen;
use crate::chat::turns::{self, TurnState};
use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::keep::idempotency::{self, IdempotencyKey};
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::Viewer;
use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use base::ids::TurnId;

/// How long after its end a turn is gone on with.
const REPEATABLE: Duration = Duration::from_secs(10 * 60);
/// How long the model is not asked again after it refused for good.
const REFUSED: Duration = Duration::from_secs(30);

impl Snapshot<'_> {
    /// The turn of this request, as long as its answer has not gone out.
    pub fn turn_of_request(&self, request: &IdempotencyKey) -> Result<Option<TurnId>> {
        let parameters = params![request.scope, request.key];
        Ok(self.value(TURN_OF_REQUEST, parameters)?)
    }
}

impl Store {
    /// Notes that this request goes on with a turn. Does not wait.
    pub fn note_request(&self, request: IdempotencyKey, turn: TurnId) {
        self.post(move |write| {
            write.adds_to_the_end();
            idempotency::note(write, &request, turn)
        });
    }

    /// Forgets a request whose answer has gone out: the same may be asked again. Does not wait.
    pub fn forget_request(&self, request: IdempotencyKey) {
        self.post(move |write| {
            write.adds_to_the_end();
            write.run(
                "DELETE FROM idempotency WHERE scope = ?1 AND key = ?2",
                params![request.scope, request.key],
            )
        });
    }

    /// The turn that a repeated request goes on with; none if it is gone, or ended too long ago.
    /// One that failed or was cancelled is opened again, unless the model will refuse it again.
    /// Where a `request` is named, it must still be known.
    pub fn go_on(
        &self,
        viewer: &Viewer,
        id: TurnId,
        request: Option<&IdempotencyKey>,
    ) -> Result<Option<Begun>> {
        let request = request.cloned();
        let found = self.write_for(viewer, move |write, sight| {
            // Its answer may have gone out just now.
            if let Some(IdempotencyKey { scope, key, .. }) = request
                && write.value(TURN_OF_REQUEST, params![scope, key])? != Some(id)
            {
                return Ok(None);
            }
            let mut turn = turns::find(sight, id)?;
            let finished_at = "SELECT finished_at FROM turns WHERE id = ?";
            let ended: Option<Option<Timestamp>> = write.value(finished_at, params![id])?;
            let is_within = |time| (ended.flatten()).is_none_or(|at| at > write.now.minus(time));
            if !is_within(REPEATABLE) {
                return Ok(None);
            }
            let stays = turn.error.as_ref().is_some_and(is_for_good) && is_within(REFUSED);
            match turn.state {
                // Its program left before it had the calls.
                TurnState::Done if has_open_calls(write, id)? => {
                    reopen(write, &mut turn)?;
                    Ok(Some(Begun::Again(turn)))
                }
                TurnState::Failed | TurnState::Cancelled if !stays => {
                    reopen(write, &mut turn)?;
                    Ok(Some(Begun::Again(turn)))
                }
                _ => Ok(Some(Begun::Repeat(turn))),
            }
        });
        match found {
            Err(error) if error.code() == Code::NotFound => Ok(None),
            found => found,
        }
    }
}

/// Whether the model will refuse the same request again.
fn is_for_good(error: &Error) -> bool {
    matches!(error.status(), 400 | 404 | 413 | 422 | 424)
}

fn has_open_calls(write: &Write<'_>, id: TurnId) -> Outcome<bool> {
    let steps = steps::of_turn(write, id)?.into_iter().map(|(_, step)| step);
    Ok(!steps::open_calls(&steps.collect::<Vec<_>>()).is_empty())
}

pub(crate) const TURN_OF_REQUEST: &str = "SELECT t.id FROM idempotency i \
     CROSS JOIN turns t ON t.id = i.turn_id WHERE i.scope = ?1 AND i.key = ?2";
