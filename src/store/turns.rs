//! Turns and their steps: a durable state machine.

use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row, params};

use super::conversations::{insert_message, place};
use super::failure::Outcome;
use super::*;
use base::clock::Timestamp;
use base::ids::TurnId;

/// Most steps of one turn that are read.
const MOST_STEPS: i64 = 10_000;
/// Most unfinished turns that a start goes on with: far more than may wait.
const MOST_UNFINISHED: i64 = 100_000;

impl Store {
    /// Stores a message and begins its turn, in one commit, and returns when it
    /// is on disk.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` with HTTP 422 when
    /// the idempotency key was used for another request.
    pub fn begin_turn(&self, new: NewTurn) -> Result<Begun> {
        self.write(|write| begin(write, new))
    }

    /// The same, but returns as soon as the statements have run: they reach the
    /// disk with the next commit that somebody waits for, at the latest 5 ms
    /// later. For callers that acknowledge nothing yet. Until then reads do not
    /// see it, and if that commit fails, the turn's next write is `not_found`.
    pub fn begin_turn_behind(&self, new: NewTurn) -> Result<Begun> {
        self.deferred_commit(|write| begin(write, new))
    }

    /// A turn.
    ///
    /// # Errors
    /// `not_found`.
    pub fn turn(&self, id: TurnId) -> Result<Turn> {
        self.read(|connection| find(connection, id))
    }

    /// All turns that are not at their end, in order: what a start goes on with.
    pub fn unfinished_turns(&self) -> Result<Vec<Turn>> {
        // Once, at the start: on the connection that is there.
        self.deferred_commit(|write| {
            rows(
                write.connection,
                UNFINISHED_TURNS,
                params![MOST_UNFINISHED],
                from_row,
            )
        })
    }

    /// Notes that a worker has taken the turn. Does not wait; reaches the disk
    /// as [`Store::begin_turn_behind`]. Keeps the first `started_at`.
    pub fn mark_running(&self, id: TurnId, at: Timestamp) {
        self.inner.writer.post(move |write| {
            write.execute(
                "UPDATE turns SET state = 'running', started_at = ifnull(started_at, ?2)
                 WHERE id = ?1 AND state IN ('queued', 'running')",
                params![id, at],
            )?;
            Ok(())
        });
    }

    /// The turn's steps, in order.
    pub fn steps(&self, id: TurnId) -> Result<Vec<Step>> {
        self.read(|connection| {
            rows(
                connection,
                "SELECT body FROM steps WHERE turn_id = ?1 ORDER BY id LIMIT ?2",
                params![id, MOST_STEPS],
                step_from_row,
            )
        })
    }

    /// Appends steps, in one commit, and returns when they are on disk.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or already at its end.
    pub fn record_steps(&self, id: TurnId, steps: Vec<Step>) -> Result<()> {
        self.write(move |write| {
            find_unfinished(write, id)?;
            insert_steps(write, id, &steps)
        })
    }

    /// Ends the turn: state, reply message, usage (under `model`, by day) and
    /// delivery in one commit. Undecided approvals of it become `expired`.
    ///
    /// # Errors
    /// `not_found` when the turn is gone or already at its end.
    pub fn finish_turn(
        &self,
        id: TurnId,
        end: TurnEnd,
        usage: Usage,
        model: &str,
        delivery: Option<NewDelivery>,
    ) -> Result<Finished> {
        let model = model.to_owned();
        self.write(move |write| {
            let mut turn = find_unfinished(write, id)?;
            let reply = end_turn(write, &mut turn, end)?;
            approvals::expire_undecided(write, id)?;
            usage::add(write, id, usage, &model, 1)?;
            let delivery = delivery
                .map(|delivery| deliveries::insert(write, &turn, delivery))
                .transpose()?;
            Ok(Finished {
                turn,
                reply,
                delivery,
            })
        })
    }

    /// Unfinished work and totals.
    pub fn counts(&self) -> Result<Counts> {
        self.read(|connection| {
            let count = |sql| row(connection, sql, params![], |row| row.get::<_, i64>(0));
            let conversations = count("SELECT count(*) FROM conversations")?;
            let database_bytes =
                count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
            Ok(Counts {
                conversations: conversations.unwrap_or_default().unsigned_abs(),
                turns: rows(connection, UNFINISHED_BY_STATE, params![], counted)?,
                deliveries: rows(
                    connection,
                    deliveries::UNDELIVERED_BY_STATE,
                    params![],
                    counted,
                )?,
                usage: row(
                    connection,
                    "SELECT ifnull(sum(input), 0), ifnull(sum(output), 0), ifnull(sum(cached), 0)
                     FROM usage",
                    params![],
                    |row| {
                        Ok(Usage {
                            input: row.get::<_, i64>(0)?.unsigned_abs(),
                            output: row.get::<_, i64>(1)?.unsigned_abs(),
                            cached: row.get::<_, i64>(2)?.unsigned_abs(),
                        })
                    },
                )?
                .unwrap_or_default(),
                database_bytes: database_bytes.unwrap_or_default().unsigned_abs(),
            })
        })
    }
}

pub(super) const FIND_TURN: &str = "SELECT t.*, c.external_name FROM turns t \
     CROSS JOIN conversations c ON c.id = t.conversation_id WHERE t.id = ?";

/// Without the hint SQLite reads all turns ever, because they lie in order.
pub(super) const UNFINISHED_TURNS: &str = "SELECT t.*, c.external_name \
     FROM turns t INDEXED BY turns_unfinished \
     CROSS JOIN conversations c ON c.id = t.conversation_id \
     WHERE t.finished_at IS NULL ORDER BY t.id LIMIT ?";

pub(super) const UNFINISHED_BY_STATE: &str = "SELECT state, count(*) \
     FROM turns INDEXED BY turns_unfinished WHERE finished_at IS NULL GROUP BY state";

pub(super) fn begin(write: &Write<'_>, new: NewTurn) -> Outcome<Begun> {
    if let Some(key) = &new.idempotency
        && let Some(earlier) = idempotency::earlier_turn(write, key)?
    {
        return Ok(Begun::Repeat(find(write.connection, earlier)?));
    }
    let place = place(write, &new)?;
    let instructions = match new.target {
        Target::ReplayedHistory(replayed_history) => replayed_history.instructions,
        _ => None,
    };
    let turn_id: TurnId = write.id();
    let message = insert_message(
        write,
        place.conversation_id,
        turn_id,
        Role::User,
        new.message,
        new.speaker,
    )?;
    let turn = Turn {
        id: turn_id,
        conversation_id: place.conversation_id,
        state: TurnState::Queued,
        channel: new.channel,
        account: new.account,
        external_name: place.external_name,
        message_id: message.id,
        reply_id: None,
        error: None,
        created_at: write.now,
        started_at: None,
        model: None,
        usage: Usage::default(),
        instructions,
    };
    write.execute(
        "INSERT INTO turns
             (id, conversation_id, state, channel, account, message_id, created_at, instructions)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            turn.id,
            turn.conversation_id,
            turn.state,
            turn.channel,
            turn.account,
            turn.message_id,
            turn.created_at,
            turn.instructions,
        ],
    )?;
    if let Some(key) = &new.idempotency {
        idempotency::note(write, key, turn.id)?;
    }
    Ok(Begun::New { turn, message })
}

fn find(connection: &Connection, id: TurnId) -> Outcome<Turn> {
    row(connection, FIND_TURN, params![id], from_row)?
        .ok_or_else(|| Error::not_found(format!("there is no turn {id}")).into())
}

/// The turn, if it may still be written to.
pub(super) fn find_unfinished(write: &Write<'_>, id: TurnId) -> Outcome<Turn> {
    let turn = find(write.connection, id)?;
    if turn.state.is_final() {
        return Err(Error::not_found(format!(
            "the turn {id} is at its end already: {}",
            turn.state.as_str()
        ))
        .into());
    }
    Ok(turn)
}

pub(super) fn insert_steps(write: &Write<'_>, id: TurnId, steps: &[Step]) -> Outcome<()> {
    for step in steps {
        let body = serde_json::to_string(step)
            .map_err(|error| Error::server("the turn's steps could not be stored", error))?;
        write.execute(
            "INSERT INTO steps (turn_id, body) VALUES (?1, ?2)",
            params![id, body],
        )?;
    }
    Ok(())
}

/// A step from a row's column `body`.
pub(super) fn step_from_row(row: &Row<'_>) -> rusqlite::Result<Step> {
    let body = row.get_ref("body")?.as_str()?;
    serde_json::from_str(body).map_err(|error| FromSqlError::other(error).into())
}

/// Puts the turn at its end, and its reply into the conversation.
fn end_turn(write: &Write<'_>, turn: &mut Turn, end: TurnEnd) -> Outcome<Option<Message>> {
    let mut reply = None;
    turn.state = match end {
        TurnEnd::Done { reply: content } => {
            reply = Some(insert_message(
                write,
                turn.conversation_id,
                turn.id,
                Role::Assistant,
                content,
                None,
            )?);
            TurnState::Done
        }
        TurnEnd::Failed(error) => {
            turn.error = Some(error);
            TurnState::Failed
        }
        TurnEnd::Cancelled => TurnState::Cancelled,
    };
    turn.reply_id = reply.as_ref().map(|reply| reply.id);
    let error = turn.error.as_ref();
    write.execute(
        "UPDATE turns
         SET state = ?2, reply_id = ?3, error_code = ?4, error_message = ?5,
             error_status = ?6, error_retry_after = ?7, finished_at = ?8
         WHERE id = ?1",
        params![
            turn.id,
            turn.state,
            turn.reply_id,
            error.map(Error::code),
            error.map(Error::message),
            error.map(Error::status),
            error.and_then(Error::retry_after),
            write.now,
        ],
    )?;
    Ok(reply)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        id: row.get("id")?,
        conversation_id: row.get("conversation_id")?,
        state: row.get("state")?,
        channel: row.get("channel")?,
        account: row.get("account")?,
        external_name: row.get("external_name")?,
        message_id: row.get("message_id")?,
        reply_id: row.get("reply_id")?,
        error: error_from_row(row)?,
        created_at: row.get("created_at")?,
        started_at: row.get("started_at")?,
        model: row.get("model")?,
        usage: usage::usage_from_row(row, ["input_tokens", "output_tokens", "cached_tokens"])?,
        instructions: row.get("instructions")?,
    })
}

fn error_from_row(row: &Row<'_>) -> rusqlite::Result<Option<Error>> {
    let Some(code) = row.get("error_code")? else {
        return Ok(None);
    };
    let error = Error::new(code, row.get::<_, String>("error_message")?)
        .with_status(row.get("error_status")?);
    Ok(Some(match row.get("error_retry_after")? {
        Some(seconds) => error.with_retry_after(seconds),
        None => error,
    }))
}

/// A word and how many rows it has.
fn counted<T: rusqlite::types::FromSql>(row: &Row<'_>) -> rusqlite::Result<(T, u64)> {
    Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
}
