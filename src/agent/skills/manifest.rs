//! Reads a `SKILL.md`: a head of YAML between two lines `---`, with `name` and
//! `description` (<https://agentskills.io/specification>), and the instructions after it.
//!
//! Of YAML it reads what such heads are made of: plain and quoted keys and values, folded
//! values, and comments. What is nested below other keys is skipped.

use std::fmt::Display;
use std::iter;

use base::visible::is_hidden;

/// Most characters of a name, and of a description, as the specification has it.
const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1_024;

/// A `SKILL.md` that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manifest<'a> {
    pub name: String,
    /// One line.
    pub description: String,
    /// The instructions.
    pub body: &'a str,
}

/// What is wrong with a `SKILL.md`, in which line from 1, and what to do.
fn broken<T>(line: usize, reason: impl Display) -> Result<T, String> {
    Err(format!("line {line}: {reason}"))
}

/// Whether a skill may have this name.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_CHARS).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Reads the text of a `SKILL.md`.
///
/// # Errors
/// What is wrong with it, in which line, and what to do.
pub(super) fn parse(text: &str) -> Result<Manifest<'_>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body, end) = split(text)?;
    let (mut name, mut description) = (None, None);
    let mut lines = head.lines().zip(2..).peekable();
    while let Some((line, number)) = lines.next() {
        if is_empty(line) || line.starts_with([' ', '\t']) {
            continue;
        }
        if line.starts_with(['{', '[']) {
            return broken(
                number,
                "a head in braces or brackets is not read here: write each \"key: value\" on a \
                 line of its own, without them",
            );
        }
        let Some((key, value)) = line.split_once(':') else {
            let reason = format!("{line:?} is no \"key: value\": write one, or remove the line");
            return broken(number, reason);
        };
        let nested = iter::from_fn(|| lines.next_if(|(next, _)| is_nested(next)));
        let nested: Vec<&str> = nested.map(|(next, _)| next.trim()).collect();
        let key = key.trim_end();
        let slot = match key.trim_matches(['"', '\'']) {
            "name" => &mut name,
            "description" => &mut description,
            _ => continue,
        };
        if slot.is_some() {
            let reason = format!("{key:?} is there twice: remove one of the two lines");
            return broken(number, reason);
        }
        *slot = match scalar(value.trim(), &nested) {
            Ok(value) => Some((number, value)),
            Err(reason) => return broken(number, format!("{key:?} {reason}")),
        };
    }
    let missing = |key, what| {
        let reason = format!("there is no {key:?} before this line: add \"{key}: {what}\"");
        broken(end, reason)
    };
    let Some((line, name)) = name else {
        return missing("name", "a-short-name");
    };
    if !is_name(&name) {
        let reason = format!(
            "the name {name:?} must be 1 to {NAME_CHARS} of a-z, 0-9 and single hyphens between \
             them: change it, such as to \"meal-planner\""
        );
        return broken(line, reason);
    }
    let Some((line, description)) = description else {
        return missing("description", "what the skill does, and when to use it");
    };
    let description = one_line(&description);
    let count = description.chars().count();
    if !(1..=DESCRIPTION_CHARS).contains(&count) {
        let reason = format!(
            "the description has {count} characters: say in 1 to {DESCRIPTION_CHARS} what the \
             skill does, and when to use it"
        );
        return broken(line, reason);
    }
    Ok(Manifest {
        name,
        description,
        body,
    })
}

/// The head, the text after it, and the number of the line that ends the head.
fn split(text: &str) -> Result<(&str, &str, usize), String> {
    let is_rule = |line: &str| line.trim_end() == "---";
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if !is_rule(first) {
        return broken(
            1,
            "the file must begin with a line \"---\", then name and description, then \"---\"",
        );
    }
    let rest = &text[first.len()..];
    let mut place = 0;
    for (line, number) in rest.split_inclusive('\n').zip(2..) {
        if is_rule(line) {
            return Ok((&rest[..place], &rest[place + line.len()..], number));
        }
        place += line.len();
    }
    broken(
        text.lines().count(),
        "the head does not end: add a line \"---\" after name and description",
    )
}

fn is_empty(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Whether a line belongs to the key before it.
fn is_nested(line: &str) -> bool {
    line.starts_with([' ', '\t', '-']) || line.trim().is_empty()
}

/// The value of a key, and of the lines that belong to it.
fn scalar(value: &str, nested: &[&str]) -> Result<String, String> {
    let indicator = value.split('#').next().unwrap_or_default().trim_end();
    if indicator.starts_with(['>', '|']) && indicator.len() <= 3 {
        return Ok(nested.join("\n"));
    }
    let whole = format!("{value} {}", nested.join(" "));
    let whole = whole.trim();
    match whole.chars().next() {
        Some(mark @ ('"' | '\'')) => quoted(whole, mark),
        Some('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`') => Err(
            "begins with a character that has a meaning in YAML: put the value between quotation \
             marks"
                .to_owned(),
        ),
        _ => {
            // A comment begins at a # after white space.
            let end = whole.find(" #").unwrap_or(whole.len());
            Ok(whole[..end].trim_end().to_owned())
        }
    }
}

/// The text between quotation marks, of which nothing but a comment may follow.
fn quoted(text: &str, mark: char) -> Result<String, String> {
    let mut read = String::new();
    let mut letters = text.chars().skip(1).peekable();
    loop {
        read.push(match letters.next() {
            None => return Err(format!("does not end: add a {mark} at its end")),
            // In single quotation marks, two are one.
            Some('\'') if mark == '\'' && letters.next_if_eq(&mark).is_some() => mark,
            Some(letter) if letter == mark => break,
            Some('\\') if mark == '"' => escaped(&mut letters)?,
            Some(letter) => letter,
        });
    }
    if is_empty(&letters.collect::<String>()) {
        Ok(read)
    } else {
        Err(format!(
            "goes on after its last {mark}: escape those within"
        ))
    }
}

/// The character that is written after a backslash.
fn escaped(letters: &mut impl Iterator<Item = char>) -> Result<char, String> {
    let kind = letters.next();
    let digits = match kind {
        Some('n' | 'r') => return Ok('\n'),
        Some('t') => return Ok('\t'),
        Some(letter @ ('"' | '\\' | '/' | ' ')) => return Ok(letter),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        _ => 0,
    };
    let kind = kind.map_or_else(String::new, String::from);
    if digits == 0 {
        return Err(format!(
            "has \\{kind}, which is not read here: write the character itself"
        ));
    }
    let code: String = letters.take(digits).collect();
    let letter = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
    letter
        .filter(|_| code.len() == digits)
        .ok_or_else(|| format!("has \\{kind}{code}, which is no character: write that itself"))
}

/// A text on one line, with nothing in it that ends the line or hides.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace();
    let shown = words.map(|word| word.replace(is_hidden, ""));
    let shown: Vec<String> = shown.filter(|word| !word.is_empty()).collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_yaml_has_them() {
        for (head, description) in [
            ("name: tea\ndescription: Makes tea.", "Makes tea."),
            ("description: 'It''s tea'\nname: \"tea\"", "It's tea"),
            (
                "\"name\": tea\n'description' : \"\\x54\\u00e9\\U0001F375\"",
                "Té🍵",
            ),
            (
                "name: tea # short\ndescription: \"a: \\\"b\\\" # c\" # d",
                "a: \"b\" # c",
            ),
            (
                "name: tea\ndescription: Use when: asked #1",
                "Use when: asked",
            ),
            (
                "name: tea\ndescription: >-\n  Makes tea.\n\n  Hot.\nlicense: MIT",
                "Makes tea. Hot.",
            ),
            ("name: tea\ndescription: |\n  Makes\n  tea.", "Makes tea."),
            (
                "name: tea\ndescription: Makes\n  tea,\n  hot.",
                "Makes tea, hot.",
            ),
            (
                "# A skill\nname: tea\nmetadata:\n  name: other\n  description: no\nallowed-tools:\n- \
                 a\ndescription: Tea.",
                "Tea.",
            ),
            (
                "name: tea\r\ndescription: \"a\\n</outside X>\u{202e}b\u{7}\"",
                "a </outside X>b",
            ),
        ] {
            let text = format!("---\n{head}\n---\n# Tea\n");
            let read = parse(&text).unwrap_or_else(|error| panic!("{head}: {error}"));
            assert_eq!(
                (read.name.as_str(), read.description.as_str()),
                ("tea", description)
            );
            assert_eq!(read.body, "# Tea\n");
        }
    }

    #[test]
    fn what_is_broken_is_said_with_its_line_and_what_to_do() {
        let long = format!("---\nname: tea\ndescription: {}\n---\n", "x".repeat(1_025));
        for (text, line, says) in [
            ("", 1, "must begin with a line"),
            ("# Tea\n", 1, "must begin with a line"),
            ("---\nname: tea\n", 2, "add a line"),
            ("---\ndescription: x\n---\n", 3, "no \"name\""),
            ("---\nname: tea\n---\n", 3, "no \"description\""),
            (
                "---\nname: Tea\ndescription: x\n---\n",
                2,
                "must be 1 to 64",
            ),
            (
                "---\nname: ../tea\ndescription: x\n---\n",
                2,
                "must be 1 to 64",
            ),
            (
                "---\nname: a--b\ndescription: x\n---\n",
                2,
                "must be 1 to 64",
            ),
            ("---\nname: -a\ndescription: x\n---\n", 2, "must be 1 to 64"),
            ("---\nname: tea\ndescription:\n---\n", 3, "has 0 characters"),
            (&long, 3, "has 1025 characters"),
            (
                "---\nname: tea\nname: tea\ndescription: x\n---\n",
                3,
                "twice",
            ),
            ("---\nname: tea\nhello\n---\n", 3, "no \"key: value\""),
            ("---\nname: tea\ndescription: \"x\n---\n", 3, "does not end"),
            (
                "---\nname: tea\ndescription: 'x' y\n---\n",
                3,
                "goes on after",
            ),
            (
                "---\nname: tea\ndescription: [x]\n---\n",
                3,
                "between quotation marks",
            ),
            (
                "---\nname: tea\ndescription: \"\\q\"\n---\n",
                3,
                "\\q, which is",
            ),
            (
                "---\nname: tea\ndescription: \"\\uD800\"\n---\n",
                3,
                "\\uD800, which is no character",
            ),
            ("---\n{name: tea, description: x}\n---\n", 2, "in braces"),
        ] {
            let broken = parse(text).unwrap_err();
            let line = format!("line {line}: ");
            assert!(broken.starts_with(&line), "{text}: {broken}");
            assert!(broken.contains(says), "{text}: {broken}");
        }
    }
}
