//! A page of the handbook as text for a terminal: headings and tables are set, and
//! links say where they lead.

/// The widest table that is set in columns; a wider one is set as a list.
const TABLE_WIDTH: usize = 92;

/// The page as text; with `bold`, headings are in bold type, else in capitals.
pub fn render(markdown: &str, bold: bool) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut lines = markdown
        .lines()
        .filter(|line| !(line.starts_with("<!--") && line.ends_with("-->")))
        .peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            if !text.is_empty() && !text.ends_with("\n\n") {
                text.push('\n');
            }
        } else if line.trim_start().starts_with("```") {
            for line in lines.by_ref() {
                if line.trim_start().starts_with("```") {
                    break;
                }
                push_line(&mut text, &format!("    {line}"));
            }
        } else if let Some((level, title)) = line.split_once(' ')
            && level.bytes().all(|byte| byte == b'#')
        {
            let title = inline(title);
            push_line(
                &mut text,
                &if bold {
                    format!("\x1b[1m{title}\x1b[0m")
                } else {
                    title.to_uppercase()
                },
            );
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            table(&mut text, rows);
        } else {
            // A paragraph or an item of a list: links may go over its lines.
            let mut block = line.to_owned();
            let goes_on = |line: &&str| {
                !line.is_empty() && !line.starts_with('|') && !line.trim_start().starts_with("```")
            };
            while let Some(line) = lines.next_if(goes_on) {
                block.push('\n');
                block.push_str(line);
            }
            push_line(&mut text, &inline(&block));
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// The cells of a row, without those of the line below the head.
fn cells(row: &str) -> Vec<String> {
    const BAR: &str = "\u{1}";
    let row = row.replace("\\|", BAR);
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .split('|')
        .map(|cell| inline(&cell.trim().replace(BAR, "|")))
        .collect()
}

fn table(text: &mut String, mut rows: Vec<Vec<String>>) {
    let is_rule = |row: &Vec<String>| {
        row.iter()
            .all(|cell| cell.trim_matches(['-', ':']).is_empty())
    };
    if rows.get(1).is_some_and(is_rule) {
        rows.remove(1);
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    if widths.iter().sum::<usize>() + 2 * columns <= TABLE_WIDTH {
        for row in &rows {
            let set = row.iter().zip(&widths);
            let set: Vec<String> = set.map(|(cell, width)| format!("{cell:width$}")).collect();
            push_line(text, &format!("  {}", set.join("  ")));
        }
        return;
    }
    let head = rows.remove(0);
    for row in rows {
        for (place, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let name = head.get(place).map_or("", String::as_str);
            push_line(
                text,
                &match place {
                    0 => format!("  {cell}"),
                    _ if name.is_empty() => format!("      {cell}"),
                    _ => format!("      {name}: {cell}"),
                },
            );
        }
    }
}

/// Without the marks of strong text and of links, except inside `code`.
fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (place, part) in text.split('`').enumerate() {
        if place > 0 {
            plain.push('`');
        }
        match place % 2 {
            0 => plain.push_str(&part.replace("**", "")),
            _ => plain.push_str(part),
        }
    }
    links(&plain)
}

/// `[words](target)` becomes the words, and the target where a reader can go there.
fn links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('[') {
        plain.push_str(before);
        let link = from.split_once("](").and_then(|(words, behind)| {
            let (target, rest) = behind.split_once(')')?;
            (!words.contains('[')).then_some((words, target, rest))
        });
        let Some((words, target, behind)) = link else {
            plain.push('[');
            rest = from;
            continue;
        };
        plain.push_str(words);
        let page = target.split_once(".md").map(|(page, _)| page);
        if target.starts_with("http") && !words.contains("://") {
            plain.push_str(&format!(" ({target})"));
        } else if let Some(page) = page.filter(|page| super::topic(page).is_some()) {
            plain.push_str(&format!(" (`hearth help {page}`)"));
        }
        rest = behind;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_set_for_a_terminal() {
        for (markdown, expected) in [
            (
                "# Tools\n\n<!-- run -->\n\nThe **first**.\n",
                "TOOLS\n\nThe first.\n",
            ),
            ("```sh\n# not a title\n```\n", "    # not a title\n"),
            (
                "See [the\nrelay](relay.md#setup), [here](#here), [it](../../x.json).\n",
                "See the\nrelay (`hearth help relay`), here, it.\n",
            ),
            (
                "[Rust](https://rust.rs) a[0](b",
                "Rust (https://rust.rs) a[0](b\n",
            ),
            (
                "| A | B |\n|---|:--|\n| `x\\|y` | 1 |\n| z | |\nend\n",
                "  A      B\n  `x|y`  1\n  z\nend\n",
            ),
        ] {
            assert_eq!(render(markdown, false), expected, "{markdown}");
        }
        assert_eq!(render("## Tools\n", true), "\x1b[1mTools\x1b[0m\n");
        let wide = format!("| A | B |\n|---|---|\n| x | {} |\n", "y".repeat(100));
        assert_eq!(
            render(&wide, false),
            format!("  x\n      B: {}\n", "y".repeat(100))
        );
    }

    #[test]
    fn no_page_shows_its_marks() {
        for topic in crate::handbook::TOPICS {
            let text = topic.text(false);
            for mark in ["<!--", "```", "](", "|---"] {
                let shown = text.lines().find(|line| line.contains(mark));
                assert_eq!(shown, None, "{}", topic.name);
            }
        }
    }
}
