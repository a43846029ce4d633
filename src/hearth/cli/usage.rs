//! `hearth usage`: the tokens that the models used.

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::DataDirectory;
use super::table;
use base::clock::Clock;
use config::Settings;
use protocol::command::{LIST_DEFAULT, LIST_LIMIT};
use serde_json::json;
use store::{Period, UsageRow};

pub const COMMAND: Command = Command::new(
    "\
usage: Show the tokens used, by month and model
Months and days are in UTC. Input tokens include those that the provider cached.
--by PERIOD  day or month (the default)
--limit N    Show at most N rows (default: 50)
--json
--data-dir",
)
.run(run);

/// `hearth usage`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let (period, column) = match arguments.choice("by", &["day", "month"])? {
        Some("day") => (Period::Day, "day"),
        _ => (Period::Month, "month"),
    };
    let limit = arguments
        .number("limit", 1..=LIST_LIMIT)?
        .unwrap_or(LIST_DEFAULT);
    let directory = DataDirectory::of(arguments, context)?;
    let clock = Clock::system();
    let store = directory.open_store()?;
    let rows = store.usage(period, limit as usize)?;
    let used = store.tokens_of_month(clock.now())?;
    store.close();
    // An invalid configuration does not prevent the report.
    let budget = Settings::load(&directory.config())
        .ok()
        .and_then(|settings| settings.current().budget.monthly_tokens);
    if arguments.has("json") {
        let rows: Vec<Value> = rows.iter().map(|row| to_json(row, column)).collect();
        let shown = json!({
            "usage": rows,
            "used_this_month": used,
            "monthly_tokens": budget,
        });
        return table::print_json(context, &shown);
    }
    let cells: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| {
            vec![
                row.period,
                row.model,
                row.turns.to_string(),
                grouped(row.usage.input),
                grouped(row.usage.output),
                grouped(row.usage.cached),
            ]
        })
        .collect();
    let columns = [
        column,
        "model",
        "turns",
        "tokens in",
        "tokens out",
        "cached",
    ];
    table::print(context, &columns, &cells, "No tokens have been used yet.")?;
    if let Some(budget) = budget {
        let tokens = if budget == 1 { "token" } else { "tokens" };
        let (used, budget) = (grouped(used), grouped(budget));
        context.note(format_args!(
            "This month: {used} of {budget} {tokens} (budget.monthly_tokens)."
        ))?;
    }
    Ok(())
}

fn to_json(row: &UsageRow, column: &str) -> Value {
    json!({
        column: row.period,
        "model": row.model,
        "turns": row.turns,
        "input": row.usage.input,
        "output": row.usage.output,
        "cached": row.usage.cached,
    })
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
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
    use super::grouped;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
