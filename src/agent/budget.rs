//! The monthly token budget.

use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use config::{Config, OFFLINE};
use store::{Store, Usage};

/// Checks that the budget allows another request. `unsaved` is what the turn has
/// used so far and the database does not yet count.
///
/// # Errors
/// `server_error` with HTTP 503 when the month's tokens are used up.
pub fn check(config: &Config, store: &Store, now: Timestamp, unsaved: Usage) -> Result<()> {
    let Some(budget) = config.budget.monthly_tokens else {
        return Ok(());
    };
    if config.provider == OFFLINE {
        return Ok(());
    }
    let used = store.tokens_of_month(now)? + unsaved.input + unsaved.output;
    if used < budget {
        return Ok(());
    }
    let text = format!(
        "this month's budget of {budget} tokens is used up ({used} used): an admin can raise \
         budget.monthly_tokens, or it goes on next month (UTC)"
    );
    Err(Error::new(Code::ServerError, text).with_status(503))
}
