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
        within(budget, used, "this month's budget", "budget.monthly_tokens")?;
    }
    if let Some((id, budget)) = own {
        let used = seen.tokens_of_month_by(id, now)? + unsaved;
        let key = "monthly_tokens of this person";
        within(budget, used, "this person's monthly budget", key)?;
    }
    Ok(())
}

fn within(budget: u64, used: u64, name: &str, key: &str) -> Result<()> {
    if used < budget {
        return Ok(());
    }
    let tokens = if budget == 1 { "token" } else { "tokens" };
    let text = format!(
        "{name} of {budget} {tokens} is used up ({used} used): an admin can raise {key}, or it \
         goes on next month (UTC)"
    );
    // As OpenAI does: who asks too much, and not a server that will be there in a moment.
    Err(Error::new(Code::ServerError, text).with_status(429))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_is_no_plural() {
        for (budget, says) in [(1, "of 1 token is used up"), (2, "of 2 tokens is used up")] {
            let error = within(budget, 2, "this month's budget", "x").unwrap_err();
            assert!(error.message().contains(says), "{error}");
        }
    }
}
