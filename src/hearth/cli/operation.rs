//! `hearth deliveries`, `errors` and `usage`: what the server does and costs.

use serde_json::{Value, json};

use super::command::Command;
use super::household::limit;
use super::row::{Column, Shown, name_people, text, time};
use super::table;
use base::visible::one_line;
use protocol::command::LIST_DEFAULT;

pub const DELIVERIES: Command = Command::new("deliveries: List webhook callbacks and retry them")
    .members(&[
        Command::new(
            "\
list: List the newest callbacks
--state STATE  Only these: pending, held, delivered or dead
--limit N      Show at most N (default: 50)",
        )
        .row(
            |arguments| {
                let states = ["pending", "held", "delivered", "dead"];
                Ok(json!({
                    "type": "list_deliveries",
                    "state": arguments.choice("state", &states)?,
                    "limit": limit(arguments, LIST_DEFAULT)?,
                }))
            },
            Shown::List {
                member: "deliveries",
                columns: &[
                    ("id", |delivery| text(&delivery["delivery_id"])),
                    ("account", |delivery| text(&delivery["account"])),
                    ("state", |delivery| text(&delivery["state"])),
                    ("attempts", |delivery| text(&delivery["attempts"])),
                    ("next attempt", |delivery| {
                        if delivery["state"] == "pending" {
                            time(&delivery["next_at"])
                        } else {
                            "-".to_owned()
                        }
                    }),
                    ("last error", |delivery| {
                        let error = delivery["last_error"].as_str().unwrap_or_default();
                        error.chars().take(60).collect()
                    }),
                ],
                empty: "No callbacks match.",
            },
        ),
        Command::new(
            "\
retry ID: Send a callback again now
A running server sends it at once; otherwise the next start does.",
        )
        .row(
            |arguments| {
                Ok(json!({ "type": "retry_delivery", "delivery_id": arguments.required(0) }))
            },
            Shown::Sentence(|data| {
                let when = if data["state"] == "held" {
                    "after the earlier callbacks of its conversation"
                } else {
                    "immediately"
                };
                format!(
                    "{} will be sent again {when}, or at the next start if no server is running.",
                    text(&data["delivery_id"])
                )
            }),
        ),
    ]);

pub const ERRORS: Command = Command::new(
    "\
errors: Show the newest warnings and errors of the server's log
At most 100, the newest last. `hearth doctor` looks for what is wrong now.
--json",
)
.ask(|door, arguments, context| {
    let data = door.ask(&json!({ "type": "list_errors" }))?;
    let errors = data["errors"].as_array().map_or(&[][..], Vec::as_slice);
    if arguments.has("json") {
        return table::print_json(context, &data["errors"]);
    }
    if errors.is_empty() {
        return context.note("The log has no warnings or errors.");
    }
    errors
        .iter()
        .try_for_each(|line| context.print(one_line(&text(line))))
});

pub const USAGE: Command = Command::new(
    "\
usage: Show the tokens used, by month and model
Months and days are in UTC. Tokens sent include those that the provider read from its cache.
By purpose, it shows who used them, and what for. With the setting prices, it shows what they cost.
--by WHAT    day, month or purpose (default: month)
--limit N    Show at most N rows (default: 50)
--json",
)
.ask(|door, arguments, context| {
    let by = arguments
        .choice("by", &["day", "month", "purpose"])?
        .unwrap_or("month");
    let limit = limit(arguments, LIST_DEFAULT)?;
    let mut data = door.ask(&json!({ "type": "get_usage", "by": by, "limit": limit }))?;
    if arguments.has("json") {
        return table::print_json(context, &data);
    }
    name_people(&mut data, door)?;
    let columns = match by {
        "day" => DAYS,
        "purpose" => PURPOSES,
        _ => MONTHS,
    };
    let shown = Shown::List {
        member: "usage",
        columns,
        empty: "No tokens have been used yet.",
    };
    shown.print(&data, arguments, context)?;
    if let Some(budget) = data["monthly_tokens"].as_u64() {
        let tokens = if budget == 1 { "token" } else { "tokens" };
        let (used, budget) = (
            grouped(&data["used_this_month"]),
            grouped(&data["monthly_tokens"]),
        );
        context.note(format_args!(
            "This month: {used} of {budget} {tokens} (budget.monthly_tokens)."
        ))?;
    }
    Ok(())
});

const DAYS: &[Column] = &[DAY, MODEL, TURNS, IN, OUT, CACHED, COST];
const MONTHS: &[Column] = &[MONTH, MODEL, TURNS, IN, OUT, CACHED, COST];
const PURPOSES: &[Column] = &[MONTH, PERSON, PURPOSE, MODEL, TURNS, IN, OUT, CACHED, COST];

const DAY: Column = ("day", |row| text(&row["day"]));
const MONTH: Column = ("month", |row| text(&row["month"]));
const PERSON: Column = ("person", |row| text(&row["person"]));
const PURPOSE: Column = ("purpose", |row| text(&row["purpose"]));
const MODEL: Column = ("model", |row| {
    row["model"].as_str().unwrap_or_default().to_owned()
});
const TURNS: Column = ("turns", |row| text(&row["turns"]));
const IN: Column = ("tokens in", |row| grouped(&row["input"]));
const OUT: Column = ("tokens out", |row| grouped(&row["output"]));
const CACHED: Column = ("cached", |row| grouped(&row["cached"]));
const COST: Column = ("cost", |row| text(&row["cost"]));

/// A number with commas between thousands.
fn grouped(number: &Value) -> String {
    let digits = text(number);
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(&json!(number)), text);
        }
    }
}
