//! Lists for people (aligned columns) and for scripts (JSON).

use serde_json::Value;

use super::context::{CliContext, CliResult};
use super::terminal::visible;
use base::calendar::Zone;
use base::clock::Timestamp;
use base::visible::one_line;

/// Prints rows under their column names; without rows, `empty` on standard error.
pub fn print(
    context: &mut CliContext,
    columns: &[&str],
    rows: &[Vec<String>],
    empty: &str,
) -> CliResult {
    if rows.is_empty() {
        writeln!(context.errors, "{empty}")?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let cells = rows.iter().map(|row| row[index].chars().count());
            cells.chain([name.len()]).max().unwrap_or(0)
        })
        .collect();
    let head: Vec<String> = columns.iter().map(|name| name.to_uppercase()).collect();
    for row in [&head].into_iter().chain(&rows) {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        writeln!(context.output, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// A time as people read it, on the clocks of this machine: `22 Nov 2026 14:05`.
pub fn time(time: Timestamp) -> String {
    Zone::system().readable(time)
}

/// A text on one line, shortened to `most` characters.
pub fn truncated(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some(_) => line.chars().take(most - 1).chain(['…']).collect(),
        None => line,
    }
}

/// Prints a JSON value, indented.
pub fn print_json(context: &mut CliContext, value: &Value) -> CliResult {
    let text = format!("{value:#}");
    if context.output_is_terminal {
        writeln!(context.output, "{}", visible(&text))?
    } else {
        writeln!(context.output, "{text}")?
    }
    Ok(())
}
