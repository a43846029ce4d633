//! Lists for people (aligned columns) and for scripts (JSON).

use serde_json::Value;

use super::context::{Context, Outcome};

/// Prints rows under their column names, or `nothing` when there are none.
pub fn print(
    context: &mut Context,
    columns: &[&str],
    rows: &[Vec<String>],
    nothing: &str,
) -> Outcome {
    if rows.is_empty() {
        writeln!(context.errors, "{nothing}")?;
        return Ok(());
    }
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let cells = rows.iter().map(|row| row[place].chars().count());
            cells.chain([name.len()]).max().unwrap_or(0)
        })
        .collect();
    let head: Vec<String> = columns.iter().map(|name| name.to_uppercase()).collect();
    for row in [&head].into_iter().chain(rows) {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{:width$}", plain(cell)))
            .collect();
        writeln!(context.output, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// At most `most` characters of a text, on one line.
pub fn cut(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some(_) => line.chars().take(most - 1).chain(['…']).collect(),
        None => line,
    }
}

/// Prints a JSON value so that people can read it too.
pub fn print_json(context: &mut Context, value: &Value) -> Outcome {
    writeln!(context.output, "{value:#}")?;
    Ok(())
}

/// A text without what would steer a terminal or break a line.
fn plain(text: &str) -> String {
    text.chars()
        .map(|character| match character.is_control() {
            true => '\u{fffd}',
            false => character,
        })
        .collect()
}
