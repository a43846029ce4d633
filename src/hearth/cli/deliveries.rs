//! `hearth deliveries`: the queue of webhook callbacks.

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::open_store;
use super::table::{self, ListView};
use crate::service::views;
use base::ids::DeliveryId;
use protocol::command::{LIST_DEFAULT, LIST_LIMIT};
use serde_json::json;
use store::{Delivery, DeliveryState, Viewer};

pub const COMMAND: Command = Command::new("deliveries: List webhook callbacks and retry them")
    .members(&[
        Command::new(
            "\
list: List the newest callbacks
--state STATE  Only these: pending, held, delivered or dead
--limit N      Show at most N (default: 50)
--json
--data-dir",
        )
        .run(list),
        Command::new(
            "\
retry ID: Send a callback again now
A running server sends it within 2 seconds; otherwise the next start does.
--data-dir",
        )
        .run(retry),
    ]);

/// Longest error in the table; `--json` shows all of it.
const ERROR_CHARACTERS: usize = 60;

/// `hearth deliveries list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let states = ["pending", "held", "delivered", "dead"];
    let state = arguments.choice("state", &states)?;
    let state = state.and_then(DeliveryState::parse);
    let limit = arguments
        .number("limit", 1..=LIST_LIMIT)?
        .unwrap_or(LIST_DEFAULT);
    let deliveries =
        open_store(arguments, context)?.deliveries(&Viewer::server(), state, limit as usize)?;
    let list = ListView {
        columns: &[
            "id",
            "account",
            "state",
            "attempts",
            "next attempt",
            "last error",
        ],
        row: &|delivery: &Delivery| {
            let error = delivery.last_error.as_deref().unwrap_or_default();
            vec![
                delivery.id.to_string(),
                delivery.account.clone(),
                delivery.state.as_str().to_owned(),
                delivery.attempts.to_string(),
                match delivery.state {
                    DeliveryState::Pending => table::time(delivery.next_at),
                    _ => "-".to_owned(),
                },
                error.chars().take(ERROR_CHARACTERS).collect(),
            ]
        },
        json: &|delivery| json!(views::delivery(delivery)),
        empty: "No callbacks match.",
    };
    list.print(&deliveries, arguments, context)
}

/// `hearth deliveries retry ID`
fn retry(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id: DeliveryId = arguments.required(0).parse()?;
    let delivery = open_store(arguments, context)?.retry_delivery(&Viewer::server(), id)?;
    let when = match delivery.state {
        DeliveryState::Held => "after the earlier callbacks of its conversation",
        _ => "immediately",
    };
    context.note(format_args!(
        "{id} will be sent again {when}, or at the next start if no server is running."
    ))
}
