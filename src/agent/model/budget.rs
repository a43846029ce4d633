//! The monthly token budgets: the household's, and those of single people.

use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use base::ids::UserId;
use config::{Config, OFFLINE, Person};
use store::{Store, Usage, Viewer};

/// Checks that the budgets allow another request of this person. `unsaved` is what the
/// turn has used so far and the database does not yet count.
///
/// # Errors
/// `server_error` with HTTP 429 when the month's tokens are used up.
pub fn check(
    config: &Config,
    store: &Store,
    now: Timestamp,
    unsaved: Usage,
    person: Option<(UserId, &Person)>,
) -> Result<()> {
    let own = person.and_then(|(id, person)| Some((id, person.monthly_tokens?)));
    let budgets = (config.budget.monthly_tokens, own);
    if config.provider == OFFLINE || budgets == (None, None) {
        return Ok(());
    }
    let unsaved = unsaved.input + unsaved.output;
    let seen = store.snapshot(&Viewer::server())?;
    if let Some(budget) = budgets.0 {
        let used = seen.tokens_of_month(now)? + unsaved;
        within(budget, used, "error.budget")?;
    }
    if let Some((id, budget)) = own {
        let used = seen.tokens_of_month_by(id, now)? + unsaved;
        within(budget, used, "error.budget_of_person")?;
    }
    Ok(())
}

fn within(budget: u64, used: u64, key: &'static str) -> Result<()> {
    if used < budget {
        return Ok(());
    }
    let fields = [
        ("budget", &*budget.to_string()),
        ("used", &*used.to_string()),
    ];
    // As OpenAI does: who asks too much, and not a server that will be there in a moment.
    Err(Error::worded(Code::ServerError, key, &fields).with_status(429))
}
