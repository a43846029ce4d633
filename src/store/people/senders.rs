//! Senders of webhook accounts and of Telegram that are linked to people, each by the person:
//! with a code that works once. Only the fingerprint of a code is stored.

use std::time::Duration;

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row};
use crate::people::user;
use crate::people::users::User;
use crate::sight::snapshot::Snapshot;
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{ConversationId, UserId};
use protocol::record::Sender;

/// The account of senders of Telegram, and the service by which they are notified.
pub const TELEGRAM: &str = "telegram";

/// How long a code works.
const VALID: Duration = Duration::from_secs(10 * 60);

impl Snapshot<'_> {
    /// Whether the sender who spoke last in a conversation of this person is linked to them.
    pub fn is_linked(
        &self,
        account: Option<&str>,
        user: Option<UserId>,
        conversation: ConversationId,
    ) -> Result<bool> {
        Ok(self.exists(LINKED_IN, params![account, user, conversation])?)
    }
}

impl Store {
    /// Stores the code by which a person links a sender of this account, in place of an
    /// earlier one. Returns until when it works.
    pub fn add_link_code(
        &self,
        user: UserId,
        account: &str,
        fingerprint: [u8; 32],
    ) -> Result<Timestamp> {
        let account = account.to_owned();
        self.write(move |write| {
            let expires_at = write.now.plus(VALID);
            write.execute(
                "INSERT INTO link_codes (fingerprint, user_id, account, expires_at)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (user_id, account) DO UPDATE SET fingerprint = ?1, expires_at = ?4",
                params![fingerprint, user, account, expires_at],
            )?;
            Ok(expires_at)
        })
    }

    /// Uses a code: links the sender to the person who made it, whoever it was linked to
    /// before. None where the code is wrong or has expired. A code works nowhere any more once
    /// it was sent, also where it was sent to another account, which knows it now.
    pub fn link_sender(
        &self,
        account: &str,
        sender: &str,
        fingerprint: [u8; 32],
    ) -> Result<Option<User>> {
        let (account, sender) = (account.to_owned(), sender.to_owned());
        self.write(move |write| {
            let found = write.row(
                "DELETE FROM link_codes WHERE fingerprint = ? RETURNING user_id, account, expires_at",
                params![fingerprint],
                |row| {
                    let made_for: String = row.get(1)?;
                    let expires_at: Timestamp = row.get(2)?;
                    let works = made_for == account && expires_at > write.now;
                    Ok((works, row.get::<_, UserId>(0)?))
                },
            )?;
            let Some((true, user)) = found else {
                return Ok(None);
            };
            write.execute(
                "INSERT INTO senders (account, sender, user_id, created_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (account, sender) DO UPDATE SET user_id = ?3, created_at = ?4",
                params![account, sender, user, write.now],
            )?;
            write.row(user::FIND, params![user], user::from_row)
        })
    }

    /// Notes that a chat of Telegram was refused; returns whether it is the first time. After
    /// `most` chats none is noted, and none is the first.
    pub fn refuse_chat(&self, chat: &str, most: usize) -> Result<bool> {
        let chat = chat.to_owned();
        self.write(move |write| {
            let noted = write.execute(
                "INSERT OR IGNORE INTO refused_chats (chat)
                 SELECT ?1 WHERE (SELECT count(*) FROM refused_chats) < ?2",
                params![chat, most],
            )?;
            Ok(noted > 0)
        })
    }

    /// The person a sender is linked to, if any.
    pub fn person_of_sender(&self, account: &str, sender: &str) -> Result<Option<User>> {
        self.read(|connection| connection.row(LINKED, params![account, sender], user::from_row))
    }

    /// All linked senders by account, or those of one person.
    pub fn senders(&self, of: Option<UserId>) -> Result<Vec<Sender>> {
        self.read(|connection| connection.rows(SENDERS, params![of], from_row))
    }

    /// Ends the link of a sender: of any, or only if it is this person's. Returns whether
    /// there was one.
    pub fn unlink_sender(&self, account: &str, sender: &str, of: Option<UserId>) -> Result<bool> {
        let (account, sender) = (account.to_owned(), sender.to_owned());
        self.write(move |write| {
            let removed = write.execute(
                "DELETE FROM senders WHERE account = ?1 AND sender = ?2
                     AND user_id = ifnull(?3, user_id)",
                params![account, sender, of],
            )?;
            Ok(removed > 0)
        })
    }
}

/// Ends the links of accounts that are not among these, and the codes for them: whatever gets
/// such a name next is something else.
pub(crate) fn retain<'a>(
    write: &Write<'_>,
    accounts: impl Iterator<Item = &'a str> + Clone,
) -> Outcome<()> {
    let known = "SELECT account FROM senders UNION SELECT account FROM link_codes";
    let known: Vec<String> = write.values(known, params![])?;
    for gone in known {
        if accounts.clone().any(|account| account == gone) {
            continue;
        }
        for sql in [
            "DELETE FROM senders WHERE account = ?",
            "DELETE FROM link_codes WHERE account = ?",
        ] {
            write.execute(sql, params![gone])?;
        }
    }
    Ok(())
}

/// The chat of Telegram that a person linked last, or that of this conversation if it is one of
/// theirs.
pub(crate) fn chat_of(
    connection: &Connection,
    user: UserId,
    conversation: Option<ConversationId>,
) -> Outcome<Option<String>> {
    // A later conversation of a chat is called after it and the message that began it.
    let sql = "SELECT s.sender FROM senders s LEFT JOIN conversations c ON c.id = ?3
                   AND c.owner_id = s.user_id AND c.sender_account = s.account
                   AND (c.external_name = s.sender OR c.external_name GLOB s.sender || '.*')
               WHERE s.account = ?1 AND s.user_id = ?2
               ORDER BY c.id IS NULL, s.created_at DESC LIMIT 1";
    connection.value(sql, params![TELEGRAM, user, conversation])
}

/// All linked senders, for whoever only looks into a database.
pub(crate) fn all(connection: &Connection) -> Outcome<Vec<Sender>> {
    let nobody: Option<UserId> = None;
    connection.rows(SENDERS, params![nobody], from_row)
}

pub(crate) const LINKED: &str = "SELECT u.* FROM senders s CROSS JOIN users u \
     ON u.id = s.user_id WHERE s.account = ?1 AND s.sender = ?2";

/// A conversation from before a sender was noted has any of its account.
pub(crate) const LINKED_IN: &str = "SELECT 1 FROM senders s WHERE s.account = ?1 \
     AND s.user_id = ?2 AND s.sender = ifnull((SELECT sender FROM conversations WHERE id = ?3), \
     s.sender)";

pub(crate) const SENDERS: &str = "SELECT s.account, s.sender, s.created_at, u.name AS person \
     FROM senders s CROSS JOIN users u ON u.id = s.user_id \
     WHERE s.user_id = ifnull(?1, s.user_id) ORDER BY s.account, s.sender";

fn from_row(row: &Row<'_>) -> Outcome<Sender> {
    Ok(from_row!(row => Sender { account, sender, person, created_at }))
}
