//! Why nothing came of a request to Telegram, and how long to wait then.

use std::time::Duration;

use base::error::Error;
use base::language::Said;

/// The pauses after failures: the first, doubled up to the longest; with a second poller; and
/// with a token that is refused, until the settings change.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const SECOND_POLLER_PAUSE: Duration = Duration::from_secs(30);
const REFUSED_PAUSE: Duration = Duration::from_secs(300);

/// Why nothing came of a request.
#[derive(Debug)]
pub enum Problem {
    /// Telegram said so.
    Refused {
        status: u64,
        says: String,
        wait: Option<u64>,
    },
    /// It did not answer.
    Unanswered(Said),
    /// The server could not read or store something.
    Later(Error),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Refused {
                status: 401 | 404, ..
            } => f.write_str(
                "Telegram refuses the bot's token: make a new one with @BotFather, and set it as \
                 bot_token of the telegram channel",
            ),
            Problem::Refused {
                status: 409, says, ..
            } => write!(
                f,
                "something else gets the bot's messages, another server or a webhook: end it, or \
                 make a bot of its own ({says})"
            ),
            Problem::Refused { status, says, .. } => {
                write!(f, "Telegram answered {status}: {says}")
            }
            Problem::Unanswered(reason) => write!(f, "Telegram cannot be reached: {reason}"),
            Problem::Later(error) => write!(f, "a message has to wait: {error}"),
        }
    }
}

impl Problem {
    /// How long to wait after so many of them in a row.
    pub fn pause(&self, failures: u32) -> Duration {
        let doubled = FIRST_PAUSE * (1 << failures.min(6));
        match self {
            Problem::Refused {
                wait: Some(wait), ..
            } => Duration::from_secs(*wait),
            Problem::Refused {
                status: 401 | 404, ..
            } => REFUSED_PAUSE,
            Problem::Refused { status: 409, .. } => SECOND_POLLER_PAUSE,
            _ => doubled.min(LONGEST_PAUSE),
        }
    }
}
