//! Whether Telegram knows the bot. Its address holds the token, and is part of no line.

use std::time::Duration;

use serde_json::Value;

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::http;
use crate::outgoing::post::reason;
use crate::outgoing::telegram::method_url;
use base::visible::one_line;
use config::Settings;
use net::tls::Trust;

/// Time limit of its answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks it who the bot is, if there is one.
pub fn check(_: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    let Some(channel) = config.telegram() else {
        return Vec::new();
    };
    let url = method_url(channel, "getMe");
    let trust = Trust::new(config.tls.ca_file.as_deref());
    let answered = http::send(&trust, "GET", &url, &[], None, LIMIT);
    let found = match answered {
        Ok((200, body)) => {
            let answer: Value = serde_json::from_str(&body).unwrap_or_default();
            let name = answer["result"]["username"]
                .as_str()
                .unwrap_or("without a name");
            Diagnosis::ok(format!("Telegram knows the bot: {}", one_line(name)))
        }
        Ok((401 | 404, _)) => Diagnosis::problem("Telegram refuses the bot's token")
            .advise("make a new one with @BotFather, and set it as bot_token of the channel"),
        Ok((status, _)) => Diagnosis::problem(format!("Telegram answers {status}"))
            .advise("try again later, and check the base_url of the channel"),
        Err(error) => {
            let why = reason(&error, "the base_url of the channel", LIMIT);
            Diagnosis::problem(format!("Telegram cannot be reached: {why}"))
                .advise("check that this machine can reach the internet")
        }
    };
    vec![found]
}
