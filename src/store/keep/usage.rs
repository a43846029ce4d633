//! Token usage: of each turn, and summed by day, model, person and purpose.

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row};
use crate::sight::snapshot::Snapshot;
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{TurnId, UserId};

/// Tokens that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the requests, including cached ones.
    pub input: u64,
    /// Tokens of the replies.
    pub output: u64,
    /// The part of `input` that the provider had cached.
    pub cached: u64,
}

impl Usage {
    /// Adds the usage of another request.
    pub fn add(&mut self, more: Usage) {
        self.input += more.input;
        self.output += more.output;
        self.cached += more.cached;
    }
}

/// The channel of the turns of schedules, except those of webhook accounts.
pub const SCHEDULE_CHANNEL: &str = "schedule";

/// What a model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The reply to a message.
    #[default]
    Reply,
    /// What a reminder or routine says.
    Routine,
    /// The title of a conversation.
    Title,
    /// The summary of a long one.
    Summary,
    /// What a program asks, without the household.
    Program,
    /// Vectors of memories and messages.
    Embedding,
}

base::words! { Purpose {
    Reply: "reply",
    Routine: "routine",
    Title: "title",
    Summary: "summary",
    Program: "program",
    Embedding: "embedding",
} }

impl Purpose {
    /// What turns of this channel are for.
    pub fn of_channel(channel: &str) -> Purpose {
        match channel == SCHEDULE_CHANNEL {
            true => Purpose::Routine,
            false => Purpose::Reply,
        }
    }

    /// Whether it is a question beside the conversation, which nothing follows.
    pub fn is_aside(self) -> bool {
        matches!(self, Purpose::Title | Purpose::Summary)
    }
}

/// The period over which usage is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// One day (UTC).
    Day,
    /// One calendar month (UTC).
    Month,
}

/// How usage is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// By period alone.
    Period,
    /// By person and purpose, too.
    Purpose,
}

/// The usage of one model in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// 2026-11-21 or 2026-11.
    pub period: String,
    /// Whose; none where it is summed, or nobody of the household asked.
    pub person: Option<String>,
    /// What for, as [`Purpose::as_str`]; none where it is summed.
    pub purpose: Option<String>,
    /// Its name at its provider; empty when no model answered.
    pub model: String,
    /// Turns that ended with it.
    pub turns: u64,
    /// Tokens.
    pub usage: Usage,
}

impl Snapshot<'_> {
    /// Input and output tokens of the calendar month (UTC) of `now`.
    pub fn tokens_of_month(&self, now: Timestamp) -> Result<u64> {
        let first = format!("{}-01", &day_of(now)[..7]);
        Ok(self
            .value(TOKENS_SINCE, params![first])?
            .unwrap_or_default())
    }

    /// The same of the turns of one person.
    pub fn tokens_of_month_by(&self, user: UserId, now: Timestamp) -> Result<u64> {
        let first = format!("{}-01", &day_of(now)[..7]);
        let sum = self.value(TOKENS_BY, params![user, first])?;
        Ok(sum.unwrap_or_default())
    }
}

impl Store {
    /// Adds to the usage of a turn that is not finished. Does not wait: a deferred
    /// commit, as of [`Store::begin_turn_deferred`].
    pub fn note_usage(&self, id: TurnId, usage: Usage, model: &str, purpose: Purpose) {
        if usage == Usage::default() {
            return;
        }
        let model = model.to_owned();
        self.post(move |write| add(write, id, usage, (&model, purpose), 0));
    }

    /// Adds what a person used beside turns. Does not wait, as [`Store::note_usage`].
    pub fn note_usage_of(&self, user: UserId, usage: Usage, model: &str, purpose: Purpose) {
        let model = model.to_owned();
        self.post(move |write| add_to_day(write, Some(user), usage, (&model, purpose), 0));
    }

    /// Usage by model and `period`, newest first, at most `limit` rows.
    pub fn usage(&self, period: Period, by: UsageBy, limit: usize) -> Result<Vec<UsageRow>> {
        let length = match period {
            Period::Day => 10,
            Period::Month => 7,
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|connection| {
            connection.rows(
                match by {
                    UsageBy::Period => BY_PERIOD,
                    UsageBy::Purpose => BY_PURPOSE,
                },
                params![length, limit],
                |row| {
                    Ok(from_row!(row => UsageRow {
                        period, person, purpose, model, turns;
                        usage: usage_from_row(row, 5)?,
                    }))
                },
            )
        })
    }
}

const BY_PERIOD: &str = "SELECT substr(day, 1, ?1) AS period, NULL AS person, NULL AS purpose,
            model, sum(turns) AS turns,
            sum(input) AS input, sum(output) AS output, sum(cached) AS cached
     FROM usage GROUP BY 1, model ORDER BY 1 DESC, model LIMIT ?2";

const BY_PURPOSE: &str = "SELECT substr(day, 1, ?1) AS period, u.name AS person, purpose,
            model, sum(turns) AS turns,
            sum(input) AS input, sum(output) AS output, sum(cached) AS cached
     FROM usage_by_purpose LEFT JOIN users u ON u.id = user_id
     GROUP BY 1, user_id, purpose, model
     ORDER BY 1 DESC, sum(input + output) DESC, user_id, purpose, model LIMIT ?2";

/// `day` is a text that sorts by time, and the first column of the primary key.
pub(crate) const TOKENS_SINCE: &str =
    "SELECT ifnull(sum(input + output), 0) FROM usage WHERE day >= ?";

pub(crate) const TOKENS_BY: &str =
    "SELECT ifnull(sum(input + output), 0) FROM usage_by_person WHERE user_id = ?1 AND day >= ?2";

pub(crate) const USAGE_BY: &str = "SELECT ifnull(sum(input), 0) AS input, \
         ifnull(sum(output), 0) AS output, ifnull(sum(cached), 0) AS cached \
     FROM usage_by_person WHERE user_id = ?";

/// The usage of everybody since the database was created.
pub(crate) fn all(connection: &Connection) -> Outcome<Usage> {
    let sql = "SELECT ifnull(sum(input), 0) AS input, ifnull(sum(output), 0) AS output,
                      ifnull(sum(cached), 0) AS cached FROM usage";
    let all = connection.row(sql, params![], |row| usage_from_row(row, 0))?;
    Ok(all.unwrap_or_default())
}

/// The same of the turns of one person; none has none.
pub(crate) fn by(connection: &Connection, user: Option<UserId>) -> Outcome<Usage> {
    let own = connection.row(USAGE_BY, params![user], |row| usage_from_row(row, 0))?;
    Ok(own.unwrap_or_default())
}

fn numbers(usage: Usage) -> [i64; 3] {
    [usage.input, usage.output, usage.cached]
        .map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX))
}

/// Adds to the usage of the day, and counts `ended` turns.
fn add_to_day(
    write: &Write<'_>,
    user: Option<UserId>,
    usage: Usage,
    (model, purpose): (&str, Purpose),
    ended: i64,
) -> Outcome<()> {
    let [input, output, cached] = numbers(usage);
    write.execute(
        "INSERT INTO usage (day, model, input, output, cached, turns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (day, model) DO UPDATE
         SET input = input + ?3, output = output + ?4, cached = cached + ?5, turns = turns + ?6",
        params![day_of(write.now), model, input, output, cached, ended],
    )?;
    write.execute(
        "INSERT INTO usage_by_purpose (day, user_id, purpose, model, input, output, cached, turns)
         VALUES (?1, ifnull(?2, 0), ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (day, user_id, purpose, model) DO UPDATE
         SET input = input + ?5, output = output + ?6, cached = cached + ?7, turns = turns + ?8",
        params![
            day_of(write.now),
            user,
            purpose.as_str(),
            model,
            input,
            output,
            cached,
            ended
        ],
    )?;
    write.run(
        "INSERT INTO usage_by_person (user_id, day, input, output, cached)
         SELECT id, ?2, ?3, ?4, ?5 FROM users WHERE id = ?1
         ON CONFLICT (user_id, day) DO UPDATE
         SET input = input + ?3, output = output + ?4, cached = cached + ?5",
        params![user, day_of(write.now), input, output, cached],
    )
}

/// Adds to the usage of a turn, of its person, and of the day, and counts `ended` turns.
pub(crate) fn add(
    write: &Write<'_>,
    id: TurnId,
    usage: Usage,
    (model, purpose): (&str, Purpose),
    ended: i64,
) -> Outcome<()> {
    let [input, output, cached] = numbers(usage);
    write.execute(
        "UPDATE turns
         SET model = iif(?6, model, ?2), input_tokens = input_tokens + ?3, output_tokens = output_tokens + ?4,
             cached_tokens = cached_tokens + ?5
         WHERE id = ?1",
        params![id, model, input, output, cached, purpose.is_aside()],
    )?;
    let sql = "SELECT user_id FROM turns WHERE id = ?";
    let user = write.value::<Option<UserId>>(sql, params![id])?;
    add_to_day(write, user.flatten(), usage, (model, purpose), ended)
}

/// The day (UTC) of a time, as 2026-11-21.
fn day_of(time: Timestamp) -> String {
    let mut text = time.to_string();
    text.truncate(10);
    text
}

/// Usage from three columns of a row.
pub(crate) fn usage_from_row(row: &Row<'_>, first: usize) -> Outcome<Usage> {
    Ok(Usage {
        input: row.get(first)?,
        output: row.get(first + 1)?,
        cached: row.get(first + 2)?,
    })
}
