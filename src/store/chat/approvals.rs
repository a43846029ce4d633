//! Approvals: requests to a person to allow a tool call, and the decisions.

use rusqlite::{Connection, Row, params};

use crate::chat::steps::ToolCall;
use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{self, Statements, from_row, words};
use crate::sight::askers;
use crate::sight::snapshot::Snapshot;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{ApprovalId, ConversationId, TurnId, UserId};

/// Most rows of one list.
const MOST: i64 = 1000;

/// A request to allow a tool call.
#[derive(Clone, Debug)]
pub struct Approval {
    /// What `approve` and `deny` take.
    pub id: ApprovalId,
    /// The turn that waits for it.
    pub turn_id: TurnId,
    /// The turn's conversation.
    pub conversation_id: ConversationId,
    /// Who asked; absent for a webhook account, for a person who was removed since, and
    /// in turns of older versions.
    pub user_id: Option<UserId>,
    /// The webhook account that asked.
    pub account: Option<String>,
    /// The name of that person or account; of older turns, what the message says.
    pub requested_by: Option<String>,
    /// What they are called.
    pub called: Option<String>,
    /// Where the message came from, as [`Turn::channel`](crate::Turn::channel).
    pub channel: String,
    /// Whether text from outside was in the conversation.
    pub is_outside: bool,
    /// From where, as far as that is known, each on a line; the newest is the last.
    pub outside_sources: String,
    /// Whether an answer can cover later calls.
    pub may_last: bool,
    /// The [`ToolCall::id`](crate::ToolCall::id).
    pub call_id: String,
    /// The tool that would run.
    pub tool: String,
    /// The arguments as JSON text.
    pub arguments: String,
    /// Why approval is needed, as text for a person.
    pub reason: String,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When it counts as denied.
    pub expires_at: Timestamp,
    /// Absent while it is pending.
    pub decision: Option<Decision>,
}

impl Approval {
    /// Whether it was asked about this call: its id, its tool, and its arguments byte
    /// for byte.
    pub fn is_for(&self, call: &ToolCall) -> bool {
        self.call_id == call.id && self.tool == call.tool && self.arguments == call.arguments
    }
}

/// A request to store.
#[derive(Clone, Debug)]
pub struct NewApproval {
    /// The [`ToolCall::id`](crate::ToolCall::id).
    pub call_id: String,
    /// The tool that would run.
    pub tool: String,
    /// As JSON text.
    pub arguments: String,
    /// Why approval is needed, as text for a person.
    pub reason: String,
    /// Whether text from outside is in the conversation.
    pub is_outside: bool,
    /// From where, as in [`Approval::outside_sources`].
    pub outside_sources: String,
    /// Whether an answer can cover later calls.
    pub may_last: bool,
}

/// The decider on record where whoever asked lost the right to it: nobody new has this name.
pub const BY_HEARTH: &str = "hearth";

/// A person's decision, a timeout, or what follows from a loss of rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// A user's name, `timeout`, or `hearth` where whoever asked may not do it any more.
    pub by: String,
}

/// What was decided, and for how long it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Approved for this call.
    ApprovedOnce,
    /// Approved for the rest of the conversation, for the one who asked.
    ApprovedConversation,
    /// Approved from now on, for the one who asked.
    ApprovedAlways,
    /// The call is refused; the turn continues without it.
    Denied,
    /// Nobody answered in time: the same as denied.
    Expired,
}

words! { Verdict {
    ApprovedOnce: "approved",
    ApprovedConversation: "approved_conversation",
    ApprovedAlways: "approved_always",
    Denied: "denied",
    Expired: "expired",
} }

impl Verdict {
    /// Whether the tool may run.
    pub fn is_approval(self) -> bool {
        matches!(
            self,
            Verdict::ApprovedOnce | Verdict::ApprovedConversation | Verdict::ApprovedAlways
        )
    }
}

/// The outcome of [`Store::decide`](crate::Store::decide).
#[derive(Clone, Debug)]
pub struct DecisionOutcome {
    /// The approval with its decision.
    pub approval: Approval,
    /// Whether the turn continues now.
    pub resumes: bool,
}

/// Reads approvals with those who asked. A webhook's turn is its account's, whoever
/// its caller says that speaks.
macro_rules! approvals_from {
    ($hint:literal) => {
        concat!(
            "SELECT a.*, t.channel,
                 iif(t.channel LIKE 'webhook:%', NULL, u.id) AS user_id,
                 iif(t.channel LIKE 'webhook:%', t.account, NULL) AS account,
                 iif(t.channel LIKE 'webhook:%', t.account, ifnull(u.name, m.speaker))
                     AS requested_by,
                 iif(t.channel LIKE 'webhook:%', t.account,
                     coalesce(u.display_name, u.name, m.speaker)) AS called
             FROM approvals a ",
            $hint,
            " CROSS JOIN turns t ON t.id = a.turn_id
             LEFT JOIN users u ON u.id = t.user_id
             LEFT JOIN messages m ON m.id = t.message_id"
        )
    };
}

impl Snapshot<'_> {
    /// Undecided approvals, oldest first, at most 1,000: an admin's viewer sees all,
    /// a person's those that they asked for. Without those of a turn whose asker does
    /// not see the conversation any longer: it ends.
    pub fn waiting_approvals(&self) -> Result<Vec<Approval>> {
        let undecided = self.undecided_approvals()?.into_iter();
        let waiting = undecided.filter(|(_, is_seen)| *is_seen);
        Ok(waiting.map(|(approval, _)| approval).collect())
    }

    /// The same with those, each with whether its asker sees the conversation still.
    pub fn undecided_approvals(&self) -> Result<Vec<(Approval, bool)>> {
        let mut found = self.rows(WAITING_APPROVALS, params![], from_row)?;
        found.retain(|approval: &Approval| self.sight.viewer.sees_approval_of(approval.user_id));
        found.truncate(MOST as usize);
        let mut undecided = Vec::with_capacity(found.len());
        for approval in found {
            let is_seen = askers::still_sees(self.connection(), approval.turn_id)?;
            undecided.push((approval, is_seen));
        }
        Ok(undecided)
    }

    /// All approvals of a turn, in order, at most 1,000.
    pub fn approvals_of(&self, turn: TurnId) -> Result<Vec<Approval>> {
        Ok(self.rows(OF_TURN, params![turn, MOST], from_row)?)
    }

    /// An approval, seen as by [`Snapshot::waiting_approvals`].
    ///
    /// # Errors
    /// `not_found`.
    pub fn approval(&self, id: ApprovalId) -> Result<Approval> {
        let approval = find(self.connection(), id)?;
        let is_seen = self.sight.viewer.sees_approval_of(approval.user_id)
            && askers::still_sees(self.connection(), approval.turn_id)?;
        match is_seen {
            true => Ok(approval),
            false => Err(query::not_found("approval", id).into()),
        }
    }

    /// Whether this tool was approved for the rest of this conversation, for this
    /// person or this webhook account.
    pub fn is_granted(
        &self,
        conversation: ConversationId,
        tool: &str,
        user: Option<UserId>,
        account: Option<&str>,
    ) -> Result<bool> {
        let parameters = params![conversation, tool, user, account];
        Ok(self.exists(GRANT, parameters)?)
    }
}

impl Store {
    /// Stores a decision, durably. After the turn's last one the turn becomes
    /// `queued` in the same commit, and `resumes` is true.
    ///
    /// # Errors
    /// `not_found`; `invalid_request` when it was decided already.
    pub fn decide(&self, id: ApprovalId, decision: Decision) -> Result<DecisionOutcome> {
        self.write(move |write| decide(write, id, decision))
    }

    /// Ids of the undecided approvals that have expired, at most 1,000.
    pub fn expired_approvals(&self, now: Timestamp) -> Result<Provisional<Vec<ApprovalId>>> {
        self.look(move |connection| connection.values(EXPIRED_APPROVALS, params![now, MOST]))
    }
}

pub(crate) const WAITING_APPROVALS: &str = concat!(
    approvals_from!("INDEXED BY approvals_undecided"),
    " WHERE a.verdict IS NULL ORDER BY a.id"
);

const OF_TURN: &str = concat!(
    approvals_from!(""),
    " WHERE a.turn_id = ?1 ORDER BY a.id LIMIT ?2"
);

pub(crate) const GRANT: &str = "SELECT 1 FROM grants \
     WHERE conversation_id = ?1 AND tool = ?2 \
         AND ifnull(user_id, 0) = ifnull(?3, 0) AND ifnull(account, '') = ifnull(?4, '')";

pub(crate) const EXPIRED_APPROVALS: &str = "SELECT id FROM approvals \
     INDEXED BY approvals_undecided WHERE verdict IS NULL AND expires_at <= ?1 \
     ORDER BY expires_at LIMIT ?2";

pub(crate) fn insert(
    write: &Write<'_>,
    turn_id: TurnId,
    conversation_id: ConversationId,
    new: NewApproval,
    expires_at: Timestamp,
) -> Outcome<Approval> {
    let id = write.id();
    write.insert(
        "approvals",
        &[
            ("id", &id),
            ("turn_id", &turn_id),
            ("conversation_id", &conversation_id),
            ("call_id", &new.call_id),
            ("tool", &new.tool),
            ("arguments", &new.arguments),
            ("reason", &new.reason),
            ("created_at", &write.now),
            ("expires_at", &expires_at),
            ("is_outside", &new.is_outside),
            ("outside_sources", &new.outside_sources),
            ("may_last", &new.may_last),
        ],
    )?;
    find(write.connection, id)
}

fn decide(write: &Write<'_>, id: ApprovalId, decision: Decision) -> Outcome<DecisionOutcome> {
    let mut approval = find(write.connection, id)?;
    if let Some(earlier) = &approval.decision {
        let called = "SELECT display_name FROM users WHERE name = ?";
        let called = write.value(called, params![earlier.by])?.flatten();
        let called: String = called.unwrap_or_else(|| earlier.by.clone());
        let fields = [("name", &*called), ("id", &id.to_string())];
        return Err(Error::refused("error.decided", &fields).into());
    }
    write.execute(
        "UPDATE approvals SET verdict = ?2, decided_by = ?3, decided_at = ?4 WHERE id = ?1",
        params![id, decision.verdict, decision.by, write.now],
    )?;
    // Where nobody is there who asked, it holds for this call alone.
    if decision.verdict == Verdict::ApprovedConversation
        && (approval.user_id.is_some() || approval.account.is_some())
    {
        write.execute(
            "INSERT OR IGNORE INTO grants (conversation_id, tool, user_id, account)
             VALUES (?1, ?2, ?3, ?4)",
            params![
                approval.conversation_id,
                approval.tool,
                approval.user_id,
                approval.account,
            ],
        )?;
    }
    let queued = write.execute(
        "UPDATE turns SET state = 'queued'
         WHERE id = ?1 AND state = 'waiting_approval'
           AND NOT EXISTS (SELECT 1 FROM approvals WHERE turn_id = ?1 AND verdict IS NULL)",
        params![approval.turn_id],
    )?;
    approval.decision = Some(decision);
    Ok(DecisionOutcome {
        approval,
        resumes: queued > 0,
    })
}

/// Closes the undecided approvals of a turn that ends.
pub(crate) fn expire_undecided(write: &Write<'_>, turn: TurnId) -> Outcome<()> {
    write.run(
        "UPDATE approvals SET verdict = ?2, decided_by = 'timeout', decided_at = ?3
         WHERE turn_id = ?1 AND verdict IS NULL",
        params![turn, Verdict::Expired, write.now],
    )
}

/// An approval, unless it has gone with its turn.
pub(crate) fn find_if_there(connection: &Connection, id: ApprovalId) -> Outcome<Option<Approval>> {
    connection.row(APPROVAL, params![id], from_row)
}

const APPROVAL: &str = concat!(approvals_from!(""), " WHERE a.id = ?");

fn find(connection: &Connection, id: ApprovalId) -> Outcome<Approval> {
    connection.find("approval", APPROVAL, id, from_row)
}

fn from_row(row: &Row<'_>) -> Outcome<Approval> {
    let verdict: Option<Verdict> = row.get("verdict")?;
    Ok(from_row!(row => Approval {
        id, turn_id, conversation_id, user_id, account, requested_by, called, channel, is_outside,
        outside_sources, may_last, call_id, tool, arguments, reason, created_at, expires_at;
        decision: match verdict {
            Some(verdict) => Some(Decision {
                verdict,
                by: row.get("decided_by")?,
            }),
            None => None,
        },
    }))
}
