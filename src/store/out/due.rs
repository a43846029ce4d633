//! What the server does of itself: at its start, and when something is due.

use rusqlite::params;

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::query::Statements;
use crate::keep::clock_step::release_deliveries;
use crate::sight::audience::Audience;
use crate::sight::sharing::{Reshared, set_account_audiences};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{DeliveryId, NotificationId};
use base::secret::Secret;

/// What goes out of the house.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outgoing {
    /// To a webhook account.
    Callback(DeliveryId),
    /// To a person's phone or browser.
    Notification(NotificationId),
}

/// Where it goes. The configuration has the addresses of accounts and services.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A webhook account.
    Account(String),
    /// A person, by a service that they have chosen.
    Service {
        /// The name of the person.
        user: String,
        /// The service, as the settings call it.
        service: String,
    },
    /// The push service of a browser: this endpoint.
    Browser(Secret),
}

impl std::fmt::Display for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outgoing::Callback(id) => id.fmt(f),
            Outgoing::Notification(id) => id.fmt(f),
        }
    }
}

impl Store {
    /// Corrects what the last run has left, at a start: callbacks that waited for a response
    /// are due, and webhook accounts have the audiences of the configuration, as by
    /// [`Store::set_account_audiences`].
    pub fn settle(&self, accounts: Vec<(String, Audience)>) -> Result<Vec<Reshared>> {
        self.write(move |write| {
            release_deliveries(write)?;
            set_account_audiences(write, &accounts)
        })
    }

    /// When a callback, a notification or a schedule is next due, or an approval expires.
    /// Only a time to look again: it may not be committed yet.
    pub fn next_due(&self) -> Result<Provisional<Option<Timestamp>>> {
        self.look(|connection| Ok(connection.value(NEXT_DUE, params![])?.flatten()))
    }

    /// What is to be sent at `now`, and where: of each webhook account the longest due
    /// callbacks, at most `limit`, so that one with many hides no other, and all
    /// notifications, of which each person has few. Waits until it is committed.
    pub fn due_outgoing(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Outgoing, Destination)>> {
        // On the writer's connection, because a reader does not see a success that is
        // recorded but not committed yet.
        self.write(move |write| {
            let connection = write.connection;
            let mut due = connection.rows(DUE_NOTIFICATIONS, params![now], |row| {
                let endpoint: Option<String> = row.get(3)?;
                let to = match endpoint {
                    Some(endpoint) => Destination::Browser(Secret::new(endpoint)),
                    None => Destination::Service {
                        user: row.get(1)?,
                        service: row.get(2)?,
                    },
                };
                Ok((Outgoing::Notification(row.get(0)?), to))
            })?;
            let mut account = String::new();
            let next = |account: &str| connection.value(NEXT_ACCOUNT, params![account]);
            while let Some(next) = next(&account)?.flatten() {
                account = next;
                let parameters = params![account, now, limit];
                due.extend(connection.rows(DUE_DELIVERIES, parameters, |row| {
                    let to = Destination::Account(account.clone());
                    Ok((Outgoing::Callback(row.get(0)?), to))
                })?);
            }
            Ok(due)
        })
    }
}

pub(crate) const NEXT_DUE: &str = "SELECT min(at) FROM (
     SELECT min(next_at) AS at FROM deliveries INDEXED BY deliveries_due
     WHERE state = 'pending'
     UNION ALL SELECT min(next_at) FROM notifications INDEXED BY notifications_due
     WHERE finished_at IS NULL
     UNION ALL SELECT min(next_at) FROM schedules INDEXED BY schedules_due
     WHERE is_paused = 0
     UNION ALL SELECT min(expires_at) FROM approvals INDEXED BY approvals_undecided
     WHERE verdict IS NULL)";

/// The webhook account after another one that has callbacks to be sent.
pub(crate) const NEXT_ACCOUNT: &str = "SELECT min(account) FROM deliveries \
     INDEXED BY deliveries_due_of_account WHERE state = 'pending' AND account > ?1";

pub(crate) const DUE_DELIVERIES: &str = "SELECT id FROM deliveries \
     INDEXED BY deliveries_due_of_account \
     WHERE state = 'pending' AND account = ?1 AND next_at <= ?2 ORDER BY next_at LIMIT ?3";

pub(crate) const DUE_NOTIFICATIONS: &str = "SELECT n.id, u.name, n.service, s.endpoint \
     FROM notifications n INDEXED BY notifications_due \
     CROSS JOIN users u ON u.id = n.user_id \
     LEFT JOIN push_subscriptions s ON s.id = n.subscription_id \
     WHERE n.finished_at IS NULL AND n.next_at <= ?1 ORDER BY n.next_at LIMIT 10000";
